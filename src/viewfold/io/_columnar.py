"""Parquet and Arrow (Feather): typed columns, read in batches with bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from viewfold.io._arrow import MAGIC, unpacked_sizes
from viewfold.io._budget import Budget
from viewfold.io._source import Batch, FileError, reading
from viewfold.io._tables import Table, arrow_batch, arrow_dtype, arrow_features, batch_rows

_SECTION_BYTES = 64 * 2**20


def open_table(file: str, ids: str | None) -> Table:
    """Look at the columns of a file."""
    parquet = file.lower().endswith((".parquet", ".pq"))
    what = "Parquet" if parquet else "Arrow or Feather"
    with reading(file, what):
        schema = _parquet_schema(file) if parquet else _arrow_schema(file)
        if not schema.names:
            raise FileError(f"{file}: there are no columns. Leave the view out.")
        features = arrow_features(file, schema, ids)
        dtype = arrow_dtype(schema, features)

    def batches() -> Iterator[Batch]:
        row = 0
        with reading(file, what):
            for batch in _parquet(file) if parquet else _arrow(file):
                # Compiled code trusts offsets, and a damaged file may hold any.
                batch.validate(full=True)
                yield arrow_batch(file, batch, features, dtype, ids, row)
                row += batch.num_rows

    return Table(features, dtype, batches())


def _parquet_schema(file: str) -> pa.Schema:
    """Return the columns; what the file says of its size has to be affordable."""
    with pyarrow.parquet.ParquetFile(file) as opened:
        said, schema = opened.metadata, opened.schema_arrow
    n, d = said.num_rows, len(schema.names)
    groups = [said.row_group(i) for i in range(said.num_row_groups)]
    if min([n, *(group.num_rows for group in groups)]) < 0:
        raise FileError(f"{file}: says that it has {n:,} rows. Is the file whole?")
    Budget(file).spool(8 * n * d, f"{n:,} rows × {d:,} columns")
    for group in groups:
        # A page is unpacked as a whole, and it may be all that a column has in the group.
        sizes = [group.column(j).total_uncompressed_size for j in range(group.num_columns)]
        Budget(file).hold(max(sizes, default=0), "a column")
    return schema


def _parquet(file: str) -> Iterator[Any]:
    # Small buffers instead of whole row groups: a group may be as large as the file.
    with pyarrow.parquet.ParquetFile(file, pre_buffer=False, buffer_size=2**16) as opened:
        names = opened.schema_arrow.names
        rows = batch_rows(len(names))
        for group in range(opened.num_row_groups):
            sections = _sections(names, opened.metadata.row_group(group).total_byte_size)
            if len(sections) == 1:
                yield from opened.iter_batches(batch_size=rows, row_groups=[group])
            else:
                yield from _by_sections(opened, group, sections, rows)


def _sections(names: list[str], size: int) -> list[list[str]]:
    """Divide the columns of a row group, so that each part needs little memory."""
    parts = min(len(names), max(1, -(-size // _SECTION_BYTES)))
    step = -(-len(names) // parts)
    return [names[start : start + step] for start in range(0, len(names), step)]


def _by_sections(
    opened: Any, group: int, sections: list[list[str]], rows: int
) -> Iterator[pa.RecordBatch]:
    """Read a row group that is too large at once: by columns to a temporary file, by rows from it.

    A page is read as a whole, and reading rows keeps a page of every column in memory, which may
    be all there is in the group. The file has no name: nothing is left behind.
    """
    with ExitStack() as stack:
        readers = []
        for names in sections:
            spool = stack.enter_context(tempfile.TemporaryFile(prefix="viewfold-"))
            parts = opened.iter_batches(batch_size=rows, row_groups=[group], columns=names)
            with pyarrow.ipc.new_stream(
                spool, pa.schema(map(opened.schema_arrow.field, names))
            ) as w:
                for part in parts:
                    w.write_batch(part.select(names))
            spool.seek(0)
            readers.append(pyarrow.ipc.open_stream(spool))
        for slices in zip(*readers, strict=True):
            arrays = [column for part in slices for column in part.columns]
            yield pa.record_batch(arrays, names=[name for part in sections for name in part])


def _arrow(file: str) -> Iterator[Any]:
    budget = Budget(file)
    with pa.OSFile(file) as stream:
        opened = _open_arrow(file, stream)
        columns = len(opened.schema.names)
        rows = batch_rows(columns)
        whole = (
            (opened.get_batch(i) for i in range(opened.num_record_batches))
            if hasattr(opened, "get_batch")
            else opened
        )
        for batch in whole:
            # Columns of nothing at all have any number of rows in no bytes.
            budget.spool(8 * batch.num_rows * columns, f"{batch.num_rows:,} rows of a batch")
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
