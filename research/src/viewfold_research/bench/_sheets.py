"""Tables for people: the numbers of `_tables` as text, in Markdown, LaTeX and HTML.

A sheet is what all formats have in common: grouped columns, rows of text, and which cells hold the
best value of their data set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from viewfold_research.bench._tables import METRICS

if TYPE_CHECKING:
    import pandas as pd

ONE_RUN = (
    " Methods that find clusters themselves have one run, for which mean and max are the same."
)


@dataclass(frozen=True)
class Cell:
    """A piece of text, and whether it is the best among its like."""

    text: str
    best: bool = False

    @property
    def numeric(self) -> bool:
        """Whether it is a number, or the place of one."""
        words = self.text.replace(" of ", " ")
        return self.text[:1] in "0123456789−–" and not any(letter.isalpha() for letter in words)


@dataclass(frozen=True)
class Sheet:
    """A table as text.

    Attributes
    ----------
    name : str
        Name of the table, and of its files.
    title, caption : str
        What it shows, and how to read it.
    columns : list of tuples of str
        Group and label of each column; the group is empty for columns that stand alone.
    rows : list of lists of Cell
        What is in it. A first cell that is empty continues the one above.
    """

    name: str
    title: str
    caption: str
    columns: list[tuple[str, str]]
    rows: list[list[Cell]]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Groups of columns and how wide they are."""
        found: list[tuple[str, int]] = []
        for group, _ in self.columns:
            if found and found[-1][0] == group:
                found[-1] = (group, found[-1][1] + 1)
            else:
                found.append((group, 1))
        return found

    def edge(self, column: int) -> str:
        """Say whether a group begins at a column."""
        group = self.columns[column][0]
        return "edge" if group and group != self.columns[column - 1][0] else ""

    def kind(self, column: int) -> str:
        """Say how the head of a column looks: like what is below it."""
        below = [row[column] for row in self.rows if row[column].text]
        return f"{self.edge(column)} {'num' if below and below[0].numeric else ''}".strip()

    @property
    def blocks(self) -> Iterator[list[list[Cell]]]:
        """Rows that belong to the same first cell."""
        block: list[list[Cell]] = []
        for row in self.rows:
            if row[0].text and block:
                yield block
                block = []
            block.append(row)
        yield block


def build(tables: dict[str, pd.DataFrame]) -> dict[str, Sheet]:
    """Write all tables as text."""
    from viewfold_research.bench import _board

    makers: dict[str, Callable[[pd.DataFrame], Sheet]] = {
        "ranks": _board.ranks,
        "leaderboard": _board.leaderboard,
        "scalings": _board.scalings,
        "complete": _complete,
        "incomplete": _incomplete,
        "ratios": _ratios,
        "time": _time,
        "order": _order,
        "convergence": _convergence,
        "scale": _scale,
        "failures": _failures,
    }
    return {name: makers[name](table) for name, table in tables.items()}


# ---- what stands in the cells -------------------------------------------------------------------


def _complete(table: pd.DataFrame) -> Sheet:
    caption = (
        "Scores in %. Mean ± standard deviation and max are over the runs of k-means. The paper "
        "prints maxima: its number, and in brackets our max minus it. Best of a data set in bold."
    )
    return _scores(
        "complete",
        "Complete views",
        caption + (ONE_RUN if (table["runs"] == 1).any() else ""),
        table,
        {"mean ± std": ("mean", "std"), "max": ("max", None)},
    )


def _incomplete(table: pd.DataFrame) -> Sheet:
    found = " or ".join(table["ratios"].dropna().unique())
    caption = (
        f"Scores in %, over the missing ratios {found or '(none)'}, aggregated as in the paper: "
        "the average over draws for each ratio, then mean ± standard deviation over ratios. Of "
        "each draw, mean takes the mean of the runs of k-means, max the best of them. The paper "
        "prints maxima: its number, and in brackets our max minus it, where all ratios of the "
        "paper are there. Best of a data set in bold."
    )
    return _scores(
        "incomplete",
        "Incomplete views, all missing ratios together",
        caption,
        table,
        {"mean ± std": ("mean", "std"), "max ± std": ("max", "max_std")},
    )


def _ratios(table: pd.DataFrame) -> Sheet:
    caption = (
        "Scores in %, mean ± standard deviation over the draws of missing samples: of the mean of "
        "the runs of k-means, and of the best of them."
    )
    shown = {"mean ± std": ("mean", "std"), "max ± std": ("max", "max_std")}
    return _scores("ratios", "Incomplete views, each missing ratio", caption, table, shown)


