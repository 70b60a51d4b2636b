"""The check of all cells of a view, made once: values that cannot be computed with are refused.

Absent samples (rows of NaN) are left out here; every other NaN, inf and number that is too large to
be squared is an error with its row, id and column.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from viewfold._types import Array, Matrix, as_python
from viewfold.engine import LocalEngine, Rows
from viewfold.ids import is_called_id, look_like_ids
from viewfold.view._view import View, called

LARGEST, LARGEST_SINGLE = 1e140, 1e15
"""All methods begin with sums of squares. Those of larger numbers would be infinite; those of large
numbers in single precision are computed in double precision."""


def without_absent(view: View) -> View:
    """Leave out rows that are NaN throughout; refuse any other NaN, inf and what is too large."""
    if view.checked:
        return view
    rows = _usable(view)
    ids = view.ids if rows.present is None else view.ids[rows.present]
    return replace(view, ids=ids, rows=rows, checked=True)


def check_no_id_column(view: View) -> None:
    """Refuse a column of ids that would be taken for a feature: by its name, and by its values."""
    if view.length is None or view.features is None or sparse.issparse(view.rows.X):
        return
    for j, name in enumerate(view.features):
        if is_called_id(name, first=j == 0) and look_like_ids(view.rows.X[:, j]):
            raise ValueError(
                f"{called(view.name, view.file)}: column {name!r} looks like ids: whole numbers "
                f"that are all different. Pass ids={name!r} (--id {name}) if it holds them, or "
                "ids=False (--no-id) if it is a feature and samples are known by their row number."
            )


def _usable(view: View) -> Rows:
    """Return the rows that are not NaN throughout, in double precision if they ask for it."""
    X = view.rows.X
    if X.dtype.kind != "f":
        return view.rows
    most = min(LARGEST, float(np.finfo(view.rows.dtype).max))
    if sparse.issparse(X):
        size = np.abs(X.data.astype(view.rows.dtype, copy=False))
        bad = np.flatnonzero(~(size <= most))
        if bad.size:
            row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
            raise _unusable(view, row, int(X.indices[bad[0]]), X.data[bad[0]])
        return replace(view.rows, double=bool((size > LARGEST_SINGLE).any()))

    def look(block: Matrix, numbers: Array) -> tuple[bool, Array]:
        # Two numbers tell most of the time, and take no memory; a NaN is in both of them.
        largest = max(-float(block.min()), float(block.max()))
        single = block.dtype == np.float32
        if largest <= (LARGEST_SINGLE if single else most):
            return False, numbers[:0]
        size = np.abs(block)
        large = single and bool((size > LARGEST_SINGLE).any())
        fine = size <= most
        if fine.all():
            return large, numbers[:0]
        gone = np.isnan(block).all(axis=1)
        cells = np.argwhere(~fine & ~gone[:, None])
        if cells.size:
            row, column = (int(i) for i in cells[0])
            raise _unusable(view, int(numbers[row]), column, block[row, column])
        return large, numbers[gone]

    engine = LocalEngine()
    large, absent = engine.reduce(
        look,
        view.rows,
        engine.numbers(view.rows),
        combine=lambda a, b: (a[0] or b[0], np.append(a[1], b[1])),
    )
    rows = replace(view.rows, double=bool(large))
    if not absent.size:
        return rows
    present = np.setdiff1d(np.arange(X.shape[0]), absent, assume_unique=True)
    if not present.size:
        raise ValueError(
            f"{called(view.name, view.file)} is empty: all its rows are NaN. Leave the view out."
        )
    return replace(rows, present=present)


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
            "Impute or drop it; a sample that this view lacks altogether is a row with NaN in "
            "every column."
        )
    return ValueError(
        f"{called(view.name, view.file)} contains {shown} in row {row} "
        f"(id {as_python(view.ids[row])!r}), column {which}. {said}"
    )
