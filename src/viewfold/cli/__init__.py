"""The command line: files in, one line about what happened, data on standard output.

Every command is a few lines around the library. Only typer is imported before a command runs, so
that ``viewfold --help`` answers at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from viewfold import __version__
from viewfold.bench.cli import app as bench
from viewfold.cli._change import add, extend, forget, init, restore, undo
from viewfold.cli._clusters import recluster, rename, suggest
from viewfold.cli._convert import convert
from viewfold.cli._diff import diff
from viewfold.cli._explain import explain
from viewfold.cli._look import inspect
from viewfold.cli._main import run
from viewfold.cli._report import report
from viewfold.cli._show import (
    datasets,
    demo,
    export,
    history,
    labels,
    predict,
    status,
    verify,
)
from viewfold.cli._ui import ui
from viewfold.cli._voice import Log, Quiet, listen, voiced

__all__ = ["add", "app", "labels", "main", "report"]


class _Commands(TyperGroup):
    """Commands whose first sentences are told in full, over several lines if they need them."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, one.get_short_help_str(1000)) for name, one in found if one is not None]
            )


app = typer.Typer(
    name="viewfold",
    cls=_Commands,
    help="Cluster samples whose views arrive one after the other, with gaps, and are then gone.",
    epilog="Begin with: viewfold add patients.vf labs.csv --id patient --clusters 10",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # half of the time of --help would be spent on drawing boxes
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(bench, name="bench", cls=_Commands, help="The paper's experiments, on your data.")

EXAMPLES: dict[Callable[..., None], str] = {
    inspect: "labs.csv --state patients.vf",
    init: "patients.vf --clusters 10",
    add: "patients.vf labs.parquet --id patient --clusters 10",
    labels: "patients.vf -o clusters.csv",
    status: "patients.vf",
    explain: "patients.vf --cluster 3",
    predict: "patients.vf new/labs.csv new/scan.csv --id patient",
    extend: "patients.vf new.csv --id patient --view labs",
    suggest: "patients.vf --range 2-30",
    recluster: "patients.vf --clusters 12",
    rename: "patients.vf 3 'late responders'",
    forget: "patients.vf p17 p42",
    undo: "patients.vf",
    restore: "patients.vf --entry 3",
    history: "patients.vf --id p17",
    diff: "monday.vf patients.vf --max-moved 5%",
    verify: "patients.vf",
    convert: "patients.vf patients.vfd --buckets 64",
    report: "patients.vf --metadata wards.csv --metadata-id patient",
    ui: "patients.vf",
    export: "patients.vf -o patients.parquet",
    datasets: "--json",
    demo: "/tmp/try",
}
"""The commands, in the order of ``--help``, each with what could follow it."""

for command, line in EXAMPLES.items():
    name = command.__name__
    app.command(name, epilog=f"Example: viewfold {name} {line}")(voiced(command, name))
for info in bench.registered_commands:
    if info.callback is not None:
        info.name = info.name or info.callback.__name__.replace("_", "-")
        info.callback = voiced(info.callback, f"bench {info.name}")


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    quiet: Quiet = None,
    log: Log = None,
) -> None:
    listen(quiet, log)
    if version:
        typer.echo(f"viewfold {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; an error is one line, or an object with --json, and an exit code."""
    run(app)
