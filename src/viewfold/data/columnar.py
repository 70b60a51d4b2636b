"""Parquet, read by DuckDB in batches with bounded memory.

Files of one view have the same columns, whatever their order. A large file is read by its row
groups, and small ones several at a time, so that whoever reads holds a bounded number of rows.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold._util.file import ReadOptions, is_address
from viewfold._util.messages import format_names, with_suggestion
from viewfold._util.types import Array
from viewfold._util.watch import Tally
from viewfold.data.arrays import Batches, Spool
from viewfold.data.codes import Cells, Codes, codes_of
from viewfold.data.fetch import fetched, with_end_only
from viewfold.data.guard import Budget, shown
from viewfold.data.source import (
    Batch,
    FileError,
    Table,
    as_object,
    batch_rows,
    check_names,
    check_numbers,
    check_present,
    no_id,
    reading,
    without,
)

_VECTOR = 2048  # rows that DuckDB reads at once
_SECTION_BYTES = 64 * 2**20
_PER_FEATURE = 1000  # bytes: its name, here and in what is made of the view
_INTEGER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
_NUMBER = re.compile(rf'{_INTEGER.pattern}|FLOAT|DOUBLE|BOOLEAN|DECIMAL.*|"NULL"')
_TEXT = re.compile(r"VARCHAR|JSON")
_DATE = re.compile(r"DATE|TIMESTAMP.*")


@dataclass(frozen=True)
class _Column:
    """A column of a Parquet file."""

    name: str
    number: int  # DuckDB takes names in capital and small letters for the same: not so numbers
    kind: str  # as DuckDB calls it
    declared: bool = False  # the file says that it is a category

    @property
    def is_number(self) -> bool:
        return not self.declared and _NUMBER.fullmatch(self.kind) is not None

    @property
    def is_list(self) -> bool:
        return self.kind.endswith("[]") and _NUMBER.fullmatch(self.kind[:-2]) is not None

    def sql(self, codes: Codes | None, dtype: np.dtype[Any]) -> str:
        """Return what is read of the column: numbers, lists, microseconds since 1970 or texts."""
        here, single = f"#{self.number}", dtype == np.float32
        number = "FLOAT" if single else "DOUBLE"
        if self.is_list:
            return f"CAST({here} AS {number}[])"
        if codes is None and self.kind.startswith("DECIMAL"):
            return f"CAST(CAST({here} AS VARCHAR) AS {number})"  # else the last bit may be wrong
        if codes is None or re.fullmatch('FLOAT|DOUBLE|"NULL"', self.kind):
            return f"CAST({here} AS {number})"
        if self.is_date(codes):
            moment = f"epoch_us({here})"
            if self.kind == "TIMESTAMP_NS":  # which DuckDB would round
                moment = f"epoch_ns({here}) // 1000"
            return f"CAST({moment} AS DOUBLE)"
        if self.kind == "BOOLEAN":
            return f"CASE {here} WHEN true THEN 'True' WHEN false THEN 'False' END"
        return f"CAST({here} AS VARCHAR)"

    def is_date(self, codes: Codes) -> bool:
        """Whether cells are taken as dates: a category of dates is one of texts."""
        asked = codes.kind == "date" or (codes.kind is None and not self.declared)
        return asked and _DATE.fullmatch(self.kind) is not None


def open_parquet(
    file: str,
    ids: str | None,
    options: ReadOptions,
    groups: Sequence[int] | None = None,
    row: int = 0,
) -> Table:
    """Look at the columns of a Parquet file, of which some row groups are read, or all.

    `row` is the number of their first row.
    """
    with reading(file, "Parquet"):
        footer = _footer(file)
        there, sizes = footer.columns, footer.sizes
        if min([footer.n_rows, *sizes]) < 0 or footer.n_rows != sum(sizes):
            raise FileError(f"{file}: says that it has {footer.n_rows:,} rows. Is the file whole?")
        if not there:
            raise FileError(f"{file}: there are no columns. Leave the view out.")
        names = [column.name for column in there]
        check_names(file, names, ids)
        if ids is None:
            _refuse_index(file, footer.notes, names)
        wanted = set(options.wanted([name for name in names if name != ids], file, FileError))
        taken = [column for column in there if column.name in wanted]
        columns = [column for column in there if column.name == ids or column.name in wanted]
        coded = [
            column
            for column in taken
            if options.is_coded(column.name) or not (column.is_number or column.is_list)
        ]
        known = (_NUMBER, _TEXT, _DATE)
        others = {
            one.name: one.kind for one in coded if not any(k.fullmatch(one.kind) for k in known)
        }
        check_numbers(file, others, ids)
        if groups is None:  # else somebody has had a look already
            _check_size(file, footer, columns)
        widths = _widths(file, [column for column in taken if column.is_list])
        codes = codes_of([column.name for column in coded], file, options)
        kinds = {column.kind.removesuffix("[]") for column in taken} - {'"NULL"'}
        dtype = np.dtype(np.float32 if kinds == {"FLOAT"} and not codes else np.float64)
        table = _Parquet(file, tuple(taken), widths, dtype, codes, ids, sizes)
        if widths and groups is None:
            size = 8 * sum(sizes) * table.width(taken)
            Budget(file).spool(size, f"{table.width(taken):,} features")
        features = list[str]()
        for column in taken:  # a list has a feature for each of its numbers
            parts = [f"{column.name}_{j}" for j in range(widths.get(column.name, 0))]
            features += parts or [column.name]
        check_names(file, features, None)
    kind = "" if ids is None else there[names.index(ids)].kind
    if _TEXT.fullmatch(kind) or _INTEGER.fullmatch(kind):
        kind = "texts" if _TEXT.fullmatch(kind) else "whole numbers"
    return Table(
        Batches(partial(table.batches, columns, groups, row)),
        features=tuple(features),
        codes=codes,
        dropped=without(names, (*wanted, ids)),
        dtype=dtype,
        sizes=sizes,
        id_kind=kind,
        nothing=frozenset(column.name for column in taken if column.kind == '"NULL"'),
    )


@dataclass(frozen=True)
class _Footer:
    """What a file says of itself, at its end."""

    columns: tuple[_Column, ...]  # those of a struct or list are part of it
    notes: dict[str, str]  # of programs
    n_rows: int
    # Of each row group: rows, bytes of the largest column, numbers, and bytes of all columns.
    groups: tuple[tuple[int, int | None, int | None, int], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(rows for rows, *_ in self.groups)


def _footer(file: str) -> _Footer:
    found = os.stat(file)
    return _read_footer(file, (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns))


@lru_cache(4)
def _read_footer(file: str, _: tuple[int, ...]) -> _Footer:
    asked = "SELECT decode(key), value FROM parquet_kv_metadata(?)"
    notes = {key: bytes(value).decode("utf-8", "replace") for key, value in _ask(file, asked)}
    said, columns, waiting = _pandas_types(notes), list[_Column](), 0
    for name, children, kind in _ask(
        file, "SELECT name, coalesce(num_children, 0), duckdb_type FROM parquet_schema(?) OFFSET 1"
    ):
        if not waiting:
            noted = said.get(name, "")
            kind = "DURATION" if "timedelta" in noted else kind  # Parquet has none
            columns.append(_Column(name, len(columns) + 1, kind, "categorical" in noted))
        waiting = max(waiting - 1, 0) + children
    ((total,),) = _ask(file, "SELECT num_rows FROM parquet_file_metadata(?)")
    asked = """SELECT any_value(row_group_num_rows), max(total_uncompressed_size),
                      sum(num_values) FILTER (WHERE type <> 'BYTE_ARRAY'),
                      sum(total_uncompressed_size)
               FROM parquet_metadata(?) GROUP BY row_group_id ORDER BY row_group_id"""
    return _Footer(tuple(columns), notes, int(total), tuple(_ask(file, asked)))


def _pandas_notes(notes: dict[str, str], key: str) -> list[Any]:
    try:
        return list(json.loads(notes["pandas"])[key])
    except (KeyError, TypeError, ValueError):
        return []


def _pandas_types(notes: dict[str, str]) -> dict[str, str]:
    """Return the types that pandas noted of columns."""
    columns = [one for one in _pandas_notes(notes, "columns") if isinstance(one, dict)]
    return {
        str(one.get("name")): f"{one.get('pandas_type')} {one.get('numpy_type')}" for one in columns
    }


def _refuse_index(file: str, notes: dict[str, str], names: Sequence[str]) -> None:
    """Refuse a column that pandas wrote for an index that somebody had set."""
    for index in _pandas_notes(notes, "index_columns"):
        if isinstance(index, str) and index in names:
            said = (
                f"{file}: column {index!r} is an index that pandas wrote. Say ids={index!r} if it "
                "holds the ids, or write the file without it."
            )
            raise with_suggestion(FileError(said), ids=index)


def _check_size(file: str, footer: _Footer, columns: list[_Column]) -> None:
    """Refuse a file that would take too much, as far as it says so."""
    n, d = footer.n_rows, len(footer.columns)
    Budget(file).spool(8 * n * d, f"{n:,} rows × {d:,} columns")
    # A page is unpacked as a whole, and it may be all that a column has in the group. Lists of any
    # length fit few bytes if their numbers are equal.
    many = 0
    for _, size, values, _ in footer.groups:
        Budget(file).hold(size or 0, "a column")
        many += values or 0
    Budget(file).spool(8 * many, f"{many:,} numbers")
    # A text that stands in many rows is in the file once, whatever its length. DuckDB measures
    # texts without writing them out.
    texts = [column for column in columns if _TEXT.fullmatch(column.kind)]
    if not texts or not n:
        return
    parts = [f"max(strlen(#{text.number})), sum(strlen(#{text.number}))" for text in texts]
    try:
        (found,) = _ask(file, f"SELECT {', '.join(parts)} FROM {_ROWS}")
    except duckdb.Error:
        return  # only the end of the file is there, or it is damaged, which who reads it is told
    step, budget = max(_VECTOR, batch_rows(len(columns))), Budget(file)
    for text, longest, total in zip(texts, found[::2], found[1::2], strict=True):
        taken = min(min(step, n) * (longest or 0), int(total or 0))
        budget.hold(taken, f"the texts of column {text.name!r} (and others)")


def _widths(file: str, lists: list[_Column]) -> dict[str, int]:
    """Return how many numbers the lists of each column of lists have: as many as the first."""
    found = {}
    for column in lists:
        asked = f"SELECT len(#{column.number}) AS n FROM {_ROWS}"
        asked = f"SELECT n FROM ({asked}) WHERE n IS NOT NULL LIMIT 1"
        width = next((n for (n,) in _ask(file, asked)), 0)
        if not width:
            raise FileError(
                f"{file}: column {column.name!r} holds no numbers, but empty lists. Drop it."
            )
        Budget(file).hold(_PER_FEATURE * width, f"{width:,} features of column {column.name!r}")
        found[column.name] = width
    return found


# -- rows


@dataclass(frozen=True)
class _Parquet:
    """A file whose columns are known."""

    file: str
    columns: tuple[_Column, ...]
    widths: dict[str, int]
    dtype: np.dtype[Any]
    codes: dict[str, Codes]
    ids: str | None
    sizes: tuple[int, ...]

    def width(self, columns: Sequence[_Column]) -> int:
        """Return the number of features of some columns."""
        return sum(self.widths.get(c.name, 1) for c in columns if c.name != self.ids)

    def batches(
        self, columns: list[_Column], groups: Sequence[int] | None, row: int, spool: Spool
    ) -> Iterator[Batch]:
        """Yield ids and rows of some row groups that follow each other, or of all."""
        chosen = range(len(self.sizes)) if groups is None else groups
        n, width = sum(self.sizes[group] for group in chosen), self.width(self.columns)
        where = "" if groups is None else f"WHERE file_row_number BETWEEN {row} AND {row + n - 1}"
        tally = Tally(n * len(columns))
        with reading(self.file, "Parquet"):
            sections = self._sections(columns)
            if len(sections) == 1:
                yield from self._read(columns, where, row, n, tally)
                return
            # Who reads rows keeps a page of every column in memory, which may be all there is in
            # the group: by columns into the spool, by rows from it.
            start, at, known = spool.reserve(n, width, self.dtype), 0, list[Array | None]()
            for section in sections:
                done = start
                for ids, block in self._read(section, where, row, n, tally):
                    spool.put(done, at, block)
                    known += [] if ids is None else [ids]
                    done += len(block)
                at += self.width(section)
            at, step = start, batch_rows(width)
            for ids in known or [None] * -(-n // step):
                size = min(step, start + n - at) if ids is None else len(ids)
                yield ids, spool.rows(at, size)
                at += size

    def _sections(self, columns: list[_Column]) -> list[list[_Column]]:
        """Divide the columns, so that each part needs little memory."""
        most = max((size for *_, size in _footer(self.file).groups), default=0)
        # A group that has little is read as a whole, with a vector of each column.
        size = max(most, 8 * _VECTOR * self.width(self.columns))
        parts = min(len(columns), max(1, -(-size // _SECTION_BYTES)))
        step = -(-len(columns) // parts)
        return [columns[start : start + step] for start in range(0, len(columns), step)]

    def _read(
        self, columns: list[_Column], where: str, row: int, n: int, tally: Tally
    ) -> Iterator[Batch]:
        parts = [
            f"#{column.number} AS c{column.number}"
            if column.name == self.ids
            else f"{column.sql(self.codes.get(column.name), self.dtype)} AS c{column.number}"
            for column in columns
        ]
        at, cursor = 0, _cursor(self.file, f"SELECT {', '.join(parts)} FROM {_ROWS} {where}")
        step = batch_rows(self.width(columns) or 1)
        while at <= n:
            with _limited(self.file):
                frame = cursor.fetch_df_chunk(max(1, step // _VECTOR))
            if frame.empty:
                break
            for start in range(0, len(frame), step):
                yield self._batch(frame[start : start + step], columns, row + at + start)
            at += len(frame)
            tally.add(len(frame) * len(columns))
        if at != n:
            raise FileError(f"{self.file}: {at:,} rows where it says {n:,}. Is it whole?")

    def _batch(self, frame: pd.DataFrame, columns: list[_Column], row: int) -> Batch:
        rows, at, ids = np.empty((len(frame), self.width(columns)), self.dtype), 0, None
        for column in columns:
            values = frame[f"c{column.number}"]
            if column.name == self.ids:
                ids = self._ids(column, values, row)
                continue
            end = at + self.widths.get(column.name, 1)
            codes = self.codes.get(column.name)
            if column.name in self.widths:
                self._put_lists(column, values, row, rows[:, at:end])
            elif codes is None:
                rows[:, at] = values.to_numpy()
            elif column.kind == '"NULL"':
                rows[:, at] = np.nan
            elif column.is_date(codes):
                rows[:, at] = codes(Cells.of_moments(values.to_numpy()))
            else:
                rows[:, at] = codes(Cells.of(values.to_list(), declared=column.declared))
            at = end
        return ids, rows

    def _put_lists(self, column: _Column, values: pd.Series, row: int, rows: Array) -> None:
        """Write lists of numbers as rows; a list that is missing is a row of NaN."""
        for at, held in enumerate(values):
            if not isinstance(held, np.ndarray):
                rows[at] = np.nan
            elif len(held) != rows.shape[1]:
                raise FileError(
                    f"{self.file}, row {row + at}, column {column.name!r}: a list of {len(held)} "
                    f"numbers, others have {rows.shape[1]}. Lists of one column need one length."
                )
            else:
                rows[at] = np.ma.filled(held, np.nan)

    def _ids(self, column: _Column, values: pd.Series, row: int) -> Array:
        if values.isna().any():
            raise no_id(self.file, f"row {row + int(values.isna().to_numpy().argmax())}", None)
        if _INTEGER.fullmatch(column.kind):
            if int(values.max()) >= 2**63:
                raise FileError(
                    f"{self.file}: the id {values.max()} has more than 63 bits. Write such ids as "
                    "texts."
                )
            return np.asarray(values.to_numpy(np.int64))
        if _TEXT.fullmatch(column.kind):
            check_present(self.file, values.to_list(), lambda at: f"row {row + at}")
        return as_object(values.to_list())


# -- DuckDB

_ROWS = "read_parquet(?, hive_partitioning = false)"


@cache
def _duckdb() -> Any:
    return duckdb.connect(config={"threads": 1})


def _cursor(file: str, asked: str) -> Any:
    """Return the answer to a question about a file."""
    escaped = re.sub(r"([*?[])", r"[\1]", file)
    with _limited(file):
        cursor = _duckdb().cursor()
        cursor.execute(f"SET memory_limit = '{Budget(file).limit}B'")
        return cursor.execute(asked, [escaped])


def _ask(file: str, asked: str) -> list[Any]:
    with _limited(file):
        return list(_cursor(file, asked).fetchall())


@contextmanager
def _limited(file: str) -> Iterator[None]:
    """Say what is wrong where a file needs more memory than DuckDB may take for it."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise FileError(
            f"{file}: its texts would take more than {shown(Budget(file).limit)} of memory. Is the "
            "file what it should be? If it is, leave long texts out, or allow more with "
            "VIEWFOLD_MEMORY."
        ) from error


