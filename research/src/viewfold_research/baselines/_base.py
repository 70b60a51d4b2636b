"""What all baselines share: views in, checked and aligned; labels, objective and iterations out.

A method is a subclass with one function, `_solve`, on plain matrices. What it cannot take (missing
samples, negative numbers, more samples than its n × n matrices allow) is told before it runs.
"""

from __future__ import annotations

import os
import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.preprocessing import minmax_scale, normalize
from sklearn.utils import Tags, check_random_state

from viewfold import as_views
from viewfold_research._linalg import Array, Matrix, unit_rows

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Aligned:
    """Views of the same samples, row by row.

    Attributes
    ----------
    views : tuple of ndarray or csr_array, each of shape (n_samples, n_features)
        The views; a row is zero where a sample is missing.
    present : ndarray of bool, shape (n_samples, n_views)
        Which samples are in which view.
    ids : ndarray of shape (n_samples,)
        The samples, in the order of the rows.
    """

    views: tuple[Matrix, ...]
    present: NDArray[np.bool_]
    ids: Array

    @property
    def n_samples(self) -> int:
        """Number of samples in the union of the views."""
        return len(self.ids)


@dataclass(frozen=True)
class Solution:
    """What a method found.

    Attributes
    ----------
    embedding : ndarray of shape (n_samples, any), optional
        Rows for k-means, ready as they are.
    affinity : ndarray or csr_array of shape (n_samples, n_samples), optional
        The graph that was learned.
    labels : ndarray of int, shape (n_samples,), optional
        The clusters, of a method that needs no k-means.
    objective : tuple of float
        The objective (or residual) after each iteration.
    """

    embedding: Array | None = None
    affinity: Matrix | None = None
    labels: NDArray[np.intp] | None = None
    objective: tuple[float, ...] = ()


@dataclass(repr=False, eq=False, match_args=False)
class Baseline(ClusterMixin, BaseEstimator):
    """A method that sees all views at once; its subclasses are made by `with_parameters`."""

    incomplete: ClassVar[bool] = False
    """Whether samples may be missing from views."""

    nonnegative: ClassVar[bool] = False
    """Whether features must not be negative."""

    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """What its authors (or others) search over, by parameter."""

    scalings: ClassVar[tuple[str, ...]] = ("none",)
    """What to try as `scaled` does it before the method, its default first."""

    kmeans_starts: ClassVar[int] = 20
    """Starts of k-means on the embedding; the one with the least inertia counts."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    n_clusters: int = 8
    _: KW_ONLY
    scale: str = "none"
    random_state: Any = None

    @abstractmethod
    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        """Cluster or embed."""

    def _bytes(self, n: int, widths: list[int]) -> int:
        """Return the bytes that matrices of n × n will take: 0 for a linear method."""
        return 0

    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Cluster the samples of some views.

        Parameters
        ----------
        X : view, list of views, dict of views or MuData
            See `viewfold.as_views`. Without ids, rows are the same samples in every view, and a row
            of NaN is a sample that the view lacks.
        y : Ignored
            Here for scikit-learn's sake.
        ids : array-like, list or dict, optional
            The sample ids of the view, or those of each view.

        Returns
        -------
        self
        """
        data = align(X, ids)
        return self._keep(data, self.solve(data))

    def solve(self, data: Aligned) -> Solution:
        """Check and scale views that are aligned already, and solve: `fit` without its k-means."""
        self._validate_params()
        self._check(data)
        return self._solve(scaled(data, self.scale), check_random_state(self.random_state))

    def _keep(self, data: Aligned, found: Solution) -> Self:
        """Set what users see."""
        self.ids_ = data.ids
        self.objective_ = np.array(found.objective)
        self.n_iter_ = len(found.objective)
        if len(data.views) == 1:
            self.n_features_in_ = int(data.views[0].shape[1])
        if found.embedding is not None:
            self.embedding_ = found.embedding
        if found.affinity is not None:
            self.affinity_ = found.affinity
        self.labels_ = self._labels(found)
        return self

    def _labels(self, found: Solution) -> NDArray[np.intp]:
        if found.labels is not None:
            return found.labels.astype(np.intp)
        assert found.embedding is not None
        kmeans = KMeans(
            self.n_clusters,
            n_init=self.kmeans_starts,
            random_state=check_random_state(self.random_state),
        )
        return np.asarray(kmeans.fit(found.embedding).labels_, np.intp)

    def _check(self, data: Aligned) -> None:
        """Refuse what the method cannot take."""
        name, n = type(self).__name__, data.n_samples
        if n < max(self.n_clusters, 2):
            raise ValueError(
                f"{name}: n_samples={n} is too few for n_clusters={self.n_clusters}: it takes as "
                "many, and two at least. Ask for fewer clusters."
            )
        if not self.incomplete and not data.present.all():
            lacking = np.count_nonzero(~data.present, axis=0).tolist()
            raise ValueError(
                f"{name} needs every sample in every view, but the views lack {lacking} of {n} "
                "samples. Leave those samples out, fill them, or use a method for incomplete views."
            )
        if self.nonnegative and self.scale != "minmax":
            for v, X in enumerate(data.views):
                if X.shape[0] and X.min() < 0:
                    raise ValueError(
                        f"Negative values in data: {name} factors non-negative features, but view "
                        f"{v} has negative ones. Scale it to be non-negative, for instance with "
                        "scale='minmax'."
                    )
        need, limit = self._bytes(n, [X.shape[1] for X in data.views]), memory_limit()
        if need > limit:
            raise MemoryError(
                f"{name} forms n × n matrices: for n = {n} they take {need:,} bytes, and the limit "
                f"is {limit:,}. Take a sample, or a method with linear cost."
            )

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.nonnegative
        return tags


