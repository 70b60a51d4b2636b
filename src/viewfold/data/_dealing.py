"""Views in partitions: workers read some rows each, look at them, and deal them into buckets.

Nobody holds more than a piece of the view, and each row is read once. What holds for the view as a
whole (rows of zeros, ids that stand in two partitions) is found out from what the workers tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold._util.file import ReadOptions
from viewfold._util.types import Array, Ids
from viewfold.data.arrays import Found, look_at
from viewfold.data.columnar import Run
from viewfold.data.features import expand, tell_unknown
from viewfold.data.ids import as_ids, like_ids, look_like_ids, tell_of_totals
from viewfold.data.view import Column, Gaps, Partitions, View, called
from viewfold.rows import BucketEngine, BucketRows, Rows
from viewfold.rows.bucket_files import PartitionFiles, combine_partitions, remove, write_buckets

if TYPE_CHECKING:
    from viewfold.data.source import Table

PIECE = 2**26
"""Bytes of rows that are dealt at once; whoever deals them holds a few copies of each."""


@dataclass(frozen=True)
class Reader:
    """How files are read, wherever that is done.

    Attributes
    ----------
    ids : str or None
        The column that holds the ids.
    options : ReadOptions
        How to read them.
    """

    ids: str | None
    options: ReadOptions


@dataclass(frozen=True, eq=False)
class Unread:
    """Rows of a view that are in files still; `dealt` puts them into buckets.

    Attributes
    ----------
    engine : BucketEngine or None
        Reads and holds them; workers need not know it.
    reader : Reader
        How they are read.
    runs : list of tuple of Run
        What is read at once.
    partitions : tuple of str
        How errors call the files.
    starts : ndarray of int
        The number of the first row of each, and of all rows.
    names : tuple of str
        The columns of the files, in the order of the first.
    known : tuple of Column or None
        What becomes of the columns; None if all of them are numbers.
    width : int
        How many features there are.
    dtype : numpy.dtype
        What rows come as.
    ids : ndarray or None
        The ids of all rows, if they are in no column.
    numbered : bool
        Whether samples are known by their row number.
    suspects : tuple of int
        Features that are called as ids are.
    owner : object
        Has a method ``cleanup``, which removes the files, if they were made for a while.
    columns : ndarray of int or None
        Numbers of the features in the order in which rows have them; see `Rows`.
    """

    engine: BucketEngine | None
    reader: Reader
    runs: list[tuple[Run, ...]]
    partitions: tuple[str, ...]
    starts: Array
    names: tuple[str, ...]
    known: tuple[Column, ...] | None
    width: int
    dtype: np.dtype[Any]
    ids: Ids | None
    numbered: bool
    suspects: tuple[int, ...] = ()
    owner: Any = None
    columns: NDArray[np.intp] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, features."""
        return int(self.starts[-1]), self.width


@dataclass
class Told:
    """What is known of rows that were dealt, put together in the order of the rows.

    Attributes
    ----------
    dealt : list of PartitionFiles
        Where they are.
    found : Found or None
        What their cells tell; rows are not listed, but counted.
    n_absent, n_empty : int
        How many rows of NaN, and of zeros, there were.
    absent : int or None
        The number of the first row that was left out.
    unknown : dict of str to int
        For each category, how many cells have a level that it does not have.
    alike : dict of int to bool
        For each feature that is called like ids, whether it looks like them everywhere.
    last : object
        The id of the last row.
    """

    dealt: list[PartitionFiles] = field(default_factory=list)
    found: Found | None = None
    n_absent: int = 0
    n_empty: int = 0
    absent: int | None = None
    unknown: dict[str, int] = field(default_factory=dict)
    alike: dict[int, bool] = field(default_factory=dict)
    last: Any = None

    def __add__(self, other: Told) -> Told:
        both = [found for found in (self.found, other.found) if found is not None]
        return Told(
            self.dealt + other.dealt,
            reduce(add, both) if both else None,
            self.n_absent + other.n_absent,
            self.n_empty + other.n_empty,
            other.absent if self.absent is None else self.absent,
            {
                name: self.unknown.get(name, 0) + other.unknown.get(name, 0)
                for name in [*self.unknown, *(n for n in other.unknown if n not in self.unknown)]
            },
            {
                j: self.alike.get(j, True) and other.alike.get(j, True)
                for j in self.alike | other.alike
            },
            self.last if other.last is None else other.last,
        )


