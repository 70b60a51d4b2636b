"""Engines whose rows are in buckets: each verb is a task for every bucket, done by whoever can.

A sample is in the bucket that its id falls into, so that views and consensus are joined bucket by
bucket, and no row has to meet one of another bucket. In a bucket, the local engine does the work.
What differs between a disk, Dask and Spark is `run`.
"""

from __future__ import annotations

import operator
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from viewfold._util.types import Array, Matrix
from viewfold.rows.bucket_files import (
    BucketRows,
    Made,
    Part,
    Stored,
    combine_partitions,
    is_remote,
    n_entries,
    remove,
    same,
    stacked,
    store,
    whole,
    write_buckets,
)
from viewfold.rows.linalg import is_sparse
from viewfold.rows.local import (
    Alignment,
    Engine,
    LocalEngine,
    Picked,
    Rows,
    RowSet,
    Work,
    added,
    carried_rows,
    lacking_rows,
)

Task = Callable[[Any], Any]
Combine = Callable[[Any, Any], Any]
Item = tuple[int, tuple[Part, ...]]  # the number of a bucket, and its rows

# Buckets are spread over threads or workers already: in each, one block comes after the other.
_local = LocalEngine(n_threads=1)


class BucketEngine(Engine, ABC):
    """Rows are in buckets, in files of a folder that all workers can read and write.

    Parameters
    ----------
    folder : str
        Where: a path, or an address that fsspec knows. What is made for a while is removed again.
    n_buckets : int
        How many buckets there are. A worker holds the rows of a few of them at a time.
    """

    session = nullcontext
    piece = 2**28  # bytes of a view in memory that are written to buckets at once

    def __init__(self, folder: str, n_buckets: int) -> None:
        self.folder, self.n_buckets = folder, n_buckets
        self._number = count()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove all files; nothing can be done with its rows any more."""
        remove(self.folder)

    @property
    @abstractmethod
    def n_workers(self) -> int:
        """How many buckets are worked on at a time."""

    @abstractmethod
    def run(self, task: Task, items: Sequence[Any], combine: Combine) -> Any:
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
        found: list[Any] = self._checked(lambda item: [task(item)], items, operator.add)
        return found

    def _checked(self, task: Task, items: Sequence[Any], combine: Combine) -> Any:
        def guarded(item: Any) -> Any:
            try:
                return task(item)
            except (ValueError, TypeError, FileNotFoundError, PermissionError, ImportError) as why:
                return Refused(why.with_traceback(None))

        def combined(a: Any, b: Any) -> Any:
            refused = a if isinstance(a, Refused) else b
            return refused if isinstance(refused, Refused) else combine(a, b)

        found = self.run(guarded, items, combined)
        if isinstance(found, Refused):
            raise found.error
        return found

    def room(self) -> tuple[str, Any]:
        """Return a new folder, and an object with which it is removed."""
        path = f"{self.folder}/{next(self._number)}"
        if not is_remote(path):
            os.makedirs(path, mode=0o700, exist_ok=True)
        owner = _Owner()
        weakref.finalize(owner, remove, path)
        return path, owner

    def partition(self, ids: RowSet, *rows: RowSet) -> tuple[RowSet, ...]:
        if isinstance(ids, BucketRows):
            return (ids, *rows)
        path, owner = self.room()
        lead = max((_row_bytes(one) for one in rows), default=8.0)
        step = max(1, int(self.piece // max(lead, 1)))
        written = []
        for i, start in enumerate(range(0, max(len(ids), 1), step)):
            where = slice(start, min(start + step, len(ids)))
            # As they are, with their missing cells and in the order of the file.
            blocks = [
                replace(one, columns=None, fill=None).read(where)
                if isinstance(one, Rows)
                else one[where]
                for one in rows
            ]
            written.append(write_buckets(f"{path}/{i}", self.n_buckets, ids[where], *blocks))
        made = combine_partitions(written, self, owner=owner)
        for one, was in zip(made, (ids, *rows), strict=True):
            check_rows([one.n], [was.shape[0]])
        return (
            made[0],
            *(
                replace(one, double=was.double, fill=was.fill, columns=was.columns)
                if isinstance(was, Rows)
                else replace(one, cells=False)
                for one, was in zip(made[1:], rows, strict=True)
            ),
        )

    def materialize(self, rows: RowSet) -> RowSet:
        if not isinstance(rows, BucketRows):
            return super().materialize(rows)
        return replace(self.map(same, rows), cells=True)

    def reduce(self, work: Work, *rows: RowSet, combine: Combine | None = None) -> Any:
        if not _any_in_buckets(rows):
            return super().reduce(work, *rows, combine=combine)
        openers, items = _openers(rows), self._items(rows)

        def task(item: Item) -> Any:
            return _local.reduce(work, *_opened(openers, item[1]), combine=combine)

        return self._checked(task, items, combine or added)

    def map(
        self,
        work: Work,
        *rows: RowSet,
        sums: bool = False,
        width: int | None = None,
        reuse: bool = False,
    ) -> Any:
        if not _any_in_buckets(rows):
            return super().map(work, *rows, sums=sums, width=width, reuse=reuse)
        if reuse and len(rows) == 1 and not sums:  # no file is written: computed when it is read
            opener = rows[0].opener

            def make(held: Any) -> Any:
                return _local.map(work, opener(held), width=width)

            return rows[0].lazily(make, cells=False)
        path, owner = self.room()
        task = partial(_map, path, work, _openers(rows), sums, width)
        files, total, several = self._checked(task, self._items(rows), _put_together)
        made = self._rows(files, [part.n for part in rows[0].parts], owner)
        result: Any = tuple(made) if several else made[0]
        return (result, total) if sums else result

    def match(self, work: Work, rows: RowSet, others: RowSet) -> RowSet:
        if not isinstance(rows, BucketRows):
            return super().match(work, rows, self.collect(others))
        others = others if isinstance(others, BucketRows) else self._nothing(others)
        path, owner = self.room()

        def task(item: Item) -> Any:
            number, parts = item
            found = work(*(whole(part.open()) for part in parts))
            return _written(path, number, found), None, False

        items = self._items((rows, others))
        files, *_ = self._checked(task, items, _put_together)
        (made,) = self._rows(files, [part.n for part in rows.parts], owner)
        return made

    def join(self, ids: RowSet, others: RowSet, *, ordered: bool = False) -> Alignment:
        if not _any_in_buckets((ids, others)):
            return super().join(ids, others, ordered=ordered)
        if not isinstance(ids, BucketRows):
            ids = self.partition(ids)[0] if len(ids) else self._nothing(ids, others.held)
        if not isinstance(others, BucketRows):
            others = self.partition(others)[0]
        if len(ids.parts) != len(others.parts):
            raise ValueError(
                f"The samples are in {len(ids.parts)} buckets and those of the view in "
                f"{len(others.parts)}. Use one engine for both."
            )
        path, owner = self.room()
        items = [(i, (ids.parts[i], others.parts[i])) for i in range(self.n_buckets)]
        found = self.each(partial(_join, path, ordered), items)
        check_rows(
            [n_samples + n_shared for _, (n_samples, n_shared) in found],
            [known.n + came.n for _, (known, came) in items],
        )
        return BucketAlignment(self, ids, others, [files for files, _ in found], owner)

    def numbers(self, rows: RowSet) -> RowSet:
        if not isinstance(rows, BucketRows):
            return super().numbers(rows)
        parts = tuple(
            Made(partial(np.arange, int(a), int(b)), (), int(b - a))
            for a, b in pairwise(_starts(rows))
        )
        return BucketRows(parts, np.dtype(np.intp), (), self)

    def select(self, rows: RowSet, numbers: NDArray[np.intp]) -> RowSet:
        if not isinstance(rows, BucketRows):
            return super().select(rows, numbers)
        starts = _starts(rows)
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
        opener = rows.opener

        def take(item: tuple[int, tuple[Part], Array]) -> Matrix:
            held = opener(item[1][0].open())
            return held.take(item[2]) if isinstance(held, Rows) else whole(held)[item[2]]

        found = self.each(take, items)
        back = np.argsort(order, kind="stable")
        taken: RowSet = stacked(found)[back]
        return Rows(taken) if rows.cells else taken

    def keep(self, rows: RowSet, kept: RowSet) -> RowSet:
        if not isinstance(rows, BucketRows):
            return super().keep(rows, kept)

        def pick(held: Any, mask: Any) -> Any:
            return whole(held)[whole(mask)]

        many = self.each(lambda part: int(np.count_nonzero(whole(part.open()))), kept.parts)
        stored = int(rows.stored * sum(many) / max(rows.n, 1))
        picked = rows.lazily(pick, kept, n=many, stored=stored)
        # Of samples that are removed from a state, no file may be left: the others are copied.
        return picked if rows.cells else self.map(same, picked)

    def leading(self, rows: RowSet, columns: int) -> RowSet:
        if not isinstance(rows, BucketRows):
            return super().leading(rows, columns)

        def first(held: Any) -> Any:
            return whole(held)[:, :columns]

        if rows.cells:
            return self.map(first, rows)
        return rows.lazily(first, tail=(min(columns, rows.tail[0]),))

    def head(self, rows: RowSet, most: int) -> Matrix:
        if not isinstance(rows, BucketRows):
            return super().head(rows, most)
        opener, items = rows.opener, self._items((rows,))[:1]
        return self.each(lambda item: _local.head(opener(item[1][0].open()), most), items)[0]

    def collect(self, rows: RowSet) -> Array:
        if not isinstance(rows, BucketRows):
            return super().collect(rows)
        opener, items = rows.opener, self._items((rows,))
        together: Array = stacked(self.each(lambda item: whole(opener(item[1][0].open())), items))
        return together

    def _items(self, rows: tuple[RowSet, ...]) -> list[Item]:
        """Return what tasks are given: the buckets that have rows, or else the first."""
        assert all(isinstance(one, BucketRows) for one in rows), "some rows are in no bucket"
        filled = [i for i, part in enumerate(rows[0].parts) if part.n] or [0]
        return [(i, tuple(one.parts[i] for one in rows)) for i in filled]

    def _nothing(self, ids: Array, kind: Any = None) -> BucketRows:
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
            thin = like.kind == "sparse"
            made.append(BucketRows(parts, held, like.tail, self, thin, entries, owner=owner))
        return made


class _Owner:
    """Files are removed when nobody holds it any more."""


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


def _any_in_buckets(rows: tuple[RowSet, ...]) -> bool:
    return any(isinstance(one, BucketRows) for one in rows)


def _openers(rows: Sequence[BucketRows]) -> list[Work]:
    return [one.opener for one in rows]


def _starts(rows: BucketRows) -> NDArray[np.intp]:
    return np.append(0, np.cumsum([part.n for part in rows.parts]))


def _row_bytes(rows: RowSet) -> float:
    held = rows.X if isinstance(rows, Rows) else rows
    if is_sparse(held):
        return float(12 * held.nnz / max(held.shape[0], 1))
    return float(np.prod(held.shape[1:]) * held.dtype.itemsize)


class BucketAlignment(Alignment):
    """An alignment of rows in buckets."""

    def __init__(
        self,
        engine: BucketEngine,
        before: BucketRows,
        view: BucketRows,
        files: list[tuple[Stored, ...]],
        owner: Any,
    ) -> None:
        # Of each bucket: the ids of the union, and then rows, previous, partner and lacking.
        self.workers, self.files = engine, files
        kind = {ids.dtype for ids, *_ in files if ids.n}
        held = np.dtype(kind.pop()) if kind else view.held
        self.ids, self.rows, self.previous, self.partner, self.lacking = (
            BucketRows(parts, held if i == 0 else np.dtype(np.intp), (), engine, owner=owner)
            for i, parts in enumerate(zip(*files, strict=True))
        )
        self.known = self.partner.lazily(lambda at: at >= 0, held=np.dtype(bool))
        self.n_samples, self.n_before = self.ids.n, before.n
        self.n_shared = self.n_before - self.lacking.n
        self.n_new = view.n - self.n_shared

    def _picked(self, rows: RowSet, at: BucketRows, fill: float | None = None) -> BucketRows:
        def pick(at: Array, held: Any) -> Picked:
            rows = whole(held)
            if rows.shape[0]:
                return Picked(rows, at, fill)
            nobody = np.full((1, *rows.shape[1:]), fill or 0, rows.dtype)
            return Picked(nobody, 0 * at, fill)

        return self._made(pick, rows, at)

    def absent(self, rows: RowSet) -> BucketRows:
        return self._made(lambda at, held: lacking_rows(whole(held), at), rows, self.lacking)

    def carry(self, rows: RowSet, fill: float) -> BucketRows:
        def carried(previous: Array, partner: Array, held: Any) -> Array:
            n = previous.size + np.count_nonzero(partner < 0)
            return carried_rows(whole(held), previous, fill, int(n))

        n = [part.n for part in self.ids.parts]
        return self._made(carried, rows, self.previous, self.partner, n=n)

    def _made(
        self, make: Work, rows: RowSet, at: RowSet, *more: RowSet, n: Any = None
    ) -> BucketRows:
        """Return what is made of what the alignment says of each bucket, and of its rows."""
        rows = rows if isinstance(rows, BucketRows) else self.workers._nothing(rows)
        stored = at.n * int(np.prod(rows.tail))
        kind: Any = {"held": rows.held, "tail": rows.tail, "stored": stored}
        made: BucketRows = at.lazily(make, *more, rows, n=n, **kind)
        return made

    def merge(self, of_view: tuple[Any, ...], of_absent: tuple[Any, ...]) -> BucketRows:
        (work, *rows), (others_work, *others) = of_view, of_absent
        path, owner = self.workers.room()
        items = [
            (i, (*(one.parts[i] for one in (*rows, *others)), *of[1:]))
            for i, of in enumerate(self.files)
            if of[0].n
        ]
        task = partial(_merge, path, work, others_work, _openers(rows), _openers(others))
        files, *_ = self.workers._checked(task, items, _put_together)
        (made,) = self.workers._rows(files, [of[0].n for of in self.files], owner)
        return made


# -- what is done with one bucket, by whoever has it: tasks and recipes that are sent to workers --


@dataclass(frozen=True)
class Refused:
    """An error in what a task was given: trying again would not help."""

    error: Exception


def _put_together(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Put together what tasks say about the files they wrote, and add their sums."""
    total = None if a[1] is None else added(a[1], b[1])
    return {**a[0], **b[0]}, total, a[2]


