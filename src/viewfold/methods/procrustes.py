"""Polar factors, from small matrices only.

The polar factor of A = U S Vᵀ is U Vᵀ = A (AᵀA)^(-1/2): for a tall A, the eigenvectors of a k × k
matrix are all that is needed.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from viewfold.blocks import Array, Matrix, Rows, for_each, reduce


def polar(C: Array) -> Array:
    """Polar factor of a small matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.methods.procrustes import polar
    >>> polar(np.array([[0.0, -2.0], [3.0, 0.0]]))
    array([[ 0., -1.],
           [ 1.,  0.]])
    """
    if C.shape[0] >= C.shape[1] > 64:  # then half the cost of an SVD, if C is far from singular
        T, condition = inverse_sqrt(C.T @ C)
        if condition < 1e5:
            return np.asarray(C @ T)
    U, _, Vt = linalg.svd(C, full_matrices=False, check_finite=False)
    return np.asarray(U @ Vt)


def inverse_sqrt(M: Array) -> tuple[Array, float]:
    """Return M^(-1/2) of a symmetric M ≥ 0, and the condition of M.

    Directions in which M vanishes stay zero.

    ``A @ inverse_sqrt(A.T @ A)`` is the polar factor of A. If A has not full rank, an SVD fills
    the missing part of the factor with arbitrary vectors; here it is zero, which is unique.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.methods.procrustes import inverse_sqrt
    >>> inverse_sqrt(np.diag([4.0, 0.0]))
    (array([[0.5, 0. ],
           [0. , 0. ]]), inf)
    """
    values, V = linalg.eigh(M, driver="evd", check_finite=False)
    keep = values > 1e-13 * values[-1]
    V = V[:, keep]
    condition = float(values[-1] / values[0]) if keep.all() else np.inf
    return np.asarray((V / np.sqrt(values[keep])) @ V.T), condition


def whitener(A: Array, threads: int = 1) -> Array:
    """Return T such that ``A @ T`` is the polar factor of a tall matrix A.

    Where AᵀA cannot tell a small direction of A from none, a QR factorisation of A does.
    """
    T, condition = inverse_sqrt(gram(Rows(A), threads))
    if condition < 1e8:
        return T
    _, R = linalg.qr(A.astype(np.float64), mode="economic", overwrite_a=True, check_finite=False)
    _, s, Vt = linalg.svd(R, check_finite=False)
    keep = s > max(A.shape) * np.finfo(A.dtype).eps * s[0]
    return np.asarray((Vt[keep].T / s[keep]) @ Vt[keep])


def reorthonormalise(Z: Array, threads: int = 1) -> Array:
    """Take off, in place, what round-off left of ZᵀZ ≠ I; return what Z was multiplied with.

    Forming AᵀA squares the condition of A; one more round on ``A @ (AᵀA)^(-1/2)``, whose condition
    is near 1, makes up for it.
    """
    again, _ = inverse_sqrt(gram(Rows(Z), threads))
    times(Z, again, threads)
    return again


def times(A: Array, M: Array, threads: int = 1) -> None:
    """Multiply a tall matrix by a small square one, in place."""
    M = M.astype(A.dtype)

    def multiply(where: slice, block: Matrix) -> None:
        A[where] = block @ M

    for_each(Rows(A), multiply, threads)


def gram(A: Rows, threads: int = 1) -> Array:
    """Return AᵀA of a tall matrix, in double precision."""
    if not A.shape[0]:
        return np.zeros((A.shape[1], A.shape[1]))

    def product(_: slice, block: Matrix) -> tuple[Array, ...]:
        block = block.astype(np.float64, copy=False)
        return (block.T @ block,)

    return reduce(A, product, threads)[0]
