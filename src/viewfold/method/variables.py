"""Columns of a table as variables: how loud each is, and which are logarithms.

A z-score of each level of a category would make a rare level as loud as a measurement: levels keep
their own variance, and a number with two values counts as a category with two levels. Month and
weekday of a date are as loud as one measurement each, and not as two. Numbers with
a long tail become logarithms if that makes them agree more with the other columns, and wild cells
come nearer. Everything else is as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from viewfold._util import constants
from viewfold._util.constants import FEWEST
from viewfold._util.messages import format_names, frozen_record
from viewfold._util.types import Array, Matrix
from viewfold.data.codes import MONTH, WEEKDAY
from viewfold.data.view import View
from viewfold.method.scaling import are_levels, features_among
from viewfold.rows import Engine
from viewfold.rows.linalg import dense
from viewfold.state.hashes import draw
from viewfold.state.parts import part

# Variables are learned from so many rows; of a view with more features, no single one matters.
SAMPLE, WIDEST = 2000, 300

SKEWED = 1.0  # Numbers with at least this skewness may become logarithms
FEW_VALUES = 10  # Numbers with fewer values are left as they are


@part("bends", axes={"start": "d", "rate": "d", "middle": "d", "weight": "d"})
@frozen_record
class Bends:
    """A monotone map of each feature: a logarithm for some, and wild cells nearer for all."""

    #: (n_features,): start, rate: x becomes asinh((x − start) · rate), which is about linear near
    #: the start and a logarithm beyond; where the rate is 0, x stays x
    start: Array
    rate: Array
    #: (n_features,): middle, weight: a value that is far from the middle, in spreads of 1 / weight,
    #: comes nearer, to the logarithm of what is too far; none does where the weight is 0
    middle: Array
    weight: Array

    def __call__(self, block: Matrix) -> Matrix:
        """Return a block with these features; missing cells stay."""
        out = np.array(dense(block), dtype=block.dtype)
        logs = np.flatnonzero(self.rate)
        if logs.size:
            out[:, logs] = np.arcsinh((out[:, logs] - self.start[logs]) * self.rate[logs])
        apart = (out - self.middle) * self.weight
        far = np.abs(apart) > constants.WILD
        if far.any():
            which = np.nonzero(far)[1]
            times = constants.WILD + np.log(np.abs(apart[far]) / constants.WILD)
            nearer = self.middle[which] + np.sign(apart[far]) * times / self.weight[which]
            out[far] = nearer.astype(out.dtype)
        return out

    def describe(self, view: View) -> str | None:
        """Return which columns are logarithms, for the log; None if none is."""
        at = np.flatnonzero(self.rate)
        names = [view.features[i] if view.features else str(i) for i in at]
        return f"logarithms of {format_names(names, 5)}" if names else None


def are_angles(view: View) -> NDArray[np.bool_]:
    """Tell which features are sine and cosine of the month or weekday of a date.

    The two have a variance of 1 together at most, as one measurement has.
    """
    dates = [column for column in view.columns or () if column.kind == "date"]
    return features_among(view, {f"{one.name}.{part}" for one in dates for part in MONTH + WEEKDAY})


def learn_variables(
    engine: Engine,
    view: View,
    seed: tuple[int, ...],
    first: Callable[[Matrix], Matrix] | None = None,
) -> tuple[Bends | None, Array | None]:
    """Learn how features bend, and the weights of those whose z-score is not wanted (else 0).

    `first` is what is done with cells before.
    """
    weight = np.where(are_levels(view) | are_angles(view), 1.0, 0.0)
    told = weight if weight.any() else None
    if view.rows.is_sparse or view.shape[1] > WIDEST:
        return None, told
    drawn = draw(engine, view.ids, SAMPLE, seed=seed, purpose="variables")
    rows = engine.collect(engine.select(replace(view.rows, fill=first), drawn)).astype(np.float64)
    ordered, count = np.sort(rows, axis=0), np.count_nonzero(~np.isnan(rows), axis=0)
    n_values = 1 + np.count_nonzero(np.diff(ordered, axis=0) > 0, axis=0)
    # A number with two values, each of them in ten rows or more, is two levels.
    low, high = ordered[0], np.take_along_axis(ordered, np.maximum(count - 1, 0)[None], axis=0)[0]
    often = np.minimum((rows == low).sum(axis=0), (rows == high).sum(axis=0)) >= FEWEST
    two = (weight == 0) & (n_values == 2) & often
    weight[two] = np.sqrt(2) / (high - low)[two]
    free = (weight == 0) & (count >= 4 * FEWEST) & (n_values >= FEW_VALUES)
    bends = _choose_logs(rows, ordered, count, free) if free.any() else None
    return bends, weight if two.any() else told


def _choose_logs(rows: Array, ordered: Array, count: Array, free: Array) -> Bends:
    """Return how features bend: those with a long tail are logarithms if these agree better.

    What columns have in common is more likely to tell clusters apart than what one has alone, and
    a scale on which they agree better is more likely the right one.
    """
    d = rows.shape[1]
    plain = _bends(ordered, count, free, np.zeros(d), np.zeros(d))
    Z = _standardised(plain(rows))
    # The logarithm begins at a part of the median of what is positive; for numbers of both signs,
    # a spread from the middle.
    n_low = np.count_nonzero(rows <= 0, axis=0)
    signed = np.count_nonzero(rows < 0, axis=0) > 0
    positive = _around(ordered, count, n_low + (count - n_low) // 2)
    start = np.where(signed, plain.middle, 0)
    rate = np.where(signed, plain.weight, _inverse(constants.LOG_UNIT * positive))
    ends = np.array([0.001, 0.999])[:, None] * (count - 1)
    low, high = np.take_along_axis(ordered, ends.astype(np.intp), axis=0)
    skewed = np.abs((_standardised(np.clip(rows, low, high)) ** 3).mean(axis=0)) > SKEWED
    usable = (rate > 0) & (signed | (count - n_low >= 4 * FEWEST))
    at = np.flatnonzero(free & skewed & usable)
    some = np.isin(np.arange(d), at)
    bent = _bends(ordered, count, free, np.where(some, start, 0), np.where(some, rate, 0))
    R, L, others = Z[:, at], _standardised(bent(rows)[:, at]), Z[:, ~some]
    n, apart = len(rows), 1 - np.eye(at.size)
    RR, RL, LL = ((A.T @ B / n) ** 2 * apart for A, B in ((R, R), (R, L), (L, L)))
    as_is = ((R.T @ others / n) ** 2).sum(axis=1) + np.maximum(RR, RL).sum(axis=1)
    as_log = ((L.T @ others / n) ** 2).sum(axis=1) + np.maximum(RL.T, LL).sum(axis=1)
    logs = np.zeros(d, bool)
    logs[at] = as_log > constants.LOG_GAIN * as_is
    return _bends(ordered, count, free, np.where(logs, start, 0), np.where(logs, rate, 0))


def _bends(ordered: Array, count: Array, free: Array, start: Array, rate: Array) -> Bends:
    """Return how features bend, given which are logarithms of what."""
    values = np.where(rate > 0, np.arcsinh((ordered - start) * rate), ordered)
    low, middle, high = (_around(values, count, count * i // 4) for i in (1, 2, 3))
    spread = (high - low) / 1.35  # of a normal distribution, the standard deviation
    keep = free & (spread > 0)
    return Bends(start, rate, np.where(keep, middle, 0), _inverse(np.where(keep, spread, 0)))


def _inverse(values: Array) -> Array:
    return np.divide(1, values, out=np.zeros_like(values), where=values > 1e-280)


def _around(ordered: Array, count: Array, at: Array) -> Array:
    """Return the mean of ten values around a place in each column: no value of one sample."""
    total = np.vstack([np.zeros(ordered.shape[1]), np.cumsum(np.nan_to_num(ordered), axis=0)])
    half = FEWEST // 2
    at = np.clip(at, half, np.maximum(count - half, half))[None]
    upper, lower = (np.take_along_axis(total, at + side, axis=0)[0] for side in (half, -half))
    return np.asarray((upper - lower) / FEWEST)


def _standardised(rows: Array) -> Array:
    """Return z-scores, with 0 for missing cells and constant columns."""
    count = np.maximum(np.count_nonzero(~np.isnan(rows), axis=0), 1)
    apart = np.nan_to_num(rows - np.nansum(rows, axis=0) / count)
    spread = np.sqrt((apart**2).sum(axis=0) / count)
    return np.asarray(apart / np.where(spread > 0, spread, 1))
