"""Linear discriminants of clusters: the directions that separate them best."""

from __future__ import annotations

import numpy as np

from viewfold._util.types import Array
from viewfold.method.kmeans import Means, lloyd, sums
from viewfold.rows.linalg import shrink_eigenvalues


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
    """Return the discriminant directions; None if a cluster is empty, or all are single points.

    The leading eigenvectors of S_w⁻¹ S_b, where S_b is the scatter between clusters and S_w that
    within them, its eigenvalues shrunk toward their mean (OAS), since rows may be few.
    """
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
