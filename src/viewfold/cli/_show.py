"""Commands that leave a state file as it is: what it holds, and what it says of new samples."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from viewfold import errors
from viewfold._util.choice import which_view
from viewfold._util.file import File
from viewfold.app import output as _output
from viewfold.app.states import folded_model, folded_table
from viewfold.app.telling import without_doubtful
from viewfold.cli import _options as opt
from viewfold.cli._annotate import export_copy
from viewfold.cli._clusters import not_trusted, resampled
from viewfold.cli._engine import works
from viewfold.cli._files import (
    as_table,
    check_output,
    deliver,
    files_of_views,
    ids_option,
)
from viewfold.cli._reading import files_argument, reads
from viewfold.cli.command import PATH, Whole, argument
from viewfold.cli.console import complain, print_json, print_lines, print_rows, progress, say, tell

if TYPE_CHECKING:
    from viewfold.state.log import Event

KEY = "viewfold"
"""What new columns of an AnnData or MuData are called, unless something else is said."""


@opt.state
@opt.output
@opt.raw
@click.option(
    "--least-certain",
    metavar="N",
    type=Whole(min=1),
    help="Print only the N least certain samples, each with its next cluster.",
)
@opt.min_confidence
@opt.as_json
def labels(
    state: Path,
    output: Path | None,
    raw: bool,
    least_certain: int | None,
    min_confidence: float | None,
    as_json: bool,
) -> None:
    """Print the cluster and the confidence of every sample."""
    from viewfold.store import queries

    check_output(output, state)
    if least_certain is None:
        table = folded_table(state, queries.labels(state))
    else:
        table = as_table(folded_model(state).uncertain(least_certain))
    deliver(without_doubtful(table, min_confidence), output, as_json, state, raw=raw)


@opt.state
@click.option(
    "--stability",
    is_flag=True,
    help="Cluster resampled rows, and name the clusters that are not found again.",
)
@opt.as_json
def status(state: Path, stability: bool, as_json: bool) -> None:
    """Show what a state holds, and which earlier states undo can return to."""
    from viewfold.store import queries, store_of

    store = store_of(state)
    with store.reading() as contents:
        found, kept = queries.status(contents), contents.list_kept()
    facts: dict[str, Any] = {"file": str(state), "bytes": store.size(), **found, "states": kept}
    if stability:
        with progress(f"looking at {state}"):
            facts |= resampled(folded_model(state))
    if as_json:
        print_json(facts)
        return
    print_lines(
        f"{state}: {facts['method']}, {facts['samples']:,} samples in {facts['clusters']} "
        f"clusters, {facts['bytes'] / 1e6:.1f} MB"
    )
    if facts["views"]:
        sizes, names = enumerate(facts["cluster_sizes"]), facts["cluster_names"]
        said = (f"{i} ({names[i]}): {n:,}" if i in names else f"{i}: {n:,}" for i, n in sizes)
        print_lines(f"cluster sizes: {', '.join(said)}")
        print_rows(_without(facts["views"], "empty", "missing"))
    else:
        print_lines("no view yet")
    for one in facts["states"]:
        where = "one that is damaged" if one["entry"] is None else f"entry {one['entry']}"
        print_lines(f"can be returned to: {where} ({one['bytes'] / 1e6:.1f} MB)")
    if stability:
        print_rows(facts["stability"])
        say(not_trusted(facts["untrusted"]))


def _without(rows: list[dict[str, Any]], *rare: str) -> list[dict[str, Any]]:
    """Return rows without columns of counts that are zero throughout, to fit a line."""
    gone = {name for name in rare if not any(row[name] for row in rows)}
    return [{name: row[name] for name in row if name not in gone} for row in rows]


@opt.state
@files_argument("One file or several, with the columns of known views.")
@opt.id_column
@opt.no_id
@click.option(
    "--view",
    metavar="NAME",
    multiple=True,
    help="Known view that a file belongs to; once for each file, in the same order. "
    "Unless given, the view named like the file, or the only view.",
)
@opt.min_confidence
@opt.output
@opt.raw
@opt.as_json
@reads
@works
def predict(
    state: Path,
    files: Sequence[File],
    id_column: str | None,
    no_id: bool,
    view: tuple[str, ...],
    min_confidence: float | None,
    output: Path | None,
    raw: bool,
    as_json: bool,
) -> None:
    """Print the clusters of new samples without adding them.

    With several files, samples are matched by id, and all views of a sample count together.
    """
    check_output(output, state, *files)
    rows, which = files_of_views(files, view)
    model = folded_model(state)
    with progress(f"reading {', '.join(map(str, files))}"):
        frame = model.predict_frame(rows, ids=ids_option(id_column, no_id), view=which)
    table = without_doubtful(as_table(frame), min_confidence)
    deliver(table, output, as_json, state, *files, raw=raw)


@opt.state
@click.option("--id", "sample", metavar="ID", help="Show the clusters of this sample over time.")
@click.option("--moved", metavar="VIEW", help="Show which samples moved when this view came.")
@click.option(
    "--events",
    is_flag=True,
    help="Show which clusters were born, merged, split, vanished, grew or shrank.",
)
@opt.output
@opt.raw
@opt.as_json
def history(
    state: Path,
    sample: str | None,
    moved: str | None,
    events: bool,
    output: Path | None,
    raw: bool,
    as_json: bool,
) -> None:
    """Print the log: what every change did, and when.

    With --id, the clusters of one sample over time; with --moved, who moved when a view came; with
    --events, what happened to the clusters from step to step (see docs/commands.md).
    """
    from viewfold.store import queries

    said = {"--id": sample is not None, "--moved": moved is not None, "--events": events}
    if sum(said.values()) > 1:
        both = " and ".join(name for name, given in said.items() if given)
        raise ValueError(f"{both} ask for different tables. Choose one.")
    check_output(output, state)
    if moved is not None:
        which_view(queries.names(state), moved, f"{state} holds")
        deliver(queries.movers(state, moved), output, as_json, state, raw=raw)
        return
    shown: list[dict[str, Any]] | None = None
    if events:
        rows = [vars(event) for event in queries.events(state)]
    elif sample is not None:
        rows = queries.way(state, sample)
        if not rows:
            raise ValueError(f"Unknown samples: [{sample!r}].")
    else:
        log = queries.log(state)
        rows, shown = [_entry(event) for event in log], [_line(event) for event in log]
    if output is not None:
        from viewfold._util.table import Table

        deliver(Table.of_rows(rows), output, as_json, state, raw=raw)
    elif as_json:
        print_json(rows)
    elif rows:
        print_rows(_short(shown or rows))
    elif events:
        say(f"Nothing happened to the clusters of {state}, as far as its history tells.")
    else:
        say(f"{state} is empty: nothing was done to it yet.")


def _short(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return entries without what none of them has, and times to the minute, to fit a line."""
    kept = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    return [
        {name: f"{row[name]:%Y-%m-%d %H:%M}" if name == "time" else row[name] for name in kept}
        for row in rows
    ]


