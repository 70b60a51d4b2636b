"""Commands about the number of clusters: suggest one, and find so many in a state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewfold._console import print_json, print_rows, progress, say, tell
from viewfold.cli._engine import works
from viewfold.cli._files import check_output, deliver, load_model
from viewfold.cli._options import AUTO, Clusters, Json, Keep, Output, State, Wait

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator
    from viewfold.selection import Suggestion

PROVISIONAL = 10
"""Views are folded for so many clusters where --clusters auto has nothing to look at yet."""


@works
def suggest(
    state: State,
    between: Annotated[
        str | None,
        typer.Option("--range", help="The numbers to choose from.", metavar="A-B"),
    ] = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Suggest a number of clusters: how much each stands out. The file stays as it is."""
    check_output(output, state)
    wanted = None if between is None else _between(between)
    with progress(f"looking at {state}"):
        model = _folded(state)
        found = suggestion(model, wanted)
    rows = scores(found)
    if output is not None:
        import pyarrow as pa

        deliver(pa.Table.from_pylist(rows), output, as_json, state)
    elif as_json:
        facts = {"file": str(state), "clusters": model.n_clusters, "suggested": found.best}
        print_json({**facts, "stands_out": found.stands_out, "scores": rows})
    else:
        print_rows(rows)
    if not as_json:
        say(f"{evidence(found)} {state} has {model.n_clusters}.")


@works
def recluster(
    state: State,
    clusters: Clusters,
    keep: Keep = None,
    wait: Wait = 60,
    as_json: Json = False,
) -> None:
    """Find another number of clusters in a state; clusters that stay keep their numbers.

    The embedding stays as it is. undo takes it back.
    """
    from viewfold.store import edit

    with progress(f"looking at {state}"), edit(state, keep=keep, wait=wait) as model:
        if not hasattr(model, "labels_"):
            raise ValueError(_empty(state))
        before = model.n_clusters
        chosen = choose(model) if clusters == AUTO else None
        if clusters:
            model.recluster(clusters)
    moved = int(model.log_["n_moved"].iloc[-1]) if model.n_clusters != before else 0
    tell(
        as_json,
        {
            "file": str(state),
            "clusters": model.n_clusters,
            "before": before,
            "moved": moved,
            **({} if chosen is None else {"suggestion": scores(chosen)}),
        },
        f"{model.n_samples_:,} samples in {model.n_clusters} clusters; there were {before}. "
        f"{moved:,} have another cluster now.",
    )


def rename(
    state: State,
    cluster: Annotated[int, typer.Argument(metavar="CLUSTER", help="Its number.", min=0)],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name; '' takes it away.")],
    keep: Keep = None,
    wait: Wait = 60,
    as_json: Json = False,
) -> None:
    """Give a cluster a name, which is shown wherever the cluster is, as long as it goes on.

    undo takes it back.
    """
    from viewfold.store import edit

    with edit(state, keep=keep, wait=wait) as model:
        if not hasattr(model, "labels_"):
            raise ValueError(_empty(state))
        model.rename(cluster, name)
    tell(
        as_json,
        {"file": str(state), "cluster": cluster, "cluster_names": model.cluster_names_},
        f"Cluster {cluster} is {name!r} now." if name else f"Cluster {cluster} has no name now.",
    )


def choose(model: FoldingEstimator) -> Suggestion:
    """Find the number of clusters that stands out most, in a consensus that is there; say why."""
    found = suggestion(model, None)
    model.recluster(found.best)
    say(evidence(found))
    return found


def suggestion(model: FoldingEstimator, between: range | None) -> Suggestion:
    """Return the number of clusters that stands out most."""
    from viewfold.selection import candidates, suggest_n_clusters

    numbers = candidates(model) if between is None else between
    if not numbers:
        raise ValueError(f"{model.n_samples_} samples are too few to choose a number of clusters.")
    return suggest_n_clusters(model, numbers)


def evidence(found: Suggestion) -> str:
    """Say how far a suggestion can be trusted."""
    others = {k: score for k, score in found.scores.items() if k != found.best}
    said = f"{found.best} clusters stand out most, with a score of {found.scores[found.best]:.2f}"
    if others:
        second = max(others, key=lambda k: others[k])
        said += f" (next is {second}, with {round(others[second], 2) + 0.0:.2f})"
    if not found.stands_out:
        said += ", but hardly more than where there are no clusters at all: look at several"
    return f"{said}."


def scores(found: Suggestion) -> list[dict[str, Any]]:
    """Return the scores as rows of a table."""
    return [
        {"clusters": k, "score": round(score, 3), "suggested": k == found.best}
        for k, score in found.scores.items()
    ]


def resampled(model: FoldingEstimator) -> dict[str, Any]:
    """Return how stable each cluster is, as rows of a table, and which should not be trusted."""
    found = model.stability().round({"stability": 3}).reset_index()
    rows = found.astype(object).where(found.notna(), None).to_dict("records")
    return {"stability": rows, "untrusted": found["cluster"][~found["trusted"]].tolist()}


def not_trusted(untrusted: list[int]) -> str:
    """Say which clusters should not be trusted."""
    if not untrusted:
        return "All clusters are found again in resampled rows."
    named = ", ".join(map(str, untrusted))
    return (
        f"Not to be trusted, as they are not found again in resampled rows: clusters {named}. "
        "Ask viewfold suggest for another number of clusters."
    )


def _between(text: str) -> range:
    """Return the numbers of a range as one writes it."""
    first, dash, last = text.partition("-")
    if not dash or not first.strip().isdecimal() or not last.strip().isdecimal():
        raise ValueError(f"--range {text!r} is no range. Give one such as 2-30.")
    return range(int(first), int(last) + 1)


def _folded(state: Path) -> FoldingEstimator:
    model = load_model(state)
    if not hasattr(model, "labels_"):
        raise ValueError(_empty(state))
    return model


def _empty(state: Path) -> str:
    return f"{state} is empty: no view was folded yet. Add one with viewfold add."
