"""Why a sample is in its cluster, and what speaks for the next one.

The sample's row of the consensus says where it lies between the means of the two clusters, feature
by feature: with x̂ what the row says of a feature, m its mean in the cluster and m' in the next, all
in standard deviations, the evidence is ((x̂ − m')² − (x̂ − m)²) / Σ (m − m')², summed over the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np
import pandas as pd

from viewfold._util.types import Array
from viewfold.explain.effects import Told
from viewfold.explain.shares import weights
from viewfold.method.clusters import confidence, scattered, squared_distances
from viewfold.rows import Engine
from viewfold.state.admission import meant
from viewfold.state.state import State


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a sample is in its cluster.

    Attributes
    ----------
    id : int or str
        The sample.
    cluster : int
        Its cluster.
    next_cluster : int or None
        The cluster that is nearest otherwise; None if there is one cluster only.
    confidence : float
        0: between the two, 1: at the centre of its own.
    views : DataFrame
        A row for each view, by name: ``in_view``, whether the sample is in it (if not, what the
        consensus expects is told); ``evidence``, 1 if the sample lies at the mean of its cluster,
        −1 at that of the next one, 0 halfway.
    features : DataFrame
        The strongest features: view, feature, what the consensus says of the sample (``value``),
        the means of the feature in its ``cluster`` and in the ``next`` one, and the ``evidence``,
        which adds up to that of the view; negative if it speaks for the next cluster.
    """

    id: int | str
    cluster: int
    next_cluster: int | None
    confidence: float
    views: pd.DataFrame = field(repr=False)
    features: pd.DataFrame = field(repr=False)

    def __str__(self) -> str:
        """Say it in a few lines."""
        other = "all samples" if self.next_cluster is None else f"cluster {self.next_cluster}"
        lines = [
            f"{self.id} is in cluster {self.cluster} (confidence {self.confidence:.2f}); "
            f"next is {other}."
        ]
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
    engine: Engine,
    state: State,
    sample: int | str,
    tellers: Sequence[Told],
    top: int | None,
) -> Explanation:
    """Return why a sample is in its cluster."""
    row, seen, cluster = _found(engine, state, sample)
    assert state.clusters is not None
    clusters = scattered(engine, state.clusters, state.embedding)
    leading = row[None, : len(clusters.projection)]
    other = None
    if clusters.n_clusters > 1:
        squares = squared_distances(clusters, leading)[0][:, 0]
        other = int(np.where(np.arange(squares.size) == cluster, np.inf, squares).argmin())
    sure = float(engine.collect(confidence(engine, clusters, row[None], seen[None]))[0])
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
        sure,
        pd.DataFrame.from_dict(views, "index").rename_axis("view"),
        features.iloc[strongest].reset_index(drop=True),
    )


def _found(engine: Engine, state: State, sample: int | str) -> tuple[Array, Array, int]:
    """Return the row, the views seen and the cluster of a sample."""
    named = pd.Index([sample], tupleize_cols=False)
    mask = engine.map(lambda block: pd.Index(block).isin(named), state.ids)
    rows = (state.embedding, state.seen, state.labels(engine))
    row, seen, cluster = (engine.collect(engine.keep(one, mask)) for one in rows)
    if not len(row):
        raise ValueError(f"Unknown samples: [{sample!r}].{meant(state, [sample])}")
    return row[0].astype(np.float64), seen[0], int(cluster[0])


def _of_view(one: Told, along: Array, row: Array, cluster: int, other: int | None) -> pd.DataFrame:
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
