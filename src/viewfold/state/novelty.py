"""How unlike known rows the rows of samples were: a byte for each, and what it is good for.

A byte holds the surprise of `viewfold.method.novelty.Known`, −log10 of the share of known rows that
are as unlike, in steps of 1 / 12; 0 says that it is not known. Its highest bit says that the view
was learned from this row: it is known by then, however unlike the others it is. Of several views,
the most counts; a corrected row takes the place of what there was.

Samples look like a group of their own if they lie together: there is a ball in which those that
came later are far more unlike known rows than the others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from viewfold._util.constants import FEWEST
from viewfold._util.types import Array, Matrix
from viewfold.rows import Alignment, Engine, RowSet
from viewfold.rows.linalg import membership
from viewfold.state.evidence import NONE
from viewfold.state.hashes import draw
from viewfold.state.log import standing

if TYPE_CHECKING:
    from viewfold.state.state import State

STEPS = 12  # levels for each factor of ten
LEARNED = 128  # added to the level of a row that the view was learned from
# A share of known rows that is as unlike: below it, a row is taken for a novel one.
NOVEL = 0.01
# A group is told of if its novel samples are so much of all, and again if it has grown by half.
GROUP, GROWN = 0.0075, 1.5
# They are unlike others: a tenth of the known rows is so unlike.
UNLIKE = 1.0
# Where the group lies, new samples have this surprise on average, none counting more than a novel
# one: 0.4 is usual, and around the outliers of a cluster it is up to 1.
TYPICAL = 1.05
SURE = 7.0  # standard errors by which it is above what is to be expected there
# The squared radius of its ball, for each dimension, where rows of clusters scatter by 1.
WIDEST = 4.0
MOST = 0.3  # of the samples that are unlike others, beyond the usual, are in it at least
ALONE = 1.4  # the factor by which samples are more, at most, if the square is twice as large
SCANNED, CENTERS = 4000, 32  # samples that are looked at, and how many balls are tried around


def to_levels(surprise: Array) -> Array:
    known = 1 + np.round(STEPS * np.clip(surprise, 0, 126 / STEPS))
    return np.where(np.isnan(surprise), 0, known).astype(np.uint8)


def to_surprise(levels: Array) -> Array:
    return np.where(levels == 0, np.nan, (levels % LEARNED - 1.0) / STEPS)


def to_share(surprise: Array) -> Array:
    """Return the share of known rows that are less unlike; NaN if that is not known."""
    return np.asarray(1 - 10.0**-surprise)


def belief(levels: Array) -> Array:
    """Return how far rows can be believed to belong to any cluster, from 0 to 1.

    It is 1 but for novel rows, and falls with the share of known rows that are as unlike.
    """
    came_later = (levels > 0) & (levels < LEARNED)
    return np.minimum(1, 10.0 ** -np.where(came_later, to_surprise(levels), 0) / NOVEL)


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


def find_group(engine: Engine, state: State, which: int) -> int:
    """Return how many samples that came later are unlike others and lie together; 0 if none do.

    They came after the views were first folded. They are looked for in the consensus, in the
    discriminant directions of the clusters, and where one view says that they are.
    """
    assert state.clusters is not None
    k, labels, directions = state.clusters.n_clusters, state.labels(engine), state.directions
    if directions is None:
        return 0
    need = max(FEWEST, GROUP * state.n_samples)

    folds = [record.entry for record in state.views]

    def is_new(level: Array, added: Array) -> Array:
        return np.asarray((level > 0) & (level < LEARNED) & ~np.isin(added, folds))

    def count(own: Array, level: Array, added: Array) -> Array:
        new = is_new(level, added)
        kinds = level >= 0, new, new & (to_surprise(level) >= UNLIKE)
        return np.array([np.bincount(own[kind], minlength=k) for kind in kinds])

    counts = engine.reduce(count, labels, state.novelty, state.added)
    counts[:, 2 * counts[2] >= counts[0]] = 0  # the group is a cluster already
    n_new, n_unlike = counts[1:].sum(axis=1)
    if n_unlike - 10**-UNLIKE * n_new < need:
        return 0
    drawn = draw(engine, state.ids, SCANNED, seed=0, purpose="group")
    rows = state.embedding, state.evidence, labels, state.novelty, state.added
    row, said, own, level, added = (engine.collect(engine.select(one, drawn)) for one in rows)
    some = (level > 0) & (counts[0] > 0)[own]
    surprise, new = np.minimum(to_surprise(level), -np.log10(NOVEL)), is_new(level, added)
    said = said[:, directions.columns(which)]
    places = (row - directions.mean) @ directions.directions, row.astype(np.float64), said * 1.0
    scale, found = state.n_samples / len(drawn), 0
    for place, here in zip(places, (some, some, some & (said[:, 0] != NONE)), strict=True):
        if np.count_nonzero(here & ~new) >= FEWEST:
            apart = _whiten(place[here], own[here], k)
            found = max(found, _scan(apart, surprise[here], new[here], need / scale))
    return round(found * scale)


def _whiten(rows: Array, labels: Array, k: int) -> Array:
    """Return rows in units of their scatter around the means of their clusters."""
    members = membership(labels, k)
    means = members @ rows / np.maximum(np.bincount(labels, minlength=k), 1)[:, None]
    apart = rows - means[labels]
    within = apart.T @ apart / len(rows)
    within[np.diag_indices_from(within)] += 0.02 * np.trace(within) / len(within) + 1e-12
    values, Q = np.linalg.eigh(within)
    return np.asarray(rows @ (Q / np.sqrt(values)))


def _scan(rows: Array, surprise: Array, new: Array, need: float) -> int:
    """Return how many new rows are unlike others in the ball that has most of them, 0 if none has.

    Around some of them, balls of all sizes are tried. In a ball with a group, new rows have more
    surprise than old ones have in the same ball, and more than new ones elsewhere.
    """
    unlike = new & (surprise >= UNLIKE)
    those = rows[unlike]
    if len(those) < max(need, FEWEST):
        return 0
    each = np.linspace(0, len(those) - 1, min(len(those), CENTERS)).astype(int)
    near = np.argpartition(_squares(those[each], those), FEWEST - 1, axis=1)[:, :FEWEST]
    apart = _squares(those[near].mean(axis=1), rows)
    order = np.argsort(apart, axis=1, kind="stable")

    def inside(values: Array) -> Array:
        return np.asarray(np.cumsum(values[order], axis=1, dtype=np.float64))

    n_new, of_new, n_unlike, of_all = map(inside, (new, new * surprise, unlike, surprise))
    n_old, of_old = np.arange(1, len(rows) + 1) - n_new, of_all - of_new
    old = surprise[~new]
    usual, few = old.mean(), FEWEST * old.mean()
    # Elsewhere, too, new rows have more surprise, as nothing was learned from them.
    new_out = (of_new[:, -1:] - of_new + few) / (n_new[:, -1:] - n_new + FEWEST)
    old_out = (of_old[:, -1:] - of_old + few) / (n_old[:, -1:] - n_old + FEWEST)
    factor = np.clip(new_out / old_out, 1, 2)
    more = of_new - n_new * factor * (of_old + 5 * usual) / (n_old + 5)
    error = old.std() * np.sqrt(np.maximum(n_new, 1) * (1 + n_new / (n_old + 5)))
    found = (more > SURE * error) & (of_new > TYPICAL * n_new) & (n_unlike >= need)
    found &= (n_old <= n_old[:, -1:] / 2) & (n_unlike >= FEWEST)
    # A part of rows that are scattered may lie together.
    beyond = unlike.sum() - new.sum() * np.mean(old >= UNLIKE)
    found &= n_unlike >= MOST * beyond
    squares = np.take_along_axis(apart, order, axis=1)
    found &= squares <= WIDEST * rows.shape[1]
    # Rows that are scattered everywhere are many more in a ball of twice the square.
    twice = np.array([np.searchsorted(r, 2 * r, side="right") - 1 for r in squares])
    found &= np.take_along_axis(n_unlike, twice.clip(0), axis=1) <= ALONE * n_unlike
    return int((found * n_unlike).max())


def _squares(a: Array, b: Array) -> Array:
    return np.asarray((a**2).sum(axis=1)[:, None] - 2 * a @ b.T + (b**2).sum(axis=1))


def tell_group(engine: Engine, state: State, which: int) -> State:
    """Return a state whose last entry of the log tells of a group of novel samples, if it is news.

    It is not if the group was told of since clusters were asked for, and did not grow much.
    """
    with engine.session():
        found = find_group(engine, state, which)
    told = 0
    for event in standing(state.log):
        told = 0 if event.what == "recluster" else max(told, event.n_novel or 0)
    if found < max(GROWN * told, 1):
        return state
    return replace(state, log=(*state.log[:-1], replace(state.log[-1], n_novel=found)))
