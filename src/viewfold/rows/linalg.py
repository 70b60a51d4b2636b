"""Small linear algebra: what is done with matrices that fit in a cache, and with one row block.

Nothing here knows where rows live: a product over all rows is ``engine.reduce(gram, rows)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import DTypeLike, NDArray

from viewfold._util.types import Array, Matrix

# Penalties from which `ridge` chooses, relative to the mean eigenvalue of AᵀA.
PENALTIES = np.logspace(-2, 3, 16)


def is_sparse(block: Any) -> bool:
    """Tell a sparse matrix; a program that has none need not import SciPy's."""
    return not isinstance(block, np.ndarray) and bool(scipy.sparse.issparse(block))


def gram(block: Matrix) -> Array:
    """Return AᵀA of a row block, in double precision."""
    block = block.astype(np.float64, copy=False)
    return np.asarray(block.T @ block)


def unit_rows(rows: Array) -> Array:
    """Return rows of length 1; a row of zeros stays as it is."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1).astype(rows.dtype))


def damped(rows: Array) -> Array:
    """Return rows divided by the square root of their length, x / √‖x‖: outliers count less."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.sqrt(np.where(length > 0, length, 1)))


def membership(
    labels: NDArray[np.intp], n: int, dtype: DTypeLike = np.float64
) -> scipy.sparse.csc_array:
    """Return the indicator matrix M of labels: M[l, i] = 1 if row i has label l, else 0.

    ``M @ A`` sums the rows of A by label.
    """
    size = labels.size
    # scipy does not look at indices, and would write to memory that is not its own.
    if size and not 0 <= labels.min() <= labels.max() < n:
        raise ValueError(
            f"Labels go from {labels.min()} to {labels.max()}, but there are {n} clusters."
        )
    return scipy.sparse.csc_array(
        (np.ones(size, dtype), labels, np.arange(size + 1)), shape=(n, size)
    )


def polar(C: Array) -> Array:
    """Return the polar factor U Vᵀ of a small matrix C = U S Vᵀ."""
    if C.shape[0] >= C.shape[1] > 64:  # then half the cost of an SVD, if C is far from singular
        T, condition = inverse_sqrt(C.T @ C)
        if condition < 1e5:
            return np.asarray(C @ T)
    U, _, Vt = scipy.linalg.svd(C, full_matrices=False, check_finite=False)
    return np.asarray(U @ Vt)


def inverse_sqrt(M: Array) -> tuple[Array, float]:
    """Return M^(-1/2) of a symmetric M ≥ 0, and the condition of M.

    ``A @ inverse_sqrt(A.T @ A)`` is the polar factor of A. If A has not full rank, an SVD fills
    the missing part of the factor with arbitrary vectors; here it is zero, which is unique.
    """
    values, V = scipy.linalg.eigh(M, driver="evd", check_finite=False)
    keep = values > 1e-13 * values[-1]
    V = V[:, keep]
    condition = float(values[-1] / values[0]) if keep.all() else np.inf
    return np.asarray((V / np.sqrt(values[keep])) @ V.T), condition


def triangle(block: Array) -> Array:
    """Return R of a QR factorisation, RᵀR = AᵀA. R of stacked Rs is R of all rows."""
    R = scipy.linalg.qr(block.astype(np.float64), mode="r", overwrite_a=True, check_finite=False)[0]
    return np.asarray(R[: block.shape[1]])


def whitener_of(R: Array, n: int, eps: float) -> Array:
    """Return T = (AᵀA)^(-1/2), so that ``A @ T`` is the polar factor of A, from R of its n rows."""
    _, s, Vt = scipy.linalg.svd(R, check_finite=False)
    keep = s > max(n, R.shape[1]) * eps * s[0]
    return np.asarray((Vt[: s.size][keep].T / s[keep]) @ Vt[: s.size][keep])