def n_rows(file: str) -> int:
    """Return how many rows a Parquet file has."""
    return _footer(fetched(file)).n_rows


# -- several files


def facts_of(file: str, ids: str | None, options: ReadOptions) -> Table:
    """Look at the columns of a Parquet file; of one elsewhere, no rows are fetched for that."""
    if not is_address(file):
        return open_parquet(file, ids, options)
    place = with_end_only(file)
    with reading(place, "Parquet"):
        lists = [one for one in _footer(place).columns if one.is_list and one.name != ids]
    # The first list tells how long they are.
    return open_parquet(fetched(file) if lists else place, ids, options)


def same_columns(facts: Table, first: Table, file: str, first_file: str) -> NDArray[np.intp] | None:
    """Refuse a file with other columns than the first; return their order, if it is another."""
    why = _difference(facts, first)
    if why:
        raise FileError(
            f"{file}: other columns, or columns of other types, than {first_file}: {why}. Files "
            "that are one view need the same columns."
        )
    if facts.features is None or first.features is None or facts.features == first.features:
        return None
    place = {name: j for j, name in enumerate(facts.features)}
    return np.array([place[name] for name in first.features], np.intp)


def _difference(facts: Table, first: Table) -> str:
    mine, theirs = facts.features, first.features
    if mine is None or theirs is None:
        return "" if mine == theirs else "only one of them has names"
    lacking, more = without(theirs, mine), without(mine, theirs)
    if lacking or more:
        found = [f"it has no {format_names(lacking, 5)}"] * bool(lacking)
        return " and ".join([*found, *[f"it has {format_names(more, 5)}"] * bool(more)])
    if facts.is_empty or first.is_empty:
        return ""
    unsure = facts.nothing | first.nothing
    other = sorted((facts.coded ^ first.coded) - unsure)
    if other:
        here, there = ("texts or dates", "numbers")[:: 1 if other[0] in facts.coded else -1]
        return f"column {other[0]!r} holds {here}, that of the other {there}"
    if facts.id_kind != first.id_kind:
        return f"its ids are {facts.id_kind}, those there are {first.id_kind}"
    if facts.dtype != first.dtype and not first.coded:
        return f"its numbers are {facts.dtype}, those there are {first.dtype}"
    return ""


