"""Clusters from an embedding: k-means on unit rows, with labels that stay the same over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from viewfold.blocks import Array, Rows

MOST_ROWS = 65_536
"""k-means sees at most this many rows (and 256 for each cluster); all rows get a label."""


@dataclass(frozen=True)
class Clustering:
    """Clusters of the rows of an embedding.

    Attributes
    ----------
    labels : ndarray of int, shape (n_samples,)
        The cluster of each row.
    centers : ndarray of shape (n_clusters, n_components)
        Their centres, among rows of unit length.
    """

    labels: NDArray[np.intp]
    centers: Array

    def assign(self, embedding: Array) -> NDArray[np.intp]:
        """Return the nearest cluster of each row."""
        labels = np.empty(len(embedding), np.intp)
        for where, block in Rows(embedding).blocks():
            labels[where] = np.argmin(_distances(unit_rows(block), self.centers), axis=1)
        return labels

    def confidence(self, embedding: Array) -> Array:
        """Return how clear each row's cluster is.

        One minus the distance to the nearest centre over the distance to the second nearest: 0
        halfway between two clusters, 1 at a centre.
        """
        if len(self.centers) == 1:
            return np.ones(len(embedding))
        out = np.empty(len(embedding))
        for where, block in Rows(embedding).blocks():
            squared = np.partition(_distances(unit_rows(block), self.centers), 1, axis=1)
            nearest, second = np.sqrt(np.maximum(squared[:, :2], 0)).T
            out[where] = 1 - np.divide(nearest, second, out=np.ones_like(nearest), where=second > 0)
        return out


def cluster(
    embedding: Array,
    n_clusters: int,
    *,
    order: NDArray[np.intp],
    previous: NDArray[np.intp] | None = None,
    n_init: int = 10,
    random_state: Any = None,
) -> Clustering:
    """Cluster the rows of an embedding by k-means, after scaling them to unit length.

    Parameters
    ----------
    embedding : ndarray of shape (n_samples, n_components)
        The rows.
    n_clusters : int
        How many clusters.
    order : ndarray of int
        An order of the rows that depends on who they are, not on where they stand, so that the
        result does not depend on that either.
    previous : ndarray of int, optional
        Labels before the last fold, −1 for new samples. They are one more start, and the new
        clusters take over their numbers.
    n_init : int, default=10
        Random starts; the one with the least inertia wins.
    random_state : int, RandomState or None
        Seed of the starts.

    Returns
    -------
    Clustering

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.clustering import cluster
    >>> rows = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> cluster(rows, 2, order=np.arange(4), previous=np.array([1, 1, 0, -1])).labels
    array([1, 1, 0, 0])
    """
    sample = order[: max(MOST_ROWS, 256 * n_clusters)]
    rows = unit_rows(embedding[sample])
    # One thread is faster until the work per thread outweighs waking it up.
    with threadpool_limits(1 if rows.size < 2**20 else None):
        best = KMeans(n_clusters, n_init=n_init, random_state=random_state).fit(rows)
        if previous is not None:
            start = _means(rows, previous[sample], n_clusters)
            if start is not None:
                warm = KMeans(n_clusters, init=start, n_init=1).fit(rows)
                best = min(warm, best, key=lambda model: model.inertia_)
    found = Clustering(np.empty(0, np.intp), best.cluster_centers_)
    labels = found.assign(embedding)
    if previous is None:
        return Clustering(labels, found.centers)
    new_name = match(previous, labels, n_clusters)
    return Clustering(new_name[labels], found.centers[np.argsort(new_name)])


def match(
    previous: NDArray[np.intp], labels: NDArray[np.intp], n_clusters: int
) -> NDArray[np.intp]:
    """Return, for each cluster, the number under which most of its samples were known before.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.clustering import match
    >>> match(np.array([2, 2, 0, 1, -1]), np.array([0, 0, 1, 2, 2]), 3)
    array([2, 0, 1])
    """
    known = previous >= 0
    together = np.zeros((n_clusters, n_clusters), np.intp)
    np.add.at(together, (labels[known], previous[known]), 1)
    return np.asarray(linear_sum_assignment(together, maximize=True)[1])


def unit_rows(rows: Array) -> Array:
    """Return rows of length 1; a row of zeros stays as it is."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1).astype(rows.dtype))


def _means(rows: Array, labels: NDArray[np.intp], n_clusters: int) -> Array | None:
    """Return the mean of each cluster, None if one of them is empty."""
    known = labels >= 0
    count = np.bincount(labels[known], minlength=n_clusters)
    if not count.all():
        return None
    member = np.zeros((len(rows), n_clusters), rows.dtype)
    member[known, labels[known]] = 1
    return np.asarray((member.T @ rows) / count[:, None].astype(rows.dtype))


def _distances(rows: Array, centers: Array) -> Array:
    centers = centers.astype(rows.dtype, copy=False)
    squared = (rows**2).sum(axis=1, keepdims=True) + (centers**2).sum(axis=1)
    squared -= 2 * (rows @ centers.T)
    return np.asarray(squared)
