"""What makes the clusters of a state: the command explain, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from viewfold.app.states import folded_model
from viewfold.app.telling import DIGITS, described, explained
from viewfold.cli import _options as opt
from viewfold.cli.command import Whole
from viewfold.cli.console import notes, print_json, print_rows, progress, say


@opt.state
@click.option("--cluster", metavar="N", type=int, help="Explain this cluster only.")
@click.option("--id", "sample", metavar="ID", help="Explain why this sample is in its cluster.")
@click.option("--view", metavar="NAME", help="Use this view only.")
@click.option(
    "--top",
    metavar="N",
    type=Whole(min=1),
    default=10,
    help="Number of features to list for each cluster.",
)
@opt.as_json
def explain(
    state: Path, cluster: int | None, sample: str | None, view: str | None, top: int, as_json: bool
) -> None:
    """Show which features make a cluster, or why a sample is in it.

    Means are in the units of the feature, effects in its standard deviations. See docs/explain.md.
    """
    if cluster is not None and sample is not None:
        raise ValueError("--cluster asks about a cluster, --id about a sample. Choose one.")
    with progress(f"looking at {state}"):
        model = folded_model(state)
        if sample is not None:
            facts, lists, text = explained(model, sample, view, top)
            say(text.partition("\n")[0])
        else:
            facts, lists = described(model, cluster, view, top)
    if as_json:
        answer = {"file": str(state), **facts, **lists}
        print_json({**answer, "notes": notes} if notes else answer)
        return
    tables = [[_short(row) for row in rows] for rows in lists.values() if rows]
    for i, rows in enumerate(tables):
        click.echo("\n" * (i > 0), nl=False)
        print_rows(rows)


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with numbers that fit a line."""
    return {
        name: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
        for name, value in row.items()
    }
