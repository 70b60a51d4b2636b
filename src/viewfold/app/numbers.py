"""The number of clusters: what stands out, how far that can be trusted, and another number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator
    from viewfold.estimators.selection import Suggestion

AUTO = 0
"""The number that stands for the one that stands out most."""

PROVISIONAL = 10
"""Views are folded for so many clusters where there is nothing to look at yet."""


def suggestion(model: FoldingEstimator, between: range | None = None) -> Suggestion:
    """Return the number of clusters that stands out most."""
    from viewfold.estimators.selection import candidates, suggest_n_clusters

    numbers = candidates(model) if between is None else between
    if not numbers:
        raise ValueError(f"{model.n_samples_} samples are too few to choose a number of clusters.")
    return suggest_n_clusters(model, numbers)


def choose(model: FoldingEstimator) -> Suggestion:
    """Find the number of clusters that stands out most, in a consensus that is there."""
    found = suggestion(model)
    model.recluster(found.best)
    return found


def recluster(
    model: FoldingEstimator, clusters: int | None
) -> tuple[dict[str, Any], Suggestion | None]:
    """Find another number of clusters; return what is told, and why, if it was `AUTO`."""
    before = model.n_clusters
    chosen = choose(model) if clusters == AUTO else None
    if clusters:
        model.recluster(clusters)
    moved = int(model.log_["n_moved"].iloc[-1]) if model.n_clusters != before else 0
    facts = {"clusters": model.n_clusters, "before": before, "moved": moved}
    return facts | ({} if chosen is None else {"suggestion": scores(chosen)}), chosen


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


def suggested(model: FoldingEstimator, found: Suggestion) -> dict[str, Any]:
    """Return what a program is told about the number of clusters."""
    return {
        "clusters": model.n_clusters,
        "suggested": found.best,
        "stands_out": found.stands_out,
        "scores": scores(found),
    }