def align(X: Any, ids: Any = None) -> Aligned:
    """Bring views to the same rows: one for every sample of any view.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research.baselines._base import align
    >>> first = np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, 4.0]])
    >>> align([first, np.eye(3)]).present.tolist()
    [[True, True], [False, True], [True, True]]
    """
    given = as_views(X, ids=ids, missing_cells="error")
    lengths = {view.length for view in given}
    if len(lengths) > 1:
        raise ValueError(
            f"The views have {sorted(map(str, lengths))} rows without ids (None: with ids). Give "
            "all of them ids, or the same rows with NaN for samples that a view lacks."
        )
    union = pd.Index(np.concatenate([view.ids for view in given])).unique()
    if None not in lengths:
        union = union.sort_values()
    views = []
    present = np.zeros((len(union), len(given)), bool)
    for v, view in enumerate(given):
        at = union.get_indexer(pd.Index(view.ids))
        present[at, v] = True
        views.append(_spread(view.rows.take(np.arange(view.shape[0])), at, len(union)))
    return Aligned(tuple(views), present, union.to_numpy())


def _spread(rows: Matrix, at: NDArray[np.intp], n: int) -> Matrix:
    """Return n rows, those that are given at their places and zero elsewhere, in float64."""
    if sparse.issparse(rows):
        places = sparse.csr_array((np.ones(len(at)), (at, np.arange(len(at)))), shape=(n, len(at)))
        return sparse.csr_array(places @ rows.astype(np.float64))
    full = np.zeros((n, rows.shape[1]))
    full[at] = rows
    return full


def memory_limit() -> int:
    """Return how many bytes this process may take: the machine's, or what the system allows it.

    Where the system tells neither, as Windows, it is `sys.maxsize`: nothing is refused.
    """
    known = [sys.maxsize]
    if hasattr(os, "sysconf"):
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    if resource is not None:
        limits = (
            resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)
        )
        known += [soft for soft in limits if soft != resource.RLIM_INFINITY]
    return min(known)


def dense(X: Matrix) -> Array:
    """Return a view as a dense array."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


def scaled(data: Aligned, how: str) -> Aligned:
    """Return views that are scaled in one of the ways that baselines are tried with.

    Parameters
    ----------
    data : Aligned
        The views; rows of missing samples are zero, and stay so.
    how : {'none', 'zscore', 'unit', 'minmax'}
        Leave them, standardise features, give samples unit length, or bring features to [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research.baselines._base import align, scaled
    >>> scaled(align(np.array([[1.0, 4.0], [3.0, 8.0]])), "minmax").views[0]
    array([[0., 0.],
           [1., 1.]])
    """
    if how == "none":
        return data
    if how == "unit":
        return replace(data, views=tuple(normalize(X) for X in data.views))
    if how == "zscore":
        return replace(data, views=tuple(zscored(data)))
    if how == "minmax":
        return replace(data, views=tuple(_between_0_and_1(data)))
    raise ValueError(f"There is no scaling {how!r}, only 'none', 'zscore', 'unit' and 'minmax'.")


def _between_0_and_1(data: Aligned) -> Iterator[Array]:
    for X, here in zip(map(dense, data.views), data.present.T, strict=True):
        result = np.zeros_like(X)
        result[here] = minmax_scale(X[here]) if here.any() else 0
        yield result


def zscored(data: Aligned) -> list[Array]:
    """Return views standardised by feature over the samples they have; other rows are zero."""
    out = []
    for X, here in zip(map(dense, data.views), data.present.T, strict=True):
        rows = X[here]
        spread = rows.std(axis=0, ddof=1) if len(rows) > 1 else np.zeros(X.shape[1])
        varies = spread > 1e-12 * np.abs(rows).max(axis=0, initial=0)
        scaled = np.zeros_like(X)
        weight = np.divide(1, spread, out=np.zeros_like(spread), where=varies)
        scaled[here] = (rows - rows.mean(axis=0)) * weight
        out.append(scaled)
    return out


def unit_samples(data: Aligned) -> list[Array]:
    """Return views with rows of unit length."""
    return [unit_rows(dense(X)) for X in data.views]
