"""Digests of tables: whether what was read is what was written.

The large table has one for each column and every other table has one, so that a command can check
what it reads and need not read the rest. They find damage; they do not prove who wrote a file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa


def of_columns(rows: pa.Table | Iterable[pa.RecordBatch]) -> dict[str, str]:
    """Return a digest of each column, however the rows are cut into batches.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from viewfold.store.digests import of_columns
    >>> table = pa.table({"id": ["ann", "bob"], "label": [1, 0]})
    >>> sorted(of_columns(table))
    ['id', 'label int64', 'length of id int32']
    >>> of_columns(table.to_batches(max_chunksize=1)) == of_columns(table)
    True
    """
    digest = Columns()
    for batch in rows.to_batches() if isinstance(rows, pa.Table) else rows:
        digest.add(batch)
    return digest.found()


class Columns:
    """The digests of columns that come in batches."""

    def __init__(self) -> None:
        self._columns: dict[str, Any] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Take more rows in."""
        if len(batch):
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                self._add(name, column)

    def found(self) -> dict[str, str]:
        """Return the digests so far; the name of each says what the column is made of."""
        return {name: digest.hexdigest() for name, digest in self._columns.items()}

    def _add(self, name: str, values: pa.Array) -> None:
        if pa.types.is_fixed_size_list(values.type):
            name, values = f"{name}[{values.type.list_size}]", values.flatten()
        if pa.types.is_string(values.type):
            _, places, characters = values.buffers()
            ends = np.frombuffer(places, np.int32, len(values) + 1, 4 * values.offset)
            self._update(f"length of {name} int32", np.diff(ends))
            self._update(name, memoryview(characters or b"")[ends[0] : ends[-1]])
        else:
            numbers = _numbers(values)
            self._update(f"{name} {numbers.dtype}", numbers)

    def _update(self, name: str, content: Any) -> None:
        self._columns.setdefault(name, hashlib.sha256()).update(content)


def _numbers(values: pa.Array) -> Any:
    """Return a column's numbers where they are; `to_numpy` would import pandas first."""
    if values.null_count:
        raise ValueError("numbers are missing")
    if pa.types.is_boolean(values.type):
        return _numbers(values.cast(pa.uint8())).view(bool)
    kind = np.dtype({"float": "float32", "double": "float64"}.get(name := str(values.type), name))
    start = values.offset * kind.itemsize
    return np.frombuffer(values.buffers()[1], kind, len(values), start)


def of_table(table: pa.Table) -> str:
    """Return the digest of a small table."""
    whole = hashlib.sha256(json.dumps(table.schema.names).encode())
    for row in plain(table).to_pylist():
        data = row.pop("data", None) or b""
        whole.update(json.dumps(row).encode())
        whole.update(data)
    return whole.hexdigest()


def of_meta(meta: dict[str, Any]) -> str:
    """Return the digest of what the table ``meta`` says, the digests of all others included."""
    said = {key: value for key, value in meta.items() if key != "digest"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def of_format_1(
    meta: dict[str, Any], columns: dict[str, str], views: pa.Table, arrays: pa.Table
) -> str:
    """Return the one digest that files of format 1 have."""
    said = {key: value for key, value in meta.items() if key != "digest"}
    whole = hashlib.sha256(json.dumps([said, sorted(columns.items())], sort_keys=True).encode())
    for table in (views, arrays):
        for row in table.to_pylist():
            data = row.pop("data", None) or b""
            whole.update(repr(sorted(row.items())).encode())
            whole.update(data)
    return whole.hexdigest()


def plain(table: pa.Table) -> pa.Table:
    """Return a table with times as whole numbers: microseconds since 1970, UTC.

    Which zone a database shows them in depends on where it is opened.
    """
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            column = table.column(i).cast(pa.timestamp("us", field.type.tz)).cast(pa.int64())
            table = table.set_column(i, field.name, column)
    return table


def time_of(microseconds: int) -> datetime:
    """Return such a number as a time."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
