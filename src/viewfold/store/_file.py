"""Write and read a ``.vf`` file: a DuckDB database of all a model has learned, no row of a view.

A file is never changed in place. A new one is written beside it and takes its place in one step, so
that readers see the state before or after, are never kept waiting, and a crash leaves no trace.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from viewfold._replace import replacing
from viewfold.errors import UnreadableError
from viewfold.store import _catalogue, _check
from viewfold.store._database import STORAGE, check_is_ours, making, reading, understood
from viewfold.store._lock import own_turn
from viewfold.store.tables import FORMAT, from_tables, read_meta, to_tables

if TYPE_CHECKING:
    from viewfold.core.state import State


def write(
    path: str | os.PathLike[str],
    state: State,
    *,
    before: State | None = None,
    unchanged: bool = False,
) -> None:
    """Write a file, or replace one, in a single step.

    Parameters
    ----------
    path : path
        Where to. Only the owner may read a new file; a file that is replaced keeps its mode.
    state : State
        What to write.
    before : State, optional
        The state that `undo` returns to.
    unchanged : bool, default=False
        Whether that is the state which the file holds now: then its tables are copied.
    """
    target = Path(os.path.realpath(path))
    copy = unchanged and target.exists()
    with own_turn(target) as turn, understood(target, None):
        if target.exists():
            check_is_ours(target)
        try:
            with (
                replacing(target, ready=turn.check) as draft,
                making(draft, target, _layout(state), copy=copy) as db,
            ):
                _put(db, "main", state)
                if before is not None:
                    db.execute("CREATE SCHEMA new.undo")
                    if not (copy and _copied(db, target)):
                        _put(db, "undo", before)
                db.execute("CHECKPOINT new")
        except FileNotFoundError:
            turn.check()  # another writer that should not be there may have cleared the folder
            raise
        turn.written()


def read(path: str | os.PathLike[str], *, before: bool = False) -> State | None:
    """Read a file.

    Parameters
    ----------
    path : path
        The file.
    before : bool, default=False
        Whether to read the state that `undo` returns to instead.

    Returns
    -------
    State or None
        None if there is no state to return to.

    Raises
    ------
    StateFileError
        If the file is damaged, foreign or of a newer version.
    """
    schema = "undo" if before else "main"
    with opened(path) as (db, catalogue):
        if before and not catalogue.has_undo:
            return None
        check_schema(db, catalogue, schema, path)
        return _get(db, catalogue, schema)


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
    small = state.embedding.nbytes < 2**23
    return f"STORAGE_VERSION '{STORAGE}', BLOCK_SIZE {2**14 if small else 2**18}"


def _put(db: duckdb.DuckDBPyConnection, schema: str, state: State) -> None:
    for name, table in to_tables(state).items():
        db.register("incoming", table)
        db.execute(f"CREATE TABLE new.{schema}.{name} AS FROM incoming")
        db.unregister("incoming")
    _add_history(db, schema)


def _copied(db: duckdb.DuckDBPyConnection, target: Path) -> bool:
    """Copy the state of a file to where undo looks for it, with its digests.

    False if the file has an earlier format: both states of a file have the same one.
    """
    catalogue = _catalogue.check(db, FORMAT)
    if catalogue.version != FORMAT:
        return False
    check_schema(db, catalogue, "main", target)
    for name in _catalogue.FORMATS[FORMAT]:
        db.execute(f"CREATE TABLE new.undo.{name} AS FROM old.main.{name}")
    _add_history(db, "undo")
    return True


def _add_history(db: duckdb.DuckDBPyConnection, schema: str) -> None:
    db.execute(f"CREATE VIEW new.{schema}.labels_history AS {HISTORY.format(schema)}")


def _get(db: duckdb.DuckDBPyConnection, catalogue: _catalogue.Catalogue, schema: str) -> State:
    """Read the tables of a database whose catalogue was checked."""

    def table(name: str, **instead: str) -> duckdb.DuckDBPyRelation:
        columns = catalogue.columns[schema, name] or {}
        chosen = ", ".join(instead.get(column, f'"{column}"') for column in columns)
        return db.sql(f"SELECT {chosen} FROM old.{schema}.{name}")

    meta = read_meta(_catalogue.meta_table(db, schema))
    if meta["version"] != catalogue.version:
        raise UnreadableError("the state to return to has another format")
    empty = "n_samples" not in meta
    views = table("views").to_arrow_table()
    _check.check_views(views, empty=empty)
    _check.check_claims(table("arrays", data="octet_length(data) AS bytes").to_arrow_table())
    arrays = table("arrays").to_arrow_table()
    log = table("log").to_arrow_table() if meta["version"] > 1 else None
    (n_samples,) = db.sql(f"SELECT count(*) FROM old.{schema}.samples").fetchall()[0]
    _check.check_meta(meta, n_samples, catalogue.columns[schema, "samples"] or {})
    steps = table("steps").to_arrow_table() if meta["version"] > 2 else None
    n_steps = len(views) if steps is None else _check.check_steps(steps)
    rows = pa.RecordBatchReader.from_stream(table("samples"))
    samples = _check.checked(rows, len(views), n_steps)
    state = from_tables(meta, views, arrays, samples, log, steps)
    _check.check_state(state)
    return state
