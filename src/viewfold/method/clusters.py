"""Clusters of an embedding: k-means on unit rows, with labels that stay the same over time.

Groups of samples that no view connects are clustered one by one, and their clusters paired by size:
their rows are orthogonal to each other, so that distances between them say nothing. If samples are
in a group by chance, a cluster has about the same share of every group.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.optimize import linear_sum_assignment

from viewfold._util import constants
from viewfold._util.types import Array
from viewfold.method.kmeans import (
    at_random,
    best_of,
    discriminant,
    effective,
    from_trees,
    in_discriminants,
    lloyd,
    sums,
)
from viewfold.rows import Engine, LocalEngine, RowSet
from viewfold.rows.linalg import gram, unit_rows
from viewfold.state.clusters import Clusters, assign, scattered


@dataclass(frozen=True)
class ClusteringOptions:
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
    options: ClusteringOptions | None = None,
    seed: int = 0,
) -> tuple[RowSet, Clusters]:
    """Cluster the rows of an embedding by k-means, after scaling them to unit length."""
    options = options or ClusteringOptions()
    rows, theirs = engine.collect(engine.select(embedding, sample)), None
    if groups is not None and options.unconnected == "pair":
        theirs = engine.collect(engine.select(groups, sample))
    clusters = _read(rows, theirs, n_clusters, options, seed)
    if groups is not None and options.unconnected is not None:
        warn_unconnected(engine, groups, options.unconnected, len(clusters.centers) > 1)
    again = _found_again(clusters, rows, theirs, options, seed)
    return _numbered(engine, embedding, scattered(LocalEngine(), clusters, rows, again), previous)


def _read(
    rows: Array, groups: Array | None, n_clusters: int, options: ClusteringOptions, seed: int
) -> Clusters:
    """Find clusters of some rows: those of groups one by one, if they can be paired."""
    find = partial(_find, n_clusters=n_clusters, options=options, seed=seed)
    clusters = None if groups is None else paired(find, rows, groups, n_clusters, seed)
    return clusters or find(rows)[1]


def _found_again(
    clusters: Clusters, rows: Array, groups: Array | None, options: ClusteringOptions, seed: int
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
        found = _read(rows[here], theirs, k, replace(options, n_init=1), seed)
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
    options: ClusteringOptions | None = None,
    again: float = 1.0,
) -> Clusters:
    """Return the centres of given clusters, computed from their rows; an empty one is far from all.

    `again` is the share of samples that were found again when the clusters were found.
    """
    options = options or ClusteringOptions()
    if groups is not None:
        one = partial(settle, engine, n_clusters=n_clusters, options=options, again=again)
        return settled(engine, one, embedding, labels, groups)

    def products(block: Array, own: Array) -> tuple[Array | float, ...]:
        rows, weights = unit_rows(block).astype(np.float64), options.weights(block)
        total, size = sums(rows, own, n_clusters, weights)
        return gram(rows * np.sqrt(weights)[:, None]), total, size, (weights**2).sum()

    scatter, total, size, squares = engine.reduce(products, embedding, labels)
    used = np.flatnonzero(size)
    center, directions = total[used] / size[used, None], None
    n = effective(size.sum(), squares)
    if options.discriminants and 1 < used.size < n:
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
    embedding: Array, *, n_clusters: int, options: ClusteringOptions, seed: int
) -> tuple[NDArray[np.intp], Clusters]:
    """Cluster some rows."""
    rows, weights = unit_rows(embedding), options.weights(embedding)
    few = sample_size(n_clusters) // 16
    some, theirs = rows[:few], weights[:few]
    if options.start == "ward":
        starts = from_trees(some, embedding[:few], n_clusters, options.n_init, theirs)
    else:
        starts = at_random(some, n_clusters, options.n_init, seed)
    best = best_of(some, starts, theirs)
    if len(rows) > few:
        best = lloyd(rows, best.centers, weights)
    projection = np.eye(rows.shape[1])
    if options.discriminants and 1 < n_clusters < len(rows):
        projection, best = in_discriminants(rows, best, weights)
    return best.labels, Clusters(projection, np.stack([best.centers]))


def pairing_stability(sizes: NDArray[np.intp], seed: int = 0) -> float:
    """Return how reliably the clusters of several groups are paired by their size, from 0 to 1.

    The sizes are bootstrapped: this is the mean share of samples whose cluster keeps its partners
    when all samples are drawn again.
    """
    share = sizes / sizes.sum(axis=1, keepdims=True)
    random = np.random.default_rng(seed)
    drawn = random.multinomial(sizes.sum(axis=1), share, size=(200, len(sizes)))
    rank = np.argsort(-drawn, axis=2, kind="stable")
    kept = (rank == rank[:, :1]).all(axis=1)
    return float((share.mean(axis=0)[rank[:, 0]] * kept).sum(axis=1).mean())


def paired(
    find: Callable[[Array], tuple[NDArray[np.intp], Clusters]],
    embedding: Array,
    groups: NDArray[np.intp],
    n_clusters: int,
    seed: int,
) -> Clusters | None:
    """Cluster each group by itself and pair clusters by size; None if that is not reliable."""
    members = [embedding[groups == group] for group in range(groups.max() + 1)]
    if min(map(len, members)) < n_clusters:
        return None
    found = [find(rows) for rows in members]
    sizes = np.array([np.bincount(labels, minlength=n_clusters) for labels, _ in found])
    order = np.argsort(-sizes, axis=1, kind="stable")
    if pairing_stability(np.take_along_axis(sizes, order, axis=1), seed) < constants.PAIRED:
        return None
    by_size = [one.centers[0, which] for (_, one), which in zip(found, order, strict=True)]
    return Clusters(np.hstack([one.projection for _, one in found]), _blocks(by_size))


def settled(
    engine: Engine,
    settle: Callable[[RowSet, RowSet], Clusters],
    embedding: RowSet,
    labels: RowSet,
    groups: RowSet,
) -> Clusters:
    """Return the centres of given clusters for each group, in directions of its own."""
    last = engine.reduce(lambda group: group.max(initial=-1), groups, combine=max)
    found = []
    for group in range(int(last) + 1):
        mine = engine.map(lambda block, group=group: block == group, groups)
        rows = engine.keep(embedding, mine)
        if rows.shape[0]:
            found.append(settle(rows, engine.keep(labels, mine)))
    projection = np.hstack([one.projection for one in found])
    scatter = np.concatenate([one.scatter for one in found if one.scatter is not None])
    return Clusters(projection, _blocks([one.centers[0] for one in found]), scatter)


def warn_unconnected(engine: Engine, groups: RowSet, asked: str, was_paired: bool) -> None:
    """Say that nothing connects the groups, what was done about it, and what would connect them."""
    last = int(engine.reduce(lambda group: group.max(initial=0), groups, combine=max))
    sizes = engine.reduce(lambda group: np.bincount(group, minlength=last + 1), groups)
    told = ", ".join(str(int(size)) for size in sizes)
    if was_paired:
        done = (
            "Each was clustered by itself and the clusters were paired by size, which is right if "
            "samples are in a group by chance; "
            "unconnected='separate' does not pair."
        )
    elif asked == "pair":
        done = "Sizes do not tell which clusters belong together, so none were paired."
    else:
        done = "Clusters of different groups were not paired."
    warnings.warn(
        f"The samples are in {sizes.size} groups ({told} samples) that share "
        f"fewer than {constants.FEWEST} samples: nothing connects them. {done} A view with at "
        f"least {constants.FEWEST} samples of each would connect them.",
        stacklevel=2,
    )


def _blocks(centers: list[Array]) -> Array:
    """Return the centres of all groups; those of one are zero in the directions of the others."""
    n_groups, n_clusters = len(centers), len(centers[0])
    return np.asarray(linalg.block_diag(*centers).reshape(n_groups, n_clusters, -1))


def silhouette(engine: Engine, embedding: RowSet, labels: RowSet, n_clusters: int) -> float:
    """Return the mean silhouette of rows of an embedding, with squared distances.

    Of a row, a is its mean squared distance to the others of its cluster and b that to the next
    cluster: (b − a) / max(a, b), and 0 of a row that is alone. The mean squared distance of x to a
    cluster with the mean m is ‖x − m‖² plus the variance, so two passes over the rows are enough.
    """
    counts, total, squares = engine.reduce(partial(_sums, n_clusters), embedding, labels)
    if np.count_nonzero(counts) < 2:
        return 0.0
    size = np.maximum(counts, 1)
    widths = partial(_widths, counts, total / size[:, None], squares / size)
    return float(engine.reduce(widths, embedding, labels) / counts.sum())


def _sums(n_clusters: int, block: Array, label: Array) -> tuple[Array, Array, Array]:
    """Return, for each cluster, how many rows it has, their sum, and the sum of their squares."""
    rows = unit_rows(block.astype(np.float64))
    total, counts = sums(rows, label, n_clusters)
    return counts, total, np.bincount(label, (rows**2).sum(axis=1), n_clusters)


def _widths(counts: Array, mean: Array, squares: Array, block: Array, label: Array) -> Array:
    """Return the sum of the silhouettes of rows, given the means of clusters and of squares."""
    rows = unit_rows(block.astype(np.float64))
    # ‖x − m‖² plus the variance is ‖x‖² − 2 xᵀm plus the mean of squares.
    apart = (rows**2).sum(axis=1)[:, None] - 2 * rows @ mean.T + squares
    apart[:, counts == 0] = np.inf
    own = np.arange(len(rows)), label
    within = np.maximum(apart[own], 0) * counts[label] / np.maximum(counts[label] - 1, 1)
    apart[own] = np.inf
    between = np.maximum(apart.min(axis=1, initial=np.inf), 0)
    most = np.maximum(within, between)
    width = np.divide(between - within, most, out=np.zeros_like(most), where=most > 0)
    return np.asarray(width[counts[label] > 1].sum())


def resampled(
    find: Callable[[NDArray[np.intp], int], Array],
    labels: NDArray[np.intp],
    n_clusters: int,
    n_resamples: int,
    seed: int,
) -> Array:
    """Return the mean Jaccard similarity of each cluster to its likest in resampled rows."""
    random = np.random.default_rng(seed)
    total, times = np.zeros(n_clusters), np.zeros(n_clusters)
    for one in range(n_resamples):
        drawn = np.sort(random.integers(labels.size, size=labels.size))
        found = find(drawn, seed + one)
        first = np.flatnonzero(np.diff(drawn, prepend=-1))  # a row counts once
        together = np.zeros((n_clusters, n_clusters))
        np.add.at(together, (labels[drawn[first]], found[first]), 1)
        before, now = together.sum(axis=1, keepdims=True), together.sum(axis=0)
        either = before + now - together
        total += (together / np.maximum(either, 1)).max(axis=1)
        times += before[:, 0] > 0
    return np.asarray(np.divide(total, times, out=np.full(n_clusters, np.nan), where=times > 0))
