"""What commands say: lines and progress on standard error, tables and JSON on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from viewfold._journal import journal
from viewfold._watch import watching


@dataclass
class Voice:
    """How much is said on standard error."""

    quiet: bool = False


voice = Voice()
"""Of the command that runs."""


def say(line: str) -> None:
    """Say a line to a person, unless they want to hear of errors only."""
    if not voice.quiet:
        complain(line)


def complain(line: str) -> None:
    """Say that something is wrong."""
    click.echo(line, err=True)


notes: list[str] = []
"""What was noted since the command began."""


def note(line: str) -> None:
    """Say what a person may want to know, and keep it for the answer to a program."""
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


def as_json(facts: Any) -> str:
    """Return facts as JSON."""
    return json.dumps(facts, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value.item()


def print_rows(rows: list[dict[str, Any]]) -> None:
    """Print rows as a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in rows[0]:
        values = [row[name] for row in rows if row[name] is not None]
        numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*("–" if value is None else _shown(value) for value in row.values()))
    width = None if sys.stdout.isatty() else 10_000  # only a terminal has an end of the line
    console = Console(width=width, highlight=False, markup=False)
    with console.capture() as shown:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in shown.get().splitlines()))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    return f"{value:,}" if isinstance(value, int) else str(value)


class _Bar:
    """A line on a terminal: what is done, how much of it, how long it has taken and will take."""

    def __init__(self, bar: Any, doing: str) -> None:
        self.bar, self.doing, self.passes = bar, doing, 0
        self.task = bar.add_task(doing, total=None)

    def step(self, doing: str) -> None:
        """Go on with something else, of which it is not known yet how much there is."""
        self.doing, self.passes = doing, 0
        self.bar.remove_task(self.task)
        self.task = self.bar.add_task(doing, total=None)

    def begin(self, total: float, unit: str) -> None:
        """Show how much there is to do; rows are passed over more than once."""
        self.passes += unit == "rows"
        also = f", pass {self.passes}" if self.passes else ""
        # A little more than there is: what is complete stops its clock, and there may be more.
        total *= 1 + 1e-9
        self.bar.update(self.task, description=self.doing + also, total=total, completed=0)

    def done(self, part: float) -> None:
        """Show how much is done."""
        self.bar.update(self.task, completed=part)


@contextmanager
def progress(doing: str) -> Iterator[Any]:
    """Show on a terminal what is being done, how far it is, and how long it takes."""
    journal.note("step", doing=doing)
    if voice.quiet or not sys.stderr.isatty():
        yield lambda step: journal.note("step", doing=step)
        return
    from rich.console import Console
    from rich.progress import (
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        bar = _Bar(shown, doing)

        def step(doing: str) -> None:
            journal.note("step", doing=doing)
            bar.step(doing)

        with watching(bar):
            yield step
