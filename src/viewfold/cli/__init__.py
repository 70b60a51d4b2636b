"""The command line: files in, one line about what happened, data on standard output.

Every command is a few lines around the library. Only click is imported before a command runs, so
that ``viewfold --help`` answers at once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from viewfold import __version__
from viewfold.cli._change import add, forget, undo
from viewfold.cli._clusters import recluster, rename, suggest
from viewfold.cli._convert import convert
from viewfold.cli._diff import diff
from viewfold.cli._explain import explain
from viewfold.cli._look import inspect
from viewfold.cli._main import run
from viewfold.cli._plugins import PluginGroup
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
from viewfold.cli.command import VOICE, Group, listen
from viewfold.cli.console import say, showing

__all__ = ["COMMANDS", "Group", "app", "main", "say", "showing"]


@click.group(
    "viewfold",
    cls=PluginGroup,
    epilog="Begin with: viewfold add patients.vf labs.csv --id patient --clusters 10",
    params=[*VOICE],
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, message="viewfold %(version)s", help="Print the version.")
def app(quiet: bool, log: Path | None) -> None:
    """Cluster samples from tables that arrive over time and only partly overlap."""
    listen(quiet, log)


COMMANDS: dict[str, dict[Callable[..., None], str]] = {
    "Start": {
        demo: "/tmp/try",
        inspect: "labs.csv --state patients.vf",
        add: "patients.vf labs.parquet --id patient --clusters 10",
        datasets: "--json",
    },
    "Look": {
        status: "patients.vf",
        labels: "patients.vf -o clusters.csv",
        explain: "patients.vf --cluster 3",
        report: "patients.vf --metadata wards.csv --metadata-id patient",
        ui: "patients.vf",
        history: "patients.vf --id p17",
        diff: "monday.vf patients.vf --max-moved 5%",
        predict: "patients.vf new/labs.csv new/scan.csv --id patient",
        suggest: "patients.vf --range 2-30",
        export: "patients.vf -o patients.parquet",
        verify: "patients.vf",
    },
    "Change": {
        recluster: "patients.vf --clusters 12",
        rename: "patients.vf 3 'late responders'",
        undo: "patients.vf",
        forget: "patients.vf p17 p42",
    },
    "Large data": {
        convert: "patients.vf patients.vfd --buckets 64",
    },
}
"""The commands in the groups and the order of ``--help``, each with what could follow it."""

for group, examples in COMMANDS.items():
    for command, line in examples.items():
        name = command.__name__
        app.command(name, group=group, epilog=f"Example: viewfold {name} {line}")(command)


def main() -> None:
    """Run the command line; an error is one line, or an object with --json, and an exit code."""
    run(app)
