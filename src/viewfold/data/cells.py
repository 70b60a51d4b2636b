"""The check of all cells of a view, made once: values that cannot be computed with are refused.

Absent samples (rows of NaN, and rows of zeros where these mean the same) are left out here, other
NaN are missing cells; inf and a number that is too large to be squared is an error with its place.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from viewfold._util.arguments import warn_user
from viewfold._util.constants import FEWEST
from viewfold._util.file import EmptyRows, MissingCells
from viewfold._util.types import Array, Matrix
from viewfold.data.arrays import Found, look_at, unusable
from viewfold.data.partitions import LazyRows, read_partitions
from viewfold.data.view import Gaps, View, missing_in, view_label
from viewfold.rows import BucketRows, engine_of
from viewfold.rows.linalg import dense

# Numbers that programs write where there is no value; they are suggested, never taken for it.
SENTINELS = [sign * value for value in (99, 999, 9999, 99999, 999999) for sign in (1, -1)]
FIRST_DATE, LAST_DATE = 19000101, 21001231  # dates that are written as whole numbers


def without_absent(
    view: View,
    empty_rows: EmptyRows = "absent",
    missing_cells: MissingCells = "accept",
    *,
    known: bool = False,
) -> View:
    """Leave out samples that a view lacks, find missing cells, refuse inf and what is too large.

    A view that was checked already is returned as it is. `known` tells that the rows belong to a
    known view: all its rows of zeros are absent then, as was found out when the view was folded.
    """
    if isinstance(view.rows, LazyRows):
        keep, refuse = empty_rows == "keep", missing_cells == "error"
        view, found = read_partitions(view, keep_empty=keep, refuse=refuse, known=known)
        if not known:
            _suggest(view, found)
        return view
    if view.checked:
        if missing_cells == "error" and view.n_missing:
            raise _has_gaps(view)
        if empty_rows == "keep" and view.n_empty:
            raise ValueError(
                f"{view_label(view.name, view.file)} is a View whose rows of zeros were left out "
                "already. Pass empty_rows='keep' to as_view."
            )
        return view
    found = look_at(view, ignore_zeros=empty_rows == "keep", refuse=missing_cells == "error")
    if not known:
        _suggest(view, found)
    n = view.rows.X.shape[0]
    lacks = known or found.mean_absent(n, found.absent.size, found.empty.size)
    empty = found.empty if lacks else found.empty[:0]
    absent = np.append(found.absent, empty)
    rows = replace(view.rows, double=found.large)
    if absent.size:
        present = np.setdiff1d(np.arange(n), absent, assume_unique=True)
        if not present.size:
            raise ValueError(
                f"{view_label(view.name, view.file)} is empty: none of its rows holds a value"
                f"{' other than zero' * bool(empty.size)}. Leave the view out."
            )
        rows = replace(rows, present=present)
        ids = view.ids[present]
        view = replace(view, ids=ids, n_empty=empty.size, n_absent=absent.size)
    gaps = Gaps.of(rows) if found.gaps else None
    rows = rows if gaps is None else replace(rows, fill=gaps)
    return replace(view, rows=rows, checked=True, gaps=gaps)


def _has_gaps(view: View) -> ValueError:
    """Return the error about the first missing cell of a view that has one."""
    if isinstance(view.rows, BucketRows):
        worst = next(iter(view.missing()["worst"]))
        return ValueError(
            f"{view_label(view.name, view.file)} contains NaN in {view.n_missing:,} cells, for "
            f"instance in column {worst}. missing_cells='accept' takes it as it is."
        )
    for where, block in replace(view.rows, fill=None).blocks():
        at = np.argwhere(dense(missing_in(block)))
        if at.size:
            return unusable(view, where.start + int(at[0, 0]), int(at[0, 1]), np.nan)
    raise AssertionError("there is none")


def _names(view: View, at: Array) -> str:
    names = [repr(view.features[j]) if view.features else str(j) for j in at[:5].tolist()]
    return ", ".join(names) + (f", … ({at.size} in all)" if at.size > 5 else "")


def tell_of_cells(view: View, *, rare: bool = True) -> View:
    """Say what became of rows of zeros, and which features hardly anybody has; return the view."""
    label = view_label(view.name, view.file)
    if view.n_empty:
        warn_user(
            f"{label}: {view.n_empty:,} of {view.n_came:,} rows hold nothing but zeros and are "
            "taken for samples that the view lacks. empty_rows='keep' takes them for samples.",
        )
    if rare and view.gaps is not None and view.gaps.rare.any():
        at = np.flatnonzero(view.gaps.rare)
        few = "fewer than ten samples have" if view.shape[0] >= FEWEST else "no sample has"
        warn_user(
            f"{label}: {few} a value in column{'s' * (at.size > 1)} {_names(view, at)}, which "
            "counts as constant. drop=… leaves it out.",
        )
    return view


def _suggest(view: View, found: Found) -> None:
    """Say which features look as if they marked missing cells, or were dates such as 20241231."""
    low, high = found.low, found.high
    if low is None or high is None:
        return
    rows, label = replace(view.rows, fill=None), view_label(view.name, view.file)
    for extremes in (low, high):
        suspects = np.flatnonzero(np.isin(extremes, SENTINELS))
        if suspects.size:
            look = partial(_count_near, features=suspects, values=extremes[suspects])
            same, near = engine_of(rows).reduce(look, rows)
            suspects = suspects[(same >= 3) & (near == 0)]
        for value in np.unique(extremes[suspects]).tolist():
            warn_user(
                f"{label}: {value:g} stands in several cells, far from all other values of "
                f"{_names(view, suspects[extremes[suspects] == value])}. Does it mark missing "
                f"cells? Then name it with the others: empty_markers={[f'{value:g}', '…']}"
                ", or leave these cells empty.",
            )
    suspects = np.flatnonzero((low < high) & _are_dates(low) & _are_dates(high))
    if suspects.size:
        others = engine_of(rows).reduce(partial(_count_no_dates, features=suspects), rows)
        suspects = suspects[others == 0]
    if suspects.size:
        warn_user(
            f"{label}: {_names(view, suspects)} hold{'s' * (suspects.size == 1)} numbers such as "
            f"{high[suspects[0]]:.0f}, and nothing that could not be a date. If these are dates, "
            "write them as 2024-12-31.",
        )


def _count_near(block: Matrix, features: Array, values: Array) -> tuple[Array, Array]:
    """Count for features the cells that have an extreme value, and others that are near it."""
    cells = block[:, features]
    same = cells == values
    near = (cells * np.sign(values) > np.abs(values) / 2) & ~same
    return same.sum(axis=0), near.sum(axis=0)


def _count_no_dates(block: Matrix, features: Array) -> Array:
    cells = block[:, features]
    return np.asarray((~(_are_dates(cells) | np.isnan(cells))).sum(axis=0))


def _are_dates(values: Array) -> Array:
    """Tell which numbers are dates, as year, month and day; that a month is short is not seen."""
    with np.errstate(invalid="ignore"):
        day, month = values % 100, values // 100 % 100
        fine = (values >= FIRST_DATE) & (values <= LAST_DATE) & (values % 1 == 0)
        return np.asarray(fine & (day >= 1) & (day <= 31) & (month >= 1) & (month <= 12))
