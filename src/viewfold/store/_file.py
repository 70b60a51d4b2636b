"""Write and read a ``.vf`` file: a DuckDB database of all a model has learned, no row of a view.

A file is never changed in place. A new one is written beside it and takes its place in one step, so
that readers see the state before or after, are never kept waiting, and a crash leaves no trace.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from viewfold._util.replace import replacing
from viewfold.errors import StateFileError, UnreadableError
from viewfold.store import _catalogue, _check, digests
from viewfold.store._database import STORAGE, check_is_ours, making, reading, understood
from viewfold.store._lock import identity, is_held, own_turn, writing
from viewfold.store._sql import batches_of, put, small_table
from viewfold.store.kept import Held, Kept
from viewfold.store.tables import (
    CHANGED,
    FORMAT,
    events_of,
    from_tables,
    read_meta,
    to_tables,
)

if TYPE_CHECKING:
    from viewfold.rows import Engine
    from viewfold.state.log import Log
    from viewfold.state.state import State

__all__ = ["writing"]

StrPath = str | os.PathLike[str]
Change = Callable[["State"], "State | None"]


def write(
    path: str | os.PathLike[str],
    state: State,
    *,
    kept: Sequence[State | str] = (),
    change: Change | None = None,
    keep: int = 1,
) -> State:
    """Write a file, or replace one, in a single step; return the state.

    Parameters
    ----------
    path : path
        Where to. Only the owner may read a new file; a file that is replaced keeps its mode.
    state : State
        What to write.
    kept : sequence of State or str
        The states that can be returned to, the latest first: a state, or the schema that holds it
        in the file that is replaced. One that is damaged is left out, with a warning.
    change : callable, optional
        What becomes of those in the file, None to leave one out; without it, tables are copied.
    keep : int, default=1
        How many there may be; the oldest are left out. The file remembers it.
    """
    target = Path(os.path.realpath(path))
    kept = kept[:keep]
    copy = any(isinstance(one, str) for one in kept)
    with own_turn(target) as turn, understood(target, None):
        if copy:
            turn.check()  # what is copied from must still be what was read
        if target.exists():
            check_is_ours(target)
        try:
            with (
                replacing(target, ready=turn.check) as draft,
                making(draft, target, _layout(state), copy=copy) as db,
            ):
                _put(db, "main", state, keep=keep)
                _put_kept(db, kept, change, target)
                db.execute("CHECKPOINT new")
        except FileNotFoundError:
            turn.check()  # another writer that should not be there may have cleared the folder
            raise
        turn.written()
    return state


mark, is_written = identity, is_held  # as a `Store` calls them


def exists(path: StrPath) -> bool:
    """Tell whether there is such a file."""
    return os.path.exists(path)


def size(path: StrPath) -> int:
    """Return how many bytes it has."""
    return os.stat(path).st_size


def read(
    path: StrPath, schema: str = "main", engine: Engine | None = None, *, unpack: bool = False
) -> State | None:
    """Read a file.

    Parameters
    ----------
    path : path
        The file.
    schema : str, default="main"
        Which state to read: that of now, or one of those that can be returned to.
    engine : Engine, optional
        Where its rows are to be; in memory if not given.
    unpack : bool
        Ignored: rows in memory are unpacked.

    Returns
    -------
    State or None
        None if there is no such state to return to.

    Raises
    ------
    StateFileError
        If the file is damaged, foreign or of a newer version.
    """
    with opened(path) as (db, catalogue):
        if schema not in ("main", *catalogue.kept):
            return None
        check_schema(db, catalogue, schema, path)
        found = get(db, catalogue, schema)
    return found if engine is None else found.placed(engine)


def kept_in(path: str | os.PathLike[str]) -> tuple[int, tuple[str, ...]]:
    """Return how many states a file may keep to return to, and the schemas of those it has."""
    if not os.path.exists(path):
        return 1, ()
    with opened(path) as (db, catalogue):
        return number_kept(db), catalogue.kept


def number_kept(db: duckdb.DuckDBPyConnection) -> int:
    """Return how many states to return to a file keeps."""
    keep = read_meta(_catalogue.meta_table(db, "main")).get("keep", 1)
    _check.check_keep(keep)
    return int(keep)


@contextmanager
def opened(
    path: str | os.PathLike[str],
) -> Iterator[tuple[duckdb.DuckDBPyConnection, _catalogue.Catalogue]]:
    """Open a file for SQL, read-only, as the database ``old``, after a look at its catalogue."""
    with reading(path) as db:
        yield db, _catalogue.check(db, FORMAT)


def check_schema(
    db: duckdb.DuckDBPyConnection,
    catalogue: _catalogue.Catalogue,
    schema: str,
    path: str | os.PathLike[str],
) -> None:
    """Refuse a state whose tables are not those of the format, or would take too much memory."""
    _catalogue.check_tables(catalogue, schema)
    tables = _catalogue.FORMATS[catalogue.version]
    _catalogue.check_sizes(db, schema, tables, os.stat(path).st_size)


HISTORY = """
SELECT id, entry, what, view, time,
       CASE WHEN entry > added THEN history[step - 1] END AS previous, history[step] AS label
