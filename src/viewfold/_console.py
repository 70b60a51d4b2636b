"""What commands say: lines and progress on standard error, tables and JSON on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import typer


def say(line: str) -> None:
    """Say a line to a person."""
    typer.echo(line, err=True)


notes: list[str] = []
"""What was noted since the command began."""


def note(line: str) -> None:
    """Say what a person may want to know, and keep it for the answer to a program."""
    notes.append(line)
    say(f"viewfold: note: {line}")


def tell(as_json: bool, facts: dict[str, Any], line: str) -> None:
    """Say what happened: to a person, or to a program with what was noted on the way."""
    print_json({**facts, "notes": notes} if notes else facts) if as_json else say(line)


def print_json(facts: Any) -> None:
    """Print facts as JSON."""
    typer.echo(json.dumps(facts, default=_plain, ensure_ascii=False))


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
    Console(soft_wrap=not sys.stdout.isatty(), highlight=False, markup=False).print(table)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    return f"{value:,}" if isinstance(value, int) else str(value)


@contextmanager
def progress(doing: str) -> Iterator[Any]:
    """Show on a terminal what is being done, and for how long."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda step: bar.update(task, description=step)
