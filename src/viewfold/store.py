"""The ``.vf`` file: one DuckDB database that holds all a model has learned, and no row of a view.

A file is never changed in place. A new one is written beside it and takes its place in one step, so
that readers see the state before or after, are never kept waiting, and a crash leaves no trace.
Writers take turns. The tables are described in docs/format.md.
"""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from filelock import FileLock, Timeout

from viewfold.tables import Saved, UnreadableError, from_tables, read_meta, to_tables

STORAGE = "v1.2.0"
"""Every DuckDB from this one on can open the files."""

_one_reader_at_a_time = threading.Lock()


class StateFileError(ValueError):
    """A ``.vf`` file that cannot be used: damaged, foreign, too new, or being written."""


def write(path: str | os.PathLike[str], saved: Saved, *, before: Saved | None = None) -> None:
    """Write a file, or replace one, in a single step.

    Parameters
    ----------
    path : path
        Where to. Only the owner may read a new file; a file that is replaced keeps its mode.
    saved : Saved
        What to write.
    before : Saved, optional
        The state that `undo` returns to.
    """
    target = Path(os.path.realpath(path))
    if target.exists():
        _check_is_ours(target)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}. Make it first.")
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    workshop = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    try:
        draft = workshop / "draft.vf"
        with _database(draft, "new", _layout(saved)) as db:
            _put(db, "main", saved)
            if before is not None:
                db.execute("CREATE SCHEMA new.undo")
                _put(db, "undo", before)
            db.execute("CHECKPOINT new")
        draft.chmod(mode)
        _flush(draft)
        os.replace(draft, target)
        _flush(target.parent)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def read(path: str | os.PathLike[str], *, before: bool = False) -> Saved | None:
    """Read a file.

    Parameters
    ----------
    path : path
        The file.
    before : bool, default=False
        Whether to read the state that `undo` returns to instead.

    Returns
    -------
    Saved or None
        None if there is no state to return to.

    Raises
    ------
    StateFileError
        If the file is damaged, foreign or of a newer version.
    """
    with reading(path) as db:
        if before and not has_undo(db):
            return None
        return _get(db, "undo" if before else "main")


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a file for SQL, read-only, as the database ``old``; errors are told as `read` does."""
    target = Path(os.path.realpath(path))
    _check_is_ours(target)
    with _understood(target), _one_reader_at_a_time, _database(target, "old", "READ_ONLY") as db:
        yield db


def has_undo(db: duckdb.DuckDBPyConnection) -> bool:
    """Tell whether a file that was opened holds the state that `undo` returns to."""
    schemas = "SELECT 1 FROM duckdb_schemas() WHERE database_name = 'old'"
    return bool(db.sql(f"{schemas} AND schema_name = 'undo'").fetchall())


@contextmanager
def writing(path: str | os.PathLike[str], wait: float = 60) -> Iterator[None]:
    """Keep other writers away; wait some seconds for one that is at work."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}. Make it first.")
    lock = FileLock(target.parent / f".{target.name}.lock", timeout=wait, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        raise StateFileError(
            f"{target.name} is being written by another program, which was not done after "
            f"{wait:g} s. Try again when it is."
        ) from None
    try:
        for left_by_a_crash in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
            shutil.rmtree(left_by_a_crash, ignore_errors=True)
        yield
    finally:
        lock.release()


HISTORY = """
SELECT id, entry, what, view, time,
       CASE WHEN entry > added THEN history[fold - 1] END AS previous, history[fold] AS label
FROM (SELECT l.*, v.fold, v.entry AS folded
      FROM {0}.log l ASOF JOIN {0}.views v ON l.entry >= v.entry)
JOIN {0}.samples ON entry >= added
WHERE entry = added OR (entry = folded AND history[fold] <> history[fold - 1])
"""
"""Who came by which entry of the log, and who moved; a sample that came by an extend is in the
column of the fold before."""


def _layout(saved: Saved) -> str:
    """Return how to lay a file out; tables take whole blocks, so small files get small ones."""
    small = saved.state is None or saved.state.consensus.embedding.nbytes < 2**23
    return f"STORAGE_VERSION '{STORAGE}', BLOCK_SIZE {2**14 if small else 2**18}"


def _put(db: duckdb.DuckDBPyConnection, schema: str, saved: Saved) -> None:
    for name, table in to_tables(saved).items():
        db.register("incoming", table)
        db.execute(f"CREATE TABLE new.{schema}.{name} AS FROM incoming")
        db.unregister("incoming")
    db.execute(f"CREATE VIEW new.{schema}.labels_history AS {HISTORY.format(schema)}")


def _get(db: duckdb.DuckDBPyConnection, schema: str) -> Saved:
    def table(name: str) -> duckdb.DuckDBPyRelation:
        return db.sql(f"FROM old.{schema}.{name}")

    meta = read_meta(table("meta").to_arrow_table())
    views, arrays = (table(name).to_arrow_table() for name in ("views", "arrays"))
    log = table("log").to_arrow_table() if meta["version"] > 1 else None
    samples = pa.RecordBatchReader.from_stream(table("samples"))
    return from_tables(meta, views, arrays, samples, log)


def _check_is_ours(path: Path) -> None:
    """Refuse what is not a DuckDB file, before DuckDB sees it."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if path.is_dir():
        raise StateFileError(f"{path} is a folder, not a .vf file.")
    with path.open("rb") as file:
        if file.read(12)[8:] != b"DUCK":
            raise StateFileError(
                f"{path.name} was not written by viewfold. Choose another name, or make a file "
                "with `viewfold init` or model.save(…)."
            )
    if Path(f"{path}.wal").exists():
        raise StateFileError(
            f"{path.name} is being changed by another program, or was when that ended: there is a "
            f"{path.name}.wal beside it. Open the file once with DuckDB and close it."
        )


@contextmanager
def _understood(path: Path) -> Iterator[None]:
    """Turn whatever a damaged file leads to into one clear error."""
    try:
        yield
    except UnreadableError as error:
        raise StateFileError(f"Cannot read {path.name}: {error}.") from None
    except duckdb.IOException as error:
        if "lock" in str(error):
            raise StateFileError(
                f"{path.name} is open for writing in another program. Close it there."
            ) from None
        raise StateFileError(f"Cannot read {path.name}: {_first_line(error)}") from None
    except duckdb.ConnectionException as error:
        raise StateFileError(f"Cannot read {path.name}: {_first_line(error)}") from None
    except (
        duckdb.Error,
        pa.ArrowException,
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        TypeError,
        ValueError,
    ) as error:
        raise StateFileError(
            f"{path.name} is damaged ({_first_line(error)}). Use a copy of it."
        ) from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@contextmanager
def _database(path: Path, name: str, options: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Attach a database to a connection that can do nothing else."""
    config: Any = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    with duckdb.connect(":memory:", config=config) as db:
        quoted = str(path).replace("'", "''")
        db.execute(f"ATTACH '{quoted}' AS {name} (TYPE duckdb, {options})")
        # Whatever the file says, nothing else is read or written from here on.
        db.execute("SET enable_external_access = false")
        db.execute("SET lock_configuration = true")
        yield db


def _flush(path: Path) -> None:
    """Wait until the disk has it."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
