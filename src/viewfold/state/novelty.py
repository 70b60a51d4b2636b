"""How unlike known rows the rows of samples were: a byte for each, and what it is good for.

A byte holds the surprise of `viewfold.method.novelty.Known`, −log10 of the share of known rows that
are as unlike, in steps of 1 / 12; 0 says that it is not known. Its highest bit says that the view
was learned from this row: it is known by then, however unlike the others it is. Of several views,
the most counts; a corrected row takes the place of what there was.

Novel samples look like a group of their own if they lie together: nearer to their own mean than to
the centre of their cluster, where few others are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from viewfold._util.constants import FEWEST
from viewfold._util.types import Array, Matrix
from viewfold.rows import Alignment, Engine, RowSet
from viewfold.rows.linalg import membership, unit_rows
from viewfold.state.log import standing

if TYPE_CHECKING:
    from viewfold.state.state import State

STEPS = 12  # levels for each factor of ten
LEARNED = 128  # added to the level of a row that the view was learned from
# A share of known rows that is as unlike: below it, a row is taken for a novel one.
NOVEL = 0.01
# A group is told of if its novel samples are so much of all, and again if it has grown by half.
GROUP, GROWN = 0.0075, 1.5
# Its samples have this surprise on average, none counting more than a novel one: 0.4 is usual, and
# around the outliers of a cluster it is up to 1. Samples that were learned from count as known.
TYPICAL = 1.2
# The part of that which is asked for where nearly all samples were learned from.
AT_FIRST = 0.3
# It scatters by at most so much of what clusters scatter by. Planted groups have 0.1 to 0.8, as
# encoders do not know the directions in which they scatter; noise has 1 to 1.7.
TIGHT = 0.9
ROUNDS = 4  # steps of k-means that a candidate for a group is moved by


def to_levels(surprise: Array) -> Array:
    known = 1 + np.round(STEPS * np.clip(surprise, 0, 126 / STEPS))
    return np.where(np.isnan(surprise), 0, known).astype(np.uint8)


def to_surprise(levels: Array) -> Array:
    return np.where(levels == 0, np.nan, (levels % LEARNED - 1.0) / STEPS)


def surprise_when_new(levels: Array) -> Array:
    """Return the surprise of rows that came after their view was learned, 0 of others."""
    return np.where((levels == 0) | (levels >= LEARNED), 0, to_surprise(levels))


def to_share(surprise: Array) -> Array:
    """Return the share of known rows that are less unlike; NaN if that is not known."""
    return np.asarray(1 - 10.0**-surprise)


def belief(levels: Array) -> Array:
    """Return how far rows can be believed to belong to any cluster, from 0 to 1.

    It is 1 but for novel rows, and falls with the share of known rows that are as unlike.
    """
    return np.minimum(1, 10.0 ** -surprise_when_new(levels) / NOVEL)


def alike_enough(labels: Array, share: Array, most: float | None) -> NDArray[np.intp]:
    """Return labels, −1 for those whose novelty is above the most that is asked for."""
    if most is None:
        return np.asarray(labels)
    if not 0 <= most <= 1:
        raise ValueError(f"max_novelty={most!r}: expected a number from 0 to 1.")
    return np.where(share > most, -1, labels)


def measure(engine: Engine, encoder: object, rows: RowSet, *, learned: bool) -> RowSet:
    """Return the levels of rows of a view, 0 if its encoder does not tell."""
    surprise = getattr(encoder, "surprise", None)

    def levels(block: Matrix) -> Array:
        if surprise is None:
            return np.zeros(block.shape[0], np.uint8)
        found = to_levels(surprise(block))
        return np.where(found > 0, found + LEARNED, 0).astype(np.uint8) if learned else found

    return engine.map(levels, rows)


def carry(levels: RowSet, before: RowSet, alignment: Alignment, had: RowSet | None) -> RowSet:
    """Return the levels of all samples, given those of a view; `had` says who had it before."""

    def latest(own: Array, known: Array, had: Array | None = None) -> Array:
        newer = own % LEARNED >= known % LEARNED
        if had is not None:
            newer |= had & (own > 0)
        return np.where(newer, own, known)

    beside = [alignment.view_rows(alignment.carry(before, 0)), *([] if had is None else [had])]
    return alignment.merge(
        (latest, levels, *beside), (lambda block: block, alignment.absent(before))
    )


# -- a group of their own


def find_group(
    engine: Engine, embedding: RowSet, labels: RowSet, levels: RowSet, n_clusters: int
) -> int:
    """Return how many novel samples lie together, apart from all others; 0 if none do.

    Candidates are the novel samples of each cluster. A sample is on the side of a candidate if it
    is nearer to the mean of that than to the mean of the others in its own cluster. A group has
    enough novel samples on its side, and few others: their mean surprise is high. It does not
    scatter more than clusters do.
    """
    need = max(FEWEST, GROUP * embedding.shape[0])

    def kinds(own: Array, level: Array) -> Array:
        is_novel = surprise_when_new(level) >= -np.log10(NOVEL)
        return np.asarray(own + n_clusters * is_novel)

    def count(own: Array, level: Array) -> tuple[Array, Array]:
        n_new = np.count_nonzero((level > 0) & (level < LEARNED))
        return np.bincount(kinds(own, level), minlength=2 * n_clusters), np.array(n_new)

    counts, n_new = engine.reduce(count, labels, levels)
    plain, novel = counts.reshape(2, n_clusters)
    mostly = novel >= plain  # clusters of novel samples
    tried = np.flatnonzero((novel > 0) & ~mostly)
    if novel[tried].sum() < need:
        return 0

    def sums(block: Array, own: Array, level: Array) -> Array:
        rows = unit_rows(block.astype(np.float64))
        return np.asarray(membership(kinds(own, level), 2 * n_clusters) @ rows)

    of_plain, of_novel = engine.reduce(sums, embedding, labels, levels).reshape(2, n_clusters, -1)
    size = np.where(mostly, plain + novel, plain)
    centers = (of_plain + mostly[:, None] * of_novel) / np.maximum(size, 1)[:, None]
    means = of_novel[tried] / novel[tried, None]

    def sides(block: Array, own: Array, level: Array) -> tuple[Array, Array]:
        rows, surprise = unit_rows(block.astype(np.float64)), surprise_when_new(level)
        # ‖row − mean‖² < ‖row − centre‖², without what both have
        near = (means**2).sum(axis=1) - 2 * rows @ means.T
        apart = (centers[own] ** 2).sum(axis=1) - 2 * (rows * centers[own]).sum(axis=1)
        there = (near < apart[:, None]).T
        is_novel = kinds(own, level) >= n_clusters
        kept = there, there & is_novel, there & (surprise >= 1)
        mild = np.minimum(surprise, -np.log10(NOVEL))
        counts = [*(which.sum(axis=1) for which in kept), there @ mild]
        return kept[1] @ rows, np.array(counts)

    for _ in range(ROUNDS):
        toward, counts = engine.reduce(sides, embedding, labels, levels)
        n_there, n_novel, n_unlike, total = counts
        means = toward / np.maximum(n_novel, 1)[:, None]
    least = TYPICAL * (AT_FIRST + (1 - AT_FIRST) * n_new / embedding.shape[0])
    # Rows have length 1, so that they scatter by 1 − ‖mean‖² around their mean.
    within = size @ (1 - (centers**2).sum(axis=1)) / size.sum()
    tight = 1 - (means**2).sum(axis=1) <= TIGHT * within
    found = (n_novel >= need) & (total > least * n_there) & tight
    return int(n_unlike[found].max(initial=0))


def tell_group(engine: Engine, state: State) -> State:
    """Return a state whose last entry of the log tells of a group of novel samples, if it is news.

    It is not if the group was told of since clusters were asked for, and did not grow much.
    """
    assert state.clusters is not None
    rows = state.embedding, state.labels(engine), state.novelty
    with engine.session():
        found = find_group(engine, *rows, state.clusters.n_clusters)
    told = 0
    for event in standing(state.log):
        told = 0 if event.what == "recluster" else max(told, event.n_novel or 0)
    if found < max(GROWN * told, 1):
        return state
    return replace(state, log=(*state.log[:-1], replace(state.log[-1], n_novel=found)))
