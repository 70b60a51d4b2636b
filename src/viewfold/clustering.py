"""Clusters from an embedding: k-means on unit rows, with labels that stay the same over time.

Groups of samples that no view ties together lie at right angles to each other. Each is clustered by
itself, and clusters of the same size are taken for one, if sizes differ enough to tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.cluster.hierarchy import fcluster, ward
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from viewfold.blocks import (
    Array,
    Matrix,
    Rows,
    all_on_one_thread,
    blas_on_one_thread,
    for_each,
    unit_rows,
)
from viewfold.kmeans import Means, inertia, lloyd, means

TREE = 300
"""A tree is grown on so many rows, or 20 for each cluster."""


def seed_of(random_state: Any) -> int:
    """Return what to seed a fold with: an int is one, scikit-learn's other seeds draw one.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.clustering import seed_of
    >>> seed_of(5), seed_of(np.random.RandomState(0)) == seed_of(np.random.RandomState(0))
    (5, True)
    """
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def sample_size(n_clusters: int) -> int:
    """Return how many rows k-means needs to see at most; all rows get a label."""
    return max(65_536, 256 * n_clusters)


@dataclass(frozen=True)
class Clustering:
    """Clusters of the rows of an embedding.

    Attributes
    ----------
    labels : ndarray of int, shape (n_samples,)
        The cluster of each row.
    projection : ndarray of shape (n_columns, n_directions)
        Where clusters are told apart: rows of the leading columns of the embedding are scaled to
        unit length, then projected.
    centers : ndarray of shape (n_groups, n_clusters, n_directions)
        The clusters' centres among the projected rows: one for each group of samples that nothing
        ties to the others, as a rule just one.
    """

    labels: NDArray[np.intp]
    projection: Array
    centers: Array

    def assign(self, embedding: Array) -> NDArray[np.intp]:
        """Return the nearest cluster of each row."""
        labels = np.empty(len(embedding), np.intp)
        n_groups, n_clusters, _ = self.centers.shape
        centers = np.concatenate(self.centers)
        toward = (self.projection @ centers.T).astype(embedding.dtype)
        half = (centers**2).sum(axis=1) / 2

        def nearest(where: slice, block: Matrix) -> None:
            score = block @ toward
            score -= np.outer(np.linalg.norm(block, axis=1), half).astype(score.dtype)
            if n_groups > 1:
                score = score.reshape(-1, n_groups, n_clusters)[self._group(block)]
            labels[where] = score.argmax(axis=1)

        with blas_on_one_thread() as threads:
            for_each(Rows(embedding[:, : len(self.projection)]), nearest, threads)
        return labels

    def _group(self, block: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return an index of each row's group: that in whose directions it lies."""
        directions = self.centers.any(axis=1)
        energy = (block @ self.projection) ** 2 @ directions.T
        return np.arange(len(block)), energy.argmax(axis=1)

    def confidence(self, embedding: Array) -> Array:
        """Return how clear each row's cluster is.

        One minus the distance to the nearest centre over the distance to the second nearest: 0
        halfway between two clusters, 1 at a centre.
        """
        n_groups, n_clusters, _ = self.centers.shape
        if n_clusters == 1:
            return np.ones(len(embedding))
        out = np.empty(len(embedding))
        centers = np.concatenate(self.centers)
        toward = 2 * self.projection @ centers.T
        length = (centers**2).sum(axis=1)[:, None]

        def judge(where: slice, block: Matrix) -> None:
            rows = unit_rows(block)
            # A row per centre: the minimum over few long rows is quick, over many short ones not.
            squares = length - (rows @ toward).T + ((rows @ self.projection) ** 2).sum(axis=1)
            if n_groups > 1:
                squares = squares.T.reshape(-1, n_groups, n_clusters)[self._group(rows)].T
            nearest = squares.argmin(axis=0), np.arange(len(rows))
            first = np.maximum(squares[nearest], 0)
            squares[nearest] = np.inf
            second = squares.min(axis=0)
            ratio = np.divide(first, second, out=np.ones_like(first), where=second > 0)
            out[where] = 1 - np.sqrt(ratio)

        with blas_on_one_thread() as threads:
            for_each(Rows(embedding[:, : len(self.projection)]), judge, threads)
        return out


