"""The map: a place in the plane for every sample, with similar rows of the consensus as neighbours.

Some samples are laid out by t-SNE, which knows nothing of clusters; all others go where the drawn
samples are that they resemble most. The cost of a sample does not depend on how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold._util.types import Array, Ids
from viewfold.rows import Engine, RowSet, all_on_one_thread
from viewfold.rows.linalg import unit_rows
from viewfold.state.clusters import confidence, hangs_on
from viewfold.state.hashes import draw
from viewfold.state.novelty import to_share, to_surprise
from viewfold.state.state import State
from viewfold.web.metadata import ColourColumn, colour_columns
from viewfold.web.words import as_line

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator


LAID_OUT = 2000  # how many samples t-SNE lays out at most; it takes three seconds or so
PIECE = 2**16  # how many rows of the consensus are in memory at a time
NEAREST = 12  # a sample is placed by so many of those that are laid out


def places(engine: Engine, state: State, numbers: NDArray[np.intp]) -> Array:
    """Return a place for each of some samples, in the square from −1 to 1.

    Row numbers are ascending; the order of samples changes nothing.
    """
    few = draw(engine, state.ids, LAID_OUT, seed=0, purpose="plot")
    rows = unit_rows(engine.collect(engine.select(state.embedding, few)).astype(np.float64))
    plane = in_square(tsne(rows))
    found = np.empty((numbers.size, 2), np.float32)
    if few.size < numbers.size:
        near = Neighbours(rows, plane)
        for start in range(0, numbers.size, PIECE):
            piece = slice(start, start + PIECE)
            found[piece] = near.place(
                engine.collect(engine.select(state.embedding, numbers[piece]))
            )
    own = np.minimum(np.searchsorted(numbers, few), numbers.size - 1)
    here = numbers[own] == few
    found[own[here]] = plane[here]
    return found


class Neighbours:
    """Samples that are laid out, next to which others are placed."""

    def __init__(self, rows: Array, plane: Array) -> None:
        from sklearn.neighbors import NearestNeighbors

        self.plane = plane
        search = NearestNeighbors(n_neighbors=min(NEAREST, len(rows)), algorithm="brute", n_jobs=1)
        self.search = search.fit(np.ascontiguousarray(rows, np.float32))
        # How far neighbours are on the map: the place of a sample is not between two islands.
        gaps = NearestNeighbors(n_neighbors=min(6, len(rows)), n_jobs=1).fit(plane).kneighbors()[0]
        self.near = max(float(np.median(gaps[:, -1])), 1e-9)

    def place(self, rows: Array) -> Array:
        """Return the places of rows: means of those of the nearest, the most similar first."""
        with all_on_one_thread():
            apart, which = self.search.kneighbors(unit_rows(rows.astype(np.float32, copy=False)))
        squares = apart.astype(np.float32) ** 2
        scale = squares[:, -1:] - squares[:, :1]
        weight = np.exp(-3 * (squares - squares[:, :1]) / np.maximum(scale, 1e-12))
        at = self.plane[which]
        away = ((at - at[:, :1]) ** 2).sum(axis=2) / (4 * self.near) ** 2
        weight *= np.exp(-away)
        return np.asarray((weight[:, :, None] * at).sum(axis=1) / weight.sum(axis=1)[:, None])


def in_square(plane: Array) -> Array:
    """Return places moved and scaled, both axes alike, into the square from −1 to 1."""
    low, high = plane.min(axis=0), plane.max(axis=0)
    half = float((high - low).max()) / 2
    return np.asarray((plane - (low + high) / 2) / (half if half > 0 else 1) * 0.98)


def tsne(rows: Array) -> Array:
    """Return a place in the plane for each row: t-SNE from the two principal directions."""
    from sklearn.manifold import TSNE

    # t-SNE magnifies round-off: with the number of threads, the map would change.
    with all_on_one_thread():
        U, s, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
        plane = np.zeros((len(rows), 2))
        plane[:, : s.size] = (U * s)[:, :2]
        spread = plane[:, 0].std()
        if len(rows) <= 10 or spread < 1e-9:  # too few neighbours, or all the same
            return plane
        method = TSNE(
            init=plane / spread * 1e-4,
            perplexity=min(20, (len(rows) - 1) / 3),
            max_iter=400,
            angle=0.8,
            random_state=0,
            n_jobs=1,
        )
        return np.asarray(method.fit_transform(rows), np.float64)


MOST_POINTS = 10**6  # how many samples a map shows; of more, so many are drawn at random
SCALE = 65535


class ModelRows:
    """The rows of a model, and what is computed from them once."""

    def __init__(self, model: FoldingEstimator) -> None:
        self.engine: Engine = model._engine
        self.state: State = model._judged

    @cached_property
    def labels(self) -> RowSet:
        return self.state.labels(self.engine)

    @cached_property
    def sure(self) -> RowSet:  # the confidence of each sample
        state = self.state
        assert state.clusters is not None
        rows = state.embedding, state.seen, state.novelty
        return confidence(self.engine, state.clusters, *rows, self.hangs)

    @cached_property
    def hangs(self) -> RowSet:  # the view that each label hangs on
        state = self.state
        assert state.clusters is not None
        rows = state.embedding, state.evidence
        return hangs_on(self.engine, state.clusters, state.directions, *rows)

    def take(self, rows: RowSet, numbers: NDArray[np.intp]) -> Array:
        return self.engine.collect(self.engine.select(rows, numbers))


@dataclass(frozen=True)
class Points:
    """The points of the map, in an order that depends on where they are, not on who they are."""

    numbers: NDArray[np.intp]  # the row number of each
    place: NDArray[np.uint16]  # where it is
    # Its cluster, confidence, number of views, novelty, and the view that its label hangs on.
    cluster: NDArray[np.intp]
    sure: Array
    coverage: NDArray[np.intp]
    novelty: Array
    hangs: NDArray[np.intp]
    ids: Ids | None  # who it is, if ids are needed
    coloured: list[ColourColumn]  # columns to colour by
    notes: list[str]  # what was left out

    @classmethod
    def of(cls, found: ModelRows, metadata: pd.DataFrame | None, ids: bool) -> Points:
        """Draw samples and place them."""
        engine, state = found.engine, found.state
        numbers = np.arange(state.n_samples)
        if numbers.size > MOST_POINTS:
            numbers = np.sort(draw(engine, state.ids, MOST_POINTS, seed=0, purpose="plot"))
        place = places(engine, state, numbers)
        whole = np.round((place.astype(np.float64) + 1) / 2 * SCALE).astype(np.uint16)
        cluster, sure = found.take(found.labels, numbers), found.take(found.sure, numbers)
        views = engine.map(lambda seen: seen.sum(axis=1), state.seen)
        coverage = found.take(views, numbers)
        # Points that are drawn later hide others: the order is mixed, and none of ids or rows.
        mixed = (whole[:, 0].astype(np.uint64) << np.uint64(16)) | whole[:, 1]
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)
        novelty = to_share(to_surprise(found.take(state.novelty, numbers)))
        hangs = np.maximum(found.take(found.hangs, numbers)[:, 0], 0)
        order = np.lexsort((hangs, novelty, coverage, sure, cluster, mixed))
        names = found.take(state.ids, numbers)[order] if ids or metadata is not None else None
        coloured: tuple[list[ColourColumn], list[str]] = [], []
        if metadata is not None and names is not None:
            coloured = colour_columns(engine, state.ids, names, metadata, name_ids=ids)
        parts = numbers[order], whole[order], cluster[order], sure[order], coverage[order]
        return cls(*parts, novelty[order], hangs[order], names, *coloured)

    def at(self, numbers: NDArray[np.intp]) -> list[int | None]:
        """Return which point each sample is; None if it is not drawn."""
        found = pd.Index(self.numbers).get_indexer(numbers)
        return [at if at >= 0 else None for at in found.tolist()]

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
        found: dict[str, Any] = {
            "x": self.place[:, 0].astype("<u2"),
            "y": self.place[:, 1].astype("<u2"),
            "cluster": _small(self.cluster, k),
            "confidence": _byte(self.sure),
            "coverage": _small(self.coverage, int(self.coverage.max(initial=0)) + 1),
            **({"novelty": _byte(self.novelty)} if np.isfinite(self.novelty).any() else {}),
            **(
                {"hangs": _small(self.hangs, int(self.hangs.max()) + 1)} if self.hangs.any() else {}
            ),
            **{one.facts["column"]: one.values for one in self.coloured},
        }
        if ids and self.ids is not None:
            found["ids"] = "\n".join(map(as_line, self.ids.tolist())).encode()
        return found


def _byte(share: Array) -> NDArray[np.uint8]:
    """Return numbers from 0 to 1 as those from 0 to 254, and 255 for NaN."""
    known = np.round(254 * np.clip(np.nan_to_num(share), 0, 1))
    return np.where(np.isfinite(share), known, 255).astype(np.uint8)


def _small(numbers: NDArray[np.intp], many: int) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """Return whole numbers in as few bytes as hold them and one number more, for none."""
    if many <= 255:
        return numbers.astype(np.uint8)
    return np.minimum(numbers, SCALE).astype("<u2")
