"""FPMVS-CAG: all views through one set of anchors and one small graph to them.

No parameter and linear cost: every step is a product with the views or a matrix of k × k.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from viewfold_research._linalg import inverse_sqrt, polar, unit_rows
from viewfold_research.baselines._base import Aligned, Baseline, Solution
from viewfold_research.baselines._blocks import settled, simplex
from viewfold_research.baselines._nmf import squared_rows
from viewfold_research.baselines._parameters import with_parameters


@with_parameters
class FPMVS(Baseline):
    """Fast parameter-free multi-view subspace clustering with consensus anchor guidance.

    Minimises Σ_v α_v² ‖X_vᵀ − W_v A Zᵀ‖² over W_v (d_v × k) and A (k × k) with orthonormal columns,
    Z (n × k) with rows on the simplex, and α on the simplex. Alternately, W_v and A are polar
    factors, a row of Z is the projection of Σ_v α_v² AᵀW_vᵀx_v / Σ_v α_v² on the simplex, and
    α_v ∝ 1/e_v, where e_v is the squared error of view v. The left singular vectors of Z, scaled to
    unit rows, are clustered. A view of fewer than k features counts as if zeros filled it up to k:
    so every step is exact, and the objective never rises. The anchors begin with the first k rows,
    and nothing but k-means depends on chance.

    Cost: O(n k (d + k)) in time for each iteration, O(n (d + k)) in memory, d being the number of
    features of all views. Use it for many samples and views that agree; it has nothing to tune.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of anchors.
    weighted : bool, default=True
        Whether α_v² weighs the views in the step for Z, too. Without, the step is that of the
        authors' sister program (SMVSC): rows of Z are nearly 0 or 1, and the objective may rise.
    tol : float, default=1e-6
        Stop when the objective changes by less, relative to its value, after ten iterations.
    scale : {'zscore', 'unit', 'none', 'minmax'}, default='zscore'
        How views are scaled first; the authors standardise features.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_clusters)
        The orthonormalised Z, its rows of unit length, on which k-means runs.

    References
    ----------
    Fast parameter-free multi-view subspace clustering with consensus anchor guidance. IEEE
    Transactions on Image Processing, 2022.
    """

    kmeans_starts: ClassVar[int] = 50
    scalings: ClassVar[tuple[str, ...]] = ("zscore", "unit", "none")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "weighted": ["boolean"],
    }

    weighted: bool = True
    max_iter: int = 50
    tol: float = 1e-6
    scale: str = "zscore"

    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        k, views = self.n_clusters, data.views
        square = [float(squared_rows(X).sum()) for X in views]
        Z, A = np.eye(data.n_samples, k), np.eye(k)
        W = [np.eye(X.shape[1], k) for X in views]
        alpha = np.full(len(views), 1 / len(views))
        objective: list[float] = []
        while len(objective) < self.max_iter:
            XZ = [X.T @ Z for X in views]
            if objective:  # the authors begin with A = 0, whose polar factor is their W = [I; 0]
                W = [polar(B @ A.T) for B in XZ]
            A = polar(sum(a**2 * w.T @ B for a, w, B in zip(alpha, W, XZ, strict=True)))
            seen = [X @ (w @ A) for X, w in zip(views, W, strict=True)]
            weight = alpha**2 if self.weighted else np.ones_like(alpha)
            drawn = sum(a * P for a, P in zip(weight, seen, strict=True))
            Z = simplex(drawn / np.sum(alpha**2))
            own = float(np.sum(Z**2))
            error = np.array(
                [s - 2 * np.vdot(P, Z) + own for s, P in zip(square, seen, strict=True)]
            )
            error = np.maximum(error, 1e-12 * max(max(square), 1e-300))
            alpha = (1 / error) / np.sum(1 / error)
            objective.append(float(alpha**2 @ error))
            if settled(objective, self.tol, after=9):
                break
        return Solution(unit_rows(Z @ inverse_sqrt(Z.T @ Z)[0]), objective=tuple(objective))
