"""NEMO: similarities relative to neighbourhoods, averaged over the views that have both samples.

The average needs no completion of missing samples, which makes it the rival for accuracy on
incomplete views. The graph is sparse here, n/k neighbours of each sample, as published; what pairs
without a common view get is a matrix of low rank beside it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator
from sklearn.metrics import euclidean_distances

from viewfold_research._linalg import Matrix
from viewfold_research.baselines._base import Aligned, Baseline, Solution
from viewfold_research.baselines._blocks import spectral_embedding
from viewfold_research.baselines._parameters import COUNT, StrOptions, with_parameters


@with_parameters
class NEMO(Baseline):
    """Neighbourhood-based multi-omics clustering, for complete and incomplete views.

    In each view, with d² the squared distances and s_ij the mean of d²_ij and of the mean d² of i
    and of j to their q neighbours, S_ij is a normal density: of d_ij with variance s_ij in the
    paper, of d²_ij with standard deviation s_ij / 2 in its authors' program. The relative
    similarity is S_ij / Σ_{l near i} S_il if j is near i, plus the same the other way round. It is
    averaged over the views that have both samples; normalised spectral clustering follows.

    The paper takes it that any two samples share a view. Where they do not, the authors' program
    gives them the mean similarity of those that do: nothing is known about the pair. With 0 they
    would be as different as can be, and clusters would follow the gaps.

    Cost: the neighbours, O(n² d) in time at worst, and O(n q) in memory for each view, with
    q = n / k by default: n² / k numbers, so give a smaller `n_neighbors` for many samples; where
    many distances are equal, as of short documents, there are more. Use it
    for a few thousand samples, incomplete or not. If no sample joins two groups of views, clusters
    of one are not those of the other but by chance.

    Parameters
    ----------
    n_neighbors : int or None, default=None
        Neighbours of each sample, and those as near as the last of them; None for n_v / k in a
        view of n_v samples.
    kernel : {'program', 'paper'}, default='program'
        S as the authors' program has it, which falls off faster, or as the paper has it.
    unshared : {'mean', 'zero'}, default='mean'
        The similarity of samples that share no view: the mean of all others, or 0.
    random_state : int, RandomState or None, default=None
        Determines the start of the eigensolver and k-means.

    Attributes
    ----------
    affinity_ : csr_array of shape (n_samples, n_samples)
        The average relative similarity of samples that share a view, 0 for others.
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
        "kernel": [StrOptions({"program", "paper"})],
        "unshared": [StrOptions({"mean", "zero"})],
    }

    n_neighbors: int | None = None
    kernel: str = "program"
    unshared: str = "mean"
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
                q = self._neighbours(len(rows))
                near = relative_similarity(X[rows], q, self.kernel).tocoo()
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
        whole = filled(W, data.present) if self.unshared == "mean" else W
        cut, U = spectral_embedding(whole, self.n_clusters, rng)
        return Solution(U, affinity=W, objective=(cut,))


def filled(W: sparse.csr_array, present: NDArray[np.bool_]) -> Matrix:
    """Return a graph in which pairs without a common view have the mean weight of the other pairs.

    Which pairs these are depends on the views that samples are in, so that W + P A Pᵀ is the graph,
    with P samples × patterns of views, and A patterns × patterns: a LinearOperator.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from viewfold_research.baselines.nemo import filled
    >>> W = sparse.csr_array(np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    >>> present = np.array([[True, False], [True, True], [False, True]])
    >>> (filled(W, present) @ np.eye(3)).tolist()
    [[0.0, 2.0, 1.5], [2.0, 0.0, 1.0], [1.5, 1.0, 0.0]]
    """
    patterns, which = np.unique(present, axis=0, return_inverse=True)
    apart = ~(patterns @ patterns.T)
    if not apart.any():
        return W
    n, which = len(present), which.ravel()
    sizes = np.bincount(which).astype(float)
    pairs = n * n - n - sizes @ apart @ sizes
    P = sparse.csr_array((np.ones(n), which, np.arange(n + 1)), shape=(n, len(patterns)))
    P, A = aslinearoperator(P), aslinearoperator(apart * (W.sum() / pairs))
    return aslinearoperator(W) + P @ A @ P.T


def relative_similarity(X: Matrix, q: int, kernel: str = "program") -> sparse.csr_array:
    """Return the similarity of neighbours relative to that of all neighbours, symmetric.

    All samples as near as the q-th neighbour are neighbours: of documents without a common word,
    which are all equally far, none is nearer than others.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research.baselines.nemo import relative_similarity
    >>> relative_similarity(np.array([[0.0], [1.0], [5.0]]), 1).toarray().tolist()
    [[0.0, 2.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    n = X.shape[0]
    mean, parts = np.empty(n), []
    step = max(1, 2**18 // n)  # distances of so many samples at a time
    for start in range(0, n, step):
        squares = euclidean_distances(X[start : start + step], X, squared=True)
        at = np.arange(len(squares))
        squares[at, start + at] = np.inf
        nearest = np.partition(squares, min(q, n - 1) - 1, axis=1)[:, : min(q, n - 1)]
        mean[start : start + step] = nearest.mean(axis=1)
        # Rounding must not choose between equal distances, nor must the order of samples.
        i, j = np.nonzero(squares <= nearest.max(axis=1, keepdims=True) * (1 + 1e-9))
        parts.append((start + i, j, squares[i, j]))
    i, j, d = map(np.concatenate, zip(*parts, strict=True))
    # Samples that are equal have s = 0; a sum of 1 / tiny would be infinite.
    s = np.maximum((mean[i] + mean[j] + d) / 3, np.sqrt(np.finfo(float).tiny))
    # Normal densities without factors that are the same for all.
    S = np.exp(-d / (2 * s)) / np.sqrt(s) if kernel == "paper" else np.exp(-2 * (d / s) ** 2) / s
    near = sparse.csr_array((S / np.bincount(i, S)[i], (i, j)), shape=(n, n))
    return sparse.csr_array(near + near.T)
