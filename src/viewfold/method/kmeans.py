"""k-means with weights: where it starts, Lloyd's steps, and discriminant directions.

It is written with matrix products, so that a run costs little beyond its arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy
from numpy.typing import NDArray

from viewfold._util import constants
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array
from viewfold.rows.linalg import membership, shrink_eigenvalues, unit_rows


@frozen_record
class Means:
    """What k-means found."""

    labels: NDArray[np.intp]  # (n_rows,): the nearest centre of each row
    centers: Array  # (n_clusters, n_columns): the centres


def lloyd(
    rows: Array,
    centers: Array,
    weights: Array | None = None,
    *,
    steps: int = 300,
    tol: float = 1e-4,
) -> Means:
    """Run k-means (Lloyd): move centres to the mean of their rows until they stay."""
    squares = np.einsum("ij,ij->", rows, rows) / rows.size
    small = tol * float(squares - (rows.mean(axis=0) ** 2).mean())
    labels = nearest(rows, centers)
    for _ in range(steps):
        before, at = labels, centers
        centers = step(rows, at, before, weights)
        labels = nearest(rows, centers)
        if ((centers - at) ** 2).sum() <= small or np.array_equal(labels, before):
            break
    return Means(labels, centers)


def nearest(rows: Array, centers: Array) -> NDArray[np.intp]:
    score = rows @ centers.T.astype(rows.dtype, copy=False)
    score -= np.einsum("ij,ij->i", centers, centers).astype(rows.dtype, copy=False) / 2
    return np.asarray(score.argmax(axis=1))


def step(
    rows: Array, centers: Array, labels: NDArray[np.intp], weights: Array | None = None
) -> Array:
    """Return the centres one step later; one without rows goes to the row farthest from its own."""
    moved = means(rows, labels, len(centers), weights)
    empty = np.flatnonzero(np.isnan(moved[:, 0]))
    if empty.size:
        apart = rows - centers[labels]
        far = np.argsort(-np.einsum("ij,ij->i", apart, apart), kind="stable")
        moved[empty] = rows[far[: empty.size]]
    return moved


def sums(
    rows: Array, labels: NDArray[np.intp], n_clusters: int, weights: Array | None = None
) -> tuple[Array, Array]:
    member = membership(labels, n_clusters, rows.dtype)
    if weights is not None:
        member.data = weights.astype(rows.dtype)
    # A product is what `sum` does, without its checks: most of the time of k-means on few rows.
    return np.asarray(member @ rows), np.asarray(member @ np.ones(len(rows), rows.dtype))


def means(
    rows: Array, labels: NDArray[np.intp], n_clusters: int, weights: Array | None = None
) -> Array:
    total, size = sums(rows, labels, n_clusters, weights)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / size[:, None])


def inertia(
    rows: Array, labels: NDArray[np.intp], n_clusters: int, weights: Array | None = None
) -> float:
    apart = rows - means(rows, labels, n_clusters, weights)[labels]
    squares = np.einsum("ij,ij->i", apart, apart)
    return float((squares if weights is None else squares * weights).sum(dtype=np.float64))


def log_volume(rows: Array, labels: NDArray[np.intp], n_clusters: int, weights: Array) -> float:
    """Return log det of the covariance within clusters, shrunk as for discriminants."""
    apart = (rows - means(rows, labels, n_clusters, weights)[labels]) * np.sqrt(weights)[:, None]
    n = effective(weights.sum(), (weights**2).sum())
    values = shrink_eigenvalues(np.linalg.eigvalsh(apart.T @ apart), n) / weights.sum()
    return float(np.log(np.maximum(values, 1e-300)).sum())


def in_discriminants(rows: Array, found: Means, weights: Array) -> tuple[Array, Means]:
    """Alternate between discriminant directions of clusters and k-means in these directions."""
    n_clusters, columns = found.centers.shape
    projection = np.eye(columns)
    heavy = rows * np.sqrt(weights)[:, None]
    products, n = heavy.T @ heavy, effective(weights.sum(), (weights**2).sum())
    for _ in range(10):  # usually the labels stay after one or two rounds
        total, size = sums(rows, found.labels, n_clusters, weights)
        directions = discriminant(products, total, size, n, rows.dtype)
        if directions is None:
            break
        projection, center = directions, total / size[:, None]
        before, found = found, lloyd(rows @ projection, center @ projection, weights)
        if np.array_equal(found.labels, before.labels):
            break
    return projection, found


def effective(total: float, squares: float) -> float:
    """Return how many rows of equal weight say as much as rows with these sums of weights."""
    return float(total**2 / squares) if squares > 0 else 0.0


def discriminant(
    products: Array, total: Array, size: Array, n: float, dtype: np.dtype[np.floating]
) -> Array | None:
    """Return the discriminant directions; None if a cluster is empty, or all are single points."""
    # The leading eigenvectors of S_w⁻¹ S_b, the scatters within and between clusters. Eigenvalues
    # of S_w are shrunk toward their mean (OAS), since rows may be few.
    n_clusters, size = size.size, size[:, None]
    if not size.all():
        return None
    center = total / size.astype(dtype)
    within = products - (size * center).T @ center
    if np.trace(within) < len(within) * np.finfo(dtype).eps:
        return None
    values, V = np.linalg.eigh(within)
    whiten = V / np.sqrt(shrink_eigenvalues(values, max(n - n_clusters, 0)))
    apart = np.sqrt(size) * ((center - size.T @ center / size.sum()) @ whiten)
    return np.asarray(whiten @ np.linalg.svd(apart, full_matrices=False)[2][: n_clusters - 1].T)


def best_of(rows: Array, starts: Iterator[Array], weights: Array | None) -> Means:
    """Run k-means from each start, the three ahead after two steps to the end; return the best."""
    left = lambda one: inertia(rows, one.labels, len(one.centers), weights)  # noqa: E731
    begun = [lloyd(rows, start, weights, steps=2) for start in starts]
    ahead = sorted(begun, key=left)[:3]
    return min((lloyd(rows, one.centers, weights) for one in ahead), key=left)


def at_random(rows: Array, n_clusters: int, n_init: int, seed: int) -> Iterator[Array]:
    from sklearn.cluster import kmeans_plusplus

    random = np.random.RandomState(seed)
    for _ in range(n_init):
        yield kmeans_plusplus(rows, n_clusters, random_state=random)[0]


def from_trees(
    rows: Array, embedding: Array, n_clusters: int, n_init: int, weights: Array | None
) -> Iterator[Array]:
    """Give the means of branches of Ward's trees, each on other rows, and on fewer columns."""
    most = min(len(rows), max(constants.TREE, 10 * n_clusters))
    for i in range(n_init):
        part = np.arange(i * most, (i + 1) * most) % len(rows)
        columns = max(2, embedding.shape[1] * (n_init - i) // n_init)
        whole = grown(embedding[part, :columns])
        tree = scipy.cluster.hierarchy.fcluster(whole, n_clusters, "maxclust") - 1
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
    apart = scipy.spatial.distance.squareform(near, checks=False)
    return np.asarray(scipy.cluster.hierarchy.ward(np.sqrt(np.maximum(-2 * apart, 0))))
