"""k-means from given centres: the one engine for all clusters.

It is written with matrix products, so that a run costs little beyond its arithmetic. Rows may have
weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viewfold._util.records import short_repr
from viewfold._util.types import Array
from viewfold.rows.linalg import membership


@dataclass(frozen=True, eq=False)
class Means:
    """What k-means found."""

    __repr__ = short_repr

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
    """Run k-means (Lloyd): move centres to the mean of their rows until they stay.

    A centre without rows moves to the row that is farthest from its own.
    """
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
    """Return the nearest centre of each row."""
    score = rows @ centers.T.astype(rows.dtype, copy=False)
    score -= np.einsum("ij,ij->i", centers, centers).astype(rows.dtype, copy=False) / 2
    return np.asarray(score.argmax(axis=1))


def step(
    rows: Array, centers: Array, labels: NDArray[np.intp], weights: Array | None = None
) -> Array:
    """Return the centres one step later, given the nearest centre of each row."""
    moved = means(rows, labels, len(centers), weights)
    empty = np.flatnonzero(np.isnan(moved[:, 0]))
    if empty.size:
        far = np.argsort(-_distances(rows, centers, labels), kind="stable")
        moved[empty] = rows[far[: empty.size]]
    return moved


def sums(
    rows: Array, labels: NDArray[np.intp], n_clusters: int, weights: Array | None = None
) -> tuple[Array, Array]:
    """Return the sum of each cluster's rows, and its size; both weighted, if there are weights."""
    member = membership(labels, n_clusters, rows.dtype)
    if weights is not None:
        member.data = weights.astype(rows.dtype)
    return np.asarray(member @ rows), np.asarray(member.sum(axis=1))


def means(
    rows: Array, labels: NDArray[np.intp], n_clusters: int, weights: Array | None = None
) -> Array:
    """Return the mean of each cluster's rows, NaN for an empty cluster."""
    total, size = sums(rows, labels, n_clusters, weights)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / size[:, None])


def inertia(
    rows: Array, labels: NDArray[np.intp], n_clusters: int, weights: Array | None = None
) -> float:
    """Return the sum of squared distances of the rows to the means of their clusters."""
    apart = _distances(rows, means(rows, labels, n_clusters, weights), labels)
    return float((apart if weights is None else apart * weights).sum(dtype=np.float64))


def _distances(rows: Array, centers: Array, labels: NDArray[np.intp]) -> Array:
    """Return the squared distance of each row to its centre."""
    apart = rows - centers[labels]
    return np.asarray(np.einsum("ij,ij->i", apart, apart))
