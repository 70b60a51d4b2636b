"""FMCNOF: the graph between samples and a few anchors, factored into clusters directly.

No k-means at the end: the largest entry in a row of the non-negative factor is the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import linalg
from sklearn.metrics import pairwise_distances

from viewfold_research._linalg import Array, polar
from viewfold_research.baselines._base import Aligned, Baseline, Solution, dense
from viewfold_research.baselines._blocks import anchors, simplex_quadratic
from viewfold_research.baselines._parameters import COUNT, POSITIVE, StrOptions, with_parameters


@with_parameters
class FMCNOF(Baseline):
    """Fast multi-view clustering by non-negative and orthogonal factorisation.

    The centres of k-means on all views side by side are anchors. B_v (samples × anchors) holds
    exp(−‖x − u‖ / 2σ²) for k anchors of each sample, scaled to sum 1. Minimised is
    ‖Σ_v a_vB_v − FGᵀ‖² with a on the simplex, GᵀG = I, F ≥ 0: each of F = max(ZG, 0), G the polar
    factor of ZᵀF and a is found exactly in turn, so that the objective never rises. A sample is in
    the cluster where its row of F is largest.

    Cost: O(n m (d + kV)) in time, O(n m V) in memory for m anchors: linear in n. Use it where speed
    is all; it is the weakest of the linear methods in most comparisons.

    Parameters
    ----------
    extra_anchors : int, default=7
        How many more anchors than clusters.
    keep : {'farthest', 'nearest'}, default='farthest'
        Which anchors of a sample count. The authors' program sorts the wrong way round and takes
        the farthest; what is published was computed with it.
    sigma : float or None, default=1000
        Width of the kernel; None for 2σ² = the mean distance to an anchor. With the authors' 1000,
        all weights of a sample are the same but for the fourth decimal.
    factor : {'nonnegative', 'indicator'}, default='nonnegative'
        Whether F is non-negative (the program) or holds a single 1 in each row (the paper).
    max_iter : int, default=30
        Iterations.
    scale : {'none', 'zscore', 'unit', 'minmax'}, default='none'
        How views are scaled first; samples are standardised afterwards in any case.
    random_state : int, RandomState or None, default=None
        Determines k-means and the start of G.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_clusters)
        F.
    objective_ : ndarray
        ‖Σ_v a_vB_v − FGᵀ‖² after each iteration.

    References
    ----------
    Fast multi-view clustering via nonnegative and orthogonal factorization. IEEE Transactions on
    Image Processing 30, 2021.
    """

    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"extra_anchors": (3, 7, 9)}
    scalings: ClassVar[tuple[str, ...]] = ("none", "zscore")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "extra_anchors": COUNT,
        "keep": [StrOptions({"farthest", "nearest"})],
        "sigma": [*POSITIVE, None],
        "factor": [StrOptions({"nonnegative", "indicator"})],
    }

    extra_anchors: int = 7
    keep: Literal["farthest", "nearest"] = "farthest"
    sigma: float | None = 1000
    factor: Literal["nonnegative", "indicator"] = "nonnegative"
    max_iter: int = 30

    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        graphs = self._graphs([_standard_rows(dense(X)) for X in data.views], rng)
        Q = np.array([[np.vdot(A, B) for B in graphs] for A in graphs])
        a = np.full(len(graphs), 1 / len(graphs))
        Z = _mixed(a, graphs)
        G = linalg.qr(rng.standard_normal((Z.shape[1], self.n_clusters)), mode="economic")[0]
        F = Z @ G
        F /= np.maximum(np.linalg.norm(F, axis=1, keepdims=True), 1e-12)
        objective = []
        for _ in range(self.max_iter):
            G = polar(Z.T @ F)
            F = self._factor(Z @ G)
            FGt = F @ G.T
            b = np.array([np.vdot(B, FGt) for B in graphs])
            a = simplex_quadratic(Q, b[None, :], tol=1e-10)[0]
            Z = _mixed(a, graphs)
            objective.append(float(np.sum((Z - FGt) ** 2)))
        return Solution(F, labels=F.argmax(axis=1), objective=tuple(objective))

    def _graphs(self, views: list[Array], rng: np.random.RandomState) -> list[Array]:
        """Return weights between samples and anchors, for each view."""
        k = self.n_clusters
        centres = anchors(np.hstack(views), k + self.extra_anchors, rng)
        parts = np.split(centres, np.cumsum([X.shape[1] for X in views])[:-1], axis=1)
        graphs = []
        for X, U in zip(views, parts, strict=True):
            far = pairwise_distances(X, U)
            order = far if self.keep == "nearest" else -far
            width = 2 * self.sigma**2 if self.sigma is not None else max(far.mean(), 1e-12)
            kept = np.argpartition(order, min(k, len(U)) - 1, axis=1)[:, :k]
            weight = np.exp(-np.take_along_axis(far, kept, axis=1) / width)
            B = np.full(far.shape, 1e-7)
            np.put_along_axis(B, kept, weight / weight.sum(axis=1, keepdims=True), axis=1)
            graphs.append(B)
        return graphs

    def _factor(self, ZG: Array) -> Array:
        if self.factor == "nonnegative":
            return np.maximum(ZG, 0)
        return np.asarray(np.eye(ZG.shape[1])[ZG.argmax(axis=1)])


def _mixed(a: Array, graphs: list[Array]) -> Array:
    return np.asarray(sum(weight * B for weight, B in zip(a, graphs, strict=True)))


def _standard_rows(X: Array) -> Array:
    """Return samples with mean 0 and deviation 1 over their features; a constant one becomes 0."""
    X = X - X.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.sum(X**2, axis=1, keepdims=True) / max(X.shape[1] - 1, 1))
    return np.asarray(X / np.where(spread > 1e-12, spread, np.inf))