def cluster(
    embedding: Array,
    n_clusters: int,
    *,
    sample: NDArray[np.intp],
    groups: NDArray[np.intp] | None = None,
    columns: int | None = None,
    previous: NDArray[np.intp] | None = None,
    start: Literal["random", "ward"] = "random",
    sharpen: bool = False,
    n_init: int = 10,
    seed: int = 0,
) -> Clustering:
    """Cluster the rows of an embedding by k-means, after scaling them to unit length.

    Parameters
    ----------
    embedding : ndarray of shape (n_samples, n_components)
        The rows.
    n_clusters : int
        How many clusters.
    sample : ndarray of int
        The rows that k-means sees (see `sample_size`), in an order that depends on who they are
        and not on where they stand, so that the result does not depend on that either. The random
        starts compete on the first quarter of a full sample, the best one goes on with all of it.
    groups : ndarray of int, optional
        The group of each row (0, 1, …), if there are groups that nothing ties together; their rows
        are at right angles. Each is clustered by itself if sizes tell which of their clusters
        belong together (see `told_by_size`).
    columns : int, optional
        How many leading columns k-means looks at; all of them if not given.
    previous : ndarray of int, optional
        Labels before the last fold, −1 for new samples. They are one more start where that may
        help, and the new clusters take over their numbers. There may have been more clusters then,
        or fewer.
    start : {"random", "ward"}
        Starts by k-means++, or from trees that Ward's method grows.
    sharpen : bool, default=False
        Whether k-means goes on in the directions that tell its clusters apart, in all columns.
    n_init : int, default=10
        How many starts; the one with the least inertia wins.
    seed : int, default=0
        Seed of the starts.

    Returns
    -------
    Clustering

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.clustering import cluster
    >>> rows = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> cluster(rows, 2, sample=np.arange(4), previous=np.array([1, 1, 0, -1])).labels
    array([1, 1, 0, 0])
    """
    read = partial(
        _read,
        n_clusters=n_clusters,
        columns=columns,
        start=start,
        sharpen=sharpen,
        n_init=n_init,
        seed=seed,
    )
    rows, found = embedding[sample], None
    if groups is not None:
        found = _paired(read, rows, groups[sample], n_clusters, seed)
    if found is None:
        found = read(rows, None if previous is None else previous[sample])
    labels = found.assign(embedding)
    if previous is None:
        return replace(found, labels=labels)
    new_name = match(previous, labels, n_clusters)
    centers = found.centers.take(np.argsort(new_name), axis=1)
    return Clustering(new_name[labels], found.projection, centers)


def settle(
    embedding: Array,
    labels: NDArray[np.intp],
    n_clusters: int,
    *,
    groups: NDArray[np.intp] | None = None,
    sharpen: bool = False,
) -> Clustering:
    """Return clusters made of their samples alone, as for `cluster`; nothing is near an empty one.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.clustering import settle
    >>> rows = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> settle(rows, np.array([2, 2, 0, 0]), 3).assign(rows)
    array([2, 2, 0, 0])
    """
    if groups is not None:
        found, turns = [], []
        for group in np.unique(groups):
            rows = embedding[groups == group]
            turns.append(_main_directions(rows, n_clusters))
            found.append(
                settle(rows @ turns[-1], labels[groups == group], n_clusters, sharpen=sharpen)
            )
        pairs = zip(found, turns, strict=True)
        projection = np.hstack([turn @ one.projection for one, turn in pairs])
        return Clustering(labels, projection, _side_by_side([one.centers[0] for one in found]))
    rows = unit_rows(embedding).astype(np.float64)
    used, where = np.unique(labels, return_inverse=True)
    center, directions = means(rows, where, used.size), None
    if sharpen and 1 < used.size < len(rows):
        with blas_on_one_thread():
            directions = _discriminant(rows, where, used.size)
    projection = np.eye(rows.shape[1]) if directions is None else directions
    center = center @ projection
    centers = np.full((n_clusters, center.shape[1]), 1e3 * (1 + np.abs(center).max()))
    centers[used] = center
    return Clustering(labels, projection, np.stack([centers]))


def match(
    previous: NDArray[np.intp], labels: NDArray[np.intp], n_clusters: int
) -> NDArray[np.intp]:
    """Return, for each cluster, the number under which most of its samples were known before.

    There may have been more clusters, or fewer: numbers that are too high now are given up, and
    clusters without a number get those that are free.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.clustering import match
    >>> match(np.array([2, 2, 0, 1, -1]), np.array([0, 0, 1, 2, 2]), 3)
    array([2, 0, 1])
    """
    known = (previous >= 0) & (previous < n_clusters)
    together = np.zeros((n_clusters, n_clusters), np.intp)
    np.add.at(together, (labels[known], previous[known]), 1)
    return np.asarray(linear_sum_assignment(together, maximize=True)[1])


