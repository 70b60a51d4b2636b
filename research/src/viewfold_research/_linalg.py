"""Types of arrays, and the small linear algebra that several methods share."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Array: TypeAlias = NDArray[Any]
"""A dense array."""

Matrix: TypeAlias = Any
"""An ndarray or a csr_array. SciPy has no types, so this is no union."""


def unit_rows(rows: Array) -> Array:
    """Return rows of length 1; a row of zeros stays as it is."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1).astype(rows.dtype))


def polar(C: Array) -> Array:
    """Return the polar factor U Vᵀ of a small matrix C = U S Vᵀ.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research._linalg import polar
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

    Directions in which M vanishes stay zero, so that the result is unique.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research._linalg import inverse_sqrt
    >>> inverse_sqrt(np.diag([4.0, 0.0]))
    (array([[0.5, 0. ],
           [0. , 0. ]]), inf)
    """
    values, V = linalg.eigh(M, driver="evd", check_finite=False)
    keep = values > 1e-13 * values[-1]
    V = V[:, keep]
    condition = float(values[-1] / values[0]) if keep.all() else np.inf
    return np.asarray((V / np.sqrt(values[keep])) @ V.T), condition
