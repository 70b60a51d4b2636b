"""A look at the cells of rows: absent samples, missing cells, what cannot be computed with.

It is made once for each row, by whoever has it in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from viewfold._util.types import Array, Matrix, as_python
from viewfold.data.view import View, called
from viewfold.rows import LocalEngine

LARGEST, LARGEST_SINGLE = 1e140, 1e15
"""All methods begin with sums of squares. Those of larger numbers would be infinite; those of large
numbers in single precision are computed in double precision."""

FEWEST_VALUES = 10
"""A row with fewer values other than zero may be next to empty by chance."""


@dataclass(frozen=True)
class Found:
    """What a look at the cells of some rows tells.

    Attributes
    ----------
    large : bool
        Whether there are numbers that have to be computed with in double precision.
    absent, empty : ndarray of int
        Numbers of the rows of NaN, and of the rows of zeros.
    signed : bool
        Whether there is a number below zero.
    n_poor : int
        How many rows have few values other than zero, but some.
    low, high : ndarray of shape (n_features,), or None
        The extremes of each feature, of a dense view.
    gaps : bool
        Whether there is a NaN in a row that has other values.
    """

    large: bool
    absent: Array
    empty: Array
    signed: bool
    n_poor: int
    low: Array | None = None
    high: Array | None = None
    gaps: bool = False

    def mean_absent(self, n: int, n_absent: int, n_empty: int) -> bool:
        """Whether rows of zeros are samples that a view lacks: n_empty of n; others are NaN."""
        return not self.signed and n_empty + n_absent < n and n_empty > self.n_poor

    def __add__(self, other: Found) -> Found:
        return Found(
            self.large or other.large,
            np.append(self.absent, other.absent),
            np.append(self.empty, other.empty),
            self.signed or other.signed,
            self.n_poor + other.n_poor,
            _extreme(np.minimum, self.low, other.low),
            _extreme(np.maximum, self.high, other.high),
            self.gaps or other.gaps,
        )


def _extreme(which: np.ufunc, a: Array | None, b: Array | None) -> Array | None:
    return None if a is None or b is None else np.asarray(which(a, b))


def look_at(view: View, *, ignore_zeros: bool, refuse: bool, first: int = 0) -> Found:
    """Pass over the cells of a view, once; errors call its first row number `first`."""
    X = view.rows.X
    # With few features every row has few values, and a row of zeros is one like any other.
    ignore_zeros |= X.shape[1] < FEWEST_VALUES
    nothing = np.empty(0, np.intp)
    if X.dtype.kind != "f" and ignore_zeros:
        return Found(view.rows.double, nothing, nothing, False, 0)
    most = min(LARGEST, float(np.finfo(view.rows.dtype).max))
    if view.rows.is_sparse:
        return _look_at_sparse(view, most, ignore_zeros, refuse)

    def look(block: Matrix, numbers: Array) -> Found:
        # Extremes tell most of the time, and take no memory; a NaN is in both of them.
        lows, highs = block.min(axis=0), block.max(axis=0)
        low, high = float(lows.min()), float(highs.max())
        single = block.dtype == np.float32
        large, absent, gaps = False, numbers[:0], False
        if not max(-low, high) <= (LARGEST_SINGLE if single else most):
            size = np.abs(block)
            large = single and bool((size > LARGEST_SINGLE).any())
            fine = size <= most
            if not fine.all():
                missing = np.isnan(block)
                gone = missing.all(axis=1)
                cells = np.argwhere(~(fine | gone[:, None] | (missing & (not refuse))))
                if cells.size:
                    row, column = (int(i) for i in cells[0])
                    raise unusable(view, int(numbers[row]), column, block[row, column], first)
                absent, there = numbers[gone], block[~gone]
                gaps = bool(missing[~gone].any())
                lows = np.fmin.reduce(there, axis=0, initial=np.inf)
                highs = np.fmax.reduce(there, axis=0, initial=-np.inf)
                low = float(lows.min())
        if low != 0 or ignore_zeros:
            return Found(large, absent, numbers[:0], low < 0, 0, lows, highs, gaps)
        few = _few(np.count_nonzero(block, axis=1), numbers)
        return Found(large, absent, *few, lows, highs, gaps)

    engine = LocalEngine()
    found: Found = engine.reduce(look, view.rows, engine.numbers(view.rows), combine=Found.__add__)
    return found


def _look_at_sparse(view: View, most: float, ignore_zeros: bool, refuse: bool) -> Found:
    X, large, gaps, nothing = view.rows.X, False, False, np.empty(0, np.intp)
    absent = nothing
    if X.dtype.kind == "f":
        size = np.abs(X.data.astype(view.rows.dtype, copy=False))
        bad = np.flatnonzero(~(size <= most))
        missing = np.isnan(size[bad])
        if missing.any():
            row = np.searchsorted(X.indptr, bad[missing], side="right") - 1
            count = np.bincount(row, minlength=X.shape[0])
            absent = np.flatnonzero(count == X.shape[1])
            gaps = bool(((count > 0) & (count < X.shape[1])).any())
        bad = bad if refuse else bad[~missing]
        if bad.size:
            row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
            raise unusable(view, row, view.rows.column(int(X.indices[bad[0]])), X.data[bad[0]])
        large = bool((size > LARGEST_SINGLE).any())
    if ignore_zeros or (X.data < 0).any():
        return Found(large, absent, nothing, True, 0, gaps=gaps)
    stored = np.diff(X.indptr) if X.data.all() else X.count_nonzero(axis=1)
    return Found(large, absent, *_few(stored, np.arange(X.shape[0])), gaps=gaps)


def _few(counts: Array, numbers: Array) -> tuple[Array, bool, int]:
    """Return the rows without a value other than zero, and how many have few."""
    poor = (counts > 0) & (counts < FEWEST_VALUES)
    return numbers[counts == 0], False, int(np.count_nonzero(poor))


def unusable(view: View, row: int, column: int, value: Any, first: int = 0) -> ValueError:
    """Return the error about a cell that cannot be computed with."""
    which = repr(view.features[column]) if view.features else column
    if np.isfinite(value):
        shown = f"{value:.3g}"
        said = (
            f"Numbers beyond {LARGEST:.0e} cannot be squared. If it marks a missing value, impute "
            "or drop it; otherwise divide the column by a large number."
        )
    else:
        shown = "NaN" if np.isnan(value) else "inf"
        said = (
            "Impute or drop it; a sample that this view lacks altogether is a row "
            "without any value."
        )
        if np.isnan(value):
            said += " missing_cells='accept' takes it as it is."
    return ValueError(
        f"{called(view.name, view.file)} contains {shown} in row {first + row} "
        f"(id {as_python(view.ids[row])!r}), column {which}. {said}"
    )
