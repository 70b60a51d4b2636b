"""Clusters from an embedding: k-means on unit rows, with labels that stay the same over time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from viewfold._util.types import Array
from viewfold.method.assign import assign
from viewfold.method.certainty import scattered
from viewfold.method.discriminant import discriminant, effective, in_discriminants
from viewfold.method.groups import paired, settled, warn_unconnected
from viewfold.method.kmeans import lloyd, sums
from viewfold.method.starts import at_random, best_of, from_trees
from viewfold.rows import Engine, LocalEngine, RowSet
from viewfold.rows.linalg import gram, unit_rows
from viewfold.state.state import Clusters


@dataclass(frozen=True)
class Reading:
    """How clusters are found in an embedding.

    Attributes
    ----------
    start : {"random", "ward"}
        Starts by k-means++, or from trees that Ward's method grows.
    weighted : bool
        Whether a row counts by its length, or every row the same.
    discriminants : bool
        Whether k-means goes on in the discriminant directions of its clusters.
    n_init : int
        How many starts; the result with the least inertia is taken.
    unconnected : {"pair", "separate"} or None
        Whether clusters of groups of samples that no view connects are paired by size, if sizes
        tell; None if the method makes nothing of groups.
    """

    start: Literal["random", "ward"] = "random"
    weighted: bool = False
    discriminants: bool = False
    n_init: int = 10
    unconnected: Literal["pair", "separate"] | None = None

    def weights(self, rows: Array) -> Array:
        """Return how much each row counts."""
        if not self.weighted:
            return np.ones(len(rows))
        length = np.linalg.norm(rows, axis=1).astype(np.float64)
        return np.asarray(np.maximum(length, 1e-6))  # even a row of zeros is in some cluster


REPEATED = 2000  # So many rows, or 50 for each cluster, tell how far clusters are found again


def sample_size(n_clusters: int) -> int:
    """Return how many rows k-means uses at most; then every row gets the nearest centre."""
    return max(65_536, 256 * n_clusters)


def cluster(
    engine: Engine,
    embedding: RowSet,
    n_clusters: int,
    *,
    sample: NDArray[np.intp],
    groups: RowSet | None = None,
    previous: RowSet | None = None,
    reading: Reading | None = None,
    seed: int = 0,
) -> tuple[RowSet, Clusters]:
    """Cluster the rows of an embedding by k-means, after scaling them to unit length."""
    reading = reading or Reading()
    rows, theirs = engine.collect(engine.select(embedding, sample)), None
    if groups is not None and reading.unconnected == "pair":
        theirs = engine.collect(engine.select(groups, sample))
    clusters = _read(rows, theirs, n_clusters, reading, seed)
    if groups is not None and reading.unconnected is not None:
        warn_unconnected(engine, groups, reading.unconnected, len(clusters.centers) > 1)
    again = _found_again(clusters, rows, theirs, reading, seed)
    return _numbered(engine, embedding, scattered(LocalEngine(), clusters, rows, again), previous)


def _read(
    rows: Array, groups: Array | None, n_clusters: int, reading: Reading, seed: int
) -> Clusters:
    """Find clusters of some rows: those of groups one by one, if they can be paired."""
    find = partial(_find, n_clusters=n_clusters, reading=reading, seed=seed)
    clusters = None if groups is None else paired(find, rows, groups, n_clusters, seed)
    return clusters or find(rows)[1]


def _found_again(
    clusters: Clusters, rows: Array, groups: Array | None, reading: Reading, seed: int
) -> float:
    """Return the share of samples whose cluster is that of clusters found without them.

    Clusters are found in one half of the rows and assigned to the other, and the other way round.
    """
    k, engine = clusters.n_clusters, LocalEngine()
    rows = rows[: max(REPEATED, 50 * k)]
    half = len(rows) // 2
    if half < k or k == 1:
        return 1.0
    shares = []
    for here, there in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
        theirs = None if groups is None else groups[: len(rows)][here]
        found = _read(rows[here], theirs, k, replace(reading, n_init=1), seed)
        own, other = (assign(engine, one, rows[there]) for one in (clusters, found))
        shares.append(np.mean(match(engine, own, other, k)[other] == own))
    return round(float(np.mean(shares)), 2)  # nothing is told of a single sample


def _numbered(
    engine: Engine, embedding: RowSet, clusters: Clusters, previous: RowSet | None
) -> tuple[RowSet, Clusters]:
    """Assign rows to clusters, and give these the numbers that they had before."""
    labels = assign(engine, clusters, embedding)
    if previous is None:
        return labels, clusters
    number = match(engine, previous, labels, clusters.n_clusters)
    centers = clusters.centers.take(np.argsort(number), axis=1)
    renamed = engine.map(lambda block: number[block], labels)
    return renamed, replace(clusters, centers=centers)


def settle(
    engine: Engine,
    embedding: RowSet,
    labels: RowSet,
    n_clusters: int,
    *,
    groups: RowSet | None = None,
    reading: Reading | None = None,
    again: float = 1.0,
) -> Clusters:
    """Return the centres of given clusters, computed from their rows; an empty one is far from all.

    `again` is the share of samples that were found again when the clusters were found.
    """
    reading = reading or Reading()
    if groups is not None:
        one = partial(settle, engine, n_clusters=n_clusters, reading=reading, again=again)
        return settled(engine, one, embedding, labels, groups)

    def products(block: Array, own: Array) -> tuple[Array | float, ...]:
        rows, weights = unit_rows(block).astype(np.float64), reading.weights(block)
        total, size = sums(rows, own, n_clusters, weights)
        return gram(rows * np.sqrt(weights)[:, None]), total, size, (weights**2).sum()

    scatter, total, size, squares = engine.reduce(products, embedding, labels)
    used = np.flatnonzero(size)
    center, directions = total[used] / size[used, None], None
    n = effective(size.sum(), squares)
    if reading.discriminants and 1 < used.size < n:
        directions = discriminant(scatter, total[used], size[used], n, np.dtype(np.float64))
    projection = np.eye(len(scatter)) if directions is None else directions
    center = center @ projection
    centers = np.full((n_clusters, center.shape[1]), 1e3 * (1 + np.abs(center).max()))
    centers[used] = center
    return scattered(engine, Clusters(projection, np.stack([centers])), embedding, again)


def match(engine: Engine, previous: RowSet, labels: RowSet, n_clusters: int) -> NDArray[np.intp]:
    """Return, for each cluster, the number under which most of its samples were known before.

    There may have been more clusters, or fewer: numbers that are too high now are given up, and
    clusters without a number get those that are free.
    """

    def count(before: Array, now: Array) -> Array:
        known = (before >= 0) & (before < n_clusters)
        together = np.zeros((n_clusters, n_clusters), np.intp)
        np.add.at(together, (now[known], before[known]), 1)
        return together

    together = engine.reduce(count, previous, labels)
    return np.asarray(linear_sum_assignment(together, maximize=True)[1])


def _find(
    embedding: Array, *, n_clusters: int, reading: Reading, seed: int
) -> tuple[NDArray[np.intp], Clusters]:
    """Cluster some rows."""
    rows, weights = unit_rows(embedding), reading.weights(embedding)
    few = sample_size(n_clusters) // 16
    some, theirs = rows[:few], weights[:few]
    if reading.start == "ward":
        starts = from_trees(some, embedding[:few], n_clusters, reading.n_init, theirs)
    else:
        starts = at_random(some, n_clusters, reading.n_init, seed)
    best = best_of(some, starts, theirs)
    if len(rows) > few:
        best = lloyd(rows, best.centers, weights)
    projection = np.eye(rows.shape[1])
    if reading.discriminants and 1 < n_clusters < len(rows):
        projection, best = in_discriminants(rows, best, weights)
    return best.labels, Clusters(projection, np.stack([best.centers]))