@dataclass(frozen=True)
class Deal:
    """Read some rows, look at their cells, and deal them into buckets.

    Attributes
    ----------
    path : str
        Where files are written.
    n_buckets : int
        How many buckets there are.
    rows : Unread
        What is read, without the files.
    view : View
        What errors name: the view, with its features and without rows.
    keep_empty, refuse, known : bool
        See `dealt`.
    """

    path: str
    n_buckets: int
    rows: Unread
    view: View
    keep_empty: bool
    refuse: bool
    known: bool

    def __call__(self, item: tuple[int, tuple[Run, ...], Ids | None]) -> Told:
        number, runs, given = item
        told, pieces = Told(), 0
        held: list[tuple[Array, ...]] = []
        size = 0
        for one, found in self._parts(runs, given):
            told += found
            if len(one[0]):
                held.append(one)
                size += one[1].nbytes
            if size >= PIECE:
                told.dealt.append(self._dealt(f"{number}-{pieces}", held))
                held, size, pieces = [], 0, pieces + 1
        if held:
            told.dealt.append(self._dealt(f"{number}-{pieces}", held))
        return told

    def _dealt(self, name: str, held: list[tuple[Array, ...]]) -> PartitionFiles:
        ids, rows, numbers = zip(*held, strict=True)
        path = f"{self.path}/{name}"
        return write_buckets(
            path, self.n_buckets, np.concatenate(ids), list(rows), np.concatenate(numbers)
        )

    def _parts(
        self, runs: Sequence[Run], given: Ids | None
    ) -> Iterator[tuple[tuple[Array, ...], Told]]:
        """Yield ids, rows and row numbers of a few rows at a time, and what they tell."""
        begin = runs[0].start
        for run in runs:
            table, batches = run.batches(self.rows.reader.ids, self.rows.reader.options)
            row = 0
            for found, block in batches:
                numbers = np.arange(run.start + row, run.start + row + len(block))
                ids: Ids = numbers
                if given is not None:
                    ids = given[numbers - begin]
                elif not self.rows.numbered:
                    ids = _plain_ids(found, run.file)
                yield self._looked_at(ids, block, numbers, table, run, run.row + row)
                row += len(block)

    def _looked_at(
        self, ids: Ids, block: Array, numbers: Array, table: Table, run: Run, first: int
    ) -> tuple[tuple[Array, ...], Told]:
        unknown: dict[str, int] = {}
        rows = self._features(block, table, unknown)
        one = replace(self.view, ids=ids, rows=Rows(rows), file=f"{run.file}")
        found = look_at(one, ignore_zeros=self.keep_empty, refuse=self.refuse, first=first)
        gone = np.append(found.absent, found.empty) if self.known else found.absent
        told = Told(
            found=replace(found, absent=found.absent[:0], empty=found.empty[:0]),
            n_absent=found.absent.size,
            n_empty=found.empty.size,
            absent=int(numbers[gone.min()]) if gone.size else None,
            unknown=unknown,
            alike={j: look_like_ids(rows[:, j]) for j in self.rows.suspects if len(rows) > 1},
            last=None if self.rows.numbered else ids[-1:].tolist()[0],
        )
        if gone.size:
            kept = np.ones(len(ids), bool)
            kept[gone] = False
            return (ids[kept], rows[kept], numbers[kept]), told
        return (ids, rows, numbers), told

    def _features(self, block: Array, table: Table, unknown: dict[str, int]) -> Array:
        """Return the features of some rows, in the order of the view."""
        rows, names = self.rows, table.features or ()
        if rows.known is not None:
            block, found = expand(block, names, table.codes, rows.known)
            unknown.update(found)
        elif names != rows.names:
            place = {name: j for j, name in enumerate(names)}
            block = block[:, [place[name] for name in rows.names]]
        block = block if rows.columns is None else block[:, rows.columns]
        return block.astype(rows.dtype, copy=False)


def _plain_ids(ids: Any, file: str) -> Ids:
    """Return ids as ints or texts; readers have refused those that are missing."""
    if ids.dtype != object or pd.api.types.infer_dtype(ids) == "string":
        return np.asarray(ids)
    return as_ids(ids, len(ids), file)


@dataclass(frozen=True)
class Unique:
    """Refuse an id that stands in two rows of a bucket, as it would in two rows of the view."""

    label: str
    partitions: Partitions

    def __call__(self, item: tuple[Any, Any]) -> int:
        ids, numbers = (part.open() for part in item)
        index = pd.Index(ids)
        if index.is_unique:
            return 0
        twice = index[index.duplicated()][0]
        at = np.sort(numbers[np.asarray(index == twice)])
        places = " and ".join(self.partitions.place(int(row)) for row in at[:2])
        raise ValueError(
            f"{self.label} has duplicate ids: {twice if isinstance(twice, str) else int(twice)!r} "
            f"stands in {places}. Keep one row per sample."
        )


