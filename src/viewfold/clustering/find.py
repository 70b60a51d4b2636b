"""Clusters from an embedding: k-means on unit rows, with labels that stay the same over time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from viewfold._types import Array
from viewfold.clustering.assign import assign
from viewfold.clustering.discriminant import discriminant, in_discriminants
from viewfold.clustering.groups import block_centers, group_directions, paired
from viewfold.clustering.kmeans import lloyd
from viewfold.clustering.starts import from_random, from_trees
from viewfold.core.state import Clusters
from viewfold.engine import Engine, RowSet
from viewfold.linalg import gram, membership, unit_rows


@dataclass(frozen=True)
class Reading:
    """How clusters are found in an embedding.

    Attributes
    ----------
    columns : int or None
        How many leading columns k-means uses; all of them if not given.
    start : {"random", "ward"}
        Starts by k-means++, or from trees that Ward's method grows.
    discriminants : bool
        Whether k-means goes on in the discriminant directions of its clusters, in all columns.
    n_init : int
        How many starts; the result with the least inertia is taken.
    """

    columns: int | None = None
    start: Literal["random", "ward"] = "random"
    discriminants: bool = False
    n_init: int = 10


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
    """Cluster the rows of an embedding by k-means, after scaling them to unit length.

    Parameters
    ----------
    engine : Engine
        Computes with the rows.
    embedding : RowSet of shape (n_samples, n_components)
        The rows.
    n_clusters : int
        How many clusters.
    sample : ndarray of int
        Numbers of the rows that k-means uses (see `sample_size`), drawn and ordered by id, so that
        the result does not depend on the order of rows. Starts are compared on the first quarter of
        a full sample, and the best one goes on with all of it.
    groups : RowSet of int, optional
        The group of each row (0, 1, …), if there are groups that no view connects; rows of
        different groups are orthogonal. Each group is clustered by itself if its clusters can be
        paired with those of the others by size (see `groups.pairing_stability`).
    previous : RowSet of int, optional
        Labels before this fold, −1 for new samples. They are one more start where that may help,
        and the new clusters are numbered like them. There may have been more clusters, or fewer.
    reading : Reading, optional
        How clusters are found.
    seed : int, default=0
        Seed of the starts.

    Returns
    -------
    labels : RowSet of int
        The cluster of each row.
    clusters : Clusters
        Their centres.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.clustering import cluster
    >>> from viewfold.engine import LocalEngine
    >>> rows = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> before = np.array([1, 1, 0, -1])
    >>> cluster(LocalEngine(), rows, 2, sample=np.arange(4), previous=before)[0]
    array([1, 1, 0, 0])
    """
    how = n_clusters, reading or Reading(), seed
    clusters = _in_sample(engine, sample, embedding, groups, previous, *how)
    labels = assign(engine, clusters, embedding)
    return (labels, clusters) if previous is None else _numbered(engine, labels, clusters, previous)


def _in_sample(
    engine: Engine,
    sample: NDArray[np.intp],
    embedding: RowSet,
    groups: RowSet | None,
    previous: RowSet | None,
    n_clusters: int,
    reading: Reading,
    seed: int,
) -> Clusters:
    """Find the clusters of the rows that k-means sees: by group if that can be, or all at once."""

    def sampled(rows: RowSet) -> Array:
        return engine.collect(engine.select(rows, sample))

    find = partial(_find, n_clusters=n_clusters, reading=reading, seed=seed)
    rows, clusters = sampled(embedding), None
    if groups is not None:
        clusters = paired(find, rows, sampled(groups), n_clusters, seed)
    if clusters is None:
        _, clusters = find(rows, None if previous is None else sampled(previous))
    return clusters


def _numbered(
    engine: Engine, labels: RowSet, clusters: Clusters, previous: RowSet
) -> tuple[RowSet, Clusters]:
    """Return the same clusters under the numbers that they had before."""
    number = match(engine, previous, labels, clusters.n_clusters)
    centers = clusters.centers.take(np.argsort(number), axis=1)
    renamed = engine.map(lambda block: number[block], labels)
    return renamed, Clusters(clusters.projection, centers)


def settle(
    engine: Engine,
    embedding: RowSet,
    labels: RowSet,
    n_clusters: int,
    *,
    groups: RowSet | None = None,
    discriminants: bool = False,
) -> Clusters:
    """Return the centres of given clusters, computed from their rows; an empty one is far from all.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.clustering import assign, settle
    >>> from viewfold.engine import LocalEngine
    >>> rows = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> clusters = settle(LocalEngine(), rows, np.array([2, 2, 0, 0]), 3)
    >>> assign(LocalEngine(), clusters, rows)
    array([2, 2, 0, 0])
    """
    if groups is not None:
        return _settle_groups(engine, embedding, labels, n_clusters, groups, discriminants)

    def sums(block: Array, own: Array) -> tuple[Array, ...]:
        rows = unit_rows(block).astype(np.float64)
        size = np.bincount(own, minlength=n_clusters)
        return gram(rows), membership(own, n_clusters) @ rows, size

    products, total, size = engine.reduce(sums, embedding, labels)
    used, n = np.flatnonzero(size), int(size.sum())
    center, directions = total[used] / size[used, None], None
    if discriminants and 1 < used.size < n:
        directions = discriminant(products, total[used], size[used], n, np.dtype(np.float64))
    projection = np.eye(len(products)) if directions is None else directions
    center = center @ projection
    centers = np.full((n_clusters, center.shape[1]), 1e3 * (1 + np.abs(center).max()))
    centers[used] = center
    return Clusters(projection, np.stack([centers]))


def _settle_groups(
    engine: Engine,
    embedding: RowSet,
    labels: RowSet,
    n_clusters: int,
    groups: RowSet,
    discriminants: bool,
) -> Clusters:
    """Return the same with centres of each group, in directions of its own."""
    last = engine.reduce(lambda group: group.max(initial=-1), groups, combine=max)
    found, projections = [], []
    for group in range(int(last) + 1):
        mine = engine.map(lambda block, group=group: block == group, groups)
        rows = engine.keep(embedding, mine)
        if not rows.shape[0]:
            continue
        basis = group_directions(engine.reduce(gram, rows), n_clusters)
        rows = engine.map(lambda block, basis=basis: block @ basis, rows)
        one = settle(
            engine, rows, engine.keep(labels, mine), n_clusters, discriminants=discriminants
        )
        found.append(one.centers[0])
        projections.append(basis @ one.projection)
    return Clusters(np.hstack(projections), block_centers(found))


def match(engine: Engine, previous: RowSet, labels: RowSet, n_clusters: int) -> NDArray[np.intp]:
    """Return, for each cluster, the number under which most of its samples were known before.

    There may have been more clusters, or fewer: numbers that are too high now are given up, and
    clusters without a number get those that are free.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.clustering import match
    >>> from viewfold.engine import LocalEngine
    >>> match(LocalEngine(), np.array([2, 2, 0, 1, -1]), np.array([0, 0, 1, 2, 2]), 3)
    array([2, 0, 1])
    """

    def count(before: Array, now: Array) -> Array:
        known = (before >= 0) & (before < n_clusters)
        together = np.zeros((n_clusters, n_clusters), np.intp)
        np.add.at(together, (now[known], before[known]), 1)
        return together

    together = engine.reduce(count, previous, labels)
    return np.asarray(linear_sum_assignment(together, maximize=True)[1])


def _find(
    embedding: Array,
    known: NDArray[np.intp] | None = None,
    *,
    n_clusters: int,
    reading: Reading,
    seed: int,
) -> tuple[NDArray[np.intp], Clusters]:
    """Cluster some rows; `known` are the labels they had before."""
    rows = unit_rows(embedding[:, : reading.columns])
    few = sample_size(n_clusters) // 4
    if reading.start == "ward":
        rows = rows.astype(np.float32)
        before = None if known is None else known[:few]
        best = from_trees(rows[:few], embedding[:few], before, n_clusters, reading.n_init)
        if len(rows) > few:
            best = lloyd(rows, best.centers)
    else:
        best = from_random(rows, few, known, n_clusters, reading.n_init, seed)
    projection = np.eye(rows.shape[1])
    if reading.discriminants and 1 < n_clusters < len(rows):
        projection, best = in_discriminants(unit_rows(embedding), best)
    return best.labels, Clusters(projection, np.stack([best.centers]))
