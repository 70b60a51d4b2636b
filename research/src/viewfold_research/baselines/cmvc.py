"""CMVC: views one after the other, each as a partition that is turned to fit the sum of the others.

What is kept between views is one matrix of n × k, so it is a continual method like `FCMVC` and
`ViewFold`; but every view must have every sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, eigsh, svds
from sklearn.metrics.pairwise import euclidean_distances

from viewfold import as_view
from viewfold_research._linalg import Array, Matrix, inverse_sqrt, polar, unit_rows
from viewfold_research.baselines._base import Aligned, Baseline, Solution, align, dense, scaled
from viewfold_research.baselines._parameters import POSITIVE, StrOptions, with_parameters

_MOST_SAMPLES = 5000  # with a kernel of n × n, if nobody asks for one


@dataclass(frozen=True)
class _Folded:
    """What is known after some views."""

    ids: Array
    total: Array
    n_views: int
    objective: tuple[float, ...]


@with_parameters
class CMVC(Baseline):
    """Continual multi-view clustering.

    View t becomes a base partition H_t (n × k): the top eigenvectors of its Gaussian kernel
    exp(−d²/(2 mean d²)), centred and of unit diagonal; or, of a linear kernel, the left singular
    vectors of the centred view. With H̄ the mean of the partitions before, as they were turned,
    max tr(Hᵀ(H_tW + λH̄)) over HᵀH = I and WᵀW = I is found by polar factors alternately, and H_tW
    joins the sum. The objective never falls. The rows of the sum, scaled to unit length, are
    clustered. `fit` forgets everything and folds the views one after the other, as `partial_fit`
    does. W begins as the best turn towards H̄: results do not depend on signs of eigenvectors.

    Cost: with a linear kernel O(n d k) in time and O(n (d + k)) in memory for each view; with a
    Gaussian one O(n² d) and O(n²). Turning costs O(n k²), iterations O(k³) only. Use it where views
    arrive one after the other, complete.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of columns of a partition.
    weight : float, default=1
        λ, how much the partitions before count against the new one.
    kernel : {'auto', 'gaussian', 'linear'}, default='auto'
        What partitions are made of; 'auto' is Gaussian for up to 5000 samples.
    max_iter : int, default=100
        Iterations at most, for each view.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_clusters)
        The sum of the partitions, its rows of unit length.
    objective_ : ndarray
        The objective after each iteration, of the view that came last.
    n_iter_ : int
        Number of iterations for the view that came last.
    n_views_ : int
        Number of views so far.

    References
    ----------
    Continual multi-view clustering. ACM Multimedia, 2022. The authors load kernels from files that
    are not published; the Gaussian one is what later programs of theirs name.

    Examples
    --------
    >>> from viewfold_research.baselines import CMVC
    >>> from viewfold.datasets import make_multiview
    >>> views = make_multiview(100, (5, 4), 3, random_state=0).views
    >>> model = CMVC(3, random_state=0)
    >>> for X in views.values():
    ...     labels = model.partial_fit(X).labels_
    >>> bool((labels == CMVC(3, random_state=0).fit(views).labels_).all())
    True
    """

    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "weight": tuple(2.0**power for power in range(-10, 11)),
    }
    kmeans_starts: ClassVar[int] = 50
    scalings: ClassVar[tuple[str, ...]] = ("none", "zscore", "unit")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "weight": POSITIVE,
        "kernel": [StrOptions({"auto", "gaussian", "linear"})],
    }

    weight: float = 1.0
    kernel: str = "auto"
    max_iter: int = 100
    tol: float = 1e-6

    def partial_fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Fold one more view of the same samples. It is not needed any more afterwards.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, AnnData, memmap, path or iterator
            The view; see `viewfold.as_view`.
        y : Ignored
            Here for scikit-learn's sake.
        ids : array-like or str, optional
            The sample ids, or the name of the DataFrame column that holds them; row numbers if not
            given.

        Returns
        -------
        self
        """
        self._validate_params()
        data = align([as_view(X, ids=ids, missing_cells="error")])
        self._check(data)
        before: _Folded | None = getattr(self, "_folded", None)
        if before is not None:
            data = _reordered(data, before.ids)
        return self._keep(data, self._fold(before, scaled(data, self.scale)))

    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        return self._fold(None, data)

    def _fold(self, before: _Folded | None, data: Aligned) -> Solution:
        for X in data.views:
            before = self._next(before, X, data.ids)
        assert before is not None
        self._folded = before
        self.n_views_ = before.n_views
        return Solution(unit_rows(before.total), objective=before.objective)

    def _next(self, before: _Folded | None, X: Matrix, ids: Array) -> _Folded:
        """Turn the partition of a view towards the mean of those before and add it.

        With A = H_tW + λH̄, H = A (AᵀA)^(-1/2), so HᵀH_t and the objective tr((AᵀA)^(1/2)) follow
        from k × k products of H_t and H̄: no iteration looks at samples.
        """
        k = self.n_clusters
        H = partition(X, k, gaussian=self._gaussian(X.shape[0]))
        total, t = (np.zeros_like(H), 0) if before is None else (before.total, before.n_views)
        mean = total / max(t, 1)
        own, cross, past = H.T @ H, self.weight * (H.T @ mean), self.weight**2 * (mean.T @ mean)
        W, objective = polar(cross), list[float]()
        while len(objective) < self.max_iter:
            across = W.T @ cross
            AA = W.T @ own @ W + across + across.T + past
            T, _ = inverse_sqrt((AA + AA.T) / 2)
            W = polar((own @ W + cross) @ T)
            objective.append(float(np.vdot(T, AA)))
            if (
                len(objective) > 2
                and abs(objective[-1] - objective[-2]) <= self.tol * objective[-1]
            ):
                break
        return _Folded(ids, total + H @ W, t + 1, tuple(objective))

    def _gaussian(self, n: int) -> bool:
        return self.kernel == "gaussian" or (self.kernel == "auto" and n <= _MOST_SAMPLES)

    def _bytes(self, n: int, widths: list[int]) -> int:
        return 3 * 8 * n**2 if self._gaussian(n) else 0


