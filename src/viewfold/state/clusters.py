"""Where clusters are, the nearest cluster of each row, and how certain it is.

Certainty is a probability, from what is known without classes. Where clusters are far apart, it is
1. It is less for clusters that are not found again in half of the rows, for samples of few views,
for samples whose views cannot tell clusters apart that others can, and for those that would be in
another cluster without one of their views.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewfold._util import constants
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array
from viewfold.rows import Engine, RowSet
from viewfold.rows.linalg import unit_rows
from viewfold.state.evidence import NONE, STEPS, Directions
from viewfold.state.novelty import belief


@frozen_record
class Clusters:
    """The centres of the clusters, and the projection in which rows are compared with them."""

    #: (n_columns, n_directions): rows of the leading columns of the embedding are scaled to unit
    #: length, then multiplied with this matrix
    projection: Array
    #: (n_groups, n_clusters, n_directions): the centres of the clusters among the projected rows,
    #: for each group of samples that no view connects with the others; usually there is one group
    centers: Array
    #: (n_groups, 3): of each group, mean and variance of the squared distances of rows to their
    #: centres, and the share of samples that are found again in half of the rows (see
    #: `confidence`); None until it is computed
    scatter: Array | None = None
    #: (n_views, n_clusters, n_clusters): squared distances between the means of clusters in the
    #: features of each view, in standard deviations within clusters; inf where it is not known.
    #: None until confidence is asked for, or if no view has moments.
    apart: Array | None = None

    @property
    def n_clusters(self) -> int:
        """How many there are."""
        return int(self.centers.shape[1])


def group_of(clusters: Clusters, block: Array) -> NDArray[np.intp]:
    """Return the group of each row: the one whose directions hold most of its energy."""
    directions = clusters.centers.any(axis=1)
    return np.asarray(((block @ clusters.projection) ** 2 @ directions.T).argmax(axis=1))


def assign(engine: Engine, clusters: Clusters, embedding: RowSet) -> RowSet:
    """Return the nearest centre c of each row x: the largest cᵀPᵀx − ‖x‖ ‖c‖² / 2."""
    toward, half = _toward(clusters, embedding.dtype)

    def nearest(block: Array) -> Array:
        score = block @ toward
        score -= np.outer(np.linalg.norm(block, axis=1), half).astype(score.dtype)
        return np.asarray(_own_group(clusters, block, score).argmax(axis=1))

    return engine.map(nearest, engine.leading(embedding, len(clusters.projection)))


def _toward(clusters: Clusters, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Return P c and ‖c‖² / 2 for the centres c of all groups."""
    centers = np.concatenate(clusters.centers)
    return (clusters.projection @ centers.T).astype(dtype), (centers**2).sum(axis=1) / 2


def _own_group(clusters: Clusters, block: Array, score: Array) -> Array:
    """Return the columns of a score that are about the group of each row."""
    n_groups, n_clusters, _ = clusters.centers.shape
    if n_groups == 1:
        return score
    by_group = score.reshape(-1, n_groups, n_clusters)
    return np.asarray(by_group[np.arange(len(block)), group_of(clusters, block)])


