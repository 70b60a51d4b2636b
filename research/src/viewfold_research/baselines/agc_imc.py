"""AGC-IMC: the graph of every view, completed from the graphs of the others.

A view's graph has no edges at samples that it lacks. Each graph is fitted to its own edges, to a
mixture of the other graphs and to a common embedding. Graphs are dense n × n matrices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import euclidean_distances

from viewfold_research._linalg import Array, unit_rows
from viewfold_research.baselines._base import Aligned, Baseline, Solution, unit_samples
from viewfold_research.baselines._blocks import knn_graph, laplacian, simplex, smallest_eigenvectors
from viewfold_research.baselines._parameters import (
    ABOVE_1,
    COUNT,
    POSITIVE,
    StrOptions,
    with_parameters,
)


@with_parameters
class AGCIMC(Baseline):
    r"""Adaptive graph completion based incomplete multi-view clustering.

    With S⁰_v the graph of nearest neighbours in view v and W_v the pairs of samples that it has,

    .. math:: \min \sum_v a_v^r \{ \|(S_v - S^0_v) \circ W_v\|^2
              + \lambda_1 \|S_v - \sum_{u \ne v} b_{uv} S_u\|^2
              + \lambda_3 \operatorname{tr}(U^T L_{S_v} U) \}

    with UᵀU = I; the rows of S_v, the mixture b_v of the other views and the weights a are on the
    simplex. The rows of U, scaled to length 1, are clustered.

    Cost: O(n³ + V² n²) for an iteration, O(V n²) in memory. Use it on a few thousand samples at
    most, with clusters that are connected rather than round.

    Parameters
    ----------
    completion : float, default=10
        λ₁, how much a graph follows the others.
    smoothness : float, default=100
        λ₃, how much the graphs follow the embedding.
    power : float, default=2
        r > 1; the larger, the more equal are the weights of the views.
    n_neighbors : int, default=11
        Neighbours of each sample in the graphs.
    anchor : {'current', 'initial'}, default='current'
        What a graph is held to where the view has both samples: the graph of the iteration before,
        as in the authors' program, or S⁰_v, as in the paper. The first drifts, and is often better.
    tol : float, default=1e-6
        Stop when the objective changes by less.
    scale : {'none', 'zscore', 'unit', 'minmax'}, default='none'
        How views are scaled first. After that, every sample is scaled to length 1.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Rows of U of length 1.
    affinity_ : ndarray of shape (n_samples, n_samples)
        The mean of the graphs with the weights a_v^r, symmetric.
    objective_ : ndarray
        The objective after each iteration. It falls on the whole; the step for the graphs is not an
        exact minimum, so that it may rise by some 1e-5 of its size with anchor='initial', and by
        some 1e-3 with 'current'.

    References
    ----------
    Adaptive graph completion based incomplete multi-view clustering. IEEE Transactions on
    Multimedia, 2021.
    """

    incomplete: ClassVar[bool] = True
    scalings: ClassVar[tuple[str, ...]] = ("none", "zscore")
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "completion": tuple(10.0**i for i in range(-3, 4)),
        "smoothness": tuple(10.0**i for i in range(-3, 4)),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "completion": POSITIVE,
        "smoothness": POSITIVE,
        "power": ABOVE_1,
        "n_neighbors": COUNT,
        "anchor": [StrOptions({"current", "initial"})],
    }

    completion: float = 10.0
    smoothness: float = 100.0
    power: float = 2.0
    n_neighbors: int = 11
    anchor: str = "current"
    max_iter: int = 50
    tol: float = 1e-6

    def _bytes(self, n: int, widths: list[int]) -> int:
        # Per view its graph before and after, its residual and its first graph; seven on the way.
        return (4 * len(widths) + 7) * 8 * n**2

    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        first = np.array(
            [
                _first_graph(X, here, self.n_neighbors)
                for X, here in zip(unit_samples(data), data.present.T, strict=True)
            ]
        )
        S, a = first, np.full(len(first), 1 / len(first)) ** self.power
        trace: list[float] = []
        for _ in range(self.max_iter):
            _, U = smallest_eigenvectors(_mixed_laplacian(S, a), self.n_clusters, rng)
            squares = euclidean_distances(U, squared=True)
            B = mixtures(np.einsum("unm,vnm->uv", S, S, optimize=True))
            rest = S - np.tensordot(B, S, axes=1)
            a = self._weights(self._terms(S, first, rest, data.present, squares))
            S = self._graphs(S, first, rest, B, a, data.present, squares)
            rest = S - np.tensordot(B, S, axes=1)
            trace.append(float(a @ self._terms(S, first, rest, data.present, squares)))
            if len(trace) > 2 and abs(trace[-1] - trace[-2]) < self.tol:
                break
        mean = np.tensordot(a / a.sum(), S, axes=1)
        return Solution(unit_rows(U), affinity=(mean + mean.T) / 2, objective=tuple(trace))

    def _weights(self, terms: Array) -> Array:
        """Return a_v^r; a view that fits without any error would have all the weight."""
        a = np.maximum(terms, 1e-12) ** (1 / (1 - self.power))
        return np.asarray((a / a.sum()) ** self.power)

    def _terms(
        self, S: Array, first: Array, rest: Array, present: NDArray[np.bool_], squares: Array
    ) -> Array:
        """Return what is in the brackets of the objective, by view."""
        own = [
            np.sum((s - s0)[np.ix_(here, here)] ** 2)
            for s, s0, here in zip(S, first, present.T, strict=True)
        ]
        others = np.einsum("vnm,vnm->v", rest, rest)
        smooth = np.einsum("vnm,nm->v", S, squares) / 2  # tr(UᵀLU)
        return np.asarray(own + self.completion * others + self.smoothness * smooth)

    def _graphs(
        self,
        S: Array,
        first: Array,
        rest: Array,
        B: Array,
        a: Array,
        present: NDArray[np.bool_],
        squares: Array,
    ) -> Array:
        """Return better graphs, each from the others as they were."""
        new = np.empty_like(S)
        for v, here in enumerate(present.T):
            back = self.completion * a * B[:, v]  # what view v gives to the mixtures of others
            held = S[v] if self.anchor == "current" else first[v]
            T = self.completion * (S[v] - rest[v]) - self.smoothness / 4 * squares
            T[np.ix_(here, here)] += held[np.ix_(here, here)]
            T *= a[v]
            T += np.tensordot(back, rest, axes=1) + (back @ B[:, v]) * S[v]
            below = np.full_like(T, self.completion * a[v] + back @ B[:, v])
            below[np.ix_(here, here)] += a[v]
            T /= below
            np.fill_diagonal(T, -np.inf)
            new[v] = simplex(T)
        return new


def _first_graph(X: Array, here: NDArray[np.bool_], q: int) -> Array:
    graph = np.zeros((len(X), len(X)))
    if np.count_nonzero(here) > 1:
        graph[np.ix_(here, here)] = knn_graph(X[here], q).toarray()
    return graph


def _mixed_laplacian(S: Array, a: Array) -> Array:
    mean = np.tensordot(a, S, axes=1)
    return np.asarray(laplacian((mean + mean.T) / 2, normalised=False))


def mixtures(G: Array, max_iter: int = 500, tol: float = 1e-10) -> Array:
    """Write every view as a mixture of the others: row v of B minimises ‖s_v − Σ_u b_u s_u‖².

    Parameters
    ----------
    G : ndarray of shape (V, V)
        Inner products of the views.
    max_iter : int
        Steps of accelerated projected gradient.
    tol : float
        Stop when no coefficient changes by more.

    Returns
    -------
    ndarray of shape (V, V)
        Rows on the simplex, with a diagonal of zeros; all zeros if there is one view.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research.baselines.agc_imc import mixtures
    >>> S = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    >>> mixtures(S @ S.T).round(6)[2]
    array([0.5, 0.5, 0. ])
    """
    V = len(G)
    if V == 1:
        return np.zeros((1, 1))
    B = (np.ones((V, V)) - np.eye(V)) / (V - 1)
    ahead, momentum = B, 1.0
    step = 1 / max(float(np.linalg.eigvalsh(G)[-1]), 1e-30)
    for _ in range(max_iter):
        T = ahead - step * (ahead @ G - G)
        np.fill_diagonal(T, -np.inf)
        before, B = B, simplex(T)
        if np.abs(B - before).max() <= tol:
            break
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead, momentum = B + (momentum - 1) / grown * (B - before), grown
    return B
