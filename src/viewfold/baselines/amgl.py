"""AMGL: one embedding for the graphs of all views, whose weights follow from the embedding itself.

A view whose graph fits the embedding badly counts less, without any parameter. The graphs are
sparse here, so that tens of thousands of samples fit.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from viewfold._types import Array
from viewfold.baselines._base import COUNT, NON_NEGATIVE, SCALING, Aligned, Baseline, Solution
from viewfold.baselines._blocks import laplacian, pkn_graph, smallest_eigenvectors


class AMGL(Baseline):
    """Auto-weighted multiple graph learning.

    Each view becomes a graph of probabilistic neighbours with normalised Laplacian L_v. The
    embedding F minimises Σ_v √tr(FᵀL_vF) under FᵀF = I: alternately, F is the k smallest
    eigenvectors of Σ_v α_v L_v, and α_v = 1 / (2 √tr(FᵀL_vF)). The objective never rises.

    Cost: the neighbours, O(n² d) in time at worst, then O(n q k) for every product with the sparse
    graphs; O(n q) in memory for each view. Use it where clusters are connected rather than round,
    and views are few and of similar quality.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int, default=5
        Neighbours of each sample in the graphs.
    max_iter : int, default=100
        Iterations at most.
    tol : float, default=1e-8
        Stop when the objective falls by less, relative to its value.
    scale : {'none', 'zscore', 'unit', 'minmax'}, default='none'
        How views are scaled first; the authors leave them as they are.
    random_state : int, RandomState or None, default=None
        Determines the start of the eigensolver and k-means.

    Attributes
    ----------
    labels_ : ndarray of int, shape (n_samples,)
        The clusters.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        F, on which k-means runs.
    objective_ : ndarray
        Σ_v √tr(FᵀL_vF) after each iteration.
    n_iter_ : int
        Number of iterations.

    References
    ----------
    Parameter-free auto-weighted multiple graph learning: a framework for multiview clustering and
    semi-supervised classification. IJCAI, 2016.

    Examples
    --------
    >>> from viewfold.baselines import AMGL
    >>> from viewfold.datasets import make_multiview
    >>> views = make_multiview(100, (5, 4), 3, random_state=0).views
    >>> AMGL(3, random_state=0).fit(views).embedding_.shape
    (100, 3)
    """

    scalings: ClassVar[tuple[str, ...]] = ("none", "zscore", "unit")
    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **Baseline._parameter_constraints,
        "n_neighbors": COUNT,
        "max_iter": COUNT,
        "tol": NON_NEGATIVE,
        "scale": SCALING,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 5,
        max_iter: int = 100,
        tol: float = 1e-8,
        scale: str = "none",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.max_iter = max_iter
        self.tol = tol
        self.scale = scale
        self.random_state = random_state

    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        graphs = [laplacian(pkn_graph(X, self.n_neighbors)) for X in data.views]
        alpha = np.full(len(graphs), 1 / len(graphs))
        objective: list[float] = []
        F: Array | None = None
        for _ in range(self.max_iter):
            L = sum(a * L for a, L in zip(alpha, graphs, strict=True))
            _, F = smallest_eigenvectors(L, self.n_clusters, rng, guess=F)
            # A graph of k components would have trace 0, and all the weight.
            root = np.sqrt([max(float(np.sum(F * (L @ F))), 1e-12) for L in graphs])
            alpha = 1 / (2 * root)
            objective.append(float(root.sum()))
            if len(objective) > 2 and objective[-2] - objective[-1] < self.tol * objective[-2]:
                break
        return Solution(F, objective=tuple(objective))
