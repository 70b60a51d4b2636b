"""A table in memory: what state files hold, what questions about them return, what files get.

Columns are NumPy arrays, or lists where cells may be missing or are lists themselves. Arrow, which
Parquet files need, is asked only to be written to or read from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from viewfold._util.messages import needed

if TYPE_CHECKING:
    import pyarrow as pa

# An array with a number, a text or a row of numbers for each row of the table, or a list.
Column: TypeAlias = Any


class Table:
    """Columns of one length, by name; an array of two dimensions has a row of numbers in each cell.

    `types` are the SQL types of columns whose cells do not tell. Times are whole numbers in memory:
    microseconds since 1970.
    """

    def __init__(
        self, columns: Mapping[str, Column], types: Mapping[str, str] | None = None
    ) -> None:
        self.columns, self.types = dict(columns), dict(types or {})

    @classmethod
    def of_rows(
        cls, rows: Sequence[Mapping[str, Any]], types: Mapping[str, str] | None = None
    ) -> Table:
        """Return rows as a table; its columns are those that have types, or those of a row."""
        names = list(types or (rows[0] if rows else ()))
        return cls({name: [row[name] for row in rows] for name in names}, types)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    @property
    def column_names(self) -> list[str]:
        return list(self.columns)

    def rows(self) -> list[dict[str, Any]]:
        cells = [as_list(column) for column in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*cells, strict=True)]

    def part(self, start: int, stop: int) -> Table:
        return Table({name: held[start:stop] for name, held in self.columns.items()}, self.types)

    def with_column(self, name: str, column: Column, after: str | None = None) -> Table:
        """Return the table with another column, in its old place or after one of the others."""
        held = self.columns | {name: column}
        if after is None:
            return Table(held, self.types)
        names = [other for other in held if other != name]
        names.insert(names.index(after) + 1, name)
        return Table({other: held[other] for other in names}, self.types)

    def select(self, names: Iterable[str]) -> Table:
        return Table({name: self.columns[name] for name in names}, self.types)

    def to_arrow(self) -> pa.Table:
        pa = needed("pyarrow", "parquet", "A Parquet or Arrow file")
        return pa.table(
            {name: _to_arrow(pa, held, self.types.get(name)) for name, held in self.columns.items()}
        )

    @classmethod
    def of_arrow(cls, table: pa.Table) -> Table:
        """Return a small table of Arrow's; times become whole numbers."""
        import pyarrow as pa

        columns = {}
        for field in table.schema:
            column = table[field.name]
            if pa.types.is_timestamp(field.type):
                column = column.cast(pa.timestamp("us", field.type.tz)).cast(pa.int64())
            columns[field.name] = column.to_pylist()
        return cls(columns)


def as_list(column: Column) -> list[Any]:
    """Return a column as a list of Python's values; None where a cell is missing."""
    if not isinstance(column, np.ndarray):
        return list(column)
    if column.dtype == np.float32:
        # 0.1 and not 0.10000000149: the shortest number that is this one in single precision.
        column = column.astype("U32").astype(np.float64)
    return list(column.tolist())


def _to_arrow(pa: Any, column: Column, kind: str | None) -> Any:
    types = {
        "BIGINT": pa.int64(),
        "BIGINT[]": pa.list_(pa.int64()),
        "BLOB": pa.binary(),
        "BOOLEAN": pa.bool_(),
        "DOUBLE": pa.float64(),
        "DOUBLE[]": pa.list_(pa.float64()),
        "INTEGER": pa.int32(),
        "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
        "VARCHAR": pa.string(),
        "VARCHAR[]": pa.list_(pa.string()),
    }
    if kind is None and isinstance(column, np.ndarray) and column.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(column)), column.shape[1])
    return pa.array(column, None if kind is None else types[kind])
