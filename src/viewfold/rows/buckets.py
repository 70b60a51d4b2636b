"""Engines whose rows are in buckets: each verb is a task for every bucket, done by whoever can.

A sample is in the bucket that its id falls into, so that views and consensus are joined bucket by
bucket, and no row has to meet one of another bucket. In a bucket, the local engine does the work.
What differs between a disk, Dask and Spark is `run`.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import count, pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from viewfold._util.types import Array, Matrix
from viewfold.rows import plain as _plain
from viewfold.rows._alignment import BucketAlignment, openers
from viewfold.rows._rows import Rows, as_row_blocks
from viewfold.rows._tasks import (
    Guarded,
    Head,
    Join,
    Listed,
    Map,
    Match,
    Reduce,
    Refused,
    Take,
    Task,
    Whole,
    appended,
    both,
    combined,
    count_true,
    first_columns,
    first_of_opened,
    kept_rows,
    mapped,
    same,
    stacked,
)
from viewfold.rows.base import Alignment, RowSet, Work
from viewfold.rows.bucketed import (
    BucketRows,
    Made,
    Part,
    assembled,
    deal,
)
from viewfold.rows.local import LocalEngine, added
from viewfold.rows.plain import Stored

PIECE = 2**28
"""Bytes of a view in memory that are dealt to buckets at once."""


class BucketEngine(ABC):
    """Rows are in buckets, in files of a folder that all workers can read and write.

    Parameters
    ----------
    folder : str
        Where: a path, or an address that fsspec knows. What is made for a while is removed again.
    n_buckets : int
        How many buckets there are. A worker holds the rows of a few of them at a time.
    """

    piece = PIECE

    def __init__(self, folder: str, n_buckets: int) -> None:
        self.folder, self.n_buckets = folder, n_buckets
        self._number = count()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove all files; nothing can be done with its rows any more."""
        _plain.remove(self.folder)

    @property
    @abstractmethod
    def n_workers(self) -> int:
        """How many buckets are worked on at a time."""

    @abstractmethod
    def run(self, task: Task, items: Sequence[Any], combine: Callable[[Any, Any], Any]) -> Any:
        """Do a task for each item, and combine the results, neighbours with neighbours.

        Parameters
        ----------
        task : callable
            ``task(item)`` returns something small. It may be repeated.
        items : sequence
            One at least.
        combine : callable
            ``combine(a, b)`` for the results of some items and of those that follow.
        """

    def each(self, task: Task, items: Sequence[Any]) -> list[Any]:
        """Do a task for each item, and return the results in order.

        An error that the task finds in what it was given (ValueError, TypeError, a file that is not
        there) is raised here.
        """
        if not items:
            return []
        found: list[Any] = self._checked(Listed(task), items, appended)
        return found

    def _checked(self, task: Task, items: Sequence[Any], combine: Callable[[Any, Any], Any]) -> Any:
        found = self.run(Guarded(task), items, partial(combined, combine))
        if isinstance(found, Refused):
            raise found.error
        return found

    def room(self) -> tuple[str, Any]:
        """Return a new folder, and an object with which it is removed."""
        path = f"{self.folder}/{next(self._number)}"
        _plain.make_folder(path)
        owner = _Owner()
        weakref.finalize(owner, _plain.remove, path)
        return path, owner

    def session(self) -> AbstractContextManager[Any]:
        """Return a context manager that is open while a state is changed."""
        return nullcontext()

    def place(self, ids: RowSet, *rows: RowSet) -> tuple[RowSet, ...]:
        """Put samples that are in memory, or in a mapped file, into their buckets."""
        if isinstance(ids, BucketRows):
            return (ids, *rows)
        path, owner = self.room()
        lead = max((_row_bytes(one) for one in rows), default=8.0)
        step = max(1, int(self.piece // max(lead, 1)))
        dealt = []
        for i, start in enumerate(range(0, max(len(ids), 1), step)):
            some = slice(start, min(start + step, len(ids)))
            blocks = [_raw(one, some) for one in rows]
            dealt.append(deal(f"{path}/{i}", self.n_buckets, ids[some], *blocks))
        made = assembled(dealt, self, owner=owner)
        for one, was in zip(made, (ids, *rows), strict=True):
            check_rows([one.n], [as_row_blocks(was).shape[0]])
        return (
            made[0],
            *(
                replace(one, double=was.double, fill=was.fill, columns=was.columns)
                if isinstance(was, Rows)
                else replace(one, cells=False)
                for one, was in zip(made[1:], rows, strict=True)
            ),
        )

    def hold(self, rows: RowSet) -> RowSet:
        """Return the rows of a view with their cells as they are read."""
        if not isinstance(rows, BucketRows):
            return LocalEngine().hold(rows)
        return replace(self.map(same, rows), cells=True)

    def reduce(
        self, work: Work, *rows: RowSet, combine: Callable[[Any, Any], Any] | None = None
    ) -> Any:
        """Combine what `work` makes of each block; see `Engine.reduce`."""
        if not _are_bucketed(rows):
            return LocalEngine().reduce(work, *rows, combine=combine)
        task = Reduce(work, openers(rows), combine)
        return self._checked(task, self._items(rows), combine or added)

    def map(
        self,
        work: Work,
        *rows: RowSet,
        sums: bool = False,
        width: int | None = None,
        reuse: bool = False,
    ) -> Any:
        """Return the rows that `work` makes of each block; see `Engine.map`."""
        if not _are_bucketed(rows):
            return LocalEngine().map(work, *rows, sums=sums, width=width, reuse=reuse)
        if reuse and len(rows) == 1 and not sums:
            return self._later(work, rows[0], width)
        path, owner = self.room()
        task = Map(path, work, openers(rows), sums, width)
        files, total, several = self._checked(task, self._items(rows), both)
        made = self._rows(files, [part.n for part in rows[0].parts], owner)
        result: Any = tuple(made) if several else made[0]
        return (result, total) if sums else result

    def _later(self, work: Work, rows: BucketRows, width: int | None) -> BucketRows:
        """Return rows of the same kind that are computed when they are read: no file is written."""
        make = partial(mapped, work=work, opener=rows.opener, width=width)
        parts = tuple(Made(make, (part,), part.n) for part in rows.parts)
        return replace(rows, parts=parts, cells=False)

    def match(self, work: Work, rows: RowSet, others: RowSet) -> RowSet:
        """Return what `work` makes of rows and the others in their bucket; see `Engine.match`."""
        if not isinstance(rows, BucketRows):
            return LocalEngine().match(work, rows, self.collect(others))
        if not isinstance(others, BucketRows):
            others = self._nothing(others)
        path, owner = self.room()
        items = [
            (i, (rows.parts[i], others.parts[i])) for i in range(self.n_buckets) if rows.parts[i].n
        ]
        files, *_ = self._checked(Match(path, work), items, both)
        (made,) = self._rows(files, [part.n for part in rows.parts], owner)
        return made

    def join(self, ids: RowSet, others: RowSet, *, ordered: bool = False) -> Alignment:
        """Align known samples and those of a view, bucket by bucket; see `Engine.join`."""
        if not _are_bucketed((ids, others)):
            return LocalEngine().join(ids, others, ordered=ordered)
        if not isinstance(ids, BucketRows):
            ids = self.place(ids)[0] if len(ids) else self._nothing(ids, others.held)
        if not isinstance(others, BucketRows):
            others = self.place(others)[0]
        if len(ids.parts) != len(others.parts):
            raise ValueError(
                f"The samples are in {len(ids.parts)} buckets and those of the view in "
                f"{len(others.parts)}. Use one engine for both."
            )
        path, owner = self.room()
        items = [(i, (ids.parts[i], others.parts[i])) for i in range(self.n_buckets)]
        found = self.each(Join(path, ordered), items)
        check_rows(
            [n_samples + n_shared for _, (n_samples, n_shared) in found],
            [known.n + came.n for _, (known, came) in items],
        )
        return BucketAlignment(self, ids, others, [files for files, _ in found], owner)

    def numbers(self, rows: RowSet) -> RowSet:
        """Return a number for each row, by which it can be selected."""
        if not isinstance(rows, BucketRows):
            return LocalEngine().numbers(rows)
        starts = self._starts(rows)
        parts = tuple(
            Made(partial(np.arange, int(a), int(b)), (), int(b - a)) for a, b in pairwise(starts)
        )
        return BucketRows(parts, np.dtype(np.intp), (), self)

    def select(self, rows: RowSet, numbers: NDArray[np.intp]) -> RowSet:
        """Return a few rows, in the given order; they are in memory."""
        if not isinstance(rows, BucketRows):
            return LocalEngine().select(rows, numbers)
        starts = self._starts(rows)
        bucket = np.searchsorted(starts, numbers, side="right") - 1
        order = np.argsort(bucket, kind="stable")
        involved, begins = np.unique(bucket[order], return_index=True)
        wanted = np.split(numbers[order], begins[1:])
        items = [
            (int(i), (rows.parts[i],), at - starts[i])
            for i, at in zip(involved, wanted, strict=True)
        ]
        if not items:
            return self.head(rows, 0)
        found = self.each(Take(rows.opener), items)
        back = np.argsort(order, kind="stable")
        taken: RowSet = stacked(found)[back]
        return Rows(taken) if rows.cells else taken

    def keep(self, rows: RowSet, kept: RowSet) -> RowSet:
        """Return the rows for which `kept` is true."""
        if not isinstance(rows, BucketRows):
            return LocalEngine().keep(rows, kept)
        many = self.each(count_true, [(i, (part,)) for i, part in enumerate(kept.parts)])
        parts = tuple(
            Made(kept_rows, (own, mask), n)
            for own, mask, n in zip(rows.parts, kept.parts, many, strict=True)
        )
        share = sum(many) / max(rows.n, 1)
        stored, owner = int(rows.stored * share), (rows.owner, kept.owner)
        picked = replace(rows, parts=parts, stored=stored, owner=owner)
        # Of samples that are removed from a state, no file may be left: the others are copied.
        return picked if rows.cells else self.map(same, picked)

    def leading(self, rows: RowSet, columns: int) -> RowSet:
        """Return the first columns."""
        if not isinstance(rows, BucketRows):
            return LocalEngine().leading(rows, columns)
        if rows.cells:
            return self.map(partial(first_columns, columns=columns), rows)
        first = partial(first_of_opened, columns=columns)
        parts = tuple(Made(first, (part,), part.n) for part in rows.parts)
        return replace(rows, parts=parts, tail=(min(columns, rows.tail[0]),))

    def head(self, rows: RowSet, most: int) -> Matrix:
        """Return at most so many rows, of the first bucket that has some."""
        if not isinstance(rows, BucketRows):
            return LocalEngine().head(rows, most)
        which = next((i for i, part in enumerate(rows.parts) if part.n), 0)
        return self.each(Head(rows.opener, most), [(which, (rows.parts[which],))])[0]

    def collect(self, rows: RowSet) -> Array:
        """Return all rows as one array; they have to fit in memory."""
        if not isinstance(rows, BucketRows):
            return LocalEngine().collect(rows)
        everything = [(i, (part,)) for i, part in self._filled(rows)]
        together: Array = stacked(self.each(Whole(rows.opener), everything))
        return together

    def _filled(self, rows: BucketRows) -> list[tuple[int, Part]]:
        """Return the buckets that have rows, or else the first."""
        found = [(i, part) for i, part in enumerate(rows.parts) if part.n]
        return found or [(0, rows.parts[0])]

    def _items(self, rows: tuple[RowSet, ...]) -> list[tuple[int, tuple[Part, ...]]]:
        """Return what tasks are given: for each bucket with rows, its number and its parts."""
        assert all(isinstance(one, BucketRows) for one in rows), "some rows are in no bucket"
        return [(i, tuple(one.parts[i] for one in rows)) for i, _ in self._filled(rows[0])]

    def _starts(self, rows: BucketRows) -> NDArray[np.intp]:
        return np.append(0, np.cumsum([part.n for part in rows.parts]))

    def _nothing(self, ids: Array, kind: Any = None) -> BucketRows:
        """Return no rows, in as many buckets as there are."""
        held = np.dtype(ids.dtype if kind is None else kind)
        tail = tuple(ids.shape[1:])
        one = Stored("", "text" if held.kind == "O" else "dense", held.name, tail, 0, 0)
        return BucketRows((one,) * self.n_buckets, held, tail, self)

    def _rows(
        self, files: dict[int, tuple[tuple[Stored, ...], tuple[int, ...]]], n: list[int], owner: Any
    ) -> list[BucketRows]:
        """Return the rows in the files that a task has written for each bucket."""
        first, _ = next(iter(files.values()))
        made = []
        for j, like in enumerate(first):
            nothing = replace(like, start=0, stop=0)
            parts = tuple(files[i][0][j] if i in files else nothing for i in range(self.n_buckets))
            check_rows([part.n for part in parts], n)
            kinds = {part.dtype for part in parts if part.n}
            assert len(kinds) <= 1, f"buckets have rows of different types: {kinds}"
            held = np.dtype(object if like.kind == "text" else kinds.pop() if kinds else like.dtype)
            entries = sum(of[j] for _, of in files.values())
            made.append(
                BucketRows(
                    parts, held, like.tail, self, like.kind == "sparse", entries, owner=owner
                )
            )
        return made


def check_rows(found: list[int], expected: list[int]) -> None:
    """Make sure that each bucket has the rows that it should have.

    Whatever happens to files or workers: no sample may vanish or be there twice.
    """
    for bucket, (here, there) in enumerate(zip(found, expected, strict=True)):
        if here != there:
            raise RuntimeError(
                f"Bucket {bucket} has {here:,} rows and should have {there:,}: files were changed "
                "or lost while they were in use. Nothing was written; try again."
            )


class _Owner:
    """Files are removed when nobody holds it any more."""


def _are_bucketed(rows: tuple[RowSet, ...]) -> bool:
    return any(isinstance(one, BucketRows) for one in rows)


def _row_bytes(rows: RowSet) -> float:
    """Return how many bytes a row has, on the average."""
    held = rows.X if isinstance(rows, Rows) else rows
    if sparse.issparse(held):
        return float(12 * held.nnz / max(held.shape[0], 1))
    return float(np.prod(held.shape[1:]) * held.dtype.itemsize)


def _raw(rows: RowSet, some: slice) -> Matrix:
    """Return rows as they are, with their missing cells and in the order of the file."""
    if isinstance(rows, Rows):
        return replace(rows, columns=None, fill=None).read(some)
    return rows[some]