def _line(event: Event) -> dict[str, Any]:
    """Return an entry of the log with what was done in words, which needs fewer columns."""
    counts = ("samples", "new", "shared", "corrected", "moved")
    told = _entry(event)
    return {name: told[name] for name in ("entry", "time")} | {
        "what": event.said,
        **{name: told[name] for name in counts},
    }


@opt.state
@opt.as_json
def verify(state: Path, as_json: bool) -> None:
    """Check everything in a state; say what is damaged and what can be saved."""
    from viewfold.store import verify as look_over

    with progress(f"reading {state}"):
        found = look_over(state)
    if as_json:
        facts = {"file": str(state), "whole": found.whole}
        print_json({**facts, "problems": found.problems, "rescue": found.rescue})
    elif found.whole:
        say(f"{state} is whole.")
    else:
        for line in (*found.problems, *found.rescue):
            complain(line)
    if not found.whole:
        raise click.exceptions.Exit(errors.DamagedFileError.exit_code)


@opt.state
@argument(
    "file",
    metavar="FILE",
    type=PATH,
    required=False,
    help="AnnData or MuData file, of which a copy gets the clusters.",
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    help="File to write: .parquet, .arrow, .csv, .tsv, .xlsx or .jsonl; with FILE, the "
    "copy (FILE-viewfold.h5ad unless given).",
)
@click.option(
    "--id", "id_column", metavar="COLUMN", help="Column of obs that holds the sample ids."
)
@click.option("--key", metavar="NAME", default=KEY, help="Name of the new columns of obs.")
@click.option("--overwrite", is_flag=True, help="Replace columns of obs that have this name.")
@opt.raw
@opt.min_confidence
@opt.as_json
def export(
    state: Path,
    file: Path | None,
    output: Path | None,
    id_column: str | None,
    key: str,
    overwrite: bool,
    raw: bool,
    min_confidence: float | None,
    as_json: bool,
) -> None:
    """Write all there is about every sample to a table, an AnnData or a MuData.

    A table has cluster, confidence, views, history and embedding. A copy of FILE has clusters and
    confidence in its obs, and the embedding in its obsm; FILE stays as it is.
    """
    if file is not None:
        export_copy(state, file, output, (key, id_column, overwrite, min_confidence), as_json)
        return
    if id_column is not None or overwrite or key != KEY:
        raise ValueError(
            "--id, --key and --overwrite are about a copy of an AnnData or MuData file, and none "
            "is named. Leave them out, or name the file."
        )
    if output is None:
        raise ValueError(
            "Where to? Name a table with -o, or an AnnData or MuData file of which a copy gets the "
            "clusters."
        )
    from viewfold.store import queries

    check_output(output, state)
    with progress(f"reading {state}") as step:
        table = without_doubtful(folded_table(state, queries.everything(state)), min_confidence)
        step(f"writing {output}")
        _output.write_table(table, output, [state], private=state, raw=raw)
    columns = _output.names(table)[1:]
    tell(
        as_json,
        {"file": str(output), "samples": len(table), "columns": columns},
        f"{output} is written: {len(table):,} samples, {len(columns)} columns.",
    )


