"""What commands say: lines and progress on standard error, tables and JSON on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from unicodedata import combining, east_asian_width

import click

from viewfold._util.visible import visible, visible_lines
from viewfold._util.watch import watching
from viewfold.app.output import as_json
from viewfold.app.words import for_cli
from viewfold.cli.journal import journal

if TYPE_CHECKING:
    from viewfold.cli.progress import Line


@dataclass
class Voice:
    """How much is said on standard error.

    Attributes
    ----------
    quiet : bool
        Whether only errors are.
    line : Line or None
        The line of progress that is shown there.
    """

    quiet: bool = False
    line: Line | None = None


voice = Voice()
"""Of the command that runs."""


def say(line: str) -> None:
    """Say a line to a person, unless they want to hear of errors only."""
    if not voice.quiet:
        complain(line)


def complain(line: str) -> None:
    """Say that something is wrong."""
    with nullcontext() if voice.line is None else voice.line.external_write_mode(sys.stderr):
        click.echo(visible_lines(line), err=True)


notes: list[str] = []
"""What was noted since the command began."""


def note(line: str) -> None:
    """Say what a person may want to know, and keep it for the answer to a program."""
    line = for_cli(line)
    notes.append(line)
    journal.note("note", message=line)
    say(f"viewfold: note: {line}")


def tell(as_json: bool, facts: dict[str, Any], line: str) -> None:
    """Say what happened: to a person, or to a program with what was noted on the way."""
    journal.note("answer", **facts)
    print_json({**facts, "notes": notes} if notes else facts) if as_json else say(line)


def print_json(facts: Any) -> None:
    """Print facts as JSON."""
    click.echo(as_json(facts))


def print_lines(*lines: str) -> None:
    """Print lines for a person on standard output."""
    click.echo("\n".join(map(visible, lines)))


def print_rows(rows: list[dict[str, Any]]) -> None:
    """Print rows as a table."""
    columns = [_column(name, [row[name] for row in rows]) for name in rows[0]]
    head, *lines = ("  ".join(cells).rstrip() for cells in zip(*columns, strict=True))
    click.echo("\n".join([click.style(head, bold=True), *lines]))


def _column(name: str, values: list[Any]) -> list[str]:
    """Return a column of a table as texts of one width, its name first; numbers to the right."""
    texts = [name, *("–" if value is None else _shown(value) for value in values)]
    texts = [visible(" ".join(text.splitlines())) for text in texts]
    held = [value for value in values if value is not None]
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in held)
    widest = max(map(_width, texts))
    spaces = [" " * (widest - _width(text)) for text in texts]
    pairs = zip(texts, spaces, strict=True)
    return [space + text if numeric else text + space for text, space in pairs]


def _width(text: str) -> int:
    """Return how many places a terminal gives a text: two to a wide sign, none to an accent."""
    return sum(2 if east_asian_width(c) in "WF" else not combining(c) for c in text)


def _shown(value: Any) -> str:
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
    with showing(doing) as line:

        def step(doing: str) -> None:
            journal.note("step", doing=doing)
            if line is not None:
                line.step(doing)

        with nullcontext() if line is None else watching(line):
            yield step


@contextmanager
def showing(doing: str, total: float | None = None, known: float = 0) -> Iterator[Line | None]:
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
