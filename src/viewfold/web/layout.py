"""A place in the plane for every sample: samples with similar rows of the consensus are neighbours.

Some samples are laid out by t-SNE, which knows nothing of clusters; all others go where the drawn
samples are that they resemble most. The cost of a sample does not depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from viewfold._util.types import Array
from viewfold.rows import Engine, RowSet, all_on_one_thread
from viewfold.rows.linalg import unit_rows
from viewfold.state.hashes import draw
from viewfold.state.state import State

LAID_OUT = 2000
"""How many samples t-SNE lays out at most; it takes three seconds or so."""

PIECE = 2**16
"""How many rows of the consensus are in memory at a time."""

NEAREST = 12
"""A sample is placed by so many of those that are laid out."""


def drawn_samples(engine: Engine, state: State, most: int) -> NDArray[np.intp]:
    """Return the row numbers of the samples that a map shows, ascending: at most so many."""
    if state.n_samples <= most:
        return np.arange(state.n_samples)
    return np.sort(draw(engine, state.ids, most, seed=0, purpose="plot"))


def pieces(engine: Engine, rows: RowSet, numbers: NDArray[np.intp]) -> Iterator[Array]:
    """Yield some rows, a piece at a time."""
    for start in range(0, numbers.size, PIECE):
        yield engine.collect(engine.select(rows, numbers[start : start + PIECE]))


def places(engine: Engine, state: State, numbers: NDArray[np.intp]) -> Array:
    """Return a place for each of some samples, in the square from −1 to 1.

    Parameters
    ----------
    engine : Engine
        Computes with the rows.
    state : State
        The state.
    numbers : ndarray of int
        Row numbers of the samples, ascending.

    Returns
    -------
    ndarray of shape (n, 2)
        In single precision. The order of samples changes nothing.
    """
    some = draw(engine, state.ids, LAID_OUT, seed=0, purpose="plot")
    rows = unit_rows(engine.collect(engine.select(state.embedding, some)).astype(np.float64))
    plane = in_square(tsne(rows))
    found = np.empty((numbers.size, 2), np.float32)
    if some.size < numbers.size:
        at = 0
        near = Neighbours(rows, plane)
        for piece in pieces(engine, state.embedding, numbers):
            found[at : at + len(piece)] = near.place(piece)
            at += len(piece)
    own = np.minimum(np.searchsorted(numbers, some), numbers.size - 1)
    here = numbers[own] == some
    found[own[here]] = plane[here]
    return found


class Neighbours:
    """Samples that are laid out, next to which others are placed.

    Parameters
    ----------
    rows : ndarray of shape (n, n_components)
        Their rows of the consensus, of unit length.
    plane : ndarray of shape (n, 2)
        Their places.
    """

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
    """Return a place in the plane for each row: t-SNE from the two principal directions.

    Parameters
    ----------
    rows : ndarray of shape (n, n_components)
        Rows of unit length, in double precision.

    Returns
    -------
    ndarray of shape (n, 2)
    """
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
