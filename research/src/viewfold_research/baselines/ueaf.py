"""UEAF: missing rows of every view are inferred while all views are aligned to one embedding.

Each view is an orthonormal map of the embedding; a missing row is what the map says, smoothed over
features that behave alike. A graph between samples, n × n, is learned with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.metrics import euclidean_distances

from viewfold_research._linalg import Array, polar, unit_rows
from viewfold_research.baselines._base import Aligned, Baseline, Solution, unit_samples
from viewfold_research.baselines._blocks import knn_graph, laplacian, simplex, smallest_eigenvectors
from viewfold_research.baselines._parameters import (
    ABOVE_1,
    COUNT,
    NON_NEGATIVE,
    POSITIVE,
    with_parameters,
)


@with_parameters
class UEAF(Baseline):
    r"""Unified embedding alignment with missing views inferring.

    With E_v the inferred rows of view v, L_v the Laplacian of a graph between its features,
    P the embedding and S a graph between samples,

    .. math:: \min \sum_v a_v^r \{ \|X_v + E_v - P U_v^T\|^2
              + \lambda_1 \operatorname{tr}(E_v L_v E_v^T)
              + \tfrac{\lambda_2}{2} \sum_{ij} \|p_i - p_j\|^2 s_{ij}^2 \}
              + \lambda_3 \operatorname{tr}(F^T L_S F)

    with U_vᵀU_v = I and FᵀF = I; the rows of S and the weights a are on the simplex. The rows of P,
    scaled to length 1, are clustered.

    Cost: O(n³ + Σ d_v³) for an iteration, O(n² + d_v²) in memory. Use it on a few thousand samples
    at most, where the features of a view are related.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters. The embedding has as many columns, or as the narrowest view has.
    inference : float, default=0.01
        λ₁, how smooth inferred rows are over the features.
    smoothness : float, default=0.1
        λ₂, how smooth the embedding is on the graph.
    connection : float, default=1e-5
        λ₃, how much the graph is drawn to have as many components as there are clusters.
    power : float, default=3
        r > 1; the larger, the more equal are the weights of the views.
    n_neighbors : int, default=7
        Neighbours of each feature in the graphs between features.
    tol : float, default=1e-5
        Stop when the objective changes by less.
    scale : {'none', 'zscore', 'unit', 'minmax'}, default='none'
        How views are scaled first. After that, every sample is scaled to length 1.
    random_state : int, RandomState or None, default=None
        Determines the start and k-means.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Rows of P of length 1.
    affinity_ : ndarray of shape (n_samples, n_samples)
        The graph S, symmetric.
    objective_ : ndarray
        The objective after each iteration, over the squared size of the views.

    References
    ----------
    Unified embedding alignment with missing views inferring for incomplete multi-view clustering.
    AAAI, 2019.

    Notes
    -----
    The authors' demonstrations use λ₁, λ₂, λ₃ = 0.1, 0.01, 1e-5 where a tenth of the samples is
    missing, 0.01, 0.1, 1e-5 (the defaults) for three tenths, and 1e-5, 10, 1e-5 for a half. By a
    slip of a parenthesis their program multiplies the λ₂ term in the weights a_v by λ₁ times the
    number of missing samples; here it is as in the paper.
    """

    incomplete: ClassVar[bool] = True
    scalings: ClassVar[tuple[str, ...]] = ("none", "zscore")
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "inference": tuple(10.0**i for i in range(-5, 3)),
        "smoothness": tuple(10.0**i for i in range(-5, 3)),
        "connection": tuple(10.0**i for i in range(-5, 3)),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "inference": NON_NEGATIVE,
        "smoothness": POSITIVE,
        "connection": NON_NEGATIVE,
        "power": ABOVE_1,
        "n_neighbors": COUNT,
    }

    inference: float = 0.01
    smoothness: float = 0.1
    connection: float = 1e-5
    power: float = 3.0
    n_neighbors: int = 7
    max_iter: int = 50
    tol: float = 1e-5

    def _bytes(self, n: int, widths: list[int]) -> int:
        # S, two Laplacians, two matrices of distances, two on the way, sums; the factors.
        return 8 * (8 * n**2 + sum(d**2 for d in widths))

    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        n, k = data.n_samples, min([self.n_clusters, *(X.shape[1] for X in data.views)])
        views = [
            self._view(X, ~here, k, rng)
            for X, here in zip(unit_samples(data), data.present.T, strict=True)
        ]
        size = max(sum(view.size for view in views), 1e-30)
        a = np.full(len(views), 1 / len(views)) ** self.power
        S = rng.uniform(size=(n, n))
        np.fill_diagonal(S, 0)
        F = self._embedded((S + S.T) / 2, k, rng)
        trace: list[float] = []
        for _ in range(self.max_iter):
            P = self._common(views, a, (S**2 + S.T**2) / 2)
            apart = euclidean_distances(P, squared=True)
            S = self._graph(apart, F, a.sum())
            even = (S + S.T) / 2
            F = self._embedded(even, k, rng)
            rough = self.smoothness / 2 * float(np.sum(apart * S**2))
            terms = np.array([view.improve(P, self.inference) for view in views]) + rough
            a = np.maximum(terms, 1e-12) ** (1 / (1 - self.power))
            a = (a / a.sum()) ** self.power
            cut = np.sum(euclidean_distances(F, squared=True) * even) / 2  # tr(FᵀL_S F)
            trace.append(float(a @ terms + self.connection * cut) / size)
            if len(trace) > 2 and abs(trace[-1] - trace[-2]) < self.tol:
                break
        return Solution(unit_rows(P), affinity=even, objective=tuple(trace))

    def _view(
        self, X: Array, missing: NDArray[np.bool_], k: int, rng: np.random.RandomState
    ) -> _View:
        L = laplacian(_feature_graph(X, self.n_neighbors), normalised=False)
        M = np.eye(X.shape[1]) + self.inference * L.toarray()
        U = np.linalg.qr(rng.uniform(size=(X.shape[1], k)))[0]
        size = float(np.sum(X**2))
        filled = X.copy()
        filled[missing] = rng.uniform(size=(np.count_nonzero(missing), X.shape[1]))
        return _View(filled, missing, L, linalg.cho_factor(M), U, size)

    def _embedded(self, even: Array, k: int, rng: np.random.RandomState) -> Array:
        return smallest_eigenvectors(laplacian(even, normalised=False), k, rng)[1]

    def _common(self, views: list[_View], a: Array, squares: Array) -> Array:
        """Return P: the views in the common space, smoothed by the graph."""
        seen = sum((w * (v.filled @ v.U) for w, v in zip(a, views, strict=True)), np.zeros(1))
        M = self.smoothness * laplacian(squares, normalised=False)
        M[np.diag_indices(len(M))] += 1
        solved = linalg.solve(M, seen / a.sum(), assume_a="pos", overwrite_a=True)
        return np.asarray(solved)

    def _graph(self, apart: Array, F: Array, weight: float) -> Array:
        T = euclidean_distances(F, squared=True)
        T *= -self.connection / (2 * self.smoothness * weight)
        T /= np.maximum(apart, 1e-10)
        np.fill_diagonal(T, -np.inf)
        return simplex(T)


@dataclass
class _View:
    """A view on the way: its rows with those inferred, and its map."""

    filled: Array
    missing: NDArray[np.bool_]
    L: sparse.csr_array
    factor: tuple[Array, bool]
    U: Array
    size: float

    def improve(self, P: Array, inference: float) -> float:
        """Fit the map, then the missing rows; return the error and what their roughness costs."""
        self.U = polar(self.filled.T @ P)
        inferred = P[self.missing] @ linalg.cho_solve(self.factor, self.U).T
        self.filled[self.missing] = inferred
        rough = float(np.sum(inferred * (self.L @ inferred.T).T)) if len(inferred) else 0.0
        return float(np.sum((self.filled - P @ self.U.T) ** 2)) + inference * rough


def _feature_graph(X: Array, q: int) -> sparse.csr_array:
    if X.shape[1] < 2:
        return sparse.csr_array((X.shape[1], X.shape[1]))
    return knn_graph(np.ascontiguousarray(X.T), q)
