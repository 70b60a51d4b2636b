"""IMG: one row of coefficients per sample and a graph between samples, learned together.

Samples that share no view are joined through the graph. It is an n × n matrix, and each iteration
solves a system of that size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from sklearn.metrics import euclidean_distances

from viewfold_research._linalg import Array, unit_rows
from viewfold_research.baselines._base import Aligned, Baseline, Solution, dense
from viewfold_research.baselines._blocks import laplacian, simplex, smallest_eigenvectors
from viewfold_research.baselines._parameters import (
    NON_NEGATIVE,
    POSITIVE,
    StrOptions,
    with_parameters,
)
from viewfold_research.baselines._parts import MODE, Part, common, parts, patterns


@with_parameters
class IMG(Baseline):
    r"""Incomplete multi-modal grouping: shared coefficients that are smooth on a learned graph.

    .. math:: \min_{P, U_v, A} \sum_v \|M_v (X_v - P U_v)\|^2 + \lambda \|U_v\|^2
              + \beta \operatorname{tr}(P^T L_A P) + \gamma \|A\|^2

    where M_v keeps the samples that view v has, A ≥ 0 is a graph whose columns sum to 1, and L_A is
    its Laplacian. It is solved by ADMM with a copy Q of P.

    Cost: O(n³) for an iteration, O(n²) in memory. Use it on a few thousand samples at most, where
    few samples are in more than one view.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of coefficients.
    ridge : float, default=0.01
        λ, the penalty on the bases.
    smoothness : float, default=1
        β, how much neighbours in the graph are drawn together.
    evenness : float, default=100
        γ, how evenly a sample's weight is spread over the others.
    mode : {'mask', 'pairs'}, default='mask'
        The method was made for two views. 'mask' is the same model for any number of them. 'pairs'
        runs it on each pair of views, without samples that are in neither, and joins what
        they give: rotated coefficients and graphs, each averaged where there are several.
    basis_from : {'observed', 'paired'}, default='observed'
        Which samples a basis is fitted to: all that the view has, as the model says, or those that
        all views have, as in the authors' program.
    cluster_on : {'graph', 'coefficients'}, default='graph'
        Spectral embedding of A (normalised cut), as the authors do, or rows of P of length 1.
    tol : float, default=1e-8
        Stop when no entry of P − Q is larger.
    scale : {'none', 'zscore', 'unit', 'minmax'}, default='none'
        How views are scaled first. After that, every feature is scaled to length 1.
    random_state : int, RandomState or None, default=None
        Determines the start and k-means.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_clusters)
        The rows that were clustered.
    affinity_ : ndarray of shape (n_samples, n_samples)
        The graph A; with pairs, the mean over those that have both samples.
    objective_ : ndarray
        The residual of ADMM, the largest entry of \|P − Q\|, after each iteration. It goes to zero
        in the end, with the growing penalty, but may rise on the way.

    References
    ----------
    Incomplete multi-modal visual data grouping. IJCAI, 2016.
    """

    incomplete: ClassVar[bool] = True
    scalings: ClassVar[tuple[str, ...]] = ("none", "zscore")
    kmeans_starts: ClassVar[int] = 100
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "ridge": (1e-4, 1e-2, 1.0),
        "smoothness": (1e-2, 1.0, 1e2),
        "evenness": (1.0, 1e2, 1e4),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ridge": POSITIVE,
        "smoothness": NON_NEGATIVE,
        "evenness": POSITIVE,
        "mode": MODE,
        "basis_from": [StrOptions({"observed", "paired"})],
        "cluster_on": [StrOptions({"graph", "coefficients"})],
    }

    ridge: float = 1e-2
    smoothness: float = 1.0
    evenness: float = 1e2
    mode: str = "mask"
    basis_from: str = "observed"
    cluster_on: str = "graph"
    max_iter: int = 200
    tol: float = 1e-8

    def _bytes(self, n: int, widths: list[int]) -> int:
        return 9 * 8 * n**2  # A, its Laplacian, the system and its factor, distances, and sums

    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        n = data.n_samples
        found: list[tuple[Array, Array]] = []
        trace: list[float] = []
        A, count = np.zeros((n, n)), np.zeros((n, n), np.uint16)
        for part in parts(data, self.mode):
            P, a, course = self._admm(part, rng)
            found.append((part.rows, unit_rows(P)))
            A[np.ix_(part.rows, part.rows)] += a
            count[np.ix_(part.rows, part.rows)] += 1
            trace += course
        A /= np.maximum(count, 1)
        embedding = common(found, n) if self.cluster_on == "coefficients" else self._cut(A, rng)
        return Solution(embedding=embedding, affinity=A, objective=tuple(trace))

    def _cut(self, A: Array, rng: np.random.RandomState) -> Array:
        """Return the normalised cut: eigenvectors of the Laplacian over the roots of degrees."""
        W = A.copy()
        np.fill_diagonal(W, 0)
        _, F = smallest_eigenvectors(laplacian(W), self.n_clusters, rng)
        degree = W.sum(axis=1)
        return np.asarray(F / np.sqrt(np.where(degree > 0, degree, 1))[:, None])

    def _admm(self, part: Part, rng: np.random.RandomState) -> tuple[Array, Array, list[float]]:
        n, k = len(part.rows), self.n_clusters
        views = [_unit_features(dense(X)) for X in part.views]
        kinds, which = patterns(part.present)
        P = rng.uniform(size=(n, k))
        Q, Y = P, np.zeros((n, k))
        L = rng.uniform(size=(n, n))
        form, mu = "sym", 0.1  # a random matrix is not positive definite; a Laplacian is
        trace: list[float] = []
        for _ in range(self.max_iter):
            U = [self._basis(X, P, rows) for X, rows in zip(views, self._fitted(part), strict=True)]
            fit = sum((X @ u.T for X, u in zip(views, U, strict=True)), start=np.zeros(1))
            G = 2 * np.tensordot(kinds.astype(float), [u @ u.T for u in U], axes=1)
            G += mu * np.eye(k)
            P = np.linalg.solve(G[which], (2 * fit - Y + mu * Q)[:, :, None])[:, :, 0]
            M = self.smoothness * (L + L.T)
            M[np.diag_indices(n)] += mu
            Q = linalg.solve(M, Y + mu * P, assume_a=form, overwrite_a=True, check_finite=False)
            D = euclidean_distances(Q, squared=True)
            D *= -self.smoothness / (4 * self.evenness)
            A = simplex(D)
            A = (A + A.T) / 2
            L, form = laplacian(A, normalised=False), "pos"
            Y = Y + mu * (P - Q)
            mu = min(1.1 * mu, 1e10)
            trace.append(float(np.abs(P - Q).max()))
            if trace[-1] < self.tol:
                break
        return P, A, trace

    def _fitted(self, part: Part) -> Array:
        """Return, by view, to which samples the bases are fitted."""
        complete = part.present.all(axis=1)
        if self.basis_from == "paired" and complete.any():
            return np.tile(complete, (len(part.views), 1))
        return part.present.T

    def _basis(self, X: Array, P: Array, rows: Array) -> Array:
        kept = np.where(rows[:, None], P, 0)
        G = kept.T @ kept + self.ridge * np.eye(P.shape[1])
        return np.asarray(linalg.solve(G, kept.T @ X, assume_a="pos"))


def _unit_features(X: Array) -> Array:
    return unit_rows(X.T).T
