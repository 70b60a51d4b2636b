"""OPIMC: one pass over chunks of samples, each of which may be missing from some views.

What is kept between chunks are, for every view, the sums and counts of the clusters. So it takes
samples as they come, where CMVC, FCMVC and ViewFold take views as they come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.utils import check_random_state

from viewfold import as_views
from viewfold_research._linalg import Array, Matrix
from viewfold_research.baselines._base import Aligned, Baseline, Solution, align, dense, scaled
from viewfold_research.baselines._nmf import squared_rows
from viewfold_research.baselines._parameters import COUNT, NON_NEGATIVE, with_parameters


@dataclass(frozen=True)
class _Known:
    """What is known of the samples so far."""

    centres: tuple[Array, ...]
    sums: tuple[Array, ...]
    counts: Array
    square: float = 0.0
    n_samples: int = 0


@with_parameters
class OPIMC(Baseline):
    """One-pass incomplete multi-view clustering.

    Regularised k-means over the views that a sample has: with Y the indicator of clusters, U_v
    (k × d_v) the centres and M_v the samples that view v has,

        Σ_v ‖M_v(X_v − Y U_v)‖² + α‖U_v‖²

    is minimised chunk by chunk. For each chunk, alternately, U_v = (R_v + YᵀM_vX_v) /
    (T_v + YᵀM_v1 + α), where R_v and T_v are the sums and counts of the chunks before, and every
    sample of the chunk goes to the nearest centre in its views. Then the chunk joins R_v and T_v
    and its labels are final. Centres begin, at the first chunk, as the ridge regression of its
    samples on random memberships. A cluster that is empty takes the mean of the first chunk, and
    stays where it is in later ones.

    Cost: O(n d k) in time, and O(d k) in memory besides the chunk and the labels. Use it for
    samples in a stream and where one pass must do. The result depends on the order of samples;
    `fit` shuffles them, since a first chunk of few classes spoils all.

    Parameters
    ----------
    alpha : float, default=10
        How strongly centres are drawn to the origin; it counts like so many samples there. Clusters
        merge where a chunk has not many more of each: then lower it, or raise `batch_size`.
    batch_size : int, default=250
        Samples that are looked at together.
    n_init : int, default=10
        Starts at the first chunk; the one with the least objective counts. The authors take one,
        which in every other run leaves a cluster empty, even among clusters that are far apart.
    max_iter : int, default=30
        Iterations at most, for each chunk.
    shuffle : bool, default=True
        Whether `fit` takes samples in random order. `partial_fit` takes them as they come.
    scale : {'unit', 'zscore', 'none', 'minmax'}, default='unit'
        How views are scaled first; the authors give samples unit length. 'zscore' and 'minmax' need
        all samples, so `partial_fit` does not take them.
    random_state : int, RandomState or None, default=None
        Determines the order of samples and the start.

    Attributes
    ----------
    labels_ : ndarray of int, shape (n_samples,)
        The clusters, of all samples so far.
    ids_ : ndarray of shape (n_samples,)
        These samples.
    objective_ : ndarray
        The objective of the samples so far, divided by their number, after each iteration, chunk
        after chunk. It never rises within a chunk, unless a cluster of the first loses all samples:
        its new centre is not drawn to the origin, and may attract samples from all others.
    n_iter_ : int
        Number of iterations, of all chunks.

    References
    ----------
    One-pass incomplete multi-view clustering. AAAI, 2019. Follows the program of the authors, as
    the survey "A survey on incomplete multiview clustering" distributes it, with one pass and with
    the counts kept as vectors; the defaults are those of the package iMML.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research.baselines import OPIMC
    >>> from viewfold.datasets import make_multiview
    >>> views = make_multiview(300, (5, 4), 3, random_state=0).views
    >>> model = OPIMC(3, batch_size=100, random_state=0)
    >>> for chunk in np.split(np.arange(300), 3):
    ...     model = model.partial_fit([X[chunk] for X in views.values()])
    >>> model.labels_.shape
    (300,)
    """

    incomplete: ClassVar[bool] = True
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "alpha": (0.1, 1.0, 10.0, 100.0),
        "batch_size": (50, 250),
    }
    scalings: ClassVar[tuple[str, ...]] = ("unit", "zscore", "none")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": NON_NEGATIVE,
        "batch_size": COUNT,
        "n_init": COUNT,
        "shuffle": ["boolean"],
    }

    alpha: float = 10.0
    batch_size: int = 250
    n_init: int = 10
    max_iter: int = 30
    tol: float = 1e-6
    shuffle: bool = True
    scale: str = "unit"

    def partial_fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Cluster more samples. They are not needed any more afterwards.

        Parameters
        ----------
        X : view, list of views, dict of views or MuData
            The same views every time, of other samples. Without ids, they are numbered on.
        y, ids
            As `fit` takes them.

        Returns
        -------
        self
        """
        self._validate_params()
        given = as_views(X, ids=ids, missing_cells="error")
        data = align(given)
        if self.scale in ("zscore", "minmax"):
            raise ValueError(
                f"scale={self.scale!r} needs all samples, and partial_fit sees some of them. Scale "
                "them before, or use scale='unit' or 'none'."
            )
        before: _Known | None = getattr(self, "_known", None)
        if before is None:
            self._check(data)
            return self._add(None, data)
        _same_views(before, data)
        if all(view.length is not None for view in given):
            data = replace(data, ids=data.ids + len(self.ids_))
        again = pd.Index(data.ids).isin(self.ids_)
        if again.any():
            raise ValueError(
                f"{np.count_nonzero(again)} samples were clustered before, the first of them is "
                f"{data.ids[again].tolist()[0]!r}. Every sample comes once."
            )
        return self._add(before, data)

    def _add(self, before: _Known | None, data: Aligned) -> Self:
        found = self._pass(
            before,
            scaled(data, self.scale),
            np.arange(data.n_samples),
            check_random_state(self.random_state),
        )
        if before is None:
            return self._keep(data, found)
        assert found.labels is not None
        labels = np.concatenate([self.labels_, found.labels])
        objective = (*self.objective_, *found.objective)
        everyone = replace(data, ids=np.concatenate([self.ids_, data.ids]))
        return self._keep(everyone, Solution(labels=labels, objective=objective))

    def _solve(self, data: Aligned, rng: np.random.RandomState) -> Solution:
        order = np.arange(data.n_samples)
        if self.shuffle:  # from the order of ids, so that the order of rows does not matter
            ids = data.ids.astype(str) if data.ids.dtype == object else data.ids
            order = np.argsort(ids, kind="stable")[rng.permutation(len(order))]
        return self._pass(None, data, order, rng)

    def _pass(
        self,
        known: _Known | None,
        data: Aligned,
        order: NDArray[np.intp],
        rng: np.random.RandomState,
    ) -> Solution:
        labels = np.empty(data.n_samples, np.intp)
        course: list[float] = []
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            chunk, seen = [X[rows] for X in data.views], data.present[rows].astype(float)
            starts = self.n_init if known is None else 1
            known, labels[rows], steps = min(
                (self._chunk(known, chunk, seen, rng) for _ in range(starts)),
                key=lambda found: found[2][-1],
            )
            course += steps
        self._known = known
        return Solution(labels=labels, objective=tuple(course))

    def _chunk(
        self,
        before: _Known | None,
        X: list[Matrix],
        seen: Array,
        rng: np.random.RandomState,
    ) -> tuple[_Known, NDArray[np.intp], list[float]]:
        """Cluster one chunk, and add it to what is known; return the course of the objective."""
        k, course = self.n_clusters, list[float]()
        spare: tuple[Array, ...] | None = None
        if before is None:
            spare = tuple(
                dense(x.sum(axis=0)).reshape(1, -1) / max(m.sum(), 1)
                for x, m in zip(X, seen.T, strict=True)
            )
            before = _Known(
                _random_start(X, seen, k, self.alpha, rng),
                tuple(np.zeros((k, x.shape[1])) for x in X),
                np.zeros((k, len(X))),
            )
        base = replace(
            before,
            square=before.square + sum(float(squared_rows(x).sum()) for x in X),
            n_samples=before.n_samples + len(seen),
        )
        labels = _nearest(X, seen, base.centres)
        now = _with(base, X, seen, labels)
        value = self._objective(now)
        for _ in range(self.max_iter):
            centres = self._centres(now, spare)
            labels = _nearest(X, seen, centres)
            now = _with(replace(base, centres=centres), X, seen, labels)
            last, value = value, self._objective(now)
            course.append(value / now.n_samples)
            if abs(last - value) <= self.tol * abs(last):
                break
        return now, labels, course

    def _centres(self, now: _Known, spare: tuple[Array, ...] | None) -> tuple[Array, ...]:
        return tuple(
            np.where(n[:, None] > 0, R / np.maximum(n + self.alpha, 1e-300)[:, None], other)
            for R, n, other in zip(now.sums, now.counts.T, spare or now.centres, strict=True)
        )

    def _objective(self, now: _Known) -> float:
        total = now.square
        for U, R, n in zip(now.centres, now.sums, now.counts.T, strict=True):
            total += float((n + self.alpha) @ squared_rows(U) - 2 * np.vdot(U, R))
        return total


