"""AMGL: one embedding for the graphs of all views, whose weights follow from the embedding itself.

A view whose graph fits the embedding badly counts less, without any parameter. The graphs are
sparse here, so that tens of thousands of samples fit.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from viewfold_research._linalg import Array
from viewfold_research.baselines._base import Aligned, Baseline, Solution
from viewfold_research.baselines._blocks import laplacian, pkn_graph, smallest_eigenvectors
from viewfold_research.baselines._parameters import COUNT, with_parameters


@with_parameters
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
    n_neighbors : int, default=5
        Neighbours of each sample in the graphs.
    tol : float, default=1e-8
        Stop when the objective falls by less, relative to its value.
    scale : {'none', 'zscore', 'unit', 'minmax'}, default='none'
        How views are scaled first; the authors leave them as they are.
    random_state : int, RandomState or None, default=None
        Determines the start of the eigensolver and k-means.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_clusters)
        F, on which k-means runs.
    objective_ : ndarray
        Σ_v √tr(FᵀL_vF) after each iteration.

    References
    ----------
    Parameter-free auto-weighted multiple graph learning: a framework for multiview clustering and
    semi-supervised classification. IJCAI, 2016.
    """

    scalings: ClassVar[tuple[str, ...]] = ("none", "zscore", "unit")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": COUNT,
    }

    n_neighbors: int = 5
    max_iter: int = 100
    tol: float = 1e-8

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