def _scores(
    name: str,
    title: str,
    caption: str,
    table: pd.DataFrame,
    shown: Mapping[str, tuple[str, str | None]],
) -> Sheet:
    """Lay out scores: a row for each method, columns for each metric."""
    heads = [head for head in ("dataset", "method", "ratio") if head in table]
    metrics = [metric for metric in METRICS if (table["metric"] == metric).any()]
    labels = [*shown, *(["published (difference)"] if _has_published(table) else [])]
    rows = []
    for where, part in table.groupby(heads, sort=False):
        lines = {line["metric"]: line for line in part.to_dict("records")}
        cells = [Cell(_head(h, value)) for h, value in zip(heads, where, strict=True)]
        peers = _peers(table, heads, where)
        for metric in metrics:
            cells += _score_cells(lines.get(metric, {}), peers, shown)
            if len(labels) > len(shown):
                cells.append(Cell(_published(lines.get(metric, {}))))
        rows.append(cells)
    columns = [
        *(("", h) for h in _names(heads)),
        *((m, label) for m in metrics for label in labels),
    ]
    return Sheet(name, title, caption, columns, without_repeats(rows))


def _score_cells(
    line: dict[str, Any], peers: pd.DataFrame, shown: Mapping[str, tuple[str, str | None]]
) -> list[Cell]:
    """Write what is shown of one score; where there is none, say why."""
    if not _there(line.get("mean")):
        return [Cell(short(line.get("note") or "–")), *[Cell("–")] * (len(shown) - 1)]
    same = peers[peers["metric"] == line["metric"]]
    rivals = same["method"].nunique() > 1
    return [
        Cell(
            _plus_minus(line[value], line[std] if std else None),
            best=rivals and line[value] >= same[value].max(),
        )
        for value, std in shown.values()
    ]


def _time(table: pd.DataFrame) -> Sheet:
    rows = [
        [
            Cell(line["dataset"]),
            Cell(line["method"]),
            Cell(seconds(line["cpu_seconds"])),
            Cell(seconds(line["wall_seconds"])),
            Cell(number(line["peak_bytes"] / 1e6, 1)),
            Cell(number(line["relative"], 2)),
            Cell(short(line["note"])),
        ]
        for line in table.to_dict("records")
    ]
    labels = ["data set", "method", "CPU s", "wall s", "memory, MB", "CPU / FCMVC-IV", "note"]
    caption = "Medians over missing ratios. Memory is what a method needed beyond the data."
    return Sheet("time", "Running time", caption, [("", h) for h in labels], without_repeats(rows))


def _order(table: pd.DataFrame) -> Sheet:
    rows = []
    metrics = [metric for metric in METRICS if (table["metric"] == metric).any()]
    for (dataset, method), part in table.groupby(["dataset", "method"], sort=False):
        lines = {line["metric"]: line for line in part.to_dict("records")}
        cells = [Cell(dataset), Cell(method), Cell(str(part["orders"].max()))]
        for metric in metrics:
            line = lines.get(metric, {})
            cells += [
                Cell(_plus_minus(line.get("mean"), line.get("std"))),
                Cell(_span(line.get("lowest"), line.get("highest"))),
                Cell(_span(line.get("lowest_max"), line.get("highest_max"))),
            ]
        rows.append(cells)
    labels = ("mean ± std", "lowest–highest mean", "lowest–highest max")
    columns = [("", "data set"), ("", "method"), ("", "orders")]
    columns += [(metric, label) for metric in metrics for label in labels]
    caption = (
        "Scores in % over orders of the views: mean ± standard deviation of the means over runs of "
        "k-means, the lowest and highest of these means, and the same of the maxima."
    )
    return Sheet("order", "Order of the views", caption, columns, without_repeats(rows))


def _convergence(table: pd.DataFrame) -> Sheet:
    rows = [
        [
            Cell(line["dataset"]),
            Cell(line["method"]),
            Cell(f"{100 * line['ratio']:.0f} %"),
            Cell(str(line["view"] + 1)),
            Cell(number(line["iterations"], 1)),
            Cell(number(line["change"], 4)),
            Cell(f"{line['rose']} of {line['runs']}"),
        ]
        for line in table.to_dict("records")
    ]
    labels = ["data set", "method", "missing", "view", "iterations", "change of objective, %"]
    columns = [("", label) for label in [*labels, "runs in which it rose"]]
    caption = (
        "Means over runs. The objective is to fall; a rise counts if it is more than round-off."
    )
    return Sheet("convergence", "Convergence", caption, columns, without_repeats(rows))


def _scale(table: pd.DataFrame) -> Sheet:
    rows = [
        [
            Cell(line["method"]),
            Cell(f"{line['n_samples']:,}"),
            Cell(seconds(line["cpu_seconds"])),
            Cell(seconds(line["wall_seconds"])),
            Cell(number(line["peak_bytes"] / 1e6, 1)),
            Cell(short(line["note"])),
        ]
        for line in table.to_dict("records")
    ]
    labels = ["method", "samples", "CPU s", "wall s", "memory, MB", "note"]
    caption = "Medians on synthetic views. Memory is what a method needed beyond the data."
    return Sheet("scale", "Scale", caption, [("", h) for h in labels], without_repeats(rows))


