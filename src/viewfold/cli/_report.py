"""`viewfold report STATE.vf`: the page that shows the clusters, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from viewfold._util.file import File
from viewfold.app import output as _output
from viewfold.app.states import folded_model
from viewfold.cli import _options as opt
from viewfold.cli._files import listed
from viewfold.cli.command import PATH
from viewfold.cli.console import progress, tell

if TYPE_CHECKING:
    import pandas as pd

    from viewfold.state.log import Log


@opt.state
@click.option("-o", "--output", type=PATH, default="report.html", help="Page to write.")
@click.option("--title", help="Title of the page.")
@click.option(
    "--ids", is_flag=True, help="Put the sample ids into the page, to search for and to show."
)
@click.option(
    "--metadata",
    metavar="FILE",
    type=opt.FILE,
    help="Table about the samples, with columns to colour the map by.",
)
@click.option(
    "--metadata-id", metavar="COLUMN", help="Column of that table that holds the sample ids."
)
@click.option(
    "--metadata-columns",
    metavar="A,B,…",
    help="Columns to colour by; all unless given.",
)
@click.option(
    "--since",
    metavar="ENTRY",
    type=int,
    help="Show what changed since this entry of the log; unless given, since the report "
    "that is replaced.",
)
@opt.as_json
def report(
    state: Path,
    output: Path,
    title: str | None,
    ids: bool,
    metadata: File | None,
    metadata_id: str | None,
    metadata_columns: str | None,
    since: int | None,
    as_json: bool,
) -> None:
    """Write an HTML page about the clusters, which opens offline.

    It shows the clusters, what makes them and what changed. If it replaces a report, it shows who
    is new and who moved since then.
    """
    if metadata is None and (metadata_id or metadata_columns):
        raise ValueError("--metadata-id and --metadata-columns say something about --metadata.")
    inputs = [state] if metadata is None else [state, metadata]
    _output.check(output, _output.PAGES, inputs)
    from viewfold.web.report import last_report, write

    with progress(f"reading {state}") as step:
        model = folded_model(state)
        entry = last_report(output, model) if since is None else _known(model._fitted.log, since)
        table = None if metadata is None else _table(metadata, metadata_id, metadata_columns)
        step(f"drawing {output}")
        named: dict[str, Any] = {"title": title or Path(state).stem, "ids": ids}
        private = state if ids else None
        write(model, output, **named, metadata=table, since=entry, private=private)
    size = output.stat().st_size
    compared = "" if entry is None else f", compared with entry {entry}"
    tell(
        as_json,
        {"file": str(output), "bytes": size, "ids": ids, "since": entry},
        f"{output} is written ({size / 1e6:.1f} MB{compared}).",
    )


def _known(log: Log, entry: int) -> int:
    """Return an entry of the log, if there is one."""
    entries = [event.entry for event in log]
    if entry not in entries:
        raise ValueError(
            f"--since {entry}: the log has the entries {entries[0]} to {entries[-1]}. "
            "viewfold history lists them."
        )
    return entry


def _table(file: File, id_column: str | None, columns: str | None) -> pd.DataFrame:
    from viewfold.web.metadata import read_metadata

    return read_metadata(file, id_column, listed(columns))
