"""NEMO: similarities relative to neighbourhoods, averaged over the views that have both samples.

The average needs no completion of missing samples, which makes it the rival for accuracy on
incomplete views. The graph is sparse here: n/k neighbours of each sample, as published.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from viewfold._types import Matrix
from viewfold.baselines._base import Aligned, Baseline, Solution
from viewfold.baselines._blocks import neighbours, spectral_embedding
from viewfold.baselines._parameters import COUNT, with_parameters


@with_parameters
class NEMO(Baseline):
    """Neighbourhood-based multi-omics clustering, for complete and incomplete views.

    In each view, with d² the squared distances, S_ij = exp(−d²_ij / 2s_ij) / √(2π s_ij), where s_ij
    is the mean of d²_ij and of the mean d² of i and of j to their q neighbours. The relative
    similarity is S_ij / Σ_{l near i} S_il if j is near i, plus the same the other way round. It is
    averaged over the views that have both samples; normalised spectral clustering follows.

    Cost: the neighbours, O(n² d) in time at worst, and O(n q) in memory for each view, with
    q = n / k by default: n² / k numbers, so give a smaller `n_neighbors` for many samples. Use it
    for a few thousand samples, incomplete or not. The graph should be connected.

    Parameters
    ----------
    n_neighbors : int or None, default=None
        Neighbours of each sample; None for n_v / k in a view of n_v samples.
    random_state : int, RandomState or None, default=None
        Determines the start of the eigensolver and k-means.

    Attributes
    ----------
    affinity_ : csr_array of shape (n_samples, n_samples)
        The average relative similarity.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Eigenvectors with rows of unit length, on which k-means runs.
    objective_ : ndarray of shape (1,)
        The relaxed normalised cut.
    n_iter_ : int
        1: nothing is iterated.

    References
    ----------
    NEMO: cancer subtyping by integration of partial multi-omic data. Bioinformatics 35, 2019.
    """

    incomplete: ClassVar[bool] = True
    scalings: ClassVar[tuple[str, ...]] = ("zscore", "none", "unit")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [*COUNT, None],
    }

    n_neighbors: int | None = None
    scale: str = "zscore"

    def _neighbours(self, n: int) -> int:
        return self.n_neighbors or max(n // self.n_clusters, 1)

    def _bytes(self, n: int, widths: list[int]) -> int:
        # Distances and indices, then the graph both ways and the sum: 12 bytes an entry.
        return 12 * n * min(self._neighbours(n), n - 1) * (4 + 2 * len(widths))

    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        n, total = data.n_samples, None
        for X, here in zip(data.views, data.present.T, strict=True):
            rows = np.flatnonzero(here)
            if len(rows) > 1:
                near = relative_similarity(X[rows], self._neighbours(len(rows))).tocoo()
                at = rows[near.row], rows[near.col]
                near = sparse.csr_array((near.data, at), shape=(n, n))
                total = near if total is None else total + near
        if total is None:
            raise ValueError("NEMO needs a view with two samples at least.")
        graph = total.tocoo()
        seen = data.present.astype(np.uint8)
        both = np.zeros(len(graph.data))
        for v in range(len(data.views)):
            both += seen[graph.row, v] & seen[graph.col, v]
        W = sparse.csr_array((graph.data / both, (graph.row, graph.col)), shape=(n, n))
        cut, U = spectral_embedding(W, self.n_clusters, rng)
        return Solution(U, affinity=W, objective=(cut,))


def relative_similarity(X: Matrix, q: int) -> sparse.csr_array:
    """Return the similarity of neighbours relative to that of all neighbours, symmetric.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.baselines.nemo import relative_similarity
    >>> relative_similarity(np.array([[0.0], [1.0], [5.0]]), 1).toarray().tolist()
    [[0.0, 2.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    squares, which = neighbours(X, q)
    n, q = which.shape
    mean = squares.mean(axis=1)
    s = np.maximum((mean[:, None] + mean[which] + squares) / 3, np.finfo(float).tiny)
    S = np.exp(-squares / (2 * s)) / np.sqrt(2 * np.pi * s)
    S /= S.sum(axis=1, keepdims=True)
    starts = np.arange(0, n * q + 1, q)
    near = sparse.csr_array((S.ravel(), which.ravel(), starts), shape=(n, n))
    return sparse.csr_array(near + near.T)