def told_by_size(sizes: NDArray[np.intp], seed: int = 0) -> float:
    """Return how surely the clusters of several groups can be told apart by their size.

    If samples are in a group by chance, a cluster has about the same share of all groups. Then the
    largest belong together, and so on, unless sizes are so similar that chance decides. This is
    the share of samples whose cluster would keep its partners if all samples were drawn anew.

    Parameters
    ----------
    sizes : ndarray of int, shape (n_groups, n_clusters)
        How many samples the clusters of each group have, from the largest to the smallest.
    seed : int, default=0
        Seed of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.clustering import told_by_size
    >>> sure = told_by_size(np.array([[500, 300, 200], [60, 30, 10]]))
    >>> unsure = told_by_size(np.array([[340, 333, 327], [34, 33, 33]]))
    >>> sure > 0.9, unsure < 0.5
    (True, True)
    """
    share = sizes / sizes.sum(axis=1, keepdims=True)
    random = np.random.default_rng(seed)
    drawn = random.multinomial(sizes.sum(axis=1), share, size=(200, len(sizes)))
    rank = np.argsort(-drawn, axis=2, kind="stable")
    kept = (rank == rank[:, :1]).all(axis=1)
    return float((share.mean(axis=0)[rank[:, 0]] * kept).sum(axis=1).mean())


def _paired(
    read: Callable[[Array, None], Clustering],
    embedding: Array,
    groups: NDArray[np.intp],
    n_clusters: int,
    seed: int,
) -> Clustering | None:
    """Cluster each group by itself and pair the clusters by size; None if sizes do not tell."""
    members = [embedding[groups == group] for group in range(groups.max() + 1)]
    if min(map(len, members)) < n_clusters:
        return None
    turns = [_main_directions(rows, n_clusters) for rows in members]
    found = [read(rows @ turn, None) for rows, turn in zip(members, turns, strict=True)]
    sizes = np.array([np.bincount(one.labels, minlength=n_clusters) for one in found])
    order = np.argsort(-sizes, axis=1, kind="stable")
    if told_by_size(np.take_along_axis(sizes, order, axis=1), seed) < 0.5:
        return None
    pairs = zip(found, turns, strict=True)
    projection = np.hstack([turn[:, : len(one.projection)] @ one.projection for one, turn in pairs])
    by_size = [one.centers[0, which] for one, which in zip(found, order, strict=True)]
    return Clustering(np.empty(0, np.intp), projection, _side_by_side(by_size))


def _main_directions(rows: Array, n_clusters: int) -> Array:
    """Return as many as are enough for a group: other columns serve to complete what it lacks."""
    return np.asarray(np.linalg.eigh(rows.T @ rows)[1][:, : -n_clusters - 1 : -1])


def _side_by_side(centers: list[Array]) -> Array:
    """Return the centres of groups that have directions of their own."""
    n_groups, n_clusters = len(centers), len(centers[0])
    return np.asarray(linalg.block_diag(*centers).reshape(n_groups, n_clusters, -1))


def _read(
    embedding: Array,
    known: NDArray[np.intp] | None,
    *,
    n_clusters: int,
    columns: int | None,
    start: Literal["random", "ward"],
    sharpen: bool,
    n_init: int,
    seed: int,
) -> Clustering:
    """Cluster some rows; `known` are the labels they had before."""
    rows = unit_rows(embedding[:, :columns])
    few = sample_size(n_clusters) // 4
    if start == "ward":
        rows = rows.astype(np.float32)
        with blas_on_one_thread():
            before = None if known is None else known[:few]
            best = _from_trees(rows[:few], embedding[:few], before, n_clusters, n_init)
            if len(rows) > few:
                best = lloyd(rows, best.centers)
    else:
        best = _from_random(rows, few, known, n_clusters, n_init, seed)
    projection = np.eye(rows.shape[1])
    if sharpen and 1 < n_clusters < len(rows):
        with blas_on_one_thread():
            projection, best = _sharpened(unit_rows(embedding), best)
    return Clustering(best.labels, projection, np.stack([best.centers]))


def _means_before(rows: Array, known: NDArray[np.intp], n_clusters: int) -> Array | None:
    """Return the centres of an earlier clustering, None if it had not as many clusters."""
    before = known >= 0
    if known.max(initial=-1) >= n_clusters:
        return None
    centers = means(rows[before], known[before], n_clusters)
    return centers if np.isfinite(centers).all() else None