@dataclass(frozen=True)
class Run:
    """Row groups of a file that follow each other."""

    file: str
    groups: tuple[int, ...]
    row: int  # the number of their first row in the file
    start: int  # and in the view
    n: int  # how many rows they have

    def batches(self, ids: str | None, options: ReadOptions) -> tuple[Table, Iterator[Batch]]:
        """Open the file; return its columns, and ids and rows of these groups."""
        table = open_parquet(fetched(self.file), ids, options, self.groups, self.row)

        def whole() -> Iterator[Batch]:
            n = 0
            for known, block in table.rows:
                yield known, block
                n += len(block)
            if n != self.n:
                raise FileError(f"{self.file}: {n:,} rows where it had {self.n:,}. Was it changed?")

        return table, whole()


def runs_of(
    files: Sequence[str], facts: Sequence[Table], most: int, whole: Sequence[bool]
) -> list[tuple[Run, ...]]:
    """Return what is read at once: row groups with at most so many rows, or a single one.

    `whole` says for each file whether it is read as a whole: it is copied before it is read.
    """
    found: list[list[Run]] = []
    held, start = most, 0
    for file, of_file, at_once in zip(files, facts, whole, strict=True):
        row, groups = 0, list(enumerate(of_file.sizes or ()))
        for together in [groups] if at_once else [[one] for one in groups]:
            n = sum(size for _, size in together)
            if not n:
                continue
            if held + n > most:
                found.append([])
                held = 0
            run = Run(file, tuple(i for i, _ in together), row, start, n)
            last = found[-1][-1] if found[-1] else None
            if last is not None and last.file == file:
                run = Run(file, last.groups + run.groups, last.row, last.start, last.n + n)
                found[-1].pop()
            found[-1].append(run)
            held, row, start = held + n, row + n, start + n
    return [tuple(together) for together in found]
