"""Means of features in clusters, and effects, from moments: no row of a view is needed.

The mean of feature j in cluster c is mean_j + spread_j · effect_cj, with the effect
(mean of P over the cluster − mean of P over the view) A D; `viewfold.state.moments` has P, A, D.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold._util.constants import FEWEST
from viewfold._util.option import option
from viewfold._util.records import short_repr
from viewfold._util.types import Array
from viewfold.method.clusters import confidence
from viewfold.rows import Engine, RowSet, engine_of
from viewfold.rows.linalg import membership
from viewfold.state.moments import Moments
from viewfold.state.state import State, ViewRecord


@dataclass(frozen=True, eq=False)
class Told:
    """What can be told about the clusters by the features of one view.

    Attributes
    ----------
    view : ViewRecord
        The view; it has moments.
    count : ndarray of int, shape (n_clusters,)
        How many samples of each cluster are in the view.
    middle : ndarray of shape (n_clusters, n_components)
        Their mean in the consensus; of a cluster that has none, NaN.
    effects : ndarray of shape (n_clusters, n_features)
        Mean of each feature in each cluster minus its overall mean, in standard deviations. NaN for
        clusters with fewer than ten samples, and for features that tell nothing.
    """

    __repr__ = short_repr

    view: ViewRecord
    count: NDArray[np.intp]
    middle: Array
    effects: Array

    @property
    def moments(self) -> Moments:
        """The moments of the view."""
        assert self.view.moments is not None
        return self.view.moments

    @property
    def names(self) -> Sequence[str | int]:
        """Names of the features, or their numbers."""
        return self.view.features or range(self.view.n_features)

    @property
    def overall(self) -> Array:
        """The mean of the view's samples in the consensus."""
        return np.asarray(self.count @ np.nan_to_num(self.middle) / max(self.count.sum(), 1))

    def means(self, effects: Array) -> Array:
        """Return effects in the units of the features: cluster means."""
        return np.asarray(self.moments.mean + effects * self.moments.spread)

    def too_few(self) -> list[int]:
        """Return the clusters about which nothing is told, as they have fewer than ten samples."""
        return [int(c) for c in np.flatnonzero(self.count < FEWEST)]


def told(engine: Engine, state: State, views: Sequence[ViewRecord]) -> list[Told]:
    """Return what views that have moments tell about the clusters, in one pass over the samples."""
    assert state.clusters is not None
    k = state.clusters.n_clusters
    which = [state.names.index(view.name) for view in views]

    def sums(B: Array, cluster: Array, seen: Array) -> tuple[Array, Array]:
        of = [membership(cluster[seen[:, v]], k) for v in which]
        rows = [B[seen[:, v]].astype(np.float64) for v in which]
        total = [M @ some for M, some in zip(of, rows, strict=True)]
        return np.array([M.sum(axis=1) for M in of]), np.array(total)

    counts, totals = engine.reduce(sums, state.embedding, state.labels(engine), state.seen)
    found = []
    for view, count, total in zip(views, counts, totals, strict=True):
        many = np.where(count > 0, count, np.nan)[:, None]
        one = Told(view, count.astype(np.intp), total / many, np.empty((0, 0)))
        found.append(Told(view, one.count, one.middle, _effects(one)))
    return found


def _effects(one: Told) -> Array:
    """Return the effects of all clusters."""
    moments, count, r = one.moments, one.count, one.middle.shape[1]
    A = moments.coefficients
    # The part of P that says which cluster: 1 for one's own, minus the share of each.
    own = A[r:] - (count / max(count.sum(), 1)) @ A[r:]
    effects = ((one.middle - one.overall) @ A[:r] + own) @ moments.directions
    effects[count < FEWEST] = np.nan
    effects[:, moments.spread == 0] = np.nan
    return np.asarray(effects)


LEAST_WITHIN = 0.05
"""Of the variance of a feature, so much at least is within clusters: means are not exact."""


