"""What clusters are by features, from moments: no row of a view is needed.

The mean of feature j in cluster c is mean_j + spread_j · effect_cj, with the effect
(mean of P over the cluster − mean of P over the view) A D; `viewfold.state.moments` has P, A, D.
Why a sample is in its cluster: its row of the consensus says where it lies between the means of the
two clusters. With x̂ what the row says of a feature, m its mean in the cluster and m' in the next,
all in standard deviations, the evidence is ((x̂ − m')² − (x̂ − m)²) / Σ (m − m')².
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold._util.constants import FEWEST
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array
from viewfold.rows import Engine, engine_of
from viewfold.rows.linalg import membership
from viewfold.state.admission import meant
from viewfold.state.clusters import confidence, hangs_on, next_nearest, scattered
from viewfold.state.moments import Moments, regression, sum_products
from viewfold.state.state import State, ViewRecord


@frozen_record
class ViewEffects:
    """What can be told about the clusters by the features of one view."""

    view: ViewRecord  # it has moments
    count: NDArray[np.intp]  # (n_clusters,): how many samples of each cluster are in the view
    overall: Array  # (n_components,): the mean of the view's samples in the consensus
    # (n_clusters, n_features): mean of each feature in each cluster minus its overall mean, in
    # standard deviations. NaN for fewer than ten samples, and for features that tell nothing.
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

    def means(self, effects: Array) -> Array:
        """Return effects in the units of the features: cluster means."""
        return np.asarray(self.moments.mean + effects * self.moments.spread)

    def too_few(self) -> list[int]:
        """Return the clusters about which nothing is told, as they have fewer than ten samples."""
        return [int(c) for c in np.flatnonzero(self.count < FEWEST)]


def view_effects(engine: Engine, state: State, views: Sequence[ViewRecord]) -> list[ViewEffects]:
    """Return what views that have moments tell about the clusters, in one pass over the samples."""
    assert state.clusters is not None
    k = state.clusters.n_clusters
    which = [state.names.index(view.name) for view in views]

    def sums(B: Array, cluster: Array, seen: Array) -> tuple[Array, Array]:
        members = [membership(cluster[seen[:, v]], k) for v in which]
        total = [M @ B[seen[:, v]].astype(np.float64) for M, v in zip(members, which, strict=True)]
        return np.array([M.sum(axis=1) for M in members]), np.array(total)

    counts, totals = engine.reduce(sums, state.embedding, state.labels(engine), state.seen)
    found = []
    for view, count, total in zip(views, counts, totals, strict=True):
        assert view.moments is not None
        A, size, r = view.moments.coefficients, max(count.sum(), 1), total.shape[1]
        middle = total / np.where(count > 0, count, np.nan)[:, None]
        overall = total.sum(axis=0) / size
        # The part of P that says which cluster: 1 for one's own, minus the share of each.
        own = A[r:] - count / size @ A[r:]
        effects = ((middle - overall) @ A[:r] + own) @ view.moments.directions
        effects[count < FEWEST] = np.nan
        effects[:, view.moments.spread == 0] = np.nan
        found.append(ViewEffects(view, count.astype(np.intp), overall, effects))
    return found


# Of the variance of a feature, so much at least is within clusters: means are not exact.
LEAST_WITHIN = 0.05


def distinguished(state: State) -> State:
    """Return a state that knows how far each view tells its clusters apart (`Clusters.apart`)."""
    clusters, views = state.clusters, [view for view in state.views if view.moments is not None]
    if clusters is None or clusters.apart is not None or not views:
        return state
    shape = (len(state.views), clusters.n_clusters, clusters.n_clusters)
    apart = np.full(shape, np.inf, np.float32)
    for one in view_effects(engine_of(state.embedding), state, views):
        # As if features were independent: distances are rather too large than too small.
        effects = one.effects[:, one.moments.spread > 0]
        share = one.count / max(one.count.sum(), 1)
        within = np.maximum(1 - share @ np.nan_to_num(effects) ** 2, LEAST_WITHIN)
        at = effects / np.sqrt(within)
        squares = np.square(at).sum(axis=1)
        squares = squares[:, None] + squares - 2 * at @ at.T
        known = (one.count >= FEWEST) & (effects.shape[1] > 0)
        far = np.where(np.outer(known, known), np.maximum(squares, 0), np.inf)
        apart[state.names.index(one.view.name)] = far
    return replace(state, clusters=replace(clusters, apart=apart))


def with_moments(views: Sequence[ViewRecord]) -> tuple[list[ViewRecord], list[str]]:
    """Return the views that have moments, and for each of the others why it has none."""
    have = [view for view in views if view.moments is not None]
    reasons = []
    for view in views:
        if view.moments is not None:
            continue
        if view.n_samples < FEWEST:
            why = "has fewer than ten samples: nothing is kept of it."
        elif view.encoder is None:
            why = "was folded, or made, private (keep_encoders=False): it has no moments."
        else:
            why = "came fewer than ten samples at a time: nothing is kept of so few."
        reasons.append(f"View {view.name!r} {why}")
    if not have:
        raise ValueError(f"Nothing can be explained. {' '.join(reasons[:3])}")
    return have, reasons


def feature_table(
    tellers: Sequence[ViewEffects], clusters: Sequence[int], top: int | None
) -> pd.DataFrame:
    """Return the features that tell clusters from all other samples, strongest first."""
    columns = ["cluster", "view", "feature", "mean", "overall_mean", "effect", "rank"]
    effects = np.hstack([one.effects for one in tellers])
    mean = np.concatenate([one.moments.mean for one in tellers])
    spread = np.concatenate([one.moments.spread for one in tellers])
    names = [(one.view.name, name) for one in tellers for name in one.names]
    parts = []
    for cluster in clusters:
        own = effects[cluster]
        at = np.flatnonzero(~np.isnan(own))
        at = at[np.argsort(-np.abs(own[at]), kind="stable")][:top]
        part: dict[str, Any] = {
            "cluster": np.full(at.size, cluster),
            "view": [names[i][0] for i in at],
            "feature": pd.Series([names[i][1] for i in at], dtype=object),
            "mean": mean[at] + own[at] * spread[at],
            "overall_mean": mean[at],
            "effect": own[at],
            "rank": np.arange(1, at.size + 1),
        }
        parts += [pd.DataFrame(part)] if at.size else []
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def weights(engine: Engine, state: State, one: ViewEffects) -> tuple[Array, Array]:
    """Return what a column of the consensus adds to each feature, and the spread of the columns."""
    which, r = state.names.index(one.view.name), one.overall.size
    (P,) = sum_products(engine, state, [which], state.labels(engine))
    G = P.centred()
    along = regression(G[:r, :r], G[:r]) @ one.moments.coefficients @ one.moments.directions
    return np.asarray(along), np.sqrt(np.maximum(np.diagonal(G)[:r], 0) / max(P.n, 1))


def loadings(engine: Engine, state: State, one: ViewEffects) -> pd.DataFrame:
    along, spread = weights(engine, state, one)
    table = (along * spread[:, None]).T
    table[one.moments.spread == 0] = np.nan
    names = [f"component{i}" for i in range(len(along))]
    return pd.DataFrame(table, pd.Index(one.names, name="feature"), names)


def variance_table(engine: Engine, state: State, tellers: Sequence[ViewEffects]) -> pd.DataFrame:
    """Return the share of each view's variance that is explained, features weighing the same."""
    rows, which = {}, [state.names.index(one.view.name) for one in tellers]
    each_P = sum_products(engine, state, which, state.labels(engine))
    for one, P in zip(tellers, each_P, strict=True):
        d = max(int((one.moments.spread > 0).sum()), 1)
        whole = float(P.variance(one.moments.coefficients).sum()) / d
        squares = np.nansum(one.effects**2, axis=1) / d * one.count / max(P.n, 1)
        each = np.where(np.isnan(one.effects).all(axis=1), np.nan, squares)
        rows[one.view.name] = [min(whole, 1.0), float(np.nansum(each)), *each]
    k = len(tellers[0].count)
    table = pd.DataFrame.from_dict(rows, "index", columns=["consensus", "clusters", *range(k)])
    return table.rename_axis("view")


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a sample is in its cluster."""

    id: int | str  #: the sample
    cluster: int
    next_cluster: int | None  #: the one that is nearest otherwise; None if there is one only
    confidence: float  #: 0: between the two, 1: at the centre of its own
    #: A row for each view, by name: ``in_view``, whether the sample is in it (if not, what the
    #: consensus expects is told); ``evidence``, 1 if the sample lies at the mean of its cluster, −1
    #: at that of the next one, 0 halfway.
    views: pd.DataFrame = field(repr=False)
    #: The strongest features: view, feature, what the consensus says of the sample (``value``), the
    #: means of the feature in its ``cluster`` and in the ``next`` one, and the ``evidence``, which
    #: adds up to that of the view; negative if it speaks for the next cluster.
    features: pd.DataFrame = field(repr=False)
    #: The view without which the sample would be in another cluster; None if there is none, or if
    #: that is not known.
    hangs_on: str | None = None
    without: int | None = None  #: the cluster that it would be in then

    def __str__(self) -> str:
        """Say it in a few lines."""
        other = "all samples" if self.next_cluster is None else f"cluster {self.next_cluster}"
        first = f"{self.id} is in cluster {self.cluster} (confidence {self.confidence:.2f}); "
        first += f"next is {other}."
        if self.hangs_on is not None:
            first += f" Without {self.hangs_on}, it would be in cluster {self.without}."
        lines = [first]
        for _, row in self.features.iterrows():
            toward = f"cluster {self.cluster}" if row["evidence"] > 0 else other
            lines.append(
                f"  {row['view']}: {row['feature']} {row['value']:.4g} speaks for {toward} "
                f"({row['cluster']:.4g}, {row['next']:.4g})"
            )
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def explain_sample(
    engine: Engine, state: State, sample: int | str, tellers: Sequence[ViewEffects], top: int | None
) -> Explanation:
    """Return why a sample is in its cluster."""
    row, seen, novelty, evidence, cluster = _found(engine, state, sample)
    assert state.clusters is not None
    clusters = scattered(engine, state.clusters, state.embedding)
    hangs = hangs_on(engine, clusters, state.directions, row[None], evidence)
    nearest = int(engine.collect(next_nearest(engine, clusters, row[None], np.array([cluster])))[0])
    other = None if nearest < 0 else nearest
    sure = engine.collect(confidence(engine, clusters, row[None], seen[None], novelty, hangs))
    view, instead = engine.collect(hangs)[0].tolist()
    views, parts = {}, []
    for one in tellers:
        part = _of_view(one, weights(engine, state, one)[0], row, cluster, other)
        here = bool(seen[state.names.index(one.view.name)])
        views[one.view.name] = {"in_view": here, "evidence": part["evidence"].sum(min_count=1)}
        parts.append(part.dropna(subset="evidence"))
    features = pd.concat(parts, ignore_index=True)
    strongest = np.argsort(-features["evidence"].abs().to_numpy(), kind="stable")[:top]
    return Explanation(
        sample,
        cluster,
        other,
        float(sure[0]),
        pd.DataFrame.from_dict(views, "index").rename_axis("view"),
        features.iloc[strongest].reset_index(drop=True),
        *((state.names[view - 1], instead) if view > 0 else (None, None)),
    )


def _found(
    engine: Engine, state: State, sample: int | str
) -> tuple[Array, Array, Array, Array, int]:
    named = pd.Index([sample], tupleize_cols=False)
    mask = engine.map(lambda block: pd.Index(block).isin(named), state.ids)
    rows = (state.embedding, state.seen, state.novelty, state.evidence, state.labels(engine))
    row, seen, *beside, cluster = (engine.collect(engine.keep(one, mask)) for one in rows)
    if not len(row):
        raise ValueError(f"Unknown samples: [{sample!r}].{meant(state, [sample])}")
    return row[0].astype(np.float64), seen[0], *beside, int(cluster[0])


def _of_view(
    one: ViewEffects, along: Array, row: Array, cluster: int, other: int | None
) -> pd.DataFrame:
    """Return what each feature of a view says; evidence is NaN where nothing is told."""
    expected = (row - one.overall) @ along
    own = one.effects[cluster]
    second = np.where(np.isnan(own), np.nan, 0) if other is None else one.effects[other]
    apart = np.nansum((own - second) ** 2)
    evidence = ((expected - second) ** 2 - (expected - own) ** 2) / (apart if apart > 0 else np.nan)
    return pd.DataFrame(
        {
            "view": one.view.name,
            "feature": pd.Series(one.names, dtype=object),
            "value": one.means(expected),
            "cluster": one.means(own),
            "next": one.means(second),
            "evidence": evidence,
        }
    )
