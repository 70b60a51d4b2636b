"""Moments of a view: what ties its features to the consensus, so that clusters can be explained.

A row of P holds a sample's row of the consensus and its cluster. With PᵀX of a view (X
standardised), X ≈ P A D: D are a few directions among the features, which stay as they are, and A
is small. When P becomes P', A becomes (P'ᵀP' + λ)⁻¹ P'ᵀP A, whatever P' is; the view is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import linalg

from viewfold._util.constants import FEWEST
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array, Matrix
from viewfold.data.view import View, missing_in
from viewfold.rows import Alignment, Engine, RowSet
from viewfold.rows.linalg import column_sums, dense, filled, is_sparse, membership
from viewfold.state.parts import part
from viewfold.state.state import State, without_batches

# Of the regressions on P, whose columns are scaled to length 1; a hundredth or ten times of it do
# as well.
PENALTY = 1e-3

ROOM = 2**20  # Rows are described a few at a time, with so many numbers at once


@part("moments", axes={"mean": "d", "spread": "d", "directions": "qd", "coefficients": "pq"})
@frozen_record
class Moments:
    """What is kept of a view to explain clusters: aggregates of ten samples or more."""

    mean: Array  # (n_features,): the mean of each feature, of cells that are there
    # (n_features,): its standard deviation; 0 if it does not vary, or if fewer than ten samples
    # have it
    spread: Array
    # (n_directions, n_features): orthonormal rows D: first those that hold the means of clusters,
    # then those in which the consensus explains most. At most a tenth of the samples
    directions: Array
    # (n_components + n_clusters, n_directions): A in ``(X − mean) / spread ≈ (P − mean of P) A D``
    coefficients: Array


@frozen_record
class Products:
    """Sums over some rows of P."""

    PP: Array  # PᵀP
    total: Array  # the sum of the rows
    n: float  # how many they are

    def centred(self) -> Array:
        """Return PᵀP with the mean of P taken out."""
        return np.asarray(self.PP - np.outer(self.total, self.total) / max(self.n, 1))

    def variance(self, C: Array) -> Array:
        """Return the variance of each column of P C."""
        return np.asarray(np.einsum("ij,ij->j", C, self.centred() @ C) / max(self.n, 1))


@frozen_record
class Sums:
    """Sums over rows of a view and of P; X is shifted, and missing cells are zero."""

    count: Array  # (n_features,): cells that are there
    total: Array  # (n_features,): their sum
    squares: Array  # (n_features,): that of their squares
    cross: Array  # (n_columns, n_features): cross, there: PᵀX, and Pᵀ(cells that are there)
    there: Array
    P: Products  # of the same rows
    shift: Array  # (n_features,): what was subtracted from X

    @classmethod
    def of(
        cls,
        engine: Engine,
        rows: RowSet,
        beside: tuple[RowSet, RowSet],
        k: int,
        *,
        gaps: bool,
        mean: Array | None,
    ) -> Sums:
        """Sum over the rows of a view, with embedding and labels beside them, in one pass."""
        # Squares of a year or a time stamp lose its change: something near the mean is subtracted.
        shift, p = np.zeros(rows.shape[1]), beside[0].shape[1] + k
        if not rows.is_sparse and mean is not None:
            shift = mean
        elif not rows.is_sparse:
            head = engine.head(rows, 4096).astype(np.float64)
            many = np.count_nonzero(~np.isnan(head), axis=0)
            shift = np.asarray(np.nansum(head, axis=0) / np.maximum(many, 1))

        def sums(block: Matrix, embedded: Array, cluster: Array) -> tuple[Array, ...]:
            few = max(1, ROOM // p)
            if len(cluster) > few:  # of a narrow view, a block has many rows
                cuts = (slice(i, i + few) for i in range(0, len(cluster), few))
                parts = [sums(block[cut], embedded[cut], cluster[cut]) for cut in cuts]
                return tuple(sum(some[1:], some[0]) for some in zip(*parts, strict=True))
            P = describe_samples(embedded, cluster, k)
            small = P.astype(block.dtype)
            X = block if is_sparse(block) else block - shift.astype(block.dtype)
            gone = np.empty((0, 0))
            if gaps:
                gone = dense(missing_in(X).astype(block.dtype).T @ small).T
                X = filled(X, np.zeros(X.shape[1]))
            with np.errstate(over="ignore"):
                squares = column_sums(X * X)
            return column_sums(X), squares, dense(X.T @ small).T, gone, P.T @ P, P.sum(axis=0)

        total, squares, cross, gone, PP, total_P = engine.reduce(sums, rows, *beside)
        n, d = rows.shape
        there = np.broadcast_to(total_P[:, None], (p, d))
        there = there - gone if gaps else there
        count = there[-k:].sum(axis=0)  # every row has one cluster
        return cls(count, total, squares, cross, there, Products(PP, total_P, float(n)), shift)


def describe_samples(embedded: Array, cluster: Array, n_clusters: int) -> Array:
    """Return rows of P: the consensus, and 1 for the cluster that each sample is in."""
    of_cluster = membership(cluster.astype(np.intp), n_clusters).toarray().T
    return np.hstack([embedded.astype(np.float64), of_cluster])


def moments_of(sums: Sums, r: int) -> Moments:
    """Return the moments of a view from sums over its samples."""
    count = np.maximum(sums.count, 1)
    mean = sums.total / count
    with np.errstate(over="ignore", invalid="ignore"):
        variance = sums.squares / count - mean**2
        noise = 1e-12 * mean**2 + (1e-14 * sums.shift) ** 2
        varies = (variance > noise) & np.isfinite(variance) & (sums.count >= FEWEST)
    mean = np.where((sums.count < FEWEST) | ~np.isfinite(mean), 0, mean)
    spread = np.where(varies, np.sqrt(np.where(varies, variance, 0)), 0)
    weight = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
    with np.errstate(over="ignore", invalid="ignore"):
        cross = np.where(spread > 0, (sums.cross - sums.there * mean) * weight, 0)
    cross[:r] *= sums.P.n / count  # as if all cells were there
    size = sums.P.total[r:]
    cells = np.where(sums.there[r:] < FEWEST, 0, sums.there[r:])  # fewer than ten tell nothing
    cross[r:] *= np.divide(size[:, None], cells, out=np.zeros_like(cells), where=cells > 0)
    return _factor(mean + sums.shift, spread, sums.P.centred(), cross, size, sums.P.n)


def _factor(mean: Array, spread: Array, G: Array, cross: Array, size: Array, n: float) -> Moments:
    """Return moments from G = PᵀP and PᵀX, both centred; clusters of fewer than ten go."""
    d, k, r = mean.size, size.size, len(G) - size.size
    # There are a tenth of the samples as directions at most, and of a view that is not narrow so
    # many that moments take no more space than d × r numbers in single precision, but those that
    # hold the means of clusters anyway.
    room = d if d <= r + k else max((r - 4) * d // (d + r + k), k)
    most = max(min(int(n) // FEWEST, room), 1)
    use = np.append(np.ones(r, bool), size >= FEWEST)
    C = np.zeros_like(cross)
    C[use] = regression(G[np.ix_(use, use)], cross[use])
    floor = 1e-10 * float(np.einsum("ij,ij->", C, G @ C))
    many = np.maximum(size, 1)[:, None]
    first = _leading((G[-k:] @ C / np.sqrt(many))[size >= FEWEST], most, floor)
    rest = C - C @ first.T @ first
    values, Q = linalg.eigh(G, driver="evd", check_finite=False)
    root = (np.sqrt(np.maximum(values, 0))[:, None] * Q.T) @ rest
    D = np.vstack([first, _leading(root, most - len(first), floor)])
    return Moments(mean, spread, D.astype(np.float32), (C @ D.T).astype(np.float32))


def _leading(rows: Array, most: int, floor: float) -> Array:
    """Return the leading right singular vectors of a few rows, with more energy than `floor`."""
    values, U = linalg.eigh(rows @ rows.T, driver="evd", check_finite=False)
    keep = np.flatnonzero(values > floor)[::-1][: max(most, 0)]
    return np.asarray((U[:, keep] / np.sqrt(values[keep])).T @ rows)


def regression(G: Array, cross: Array) -> Array:
    """Return (G + λ)⁻¹ cross for columns of length 1; what is in no column stays zero."""
    length = np.sqrt(np.maximum(np.diagonal(G), 0))
    scale = np.divide(1, length, out=np.zeros_like(length), where=length > 1e-9 * length.max())
    values, Q = linalg.eigh(scale[:, None] * G * scale, driver="evd", check_finite=False)
    inverse = np.where(values > 1e-8, 1 / (np.maximum(values, 0) + PENALTY), 0)
    return np.asarray(scale[:, None] * (Q @ (inverse[:, None] * (Q.T @ (scale[:, None] * cross)))))


# -- through changes of the consensus


def carry_moments(
    engine: Engine,
    before: State,
    after: State,
    then: tuple[RowSet, RowSet],
    now: tuple[RowSet, RowSet],
) -> State:
    """Return a state whose moments, which `before` had, belong to its own consensus and clusters.

    `then` and `now` are embedding and labels of the samples that both states have.
    """
    if not any(record.moments for record in after.views):
        return after
    assert before.clusters is not None
    assert after.clusters is not None
    k, k_now = before.clusters.n_clusters, after.clusters.n_clusters

    def sums(B: Array, cluster: Array, B_now: Array, cluster_now: Array) -> tuple[Array, ...]:
        P_now = describe_samples(B_now, cluster_now, k_now)
        both = np.hstack([P_now, describe_samples(B, cluster, k)])
        return P_now.T @ both, both.sum(axis=0)

    with engine.session():
        products, total = engine.reduce(sums, *then, *now)
    p, n = len(products), then[0].shape[0]
    products -= np.outer(total[:p], total) / n
    step = regression(products[:, :p], products[:, p:])
    views = list(after.views)
    for i, record in enumerate(views):
        if record.moments is not None:
            A = (step @ record.moments.coefficients).astype(np.float32)
            views[i] = replace(record, moments=replace(record.moments, coefficients=A))
    return replace(after, views=tuple(views))


# -- from the rows of a view


def learn_moments(
    engine: Engine, state: State, view: View, rows: RowSet, labels: RowSet, alignment: Alignment
) -> State:
    """Return a state whose moments of a view know (more) rows of it, if they are ten at least.

    Missing cells of `rows` are NaN; `labels` are those of all samples.
    """
    rows = without_batches(engine, state, view.name, rows)
    n, r = rows.shape[0], state.embedding.shape[1]
    if n < FEWEST:
        return state
    assert state.clusters is not None
    k = state.clusters.n_clusters
    which = state.names.index(view.name or state.names[-1])
    record, old = state.views[which], state.views[which].moments
    with engine.session():
        beside = alignment.view_rows(state.embedding), alignment.view_rows(labels)
        mean = None if old is None else old.mean
        sums = Sums.of(engine, rows, beside, k, gaps=view.gaps is not None, mean=mean)
        others = None
        if record.n_samples > n:  # of the view's samples that were not delivered now
            own, (whole,) = sums.P, sum_products(engine, state, [which], labels)
            others = Products(whole.PP - own.PP, whole.total - own.total, whole.n - own.n)
    if others is None or others.n < FEWEST:
        moments = moments_of(sums, r)
    elif old is None:
        return state  # ten samples or more came, fewer at a time: nothing is known of their rows
    else:
        moments = _join(old, moments_of(sums, r), others, sums, r)
    return state.with_view(which, moments=moments)


def sum_products(
    engine: Engine, state: State, which: Sequence[int], labels: RowSet
) -> list[Products]:
    """Return the sums of P over the samples of each of some views, in one pass."""
    assert state.clusters is not None
    k = state.clusters.n_clusters

    def sums(B: Array, cluster: Array, seen: Array) -> tuple[Array, ...]:
        P = describe_samples(B, cluster, k)
        each = [P[seen[:, v]] for v in which]
        PP, total = [rows.T @ rows for rows in each], [rows.sum(axis=0) for rows in each]
        return np.array(PP), np.array(total), np.array([len(rows) for rows in each])

    found = engine.reduce(sums, state.embedding, labels, state.seen)
    return [Products(PP, total, float(n)) for PP, total, n in zip(*found, strict=True)]


def _join(old: Moments, new: Moments, others: Products, sums: Sums, r: int) -> Moments:
    """Return moments of all rows of a view, from two parts (Chan, Golub and LeVeque)."""
    m, n, G, G_new = others.n, sums.P.n, others.centred(), sums.P.centred()
    share = m * n / (m + n)
    apart = others.total / m - sums.P.total / n
    # A feature that one part says nothing of is what the other says.
    known = old.spread > 0
    both = known & (new.spread > 0)
    shift = np.where(both, old.mean - new.mean, 0)
    spread, mean, before = new.spread, new.mean, old.spread
    pooled = np.sqrt((m * before**2 + n * spread**2 + share * shift**2) / (m + n))
    cross = (G @ old.coefficients) @ old.directions * before
    cross += G_new @ new.coefficients @ new.directions * spread
    cross += share * np.outer(apart, shift)
    mean = np.where(both, (m * old.mean + n * mean) / (m + n), np.where(known, old.mean, mean))
    spread = np.where(both, pooled, np.where(known, before, spread))
    G = G + G_new + share * np.outer(apart, apart)
    size = (others.total + sums.P.total)[r:]
    weight = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
    return _factor(mean, spread, G, cross * weight, size, m + n)
