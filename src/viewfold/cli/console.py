"""What a command says: lines and progress on standard error, tables and JSON on standard output.

With ``--log FILE`` it also writes a JSON object per line for programs that watch jobs: what
messages say and how long it took, but no ids, no cells and no arguments of the command.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any
from unicodedata import combining, east_asian_width

import click

from viewfold._util.messages import visible, visible_json
from viewfold._util.version import __version__
from viewfold._util.watch import watching
from viewfold.app.output import as_json
from viewfold.app.words import for_cli

if TYPE_CHECKING:
    from viewfold.cli.progress import Line


class Journal:
    """A log to which events are appended, each in one piece; nothing happens before `open`."""

    path: Path | None
    command: str | None

    def __init__(self) -> None:
        self.close()

    def open(self, path: Path) -> None:
        """Append to a file from now on, unless it holds something else than a log."""
        if path.exists() and not _is_log(path):
            raise ValueError(f"{path} is there, and is no log of viewfold. Choose another name.")
        _append(path, b"")
        self.path = path

    def close(self) -> None:
        """Forget the file; the clock starts again."""
        self.path = self.command = None
        self.started = perf_counter()

    def begin(self, command: str) -> None:
        if self.command is None:
            self.command = command
            self.note("start", version=__version__, process=os.getpid())

    def note(self, event: str, **facts: Any) -> None:
        if self.path is None:
            return
        when = datetime.now(UTC).isoformat(timespec="milliseconds")
        seconds = round(perf_counter() - self.started, 3)
        line = {"time": when, "event": event, "command": self.command, **facts}
        text = json.dumps({**line, "seconds": seconds}, ensure_ascii=False, default=str)
        try:
            _append(self.path, f"{visible_json(text)}\n".encode())  # logs are read in terminals
        except OSError as error:  # the work goes on without it
            path, self.path = self.path, None
            warnings.warn(f"Nothing more is logged to {path}: {error.strerror}.", stacklevel=2)


def _append(path: Path, line: bytes) -> None:
    with open(path, "ab", 0, opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        if line:  # a full disk refuses to write nothing, too
            file.write(line)


def _is_log(path: Path) -> bool:
    """Tell whether a file is empty, or begins with an event."""
    if not path.is_file():
        return not path.is_dir()  # such as /dev/stderr
    with path.open("rb") as file:
        first = file.readline(10**6)
    try:
        return not first or "event" in json.loads(first)
    except (ValueError, TypeError):
        return False


class Voice:
    """Whether only errors go to standard error, and the line of progress that is shown there."""

    quiet = False
    line: Line | None = None


# All three belong to the command that runs.
journal = Journal()
voice = Voice()
notes: list[str] = []


def say(line: str) -> None:
    """Print a line for a person to standard error, unless the command is quiet."""
    if not voice.quiet:
        complain(line)


def complain(line: str) -> None:
    """Print a line to standard error, also if the command is quiet."""
    with nullcontext() if voice.line is None else voice.line.external_write_mode(sys.stderr):
        click.echo("\n".join(map(visible, line.split("\n"))), err=True)


def note(line: str) -> None:
    """Say what a person may want to know, and keep it for the answer to a program."""
    line = for_cli(line)
    notes.append(line)
    journal.note("note", message=line)
    say(f"viewfold: note: {line}")


def tell(as_json: bool, facts: dict[str, Any], line: str) -> None:
    """Say what happened: a line to a person, facts and notes to a program."""
    journal.note("answer", **facts)
    print_json(with_notes(facts)) if as_json else say(line)


def with_notes(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts with what was noted on the way."""
    return {**facts, "notes": notes} if notes else facts


def print_json(facts: Any) -> None:
    click.echo(as_json(facts))


def print_lines(*lines: str) -> None:
    click.echo("\n".join(map(visible, lines)))


def print_rows(rows: list[dict[str, Any]]) -> None:
    columns = [_column(name, [row[name] for row in rows]) for name in rows[0]]
    head, *lines = ("  ".join(cells).rstrip() for cells in zip(*columns, strict=True))
    click.echo("\n".join([click.style(head, bold=True), *lines]))


def _column(name: str, values: list[Any]) -> list[str]:
    """Return a column of a table as texts of one width, its name first; numbers to the right."""
    texts = [visible(" ".join(text.splitlines())) for text in (name, *map(_cell, values))]
    held = [value for value in values if value is not None]
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in held)
    widest = max(map(_width, texts))
    spaces = [" " * (widest - _width(text)) for text in texts]
    return [s + t if numeric else t + s for t, s in zip(texts, spaces, strict=True)]


def _width(text: str) -> int:
    """Return how many places a terminal gives a text: two to a wide sign, none to an accent."""
    return sum(2 if east_asian_width(c) in "WF" else not combining(c) for c in text)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    return f"{value:,}" if isinstance(value, int) else str(value)


@contextmanager
def progress(doing: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal what is being done, how far it is, and how long it takes."""
    journal.note("step", doing=doing)
    with show_progress(doing) as line:

        def step(doing: str) -> None:
            journal.note("step", doing=doing)
            if line is not None:
                line.step(doing)

        with nullcontext() if line is None else watching(line):
            yield step


@contextmanager
def show_progress(
    doing: str, total: float | None = None, known: float = 0
) -> Iterator[Line | None]:
    """Show a line that tells how far it is, if somebody is looking."""
    if voice.quiet or not sys.stderr.isatty():
        yield None
        return
    from viewfold.cli.progress import Line

    with Line(doing, total, known) as voice.line:
        try:
            yield voice.line
        finally:
            voice.line = None
