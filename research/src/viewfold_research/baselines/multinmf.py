"""MultiNMF: non-negative factors of every view, drawn to common coefficients.

The method that most multi-view factorisations begin with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from viewfold_research._linalg import Array, Matrix
from viewfold_research.baselines._base import Aligned, Baseline, Solution
from viewfold_research.baselines._nmf import columns_sum_to_one, squared_error, warm_sweeps
from viewfold_research.baselines._parameters import COUNT, NON_NEGATIVE, StrOptions, with_parameters


@with_parameters
class MultiNMF(Baseline):
    """Multi-view clustering via joint non-negative matrix factorisation (MNMF).

    Minimises Σ_v ‖X_v − V_vU_vᵀ‖² + λ‖V_vQ_v − V*‖² over non-negative V_v, V* (n × k) and U_v
    (d_v × k), where Q_v holds the column sums of U_v: coefficients of all views are compared as if
    their factors summed to 1. Each view is divided by the sum of its entries. Multiplicative steps
    for V_v and U_v alternate with V* = mean of V_vQ_v; the rows of V* are clustered. The start is
    the factorisation of each view alone, begun where the view before it ended, three times around.
    Should the objective rise from one round to the next, the round before is the result.

    Cost: O(n d k) in time for each step, d being the number of features of all views, and a great
    many steps: 30 rounds of 200, after 5100 at the start; with tens of thousands of samples, lower
    `n_init` and `n_steps`. O(n d) in memory. Use it for counts, frequencies and other features that
    are parts of a whole; others must be made non-negative, as with ``scale="minmax"``.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of factors.
    weight : float, default=0.01
        λ, how strongly the views are drawn together.
    max_iter : int, default=30
        Rounds.
    n_steps : int, default=200
        Steps of each view in a round, and of its factorisation at the start.
    n_init : int, default=30
        Random starts, of 50 steps each, of every factorisation at the start.
    scale : {'none', 'minmax', 'unit'}, default='none'
        How views are scaled first; the authors leave them as they are.
    random_state : int, RandomState or None, default=None
        Determines the starts and k-means.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_clusters)
        V*, on which k-means runs.
    objective_ : ndarray
        The objective at the end of each round, with the V* of that round.
    n_iter_ : int
        Number of rounds.

    References
    ----------
    Multi-view clustering via joint nonnegative matrix factorization. SDM, 2013. The authors'
    program repeats a round that made the objective rise, for ever if need be; this one stops.
    """

    nonnegative: ClassVar[bool] = True
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"weight": (1e-3, 1e-2, 1e-1)}
    scalings: ClassVar[tuple[str, ...]] = ("none", "minmax", "unit")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "weight": NON_NEGATIVE,
        "n_steps": COUNT,
        "n_init": COUNT,
        "scale": [StrOptions({"none", "minmax", "unit"})],
    }

    weight: float = 0.01
    max_iter: int = 30
    n_steps: int = 200
    n_init: int = 30

    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        views = [X / (float(X.sum()) or 1.0) for X in data.views]
        U, V = warm_sweeps(views, self.n_clusters, rng, n_init=self.n_init, n_steps=self.n_steps)
        centre, objective = V[0], list[float]()
        while len(objective) < self.max_iter:
            new = [self._steps(X, u, v, centre) for X, u, v in zip(views, U, V, strict=True)]
            mean = np.mean([v for _, v in new], axis=0)
            value = self._objective(views, new, mean)
            if objective and value > objective[-1]:
                break
            U, V, centre = [u for u, _ in new], [v for _, v in new], mean
            objective.append(value)
        return Solution(centre, objective=tuple(objective))

    def _objective(
        self, views: list[Matrix], factors: list[tuple[Array, Array]], centre: Array
    ) -> float:
        return sum(
            squared_error(X, u, v) + self.weight * float(np.sum((v - centre) ** 2))
            for X, (u, v) in zip(views, factors, strict=True)
        )

    def _steps(self, X: Matrix, U: Array, V: Array, centre: Array) -> tuple[Array, Array]:
        """Take multiplicative steps in one view: V, then U, whose columns sum to 1."""
        for _ in range(self.n_steps):
            below = V @ (U.T @ U) + self.weight * V
            V = V * ((X @ U + self.weight * centre) / np.maximum(below, 1e-30))
            VV = V.T @ V
            drawn = self.weight * np.sum(V * centre, axis=0)
            below = U @ VV + self.weight * VV.diagonal() * U.sum(axis=0)
            U = U * ((X.T @ V + drawn) / np.maximum(below, 1e-30))
            U, V = columns_sum_to_one(U, V)
        return U, V
