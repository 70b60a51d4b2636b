"""MIC: weighted non-negative factorisation of every view, drawn to a consensus.

Missing rows are filled with the view's mean and count less. Weights are vectors, one number per
sample, so that the cost is linear in the number of samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from viewfold_research._linalg import Array
from viewfold_research.baselines._base import Aligned, Baseline, Solution
from viewfold_research.baselines._nmf import Filled, columns_sum_to_one, squared_error, warm_sweeps
from viewfold_research.baselines._parameters import (
    COUNT,
    NON_NEGATIVE,
    POSITIVE,
    Interval,
    StrOptions,
    with_parameters,
)


@with_parameters
class MIC(Baseline):
    r"""Multiple incomplete views clustering: weighted NMF with L2,1 regularisation.

    .. math:: \min_{U_v, B_v, U \ge 0} \sum_v \|C_v (X_v - U_v B_v^T)\|^2
              + \alpha \|C_v (U_v - U)\|^2 + \beta \|U_v\|_{2,1}

    C_v is diagonal: 1 for a sample that view v has, less for a row that was filled with the view's
    mean. The L2,1 norm sums the lengths of the rows, and so takes out samples that fit badly. The
    rows of the consensus U are clustered.

    Each view is divided by the sum of its entries, so the penalties mean the same for any unit, but
    not for any number of samples.

    Cost: O(n d k) for a step, O(n (d + k)) in memory. Use it on counts and other non-negative
    features; negative ones are refused, since they turn the factors into NaN.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of factors.
    alpha : float, default=0.01
        How strongly views are drawn to the consensus.
    beta : float, default=0
        Weight of the L2,1 norm. The views are small after the division: values above 1e-4 are
        likely to make all factors vanish.
    missing_weight : 'fraction' or float, default='fraction'
        Weight of a filled row; 'fraction' is the share of samples that the view has.
    max_iter : int, default=30
        Rounds.
    n_steps : int, default=100
        Steps for each view in a round, and of the best start of its first factorisation.
    n_init : int, default=30
        Random starts of each first factorisation, of 50 steps.
    scale : {'none', 'unit', 'minmax'}, default='none'
        How views are scaled first; 'minmax' takes features that are negative.
    random_state : int, RandomState or None, default=None
        Determines the starts and k-means.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_clusters)
        The consensus U.
    objective_ : ndarray of shape (n_iter,)
        The objective at the beginning of each round, with the consensus of that round. It falls on
        the whole, but scaling the columns of B, which the updates do not know of, lets it rise by
        a thousandth or so of its first value.
    n_iter_ : int
        Number of rounds.

    References
    ----------
    Multiple incomplete views clustering via weighted nonnegative matrix factorization with L2,1
    regularization. ECML PKDD, 2015.

    Notes
    -----
    The authors' program has the weights in n × n matrices, and leaves them, α and β to the user.
    """

    incomplete: ClassVar[bool] = True
    nonnegative: ClassVar[bool] = True
    scalings: ClassVar[tuple[str, ...]] = ("none", "minmax")
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "alpha": (1e-3, 1e-2, 1e-1, 1.0),
        "beta": (0.0, 1e-8, 1e-6, 1e-4),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": POSITIVE,
        "beta": NON_NEGATIVE,
        "missing_weight": [StrOptions({"fraction"}), Interval(Real, 0, 1, closed="both")],
        "n_steps": COUNT,
        "n_init": COUNT,
        "scale": [StrOptions({"none", "unit", "minmax"})],
    }

    alpha: float = 0.01
    beta: float = 0.0
    missing_weight: str | float = "fraction"
    max_iter: int = 30
    n_steps: int = 100
    n_init: int = 30

    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        views = [Filled.of(X, here) for X, here in zip(data.views, data.present.T, strict=True)]
        weights = np.array([self._weight(here) ** 2 for here in data.present.T])
        B, U = warm_sweeps(views, self.n_clusters, rng, n_init=self.n_init, n_steps=self.n_steps)
        trace = []
        for _ in range(self.max_iter):
            centre = np.einsum("vn,vnk->nk", weights / weights.sum(axis=0), np.stack(U))
            trace.append(self._objective(views, weights, B, U, centre))
            for v, (X, w) in enumerate(zip(views, weights, strict=True)):
                B[v], U[v] = self._steps(X, w, B[v], U[v], centre)
        return Solution(embedding=centre, objective=tuple(trace))

    def _weight(self, here: NDArray[np.bool_]) -> Array:
        low = here.mean() if self.missing_weight == "fraction" else float(self.missing_weight)
        return np.where(here, 1.0, low)

    def _objective(
        self, views: list[Filled], weights: Array, B: list[Array], U: list[Array], C: Array
    ) -> float:
        total = 0.0
        for X, w, b, u in zip(views, weights, B, U, strict=True):
            apart = np.einsum("ij,ij->i", u - C, u - C)
            total += squared_error(X, b, u, w) + self.alpha * float(w @ apart)
            total += self.beta * float(np.linalg.norm(u, axis=1).sum())
        return total

    def _steps(self, X: Filled, w: Array, B: Array, U: Array, centre: Array) -> tuple[Array, Array]:
        """Take multiplicative steps in one view: U, then B, whose columns sum to 1."""
        w = w[:, None]
        drawn = self.alpha * w * centre
        for _ in range(self.n_steps):
            length = np.maximum(np.linalg.norm(U, axis=1, keepdims=True), 1e-12)
            below = w * (U @ (B.T @ B)) + (self.alpha * w + self.beta / 2 / length) * U
            U = U * np.sqrt((w * (X @ B) + drawn) / np.maximum(below, 1e-30))
            below = B @ (U.T @ (w * U))
            B = B * np.sqrt((X.T @ (w * U)) / np.maximum(below, 1e-30))
            B, U = columns_sum_to_one(B, U)
        return B, U
