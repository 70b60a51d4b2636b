"""Where k-means starts: at random, from trees that Ward's method grows, from earlier clusters."""

from __future__ import annotations

from itertools import cycle

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, ward
from sklearn.cluster import KMeans

from viewfold._types import Array
from viewfold.clustering.kmeans import Means, inertia, lloyd, means
from viewfold.engine import all_on_one_thread, blas_on_one_thread
from viewfold.linalg import unit_rows

TREE = 300
"""A tree is grown on so many rows, or 20 for each cluster."""


def from_random(
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


def from_trees(
    rows: Array,
    embedding: Array,
    known: NDArray[np.intp] | None,
    n_clusters: int,
    n_init: int,
) -> Means:
    """Start k-means on some rows from the trees that Ward's method grows.

    Each tree uses other rows (a few hundred), if there are more, and another number of leading
    columns. If trees see less than half of the rows, the earlier clustering is one more start. The
    result with the least inertia in all columns is taken: these change less from fold to fold than
    the leading ones.
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


def _means_before(rows: Array, known: NDArray[np.intp], n_clusters: int) -> Array | None:
    """Return the centres of an earlier clustering, None if it had not as many clusters."""
    before = known >= 0
    if known.max(initial=-1) >= n_clusters:
        return None
    centers = means(rows[before], known[before], n_clusters)
    return centers if np.isfinite(centers).all() else None