def distinguished(state: State) -> State:
    """Return a state that knows how far each view tells its clusters apart (`Clusters.apart`).

    Distances are as if features were independent: rather too large than too small.
    """
    clusters, views = state.clusters, [view for view in state.views if view.moments is not None]
    if clusters is None or clusters.apart is not None or not views:
        return state
    shape = (len(state.views), clusters.n_clusters, clusters.n_clusters)
    apart = np.full(shape, np.inf, np.float32)
    for one in told(engine_of(state.embedding), state, views):
        apart[state.names.index(one.view.name)] = _apart(one)
    return replace(state, clusters=replace(clusters, apart=apart))


def with_confidence(state: State) -> tuple[State, RowSet]:
    """Return a state that knows how far views tell clusters apart, and each sample's confidence."""
    state = distinguished(state)
    if state.clusters is None:
        return state, np.empty(0)
    engine = engine_of(state.embedding)
    return state, confidence(engine, state.clusters, state.embedding, state.seen)


def _apart(one: Told) -> Array:
    """Return squared distances between clusters in the features of a view; inf if not known."""
    effects = one.effects[:, one.moments.spread > 0]
    share = one.count / max(one.count.sum(), 1)
    within = np.maximum(1 - share @ np.nan_to_num(effects) ** 2, LEAST_WITHIN)
    at = effects / np.sqrt(within)
    squares = np.square(at).sum(axis=1)
    squares = squares[:, None] + squares - 2 * at @ at.T
    known = (one.count >= FEWEST) & (effects.shape[1] > 0)
    return np.where(np.outer(known, known), np.maximum(squares, 0), np.inf)


def usable(views: Sequence[ViewRecord]) -> tuple[list[ViewRecord], list[str]]:
    """Return the views that have moments, and for each of the others why it has none.

    Raises
    ------
    ValueError
        If none has any.
    """
    have = [view for view in views if view.moments is not None]
    reasons = [_why_not(view) for view in views if view.moments is None]
    if not have:
        raise ValueError(f"Nothing can be explained. {' '.join(reasons[:3])}")
    return have, reasons


def _why_not(view: ViewRecord) -> str:
    if view.n_samples < FEWEST:
        return f"View {view.name!r} has fewer than ten samples: nothing is kept of it."
    if view.encoder is None:
        private = option("keep_encoders", False)
        return f"View {view.name!r} was folded, or made, private ({private}): it has no moments."
    return (
        f"View {view.name!r} was folded by a viewfold that kept no moments of its features: fold "
        "it into a new state to have them."
    )


def feature_table(
    tellers: Sequence[Told], clusters: Sequence[int], top: int | None
) -> pd.DataFrame:
    """Return the features that tell clusters from all other samples, strongest first.

    Parameters
    ----------
    tellers : sequence of Told
        The views that are asked.
    clusters : sequence of int
        The clusters.
    top : int or None
        How many features for each cluster; all if None.

    Returns
    -------
    DataFrame
        With the columns cluster, view, feature, mean, overall_mean, effect and rank.
    """
    parts = [_of_cluster(tellers, cluster, top) for cluster in clusters]
    columns = ["cluster", "view", "feature", "mean", "overall_mean", "effect", "rank"]
    found = [part for part in parts if len(part)]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=columns)


def _of_cluster(tellers: Sequence[Told], cluster: int, top: int | None) -> pd.DataFrame:
    """Return the strongest features of one cluster, of all views together."""
    effects = np.concatenate([one.effects[cluster] for one in tellers])
    at = np.flatnonzero(~np.isnan(effects))
    at = at[np.argsort(-np.abs(effects[at]), kind="stable")][:top]
    starts = np.cumsum([0, *(one.effects.shape[1] for one in tellers)])
    views = np.searchsorted(starts, at, side="right") - 1
    columns = at - starts[views]
    pairs = list(zip((tellers[v] for v in views), columns.tolist(), strict=True))
    overall = np.array([one.moments.mean[j] for one, j in pairs])
    spread = np.array([one.moments.spread[j] for one, j in pairs])
    return pd.DataFrame(
        {
            "cluster": np.full(at.size, cluster),
            "view": [one.view.name for one, _ in pairs],
            "feature": pd.Series([one.names[j] for one, j in pairs], dtype=object),
            "mean": overall + effects[at] * spread,
            "overall_mean": overall,
            "effect": effects[at],
            "rank": np.arange(1, at.size + 1),
        }
    )