def _same_views(before: _Known, data: Aligned) -> None:
    if len(data.views) != len(before.centres):
        raise ValueError(
            f"There are {len(data.views)} views, but samples before had {len(before.centres)}. "
            "Give the same views in the same order; a sample may lack some of them."
        )
    for v, (X, U) in enumerate(zip(data.views, before.centres, strict=True)):
        if X.shape[1] != U.shape[1]:
            raise ValueError(
                f"View {v}: X has {X.shape[1]} features, but OPIMC is expecting {U.shape[1]} "
                "features as input. Give the same views in the same order."
            )


def _random_start(
    X: list[Matrix], seen: Array, k: int, alpha: float, rng: np.random.RandomState
) -> tuple[Array, ...]:
    """Return the ridge regression of samples on random memberships that sum to 1."""
    V = rng.uniform(size=(len(seen), k))
    V /= V.sum(axis=1, keepdims=True)
    ridge = max(alpha, 1e-6) * np.eye(k)
    return tuple(
        linalg.solve(V.T @ (m[:, None] * V) + ridge, dense(x.T @ V).T, assume_a="pos")
        for x, m in zip(X, seen.T, strict=True)
    )


def _nearest(X: list[Matrix], seen: Array, centres: tuple[Array, ...]) -> NDArray[np.intp]:
    """Return the nearest centre of each sample, over the views that it has."""
    score = sum(
        m[:, None] * (squared_rows(U) - 2 * (x @ U.T))
        for x, m, U in zip(X, seen.T, centres, strict=True)
    )
    return np.asarray(np.argmin(score, axis=1))


def _with(base: _Known, X: list[Matrix], seen: Array, labels: NDArray[np.intp]) -> _Known:
    """Add samples to the sums and counts of their clusters."""
    n = len(labels)
    Y = sparse.csr_array((np.ones(n), (labels, np.arange(n))), shape=(len(base.counts), n))
    sums = tuple(R + dense(Y @ x) for R, x in zip(base.sums, X, strict=True))
    return replace(base, sums=sums, counts=base.counts + Y @ seen)
