"""PMSC: a subspace graph and a partition for each view, and one partition that all agree on.

Graph, partitions and consensus are improved in turn; views whose partition disagrees count less.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from viewfold_research._linalg import Array
from viewfold_research.baselines._base import Aligned, Baseline, Solution, dense
from viewfold_research.baselines._blocks import laplacian, smallest_eigenvectors
from viewfold_research.baselines._parameters import NON_NEGATIVE, POSITIVE, with_parameters


@with_parameters
class PMSC(Baseline):
    """Partition level multi-view subspace clustering.

    Minimised is Σ_v ‖X_vᵀ − X_vᵀZ_v‖² + α‖Z_v‖² + β tr(F_vᵀL_vF_v) + γ‖YYᵀ − F_vF_vᵀ‖ over graphs
    Z_v ≥ 0 with Laplacians L_v, partitions F_v and their consensus Y (both with orthonormal
    columns). The last norm is not squared: in turn, it is weighted by w_v = 1 / (2‖YYᵀ − F_vF_vᵀ‖)
    and squared. Z_v is solved without its constraints and then clipped and made symmetric, as the
    authors do: the objective may rise a little.

    Cost: O(V n² (k + T)) in time for an iteration with T products of the eigensolver, after O(n² d)
    once; O(V n²) in memory. Use it for up to some thousand samples; it needs its three parameters
    tuned. Of two views, the consensus ends up at one, whichever is nearer to the random start.

    Parameters
    ----------
    alpha : float, default=10
        Weight of ‖Z‖².
    beta : float, default=1e-3
        Weight of the graph's cut.
    gamma : float, default=1e-5
        Weight of the agreement between partitions.
    tol : float, default=1e-3
        Stop when the consensus YYᵀ changes by less, relative to its norm.
    scale : {'none', 'zscore', 'unit', 'minmax'}, default='unit'
        How views are scaled first. The authors leave them as they are, in their example, texts;
        what is published on other data needs samples of unit length.
    random_state : int, RandomState or None, default=None
        Determines the first partitions and k-means.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Y, on which k-means runs.

    References
    ----------
    Partition level multiview subspace clustering. Neural Networks 122, 2020.
    """

    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "alpha": (0.01, 0.1, 1, 10, 100),
        "beta": (1e-3, 1e-2, 0.1, 1, 10),
        "gamma": (1e-5, 1e-3, 0.1, 10),
    }
    scalings: ClassVar[tuple[str, ...]] = ("unit", "zscore", "none")
    kmeans_starts: ClassVar[int] = 10
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": POSITIVE,
        "beta": POSITIVE,
        "gamma": NON_NEGATIVE,
    }

    alpha: float = 10
    beta: float = 1e-3
    gamma: float = 1e-5
    max_iter: int = 200
    tol: float = 1e-3
    scale: str = "unit"

    def _bytes(self, n: int, widths: list[int]) -> int:
        return 8 * n**2 * (len(widths) + 4)  # (K + αI)⁻¹K of each view, Z, L and what solvers copy

    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        n, k = data.n_samples, self.n_clusters
        views = [dense(X) for X in data.views]
        smooth = [projector(X, self.alpha) for X in views]
        F = [linalg.qr(rng.standard_normal((n, k)), mode="economic")[0] for _ in views]
        Y = linalg.qr(rng.uniform(size=(n, k)), mode="economic")[0]
        objective: list[float] = []
        for _ in range(self.max_iter):
            value, w = 0.0, [weight(Y, f) for f in F]
            for v, X in enumerate(views):
                Z = self._graph(smooth[v], F[v])
                F[v] = self._partition(Z, Y, w[v], F[v], rng)
                value += self._value(X, Z, F[v])
            before, Y = Y, consensus(F, w, k)
            apart = sum(distance(Y, f) for f in F)
            objective.append(value + self.gamma * apart)
            if len(objective) > 5 and distance(Y, before) < self.tol * np.sqrt(k):
                break
        return Solution(Y, objective=tuple(objective))

    def _graph(self, P: Array, F: Array) -> Array:
        """Return (K + αI)⁻¹(K − β/4 D) clipped and symmetric, D the squared distances of F's rows.

        The inverse is (I − P)/α, and D = r1ᵀ + 1rᵀ − 2FFᵀ has rank k + 2.
        """
        r = np.sum(F**2, axis=1)
        left = np.column_stack([r, np.ones_like(r), -2 * F])
        right = np.column_stack([np.ones_like(r), r, F])
        Z = P - self.beta / (4 * self.alpha) * (left - P @ left) @ right.T
        np.maximum(Z, 0, out=Z)
        return np.asarray((Z + Z.T) / 2)

    def _partition(
        self, Z: Array, Y: Array, w: float, F: Array, rng: np.random.RandomState
    ) -> Array:
        """Return the smallest eigenvectors of βL − 2γwYYᵀ, divided by β."""
        L = laplacian(Z, normalised=False) - (2 * self.gamma * w / self.beta) * (Y @ Y.T)
        return smallest_eigenvectors(L, self.n_clusters, rng, guess=F)[1]

    def _value(self, X: Array, Z: Array, F: Array) -> float:
        cut = np.sum(Z.sum(axis=1)[:, None] * F**2) - np.vdot(F, Z @ F)
        return float(np.sum((X - Z @ X) ** 2) + self.alpha * np.sum(Z**2) + self.beta * cut)


def projector(X: Array, alpha: float) -> Array:
    """Return (K + αI)⁻¹K for K = XXᵀ, by the smaller side of X."""
    n, d = X.shape
    if d < n:
        return np.asarray(X @ linalg.solve(X.T @ X + alpha * np.eye(d), X.T, assume_a="pos"))
    K = X @ X.T
    return np.asarray(linalg.solve(K + alpha * np.eye(n), K, assume_a="pos"))


def distance(Y: Array, F: Array) -> float:
    """Return ‖YYᵀ − FFᵀ‖ of orthonormal columns."""
    return float(np.sqrt(max(2 * Y.shape[1] - 2 * np.sum((Y.T @ F) ** 2), 0)))


def weight(Y: Array, F: Array) -> float:
    """Return 1 / (2‖YYᵀ − FFᵀ‖)."""
    return 1 / (2 * max(distance(Y, F), 1e-8))


def consensus(F: list[Array], w: list[float], k: int) -> Array:
    """Return the k leading left singular vectors of [√w₁F₁, …, √w_VF_V]."""
    joint = np.hstack([np.sqrt(weight) * f for f, weight in zip(F, w, strict=True)])
    values, V = linalg.eigh(
        joint.T @ joint, subset_by_index=(joint.shape[1] - k, joint.shape[1] - 1)
    )
    return np.asarray(joint @ (V / np.sqrt(values)))
