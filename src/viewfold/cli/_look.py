"""What would be understood of a file: the command inspect, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from viewfold._util.file import File
from viewfold.app.states import is_there, load_model
from viewfold.app.telling import command, inspected
from viewfold.app.words import for_cli, option
from viewfold.cli import _options as opt
from viewfold.cli._files import ids_option, reading_options
from viewfold.cli._reading import file_argument, reads
from viewfold.cli.console import print_json, print_lines, progress

if TYPE_CHECKING:
    from viewfold.app.inspection import ColumnFacts, Inspection, SampleFacts
    from viewfold.data.ids import Similar

SCALES = {
    "zscore": "z-score of every feature",
    "center": "centred (principal-component scores)",
    "l2": "rows of unit length (weights)",
    "tfidf": "tf-idf and rows of unit length (counts)",
    None: "none",
}
SHOWN = 8


@file_argument("File, folder or glob.")
@click.option(
    "--state", metavar="STATE.vf", type=opt.StatePath(), help="Compare the file with this state."
)
@opt.id_column
@opt.no_id
@opt.similar_ids
@opt.rows_and_columns
@opt.view
@opt.as_json
@reads
def inspect(
    file: File,
    state: Path | None,
    id_column: str | None,
    no_id: bool,
    similar_ids: Similar,
    view: str | None,
    as_json: bool,
    **rows_and_columns: Any,
) -> None:
    """Show how add would read a file, and the command to type next.

    It shows rows, ids, kinds of columns, missing cells and scaling; with --state, also which
    samples are known. Nothing is changed.
    """
    from viewfold.app.inspection import inspect_views

    model = load_model(state) if state is not None and is_there(state) else None
    with progress(f"reading {file}"):
        found = inspect_views(
            file,
            ids=ids_option(id_column, no_id),
            view=view,
            model=model,
            similar_ids=similar_ids,
            **reading_options(**rows_and_columns),
        )
    target = state or Path(f"{_stem(found[0].name)}.vf")
    commands = [command(one, file, target, new=model is None) for one in found]
    if as_json:
        print_json(
            {
                "file": str(file),
                "views": [inspected(one, line) for one, line in zip(found, commands, strict=True)],
            }
        )
        return
    for one, line in zip(found, commands, strict=True):
        print_lines(*described(one, line, str(file)))


def _stem(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name).strip("-.") or "state"


def described(found: Inspection, line: str | None, file: str) -> list[str]:
    """Return what was found out, line by line, for a person."""
    written = ", ".join(f"{what} {sign!r}" for what, sign in found.written.items())
    lines = [f"{found.name} ({file}): {found.n_rows:,} rows" + (f"; {written}" if written else "")]
    rows = {"ids": _ids(found)}
    for title, kind in (("numbers", "number"), ("booleans", "boolean"), ("dates", "date")):
        rows[title] = _names([one.name for one in found.of_kind(kind)])
    rows["categories"] = "; ".join(
        f"{one.name} ({_names(one.levels, count=False)})"
        for one in found.of_kind("category")[:SHOWN]
    )
    rows["left out"] = "; ".join(
        f"{one.name} ({one.why or 'as asked'})" for one in found.of_kind("out")[:SHOWN]
    )
    rows["missing"] = _missing(found)
    rows["zeros"] = _zeros(found)
    rows["suspects"] = "; ".join(
        f"{value:g} in {_names(names, count=False)} may mark missing cells: "
        f"{option('empty_markers', [f'{value:g}', 'NA'])}"
        for value, names in found.suspects.items()
    )
    rows["scaling"] = SCALES.get(found.scale, str(found.scale)) if not found.refused else ""
    rows["samples"] = _samples(found.samples)
    lines += [f"  {title:<11}{text}" for title, text in rows.items() if text]
    lines += [f"  {'asks':<11}{for_cli(one)}" for one in found.problems]
    lines += [f"  {'refused':<11}{for_cli(found.refused)}"] if found.refused else []
    lines += [f"  {'note':<11}{for_cli(one)}" for one in found.notes]
    end = f"next: {line}" if line else "next: correct the file; no option helps."
    return [*lines, end]


def _ids(found: Inspection) -> str:
    others = [name for name in found.id_candidates if name != found.id_column]
    too = ", too" if found.has_ids else ""
    also = f"; {_names(others, count=False)} looks like ids{too}" if others else ""
    if found.id_column is not None:
        proposed = " (proposed)" if "ids" in found.proposed else ""
        return f"column {found.id_column!r}{proposed}{also}"
    if found.has_ids:
        return f"those that the file has{also}"
    return f"none: samples are known by their row number{also}"


def _names(names: Any, *, count: bool = True) -> str:
    names = list(names)
    shown = ", ".join(map(str, names[:SHOWN])) + (", …" if len(names) > SHOWN else "")
    return f"{len(names):,}: {shown}" if count and names else shown


def _missing(found: Inspection) -> str:
    if not found.n_missing:
        return "no cell"

    def of(column: ColumnFacts) -> str:
        return f"{column.name} {100 * column.n_missing / found.n_rows:.3g} %"

    worst = ", ".join(of(column) for column in found.worst())
    absent = f"; {found.n_absent:,} rows hold nothing" if found.n_absent else ""
    share = 100 * found.n_missing / found.n_cells
    return f"{found.n_missing:,} cells, {share:.3g} % of those in the file ({worst}){absent}"


def _zeros(found: Inspection) -> str:
    if not found.n_zero:
        return ""
    done = f"{found.n_empty:,} of them are taken for absent samples" if found.n_empty else "kept"
    return f"{found.n_zero:,} rows of zeros, {done}"


def _samples(samples: SampleFacts | None) -> str:
    if samples is None:
        return ""
    text = f"{samples.n_known:,} known, {samples.n_new:,} new"
    if samples.n_similar:
        pairs = ", ".join(f"{new!r} is almost {known!r}" for new, known in samples.examples)
        text += f", of which {samples.n_similar:,} are nearly known ({pairs})"
    if samples.n_in_view:
        text += f"; {samples.n_in_view:,} are in this view already"
    if samples.fits:
        text += f"; the columns are those of {_names(samples.fits, count=False)}"
    return text
