"""FMR: a latent representation that depends on all views, and samples that represent each other.

Published with n × n decompositions in every iteration; here every iteration works on matrices of
n_components × n, and only the affinity that it ends with is n × n.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from viewfold_research._linalg import Array
from viewfold_research.baselines._base import Aligned, Baseline, Solution, unit_samples
from viewfold_research.baselines._blocks import spectral_embedding
from viewfold_research.baselines._parameters import COUNT, POSITIVE, with_parameters

MU, RHO, MU_MAX = 1e-5, 1.1, 1e10  # the authors' penalty: first, growth, last
STEPS = 20_000


@with_parameters
class FMR(Baseline):
    """Flexible multi-view representation learning for subspace clustering.

    A latent H (K × n) is to depend on the views as far as HSIC tells, while its columns represent
    each other: min −HSIC(H, views) + λ₂‖E‖₂₁ + λ₁‖Z‖_* with H = HZ + E. With linear kernels, HSIC
    is tr(HKHᵀ)/(n − 1)² for K = J Σ_v X_vX_vᵀ J, J the centring. It is not bounded, so the authors
    take gradient steps until it reaches a value, `hsic`, after which H does not change any more.
    The steps give H₀[(1 − aμ)I + 2aK/(n − 1)²]^t, computed at once by a decomposition of K. Z and E
    follow by augmented Lagrangians; ``|Z| + |Zᵀ|`` is the graph for spectral clustering.

    Cost: with H = SWᵀ, Z stays in the span of W, so an iteration takes O(K² n) instead of O(n³);
    the spectral clustering at the end takes O(n³) in time and O(n²) in memory. Use it for some
    thousand samples.

    Parameters
    ----------
    n_components : int, default=200
        K, the dimension of the latent representation.
    lambda1 : float, default=1e-4
        Weight of the nuclear norm of Z.
    lambda2 : float, default=1e-6
        Weight of the errors E.
    hsic : float, default=5e7
        The dependence at which H stops growing.
    step : float, default=100
        a, the length of a gradient step.
    tol : float, default=1e-4
        Stop when no entry of H − HZ − E and of Z − J is larger.
    scale : {'none', 'zscore', 'unit', 'minmax'}, default='none'
        How views are scaled first; samples get unit length afterwards in any case.
    random_state : int, RandomState or None, default=None
        Determines H₀ and k-means.

    Attributes
    ----------
    affinity_ : ndarray of shape (n_samples, n_samples)
        ``|Z| + |Zᵀ|``.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Eigenvectors with rows of unit length, on which k-means runs.
    objective_ : ndarray
        The residual after each iteration: the largest entry of H − HZ − E and of Z − J.

    References
    ----------
    Flexible multi-view representation learning for subspace clustering. IJCAI, 2019.
    """

    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "lambda1": (1e-5, 1e-4, 1e-3, 1e-2),
        "lambda2": (1e-8, 1e-7, 1e-6, 1e-5),
    }
    scalings: ClassVar[tuple[str, ...]] = ("none", "zscore")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": COUNT,
        "lambda1": POSITIVE,
        "lambda2": POSITIVE,
        "hsic": POSITIVE,
        "step": POSITIVE,
        "tol": POSITIVE,
    }

    n_components: int = 200
    lambda1: float = 1e-4
    lambda2: float = 1e-6
    hsic: float = 5e7
    step: float = 100
    max_iter: int = 500
    tol: float = 1e-4

    def _bytes(self, n: int, widths: list[int]) -> int:
        return 8 * n**2 * 4  # Z, the graph, its Laplacian, and what the eigensolver copies

    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        X = np.hstack(unit_samples(data))
        X -= X.mean(axis=0)
        H0 = rng.uniform(size=(self.n_components, len(X)))
        H, _ = latent(H0, X, self.hsic, self.step)
        _, s, Wt = linalg.svd(H, full_matrices=False)
        keep = s > 1e-12 * s[0]
        A, residuals = self._represent(s[keep], Wt[keep])
        Z = Wt[keep].T @ A
        affinity = np.abs(Z)
        affinity = affinity + affinity.T
        _, U = spectral_embedding(affinity, self.n_clusters, rng)
        return Solution(U, affinity=affinity, objective=tuple(residuals))

    def _represent(self, s: Array, Wt: Array) -> tuple[Array, list[float]]:
        """Return A with Z = WA, and the residuals. H, E and multipliers are turned to H = SWᵀ."""
        S = s[:, None]
        H = S * Wt
        A = J = E = Y1 = Y2 = np.zeros_like(H)
        mu, residuals = MU, []
        for _ in range(self.max_iter):
            J = shrunk_singular(A + Y2 / mu, self.lambda1 / mu)
            A = (J + S * (H - E + Y1 / mu) - Y2 / mu) / (S**2 + 1)
            E = shrunk_columns(H - S * A + Y1 / mu, self.lambda2 / mu)
            gap1, gap2 = H - S * A - E, A - J
            Y1, Y2 = Y1 + mu * gap1, Y2 + mu * gap2
            mu = min(RHO * mu, MU_MAX)
            residuals.append(float(max(np.abs(gap1).max(), np.abs(gap2).max())))
            if residuals[-1] < self.tol:
                break
        return A, residuals


def latent(H0: Array, X: Array, hsic: float, step: float) -> tuple[Array, int]:
    """Return H after the first t gradient steps at which f(H) falls below −hsic, and t.

    f(H) = −tr(HKHᵀ)/(n − 1)² + (μ/2)‖H‖ for K = XXᵀ, X centred. In the basis of K's eigenvectors a
    step multiplies coordinate j by 1 − aμ + 2aκ_j/(n − 1)², so that f is known without H.
    """
    n = len(X)
    Q, root, _ = linalg.svd(X, full_matrices=False)
    kappa = root**2 / (n - 1) ** 2
    factor = np.append(1 - step * MU + 2 * step * kappa, 1 - step * MU)  # the last: K's null space
    inside = H0 @ Q
    squares = np.append(np.sum(inside**2, axis=0), 0.0)
    squares[-1] = max(np.sum(H0**2) - squares.sum(), 0)
    kappa = np.append(kappa, 0.0)
    t = 0
    while t < STEPS and -kappa @ squares + MU / 2 * np.sqrt(squares.sum()) >= -hsic:
        squares = squares * factor**2
        t += 1
    power = factor**t
    return (inside * (power[:-1] - power[-1])) @ Q.T + power[-1] * H0, t


def shrunk_singular(M: Array, by: float) -> Array:
    """Return a wide matrix with singular values lessened by so much, and not below 0."""
    values, U = linalg.eigh(M @ M.T)
    s = np.sqrt(np.maximum(values, 0))
    weight = np.maximum(1 - by / np.maximum(s, 1e-300), 0)
    return np.asarray((U * weight) @ (U.T @ M))


def shrunk_columns(G: Array, by: float) -> Array:
    """Return columns shortened by so much, and not below 0."""
    length = np.linalg.norm(G, axis=0)
    return np.asarray(G * np.maximum(1 - by / np.maximum(length, 1e-300), 0))
