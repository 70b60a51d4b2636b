"""LMVSC: samples as mixtures of a few anchors in each view, and one SVD of all mixtures.

The subspace method for many samples: no matrix has more than n × (anchors of all views) entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from viewfold_research._linalg import Array
from viewfold_research.baselines._base import Aligned, Baseline, Solution
from viewfold_research.baselines._blocks import anchors, simplex_quadratic
from viewfold_research.baselines._parameters import COUNT, POSITIVE, with_parameters


@with_parameters
class LMVSC(Baseline):
    """Large-scale multi-view subspace clustering.

    In each view, the m centres A_v of k-means are anchors, and every sample is the mixture of them
    that minimises ‖x − zA_v‖² + α‖z‖² over z ≥ 0, Σz = 1. The embedding is the k leading left
    singular vectors of [Z_1, …, Z_V] / √V.

    Cost: O(n V (m d + T m²) + n (m V)²) in time for T steps of the mixtures, O(n m V) in memory:
    linear in n. Use it on many samples; it depends on the scale of features, and more anchors than
    clusters often help.

    Parameters
    ----------
    n_anchors : int or None, default=None
        Anchors of each view; None for as many as clusters.
    alpha : float, default=1
        Weight of ‖z‖²: the larger, the more anchors share a sample.
    scale : {'none', 'zscore', 'unit', 'minmax'}, default='zscore'
        How views are scaled first; the authors leave that open.
    random_state : int, RandomState or None, default=None
        Determines the starts of k-means.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Singular vectors, on which k-means runs.
    objective_ : ndarray of shape (n_views,)
        ‖X_v − Z_vA_v‖² + α‖Z_v‖² at the optimum. The views are solved once, one after the other.
    n_iter_ : int
        Number of problems solved: one for each view.

    References
    ----------
    Large-scale multi-view subspace clustering in linear time. AAAI, 2020.
    """

    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "n_anchors": (None, 50, 100),
        "alpha": (0.01, 1, 100),
    }
    scalings: ClassVar[tuple[str, ...]] = ("zscore", "none", "unit")
    kmeans_starts: ClassVar[int] = 10
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_anchors": [*COUNT, None],
        "alpha": POSITIVE,
    }

    n_anchors: int | None = None
    alpha: float = 1
    scale: str = "zscore"

    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        m = self.n_clusters if self.n_anchors is None else self.n_anchors
        mixtures, objective = [], []
        for X in data.views:
            A = anchors(X, m, rng)
            H = A @ A.T + self.alpha * np.eye(len(A))
            cross = np.asarray(X @ A.T)
            Z = simplex_quadratic(H, cross)
            mixtures.append(Z)
            square = float(X.multiply(X).sum() if hasattr(X, "multiply") else np.sum(X * X))
            objective.append(square + float(np.sum(Z * (Z @ H - 2 * cross))))
        joint = np.hstack(mixtures) / np.sqrt(len(mixtures))
        return Solution(_left_singular(joint, self.n_clusters), objective=tuple(objective))


def _left_singular(Z: Array, k: int) -> Array:
    """Return the k leading left singular vectors of a tall matrix, by its small Gram matrix."""
    values, V = linalg.eigh(Z.T @ Z)
    values, V = values[::-1][:k], V[:, ::-1][:, :k]
    keep = values > 1e-10 * values[0]
    return np.asarray(Z @ (V[:, keep] / np.sqrt(values[keep])))