@click.option("--fetch", metavar="NAME", help="Download this data set, unless it is there.")
@click.option("--folder", type=PATH, help="Where data sets are kept, instead of VIEWFOLD_DATA.")
@opt.as_json
def datasets(fetch: str | None, folder: Path | None, as_json: bool) -> None:
    """List public data sets and where to get them, or download one."""
    from viewfold.datasets import listed

    if fetch is not None:
        _fetch(fetch, folder, as_json)
        return
    rows = listed()
    if as_json:
        print_json(rows)
        return
    sizes = ("name", "samples", "views", "classes", "features", "fetch")
    print_rows([{name: row[name] for name in sizes} for row in rows])
    for row in rows:
        print_lines("", f"{row['name']}: {row['address']}", f"  {row['note']}")


def _fetch(name: str, folder: Path | None, as_json: bool) -> None:
    from viewfold.datasets import fetch

    with progress(f"fetching {name}"):
        held = fetch(name, data_home=folder)
    views = {view: list(map(int, X.shape)) for view, X in held.views.items()}
    shapes = ", ".join(f"{view} {n:,} × {d:,}" for view, (n, d) in views.items())
    tell(
        as_json,
        {"name": name, "file": held.filename, "views": views},
        f"{held.filename} has {name}: {shapes}.",
    )


@argument(
    "folder",
    type=PATH,
    default=".",
    help="Where to write the results.",
)
@opt.as_json
def demo(folder: Path, as_json: bool) -> None:
    """Try viewfold on six views of handwritten digits; write labels and a report."""
    from contextlib import redirect_stdout

    from viewfold.cli.demo import tell

    if not as_json:
        tell(folder)
        return
    with redirect_stdout(sys.stderr):
        accuracy = tell(folder)
    print_json({"folder": str(folder), "accuracy": round(accuracy, 4)})


def _entry(event: Event) -> dict[str, Any]:
    """Return an entry of the log, with the names that the command line has for counts."""
    return {name.removeprefix("n_"): value for name, value in vars(event).items()}
