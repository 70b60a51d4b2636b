"""A report on a fitted model: one HTML file that needs nothing else.

It holds a map of the samples, what makes the clusters, and what happened to them. Without `ids`, no
sample id and no row of the consensus is in it.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from viewfold._util.arguments import suggests_arguments
from viewfold.app.output import PAGES, replacing
from viewfold.web import static_text

if TYPE_CHECKING:
    import pandas as pd

    from viewfold.estimators import FoldingEstimator
    from viewfold.web import PageData


__all__ = ["last_report", "render", "write"]


@suggests_arguments
def write(
    model: FoldingEstimator,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    ids: bool = False,
    metadata: pd.DataFrame | None = None,
    since: int | Literal["last"] | None = None,
    private: str | os.PathLike[str] | None = None,
) -> Path:
    """Write a report to a file, and return its path; see `render` for the other parameters.

    Parameters
    ----------
    path : str or path-like
        The HTML file. If there is one already, it is replaced once the new one is complete.
    since : int or "last", optional
        An entry of the log: the report says what changed since. ``"last"``: since the report that
        is replaced, if there is one, and it is of this model.
    private : path, optional
        A new file may be read by those who may read this one, such as the state that it is about.

    Examples
    --------
    >>> from viewfold import ViewFold, report
    >>> from viewfold.datasets import load_digits_views
    >>> model = ViewFold(10, random_state=0).fit(load_digits_views().views)  # doctest: +SKIP
    >>> report.write(model, "report.html")  # doctest: +SKIP
    PosixPath('report.html')
    """
    model = model._snapshot()
    path = Path(path)
    with replacing(path, PAGES, private=private) as draft:
        entry = last_report(path, model) if since == "last" else since
        page = render(model, title=title, ids=ids, metadata=metadata, since=entry)
        draft.write_text(page, encoding="utf-8", newline="\n")
    return path


@suggests_arguments
def render(
    model: FoldingEstimator,
    *,
    title: str | None = None,
    ids: bool = False,
    metadata: pd.DataFrame | None = None,
    since: int | None = None,
) -> str:
    """Return a report as HTML. The same model gives the same text.

    Parameters
    ----------
    model : fitted estimator
        `ViewFold` or `FCMVC`.
    title : str, optional
        The heading.
    ids : bool, default=False
        Whether sample ids are in the page, to search for and to be named; else it names nobody.
    metadata : DataFrame, optional
        Columns to colour the map by, with the sample ids in the index; docs/report.md says how
        each kind is shown. A column that cannot be shown is left out, with a warning.
    since : int, optional
        An entry of the log: the report says what changed since.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import ViewFold, report
    >>> rng = np.random.default_rng(0)
    >>> model = ViewFold(3, random_state=0).fit([rng.normal(size=(60, 5))])
    >>> "<h1>Sixty &lt;samples&gt;</h1>" in report.render(model, title="Sixty <samples>")
    True
    """
    from viewfold.web import page_data

    return "".join(html(page_data(model, title=title, ids=ids, metadata=metadata, since=since)))


# The summary stands in the first bytes of a page; a script comes before it ends, columns after.
MOST = 2**23
_SUMMARY = re.compile(r'<script type="application/json" id="summary">(.*?)</script>', re.DOTALL)


@suggests_arguments
def last_report(path: str | os.PathLike[str], model: FoldingEstimator) -> int | None:
    """Return the entry of the log that a report is about; None if it is not one of this model.

    Of a report that was written at the present entry, it is the entry that it was compared with.
    """
    try:
        with open(path, "rb") as file:
            found = _SUMMARY.search(file.read(MOST).decode("utf-8", "replace"))
        summary = json.loads(found[1]) if found else None
    except (OSError, ValueError, RecursionError):
        return None
    log, first = model._fitted.log, min(model._fitted.steps)
    if not isinstance(summary, dict) or not log:
        return None
    entry, when = summary.get("entry"), summary.get("when")
    # Labels from before the first step are not known any more.
    known = {event.entry: event for event in log if event.entry >= first}
    if not isinstance(entry, int) or entry not in known or known[entry].time.isoformat() != when:
        return None  # the report of another model
    if entry != log[-1].entry:
        return entry
    since = summary.get("since")
    before = since.get("entry") if isinstance(since, dict) else None
    return before if isinstance(before, int) and before in known else None


# What the page may do: run what is in it, and ask nobody for anything. The map compiles its draw
# calls, which needs ``unsafe-eval``.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
FIRST = ("x", "y", "cluster")  # the columns without which there is no map


def html(data: PageData) -> Iterator[str]:
    """Yield a page, piece by piece: columns come last, so that the rest is seen at once."""
    summary = data.summary
    title = escape(summary["title"])
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="viewfold {escape(summary["version"])}">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        f"<title>{title}</title>\n<style>\n{static_text('page.css')}\n</style>\n</head>\n<body>\n"
        f'<main id="page"><div class="viewfold">\n{_header(summary)}\n'
        '<noscript><p class="warning">Map and figures are drawn with JavaScript, which is switched '
        "off. This page loads nothing from anywhere.</p></noscript>\n"
        f"{_clusters(summary['clusters'])}\n</div></main>\n"
    )
    yield f'<script type="application/json" id="summary">{in_script(summary)}</script>\n'
    # Nothing in the script may be taken for the end of its element.
    code = static_text("page.js").replace("</script", "<\\/script").replace("<!--", "<\\!--")
    yield f"<script>\n{code}\n</script>\n"
    yield (
        '<script>viewfold.start(document.getElementById("page"), viewfold.embedded(document))'
        "</script>\n"
    )
    for name in sorted(data.columns, key=lambda name: (name not in FIRST, name == "ids")):
        text = base64.b64encode(gzip.compress(data.packed(name), 9, mtime=0)).decode("ascii")
        yield f'<script type="application/octet-stream" id="column-{name}">{text}</script>\n'
    yield "</body>\n</html>\n"


def in_script(summary: dict[str, Any]) -> str:
    """Return data as JSON that cannot end the script that it stands in."""
    text = json.dumps(summary, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _header(summary: dict[str, Any]) -> str:
    n, moved = summary["n"], summary["moved"]
    share = 100 * summary["complete"] / n
    moves = ("–", "first step")
    if moved is not None:
        moves = f"{moved['count']:,}", f"{100 * moved['share']:.1f} %"
    sizes = {"sample": n, "view": len(summary["views"]), "cluster": len(summary["clusters"])}
    tiles = [
        *((f"{what}{'s' * (many != 1)}", f"{many:,}", "") for what, many in sizes.items()),
        ("in every view", f"{summary['complete']:,}", f"{share:.0f} %"),
        ("moved at the last step", *moves),
    ]
    items = "".join(
        f"<div><dt>{word}</dt><dd>{value}{f'<small>{small}</small>' if small else ''}</dd></div>"
        for word, value, small in tiles
    )
    since = f"\n<p>{escape(summary['since']['text'])}</p>" if summary["since"] else ""
    title = escape(summary["title"])
    return f'<header><h1>{title}</h1>\n<dl class="numbers">{items}</dl>{since}</header>'


def _clusters(clusters: list[dict[str, Any]]) -> str:
    heads = "cluster", "samples", "share", "confidence", "stability"
    rows = []
    for one in clusters:
        name = f' <span class="name">{escape(one["name"])}</span>' if one["name"] else ""
        cells = {
            "samples": f"{one['size']:,}",
            "share": f"{100 * one['share']:.1f} %",
            **{k: "–" if one[k] is None else f"{one[k]:.2f}" for k in heads[3:]},
        }
        dot = f'<i class="dot" style="background: {one["colour"]}"></i>'
        data = "".join(f'<td data-label="{word}">{cell}</td>' for word, cell in cells.items())
        rows.append(
            f'<tr><th scope="row"><span>{dot}<b>{one["number"]}</b>{name}</span></th>{data}</tr>'
        )
    head = "".join(f'<th scope="col">{word}</th>' for word in heads)
    return (
        f'<section><h2>The clusters</h2>\n<div class="table"><table class="clusters">'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody></table></div>"
        "</section>"
    )
