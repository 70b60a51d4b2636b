"""Parquet and Arrow (Feather): typed columns, read in batches with bounded memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from viewfold._util.file import ReadOptions
from viewfold._util.types import Array
from viewfold._util.watch import Tally
from viewfold.data._arrow import MAGIC, unpacked_sizes
from viewfold.data._arrow_tables import (
    arrow_batch,
    arrow_columns,
    arrow_dtype,
    arrow_features,
    first_length,
    kind_of_ids,
    list_columns,
    text_columns,
)
from viewfold.data._budget import Budget, shown
from viewfold.data._spool import Spool
from viewfold.data._tables import Table, batch_rows, without
from viewfold.data.codes import Codes
from viewfold.data.source import Batch, FileError, reading

_SECTION_BYTES = 64 * 2**20
_PER_FEATURE = 1000  # bytes: its name, here and in what is made of the view


def open_table(
    file: str,
    ids: str | None,
    options: ReadOptions,
    groups: Sequence[int] | None = None,
    row: int = 0,
) -> Table:
    """Look at the columns of a file.

    Parameters
    ----------
    file : str
        Its path.
    ids : str or None
        The column that holds the ids.
    options : ReadOptions
        How to read it.
    groups : sequence of int, optional
        The row groups of a Parquet file to read; all of them if not given.
    row : int, default=0
        The number of their first row, for errors.
    """
    parquet = file.lower().endswith((".parquet", ".pq"))
    what = "Parquet" if parquet else "Arrow or Feather"
    with reading(file, what):
        schema, sizes = (
            _parquet_schema(file, groups is None) if parquet else (_arrow_schema(file), None)
        )
        if not schema.names:
            raise FileError(f"{file}: there are no columns. Leave the view out.")
        widths = _widths(file, schema, ids, parquet)
        taken, codes = arrow_columns(file, schema, ids, widths, options)
        features = arrow_features(file, taken, widths)
        dtype = arrow_dtype(schema, taken, codes)
        if parquet and widths:
            Budget(file).spool(8 * sum(sizes or ()) * len(features), f"{len(features):,} features")

    columns = _Columns(file, taken, widths, dtype, ids, codes)

    def batches(spool: Spool) -> Iterator[Batch]:
        with reading(file, what):
            if parquet:
                yield from _parquet(columns, spool, groups, row)
            else:
                yield from columns.batches(_arrow(file, columns.width))

    dropped = without(schema.names, (*taken, ids))
    return Table(
        features,
        dtype,
        batches,
        codes,
        dropped,
        sizes=sizes,
        id_kind="" if ids is None else kind_of_ids(schema.field(ids).type),
        nothing=frozenset(n for n in taken if pa.types.is_null(schema.field(n).type)),
    )


@dataclass(frozen=True)
class _Columns:
    """How record batches become ids and rows."""

    file: str
    names: tuple[str, ...]
    widths: dict[str, int]
    dtype: np.dtype[Any]
    ids: str | None
    codes: dict[str, Codes]

    def read(self, there: Sequence[str]) -> list[str]:
        """Return those of some columns that are read."""
        taken = {*self.names, self.ids}
        return [name for name in there if name in taken]

    @property
    def width(self) -> int:
        """The number of features."""
        return self.width_of(self.names)

    def width_of(self, names: Sequence[str]) -> int:
        """Return the number of features of some columns."""
        return sum(self.widths.get(name, 1) for name in names if name != self.ids)

    def batches(
        self, parts: Iterator[Any], names: Sequence[str] | None = None, row: int = 0
    ) -> Iterator[Batch]:
        """Yield ids and rows of each part; names are those of its columns, if it has not all."""
        chosen, ids = self.names, self.ids
        if names is not None:
            chosen = tuple(name for name in names if name != ids)
            ids = ids if ids in names else None
        for part in parts:
            # Compiled code trusts offsets, and a damaged file may hold any.
            part.validate(full=True)
            yield arrow_batch(
                self.file, part, chosen, self.dtype, ids, row, self.codes, self.widths
            )
            row += part.num_rows


def _widths(file: str, schema: pa.Schema, ids: str | None, parquet: bool) -> dict[str, int]:
    """Return how many numbers the lists of each column of lists have: as many as the first."""
    found = list_columns(schema, ids)
    if not found:
        return {}
    for name in [name for name, width in found.items() if width is None]:
        parts = _parquet_parts(file, name) if parquet else _arrow(file, 1)
        for part in parts:
            part.validate(full=True)
            found[name] = first_length(part.column(part.schema.get_field_index(name)))
            if found[name] is not None:
                break
    for name, width in found.items():
        if not width:
            raise FileError(f"{file}: column {name!r} holds no numbers, but empty lists. Drop it.")
        Budget(file).hold(_PER_FEATURE * width, f"{width:,} features of column {name!r}")
    return {name: int(width or 0) for name, width in found.items()}


def _parquet_parts(file: str, name: str) -> Iterator[Any]:
    with pyarrow.parquet.ParquetFile(file, pre_buffer=False, buffer_size=2**16) as opened:
        yield from opened.iter_batches(batch_size=64, columns=[name])


def _parquet_schema(file: str, look: bool) -> tuple[pa.Schema, tuple[int, ...]]:
    """Return the columns, and how many rows each row group has.

    What the file says of its size has to be affordable, unless somebody has had a look already.
    """
    with pyarrow.parquet.ParquetFile(file) as opened:
        said, schema = opened.metadata, opened.schema_arrow
    groups = [said.row_group(i) for i in range(said.num_row_groups)]
    sizes = [group.num_rows for group in groups]
    n, d = max(said.num_rows, sum(sizes)), len(schema.names)
    if min([said.num_rows, *sizes]) < 0:
        raise FileError(f"{file}: says that it has {said.num_rows:,} rows. Is the file whole?")
    if not look:
        return schema, tuple(sizes)
    Budget(file).spool(8 * n * d, f"{n:,} rows × {d:,} columns")
    # A page is unpacked as a whole, and it may be all that a column has in the group.
    found = _duckdb_rows(file, _LARGEST) or [(group.total_byte_size, 0) for group in groups]
    for size, _ in found:
        Budget(file).hold(size or 0, "a column")
    # Lists of any length fit few bytes if their numbers are equal.
    many = sum(values or 0 for _, values in found)
    Budget(file).spool(8 * many, f"{many:,} numbers")
    _check_texts(file, schema, max(sizes, default=0))
    return schema, tuple(sizes)


_LARGEST = """
SELECT max(total_uncompressed_size), sum(num_values) FILTER (WHERE type <> 'BYTE_ARRAY')
FROM parquet_metadata(?) GROUP BY row_group_id
"""


def _check_texts(file: str, schema: pa.Schema, n: int) -> None:
    """Refuse texts that would not fit the memory when they are written out for a batch of rows.

    A text that stands in many rows is in the file once, whatever its length. DuckDB measures texts
    without writing them out, within a limit of memory; it has no answer for a damaged file.
    """
    names = text_columns(schema)
    if not names:
        return
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    asked = ", ".join(f"max(strlen({name})), sum(strlen({name}))" for name in quoted)
    (found,) = _duckdb_rows(file, f"SELECT {asked} FROM read_parquet(?)") or [()]
    step, budget = min(n, batch_rows(len(schema.names))), Budget(file)
    for name, longest, total in zip(names, found[::2], found[1::2], strict=False):
        taken = min(step * (longest or 0), int(total or 0))
        budget.hold(taken, f"the texts of column {name!r} (and others)")


def _duckdb_rows(file: str, ask: str) -> list[Any]:
    """Return what DuckDB answers about a file; nothing if it cannot read it.

    pyarrow ends the process when it is asked for a column of some damaged files.
    """
    escaped, limit = re.sub(r"([*?[])", r"[\1]", file), Budget(file).limit
    try:
        cursor = _duckdb().cursor()
        cursor.execute(f"SET memory_limit = '{limit}B'")
        return list(cursor.execute(ask, [escaped]).fetchall())
    except duckdb.OutOfMemoryException as error:
        raise FileError(
            f"{file}: its texts would take more than {shown(limit)} of memory. Is the file what it "
            "should be? If it is, leave long texts out, or allow more with VIEWFOLD_MEMORY."
        ) from error
    except duckdb.Error:
        return []


@cache
def _duckdb() -> Any:
    return duckdb.connect(config={"threads": 1})


def _parquet(
    columns: _Columns, spool: Spool, groups: Sequence[int] | None, row: int
) -> Iterator[Batch]:
    # Small buffers instead of whole row groups: a group may be as large as the file.
    with pyarrow.parquet.ParquetFile(columns.file, pre_buffer=False, buffer_size=2**16) as opened:
        names = columns.read(opened.schema_arrow.names)
        step = batch_rows(columns.width)
        tally = Tally(opened.metadata.num_rows * len(names))

        def parts_of(group: int, names: list[str]) -> Iterator[Any]:
            for part in opened.iter_batches(step, row_groups=[group], columns=names):
                yield part
                tally.add(part.num_rows * len(names))

        for group in range(opened.num_row_groups) if groups is None else groups:
            said = opened.metadata.row_group(group)
            sections = _sections(names, said.total_byte_size)
            if len(sections) == 1:
                yield from columns.batches(parts_of(group, names), row=row)
            else:
                read = partial(parts_of, group)
                yield from _by_sections(columns, read, said.num_rows, sections, row, spool)
            row += said.num_rows


def _sections(names: list[str], size: int) -> list[list[str]]:
    """Divide the columns of a row group, so that each part needs little memory."""
    parts = min(len(names), max(1, -(-size // _SECTION_BYTES)))
    step = -(-len(names) // parts)
    return [names[start : start + step] for start in range(0, len(names), step)]


def _by_sections(
    columns: _Columns,
    read: Callable[[list[str]], Iterator[Any]],
    n: int,
    sections: list[list[str]],
    row: int,
    spool: Spool,
) -> Iterator[Batch]:
    """Read a row group that is too large at once: by columns into the spool, by rows from it.

    A page is read as a whole, and reading rows keeps a page of every column in memory, which may
    be all there is in the group.
    """
    step = batch_rows(columns.width)
    start = spool.reserve(n, columns.width, columns.dtype)
    known: list[Array | None] = []
    column = 0
    for names in sections:
        chosen = (part.select(names) for part in read(names))
        at = 0
        for ids, block in columns.batches(chosen, names, row):
            if at + len(block) <= n:
                spool.put(start + at, column, block)
            known += [] if ids is None else [ids]
            at += len(block)
        if at != n:
            raise FileError(f"{columns.file}: {at:,} rows where it says {n:,}. Is it whole?")
        column += columns.width_of(names)
    at = start
    for ids in known or [None] * -(-n // step):
        size = min(step, start + n - at) if ids is None else len(ids)
        yield ids, spool.rows(at, size)
        at += size


def _arrow(file: str, width: int) -> Iterator[Any]:
    """Yield pieces of the record batches; rows become so many features."""
    budget = Budget(file)
    with pa.OSFile(file) as stream:
        opened = _open_arrow(file, stream)
        rows = batch_rows(width)
        whole = (
            (opened.get_batch(i) for i in range(opened.num_record_batches))
            if hasattr(opened, "get_batch")
            else opened
        )
        for batch in whole:
            # Columns of nothing at all have any number of rows in no bytes.
            budget.spool(8 * batch.num_rows * width, f"{batch.num_rows:,} rows of a batch")
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)


def _arrow_schema(file: str) -> pa.Schema:
    """Return the columns; every message has to be affordable when it is unpacked."""
    with pa.OSFile(file) as stream:
        schema = _open_arrow(file, stream).schema
    for size in unpacked_sizes(file):
        Budget(file).hold(size, "a batch")
    return schema


def _open_arrow(file: str, stream: Any) -> Any:
    """Open either layout of Arrow's format: the one with an index at its end, or the stream."""
    magic = stream.read(6)
    stream.seek(0)
    if magic == MAGIC:
        return pyarrow.ipc.open_file(stream)
    if magic.startswith(b"FEA1"):
        raise FileError(f"{file}: Feather version 1. Write it again with a recent program.")
    return pyarrow.ipc.open_stream(stream)
