"""PVC: one non-negative row of coefficients per sample, fitted on the views that it is in.

Every step is a non-negative least-squares problem with k unknowns. Samples that are in the same
views share its matrix, so that the cost is linear in their number.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from viewfold_research._linalg import Array, Matrix, unit_rows
from viewfold_research.baselines._base import Aligned, Baseline, Solution
from viewfold_research.baselines._nmf import squared_error
from viewfold_research.baselines._parameters import COUNT, NON_NEGATIVE, with_parameters
from viewfold_research.baselines._parts import MODE, Part, common, parts, patterns

_PER_ROW = 64  # a pattern of fewer samples is not worth a product of its own


@with_parameters
class PVC(Baseline):
    r"""Partial multi-view clustering: shared sparse non-negative coefficients.

    A sample has one row of coefficients, whichever views it is in, and each view has a basis:

    .. math:: \min_{P, U_v \ge 0} \sum_v \|M_v (X_v - P U_v)\|^2 + \sum_i \lambda_i \|p_i\|_1

    where M_v keeps the samples that view v has, and λ_i is λ times the features of sample i's views
    over k. The rows of P, scaled to length 1, are clustered.

    Cost: O(n k (d + k)) for a round, O(n (d + k)) in memory. Use it on non-negative features of
    many samples. Negative ones are taken, but their negative part is never fitted.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of coefficients.
    sparsity : float, default=0.01
        λ. On samples of length 1, 0.1 makes every coefficient zero.
    mode : {'mask', 'pairs'}, default='mask'
        The method was made for two views. 'mask' is the same model for any number of them. 'pairs'
        runs it on each pair of views, without samples that are in neither, and averages
        their coefficients, rotated to agree.
    max_iter : int, default=20
        Rounds over all samples; before them are as many over the samples that all views have.
    max_sweeps : int, default=50
        Sweeps of coordinate descent in each least-squares problem.
    tol : float, default=1e-6
        Stop when a round lowers the objective by less than this share.
    scale : {'none', 'zscore', 'unit', 'minmax'}, default='none'
        How views are scaled first. The authors leave them as they are.
    random_state : int, RandomState or None, default=None
        Determines the start and k-means.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Rows of P of length 1; a row of zeros stays.
    objective_ : ndarray of shape (n_iter,)
        The objective after each round; it never rises. With pairs, all their rounds in a row.
    n_iter_ : int
        Number of rounds.

    References
    ----------
    Partial multi-view clustering. AAAI, 2014.

    Notes
    -----
    The authors' program watches a sum of norms that are not squared; here it is the objective.
    """

    incomplete: ClassVar[bool] = True
    scalings: ClassVar[tuple[str, ...]] = ("none", "unit", "minmax")
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"sparsity": (1e-4, 1e-3, 1e-2, 1e-1)}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "sparsity": NON_NEGATIVE,
        "mode": MODE,
        "max_sweeps": COUNT,
    }

    sparsity: float = 0.01
    mode: str = "mask"
    max_iter: int = 20
    max_sweeps: int = 50
    tol: float = 1e-6

    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        found = [self._factor(part, rng) for part in parts(data, self.mode)]
        whole = common([(rows, P) for rows, P, _ in found], data.n_samples)
        if not whole.any():
            warnings.warn(
                f"PVC: with sparsity={self.sparsity}, all coefficients are zero and every sample "
                "is in the same cluster. Use a lower sparsity.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return Solution(embedding=whole, objective=tuple(x for *_, trace in found for x in trace))

    def _factor(
        self, part: Part, rng: np.random.RandomState
    ) -> tuple[NDArray[np.intp], Array, list[float]]:
        """Alternate on the complete samples, then on all of them."""
        k, views, present = self.n_clusters, part.views, part.present
        widths = np.array([X.shape[1] for X in views])
        U = [rng.uniform(size=(d, k)) for d in widths]
        P = rng.uniform(size=(len(present), k))
        penalty = self.sparsity * (present @ widths) / k
        everyone = np.ones(len(present), bool)
        complete = np.asarray(present.all(axis=1))
        some, all_of_it = np.flatnonzero(~complete), np.flatnonzero(complete)
        solve = partial(coordinate_descent, max_sweeps=self.max_sweeps, tol=self.tol)

        def bases(rows: NDArray[np.bool_]) -> None:
            for v, X in enumerate(views):
                here = rows & present[:, v]
                if here.any():
                    U[v] = _basis(X, P, here, U[v], solve)

        def objective(rows: NDArray[np.bool_]) -> float:
            fit = sum(
                squared_error(X, u, P, (rows & here).astype(float))
                for X, u, here in zip(views, U, present.T, strict=True)
            )
            return float(fit + (penalty[rows] * P[rows].sum(axis=1)).sum())

        def coefficients(rows: NDArray[np.intp]) -> None:
            _coefficients(views, U, present, rows, penalty, P, solve)

        trace: list[float] = []
        for _ in range(self.max_iter if complete.any() else 0):
            bases(complete)
            coefficients(all_of_it)
            trace.append(objective(complete))
            if settled(trace, self.tol):
                break
        trace = []
        for _ in range(self.max_iter):
            coefficients(some)
            bases(everyone)
            coefficients(all_of_it)
            trace.append(objective(everyone))
            if settled(trace, self.tol):
                break
        return part.rows, unit_rows(P), trace


def settled(trace: list[float], tol: float) -> bool:
    """Tell whether the last step lowered the objective by less than a share of it."""
    return len(trace) > 1 and trace[-2] - trace[-1] <= tol * abs(trace[-2])


def coordinate_descent(
    G: Array, Q: Array, penalty: Array | float, P: Array, *, max_sweeps: int, tol: float
) -> Array:
    """Minimise pᵀ G p − 2 qᵀ p + λ 1ᵀp over p ≥ 0, for every column of P, beginning at P.

    Parameters
    ----------
    G : ndarray of shape (k, k) or (k, k, m)
        One matrix for all columns, or one for each.
    Q : ndarray of shape (k, m)
        The linear terms.
    penalty : ndarray of shape (m,) or float
        λ.
    P : ndarray of shape (k, m)
        Where to begin.
    max_sweeps : int
        How often to go through the coordinates.
    tol : float
        Stop when no coordinate changes by more than this share of the largest.

    Returns
    -------
    ndarray of shape (k, m)

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research.baselines.pvc import coordinate_descent
    >>> G, q = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[4.0], [-1.0]])
    >>> coordinate_descent(G, q, 0.0, np.zeros((2, 1)), max_sweeps=50, tol=0).ravel()
    array([2., 0.])
    """
    P, Q = P.copy(), np.ascontiguousarray(Q - np.asarray(penalty) / 2)
    for _ in range(max_sweeps):
        change = 0.0
        for j, (g, own) in enumerate(zip(G, np.einsum("jj...->j...", G), strict=True)):
            slope = (g @ P if g.ndim == 1 else np.einsum("lm,lm->m", g, P)) - Q[j]
            # A zero on the diagonal: the coordinate has no effect and only costs.
            step = np.divide(slope, own, out=P[j].copy(), where=own > 0)
            new = np.maximum(P[j] - step, 0)
            change = max(change, float(np.abs(new - P[j]).max(initial=0)))
            P[j] = new
        if change <= tol * P.max(initial=0):
            break
    return P


def _basis(
    X: Matrix, P: Array, here: NDArray[np.bool_], U: Array, solve: Callable[..., Array]
) -> Array:
    kept = np.where(here[:, None], P, 0)
    return solve(kept.T @ kept, np.asarray(X.T @ kept).T, 0.0, U.T).T


def _coefficients(
    views: tuple[Matrix, ...],
    U: list[Array],
    present: NDArray[np.bool_],
    rows: NDArray[np.intp],
    penalty: Array,
    P: Array,
    solve: Callable[..., Array],
) -> None:
    """Write the best coefficients of some samples to P."""
    if not len(rows):
        return
    # Rows are zero where a sample is missing, so that products with them need no mask.
    Q = sum(((X @ u)[rows] for X, u in zip(views, U, strict=True)), start=np.zeros(1))
    grams = np.array([u.T @ u for u in U])
    kinds, which = patterns(present[rows])
    sizes = np.bincount(which, minlength=len(kinds))
    for kind in np.flatnonzero(sizes >= _PER_ROW):
        mine = which == kind
        G = np.tensordot(kinds[kind].astype(float), grams, axes=1)
        P[rows[mine]] = solve(G, Q[mine].T, penalty[rows[mine]], P[rows[mine]].T).T
    rest = np.flatnonzero((sizes < _PER_ROW)[which])
    step = max(1, 2**22 // grams[0].size)
    for start in range(0, len(rest), step):
        mine = rest[start : start + step]
        G = np.tensordot(grams, present[rows[mine]].T.astype(float), axes=(0, 0))
        P[rows[mine]] = solve(G, Q[mine].T, penalty[rows[mine]], P[rows[mine]].T).T
