"""The points of a map: samples that are drawn, where they are, and what they are coloured by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from viewfold._util.types import Array, Ids
from viewfold.rows import Engine, RowSet
from viewfold.state.clusters import confidence
from viewfold.state.state import State
from viewfold.web._metadata import Coloured, coloured
from viewfold.web.layout import drawn_samples, places
from viewfold.web.words import as_line

if TYPE_CHECKING:
    import pandas as pd

    from viewfold.estimators import FoldingEstimator

MOST_POINTS = 10**6
"""How many samples a map shows; of more, so many are drawn at random."""

SCALE = 65535


class Rows:
    """The rows of a model, and what is computed from them once."""

    def __init__(self, model: FoldingEstimator) -> None:
        self.engine: Engine = model._engine
        self.state: State = model._judged

    @cached_property
    def labels(self) -> RowSet:
        """The cluster of each sample."""
        return self.state.labels(self.engine)

    @cached_property
    def sure(self) -> RowSet:
        """The confidence of each sample."""
        state = self.state
        assert state.clusters is not None
        return confidence(self.engine, state.clusters, state.embedding, state.seen)

    def taken(self, rows: RowSet, numbers: NDArray[np.intp]) -> Array:
        """Return rows of some samples."""
        return self.engine.collect(self.engine.select(rows, numbers))


@dataclass(frozen=True)
class Points:
    """The points of the map, in an order that depends on where they are, not on who they are.

    Attributes
    ----------
    numbers : ndarray of int
        The row number of each.
    place : ndarray of uint16, shape (n, 2)
        Where it is.
    cluster, sure, coverage : ndarray
        Its cluster, confidence and number of views.
    ids : ndarray or None
        Who it is, if ids are needed.
    coloured : list of Coloured
        Columns to colour by.
    notes : list of str
        What was left out.
    """

    numbers: NDArray[np.intp]
    place: NDArray[np.uint16]
    cluster: NDArray[np.intp]
    sure: Array
    coverage: NDArray[np.intp]
    ids: Ids | None
    coloured: list[Coloured]
    notes: list[str]

    @classmethod
    def of(cls, found: Rows, metadata: pd.DataFrame | None, ids: bool) -> Points:
        """Draw samples and place them."""
        engine, state = found.engine, found.state
        numbers = drawn_samples(engine, state, MOST_POINTS)
        place = places(engine, state, numbers)
        whole = np.round((place.astype(np.float64) + 1) / 2 * SCALE).astype(np.uint16)
        cluster, sure = found.taken(found.labels, numbers), found.taken(found.sure, numbers)
        views = engine.map(lambda seen: seen.sum(axis=1), state.seen)
        coverage = found.taken(views, numbers)
        # Points that are drawn later hide others: the order is mixed, and none of ids or rows.
        mixed = (whole[:, 0].astype(np.uint64) << np.uint64(16)) | whole[:, 1]
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)
        order = np.lexsort((coverage, sure, cluster, mixed))
        names = found.taken(state.ids, numbers)[order] if ids or metadata is not None else None
        colours: list[Coloured] = []
        notes: list[str] = []
        if metadata is not None and names is not None:
            colours, notes = coloured(engine, state.ids, names, metadata, name_ids=ids)
        return cls(
            numbers=numbers[order],
            place=whole[order],
            cluster=cluster[order],
            sure=sure[order],
            coverage=coverage[order],
            ids=names,
            coloured=colours,
            notes=notes,
        )

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        return np.argsort(self.numbers)

    def at(self, number: int) -> int | None:
        """Return which point a sample is; None if it is not drawn."""
        order = self._order
        at = int(np.searchsorted(self.numbers, number, sorter=order))
        if at == order.size or self.numbers[order[at]] != number:
            return None
        return int(order[at])

    def tags(self, k: int) -> dict[int, tuple[float, float]]:
        """Return where the number of each cluster stands: on the point next to its median."""
        order = np.argsort(self.cluster, kind="stable")
        bounds = np.searchsorted(self.cluster[order], np.arange(k + 1))
        found = {}
        for c in range(k):
            own = self.place[order[bounds[c] : bounds[c + 1]]].astype(np.float64)
            if len(own):
                middle = own[np.argmin(((own - np.median(own, axis=0)) ** 2).sum(axis=1))]
                x, y = (round(float(one) / SCALE * 2 - 1, 4) for one in middle)
                found[c] = x, y
        return found

    def columns(self, k: int, ids: bool) -> dict[str, Any]:
        """Return the columns of the page."""
        sure = np.where(np.isfinite(self.sure), np.round(254 * np.clip(self.sure, 0, 1)), 255)
        found: dict[str, Any] = {
            "x": self.place[:, 0].astype("<u2"),
            "y": self.place[:, 1].astype("<u2"),
            "cluster": _small(self.cluster, k),
            "confidence": sure.astype(np.uint8),
            "coverage": _small(self.coverage, int(self.coverage.max(initial=0)) + 1),
            **{one.facts["column"]: one.values for one in self.coloured},
        }
        if ids and self.ids is not None:
            found["ids"] = "\n".join(map(as_line, self.ids.tolist())).encode()
        return found


def _small(numbers: NDArray[np.intp], many: int) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """Return whole numbers in as few bytes as hold them and one number more, for none."""
    if many <= 255:
        return numbers.astype(np.uint8)
    return np.minimum(numbers, SCALE).astype("<u2")