def _reordered(data: Aligned, ids: Array) -> Aligned:
    """Return the rows of one view in the order of the samples that are known."""
    at = pd.Index(data.ids).get_indexer(pd.Index(ids))
    lacking, new = np.count_nonzero(at < 0), len(data.ids) - np.count_nonzero(at >= 0)
    if lacking or new:
        raise ValueError(
            f"CMVC needs every sample in every view, but this one lacks {lacking} of the "
            f"{len(ids)} known samples and has {new} others. Give the same rows or ids as before."
        )
    return Aligned((data.views[0][at],), data.present[at], ids)


def partition(X: Matrix, k: int, *, gaussian: bool) -> Array:
    """Return the base partition of a view: orthonormal columns, zero ones where it has too few.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research.baselines.cmvc import partition
    >>> partition(np.array([[1.0], [1.0], [1.0], [5.0]]), 2, gaussian=False).round(3)
    array([[-0.289,  0.   ],
           [-0.289,  0.   ],
           [-0.289,  0.   ],
           [ 0.866,  0.   ]])
    """
    vectors = _of_kernel(_kernel(X), k) if gaussian else _of_features(X, k)
    full = np.zeros((X.shape[0], k))
    full[:, : vectors.shape[1]] = vectors
    # Columns of the other sign are as good; equal views should give equal columns.
    peak = full[np.abs(full).argmax(axis=0), np.arange(k)]
    return full * np.where(peak < 0, -1.0, 1.0)


def _kernel(X: Matrix) -> Array:
    K = np.asarray(euclidean_distances(X, squared=True))
    mean = K.mean()
    np.exp(np.divide(K, -2 * mean if mean > 0 else -1.0, out=K), out=K)
    rows = K.mean(axis=0)
    K -= rows
    K -= rows[:, None]
    K += rows.mean()
    length = np.sqrt(np.maximum(K.diagonal(), 0))
    factor = np.divide(1, length, out=np.zeros_like(length), where=length > 1e-12)
    K *= factor
    K *= factor[:, None]
    return K


def _of_kernel(K: Array, k: int) -> Array:
    n = len(K)
    if n < 500 or k > n // 5:
        _, vectors = linalg.eigh(K, subset_by_index=(max(n - k, 0), n - 1))
    else:
        _, vectors = eigsh(K, k, which="LA", v0=_start(n))
    return np.asarray(vectors[:, ::-1])


def _of_features(X: Matrix, k: int) -> Array:
    """Return left singular vectors of the centred view, which is not formed if it is large."""
    n, d = X.shape
    mean = np.asarray(X.mean(axis=0)).ravel()
    if min(n, d) <= max(2 * k, 50):
        U, s, _ = linalg.svd(dense(X) - mean, full_matrices=False)
    else:
        centred = LinearOperator(
            (n, d),
            matvec=lambda x: X @ x.ravel() - mean @ x.ravel(),  # also called with one column
            rmatvec=lambda y: X.T @ y.ravel() - mean * y.sum(),
            dtype=float,
        )
        U, s, _ = svds(centred, k, v0=_start(min(n, d)))
    order = np.argsort(-s)[:k]
    keep = order[s[order] > 1e-12 * max(s.max(initial=0), 1e-300)]
    return np.asarray(U[:, keep])


def _start(n: int) -> Array:
    """Return where eigensolvers begin: the same every time, so that equal views agree."""
    return np.random.RandomState(0).standard_normal(n)
