"""What a database may contain before anything is selected from it: our tables, as documented.

A view, macro, default or generated column would run whatever its author wrote. So the catalogue is
looked at first, then how much the tables would take in memory, and only then are rows read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

from viewfold._util.table import Table
from viewfold.errors import NewerFormatError, StateFileError, UnreadableError

Tables = Mapping[str, Mapping[str, str]]

_FLOATS = r"(DOUBLE|FLOAT)\[\d+\]"
_META = {"key": "VARCHAR", "value": "VARCHAR"}
_SAMPLES = {
    "id": "BIGINT|VARCHAR",
    "label": "INTEGER",
    "confidence": "FLOAT",
    "views_seen": r"BOOLEAN\[\d+\]",
    "history": r"INTEGER\[\d+\]",
    "embedding": _FLOATS,
    "id_is_int": "BOOLEAN|",
}
_VIEWS = {
    "fold": "INTEGER",
    "name": "VARCHAR",
    "n_samples": "BIGINT",
    "n_features": "BIGINT",
    "n_new": "BIGINT",
    "n_shared": "BIGINT",
    "n_iter": "BIGINT",
    "objective": r"DOUBLE\[\]",
    "agreement": "DOUBLE",
    "features": r"VARCHAR\[\]",
}
_ARRAYS = {"name": "VARCHAR", "shape": r"BIGINT\[\]", "by_column": "BOOLEAN", "data": "BLOB"}
_COUNTS = ("n_samples", "n_new", "n_shared", "n_moved", "n_forgotten")

_FORMAT_2 = {
    "meta": _META,
    "samples": {**_SAMPLES, "added": "INTEGER"},
    "views": {**_VIEWS, "entry": "INTEGER", "n_empty": "BIGINT|", "n_missing": "BIGINT|"},
    "arrays": {**_ARRAYS, "type": "VARCHAR", "version": "INTEGER", "dtype": "VARCHAR"},
    "log": {
        "entry": "INTEGER",
        "what": "VARCHAR",
        "time": "TIMESTAMP WITH TIME ZONE",
        "version": "VARCHAR",
        "view": "VARCHAR",
        **dict.fromkeys(_COUNTS, "BIGINT"),
        "undoes": "INTEGER",
    },
}

FORMATS: dict[int, Tables] = {
    1: {
        "meta": _META,
        "samples": _SAMPLES,
        "views": {**_VIEWS, "folded": "TIMESTAMP"},
        "arrays": {**_ARRAYS, "kind": "VARCHAR"},
    },
    2: _FORMAT_2,
    3: {
        **_FORMAT_2,
        "samples": {**_FORMAT_2["samples"], "fingerprints": r"INTEGER\[\d+\]"},
        "log": {
            **_FORMAT_2["log"],
            **dict.fromkeys(("n_clusters", "n_corrected"), "BIGINT|"),
            "note": "VARCHAR|",
        },
        "steps": {"step": "INTEGER", "entry": "INTEGER", "name": "VARCHAR"},
    },
}
"""The tables of each version of the format: columns, and patterns of their types. A column whose
pattern admits the empty text may be missing."""

OWN_VIEWS = frozenset({"labels_history"})
"""SQL views that files bring along for their users. They are never executed here."""

MOST_KEPT = 100
"""A file keeps at most so many states to return to."""

KEPT = ("undo", *(f"undo{place}" for place in range(2, MOST_KEPT + 1)))
"""The schemas of these states, the latest first; formats 1 and 2 know the first alone."""

MEMORY = 256 * 2**20, 100
"""Tables may take so many bytes when they are unpacked, and so many for each byte of the file."""

LARGEST_META = 2**20
"""The table ``meta`` may have so many bytes."""

DEEPEST = 16
"""So many brackets within each other are enough for any parameter."""


@dataclass(frozen=True)
class Catalogue:
    """What a checked database holds.

    Attributes
    ----------
    version : int
        Version of the format.
    columns : dict
        The columns of each table and their types, by schema and name; None for a table that is
        more than columns with types.
    """

    version: int
    columns: Mapping[tuple[str, str], Mapping[str, str] | None]

    @property
    def kept(self) -> tuple[str, ...]:
        """The schemas of the states to return to, the latest first."""
        here = {schema for schema, _ in self.columns}
        return tuple(schema for schema in KEPT if schema in here)


def check(db: duckdb.DuckDBPyConnection, newest: int = max(FORMATS)) -> Catalogue:
    """Refuse a database that holds anything but the tables of a format that can be read.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
        Where the file is attached as ``old``.
    newest : int, optional
        The newest version of the format that can be read.

    Returns
    -------
    Catalogue

    Raises
    ------
    UnreadableError
    """
    found = {(s, t): _columns(s, t, sql) for s, t, sql in db.sql(_TABLES).fetchall()}
    if not _fit(found.get(("main", "meta")), _META):
        raise UnreadableError("it is a database, but not one of viewfold", StateFileError)
    version = _version(db, newest)
    known = {"main", *(KEPT if version > 2 else KEPT[:1])}
    for kind, schema, name in db.sql(_OTHERS).fetchall():
        ours = kind in ("schema", "table") or (kind == "view" and name in OWN_VIEWS)
        if not (ours and schema in known):
            raise UnreadableError(f"it holds a {kind} that viewfold did not put there: {name!r}")
    catalogue = Catalogue(version, found)
    check_tables(catalogue, "main")
    return catalogue


def check_tables(catalogue: Catalogue, schema: str) -> None:
    """Refuse a schema that does not hold just the tables of the format.

    A state to return to is checked when it is asked for: if only that is damaged, the state of now
    and the others can be used.
    """
    tables = FORMATS[catalogue.version]
    here = {t: columns for (s, t), columns in catalogue.columns.items() if s == schema}
    if here.keys() != tables.keys():
        odd = sorted(here.keys() ^ tables.keys())
        raise UnreadableError(
            f"it does not have the tables of format {catalogue.version} ({odd[0]!r})"
        )
    for name, columns in here.items():
        if not _fit(columns, tables[name]):
            raise UnreadableError(f"its table {name!r} does not have the documented columns")


def check_sizes(
    db: duckdb.DuckDBPyConnection, schema: str, tables: Iterable[str], size: int
) -> None:
    """Refuse tables that grow out of proportion when they are unpacked.

    What each segment of a column holds is known without unpacking it.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
        Where the file is attached as ``old``; its catalogue was checked.
    schema : str
        Where the tables are.
    tables : iterable of str
        Their names.
    size : int
        Bytes of the file.
    """
    for name, total in db.sql(
        " UNION ALL ".join(_size(schema, table) for table in tables)
    ).fetchall():
        allowed = LARGEST_META if name == "meta" else MEMORY[0] + MEMORY[1] * size
        if (total or 0) > allowed:
            raise UnreadableError(
                f"its table {name!r} would take {total:,} bytes of memory, more than a file of "
                f"{size:,} bytes should"
            )


_OLD = "WHERE database_name = 'old'"
_TABLES = f"SELECT schema_name, table_name, sql FROM duckdb_tables() {_OLD} ORDER BY table_oid"
_OTHERS = f"""
    SELECT 'schema', schema_name, schema_name FROM duckdb_schemas() {_OLD}
    UNION ALL SELECT 'table', schema_name, table_name FROM duckdb_tables() {_OLD}
    UNION ALL SELECT 'view', schema_name, view_name FROM duckdb_views() {_OLD} AND NOT internal
    UNION ALL SELECT 'macro', schema_name, function_name FROM duckdb_functions() {_OLD}
    UNION ALL SELECT 'sequence', schema_name, sequence_name FROM duckdb_sequences() {_OLD}
    UNION ALL SELECT 'index', schema_name, index_name FROM duckdb_indexes() {_OLD}
    UNION ALL SELECT 'type', schema_name, type_name FROM duckdb_types() {_OLD} AND NOT internal
