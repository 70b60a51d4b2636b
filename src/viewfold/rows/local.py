"""The engine of one machine: row blocks in memory or in a mapped file, spread over threads.

Sums are taken in the order of the rows, so that the number of threads does not change a bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import reduce as fold_left
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from viewfold._util.types import Array, Matrix
from viewfold._util.watch import counted
from viewfold.rows._rows import Picked, Plain, RowBlocks, Rows, as_row_blocks, rows_per_block
from viewfold.rows._threads import blas_on_one_thread, in_order
from viewfold.rows.base import RowSet, Work


class LocalEngine:
    """Rows are arrays, or files that are mapped into memory.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.rows import LocalEngine
    >>> from viewfold.rows.linalg import gram
    >>> engine, X = LocalEngine(), np.arange(6.0).reshape(3, 2)
    >>> engine.reduce(gram, X)
    array([[20., 26.],
           [26., 35.]])
    >>> engine.map(lambda block: block @ np.array([1.0, 10.0]), X)
    array([10., 32., 54.])
    >>> alignment = engine.join(np.array([7, 8, 9]), np.array([9, 5]))
    >>> alignment.ids, alignment.known
    (array([7, 8, 9, 5]), array([ True, False]))
    """

    def session(self) -> AbstractContextManager[Any]:
        """Keep linear algebra on one thread: blocks are spread over threads instead."""
        return blas_on_one_thread()

    def place(self, ids: RowSet, *rows: RowSet) -> tuple[RowSet, ...]:
        """Return ids and rows as they are."""
        return (ids, *rows)

    def hold(self, rows: Rows) -> Rows:
        """Return the rows of a view with their cells as they are read."""
        return Rows(self.map(lambda block: block, rows))

    def match(self, work: Work, rows: RowSet, others: RowSet) -> RowSet:
        """Return what `work` makes of rows and others; see `Engine.match`."""
        return work(rows, others)

    def reduce(
        self, work: Work, *rows: RowSet, combine: Callable[[Any, Any], Any] | None = None
    ) -> Any:
        """Sum the small matrices that `work` makes of each block; see `Engine.reduce`."""
        return _total(_pass(work, rows), combine)

    def map(
        self,
        work: Work,
        *rows: RowSet,
        sums: bool = False,
        width: int | None = None,
        reuse: bool = False,
    ) -> Any:
        """Return the rows that `work` makes of each block; see `Engine.map`."""
        n = as_row_blocks(rows[0]).shape[0]
        result = _Result(n, rows[0] if reuse else None)

        def keep(where: slice, made: Any) -> Any:
            blocks, parts = made if sums else (made, None)
            result.put(where, blocks)
            return parts

        parts = _pass(work, rows, width, keep)
        if sums:
            total = _total(parts, None)
            return result.rows(), total
        deque(parts, maxlen=0)
        return result.rows()

    def join(self, ids: Array, others: Array, *, ordered: bool = False) -> LocalAlignment:
        """Align known samples and those of a view by their ids; see `Engine.join`."""
        n, n_before = others.size, ids.size
        if np.array_equal(ids, others):
            same = np.arange(n)
            return LocalAlignment(self, ids, same, same, same, np.empty(0, np.intp))
        partner = pd.Index(ids).get_indexer(pd.Index(others)) if n_before else np.full(n, -1)
        new = partner < 0
        rows = partner.copy()
        rows[new] = n_before + np.arange(np.count_nonzero(new))
        previous = np.arange(n_before)
        union = np.concatenate([ids, others[new]]) if n_before else others
        if ordered:
            order = np.argsort(union)
            place = np.empty_like(order)
            place[order] = np.arange(order.size)
            union, rows, previous = union[order], place[rows], place[previous]
        known = np.zeros(n_before, bool)
        known[partner[~new]] = True
        return LocalAlignment(self, union, rows, previous, partner, np.flatnonzero(~known))

    def numbers(self, rows: RowSet) -> NDArray[np.intp]:
        """Return the number of each row."""
        return np.arange(as_row_blocks(rows).shape[0])

    def select(self, rows: RowSet, numbers: NDArray[np.intp]) -> Picked:
        """Return a few rows, in the given order."""
        source = as_row_blocks(rows)
        assert not isinstance(source, Picked)
        return Picked(source, numbers)

    def keep(self, rows: RowSet, kept: NDArray[np.bool_]) -> RowSet:
        """Return the rows for which `kept` is true."""
        if isinstance(rows, Rows):
            at = np.flatnonzero(kept)
            return replace(rows, present=at if rows.present is None else rows.present[at])
        return np.asarray(rows[kept])

    def leading(self, rows: RowSet, columns: int) -> RowSet:
        """Return the first columns."""
        if not isinstance(rows, Rows):
            return rows[:, :columns]
        if rows.fill is not None:  # what stands for missing cells is known for whole rows
            return self.map(lambda block: block[:, :columns], rows)
        if rows.columns is not None:
            return replace(rows, columns=rows.columns[:columns])
        return replace(rows, X=rows.X[:, :columns])

    def head(self, rows: RowSet, most: int) -> Matrix:
        """Return at most so many rows, of the first block."""
        source = as_row_blocks(rows)
        return source.read(slice(0, min(source.shape[0], source.block_rows())))[:most]

    def collect(self, rows: RowSet) -> Array:
        """Return rows as one array."""
        if isinstance(rows, Rows | Plain | Picked):
            read: Array = rows.read(slice(0, rows.shape[0]))
            return read
        array: Array = rows
        return array


@dataclass(frozen=True)
class LocalAlignment:
    """Where the samples of a view and those known before stand in their union; see `Alignment`.

    Attributes
    ----------
    ids : ndarray
        The union.
    rows : ndarray of int
        Position in the union of each of the view's rows.
    previous : ndarray of int
        Position in the union of each sample that was known before.
    partner : ndarray of int
        For each of the view's rows, its number among the known samples, −1 for new ones.
    lacking : ndarray of int
        Numbers of the known samples that the view lacks.
    """

    engine: LocalEngine
    ids: Array
    rows: NDArray[np.intp]
    previous: NDArray[np.intp]
    partner: NDArray[np.intp]
    lacking: NDArray[np.intp]

    @property
    def known(self) -> NDArray[np.bool_]:
        """For each row of the view, whether its sample was known."""
        return self.partner >= 0

    @property
    def n_samples(self) -> int:
        """How many samples are in the union."""
        return int(self.ids.size)

    @property
    def n_before(self) -> int:
        """How many samples were known before."""
        return self.previous.size

    @property
    def n_shared(self) -> int:
        """How many samples are in both."""
        return self.previous.size - self.lacking.size

    @property
    def n_new(self) -> int:
        """How many samples are in the view only."""
        return self.rows.size - self.n_shared

    def partners(self, rows: Array, fill: float = 0) -> Picked:
        """Return, for each row of the view, what is known of its sample."""
        return Picked(Plain(rows), self.partner, fill)

    def absent(self, rows: Array) -> RowBlocks:
        """Return what is known of the samples that the view lacks."""
        if rows.ndim == 2 and rows.dtype.kind == "f":
            return Rows(rows, self.lacking)
        return Picked(Plain(rows), self.lacking)

    def view_rows(self, rows: Array) -> Picked:
        """Return, for each row of the view, the row of its sample among those of the union."""
        return Picked(Plain(rows), self.rows)

    def known_rows(self, rows: Array) -> Picked:
        """Return, for each sample known before, its row among those of the union."""
        return Picked(Plain(rows), self.previous)

    def carry(self, rows: Array, fill: float) -> Array:
        """Return what is known of each sample of the union."""
        out = np.full((self.n_samples, *rows.shape[1:]), fill, rows.dtype)
        out[self.previous] = rows
        return out

    def merge(self, of_view: tuple[Any, ...], of_absent: tuple[Any, ...]) -> Array:
        """Return a row for each sample of the union."""
        result = _Result(self.n_samples, None)
        for (work, *rows), place in (
            (of_view, self.rows),
            (of_absent, self.previous[self.lacking]),
        ):

            def keep(where: slice, made: Any, place: NDArray[np.intp] = place) -> None:
                result.put(place[where], made)

            deque(_pass(work, rows, None, keep), maxlen=0)
        merged: Array = result.rows()
        return merged


class _Result:
    """Rows that several threads write block by block; the first block tells shape and type."""

    def __init__(self, n: int, instead: Any) -> None:
        self.n, self.lock, self.several = n, Lock(), False
        self.out: list[Any] | None = None if instead is None else [instead]

    def put(self, where: Any, made: Any) -> None:
        """Write a block, or a tuple of them."""
        blocks = made if isinstance(made, tuple) else (made,)
        with self.lock:
            if self.out is None:
                self.several = isinstance(made, tuple)
                self.out = [self._room_for(block) for block in blocks]
        for out, block in zip(self.out, blocks, strict=True):
            if isinstance(out, dict):
                out[where.start] = block
            else:
                out[where] = block

    def _room_for(self, block: Any) -> Any:
        if sparse.issparse(block):
            return {}
        return np.empty((self.n, *block.shape[1:]), block.dtype)

    def rows(self) -> Any:
        """Return what was written."""
        assert self.out is not None
        joined = [
            sparse.vstack([part.pop(start) for start in sorted(part)], format="csr")
            if isinstance(part, dict)
            else part
            for part in self.out
        ]
        return tuple(joined) if self.several else joined[0]


def added(a: Any, b: Any) -> Any:
    """Return the sum of two sums, or of two tuples of them; the first may be overwritten."""
    if isinstance(a, tuple):
        return tuple(added(one, other) for one, other in zip(a, b, strict=True))
    a += b
    return a


def _total(parts: Iterator[Any], combine: Callable[[Any, Any], Any] | None) -> Any:
    if combine is not None:
        return fold_left(combine, parts)
    first = next(parts)
    several = isinstance(first, tuple)
    total = tuple(np.array(p, dtype=np.float64) for p in (first if several else (first,)))
    for part in parts:
        for t, p in zip(total, part if several else (part,), strict=True):
            t += p
    return total if several else total[0]


def _pass(
    work: Work,
    rows: Any,
    width: int | None = None,
    keep: Callable[[slice, Any], Any] | None = None,
) -> Iterator[Any]:
    """Yield what `work` makes of every block, in order, and tell who watches how far it is."""
    lead = as_row_blocks(rows[0])
    n = lead.shape[0]
    step = lead.block_rows() if width is None else rows_per_block(width, _itemsize(lead))
    return counted(_results(work, rows, step, keep), n, step)


def _results(
    work: Work, rows: Any, step: int, keep: Callable[[slice, Any], Any] | None
) -> Iterator[Any]:
    """Yield what `work` makes of every block, in order, computed on several threads.

    The first rows tell how blocks are cut, and there is one block at least. Whatever `keep` makes
    of a result, in the same thread, is yielded instead.
    """
    parts = [as_row_blocks(one) for one in rows]
    n = parts[0].shape[0]

    def one(start: int) -> Any:
        where = slice(start, min(start + step, n))
        made = work(*(part.read(where) for part in parts))
        return made if keep is None else keep(where, made)

    with blas_on_one_thread() as threads:
        yield from in_order(one, range(0, max(n, 1), step), threads)


def _itemsize(rows: RowBlocks) -> int:
    kind = rows.dtype if isinstance(rows, Rows) else getattr(rows, "X", None)
    return int(getattr(kind, "itemsize", 8))
