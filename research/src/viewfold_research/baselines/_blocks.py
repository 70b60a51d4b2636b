"""Building blocks that several baselines share: simplex, graphs, Laplacians, spectral embeddings.

Each is a plain function on arrays. Graphs of nearest neighbours are sparse.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator, lobpcg
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from viewfold_research._linalg import Array, Matrix, unit_rows


def simplex(rows: Array) -> Array:
    """Project every row on the simplex {z ≥ 0, Σz = 1}.

    Sort a row descending, u₁ ≥ u₂ ≥ …; with ρ the last j for which
    u_j > θ_j = (u₁ + … + u_j − 1)/j, the projection is max(row − θ_ρ, 0).

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research.baselines._blocks import simplex
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
    >>> from viewfold_research.baselines._blocks import knn_graph
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
    """Return I − D^(-1/2) W D^(-1/2), or D − W, of a symmetric graph; isolated rows stay zero.

    The normalised one of a graph that is a LinearOperator is one, too.
    """
    degree = W @ np.ones(W.shape[0])
    if not normalised:
        return sparse.diags_array(degree) - W if sparse.issparse(W) else np.diag(degree) - W
    factor = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    if isinstance(W, LinearOperator):
        one, scale = (
            aslinearoperator(sparse.diags_array(d)) for d in (np.ones_like(factor), factor)
        )
        return one - scale @ W @ scale
    if sparse.issparse(W):
        scale = sparse.diags_array(factor)
        return sparse.csr_array(sparse.eye_array(W.shape[0]) - scale @ W @ scale)
    return np.eye(len(W)) - factor[:, None] * W * factor


def smallest_eigenvectors(
    L: Matrix, k: int, rng: np.random.RandomState, guess: Array | None = None
) -> tuple[Array, Array]:
    """Return the k smallest eigenvalues of a symmetric L ≥ 0, ascending, and their vectors.

    A small or dense L is decomposed directly. Of a large sparse one (or of a large dense one with a
    guess) they come from LOBPCG, which needs products with L only and, unlike Lanczos, misses none
    of several equal eigenvalues. Signs are fixed, so that equal input gives equal vectors.

    Parameters
    ----------
    L : ndarray, sparse array or LinearOperator of shape (n, n)
        The matrix.
    k : int
        How many.
    rng : RandomState
        Where random starts come from.
    guess : ndarray of shape (n, k), optional
        The vectors of a similar matrix.
    """
    n = L.shape[0]
    operator = isinstance(L, LinearOperator)
    products = sparse.issparse(L) or operator or guess is not None
    if n < 1000 or k > n // 5 or not products:
        full = L @ np.eye(n) if operator else L.toarray() if sparse.issparse(L) else L
        values, vectors = linalg.eigh(full, subset_by_index=(0, min(k, n) - 1))
    else:
        start = rng.standard_normal((n, k + min(k, 5)))
        if guess is not None:
            start[:, : guess.shape[1]] = guess
        diagonal = np.ones(n) if operator else L.diagonal()
        diagonal = np.maximum(diagonal, 1e-3 * np.abs(diagonal).mean())
        shape = LinearOperator((n, n), matvec=lambda x: x.ravel() / diagonal, dtype=float)
        values, vectors = lobpcg(L, start, M=shape, largest=False, tol=1e-6, maxiter=500)
        order = np.argsort(values)[:k]
        values, vectors = values[order], vectors[:, order]
    peak = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return values, vectors * np.where(peak < 0, -1.0, 1.0)


def settled(course: list[float], tol: float, after: int = 2) -> bool:
    """Tell whether an objective changed by at most `tol` of its size, after some iterations.

    Examples
    --------
    >>> from viewfold_research.baselines._blocks import settled
    >>> settled([5.0, 3.0, 3.0], 1e-6), settled([5.0, 3.0], 1), settled([5.0, 3.0, 2.0], 1e-6)
    (True, False, False)
    """
    return len(course) > after and abs(course[-2] - course[-1]) <= tol * abs(course[-1])


def spectral_embedding(W: Matrix, k: int, rng: np.random.RandomState) -> tuple[float, Array]:
    """Embed a graph by k smallest eigenvectors of its normalised Laplacian, rows of length 1.

    Returns
    -------
    float
        The sum of the eigenvalues: the relaxed normalised cut.
    ndarray of shape (n, k)
        The embedding.
    """
    values, vectors = smallest_eigenvectors(laplacian(W), k, rng)
    return float(values.sum()), unit_rows(vectors)


def anchors(X: Matrix, m: int, rng: np.random.RandomState, starts: int = 10) -> Array:
    """Return m centres of k-means, of 10,000 samples that are drawn if there are more."""
    if X.shape[0] > 10_000:
        X = X[rng.choice(X.shape[0], 10_000, replace=False)]
    kmeans = KMeans(min(m, X.shape[0]), n_init=starts, max_iter=100, random_state=rng)
    return np.asarray(kmeans.fit(X).cluster_centers_)


def simplex_quadratic(H: Array, B: Array, tol: float = 1e-7, max_iter: int = 2000) -> Array:
    """Minimise ½ zHzᵀ − bzᵀ on the simplex for every row b of B, with one positive definite H.

    Where Σz = 1, H + u1ᵀ + 1uᵀ with b + u is the same problem; u centres H, which takes the mean of
    the data, often by far its largest eigenvalue, out of the step size. Accelerated
    projected gradients, restarted where the momentum points uphill; a row is left alone as soon as
    a step moves none of its entries by more than `tol`.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research.baselines._blocks import simplex_quadratic
    >>> simplex_quadratic(np.diag([1.0, 3.0]), np.zeros((1, 2))).round(4)
    array([[0.75, 0.25]])
    """
    if len(H) == 1:
        return np.ones(B.shape)
    u = H.mean() / 2 - H.mean(axis=1)
    H, B = H + u + u[:, None], B + u
    step = 1 / linalg.eigvalsh(H, subset_by_index=(len(H) - 1, len(H) - 1))[0]
    result = np.full(B.shape, 1 / B.shape[1])
    left = np.arange(len(B))
    Z = Y = result
    t = np.ones((len(B), 1))
    for _ in range(max_iter):
        new = simplex(Y - step * (Y @ H - B[left]))
        moved = new - Z
        uphill = np.sum((Y - new) * moved, axis=1, keepdims=True) > 0
        t = np.where(uphill, 1, t)
        t_next = (1 + np.sqrt(1 + 4 * t**2)) / 2
        result[left] = new
        busy = np.abs(moved).max(axis=1) > tol
        if not busy.any():
            break
        Y = (new + (t - 1) / t_next * moved)[busy]
        Z, t, left = new[busy], t_next[busy], left[busy]
    return result