def hangs_on(
    engine: Engine,
    clusters: Clusters,
    directions: Directions | None,
    embedding: RowSet,
    evidence: RowSet,
) -> RowSet:
    """Return the view without which each sample would be in another cluster, and that cluster.

    Views are numbered from 1; 0 stands for none, −1 if it is not known: evidence of two views is
    needed. All t views of a sample weigh the same, so that without view v its row moves by
    (mean of its evidence − that of v) / (t − 1). Of several views, the one that matters most.
    """
    if directions is None:  # encoders are not kept
        return engine.map(lambda block: np.full((len(block), 2), -1, np.int32), evidence)
    m, small = directions.n_numbers, np.dtype(np.float32)
    if clusters.n_clusters == 1:  # there is no other cluster to be in

        def find_none(said: Array) -> Array:
            known = np.count_nonzero(said[:, ::m] != NONE, axis=1) > 1
            return np.stack([np.where(known, 0, -1), np.zeros(len(said))], axis=1).astype(np.int32)

        return engine.map(find_none, evidence)
    toward, half = _toward(clusters, small)
    half = half.astype(small)
    lift = (directions.lift[:, : len(clusters.projection)] / STEPS).astype(small)
    along, inner = lift @ toward, lift @ lift.T

    def find(block: Array, said: Array) -> Array:
        rows = block.astype(small)
        each = [part.astype(small) for part in np.split(said, said.shape[1] // m, axis=1)]
        has = [part[:, :1] != NONE for part in each]
        t = np.asarray(sum(has), small)
        mean = sum(part * there for part, there in zip(each, has, strict=True)) / np.maximum(t, 1)
        score, back = rows @ toward, rows @ lift.T
        squares = np.einsum("ij,ij->i", rows, rows)
        own = _own_group(clusters, block, score - np.outer(np.sqrt(squares), half)).argmax(axis=1)
        most, at = np.zeros(len(rows), small), np.arange(len(rows))
        found = np.stack([np.where(t[:, 0] > 1, 0, -1), own], axis=1).astype(np.int32)
        for v, (part, there) in enumerate(zip(each, has, strict=True), 1):
            # The row without the view is x + step @ lift: its products follow from those of x.
            step = (mean - part) * (there & (t > 1)) / np.maximum(t - 1, 1)
            far = squares + np.einsum("ij,ij->i", step, 2 * back + step @ inner)
            without = score + step @ along - np.outer(np.sqrt(np.maximum(far, 0)), half)
            without = _own_group(clusters, block, without)
            other = without.argmax(axis=1)
            lost = without[at, other] - without[at, own]
            worse = lost > most
            most[worse], found[worse, 0], found[worse, 1] = lost[worse], v, other[worse]
        return found

    leading = engine.leading(embedding, len(clusters.projection))
    return engine.map(find, leading, evidence)


def next_nearest(engine: Engine, clusters: Clusters, embedding: RowSet, labels: RowSet) -> RowSet:
    """Return the nearest cluster of each row but its own; −1 if there is no other."""

    def second(block: Array, own: Array) -> Array:
        if clusters.n_clusters == 1:
            return np.full(len(block), -1)
        squares, _ = squared_distances(clusters, block)
        squares[own, np.arange(len(block))] = np.inf
        return np.asarray(squares.argmin(axis=0))

    return engine.map(second, engine.leading(embedding, len(clusters.projection)), labels)


def squared_distances(clusters: Clusters, block: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return squared distances of rows to the centres of their group, and which group that is."""
    n_groups, n_clusters, _ = clusters.centers.shape
    centers = np.concatenate(clusters.centers)
    rows = unit_rows(block) @ clusters.projection
    # A row per centre: the minimum over few long rows is quick, over many short ones not.
    squares = (centers**2).sum(axis=1)[:, None] - 2 * centers @ rows.T + (rows**2).sum(axis=1)
    if n_groups == 1:
        return squares, np.zeros(len(block), np.intp)
    group = group_of(clusters, block)
    by_group = squares.reshape(n_groups, n_clusters, -1)
    return np.ascontiguousarray(by_group[group, :, np.arange(len(block))].T), group


def confidence(
    engine: Engine,
    clusters: Clusters,
    embedding: RowSet,
    seen: RowSet,
    novelty: RowSet | None = None,
    hangs: RowSet | None = None,
    *,
    each: bool = False,
) -> RowSet:
    """Return the probability that each row belongs to its cluster, as far as distances tell.

    With `each`, that of every cluster: a column for each of them, and rows that sum to 1.

    If squared distances d² to the centres have the mean s² and ν = 2 s⁴ / Var(d²) degrees of
    freedom within clusters, a share R of the samples is found again in half of the rows, and a
    sample is in v views, its confidence is the largest of softmax(−v^¼ R² ν d² / (5.5 s²)). Normal
    clusters would have ν d² / (2 s²); real ones have long tails. Views share their errors.

    A row looks certain also where the views of the sample cannot tell clusters apart. If two are
    d² apart in these and D² in all (`Clusters.apart`), (d² / 2) (D² + 4) / (D² − d²) is believed
    at most: no limit if the sample has all that tells them apart, or if means do not.

    A row that is unlike all others belongs to no cluster, however near: `novelty` lowers it. So
    does hanging on one view (`hangs`, see `hangs_on`; given with novelty).
    """
    scatter, clusters = scattered(engine, clusters, embedding).scatter, _between(clusters)
    assert scatter is not None
    mean, variance, again = scatter.T
    most = clusters.centers.any(axis=1).sum(axis=1)  # as normal clusters have
    freedom = np.divide(2 * mean**2, variance, out=most.astype(float), where=variance > 0)
    sharpness = again**2 * np.minimum(freedom, most) / np.maximum(mean, 1e-12) / constants.CAUTION

    def judge(
        block: Array, views: Array, levels: Array | None = None, hangs: Array | None = None
    ) -> Array:
        margins, group = squared_distances(clusters, block)
        margins -= margins.min(axis=0)
        margins *= sharpness[group] * views.sum(axis=1) ** 0.25
        if clusters.apart is not None:
            _limit(margins, views, clusters.apart)
        total = np.exp(-margins, out=margins).sum(axis=0)
        if each:
            return np.ascontiguousarray((margins / total).T)
        sure = np.asarray(1 / total) * (1 if levels is None else belief(levels))
        return sure if hangs is None else np.where(hangs[:, 0] > 0, constants.HANGING * sure, sure)

    leading = engine.leading(embedding, len(clusters.projection))
    beside = [one for one in (novelty, hangs) if one is not None]
    return engine.map(judge, leading, seen, *beside)


def _limit(margins: Array, views: Array, apart: Array) -> None:
    """Lower margins (clusters × rows) to what the views of each row can tell, in place."""
    known = np.isfinite(apart)
    by_all = np.where(known, apart, 0).sum(axis=0)
    apart = np.where(known, apart, 1e12)  # a view may tell what is not known
    own = margins.argmin(axis=0)
    for cluster in np.unique(own):
        rows = np.flatnonzero(own == cluster)
        squares = views[rows].astype(np.float64) @ apart[:, cluster]
        lacking = (by_all[cluster] - squares) / (by_all[cluster] + constants.TOLD**2)
        most = np.full_like(squares, np.inf)
        np.divide(squares / 2, lacking, out=most, where=lacking > 1e-9)
        margins[:, rows] = np.minimum(margins[:, rows], most.T)


def scattered(
    engine: Engine, clusters: Clusters, embedding: RowSet, again: float = 1.0
) -> Clusters:
    """Return clusters with their scatter, computed from rows if it is not known."""
    if clusters.scatter is not None:
        return clusters
    n_groups, between = len(clusters.centers), _between(clusters)

    def sums(block: Array) -> Array:
        squares, group = squared_distances(between, block)
        least = np.maximum(squares.min(axis=0), 0)
        of = [np.bincount(group, least**power, minlength=n_groups) for power in (0, 1, 2)]
        return np.asarray(of)

    size, total, squared = engine.reduce(sums, engine.leading(embedding, len(clusters.projection)))
    mean, power = total / np.maximum(size, 1), squared / np.maximum(size, 1)
    variance = np.maximum(power - mean**2, 0)
    return replace(clusters, scatter=np.column_stack([mean, variance, np.full(n_groups, again)]))


def sure_enough(
    labels: Array,
    confidence: Array,
    least: float | None,
    novelty: Array | None = None,
    most: float | None = None,
) -> NDArray[np.intp]:
    """Return labels, −1 where the confidence is below the least, or the novelty above the most."""
    for name, asked in (("min_confidence", least), ("max_novelty", most)):
        if asked is not None and not 0 <= asked <= 1:
            raise ValueError(f"{name}={asked!r}: expected a number from 0 to 1.")
    if least is not None:
        labels = np.where(confidence < least, -1, labels)
    if most is not None and novelty is not None:
        labels = np.where(novelty > most, -1, labels)
    return np.asarray(labels)


def _between(clusters: Clusters) -> Clusters:
    """Return clusters in the directions in which their centres differ; discriminants are such."""
    n_groups, n_clusters, n_directions = clusters.centers.shape
    if n_groups > 1 or n_directions < n_clusters:
        return clusters
    apart = clusters.centers[0] - clusters.centers[0].mean(axis=0)
    V = np.linalg.svd(apart, full_matrices=False)[2][: max(n_clusters - 1, 1)].T
    return replace(clusters, projection=clusters.projection @ V, centers=clusters.centers @ V)
