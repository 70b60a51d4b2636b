"""Views in Parquet files that workers read for themselves, and write into buckets of samples.

`open_partitions` looks at the columns of all files; `read_partitions` reads each row once, and
nobody holds more than a piece of the view. What holds for the view as a whole (rows of zeros, ids
that stand in two partitions) follows from the summaries of the workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold._util.file import ReadOptions, is_address
from viewfold._util.types import Array, Ids
from viewfold.data.arrays import Found, look_at
from viewfold.data.codes import tell_unknown
from viewfold.data.columnar import Run, facts_of, runs_of, same_columns
from viewfold.data.features import (
    check_no_twins,
    expand,
    known_options,
    learn_columns,
)
from viewfold.data.files import FileError, FileView
from viewfold.data.id_columns import check_no_text_ids, is_called_id, like_ids, look_like_ids
from viewfold.data.ids import as_ids
from viewfold.data.source import Table
from viewfold.data.view import Column, Gaps, Partitions, View, features_of, tell_columns, view_label
from viewfold.rows import BucketEngine, BucketRows, Rows
from viewfold.rows.bucket_files import PartitionFiles, combine_partitions, remove, write_buckets
from viewfold.rows.linalg import pick_columns

if TYPE_CHECKING:
    from viewfold.data.codes import Codes

LAST = np.iinfo(np.int64).max  # no row has this number
PIECE = 2**26  # bytes of rows that are written at once; a worker holds a few copies of each


@dataclass(frozen=True, eq=False)
class LazyRows:
    """Rows of a view that are still in files; `read_partitions` puts them into buckets."""

    engine: BucketEngine | None  # reads and holds them; workers need not know it
    id_column: str | None  # of the files
    options: ReadOptions
    runs: list[tuple[Run, ...]]  # what is read at once
    partitions: tuple[str, ...]  # how errors call the files
    starts: Array  # the number of the first row of each file, and of all rows
    names: tuple[str, ...]  # the columns of the files, in the order of the first
    known: tuple[Column, ...] | None  # what becomes of them; None if all of them are numbers
    width: int  # number of features
    dtype: np.dtype[Any]
    ids: Ids | None  # of all rows, if they are in no column
    numbered: bool  # whether samples are known by their row number
    suspects: tuple[int, ...] = ()  # features that are called as ids are
    owner: Any = None  # removes the files, if they are temporary
    columns: NDArray[np.intp] | None = None  # the order of the features; see `Rows`

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.starts[-1]), self.width


def open_partitions(
    X: FileView,
    ids: Any,
    name: str | None,
    options: ReadOptions,
    known: tuple[Column, ...] | None,
    engine: BucketEngine,
) -> View:
    """Return a view whose rows are `LazyRows`.

    Columns that are not numbers are read here, once more, to find their kinds and levels.
    """
    label, remembered = view_label(name, X.file or None), options.to_remember()
    facts, first = _survey(engine, X, options)
    starts, names = np.append(0, np.cumsum([one.n_rows for one in facts])), first.features or ()
    n = int(starts[-1])
    if not n:
        raise FileError(f"{label}: there are columns, but no rows. Leave the view out.")
    numbered = ids is False or (ids is None and X.id_column is None)
    given = None if numbered or ids is None or isinstance(ids, str) else as_ids(ids, n, label)
    most = max(1, PIECE // (len(names) * first.dtype.itemsize))
    runs = runs_of(X.files, facts, most, [is_address(file) for file in X.files])
    columns, unsaid = known, ids is None and numbered and not options.kinds
    if options.kinds and X.features is not None:
        there = options.known_names((*names, *first.dropped), label)
        tell_columns(options.kinds, there, label, strict=options.strict)
    elif known is None:
        coded = frozenset[str]().union(*(one.coded for one in facts))
        codes: dict[str, Codes] = {}
        if coded:
            of_coded = replace(options, columns=tuple(sorted(coded)), drop=())
            read = partial(_read_codes, id_column=X.id_column, options=of_coded)
            for more in engine.each(read, runs):
                _add_codes(codes, more)
        if unsaid:
            check_no_text_ids(codes, label)
        if codes or first.dropped:  # else all of them are numbers that are taken
            columns = learn_columns(names, codes, options, first.dropped, label)
    made = None if X.features is None else columns
    features = X.features and options.known_names(X.features, label)
    dtype = first.dtype
    if made is not None:
        features, dtype = features_of(made), np.dtype(np.float64)
        check_no_twins(features, label)
        options = known_options(made, remembered)
    suspects = [j for j, one in enumerate(features or ()) if is_called_id(one, first=j == 0)]
    rows = LazyRows(
        engine=engine,
        id_column=X.id_column,
        options=options,
        runs=runs,
        partitions=tuple(f"{file}" for file in X.files),
        starts=starts,
        names=names,
        known=made,
        width=len(names if features is None else features),
        dtype=dtype,
        ids=given,
        numbered=numbered,
        suspects=tuple(suspects) if unsaid else (),
        owner=X.owner,
    )
    length = n if numbered else None
    unknown = np.empty(0, object)  # who the samples are is found out with their rows
    view = View(unknown, rows, name, features, length, X.file or None)
    return replace(view, columns=columns, source=remembered)


def _survey(engine: BucketEngine, X: FileView, options: ReadOptions) -> tuple[list[Table], Table]:
    """Return what is known of all files, and of the first with rows: others have to be alike."""
    task = partial(facts_of, ids=X.id_column, options=options)
    facts: list[Table] = engine.each(task, X.files)
    at = next((i for i, one in enumerate(facts) if not one.is_empty), 0)
    for file, one in zip(X.files, facts, strict=True):
        same_columns(one, facts[at], file, X.files[at])
        if not one.is_empty and one.id_kind not in ("", "texts", "whole numbers"):
            raise FileError(
                f"{file}: the ids are {one.id_kind}. Ids are ints or strings; convert them, and "
                "drop rows without an id."
            )
    return facts, facts[at]


def _read_codes(
    runs: tuple[Run, ...], id_column: str | None, options: ReadOptions
) -> dict[str, Codes]:
    """Read columns that are not numbers; return what they hold."""
    found: dict[str, Codes] = {}
    for run in runs:
        table, batches = run.batches(id_column, options)
        for _ in batches:
            pass
        _add_codes(found, table.codes)
    return found


def _add_codes(found: dict[str, Codes], more: Mapping[str, Codes]) -> None:
    for name, codes in more.items():
        found[name] = found[name].joined(codes) if name in found else codes


@dataclass
class PartitionSummary:
    """Summary of some partitions, in row order."""

    files: list[PartitionFiles] = field(default_factory=list)  # where their rows are
    found: Found | None = None  # what their cells tell; rows are not listed, but counted
    n_absent: int = 0  # rows of NaN
    n_empty: int = 0  # rows of zeros
    absent: int | None = None  # the number of the first row that was left out
    unknown: dict[str, int] = field(default_factory=dict)  # cells with an unknown level, by column
    # For each feature that is called like ids, whether it looks like them everywhere.
    alike: dict[int, bool] = field(default_factory=dict)

    def __add__(self, other: PartitionSummary) -> PartitionSummary:
        both = [found for found in (self.found, other.found) if found is not None]
        unknown = Counter(self.unknown)
        unknown.update(other.unknown)
        one, two = self.alike, other.alike
        return PartitionSummary(
            self.files + other.files,
            reduce(add, both) if both else None,
            self.n_absent + other.n_absent,
            self.n_empty + other.n_empty,
            other.absent if self.absent is None else self.absent,
            unknown,
            {j: one.get(j, True) and two.get(j, True) for j in one | two},
        )


@dataclass(frozen=True)
class BucketWriter:
    """Read some rows, look at their cells, and write them into buckets."""

    path: str  # where files are written
    n_buckets: int
    rows: LazyRows  # what is read, without the files
    view: View  # what errors name: the view, with its features and without rows
    keep_empty: bool
    refuse: bool
    known: bool

    def __call__(self, item: tuple[int, tuple[Run, ...], Ids | None]) -> PartitionSummary:
        number, runs, given = item
        summary, pieces = PartitionSummary(), 0
        held: list[tuple[Array, ...]] = []
        size = 0
        for one, more in self._batches(runs, given):
            summary += more
            if len(one[0]):
                held.append(one)
                size += one[1].nbytes
            if size >= PIECE:
                summary.files.append(self._write(f"{number}-{pieces}", held))
                held, size, pieces = [], 0, pieces + 1
        if held:
            summary.files.append(self._write(f"{number}-{pieces}", held))
        return summary

    def _write(self, name: str, held: list[tuple[Array, ...]]) -> PartitionFiles:
        ids, rows, numbers = zip(*held, strict=True)
        path = f"{self.path}/{name}"
        return write_buckets(
            path, self.n_buckets, np.concatenate(ids), list(rows), np.concatenate(numbers)
        )

    def _batches(
        self, runs: Sequence[Run], given: Ids | None
    ) -> Iterator[tuple[tuple[Array, ...], PartitionSummary]]:
        """Yield ids, rows and row numbers of a few rows at a time, and a summary of them."""
        begin = runs[0].start
        for run in runs:
            table, batches = run.batches(self.rows.id_column, self.rows.options)
            row = 0
            for found, block in batches:
                numbers = np.arange(run.start + row, run.start + row + len(block))
                ids: Ids = numbers
                if given is not None:
                    ids = given[numbers - begin]
                elif not self.rows.numbered:
                    assert found is not None  # readers have refused those that are missing
                    plain = found.dtype != object or pd.api.types.infer_dtype(found) == "string"
                    ids = np.asarray(found) if plain else as_ids(found, len(found), run.file)
                yield self._look_at(ids, block, numbers, table, run, run.row + row)
                row += len(block)

    def _look_at(
        self, ids: Ids, block: Array, numbers: Array, table: Table, run: Run, first: int
    ) -> tuple[tuple[Array, ...], PartitionSummary]:
        unknown: dict[str, int] = {}
        rows = self._features(block, table, unknown)
        one = replace(self.view, ids=ids, rows=Rows(rows), file=f"{run.file}")
        found = look_at(one, ignore_zeros=self.keep_empty, refuse=self.refuse, first=first)
        gone = np.append(found.absent, found.empty) if self.known else found.absent
        summary = PartitionSummary(
            found=replace(found, absent=found.absent[:0], empty=found.empty[:0]),
            n_absent=found.absent.size,
            n_empty=found.empty.size,
            absent=int(numbers[gone.min()]) if gone.size else None,
            unknown=unknown,
            alike={j: look_like_ids(rows[:, j]) for j in self.rows.suspects if len(rows) > 1},
        )
        if gone.size:
            kept = np.ones(len(ids), bool)
            kept[gone] = False
            return (ids[kept], rows[kept], numbers[kept]), summary
        return (ids, rows, numbers), summary

    def _features(self, block: Array, table: Table, unknown: dict[str, int]) -> Array:
        """Return the features of some rows, in the order of the view."""
        rows, names = self.rows, table.features or ()
        if rows.known is not None:
            known = partial(rows.options.known_names, label="")
            codes = dict(zip(known(table.codes), table.codes.values(), strict=True))
            block, found = expand(block, known(names), codes, rows.known)
            unknown.update(found)
        elif names != rows.names:
            place = {name: j for j, name in enumerate(names)}
            block = block[:, [place[name] for name in rows.names]]
        block = block if rows.columns is None else pick_columns(block, rows.columns)
        return block.astype(rows.dtype, copy=False)


def read_partitions(
    view: View, *, keep_empty: bool, refuse: bool, known: bool
) -> tuple[View, Found]:
    """Read the `LazyRows` of a view, look at their cells, and put them into buckets.

    `keep_empty` keeps rows of zeros as samples, `refuse` makes a missing cell an error, and `known`
    takes all rows of zeros that are not kept for absent samples. The cells of the view that is
    returned are checked; rows are not listed in what was found.
    """
    lazy: LazyRows = view.rows
    engine, label = lazy.engine, view_label(view.name, view.file)
    assert engine is not None
    path, owner = engine.room()
    sent = replace(lazy, engine=None, runs=[], ids=None, owner=None)
    bare = replace(view, rows=None)
    task = BucketWriter(path, engine.n_buckets, sent, bare, keep_empty, refuse, known)
    items = []
    for i, runs in enumerate(lazy.runs):
        span = slice(runs[0].start, runs[-1].start + runs[-1].n)
        items.append((i, runs, None if lazy.ids is None else lazy.ids[span]))
    try:
        summary = reduce(add, engine.each(task, items))
        for j, like in summary.alike.items():
            if like and view.features is not None:
                raise like_ids(view.features[j], label)
        if not summary.files:
            zero = " other than zero" * bool(summary.n_empty)
            raise ValueError(
                f"{label} is empty: none of its rows holds a value{zero}. Leave the view out."
            )
        tell_unknown(summary.unknown, label)
        ids, rows, numbers = combine_partitions(summary.files, engine, owner=owner)
        gone = summary.n_absent + summary.n_empty * known
        assert rows.n == lazy.shape[0] - gone, "rows were lost"
        where = Partitions(lazy.partitions, lazy.starts, numbers, summary.absent)
        if lazy.ids is None and not lazy.numbered:
            check = partial(_check_unique, label=label, where=replace(where, numbers=None))
            parts = zip(ids.parts, numbers.parts, strict=True)
            engine.each(check, [(own, at) for own, at in parts if own.n])
        return _without_absent(view, ids, rows, where, summary, known)
    except BaseException:  # an error keeps its frames, and whatever they hold
        remove(path)
        raise
    finally:
        if lazy.owner is not None:
            lazy.owner.cleanup()


def _check_unique(item: tuple[Any, Any], label: str, where: Partitions) -> int:
    """Refuse an id that stands in two rows of a bucket, as it would in two rows of the view."""
    ids, numbers = (part.open() for part in item)
    index = pd.Index(ids)
    if index.is_unique:
        return 0
    twice = index[index.duplicated()][0]
    at = np.sort(numbers[np.asarray(index == twice)])
    places = " and ".join(where.place(int(row)) for row in at[:2])
    raise ValueError(
        f"{label} has duplicate ids: {twice if isinstance(twice, str) else int(twice)!r} "
        f"stands in {places}. Keep one row per sample."
    )


def _without_absent(
    view: View,
    ids: BucketRows,
    rows: BucketRows,
    where: Partitions,
    summary: PartitionSummary,
    known: bool,
) -> tuple[View, Found]:
    """Return the view without rows of zeros, if they are absent samples."""
    engine, found, n_empty = rows.engine, summary.found, summary.n_empty
    assert found is not None
    if not known and found.mean_absent(view.shape[0], summary.n_absent, n_empty):
        kept = engine.map(lambda block: np.asarray((block != 0).any(axis=1)), rows)
        ids, rows = engine.keep(ids, kept), engine.keep(rows, kept)
        if where.absent is None:
            zero = engine.keep(where.numbers, engine.map(np.logical_not, kept))
            least = engine.reduce(lambda block: block.min(initial=LAST), zero, combine=min)
            where = replace(where, absent=int(least))
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
        n_absent=int(where.starts[-1]) - rows.shape[0],
        partitions=where,
        checked=True,
    )
    return made, found
