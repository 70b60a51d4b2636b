"""The options that every command has: how much it says, and where it is written down."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from viewfold._console import voice
from viewfold._journal import journal
from viewfold.cli._reading import Command, with_options

Quiet = Annotated[
    bool | None, typer.Option("--quiet", "-q", help="Say nothing but errors.", show_default=False)
]
Log = Annotated[
    Path | None,
    typer.Option("--log", help="Append what happens to this file, as JSON lines.", metavar="FILE"),
]
OPTIONS = {"quiet": Quiet, "log": Log}


def listen(quiet: bool | None, log: Path | None) -> None:
    """Do as these options say; what is not said stays as it is."""
    voice.quiet |= bool(quiet)
    if log is not None:
        journal.open(log)


def voiced(command: Command, name: str) -> Command:
    """Let a command take these options."""

    def run(said: dict[str, Any], *args: Any, **given: Any) -> None:
        listen(**said)
        journal.begin(name)
        command(*args, **given)

    return with_options(command, OPTIONS, run)
