"""Standardise a view without touching it.

A standardised view is ``(X − mean) · weight``. Here it exists only as its parts: sums over X are
turned into sums over the standardised view afterwards, so that a view is never copied, a sparse one
stays sparse, and the mean and the products of a fold come from the same walk over the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from viewfold.blocks import Array, Matrix, Rows, reduce
from viewfold.consensus import Encoder

Scale = Literal["zscore"] | None


@dataclass(frozen=True)
class Scaling:
    """The map x → (x − shift − mean) · weight, where blocks come with the shift already taken off.

    Attributes
    ----------
    shift : ndarray of shape (n_features,) or None
        Taken off every dense block when it is read; see `choose_shift`.
    mean, weight : ndarray of shape (n_features,)
        The rest of the standardisation.
    """

    shift: Array | None
    mean: Array
    weight: Array

    def read(self, block: Matrix) -> Matrix:
        """Return a raw block with the shift taken off."""
        return block if self.shift is None else block - self.shift.astype(block.dtype)

    def encoder(self, H: Array) -> Encoder:
        """Return the encoder of *raw* rows that multiplies standardised ones with H."""
        inner = self.inner_encoder(H)
        if self.shift is None:
            return inner
        return Encoder(inner.weights, inner.offset - self.shift @ inner.weights)

    def inner_encoder(self, H: Array) -> Encoder:
        """Return the same for blocks that went through `read`."""
        weights = self.weight[:, None] * H
        return Encoder(weights, -(self.mean @ weights))


@dataclass(frozen=True)
class Products:
    """Sums over the standardised view X and the rows Zs of the consensus that belong to it.

    Attributes
    ----------
    energy : float
        ‖X‖².
    gram : ndarray of shape (d, d) or None
        XᵀX, if it was asked for.
    cross : ndarray of shape (d, k)
        XᵀZs.
    shared : ndarray of shape (k, k)
        ZsᵀZs.
    """

    energy: float
    gram: Array | None
    cross: Array
    shared: Array


def choose_shift(rows: Rows) -> Array | None:
    """Return what to take off dense features before squaring them, None if there is no need.

    A feature like a year or a time stamp varies little around a large mean; the sum of its squares
    would lose the variation to round-off. Any value near the mean will do.
    """
    if _is_sparse(rows.X):
        return None
    block = rows.read(next(rows.slices()))[:4096].astype(np.float64)
    mean, spread = block.mean(axis=0), block.std(axis=0)
    far = 1e3 if rows.dtype == np.float64 else 10.0
    return mean if np.any(np.abs(mean) > far * spread) else None


def zscore(rows: Rows, shift: Array | None, total: Array, squares: Array) -> Scaling:
    """Return the z-score (divisor n − 1) that belongs to the sums of some shifted rows.

    A constant feature gets weight 0.
    """
    n, eps = rows.shape[0], float(np.finfo(rows.dtype).eps)
    mean = total / n
    variance = (squares - n * mean**2) / max(n - 1, 1)
    absolute = mean if shift is None else mean + shift
    # Dense columns are summed pairwise, sparse ones entry by entry (in double precision).
    rounding = n * np.finfo(np.float64).eps if _is_sparse(rows.X) else 32 * eps
    noise = rounding * mean**2 + (16 * eps * absolute) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(variance > noise, 1 / np.sqrt(variance), 0.0)
    return Scaling(shift, mean, weight)


def learn_scaling(rows: Rows, scale: Scale, threads: int = 1) -> Scaling:
    """Learn how to standardise a view, in one walk (none if there is nothing to learn)."""
    d = rows.shape[1]
    start = Scaling(None, np.zeros(d), np.ones(d))
    if scale is None:
        return start
    shift = choose_shift(rows)
    start = Scaling(shift, start.mean, start.weight)

    def sums(_: slice, block: Matrix) -> tuple[Array, ...]:
        X = start.read(block)
        return column_sums(X), column_sums(X * X)

    total, squares = reduce(rows, sums, threads)
    return zscore(rows, shift, total, squares)


def survey(
    rows: Rows, Zp: Array, partner: Array, *, scale: Scale, full: bool, threads: int
) -> tuple[Scaling, Products]:
    """Learn the scaling of a view and its products with the consensus, in one walk.

    Parameters
    ----------
    rows : Rows
        The view.
    Zp : ndarray of shape (n_previous, k)
        The consensus so far.
    partner : ndarray of int
        Row of `Zp` for each row of the view, −1 for new samples.
    scale : {"zscore", None}
        How features are standardised.
    full : bool
        Whether XᵀX is wanted.
    threads : int
        How many blocks are worked on at once.
    """
    n, d = rows.shape
    shift = choose_shift(rows) if scale == "zscore" else None
    start = Scaling(shift, np.zeros(d), np.ones(d))

    def sums(where: slice, block: Matrix) -> tuple[Array, ...]:
        X = start.read(block)
        Zs = partners(Zp, partner[where])
        second = _dense(X.T @ X) if full else column_sums(X * X)
        return column_sums(X), second, _dense(X.T @ Zs.astype(X.dtype)), Zs.sum(axis=0), Zs.T @ Zs

    total, second, cross, total_z, shared = reduce(rows, sums, threads)
    squares = np.diagonal(second) if full else second
    scaling = start
    if scale == "zscore":
        scaling = zscore(rows, shift, total, squares)
    mean, weight = scaling.mean, scaling.weight
    energy = float(weight**2 @ (squares - n * mean**2))
    if full:
        second -= n * np.outer(mean, mean)
        second *= weight[:, None]
        second *= weight
    cross = weight[:, None] * (cross - np.outer(mean, total_z))
    return scaling, Products(energy, second if full else None, cross, shared)


def gram_times(rows: Rows, scaling: Scaling, H: Array, threads: int) -> Array:
    """Return XᵀX H for the standardised X, in one walk that never forms XᵀX."""
    encode = scaling.inner_encoder(H)

    def products(_: slice, block: Matrix) -> tuple[Array, ...]:
        X = scaling.read(block)
        Y = encode(X)
        return _dense(X.T @ Y), Y.sum(axis=0)

    inner, total = reduce(rows, products, threads)
    return np.asarray(scaling.weight[:, None] * (inner - np.outer(scaling.mean, total)))


def partners(Zp: Array, partner: Array) -> Array:
    """Return the consensus rows of some samples, zero for those that are new."""
    Zs: Array = Zp[partner]
    Zs[partner < 0] = 0.0
    return Zs


def column_sums(X: Matrix) -> Array:
    """Sum the rows of a block."""
    return np.asarray(X.sum(axis=0, dtype=np.float64) if _is_sparse(X) else X.sum(axis=0))


def _is_sparse(X: Matrix) -> bool:
    return hasattr(X, "indptr")


def _dense(M: Matrix) -> Array:
    dense: Array = M.toarray() if hasattr(M, "toarray") else np.asarray(M)
    return dense
