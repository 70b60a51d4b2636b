"""Remove what batches (sites, machines, runs) of one view differ by, before anything is learned.

Rows of each batch get the mean and the spread of the view, feature by feature. The indicators of
the batch travel with the rows, so that later rows of a known batch are corrected alike, wherever
they come from; the indicators themselves are no features.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from viewfold._util.arguments import warn_user
from viewfold._util.constants import FEWEST
from viewfold._util.messages import format_names, frozen_record
from viewfold._util.types import Array, Matrix
from viewfold.data.view import View
from viewfold.method.scaling import Counts, Scale, are_levels, batch_places, learn_counts
from viewfold.method.variables import Bends
from viewfold.rows import Engine
from viewfold.rows.linalg import dense, pick_columns
from viewfold.state.parts import part


@part("batches", axes={"own": "bd", "mean": "bd", "factor": "bd", "centre": "d"})
@frozen_record
class Batches:
    """A linear map of each feature for each batch; rows of other batches stay as they are."""

    own: Array  #: (n_batches, n_features): 1 for the feature that is the indicator of the batch
    #: (n_batches, n_features): mean, factor: x becomes (x − mean) · factor + centre. Where a batch
    #: has fewer than ten cells, these are the centre and 1.
    mean: Array
    factor: Array
    centre: Array  #: (n_features,): the mean of the view
    share: float  #: the share of the variance that was between batches
    counts: Counts | None = None  #: how counts are scaled first
    then: Bends | None = None  #: what is done with corrected cells

    @property
    def at(self) -> NDArray[np.intp]:
        """Which features are the indicators, for each batch."""
        return np.asarray(self.own.argmax(axis=1))

    def __call__(self, block: Matrix) -> Matrix:
        out = self.scaled(block)
        which = _which(block, self.at)
        for batch in range(len(self.own)):
            rows = which == batch
            out[rows] = (out[rows] - self.mean[batch]) * self.factor[batch] + self.centre
        out[:, self.at] = 0
        return out if self.then is None else self.then(out)

    def scaled(self, block: Matrix) -> Array:
        """Return a copy of a block before batches are corrected: of counts, logarithms."""
        out = np.array(dense(block))
        if self.counts is not None:
            others = np.setdiff1d(np.arange(out.shape[1]), self.at)
            out[:, others] = self.counts(out[:, others])
        return out

    def describe(self, view: View) -> str:
        """Return what the log tells."""
        more = [] if self.then is None else [self.then.describe(view)]
        more += [] if self.counts is None else ["counts: rows divided by their depth, logarithm"]
        name = None if view.source is None else view.source.batch
        said = f"differences between {len(self.own)} batches of {name!r} removed "
        return "; ".join([f"{said}({self.share:.0%} of the variance)", *filter(None, more)])


def _which(block: Matrix, at: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the number of the batch of each row, -1 if it is not known."""
    own = dense(pick_columns(block, at)) == 1
    return np.where(own.any(axis=1), own.argmax(axis=1), -1)


def learn_batches(
    engine: Engine, view: View, rule: Scale | None, seed: tuple[int, ...]
) -> Batches | None:
    """Learn what batches of a view differ by; None if nobody says what the batches are."""
    at, d = batch_places(view), view.shape[1]
    if not at.size:
        return None
    if view.rows.is_sparse or rule in ("l2", "tfidf"):
        raise ValueError(
            f"View {view.name!r}: batch=… is for tables of measurements and counts, not for text "
            "or sparse matrices. Leave it out."
        )
    if rule == "counts" and view.gaps is not None:
        raise ValueError(
            f"View {view.name!r} has counts with missing cells, of which batch=… cannot be "
            "removed. Fill the cells, or choose another scale."
        )
    rows, levels = replace(view.rows, fill=None), are_levels(view)
    start = Batches(np.eye(d)[at], np.zeros((at.size, d)), np.ones((at.size, d)), np.zeros(d), 0.0)
    if rule == "counts":
        start = replace(start, counts=learn_counts(engine, replace(view, rows=rows), seed))

    def sums(block: Matrix) -> tuple[Array, ...]:
        own, cells = dense(pick_columns(block, at)) == 1, start.scaled(block).astype(np.float64)
        own, there = own.astype(np.float64), ~np.isnan(cells)
        return own.sum(axis=0), own.T @ there, own.T @ np.where(there, cells, 0)

    n, count, total = engine.reduce(sums, rows)
    centre = total.sum(axis=0) / np.maximum(count.sum(axis=0), 1)
    means = total / np.maximum(count, 1)

    def squares(block: Matrix) -> tuple[Array, Array]:
        which, cells = _which(block, at), start.scaled(block).astype(np.float64)
        apart = np.nan_to_num(cells - means[which])  # rows of no batch are in no sum
        own = which[:, None] == np.arange(at.size)
        return own.T @ (apart * apart), (np.nan_to_num(cells - centre)[which >= 0] ** 2).sum(axis=0)

    within, whole = engine.reduce(squares, rows)
    few = count < FEWEST
    inner = np.sqrt(within / np.maximum(count - 1, 1))
    usual = np.sqrt(within.sum(axis=0) / np.maximum((count - 1).sum(axis=0), 1))
    enough = ~few & (inner > 1e-6 * usual) & (usual > 0) & ~levels
    factor = np.where(enough, usual / np.where(enough, inner, 1), 1)
    varied = whole > 0
    varied[at] = False
    part_of = within.sum(axis=0)[varied] / whole[varied]
    _tell_small(view, n, view.shape[0] - int(n.sum()))
    return replace(
        start,
        mean=np.where(few, centre, means),
        factor=factor,
        centre=centre,
        share=float(1 - part_of.mean()) if part_of.size else 0.0,
    )


def _tell_small(view: View, n: Array, n_without: int) -> None:
    """Say which rows are not corrected: those of small batches, and of none."""
    assert view.source is not None
    assert view.features is not None
    names = [view.features[j].removeprefix(f"{view.source.batch}=") for j in batch_places(view)]
    small = [f"{name} ({int(m)} rows)" for name, m in zip(names, n, strict=True) if m < FEWEST]
    if small:
        warn_user(
            f"View {view.name!r}: batches of fewer than {FEWEST} samples are not corrected, as "
            f"nothing may be kept of so few: {format_names(small, 5)}."
        )
    if n_without:
        warn_user(f"View {view.name!r}: {n_without:,} rows have no batch, and are not corrected.")
