"""How well rows lie in their clusters, without true classes: the silhouette, in linear time."""

from __future__ import annotations

from functools import partial

import numpy as np

from viewfold._util.types import Array
from viewfold.method.kmeans import sums
from viewfold.rows import Engine, RowSet
from viewfold.rows.linalg import unit_rows


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
