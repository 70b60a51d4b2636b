"""The page of results: tables and figures between fixed words, everything escaped.

Plain strings instead of a template engine, so that a page needs no other package.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from viewfold_research.bench._sheets import Cell, Sheet

_TITLE = "Results of the benchmark"
_INTRODUCTION = (
    "viewfold and the methods it is compared with, in the experiments of the FCMVC-IV paper. Means "
    "and maxima over the runs of k-means stand side by side: the paper prints maxima."
)


@dataclass(frozen=True)
class Section:
    """An experiment on the page.

    Attributes
    ----------
    name, title, text : str
        Its anchor, its heading, and how to read it.
    pictures : dict of str
        SVG elements by the name of the figure; they are not escaped.
    sheets : list of Sheet
        Its tables.
    """

    name: str
    title: str
    text: str
    pictures: Mapping[str, str]
    sheets: list[Sheet]


def render(sections: list[Section], facts: Mapping[str, str], folded: Iterable[str] = ()) -> str:
    """Write the page, with everything in it that it needs.

    Parameters
    ----------
    sections : list of Section
        What is on it.
    facts : dict of str
        How the numbers were made.
    folded : iterable of str
        Names of tables that readers open if they want to.

    Examples
    --------
    >>> from viewfold_research.bench._page import Section, render
    >>> page = render([Section("time", "Time", "a < b", {}, [])], {"cells": "3 done"})
    >>> "<p>a &lt; b</p>" in page, "<dt>cells</dt><dd>3 done</dd>" in page
    (True, True)
    """
    style = (files("viewfold_research.bench") / "show.css").read_text(encoding="utf-8")
    links = " ".join(f'<a href="#{escape(s.name)}">{escape(s.title)}</a>' for s in sections)
    told = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
    closed = set(folded)
    body = "\n".join(_section(section, closed) for section in sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>viewfold: {_TITLE.lower()}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{_TITLE}</h1>
<p>{escape(_INTRODUCTION)}</p>
<nav>{links}</nav>
<dl>{told}</dl>
</header>
<main>
{body}
</main>
</body>
</html>
"""


def _section(section: Section, closed: set[str]) -> str:
    parts = [f'<h2 id="{escape(section.name)}">{escape(section.title)}</h2>']
    if section.text:
        parts.append(f"<p>{escape(section.text)}</p>")
    for name, picture in section.pictures.items():
        parts.append(f'<figure aria-label="{escape(name)}">{picture}</figure>')
    for sheet in section.sheets:
        table = _table(sheet)
        if sheet.name in closed:
            summary = f"<summary>Table: {escape(sheet.title)}</summary>"
            table = f"<details>{summary}\n{table}\n</details>"
        parts.append(table)
    return "\n".join(["<section>", *parts, "</section>"])


def _table(sheet: Sheet) -> str:
    lines = [f'<div class="table" tabindex="0" role="region" aria-label="{escape(sheet.title)}">']
    lines.append("<table>")
    if sheet.caption:
        lines.append(f"<caption>{escape(sheet.caption)}</caption>")
    lines.append("<thead>")
    if len(sheet.groups) > 1:
        lines.append(_row(_group(*group) for group in sheet.groups))
    lines.append(
        _row(
            f'<th scope="col" class="{sheet.kind(i)}">{escape(label)}</th>'
            for i, (_, label) in enumerate(sheet.columns)
        )
    )
    lines.append("</thead>")
    for block in sheet.blocks:
        rows = [_row(_cell(sheet, i, cell) for i, cell in enumerate(row)) for row in block]
        lines += ["<tbody>", *rows, "</tbody>"]
    return "\n".join([*lines, "</table>", "</div>"])


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _group(name: str, width: int) -> str:
    kind = ' scope="colgroup" class="group"' if name else ""
    return f'<th colspan="{width}"{kind}>{escape(name)}</th>'


def _cell(sheet: Sheet, column: int, cell: Cell) -> str:
    kinds = ("first" if not column else "", sheet.edge(column), "num" if cell.numeric else "")
    text = f"<b>{escape(cell.text)}</b>" if cell.best else escape(cell.text)
    return f'<td class="{" ".join(filter(None, kinds))}">{text}</td>'