"""


def _columns(schema: str, table: str, sql: str) -> dict[str, str] | None:
    """Return the columns of a table and their types; None if it is more than that.

    DuckDB writes a table out as the statement that makes it, with every default, collation,
    constraint and generated column.
    """
    plain = sql.replace('"', "")
    inner = re.fullmatch(rf"CREATE TABLE (?:{schema}\.)?{re.escape(table)}\((.*)\);", plain)
    if inner is None:
        return None
    pairs = [column.partition(" ")[::2] for column in inner[1].split(", ")]
    columns = dict(pairs)
    return columns if len(columns) == len(pairs) else None


def _fit(columns: Mapping[str, str] | None, wanted: Mapping[str, str]) -> bool:
    if columns is None or not columns.keys() <= wanted.keys():
        return False
    return all(re.fullmatch(kind, columns.get(name, "")) for name, kind in wanted.items())


def _size(schema: str, table: str) -> str:
    """Return how to ask for the bytes that a table would take, at most."""
    longest = r"regexp_extract(CAST(stats AS VARCHAR), '(?i)max.string.length\W+(\d+)', 1)"
    # Arrays differ so much in length that the longest tells nothing about the others; how long
    # each should be is checked when its shape is known.
    return f"""
        SELECT '{table}', sum(CASE WHEN column_name = 'data' THEN width ELSE many * width END)
        FROM (SELECT column_name, CAST(count AS HUGEINT) AS many,
                     greatest(8, coalesce(TRY_CAST({longest} AS HUGEINT), 0)) AS width
              FROM pragma_storage_info('old.{schema}.{table}') WHERE segment_type <> 'VALIDITY')
    """


# -- meta


def _version(db: duckdb.DuckDBPyConnection, newest: int) -> int:
    """Return the version of the format, if it is one that can be read."""
    check_sizes(db, "main", ["meta"], 0)
    meta = meta_of(db, "main")
    if meta.get("format") != "viewfold":
        raise UnreadableError("it is a database, but not one of viewfold", StateFileError)
    version = meta.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise UnreadableError(f"its format is {version!r}")
    if version > newest:
        raise UnreadableError(
            f"it has format {version} and this viewfold reads up to {newest}; install a "
            "newer viewfold",
            NewerFormatError,
        )
    return version


def meta_table(db: duckdb.DuckDBPyConnection, schema: str) -> Table:
    """Return the table ``meta`` of a checked database, if its JSON is harmless."""
    rows = db.sql(f"SELECT key, value FROM old.{schema}.meta").fetchall()
    keys = [key for key, _ in rows]
    if len(set(keys)) != len(keys) or None in keys:
        raise UnreadableError("its table 'meta' says something twice")
    for _, text in rows:
        check_json(text)
    return Table({"key": keys, "value": [text for _, text in rows]})


def meta_of(db: duckdb.DuckDBPyConnection, schema: str) -> dict[str, Any]:
    """Return what the table ``meta`` says."""
    table = meta_table(db, schema)
    return dict(zip(table["key"], map(json.loads, table["value"]), strict=True))


_TEXT = re.compile(r'"(?:[^"\\]|\\.?)*"?', re.DOTALL)  # cannot fail, so it never goes back


def check_json(text: str | None) -> None:
    """Refuse JSON that is nested too deeply for a parser that calls itself.

    Examples
    --------
    >>> from viewfold.store._catalogue import check_json
    >>> check_json('{"a": [1, 2, "[[[[[[[[[[[[[[[[["]}')
    >>> check_json("[" * 17)
    Traceback (most recent call last):
    viewfold.errors.UnreadableError: its table 'meta' holds JSON that is nested too deeply
    """
    if text is None:
        raise UnreadableError("its table 'meta' has a key without a value")
    depth = 0
    for bracket in re.findall(r"[][{}]", _TEXT.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > DEEPEST:
            raise UnreadableError("its table 'meta' holds JSON that is nested too deeply")
