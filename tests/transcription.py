"""FCMVC-IV line by line, as published: what viewfold is compared with, never used by it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def polar(A: Array) -> Array:
    """Polar factor by SVD."""
    U, _, Vt = np.linalg.svd(A, full_matrices=False)
    return U @ Vt


def first(X: Array, k: int) -> Array:
    """Return Z of the first view."""
    return polar(X @ np.eye(X.shape[1], k))


def later(
    X: Array,
    Zp: Array,
    rows: Array,
    prev: Array,
    *,
    exact: bool = False,
    tol: float = 1e-5,
    max_iter: int = 100,
) -> tuple[Array, list[float]]:
    """Return Z and the objective of each iteration, with an SVD of the n × k matrix A in each.

    `rows` and `prev` are the places of the view's and the previous samples in the union.
    """
    n, k = max(rows.max(), prev.max()) + 1, Zp.shape[1]
    lacking = np.setdiff1d(np.arange(n), rows)
    H, W = np.eye(X.shape[1], k), np.eye(k)
    objective: list[float] = []
    Z = np.zeros((n, k))
    for i in range(1, max_iter + 1):
        A = np.zeros((n, k))
        A[rows] += X @ H
        A[prev] += Zp @ W.T
        if exact:
            A[lacking] += Z[lacking]
        Z = polar(A)
        W = polar(Z[prev].T @ Zp)
        H = polar(X.T @ Z[rows])
        objective.append(
            0.5 * np.linalg.norm(X - Z[rows] @ H.T) ** 2 - np.trace(Z[prev].T @ Zp @ W.T)
        )
        if i > 2 and abs(objective[-1] - objective[-2]) / abs(objective[-1]) < tol:
            break
    return Z, objective
