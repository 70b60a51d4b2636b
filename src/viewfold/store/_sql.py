"""From DuckDB's tables to those in memory and back, with nothing but NumPy in between.

A row of numbers is a column of arrays of one length in a file. DuckDB hands such arrays out number
by number, and makes them of columns of numbers, which it reads where NumPy has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import numpy as np

from viewfold._util.table import Table
from viewfold.store.digests import time_of

BATCH_ROWS = 122_880
"""Rows that are read at once: as many as DuckDB keeps together."""

_TIME = "TIMESTAMP WITH TIME ZONE"
_ARRAY = re.compile(r"\w+\[(\d+)\]")
_SQL = {"float32": "FLOAT", "float64": "DOUBLE", "int32": "INTEGER", "int64": "BIGINT"}
_SQL |= {"bool": "BOOLEAN", "object": "VARCHAR"}


def small_table(relation: duckdb.DuckDBPyRelation) -> Table:
    """Return a small table; cells may be missing, and times are microseconds since 1970."""
    names, types = relation.columns, [str(kind) for kind in relation.types]
    chosen = [
        f"epoch_us({_quoted(name)})" if kind == _TIME else _quoted(name)
        for name, kind in zip(names, types, strict=True)
    ]
    rows = relation.project(", ".join(chosen)).fetchall()
    return Table({name: [row[i] for row in rows] for i, name in enumerate(names)})


def table_of(relation: duckdb.DuckDBPyRelation) -> Table:
    """Return a table as NumPy has it; a column with missing cells is a masked array."""
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    return Table(_arrays(relation, types))


def batches_of(
    db: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield columns of a table, some rows at a time, in their order."""
    chosen = db.sql(f"SELECT {', '.join(map(_quoted, columns))} FROM {table}")
    types = dict(zip(chosen.columns, map(str, chosen.types), strict=True))
    (n,) = db.sql(f"SELECT count(*) FROM {table}").fetchall()[0]
    for start in range(0, n, BATCH_ROWS):
        some = f"WHERE rowid >= {start} AND rowid < {start + BATCH_ROWS}"
        yield _arrays(db.sql(f"FROM {table} {some}"), types)


def _arrays(relation: duckdb.DuckDBPyRelation, types: Mapping[str, str]) -> dict[str, Any]:
    widths = {
        name: int(array[1]) if (array := _ARRAY.fullmatch(kind)) else None
        for name, kind in types.items()
    }
    chosen = []
    for i, (name, width) in enumerate(widths.items()):
        if width is None:
            chosen.append(f"{_quoted(name)} AS c{i}")
        chosen += [f"{_quoted(name)}[{j + 1}] AS c{i}_{j}" for j in range(width or 0)]
    found = relation.project(", ".join(chosen)).fetchnumpy()
    return {
        name: found[f"c{i}"] if width is None else _side_by_side(found, f"c{i}", width)
        for i, (name, width) in enumerate(widths.items())
    }


def _side_by_side(found: dict[str, Any], name: str, width: int) -> Any:
    """Return columns of numbers as one matrix, and let go of them on the way."""
    first = found[f"{name}_0"]
    rows = np.empty((len(first), width), first.dtype)
    mask = np.zeros(rows.shape, bool) if np.ma.isMaskedArray(first) else None
    for j in range(width):
        column = found.pop(f"{name}_{j}")
        rows[:, j] = np.ma.getdata(column)
        if np.ma.is_masked(column):
            mask = np.zeros(rows.shape, bool) if mask is None else mask
            mask[:, j] = column.mask
    return rows if mask is None else np.ma.MaskedArray(rows, mask)


def put(db: duckdb.DuckDBPyConnection, name: str, table: Table) -> None:
    """Make a table in a database."""
    if table.types:
        _put_small(db, name, table)
        return
    columns, chosen = {}, []
    for i, (column, held) in enumerate(table.columns.items()):
        width = None if held.ndim == 1 else held.shape[1]
        kind = _SQL[held.dtype.name]
        if width is None:
            columns[f"c{i}"] = held
            chosen.append(f"c{i}::{kind} AS {_quoted(column)}")
        else:
            parts = [f"c{i}_{j}" for j in range(width)]
            columns |= {part: held[:, j] for j, part in enumerate(parts)}
            chosen.append(f"array_value({', '.join(parts)})::{kind}[{width}] AS {_quoted(column)}")
    db.register("incoming", columns)
    try:
        db.execute(f"CREATE TABLE {name} AS SELECT {', '.join(chosen)} FROM incoming")
    finally:
        db.unregister("incoming")


def _put_small(db: duckdb.DuckDBPyConnection, name: str, table: Table) -> None:
    types = table.types
    declared = ", ".join(f"{_quoted(column)} {kind}" for column, kind in types.items())
    db.execute(f"CREATE TABLE {name} ({declared})")
    columns = [[_bound(cell, kind) for cell in table[column]] for column, kind in types.items()]
    if "BLOB" in types.values():  # large ones, one after the other
        places = ", ".join(f"{_sent(kind)}" for kind in types.values())
        for row in zip(*columns, strict=True):
            db.execute(f"INSERT INTO {name} VALUES ({places})", list(row))
    elif len(table):
        lists = ", ".join(f"unnest({_sent(kind + '[]')})" for kind in types.values())
        db.execute(f"INSERT INTO {name} SELECT {lists}", columns)


def _sent(kind: str) -> str:
    """Return where a value of a type is put: numbers come as texts, as NaN would get lost."""
    text = kind.replace("DOUBLE", "VARCHAR")
    return f"?::{kind}" if text == kind else f"?::{text}::{kind}"


def _bound(cell: Any, kind: str) -> Any:
    """Return a cell as DuckDB takes it."""
    if cell is None:
        return None
    if kind == _TIME:
        return time_of(cell)
    if kind == "DOUBLE":
        return repr(float(cell))
    return [repr(float(one)) for one in cell] if kind == "DOUBLE[]" else cell


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
