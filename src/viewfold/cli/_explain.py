"""What makes the clusters of a state: the command explain, and what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewfold._console import notes, print_json, print_rows, progress, say
from viewfold.cli._files import load_model
from viewfold.cli._options import Json, State

if TYPE_CHECKING:
    import pandas as pd

    from viewfold.estimators import FoldingEstimator
    from viewfold.explain import Explanation

DIGITS = 4


def explain(
    state: State,
    cluster: Annotated[
        int | None, typer.Option("--cluster", help="One cluster.", metavar="N")
    ] = None,
    sample: Annotated[
        str | None, typer.Option("--id", help="Why one sample is in its cluster.", metavar="ID")
    ] = None,
    view: Annotated[
        str | None, typer.Option("--view", help="By this view alone.", metavar="NAME")
    ] = None,
    top: Annotated[
        int, typer.Option("--top", help="How many features, for each cluster.", min=1)
    ] = 10,
    as_json: Json = False,
) -> None:
    """Tell what makes a cluster, or why a sample is in it, by features of views that are gone.

    Means are in the units of the feature, effects in its standard deviations. See docs/explain.md.
    """
    if cluster is not None and sample is not None:
        raise ValueError("--cluster asks about a cluster, --id about a sample. Choose one.")
    with progress(f"looking at {state}"):
        model = load_model(state)
        if not hasattr(model, "labels_"):
            raise ValueError(
                f"{state} is empty: no view was folded yet. Add one with viewfold add."
            )
        if sample is not None:
            why = model.explain(_known(model, sample), view=view, top=top)
            facts, lists = _of_sample(why)
            say(str(why).partition("\n")[0])
        else:
            found = model.features(view=view, cluster=cluster, top=top)
            facts, lists = {"clusters": model.n_clusters}, {"features": _rows(found)}
            if cluster is None and view is None:
                lists = {"variance": _rows(model.variance().reset_index()), **lists}
    if as_json:
        answer = {"file": str(state), **facts, **lists}
        print_json({**answer, "notes": notes} if notes else answer)
        return
    tables = [[_short(row) for row in rows] for rows in lists.values() if rows]
    for i, rows in enumerate(tables):
        typer.echo("\n" * (i > 0), nl=False)
        print_rows(rows)


def _known(model: FoldingEstimator, sample: str) -> int | str:
    """Return an id as the model knows it: a text is a number where samples have numbers."""
    ids = set(model.ids_.tolist())
    number = sample.lstrip("-").isdecimal() and int(sample)
    return int(sample) if sample not in ids and number is not False and number in ids else sample


def _of_sample(why: Explanation) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """Return what is told of a sample: facts, and rows of tables."""
    facts: dict[str, Any] = {"id": why.id, "cluster": why.cluster}
    facts |= {"next_cluster": why.next_cluster, "confidence": round(why.confidence, DIGITS)}
    return facts, {"views": _rows(why.views.reset_index()), "features": _rows(why.features)}


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as plain values; what is not told is None."""
    return [
        {str(name): None if value != value else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with numbers that fit a line."""
    return {
        name: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
        for name, value in row.items()
    }
