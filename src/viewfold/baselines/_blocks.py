"""Building blocks that several baselines share: simplex, graphs, Laplacians, spectral embeddings.

Each is a plain function on arrays. Graphs of nearest neighbours are sparse.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, lobpcg
from sklearn.neighbors import NearestNeighbors

from viewfold.blocks import Array, Matrix


def simplex(rows: Array) -> Array:
    """Project every row on the simplex {z ≥ 0, Σz = 1}.

    Sort a row descending, u₁ ≥ u₂ ≥ …; with ρ the last j for which
    u_j > θ_j = (u₁ + … + u_j − 1)/j, the projection is max(row − θ_ρ, 0).

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.baselines._blocks import simplex
    >>> simplex(np.array([[0.5, 0.5], [3.0, 0.0], [0.2, 0.4]]))
    array([[0.5, 0.5],
           [1. , 0. ],
           [0.4, 0.6]])
    """
    out = np.empty_like(rows)
    step = max(1, 2**18 // max(rows.shape[1], 1))  # what stays in the cache while it is sorted
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        u = -np.sort(-some, axis=1)
        theta = (np.cumsum(u, axis=1) - 1) / np.arange(1, rows.shape[1] + 1)
        rho = np.count_nonzero(u > theta, axis=1) - 1
        shift = theta[np.arange(len(some)), rho]
        np.maximum(some - shift[:, None], 0, out=out[start : start + step])
    return out


def neighbours(X: Matrix, q: int) -> tuple[Array, NDArray[np.intp]]:
    """Return squared distances to the q nearest other rows, ascending, and which rows they are."""
    q = min(q, X.shape[0] - 1)
    distance, which = NearestNeighbors(n_neighbors=q).fit(X).kneighbors()
    return distance**2, which


def knn_graph(X: Matrix, q: int) -> sparse.csr_array:
    """Return the graph that joins rows to their q nearest: weight 1, symmetric (either way counts).

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.baselines._blocks import knn_graph
    >>> knn_graph(np.array([[0.0], [1.0], [5.0]]), 1).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    _, which = neighbours(X, q)
    graph = _graph(np.ones(which.shape), which)
    return sparse.csr_array(graph.maximum(graph.T))


def pkn_graph(X: Matrix, q: int = 5) -> sparse.csr_array:
    """Return the graph of probabilistic neighbours: w_ij = (e_{q+1} − e_j) / (q e_{q+1} − Σe).

    e are the squared distances to the q + 1 nearest, ascending; rows sum to 1 before the graph is
    made symmetric as (W + Wᵀ)/2.
    """
    squares, which = neighbours(X, q + 1)
    nearest, last = squares[:, :-1], squares[:, -1:]
    gap = last - nearest
    total = gap.sum(axis=1, keepdims=True)
    weight = np.where(total > 0, gap / np.where(total > 0, total, 1), 1 / gap.shape[1])
    graph = _graph(weight, which[:, :-1])
    return sparse.csr_array((graph + graph.T) / 2)


def _graph(weight: Array, which: NDArray[np.intp]) -> sparse.csr_array:
    n, q = which.shape
    starts = np.arange(0, n * q + 1, q)
    return sparse.csr_array((weight.ravel(), which.ravel(), starts), shape=(n, n))


def laplacian(W: Matrix, *, normalised: bool = True) -> Matrix:
    """Return I − D^(-1/2) W D^(-1/2), or D − W, of a symmetric graph; isolated rows stay zero."""
    degree = np.asarray(W.sum(axis=1)).ravel()
    if not normalised:
        return sparse.diags_array(degree) - W if sparse.issparse(W) else np.diag(degree) - W
    factor = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    if sparse.issparse(W):
        scale = sparse.diags_array(factor)
        return sparse.csr_array(sparse.eye_array(W.shape[0]) - scale @ W @ scale)
    return np.eye(len(W)) - factor[:, None] * W * factor


def smallest_eigenvectors(L: Matrix, k: int, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Return the k smallest eigenvalues of a symmetric L ≥ 0, ascending, and their vectors.

    A dense L is decomposed directly. Of a sparse one they come from LOBPCG in rounds, which needs
    products with L only; signs are fixed, so that equal input gives equal vectors.
    """
    n = L.shape[0]
    if not sparse.issparse(L) or n < 1000 or k > n // 5:
        full = L.toarray() if sparse.issparse(L) else L
        values, vectors = linalg.eigh(full, subset_by_index=(0, min(k, n) - 1))
    else:
        guess = rng.standard_normal((n, k + min(k, 5)))
        diagonal = np.maximum(L.diagonal(), 1e-12)
        shape = LinearOperator((n, n), matvec=lambda x: x.ravel() / diagonal, dtype=float)
        values, vectors = lobpcg(L, guess, M=shape, largest=False, tol=1e-6, maxiter=500)
        order = np.argsort(values)[:k]
        values, vectors = values[order], vectors[:, order]
    peak = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return values, vectors * np.where(peak < 0, -1.0, 1.0)


def settled(course: list[float], tol: float, after: int = 2) -> bool:
    """Tell whether an objective changed by at most `tol` of its size, after some iterations.

    Examples
    --------
    >>> from viewfold.baselines._blocks import settled
    >>> settled([5.0, 3.0, 3.0], 1e-6), settled([5.0, 3.0], 1), settled([5.0, 3.0, 2.0], 1e-6)
    (True, False, False)
    """
    return len(course) > after and abs(course[-2] - course[-1]) <= tol * abs(course[-1])
