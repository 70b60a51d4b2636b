"""Every call of a write that can fail does so once, in turn: the state is before or after, whole.

In the style of SQLite's ioerr.test: the first call fails, then the second, and so on, until one run
has none left; of the calls that one function makes, the first and the last. Nothing may be left
beside the file, and the next writer is not in anybody's way.
"""

import errno
import fcntl
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from writers import worth_failing

import viewfold
from viewfold import ViewFold, store
from viewfold._util import replace as _replace
from viewfold.errors import ViewfoldError
from viewfold.store import file

SYSTEM: list[tuple[Any, str]] = [
    (io, "open"),
    (os, "open"),
    (os, "close"),
    (os, "fsync"),
    (os, "replace"),
    (os, "mkdir"),
    (os, "chmod"),
    (os, "chown"),
    (os, "listdir"),
    (os, "unlink"),
    (os, "rmdir"),
    (shutil, "rmtree"),
    (_replace, "_lock"),
    (fcntl, "flock"),
]
OTHER = ViewFold(3).fit(np.eye(6))
DATABASE = ("execute", "executemany", "sql", "register", "unregister", "close")


Caller = tuple[str, str, str]  # the call that can fail, the file and the function that make it


class Faults:
    """Counts calls; that of a given number fails."""

    def __init__(self, at: int, error: Callable[[], BaseException]) -> None:
        self.at, self.error = at, error
        self.names: list[str] = []
        self.callers: list[Caller] = []

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def tried(*args: Any, **options: Any) -> Any:
            self.names.append(name)
            caller = sys._getframe(1)
            self.callers.append((name, caller.f_code.co_filename, caller.f_code.co_name))
            if len(self.names) == self.at:
                if name.endswith("close"):
                    call(*args, **options)  # a file that fails to close is closed all the same
                raise self.error()
            return call(*args, **options)

        return tried


class Database:
    """A connection to DuckDB whose calls are counted."""

    def __init__(self, db: Any, faults: Faults) -> None:
        self.db, self.faults = db, faults

    def __getattr__(self, name: str) -> Any:
        if name == "cursor":
            return lambda: Database(self.db.cursor(), self.faults)
        found = getattr(self.db, name)
        return self.faults.wrap(f"duckdb {name}", found) if name in DATABASE else found

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


@contextmanager
def failing(faults: Faults) -> Iterator[None]:
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        for module, name in SYSTEM:
            whole = f"{module.__name__}.{name}"
            patch.setattr(module, name, faults.wrap(whole, getattr(module, name)))

        def connect(*args: Any, **options: Any) -> Database:
            open_one = faults.wrap("duckdb connect", duckdb_connect)
            return Database(stack.enter_context(open_one(*args, **options)), faults)

        duckdb_connect = duckdb.connect
        patch.setattr(file.duckdb, "connect", connect)
        yield


def save(path: Path) -> None:
    OTHER.save(path)


def edit(path: Path) -> None:
    with viewfold.edit(path) as model:
        model.set_params(n_init=7)


def undo(path: Path) -> None:
    viewfold.undo(path)


def broken() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("good") / "a.vf"
    ViewFold(2).fit(np.eye(6)).save(path)
    for n_init in (4, 5):  # two states to return to, which an edit copies
        with viewfold.edit(path, keep=2) as model:
            model.set_params(n_init=n_init)
    return path


def run_all(
    good: Path, folder: Path, act: Callable[[Path], None], error: Any, failed_before: set[Caller]
) -> set[Caller]:
    """Let every call of an action fail, one run for each; return who makes them.

    Callers that failed before, in another action, are left out.
    """
    none = Faults(0, error)
    shutil.copy(good, folder / "after.vf")
    with failing(none):
        act(folder / "after.vf")
    before, after = good.read_bytes(), viewfold.load(folder / "after.vf").get_params()
    path = folder / "a.vf"
    for at in worth_failing(none.callers):
        if at <= len(none.callers) and none.callers[at - 1] in failed_before:
            continue
        for left in folder.iterdir():
            left.unlink()
        shutil.copy(good, path)
        faults = Faults(at, error)
        failed = False
        with failing(faults):
            try:
                act(path)
            except (OSError, ViewfoldError, KeyboardInterrupt):
                failed = True
        where = f"{act.__name__}, call {at}: {faults.names[-1]}"
        if path.read_bytes() == before:
            assert failed, where
        else:
            assert viewfold.load(path).get_params() == after, where
        assert {p.name for p in folder.iterdir()} <= {"a.vf", ".a.vf.lock"}, where
        with store.writing(path, wait=0):  # nothing is in the way of the next one
            pass
        if len(faults.names) < at:
            assert not failed
            return set(none.callers)
    raise AssertionError("not one run has all calls")


@pytest.mark.slow
def test_whatever_fails_the_state_is_before_or_after(good: Path, tmp_path: Path) -> None:
    callers = run_all(good, tmp_path, edit, broken, set())
    callers |= run_all(good, tmp_path, undo, broken, callers)
    wanted = {"os.open", "os.fsync", "os.replace", "os.mkdir", "shutil.rmtree", "duckdb execute"}
    assert wanted <= {name for name, _, _ in callers}


def test_ctrl_c_at_any_call_of_a_save_leaves_the_state_before_or_after(
    good: Path, tmp_path: Path
) -> None:
    run_all(good, tmp_path, save, KeyboardInterrupt, set())
