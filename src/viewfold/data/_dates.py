"""Dates that are written as whole numbers (20241231): read as numbers, which is told."""

from __future__ import annotations

import numpy as np

from viewfold._util.arguments import warn_user
from viewfold._util.types import Array, Matrix
from viewfold.data.view import View, called
from viewfold.rows import engine_of

FIRST, LAST = 19000101, 21001231


def suggest_dates(view: View, low: Array | None, high: Array | None) -> None:
    """Say which features look like dates; `low` and `high` are the extremes of each feature."""
    if low is None or high is None:
        return
    suspects = np.flatnonzero((low < high) & _are_dates(low) & _are_dates(high))
    if suspects.size:

        def count(block: Matrix) -> Array:
            cells = block[:, suspects]
            return np.asarray((~(_are_dates(cells) | np.isnan(cells))).sum(axis=0))

        suspects = suspects[engine_of(view.rows).reduce(count, view.rows) == 0]
    if suspects.size:
        names = [view.features[j] if view.features else j for j in suspects[:5].tolist()]
        warn_user(
            f"{called(view.name, view.file)}: {', '.join(map(repr, names))} "
            f"hold{'s' * (suspects.size == 1)} numbers such as {high[suspects[0]]:.0f}, and "
            "nothing that could not be a date. If these are dates, write them as 2024-12-31.",
        )


def _are_dates(values: Array) -> Array:
    """Tell which numbers are dates, as year, month and day; that a month is short is not seen."""
    with np.errstate(invalid="ignore"):
        day, month = values % 100, values // 100 % 100
        fine = (values >= FIRST) & (values <= LAST) & (values % 1 == 0)
        return np.asarray(fine & (day >= 1) & (day <= 31) & (month >= 1) & (month <= 12))
