"""Non-negative factorisation X ≈ V Uᵀ by multiplicative steps, and the start that several share.

A view has one row per sample: X is n × d, V (n × k) belongs to the samples and U (d × k) to the
features. A step costs two products with X, which may be sparse or a `Filled` view.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from viewfold_research._linalg import Array, Matrix


@dataclass(frozen=True)
class Filled:
    """A view times a number, with the mean of its rows in place of those that are missing.

    It multiplies like the matrix, of which it makes no copy: Y = c (X + m μᵀ), where m marks the
    missing rows, which are zero in X.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research.baselines._nmf import Filled
    >>> Y = Filled.of(np.array([[1.0, 2.0], [0.0, 0.0], [3.0, 2.0]]), np.array([True, False, True]))
    >>> Y @ np.eye(2) * 8
    array([[1., 2.],
           [2., 2.],
           [3., 2.]])
    """

    X: Matrix
    missing: Array
    mean: Array
    factor: float
    flipped: bool = False

    @classmethod
    def of(cls, X: Matrix, present: NDArray[np.bool_]) -> Self:
        """Fill a view, and divide it by the sum of what is there."""
        total = float(X.sum())
        mean = np.asarray(X.sum(axis=0)).ravel() / max(np.count_nonzero(present), 1)
        return cls(X, (~present).astype(float), mean, 1 / total if total > 0 else 1.0)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n, d = self.X.shape
        return (d, n) if self.flipped else (n, d)

    @property
    def T(self) -> Filled:
        """The transpose."""
        return Filled(self.X, self.missing, self.mean, self.factor, not self.flipped)

    def __matmul__(self, other: Array) -> Array:
        X, left, right = self.X, self.missing, self.mean
        if self.flipped:
            X, left, right = X.T, right, left
        product = np.asarray(X @ other)
        product += np.multiply.outer(left, right @ other)
        product *= self.factor
        return product

    def squared_rows(self) -> Array:
        """Return the squared length of every row."""
        own = squared_rows(self.X) + self.missing * float(self.mean @ self.mean)
        return np.asarray(own * self.factor**2)


def squared_rows(X: Matrix) -> Array:
    """Return the squared length of every row of a matrix."""
    if isinstance(X, Filled):
        return X.squared_rows()
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))


def squared_error(X: Matrix, U: Array, V: Array, weight: Array | None = None) -> float:
    """Return Σᵢ wᵢ ‖xᵢ − vᵢ Uᵀ‖² without forming the n × d residual."""
    rows = squared_rows(X) - 2 * np.einsum("ij,ij->i", X @ U, V)
    rows += np.einsum("ij,ij->i", V @ (U.T @ U), V)
    return float(rows.sum() if weight is None else weight @ rows)


def columns_sum_to_one(U: Array, V: Array, floor: float = 1e-30) -> tuple[Array, Array]:
    """Let the columns of U sum to 1 and leave V Uᵀ as it is."""
    total = np.maximum(U.sum(axis=0), floor)
    return U / total, V * total


def nmf(
    X: Matrix,
    k: int,
    rng: np.random.RandomState,
    V: Array | None = None,
    *,
    n_init: int = 30,
    n_first: int = 50,
    n_steps: int = 200,
) -> tuple[Array, Array]:
    """Factor one view: the best of some short random starts goes on.

    Parameters
    ----------
    X : ndarray, sparse array or Filled of shape (n_samples, n_features)
        A non-negative view.
    k : int
        Number of factors.
    rng : RandomState
        Draws U, and V if it is not given.
    V : ndarray of shape (n_samples, k), optional
        Where every start begins.
    n_init, n_first, n_steps : int
        Starts, steps of each, further steps of the best.

    Returns
    -------
    U : ndarray of shape (n_features, k)
        Columns that sum to 1.
    V : ndarray of shape (n_samples, k)
    """
    n, d = X.shape
    best, least = None, np.inf
    for _ in range(n_init):
        U = rng.uniform(size=(d, k))
        U /= np.linalg.norm(U, axis=0)
        start = V
        if start is None:
            start = rng.uniform(size=(n, k))
            start /= start.sum()
        found = _steps(X, *columns_sum_to_one(U, start), n_first if n_init > 1 else 0)
        error = squared_error(X, *found) if n_init > 1 else 0.0
        if best is None or error < least:
            best, least = found, error
    assert best is not None
    return columns_sum_to_one(*_steps(X, *best, n_steps))


def _steps(X: Matrix, U: Array, V: Array, n_steps: int) -> tuple[Array, Array]:
    """Take multiplicative steps: V, then U.

    The authors' floor of 1e-10 under a denominator is above the denominators themselves where X
    sums to 1 and has some 10⁸ entries.
    """
    for _ in range(n_steps):
        V = V * ((X @ U) / np.maximum(V @ (U.T @ U), 1e-30))
        U = U * ((X.T @ V) / np.maximum(U @ (V.T @ V), 1e-30))
    return U, V


def warm_sweeps(
    views: list[Matrix], k: int, rng: np.random.RandomState, *, n_sweeps: int = 3, **options: int
) -> tuple[list[Array], list[Array]]:
    """Factor each view, beginning where the view before it ended, several times around.

    Parameters
    ----------
    views : list of (n_samples, n_features) matrices
        Non-negative views.
    k : int
        Number of factors.
    rng : RandomState
        For the random starts.
    n_sweeps : int
        How often the views are gone through.
    **options : int
        `n_init`, `n_first` and `n_steps` of `nmf`.

    Returns
    -------
    U, V : list of ndarray
        Of each view, as `nmf` returns them.
    """
    U: list[Array] = [np.empty(0)] * len(views)
    V: list[Array] = [np.empty(0)] * len(views)
    last: Array | None = None
    for _ in range(n_sweeps):
        for v, X in enumerate(views):
            U[v], V[v] = nmf(X, k, rng, last, **options)
            last = V[v]
    return U, V