def top_eigenvectors(M: Array, most: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues of a symmetric M ≥ 0, descending, and their vectors.

    Values that are zero to round-off are left out. The sign of a vector is such that its largest
    entry is positive.
    """
    d = M.shape[0]
    if not d:
        return np.empty(0), np.empty((0, 0))
    first = max(d - most, 0)
    if most > d / 6:  # all of them are cheaper by divide and conquer
        values, vectors = scipy.linalg.eigh(M, driver="evd", check_finite=False)
        values, vectors = values[first:], vectors[:, first:]
    else:
        values, vectors = scipy.linalg.eigh(M, subset_by_index=(first, d - 1), check_finite=False)
    keep = values > 1e-12 * max(values[-1], 0)
    values, vectors = values[keep][::-1], vectors[:, keep][:, ::-1]
    peak = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return values, vectors * np.sign(peak)


def eigenbasis(M: Array) -> Array:
    """Return all eigenvectors of a symmetric M, largest value first, signs as above."""
    _, Q = scipy.linalg.eigh(M, check_finite=False)
    Q = Q[:, ::-1]
    return np.asarray(Q * np.sign(Q[np.abs(Q).argmax(axis=0), np.arange(Q.shape[1])]))


def shrink_eigenvalues(values: Array, n: float) -> Array:
    """Shrink the eigenvalues of a scatter matrix toward their mean (OAS).

    λ → (1 − ρ) λ + ρ mean(λ), where ρ is that of oracle approximating shrinkage: the fewer rows n
    the scatter was computed from, the more it is taken for a multiple of the identity.
    """
    total, squares = values.sum(), (values**2).sum()
    spread = (n + 1) * (squares - total**2 / values.size)
    share = min((squares + total**2) / spread, 1) if spread > 0 else 1
    return np.asarray((1 - share) * np.maximum(values, 0) + share * values.mean())


@dataclass(frozen=True)
class Regression:
    """A ridge regression of Y on A: Y ≈ A C."""

    coefficients: Array  # C
    basis: Array  # the principal directions of Y
    # The share of ‖Y‖² in each of them that is explained, by cross-validation, from 0 to 1.
    explained: Array
    # The same for all of ‖Y‖², with one penalty for all directions: choosing one for each would
    # explain part of pure noise.
    share: float


def ridge(AA: Array, AY: Array, YY: Array, n: int) -> Regression:
    """Regress Y on A by ridge regression, with a penalty for each principal direction of Y.

    C = (AᵀA + λI)⁻¹ AᵀY; each λ is chosen by generalised cross-validation, in closed form. AA, AY
    and YY are AᵀA, AᵀY and YᵀY of n rows; with less than two rows, the prediction is zero.
    """
    energy, R = scipy.linalg.eigh(YY, driver="evd", check_finite=False)
    energy = np.maximum(energy, 0)
    if n < 2:
        return Regression(np.zeros_like(AY), R, np.zeros_like(energy), 0.0)
    values, Q = scipy.linalg.eigh(AA, driver="evd", check_finite=False)
    values = np.maximum(values, 0)
    # If all rows of A are zero, nothing is explained, whatever the penalty.
    penalty = PENALTIES[:, None] * (values.mean() if values.mean() > 1e-100 else 1.0)
    inverse = 1 / (values + penalty)
    C = Q.T @ AY @ R
    residual = energy - 2 * inverse @ C**2 + (inverse**2 * values) @ C**2
    freedom = np.maximum(1 - (inverse * values).sum(axis=1) / n, 1e-3)
    error = np.maximum(residual, 0) / freedom[:, None] ** 2
    best = error.argmin(axis=0)
    left = np.divide(error.min(axis=0), energy, out=np.ones_like(energy), where=energy > 0)
    left_of_all = error.sum(axis=1).min() / max(energy.sum(), np.finfo(float).tiny)
    return Regression(
        coefficients=Q @ (C / (values[:, None] + penalty[best, 0])) @ R.T,
        basis=R,
        explained=np.maximum(1 - left, 0),
        share=max(1 - float(left_of_all), 0.0),
    )


def filled(block: Matrix, values: Array, instead: Array | None = None) -> Matrix:
    """Return a block with a value for each column in the place of NaN.

    Columns for which `instead` is true have that value throughout. A block without either is
    returned as it is.
    """
    data = block.data if is_sparse(block) else block
    gone = np.isnan(data)
    if instead is not None and instead.any():
        gone |= instead[block.indices] if is_sparse(block) else instead
    if not gone.any():
        return block
    if is_sparse(block):
        block = block.copy()
        block.data[gone] = values[block.indices[gone]]
        return block
    return np.where(gone, values.astype(data.dtype), data)


def pick_columns(block: Matrix, columns: NDArray[np.intp]) -> Matrix:
    """Return columns by number, in the given order; −1 is a column of missing cells."""
    if (columns < 0).any():  # they come last, where −1 is
        gone = np.full((block.shape[0], 1), np.nan, block.dtype)
        both = [block, gone]
        block = scipy.sparse.hstack(both, format="csr") if is_sparse(block) else np.hstack(both)
    # Row by row in memory, as a block that is in order.
    return block[:, columns] if is_sparse(block) else np.take(block, columns, axis=1)


def column_sums(X: Matrix) -> Array:
    return np.asarray(X.sum(axis=0, dtype=np.float64) if is_sparse(X) else X.sum(axis=0))


def dense(M: Matrix) -> Array:
    return np.asarray(M.toarray() if hasattr(M, "toarray") else M)