def _failures(table: pd.DataFrame) -> Sheet:
    rows = [[Cell(str(value)) for value in line] for line in table.to_numpy()]
    labels = [
        ("", label) for label in ("experiment", "data set", "method", "what happened", "cells")
    ]
    return Sheet("failures", "What did not come to an end", "", labels, without_repeats(rows))


# ---- small pieces of text -----------------------------------------------------------------------


def _there(value: float | None) -> bool:
    return value is not None and value == value


def number(value: float | None, digits: int) -> str:
    """Write a number, or the sign for none."""
    return f"{value:.{digits}f}".replace("-", "−") if value is not None and value == value else "–"


def seconds(value: float | None) -> str:
    """Write a time, short ones to the millisecond."""
    return number(value, 3 if value is not None and value < 1 else 2)


def _plus_minus(value: float | None, std: float | None) -> str:
    return number(value, 2) + (f" ± {number(std, 2)}" if _there(std) else "")


def _span(low: float | None, high: float | None) -> str:
    return f"{number(low, 1)}–{number(high, 1)}" if _there(low) else "–"


def _published(line: dict[str, Any]) -> str:
    if not _there(line.get("published")):
        return str(line.get("published_note") or "–")
    text = _plus_minus(line["published"], line["published_std"])
    if not _there(line.get("difference")):
        return text
    return f"{text} ({line['difference']:+.2f})".replace("-", "−")


def short(note: str) -> str:
    """Cut a note to what a cell of a table has room for."""
    return note if len(note) <= 60 else note[:57] + "…"


def _head(kind: str, value: Any) -> str:
    return f"{100 * value:.0f} %" if kind == "ratio" else str(value)


def _names(heads: list[str]) -> list[str]:
    words = {"dataset": "data set", "ratio": "missing"}
    return [words.get(head, head) for head in heads]


def _has_published(table: pd.DataFrame) -> bool:
    return "published" in table and bool(
        table["published"].notna().any() or (table["published_note"] != "").any()
    )


def _peers(table: pd.DataFrame, heads: list[str], where: tuple[Any, ...]) -> pd.DataFrame:
    """Rows of all methods on the same problem."""
    same = table
    for head, value in zip(heads, where, strict=True):
        if head != "method":
            same = same[same[head] == value]
    return same


def without_repeats(rows: list[list[Cell]]) -> list[list[Cell]]:
    """Name a data set once, in its first row."""
    last, result = None, []
    for row in rows:
        result.append([Cell(""), *row[1:]] if row[0].text == last else row)
        last = row[0].text
    return result


# ---- formats ------------------------------------------------------------------------------------


def markdown(sheet: Sheet) -> str:
    """Write a sheet in Markdown; groups become part of the labels."""

    def line(cells: list[str]) -> str:
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"

    heads = [f"{group} {label}".strip() for group, label in sheet.columns]
    rows = [[f"**{c.text}**" if c.best else c.text for c in row] for row in sheet.rows]
    parts = [f"## {sheet.title}", "", *([sheet.caption, ""] if sheet.caption else [])]
    return "\n".join([*parts, line(heads), line(["---"] * len(heads)), *map(line, rows), ""])


def latex(sheet: Sheet) -> str:
    """Write a sheet in LaTeX, for the packages booktabs and graphicx."""
    heads = [_tex(label) for _, label in sheet.columns]
    blocks = [
        "\n".join(" & ".join(_tex_cell(cell) for cell in row) + r" \\" for row in block)
        for block in sheet.blocks
    ]
    lines = [
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{_tex(f'{sheet.title}. {sheet.caption}'.strip())}}}",
        rf"\label{{viewfold-{sheet.name}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{{'l' * len(heads)}}}",
        r"\toprule",
        *_tex_groups(sheet),
        " & ".join(heads) + r" \\",
        r"\midrule",
        "\n\\midrule\n".join(blocks),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _tex_groups(sheet: Sheet) -> list[str]:
    if not any(group for group, _ in sheet.groups):
        return []
    spans, rules, at = [], "", 1
    for group, width in sheet.groups:
        spans.append(rf"\multicolumn{{{width}}}{{c}}{{{_tex(group)}}}")
        rules += rf"\cmidrule(lr){{{at}-{at + width - 1}}}" if group else ""
        at += width
    return [" & ".join(spans) + r" \\", rules]


def _tex_cell(cell: Cell) -> str:
    return rf"\textbf{{{_tex(cell.text)}}}" if cell.best else _tex(cell.text)


def _tex(text: str) -> str:
    escaped = {c: rf"\{c}" for c in "&%$#_{}"}
    escaped |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    escaped |= {"±": r"$\pm$", "−": "$-$", "–": "--", "…": r"\dots{}"}
    return "".join(escaped.get(c, c) for c in text)
