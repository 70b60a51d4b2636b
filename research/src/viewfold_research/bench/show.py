"""The results of the benchmark for people to look at: tables, figures, and one page with both.

Nothing is computed here. Everything comes from the results database, so that a page can be made
again, in another format, without running anything again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FORMATS = ("html", "md", "csv", "tex", "svg", "png", "pdf")
_SECTIONS = {
    "leaderboard": (
        "Leaderboard",
        "All methods on all data sets, with clusters as their users get them: where a method ends "
        "with an embedding, the best of ten runs of k-means by inertia. Each baseline is tried "
        "with the scalings that suit it; which one counts is chosen without classes, as the last "
        "table tells. A cell has a limit of CPU time and memory; a method that reaches it is not "
        "asked again on the same set, and ranked last there. Methods for complete views are "
        "ranked among all at 0\u00a0%, on the sets that lack no samples, and left out elsewhere. "
        "Bars in the diagrams join methods that the test of Nemenyi does not tell apart at "
        "5\u00a0%.",
    ),
    "complete": ("Complete views", "All samples are in all views."),
    "incomplete": (
        "Incomplete views",
        "Every view lacks the same share of samples, drawn by the paper's rule. Lines are means "
        "over draws (of the mean of all runs of k-means), bands one standard deviation each way.",
    ),
    "time": (
        "Running time",
        "From the first view to labels, with one run of k-means where a method needs it.",
    ),
    "order": (
        "Order of the views",
        "One point for each order of the same complete views. The bar reaches from the lowest to "
        "the highest, the number is the distance between them.",
    ),
    "convergence": (
        "Convergence",
        "How the objective changes after the first iteration of each view, in %. The first "
        "view takes one step. Rings mark iterations at which the objective rose.",
    ),
    "scale": (
        "Scale",
        "Synthetic views of growing size, both axes logarithmic: a slope of 1 is a cost in "
        "proportion to the samples.",
    ),
    "failures": ("What did not come to an end", ""),
}
_TABLES = {
    "incomplete": ("incomplete", "ratios"),
    "leaderboard": ("ranks", "leaderboard", "scalings"),
}
_FOLDED = ("ratios", "convergence", "failures")  # long tables, for readers who want to open them


def tables(folder: str | Path) -> dict[str, pd.DataFrame]:
    """Make the tables of the benchmark, as numbers.

    Parameters
    ----------
    folder : str or path
        Where ``results.duckdb`` is.

    Returns
    -------
    dict of DataFrames
        Those for which there are results: complete, incomplete (aggregated over missing ratios as
        in the paper), ratios, time, order, convergence, scale and failures; of the leaderboard,
        ranks, leaderboard (data set by data set) and scalings. In the first two, ``published`` is
        the paper's number and ``difference`` is ``max - published``, since what the paper prints
        are maxima.
    """
    from viewfold_research.bench import _tables

    return _tables.build(_tables.read(folder))


def figures(folder: str | Path) -> dict[str, Figure]:
    """Draw the figures of the benchmark, of the results that `tables` reads.

    Returns
    -------
    dict of matplotlib figures
        Those for which there are results: one for each data set with incomplete views
        (``incomplete-Wiki``, …) and with curves (``convergence-Wiki``, …), time, order and scale,
        and one for each share of missing samples on the leaderboard (``leaderboard-30``, …).
    """
    from viewfold_research.bench import _figures, _tables

    return _figures.build(_tables.read(folder))


def write(
    folder: str | Path, formats: Iterable[str] = ("html", "md", "csv", "tex", "svg")
) -> list[Path]:
    """Write tables and figures as files, next to the results database.

    Parameters
    ----------
    folder : str or path
        Where ``results.duckdb`` is.
    formats : iterable of str
        ``html`` (everything on one page that needs no other file), ``md`` (all tables), ``csv`` and
        ``tex`` (a file for each table), ``svg``, ``png`` and ``pdf`` (a file for each figure).

    Returns
    -------
    list of paths
        The files that were written.
    """
    from viewfold_research.bench import _figures, _sheets, _tables

    wanted = list(dict.fromkeys(formats))
    if unknown := [name for name in wanted if name not in FORMATS]:
        raise ValueError(f"There is no format {unknown[0]!r}. Known are: {', '.join(FORMATS)}.")
    folder, data = Path(folder), _tables.read(folder)
    found = _tables.build(data)
    sheets = _sheets.build(found)
    drawn = _figures.build(data) if {"html", "svg", "png", "pdf"} & {*wanted} else {}
    texts: dict[str, str] = {}
    for name in wanted:
        if name == "html":
            texts["results.html"] = _page(_tables.facts(data), sheets, drawn)
        elif name == "md":
            texts["results.md"] = "\n".join(_sheets.markdown(sheet) for sheet in sheets.values())
        elif name == "csv":
            texts |= {f"{key}.csv": table.to_csv(index=False) for key, table in found.items()}
        elif name == "tex":
            texts |= {f"{key}.tex": _sheets.latex(sheet) for key, sheet in sheets.items()}
    written = []
    for name, text in texts.items():
        with _replacing(folder / name) as draft:
            draft.write_text(text, encoding="utf-8")
        written.append(folder / name)
    return written + _save(
        folder, drawn, [name for name in wanted if name in ("svg", "png", "pdf")]
    )


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yield a file to write to; it takes the place of `path` if the block succeeds."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield draft
        with draft.open("rb+") as file:  # a full disk is noticed before the old file is gone
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _save(folder: Path, drawn: dict[str, Figure], formats: list[str]) -> list[Path]:
    from viewfold_research.bench import _figures

    written = []
    with _figures.style():
        for name, figure in drawn.items():
            for kind in formats:
                path = folder / f"{_file_name(name)}.{kind}"
                undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
                with _replacing(path) as draft:
                    figure.savefig(draft, format=kind, dpi=200, metadata=undated)
                written.append(path)
    return written


def _page(facts: dict[str, str], sheets: dict[str, Any], drawn: dict[str, Figure]) -> str:
    """Put everything on one page without anything from outside it."""
    from viewfold_research.bench._page import Section, render

    sections = []
    for name, (title, text) in _SECTIONS.items():
        pictures = {
            key: _inline(key, figure)
            for key, figure in drawn.items()
            if key.partition("-")[0] == name
        }
        parts = [sheets[key] for key in _TABLES.get(name, (name,)) if key in sheets]
        if parts or pictures:
            sections.append(Section(name, title, text, pictures, parts))
    return render(sections, facts, _FOLDED)


def _inline(name: str, figure: Figure) -> str:
    """Turn a figure into an SVG element whose ids no other figure on the page has."""
    from io import StringIO

    from viewfold_research.bench import _figures

    with _figures.style():
        buffer = StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    svg = buffer.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    prefix = _file_name(name)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    return svg.replace("<svg ", '<svg role="img" ', 1)


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name)
