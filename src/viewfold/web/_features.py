"""What a page says about clusters by features, also of views that are gone."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from viewfold._util.types import Array
from viewfold.estimators.answers import ask_views
from viewfold.explain import Told, feature_table, variance_table
from viewfold.web.words import named, told

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator

TOP = 10
"""How many features are named for each cluster."""

MOST = 2000
"""How many are named in all: fewer for each where there are very many clusters."""

HEAT = 60
"""How many rows the heat map has."""


def explained(model: FoldingEstimator) -> tuple[dict[str, Any], pd.DataFrame | None]:
    """Return what features tell about the clusters, and how much of each view is explained.

    Parameters
    ----------
    model : fitted estimator
        `ViewFold` or `FCMVC`.

    Returns
    -------
    features : dict
        ``top``, ``heat`` and a ``note`` that says what is left out and why.
    variance : DataFrame or None
        See `FoldingEstimator.variance`; None if no view left moments behind.
    """
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            tellers = ask_views(model, None)
        except ValueError as error:
            return {"top": [], "heat": None, "note": str(error)}, None
    notes = [str(one.message) for one in said]
    state = model._fitted
    assert state.clusters is not None
    k = state.clusters.n_clusters
    top = max(1, min(TOP, MOST // k))
    table = feature_table(tellers, range(k), top)
    few = sorted(set.intersection(*(set(one.too_few()) for one in tellers)))
    if few:
        shown = ", ".join(map(str, few[:20])) + (", …" if len(few) > 20 else "")
        notes.append(f"Clusters with fewer than ten samples in a view are left out: {shown}.")
    features = {
        "top": [_row(row) for row in table.to_dict("records")],
        "heat": _heat(tellers, k),
        "note": " ".join(notes) or None,
    }
    return features, variance_table(model._engine, state, tellers)


def _row(row: dict[Any, Any]) -> dict[str, Any]:
    names = {name: named(str(row[name])) for name in ("view", "feature")}
    numbers = {name: told(row[name]) for name in ("mean", "overall_mean", "effect")}
    return {"cluster": int(row["cluster"]), **names, **numbers, "rank": int(row["rank"])}


def _heat(tellers: Sequence[Told], k: int) -> dict[str, Any] | None:
    """Return the effects of the strongest features of each cluster in all clusters."""
    effects = np.concatenate([one.effects for one in tellers], axis=1)
    chosen = _strongest(effects)
    if not chosen.size:
        return None
    starts = np.cumsum([0, *(one.effects.shape[1] for one in tellers)])
    rows = []
    for at in chosen.tolist():
        which = int(np.searchsorted(starts, at, side="right")) - 1
        one = tellers[which]
        name = named(str(one.names[at - int(starts[which])]))
        rows.append({"view": named(one.view.name), "feature": name})
    return {
        "rows": rows,
        "effects": [[told(float(e)) for e in effects[:, at]] for at in chosen.tolist()],
    }


def _strongest(effects: Array) -> Array:
    """Return columns by turns: the strongest of each cluster, then the second of each, and so on.

    They are in the order of the cluster for which each is strongest, so that a heat map has blocks.
    """
    size = np.nan_to_num(np.abs(effects), nan=-1.0)
    depth = min(HEAT, size.shape[1])
    best = np.argsort(-size, axis=1, kind="stable")[:, :depth]
    chosen: dict[int, None] = {}
    for rank in range(depth):
        for cluster in range(len(size)):
            at = int(best[cluster, rank])
            if size[cluster, at] > 0 and len(chosen) < HEAT:
                chosen.setdefault(at)
    columns = np.fromiter(chosen, np.intp, len(chosen))
    strongest = size[:, columns]
    order = np.lexsort((columns, -strongest.max(axis=0, initial=0), strongest.argmax(axis=0)))
    return np.asarray(columns[order])