def dealt(view: View, *, keep_empty: bool, refuse: bool, known: bool) -> tuple[View, Found]:
    """Read the rows of a view, look at them, and put them into buckets.

    Parameters
    ----------
    view : View
        A view whose rows are `Unread`.
    keep_empty : bool
        Whether rows of zeros are samples like any other.
    refuse : bool
        Whether a missing cell is an error.
    known : bool
        Whether all rows of zeros are absent samples, unless they are kept.

    Returns
    -------
    view : View
        Its ids and rows are in buckets; its cells are checked.
    found : Found
        What the cells tell; rows are not listed.
    """
    unread = view.rows
    path, owner = unread.engine.room()
    try:
        return _dealt(view, path, owner, keep_empty, refuse, known)
    except BaseException:  # an error keeps its frames, and whatever they hold
        remove(path)
        raise
    finally:
        if unread.owner is not None:
            unread.owner.cleanup()


def _dealt(
    view: View, path: str, owner: Any, keep_empty: bool, refuse: bool, known: bool
) -> tuple[View, Found]:
    unread: Unread = view.rows
    assert unread.engine is not None
    engine, label = unread.engine, called(view.name, view.file)
    sent = replace(unread, engine=None, runs=[], ids=None, owner=None)
    task = Deal(path, engine.n_buckets, sent, replace(view, rows=None), keep_empty, refuse, known)
    items = [
        (i, runs, None if unread.ids is None else unread.ids[_span(runs)])
        for i, runs in enumerate(unread.runs)
    ]
    told = reduce(add, engine.each(task, items))
    for j, like in told.alike.items():
        if like and view.features is not None:
            raise like_ids(view.features[j], label)
    if not told.dealt:
        zero = " other than zero" * bool(told.n_empty)
        raise ValueError(
            f"{label} is empty: none of its rows holds a value{zero}. Leave the view out."
        )
    tell_unknown(told.unknown, label)
    ids, rows, numbers = combine_partitions(told.dealt, engine, owner=owner)
    gone = told.n_absent + told.n_empty * known
    assert rows.n == unread.shape[0] - gone, "rows were lost"
    where = Partitions(unread.partitions, unread.starts, numbers, told.absent)
    if unread.ids is None and not unread.numbered:
        _check_unique(engine, ids, where, label)
        if unread.known is None or view.source is None:
            tell_of_totals(np.array(["", told.last], object), label)
    return _checked(view, ids, rows, where, told, known)


def _check_unique(engine: BucketEngine, ids: BucketRows, where: Partitions, label: str) -> None:
    assert where.numbers is not None
    task = Unique(label, replace(where, numbers=None))
    parts = zip(ids.parts, where.numbers.parts, strict=True)
    engine.each(task, [(own, at) for own, at in parts if own.n])


def _checked(
    view: View, ids: BucketRows, rows: BucketRows, where: Partitions, told: Told, known: bool
) -> tuple[View, Found]:
    """Return the view after rows of zeros were left out, if they are absent samples."""
    engine, found, n_empty = rows.engine, told.found, told.n_empty
    assert found is not None
    if not known and found.mean_absent(view.shape[0], told.n_absent, n_empty):
        kept = engine.map(_has_value, rows)
        ids, rows = engine.keep(ids, kept), engine.keep(rows, kept)
        if where.absent is None:
            zero = engine.keep(where.numbers, engine.map(np.logical_not, kept))
            where = replace(where, absent=_least(engine, zero))
        where = replace(where, numbers=engine.keep(where.numbers, kept))
    elif not known:
        n_empty = 0
    rows = replace(rows, double=found.large)
    gaps = Gaps.of(rows) if found.gaps else None
    made = replace(
        view,
        ids=ids,
        rows=replace(rows, fill=gaps),
        gaps=gaps,
        n_empty=n_empty,
        partitions=where,
        checked=True,
    )
    return made, found


def _has_value(block: Array) -> Array:
    return np.asarray((block != 0).any(axis=1))


def _least(engine: BucketEngine, numbers: BucketRows) -> int:
    def least(block: Array) -> int:
        return int(block.min()) if len(block) else np.iinfo(np.int64).max

    return int(engine.reduce(least, numbers, combine=min))


def _span(runs: Sequence[Run]) -> slice:
    return slice(runs[0].start, runs[-1].start + runs[-1].n)
