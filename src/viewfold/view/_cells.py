"""The check of all cells of a view, made once: values that cannot be computed with are refused.

Absent samples (rows of NaN, and rows of zeros where these mean the same) are left out here, other
NaN are missing cells; inf and a number that is too large to be squared is an error with its place.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy import sparse

from viewfold._option import helped_by, option, worded
from viewfold._types import Array, Matrix, as_python
from viewfold.constants import FEWEST
from viewfold.engine import LocalEngine
from viewfold.ids import is_called_id, look_like_ids
from viewfold.linalg import dense
from viewfold.view._dates import suggest_dates
from viewfold.view._gaps import Gaps, missing_in
from viewfold.view._view import View, called

LARGEST, LARGEST_SINGLE = 1e140, 1e15
"""All methods begin with sums of squares. Those of larger numbers would be infinite; those of large
numbers in single precision are computed in double precision."""


SENTINELS = [sign * value for value in (99, 999, 9999, 99999, 999999) for sign in (1, -1)]
"""Numbers that programs write where there is no value; they are suggested, never taken for it."""

FEWEST_VALUES = 10
"""A row with fewer values other than zero may be next to empty by chance."""

EmptyRows: TypeAlias = Literal["absent", "keep"]
"""What rows of zeros are: samples that the view lacks, by the rule of `as_view`, or samples."""


MissingCells: TypeAlias = Literal["accept", "error"]
"""What is done with a NaN in a row that has other values."""


def check_rules(empty_rows: str, missing_cells: str) -> None:
    """Refuse rules that are not known."""
    if empty_rows not in get_args(EmptyRows):
        raise ValueError(f"empty_rows must be 'absent' or 'keep', got {empty_rows!r}.")
    if missing_cells not in get_args(MissingCells):
        raise ValueError(f"missing_cells must be 'accept' or 'error', got {missing_cells!r}.")


def without_absent(
    view: View,
    empty_rows: EmptyRows = "absent",
    missing_cells: MissingCells = "accept",
    *,
    known: bool = False,
) -> View:
    """Leave out samples that a view lacks, find missing cells, refuse inf and what is too large.

    Parameters
    ----------
    view : View
        The view; if it was checked already, it is returned as it is.
    empty_rows : {"absent", "keep"}, default="absent"
        See `as_view`.
    missing_cells : {"accept", "error"}, default="accept"
        See `as_view`.
    known : bool, default=False
        Whether the rows belong to a view that is known: then "absent" is said of all rows of
        zeros, which were found to mean that when the view was folded.

    Returns
    -------
    View
    """
    check_rules(empty_rows, missing_cells)
    if view.checked:
        if missing_cells == "error" and view.n_missing:
            raise _unusable(view, *_first_gap(view), np.nan)
        if empty_rows == "keep" and view.n_empty:
            raise ValueError(
                f"{called(view.name, view.file)} is a View whose rows of zeros were left out "
                "already. Pass empty_rows='keep' to as_view."
            )
        return view
    found = _look_at(view, ignore_zeros=empty_rows == "keep", refuse=missing_cells == "error")
    if not known:
        _suggest_markers(view, found)
        suggest_dates(view, found.low, found.high)
    n = view.rows.X.shape[0]
    empty = found.empty if known or found.mean_absent(n) else found.empty[:0]
    absent = np.append(found.absent, empty)
    rows = replace(view.rows, double=found.large)
    if not absent.size:
        return _with_gaps(replace(view, rows=rows, checked=True), found)
    present = np.setdiff1d(np.arange(n), absent, assume_unique=True)
    if not present.size:
        raise ValueError(
            f"{called(view.name, view.file)} is empty: all its rows are {worded('NaN', 'empty')}"
            f"{' or zero' * bool(empty.size)}. Leave the view out."
        )
    rows = replace(rows, present=present)
    view = replace(view, ids=view.ids[present], rows=rows, checked=True, n_empty=empty.size)
    return _with_gaps(view, found)


def _with_gaps(view: View, found: _Found) -> View:
    """Return a view whose missing cells, if there are any, are counted and read as means."""
    if not found.gaps:
        return view
    gaps = Gaps.of(view.rows)
    return replace(view, rows=replace(view.rows, fill=gaps), gaps=gaps)


def _first_gap(view: View) -> tuple[int, int]:
    """Return row and column of the first missing cell of a view that has one."""
    rows = replace(view.rows, fill=None)
    for where, block in rows.blocks():
        at = np.argwhere(dense(missing_in(block)))
        if at.size:
            return where.start + int(at[0, 0]), int(at[0, 1])
    raise AssertionError("there is none")


def tell_of_rare(view: View) -> View:
    """Say which features hardly anybody has, if there are any; return the view."""
    if view.gaps is not None and view.gaps.rare.any():
        at = np.flatnonzero(view.gaps.rare)
        names = [repr(view.features[j]) if view.features else str(j) for j in at[:5]]
        more = f", … ({at.size} in all)" if at.size > 5 else ""
        few = "fewer than ten samples have" if view.shape[0] >= FEWEST else "no sample has"
        warnings.warn(
            f"{called(view.name, view.file)}: {few} a value in column{'s' * (at.size > 1)} "
            f"{', '.join(names)}{more}, which counts as constant. {option('drop')} leaves it out.",
            stacklevel=3,
        )
    return view


def tell_of_empty(view: View) -> View:
    """Say that rows of zeros were taken for absent samples, if there were any; return the view."""
    if view.n_empty:
        warnings.warn(
            f"{called(view.name, view.file)}: {view.n_empty:,} of {view.rows.X.shape[0]:,} rows "
            "hold nothing but zeros and are taken for samples that the view lacks. "
            f"{option('empty_rows', 'keep')} takes them for samples.",
            stacklevel=3,
        )
    return view


def check_no_id_column(view: View) -> None:
    """Refuse a column of ids that would be taken for a feature: by its name, and by its values."""
    if view.length is None or view.features is None or sparse.issparse(view.rows.X):
        return
    for j, name in enumerate(view.features):
        if is_called_id(name, first=j == 0) and look_like_ids(view.rows.X[:, j]):
            said = (
                f"{called(view.name, view.file)}: column {name!r} looks like ids: whole numbers "
                f"that are all different. Say {option('ids', name)} if it holds them, or "
                f"{option('ids', False)} if it is a feature and samples are known by their row "
                "number."
            )
            raise helped_by(ValueError(said), ids=name)


@dataclass(frozen=True)
class _Found:
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

    def mean_absent(self, n: int) -> bool:
        """Whether rows of zeros, of a view with n rows, are samples that it lacks."""
        if self.signed or self.empty.size + self.absent.size == n:
            return False
        return self.empty.size > self.n_poor

    def __add__(self, other: _Found) -> _Found:
        return _Found(
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


def _look_at(view: View, *, ignore_zeros: bool, refuse: bool) -> _Found:
    """Pass over the cells of a view, once."""
    X = view.rows.X
    # With few features every row has few values, and a row of zeros is one like any other.
    ignore_zeros |= X.shape[1] < FEWEST_VALUES
    nothing = np.empty(0, np.intp)
    if X.dtype.kind != "f" and ignore_zeros:
        return _Found(view.rows.double, nothing, nothing, False, 0)
    most = min(LARGEST, float(np.finfo(view.rows.dtype).max))
    if view.rows.is_sparse:
        return _look_at_sparse(view, most, ignore_zeros, refuse)

    def look(block: Matrix, numbers: Array) -> _Found:
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
                    raise _unusable(view, int(numbers[row]), column, block[row, column])
                absent, there = numbers[gone], block[~gone]
                gaps = bool(missing[~gone].any())
                lows = np.fmin.reduce(there, axis=0, initial=np.inf)
                highs = np.fmax.reduce(there, axis=0, initial=-np.inf)
                low = float(lows.min())
        if low != 0 or ignore_zeros:
            return _Found(large, absent, numbers[:0], low < 0, 0, lows, highs, gaps)
        few = _few(np.count_nonzero(block, axis=1), numbers)
        return _Found(large, absent, *few, lows, highs, gaps)

    engine = LocalEngine()
    found: _Found = engine.reduce(
        look, view.rows, engine.numbers(view.rows), combine=_Found.__add__
    )
    return found


def _look_at_sparse(view: View, most: float, ignore_zeros: bool, refuse: bool) -> _Found:
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
            raise _unusable(view, row, view.rows.column(int(X.indices[bad[0]])), X.data[bad[0]])
        large = bool((size > LARGEST_SINGLE).any())
    if ignore_zeros or (X.data < 0).any():
        return _Found(large, absent, nothing, True, 0, gaps=gaps)
    stored = np.diff(X.indptr) if X.data.all() else X.count_nonzero(axis=1)
    return _Found(large, absent, *_few(stored, np.arange(X.shape[0])), gaps=gaps)


def _few(counts: Array, numbers: Array) -> tuple[Array, bool, int]:
    """Return the rows without a value other than zero, and how many have few."""
    poor = (counts > 0) & (counts < FEWEST_VALUES)
    return numbers[counts == 0], False, int(np.count_nonzero(poor))


def _suggest_markers(view: View, found: _Found) -> None:
    """Say which features have an extreme value that programs write for a missing one."""
    for extremes in (found.low, found.high):
        if extremes is None:
            continue
        suspects = np.flatnonzero(np.isin(extremes, SENTINELS))
        if suspects.size:
            suspects = suspects[_are_alone(view, suspects, extremes[suspects])]
        for value in np.unique(extremes[suspects]).tolist():
            of = suspects[extremes[suspects] == value].tolist()
            names = [view.features[j] if view.features else j for j in of[:5]]
            more = f", … ({len(of)} in all)" if len(of) > 5 else ""
            warnings.warn(
                f"{called(view.name, view.file)}: {value:g} stands in several cells, far from all "
                f"other values of {', '.join(map(repr, names))}{more}. Does it mark missing cells? "
                f"Then name it with the others: {option('empty_markers', [f'{value:g}', '…'])}"
                f"{worded(', or replace it by NaN', '')}.",
                stacklevel=4,
            )


def _are_alone(view: View, features: Array, values: Array) -> Array:
    """Tell for which features several cells have the extreme value, and no other is near it."""

    def look(block: Matrix) -> tuple[Array, Array]:
        cells = block[:, features]
        same = cells == values
        near = (cells * np.sign(values) > np.abs(values) / 2) & ~same
        return same.sum(axis=0), near.sum(axis=0)

    same, near = LocalEngine().reduce(look, view.rows)
    return np.asarray((same >= 3) & (near == 0))


def _unusable(view: View, row: int, column: int, value: Any) -> ValueError:
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
            "Impute or drop it; a sample that this view lacks altogether is a row with "
            f"{worded('NaN', 'an empty cell')} in every column."
        )
        if np.isnan(value):
            said += f" {option('missing_cells', 'accept')} takes it as it is."
    return ValueError(
        f"{called(view.name, view.file)} contains {shown} in row {row} "
        f"(id {as_python(view.ids[row])!r}), column {which}. {said}"
    )