FROM (SELECT l.*, s.step, s.entry AS written
      FROM {0}.log l ASOF JOIN {0}.steps s ON l.entry >= s.entry)
JOIN {0}.samples ON entry >= added
WHERE entry = added OR (entry = written AND history[step] <> history[step - 1])
"""
"""Who came by which entry of the log, and who moved; a sample that came by an extend is in the
column of the step before."""


def _layout(state: State) -> str:
    """Return how to lay a file out; tables take whole blocks, so small files get small ones."""
    small = state.embedding.size * state.embedding.dtype.itemsize < 2**23
    return f"STORAGE_VERSION '{STORAGE}', BLOCK_SIZE {2**14 if small else 2**18}"


def _put(db: duckdb.DuckDBPyConnection, schema: str, state: State, **facts: int) -> None:
    for name, table in to_tables(state, **facts).items():
        put(db, f"new.{schema}.{name}", table)
    _add_history(db, schema)


def _put_kept(
    db: duckdb.DuckDBPyConnection,
    kept: Sequence[State | str],
    change: Change | None,
    target: Path,
) -> None:
    """Write the states to return to, one after the other: one of them at a time is in memory."""
    old = _catalogue.check(db, FORMAT) if any(isinstance(one, str) for one in kept) else None
    names = iter(_catalogue.KEPT)
    schema = next(names)
    for one in kept:
        db.execute(f"CREATE SCHEMA new.{schema}")
        try:
            there = _put_one(db, schema, one, change, old, target)
        except StateFileError as error:
            there = False
            warnings.warn(
                f"A part of the file that undo returns to is damaged and was left out: {error}",
                stacklevel=6,
            )
        if there:
            schema = next(names, "")
        else:
            db.execute(f"DROP SCHEMA new.{schema} CASCADE")


def _put_one(
    db: duckdb.DuckDBPyConnection,
    schema: str,
    one: State | str,
    change: Change | None,
    old: _catalogue.Catalogue | None,
    target: Path,
) -> bool:
    """Write a state to return to; False if it is to be left out."""
    if isinstance(one, str):
        assert old is not None
        if change is None and old.version == FORMAT:  # all states of a file have one format
            try:
                _copy(db, old, one, schema, target)
                return True
            except (duckdb.Error, UnreadableError):
                _readable(db, old, one, target)
                raise  # it is whole, so it is the new file that cannot be written
        found: State | None = _readable(db, old, one, target)
        one_changed = found if change is None or found is None else change(found)
        if one_changed is None:
            return False
        one = one_changed
    _put(db, schema, one)
    return True


def _copy(
    db: duckdb.DuckDBPyConnection,
    catalogue: _catalogue.Catalogue,
    source: str,
    schema: str,
    target: Path,
) -> None:
    """Copy a state of the file to where it is in the new one, with its digests."""
    check_schema(db, catalogue, source, target)
    for name in _catalogue.FORMATS[FORMAT]:
        db.execute(f"CREATE TABLE new.{schema}.{name} AS FROM old.{source}.{name}")
    _add_history(db, schema)


def _readable(
    db: duckdb.DuckDBPyConnection, catalogue: _catalogue.Catalogue, schema: str, target: Path
) -> State:
    """Read a state of the file that is to be replaced; what is wrong with it is its damage."""
    with understood(target, threading.Event()):
        check_schema(db, catalogue, schema, target)
        return get(db, catalogue, schema)


def _add_history(db: duckdb.DuckDBPyConnection, schema: str) -> None:
    db.execute(f"CREATE VIEW new.{schema}.labels_history AS {HISTORY.format(schema)}")


def get(db: duckdb.DuckDBPyConnection, catalogue: _catalogue.Catalogue, schema: str) -> State:
    """Read the tables of a database whose catalogue was checked."""

    def table(name: str, **instead: str) -> duckdb.DuckDBPyRelation:
        columns = catalogue.columns[schema, name] or {}
        chosen = ", ".join(instead.get(column, f'"{column}"') for column in columns)
        return db.sql(f"SELECT {chosen} FROM old.{schema}.{name}")

    meta = read_meta(_catalogue.meta_table(db, schema))
    if meta["version"] != catalogue.version:
        raise UnreadableError("the state to return to has another format")
    empty = "n_samples" not in meta
    views = small_table(table("views"))
    _check.check_views(views, empty=empty)
    _check.check_claims(small_table(table("arrays", data="octet_length(data) AS bytes")))
    arrays = small_table(table("arrays"))
    log = small_table(table("log")) if meta["version"] > 1 else None
    (n_samples,) = db.sql(f"SELECT count(*) FROM old.{schema}.samples").fetchall()[0]
    types = catalogue.columns[schema, "samples"] or {}
    _check.check_meta(meta, n_samples, types)
    steps = small_table(table("steps")) if meta["version"] > 2 else None
    n_steps = len(views) if steps is None else _check.check_steps(steps)
    rows = batches_of(db, f"old.{schema}.samples", list(types))
    samples = _check.checked(rows, len(views), n_steps)
    state = from_tables(meta, views, arrays, samples, log, steps)
    _check.check_state(state)
    return state


# -- questions


@contextmanager
def asked(
    path: StrPath, columns: Sequence[str], small: Sequence[str]
) -> Iterator[tuple[duckdb.DuckDBPyConnection, dict[str, Any]]]:
    """Open a file for questions; see `viewfold.store.queries.opened`."""
    with opened(path) as (db, catalogue):
        check_schema(db, catalogue, "main", path)
        meta = read_meta(_catalogue.meta_table(db, "main"))
        if meta["version"] == FORMAT:
            check(db, meta, "main", _present(meta, columns), small)
            db.execute("USE old.main")
            yield db, meta
            return
    state = read(path)
    assert state is not None
    made = to_tables(state)
    with duckdb.connect(":memory:") as db:
        for name, table in made.items():
            put(db, name, table)
        yield db, read_meta(made["meta"])


def check(
    db: duckdb.DuckDBPyConnection,
    meta: dict[str, Any],
    schema: str,
    columns: Sequence[str],
    small: Sequence[str],
) -> None:
    """Compare tables with their digests.

    Raises
    ------
    UnreadableError
        If one is not as it was written.
    """
    found: dict[str, Any] = {
        name: digests.of_table(small_table(db.sql(f"FROM old.{schema}.{name}"))) for name in small
    }
    known = meta["digests"]
    if any(known[name] != found[name] for name in small):
        raise UnreadableError(CHANGED)
    if columns and "n_samples" in meta:
        digest = digests.Columns()
        for rows in batches_of(db, f"old.{schema}.samples", columns):
            digest.add(rows)
        of_columns = digest.found()
        if not of_columns or not of_columns.items() <= known["samples"].items():
            raise UnreadableError(CHANGED)


def _present(meta: dict[str, Any], columns: Sequence[str]) -> list[str]:
    """Return columns, and with mixed ids the one that tells them apart."""
    return [*columns, *(["id_is_int"] if "id" in columns and meta.get("ids") == "mixed" else [])]


# -- states to return to


def held(path: StrPath) -> Held:
    """Return what a file holds to return to."""
    with opened(path) as (db, catalogue):
        log = _log_of(db, catalogue, "main", path)
        return Held(log, number_kept(db), _states(db, catalogue, path))


def listed(path: StrPath) -> list[dict[str, Any]]:
    """Return what there is to say about the states that a file can be returned to."""
    with opened(path) as (db, catalogue):
        return [
            {**state.facts(), "bytes": _bytes(db, catalogue, state.schema)}
            for state in _states(db, catalogue, path)
        ]


def _states(
    db: duckdb.DuckDBPyConnection, catalogue: _catalogue.Catalogue, path: StrPath
) -> tuple[Kept, ...]:
    found = []
    for schema in catalogue.kept:
        try:
            with understood(Path(path), threading.Event()):
                found.append(Kept(schema, _log_of(db, catalogue, schema, path)))
        except StateFileError as error:
            found.append(Kept(schema, wrong=str(error)))
    return tuple(found)


def _log_of(
    db: duckdb.DuckDBPyConnection, catalogue: _catalogue.Catalogue, schema: str, path: StrPath
) -> Log:
    if catalogue.version == 1:
        check_schema(db, catalogue, schema, path)
        return get(db, catalogue, schema).log
    _catalogue.check_tables(catalogue, schema)
    _catalogue.check_sizes(db, schema, ("meta", "log"), os.stat(path).st_size)
    check(db, read_meta(_catalogue.meta_table(db, schema)), schema, (), ("log",))
    return events_of(small_table(db.sql(f"FROM old.{schema}.log ORDER BY entry")))


def _bytes(db: duckdb.DuckDBPyConnection, catalogue: _catalogue.Catalogue, schema: str) -> int:
    """Return what the blocks of the file take that hold a state."""
    every = " UNION ALL ".join(
        "SELECT unnest(list_append(additional_block_ids, block_id)) AS block "
        f"FROM pragma_storage_info('old.{schema}.{table}')"
        for table in _catalogue.FORMATS[catalogue.version]
        if (schema, table) in catalogue.columns
    )
    if not every:
        return 0
    found = db.sql(
        f"SELECT (SELECT count(DISTINCT block) FROM ({every}) WHERE block >= 0) * block_size "
        "FROM pragma_database_size() WHERE database_name = 'old'"
    )
    return int(found.fetchall()[0][0])


def known_to(path: StrPath, ids: Sequence[str]) -> dict[str, list[Any]]:
    """Return samples of any state of a file, by how their ids are written.

    A state that is damaged is passed over.
    """
    found: dict[str, list[Any]] = {}
    with opened(path) as (db, catalogue):
        for schema in ("main", *catalogue.kept):
            try:
                with understood(Path(path), threading.Event()):
                    check_schema(db, catalogue, schema, path)
                    mixed = "id_is_int" in (catalogue.columns[schema, "samples"] or {})
                    rows = db.execute(
                        f"SELECT id::VARCHAR, {'id_is_int' if mixed else 'NULL'}, id "
                        f"FROM old.{schema}.samples WHERE id::VARCHAR IN (SELECT unnest($1))",
                        [list(ids)],
                    ).fetchall()
            except StateFileError:
                continue
            for text, is_int, value in rows:
                found.setdefault(text, []).append(int(text) if is_int else value)
    return found