def _opened(openers: list[Work], parts: Sequence[Part]) -> list[Any]:
    return [opener(part.open()) for opener, part in zip(openers, parts, strict=True)]


def _written(path: str, number: int, *blocks: Matrix) -> dict[int, Any]:
    """Write the rows of a bucket; say where they are, and how many entries they have."""
    files = tuple(store(f"{path}/{number}-{j}", block) for j, block in enumerate(blocks))
    return {number: (files, tuple(map(n_entries, blocks)))}


def _map(
    path: str, work: Work, openers: list[Work], sums: bool, width: int | None, item: Item
) -> Any:
    number, parts = item
    made = _local.map(work, *_opened(openers, parts), sums=sums, width=width)
    blocks, total = made if sums else (made, None)
    several = isinstance(blocks, tuple)
    return _written(path, number, *(blocks if several else (blocks,))), total, several


def _join(path: str, ordered: bool, item: Item) -> Any:
    number, (known, came) = item
    made: Any = _local.join(whole(known.open()), whole(came.open()), ordered=ordered)
    arrays = (made.ids, made.rows, made.previous, made.partner, made.lacking)
    files = tuple(store(f"{path}/{number}-{j}", array) for j, array in enumerate(arrays))
    return files, (made.n_samples, made.n_shared)


def _merge(
    path: str, work: Work, others_work: Work, openers: list[Work], others: list[Work], item: Item
) -> Any:
    number, parts = item
    first, last = len(openers), len(openers) + len(others)
    of_view = (work, *_opened(openers, parts[:first]))
    of_absent = (others_work, *_opened(others, parts[first:last]))
    rows, previous, partner, lacking = (part.open() for part in parts[last:])
    union = np.empty(rows.size + lacking.size, np.int8)  # only its length counts here
    alignment = Alignment(_local, union, rows, previous, partner, lacking)
    return _written(path, number, alignment.merge(of_view, of_absent)), None, False
