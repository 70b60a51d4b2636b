"""Open an untrusted DuckDB file, and say in one way what is wrong with it.

A connection can reach one file only, has limits on memory and time, and every error that DuckDB
or the system raise about the file leaves here as one of viewfold's.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from viewfold.errors import (
    FULL,
    NO_LOCKS,
    BusyError,
    DamagedFileError,
    NoSpaceError,
    StateFileError,
    UnreadableError,
    ViewfoldError,
    without_locks,
)

STORAGE = "v1.2.0"
"""Every DuckDB from this one on can open the files."""

MEMORY = 512 * 2**20, 8
"""DuckDB may take so many bytes to read a file, and so many for each byte of it."""

SECONDS = 60.0, 2e-7
"""Reading may take so many seconds, and so many for each byte of the file."""

THREADS = 2
"""Threads that DuckDB reads or writes with; more bring nothing for one table after the other."""

BESIDE = (".wal", ".wal.checkpoint", ".wal.recovery")
"""What DuckDB leaves beside a file that was not closed, and would read along with it."""


_one_reader_at_a_time = threading.Lock()


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Attach a file as ``old``, to read only, within the limits.

    Nothing in it was looked at yet; see `viewfold.store._catalogue`.
    """
    target = Path(os.path.realpath(path))
    check_is_ours(target)
    size = target.stat().st_size
    late, done = threading.Event(), threading.Event()
    with (
        understood(target, late),
        _one_reader_at_a_time,  # DuckDB does not open a file twice in one process
        _database(target, "old", "READ_ONLY") as db,
    ):
        db.execute(f"SET memory_limit = '{MEMORY[0] + MEMORY[1] * size}B'")
        _close(db)

        def watch() -> None:
            if done.wait(SECONDS[0] + SECONDS[1] * size):
                return
            late.set()
            # Again and again: an interrupt between two queries stops neither.
            while not done.wait(0.05):
                with contextlib.suppress(duckdb.Error):
                    db.interrupt()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield db
        finally:
            done.set()
            watcher.join()


@contextmanager
def making(
    draft: Path, target: Path, layout: str, *, copy: bool = False
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Attach a new file as ``new``; errors name the file whose place it is to take.

    To copy from that file, it is attached as well: as ``old``, to read only.
    """
    with (
        understood(target, None),
        _one_reader_at_a_time if copy else contextlib.nullcontext(),
        _database(draft, "new", layout) as db,
    ):
        if copy:
            _attach(db, target, "old", "READ_ONLY")
        _close(db)
        yield db


@contextmanager
def _database(path: Path, name: str, options: str) -> Iterator[duckdb.DuckDBPyConnection]:
    config: Any = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    with duckdb.connect(":memory:", config=config) as db:
        _attach(db, path, name, options)
        db.execute(f"SET threads = {THREADS}")
        yield db


def _attach(db: duckdb.DuckDBPyConnection, path: Path, name: str, options: str) -> None:
    quoted = str(path).replace("'", "''")
    db.execute(f"ATTACH '{quoted}' AS {name} (TYPE duckdb, {options})")


def _close(db: duckdb.DuckDBPyConnection) -> None:
    """Whatever the file says, nothing else is read, written or set from here on."""
    db.execute("SET enable_external_access = false")
    db.execute("SET lock_configuration = true")


def check_is_ours(path: Path) -> None:
    """Refuse what is not a DuckDB file, before DuckDB sees it."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if path.is_dir():
        raise StateFileError(f"{path} is a folder, not a .vf file.")
    if not stat.S_ISREG(path.stat().st_mode):
        raise StateFileError(f"{path} is not a file on a disk.")
    with path.open("rb") as file:
        if file.read(12)[8:] != b"DUCK":
            raise StateFileError(
                f"{path.name} was not written by viewfold. Choose another name, or make a file "
                f"with model.save(…)."
            )
    for suffix in BESIDE:
        if os.path.lexists(f"{path}{suffix}"):
            raise BusyError(
                f"{path.name} is being changed by another program, or was when that ended: there "
                f"is a {path.name}{suffix} beside it. Open the file once with DuckDB and close it."
            )


# -- one way to say what is wrong


@contextmanager
def understood(path: Path, late: threading.Event | None) -> Iterator[None]:
    """Convert every exception about a file into one of viewfold's errors.

    Parameters
    ----------
    path : Path
        The file that is read, or is to be replaced.
    late : threading.Event or None
        Tells whether time was up; None if the file is written.
    """
    try:
        yield
    except ViewfoldError:
        raise
    except UnreadableError as error:
        raise error.kind(f"Cannot read {path.name}: {error}.") from None
    except _POSSIBLE as error:
        raise _explained(path, error, late) from None


_POSSIBLE = (
    duckdb.Error,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


def _explained(path: Path, error: Exception, late: threading.Event | None) -> BaseException:
    said = (str(error).splitlines() or [""])[0] or type(error).__name__
    if late is not None and late.is_set():
        return DamagedFileError(
            f"{path.name} takes too long to read for a file of its size. It is damaged, or made to "
            "do so."
        )
    if isinstance(error, duckdb.InterruptException) or said == "Query interrupted":
        return KeyboardInterrupt()
    if _is_full(error, said):
        return NoSpaceError(f"No space is left to write {path.name}: {said}")
    if isinstance(error, OSError) and (error.errno is not None or type(error) is not OSError):
        return error  # of the system, which says itself what is wrong
    if isinstance(error, duckdb.IOException) and "Could not set lock on file" in said:
        if any(os.strerror(no) in said for no in NO_LOCKS):
            return without_locks(path.name)
        return BusyError(f"{path.name} is open for writing in another program. Close it there.")
    if late is None:  # what is written comes from memory: nothing about the file is damaged
        of_duckdb = isinstance(error, duckdb.Error)
        return OSError(f"Cannot write {path.name}: {said}") if of_duckdb else error
    if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
        said = "it needs more memory than there is for a file of its size"
    return DamagedFileError(f"{path.name} is damaged ({said}). Use a copy of it.")


def _is_full(error: Exception, said: str) -> bool:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in FULL
    return isinstance(error, duckdb.Error) and any(os.strerror(no) in said for no in FULL)