def _from_random(
    rows: Array,
    few: int,
    known: NDArray[np.intp] | None,
    n_clusters: int,
    n_init: int,
    seed: int,
) -> Means:
    """Start k-means at random on a few rows, and from an earlier clustering if there is one."""
    # One thread is faster until the work per thread outweighs waking it up.
    with all_on_one_thread() if rows.size < 2**20 else blas_on_one_thread():
        best = KMeans(n_clusters, n_init=n_init, random_state=seed).fit(rows[:few])
        if len(rows) > few:
            best = KMeans(n_clusters, init=best.cluster_centers_, n_init=1).fit(rows)
        if known is not None:
            start = _means_before(rows, known, n_clusters)
            if start is not None:
                warm = KMeans(n_clusters, init=start, n_init=1).fit(rows)
                best = min(warm, best, key=lambda model: model.inertia_)
    return Means(best.labels_, best.cluster_centers_)


def _from_trees(
    rows: Array,
    embedding: Array,
    known: NDArray[np.intp] | None,
    n_clusters: int,
    n_init: int,
) -> Means:
    """Start k-means on some rows from the trees that Ward's method grows.

    Each tree grows on another few hundred rows, if there are more, and looks at another part of
    the leading columns of the embedding. If it sees less than half of the rows, it may miss what an
    earlier clustering of all of them knew, so that is one more start. All columns judge who is
    best: they change less from fold to fold than the leading ones.
    """
    most = min(len(rows), max(TREE, 20 * n_clusters))
    everything = unit_rows(embedding)
    found = []
    if known is not None and 2 * most <= len(rows):
        warm = _means_before(rows, known, n_clusters)
        found = [] if warm is None else [lloyd(rows, warm)]
    for i, share in zip(range(n_init), cycle((1, 2 / 3, 1 / 3, 5 / 6, 1 / 2)), strict=False):
        part = np.arange(i * most, (i + 1) * most) % len(rows)
        columns = max(2, int(share * embedding.shape[1]))
        tree = fcluster(ward(unit_rows(embedding[part, :columns])), n_clusters, "maxclust") - 1
        start = means(rows[part], tree, n_clusters)
        # A tree has fewer branches than asked for if fewer rows are distinct.
        found.append(lloyd(rows, np.where(np.isnan(start), rows[:1], start)))
    return min(found, key=lambda one: inertia(everything, one.labels, n_clusters))


def _sharpened(rows: Array, found: Means, rounds: int = 3) -> tuple[Array, Means]:
    """Return the discriminant directions of some clusters, and what k-means finds in them."""
    n_clusters, columns = found.centers.shape
    projection = np.eye(columns)
    for _ in range(rounds):
        directions = _discriminant(rows, found.labels, n_clusters)
        if directions is None:
            break
        projection, center = directions, means(rows, found.labels, n_clusters)
        before, found = found, lloyd(rows @ projection, center @ projection)
        if np.array_equal(found.labels, before.labels):
            break
    return projection, found


def _discriminant(rows: Array, labels: NDArray[np.intp], n_clusters: int) -> Array | None:
    """Return the directions that tell clusters apart; None if these are single points, or empty.

    What varies within clusters counts less there, what varies between them more. Their scatter is
    shrunk towards that of a ball, by as much as few rows demand (oracle approximating shrinkage).
    """
    size = np.bincount(labels, minlength=n_clusters)[:, None]
    center = means(rows, labels, n_clusters)
    within = rows.T @ rows - (size * center).T @ center
    if not size.all() or np.trace(within) < len(within) * np.finfo(rows.dtype).eps:
        return None
    values, V = np.linalg.eigh(within)
    whiten = V / np.sqrt(shrunk(values, len(rows) - n_clusters))
    apart = np.sqrt(size) * ((center - size.T @ center / size.sum()) @ whiten)
    return np.asarray(whiten @ np.linalg.svd(apart, full_matrices=False)[2][: n_clusters - 1].T)


def shrunk(values: Array, n: int) -> Array:
    """Return the eigenvalues of a scatter matrix, as near to their mean as few rows demand.

    This is oracle approximating shrinkage: the less n rows say about the shape of a scatter, the
    more it is taken for a ball.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.clustering import shrunk
    >>> shrunk(np.array([1.0, 2.0, 9.0]), 10).round(1)
    array([2.7, 3.1, 6.2])
    >>> shrunk(np.array([1.0, 2.0, 9.0]), 10_000).round(1)
    array([1., 2., 9.])
    """
    total, squares = values.sum(), (values**2).sum()
    spread = (n + 1) * (squares - total**2 / values.size)
    share = min((squares + total**2) / spread, 1) if spread > 0 else 1
    return np.asarray((1 - share) * np.maximum(values, 0) + share * values.mean())
