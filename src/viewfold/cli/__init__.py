"""The command line: files in, one line about what happened, data on standard output.

Every command is a few lines around the library. Only click is imported before a command runs, so
that ``viewfold --help`` answers at once. An error becomes one line, or one object with ``--json``.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import click

from viewfold import __version__, errors
from viewfold._util.replace import written
from viewfold.app.words import for_cli
from viewfold.cli.change import convert, forget, recluster, rename, undo
from viewfold.cli.command import SHARED, Group, PluginGroup, apply_shared
from viewfold.cli.console import (
    complain,
    journal,
    note,
    notes,
    print_json,
    say,
    show_progress,
    voice,
)
from viewfold.cli.look import diff, explain, history, labels, predict, status, suggest, verify
from viewfold.cli.options import HEADINGS
from viewfold.cli.start import add, demo, inspect, refresh
from viewfold.cli.write import export, report, ui

__all__ = ["COMMANDS", "Group", "app", "main", "say", "show_progress"]


@click.group(
    "viewfold",
    cls=PluginGroup,
    epilog="Begin with: viewfold add patients.vf labs.csv --id patient --clusters 10",
    params=[*SHARED],
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, message="viewfold %(version)s", help="Print the version.")
def app(quiet: bool, log: Path | None) -> None:
    """Cluster samples from tables that arrive over time and only partly overlap."""
    apply_shared(quiet, log)


# In the groups and the order of --help, each with what could follow it.
COMMANDS: dict[str, dict[Callable[..., None], str]] = {
    "Start": {
        demo: "/tmp/try",
        inspect: "labs.csv --state patients.vf",
        add: "patients.vf labs.parquet --id patient --clusters 10",
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
        refresh: "patients.vf labs-all.csv --id patient --view labs",
        recluster: "patients.vf --clusters 12",
        rename: "patients.vf 3 'late responders'",
        undo: "patients.vf",
        forget: "patients.vf p17 p42",
    },
    "Large data": {
        convert: "patients.vf patients.vfd --buckets 64",
    },
}

for group, examples in COMMANDS.items():
    for function, line in examples.items():
        name = function.__name__
        example = f"Example: viewfold {name} {line}"
        app.command(name, group=group, headings=HEADINGS, epilog=example)(function)


def main() -> None:
    """Run the command line; an error is one line, or an object with --json, and an exit code."""
    warnings.showwarning = lambda message, *_, **__: note(_one_line(message))
    notes.clear()
    written.clear()
    journal.close()
    voice.quiet = False
    try:
        code = app(standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        code = _fail(error)
    code = code if isinstance(code, int) else 0
    journal.note("end", exit_code=code)
    sys.exit(code)


def _fail(error: BaseException) -> int:
    """Say what went wrong, to a person or a program; return the exit code."""
    code, exit_code = errors.code_of(error)
    message = for_cli(_one_line(error)) or type(error).__name__
    shown = f"viewfold: {message}"
    if isinstance(error, KeyboardInterrupt | click.Abort):
        code, exit_code = errors.INTERRUPTED
        message = "interrupted; nothing was changed." if not written else "interrupted."
        shown = f"viewfold: {message}"
    elif isinstance(error, click.ClickException):  # a wrong option or argument
        code, exit_code = errors.USAGE
        message = error.format_message()
        shown = message if "Usage:" in message else f"viewfold: {_one_line(message)} See --help."
    elif code == errors.ViewfoldError.code:
        traceback.print_exception(error)
        shown = f"viewfold: this is a defect of viewfold, please report it: {shown[10:]}"
    if written:
        names = ", ".join(os.path.basename(path) for path in written)
        shown += "" if shown.endswith(".") else "."  # errors of the system have no full stop
        shown += f" Written before that: {names}."
    facts = {"code": code, "exit_code": exit_code, "message": message, "written": written.copy()}
    journal.note("error", **facts)
    if "--json" in sys.argv[1:]:
        print_json({"error": facts})
    else:
        complain(shown)
    return exit_code


def _one_line(message: object) -> str:
    return " ".join(str(message).split())
