"""OPMC: labels of all views at once, without an embedding in between.

As its authors run it, the method is k-means on the views side by side; it is written as that here,
for many starts together.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from viewfold_research._linalg import Array, Matrix
from viewfold_research.baselines._base import Aligned, Baseline, Solution, dense
from viewfold_research.baselines._blocks import settled
from viewfold_research.baselines._nmf import squared_rows
from viewfold_research.baselines._parameters import COUNT, with_parameters

Labels = NDArray[np.intp]
_SCORES = 2**23  # samples × clusters × starts that one product serves: 64 MB


@with_parameters
class OPMC(Baseline):
    """One-pass multi-view clustering.

    Minimises Σ_v ‖X_v − Y C_v W_v‖² / V over an indicator Y (n × k), C_v (k × k) and W_v (k × d_v)
    with W_vW_vᵀ = I. Given Y, the product C_vW_v is the means of the clusters, whatever the number
    of features: the rows of W_v span what the means span. So this is k-means on the views side by
    side, from random labels, the best of many starts; W_v and C_v are never formed. An empty
    cluster has its centre at the origin, as in the authors' program. The objective never rises.

    Cost: O(n d k) in time for each iteration of each start, O(n d) in memory, d being the number of
    features of all views. Use it for many samples in round clusters; views count by their total
    variance, so scale them.

    Parameters
    ----------
    n_init : int, default=100
        Random starts; the one with the least objective counts.
    max_iter : int, default=300
        Iterations at most, of each start.
    scale : {'zscore', 'unit', 'none', 'minmax'}, default='zscore'
        How views are scaled first. The authors standardise the rows of their demo; published
        numbers of others need standardised features.
    random_state : int, RandomState or None, default=None
        Determines the starts.

    Attributes
    ----------
    objective_ : ndarray
        The objective after each iteration of the best start.
    n_iter_ : int
        Number of iterations of the best start.

    References
    ----------
    One-pass multi-view clustering for large-scale data. ICCV, 2021. The authors' program keeps all
    views at equal weight (the line that changes weights is commented out), and so does this.
    """

    scalings: ClassVar[tuple[str, ...]] = ("zscore", "unit", "none")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_init": COUNT,
    }

    n_init: int = 100
    max_iter: int = 300
    tol: float = 1e-5
    scale: str = "zscore"

    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        n, k = data.n_samples, self.n_clusters
        square = sum(float(squared_rows(X).sum()) for X in data.views)
        together = max(1, _SCORES // (n * k))
        found: list[tuple[Labels, list[float]]] = []
        for first in range(0, self.n_init, together):
            starts = rng.randint(k, size=(min(together, self.n_init - first), n))
            found.append(self._lloyd(data.views, starts, square))
        labels, course = min(found, key=lambda one: one[1][-1])
        return Solution(labels=labels, objective=tuple(np.array(course) / len(data.views)))

    def _lloyd(
        self, views: tuple[Matrix, ...], labels: Labels, square: float
    ) -> tuple[Labels, list[float]]:
        """Run k-means from several labellings (starts × samples); return the best with its course.

        Sums over clusters follow the samples that move, which are few after some iterations.
        """
        k = self.n_clusters
        courses: list[list[float]] = [[] for _ in labels]
        going = np.arange(len(labels))
        sums = [np.zeros((len(labels), k, X.shape[1])) for X in views]
        before = np.full_like(labels, -1)
        for _ in range(self.max_iter):
            moves = _moves(before[going], labels[going], k)
            for total, X in zip(sums, views, strict=True):
                total[going] += dense(moves @ X).reshape(len(going), k, -1)
            before[going] = labels[going]
            sizes = np.array([np.bincount(row, minlength=k) for row in labels[going]])
            centres = [total[going] / np.maximum(sizes, 1)[..., None] for total in sums]
            labels[going], value = _nearest(views, centres, square)
            for start, loss in zip(going, value, strict=True):
                courses[start].append(float(loss))
            going = np.array([s for s in going if not settled(courses[s], self.tol)], np.intp)
            if not going.size:
                break
        best = int(np.argmin([course[-1] for course in courses]))
        return labels[best], courses[best]


def _moves(before: Labels, after: Labels, k: int) -> sparse.csr_array:
    """Return what adds a sample to the sums of its new cluster, and takes it from the old one.

    Clusters of all starts are rows, samples are columns; -1 stands for no cluster.
    """
    start, sample = np.nonzero(before != after)
    old, new = before[start, sample], after[start, sample]
    known = old >= 0
    rows = np.concatenate([start * k + new, (start * k + old)[known]])
    columns = np.concatenate([sample, sample[known]])
    sign = np.concatenate([np.ones(len(new)), -np.ones(np.count_nonzero(known))])
    shape = (len(before) * k, before.shape[1])
    return sparse.csr_array(sparse.coo_array((sign, (rows, columns)), shape=shape))


def _nearest(
    views: tuple[Matrix, ...], centres: list[Array], square: float
) -> tuple[Labels, Array]:
    """Return the nearest centre of each sample (starts × samples), and each start's loss."""
    starts, k, _ = centres[0].shape
    score = np.zeros((views[0].shape[0], starts * k))
    for X, C in zip(views, centres, strict=True):
        flat = C.reshape(starts * k, -1)
        score += np.einsum("ij,ij->i", flat, flat) - 2 * (X @ flat.T)
    by_start = score.reshape(-1, starts, k)
    return by_start.argmin(axis=2).T, square + by_start.min(axis=2).sum(axis=0)
