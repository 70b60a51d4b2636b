"""Where k-means starts: from trees that Ward's method grows, or at random; the best one counts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.cluster.hierarchy import fcluster, ward
from scipy.spatial.distance import squareform
from sklearn.cluster import kmeans_plusplus

from viewfold._util import constants
from viewfold._util.types import Array
from viewfold.method.kmeans import Means, inertia, lloyd, means
from viewfold.rows.linalg import unit_rows


def best_of(rows: Array, starts: Iterator[Array], weights: Array | None) -> Means:
    """Run k-means from each start, and return the result with the least inertia.

    Only the three that are ahead after two steps are run to the end.
    """

    def left(found: Means) -> float:
        return inertia(rows, found.labels, len(found.centers), weights)

    begun = [lloyd(rows, start, weights, steps=2) for start in starts]
    ahead = sorted(begun, key=left)[:3]
    return min((lloyd(rows, one.centers, weights) for one in ahead), key=left)


def at_random(rows: Array, n_clusters: int, n_init: int, seed: int) -> Iterator[Array]:
    """Give centres by k-means++."""
    random = np.random.RandomState(seed)
    for _ in range(n_init):
        yield kmeans_plusplus(rows, n_clusters, random_state=random)[0]


def from_trees(
    rows: Array, embedding: Array, n_clusters: int, n_init: int, weights: Array | None
) -> Iterator[Array]:
    """Give the means of the branches of trees that Ward's method grows.

    Each tree uses other rows (a few hundred), if there are more, and fewer of the columns.
    """
    most = min(len(rows), max(constants.TREE, 10 * n_clusters))
    for i in range(n_init):
        part = np.arange(i * most, (i + 1) * most) % len(rows)
        columns = max(2, embedding.shape[1] * (n_init - i) // n_init)
        tree = fcluster(grown(embedding[part, :columns]), n_clusters, "maxclust") - 1
        start = means(rows[part], tree, n_clusters, None if weights is None else weights[part])
        # A tree has fewer branches than asked for if fewer rows are distinct.
        yield np.where(np.isnan(start), rows[:1], start)


def grown(rows: Array) -> Array:
    """Grow a tree on rows scaled to unit length, by Ward's method; see SciPy's ``linkage``."""
    unit = unit_rows(rows.astype(np.float64))
    squares = np.einsum("ij,ij->i", unit, unit) / 2
    # Distances from products of rows: many times as fast as pair by pair.
    near = unit @ unit.T
    near -= squares
    near -= squares[:, None]
    apart = squareform(near, checks=False)
    return np.asarray(ward(np.sqrt(np.maximum(-2 * apart, 0))))
