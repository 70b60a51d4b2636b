"""How unlike known rows the rows of samples were: a byte for each, and what it is good for.

A byte holds the surprise of `viewfold.method.novelty.Known`, −log10 of the share of known rows that
are as unlike, in steps of 1 / 25; 0 says that it is not known. Of several views, the most counts; a
corrected row takes the place of what there was.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viewfold._util.types import Array, Matrix
from viewfold.rows import Alignment, Engine, RowSet

STEPS = 25  # levels for each factor of ten
# A share of known rows that is as unlike: below it, a row is taken for a novel one.
NOVEL = 0.01


def to_levels(surprise: Array) -> Array:
    known = 1 + np.round(STEPS * np.clip(surprise, 0, 254 / STEPS))
    return np.where(np.isnan(surprise), 0, known).astype(np.uint8)


def to_surprise(levels: Array) -> Array:
    return np.where(levels == 0, np.nan, (levels - 1.0) / STEPS)


def to_share(surprise: Array) -> Array:
    """Return the share of known rows that are less unlike; NaN if that is not known."""
    return np.asarray(1 - 10.0**-surprise)


def belief(levels: Array) -> Array:
    """Return how far rows can be believed to belong to any cluster, from 0 to 1.

    It is 1 but for novel rows, and falls with the share of known rows that are as unlike.
    """
    return np.fmin(1, 10.0 ** -to_surprise(levels) / NOVEL)


def alike_enough(labels: Array, share: Array, most: float | None) -> NDArray[np.intp]:
    """Return labels, −1 for those whose novelty is above the most that is asked for."""
    if most is None:
        return np.asarray(labels)
    if not 0 <= most <= 1:
        raise ValueError(f"max_novelty={most!r}: expected a number from 0 to 1.")
    return np.where(share > most, -1, labels)


def measure(engine: Engine, encoder: object, rows: RowSet) -> RowSet:
    """Return the levels of rows of a view, 0 if its encoder does not tell."""
    surprise = getattr(encoder, "surprise", None)

    def levels(block: Matrix) -> Array:
        if surprise is None:
            return np.zeros(block.shape[0], np.uint8)
        return to_levels(surprise(block))

    return engine.map(levels, rows)


def carry(levels: RowSet, before: RowSet, alignment: Alignment, had: RowSet | None) -> RowSet:
    """Return the levels of all samples, given those of a view; `had` says who had it before."""

    def latest(own: Array, known: Array, had: Array | None = None) -> Array:
        most = np.maximum(own, known)
        return most if had is None else np.where(had & (own > 0), own, most)

    beside = [alignment.view_rows(alignment.carry(before, 0)), *([] if had is None else [had])]
    return alignment.merge(
        (latest, levels, *beside), (lambda block: block, alignment.absent(before))
    )
