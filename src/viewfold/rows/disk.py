"""The engine of one machine for more than its memory holds: buckets in files, a few at a time."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
import uuid
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any

from viewfold._util.watch import counted
from viewfold.rows import plain as _plain
from viewfold.rows._tasks import Task
from viewfold.rows._threads import blas_on_one_thread, in_order
from viewfold.rows.buckets import BucketEngine

PREFIX = "viewfold-"
LOCK = "lock"


class DiskEngine(BucketEngine):
    """Rows are in files of this machine; as many buckets are in memory as there are threads.

    Parameters
    ----------
    n_buckets : int, default=64
        How many buckets there are.
    folder : str, optional
        Where files are made that are needed for a while; the system's folder for such files if not
        given. They are removed when nobody needs them, and those of a program that was killed by
        the next engine there.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import ViewFold
    >>> from viewfold.rows import DiskEngine, using
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> with using(DiskEngine(n_buckets=4)):
    ...     model = ViewFold(2, random_state=0).fit(X)
    ...     frame = model.to_frame()
    >>> frame["cluster"].equals(ViewFold(2, random_state=0).fit(X).to_frame()["cluster"])
    True
    """

    def __init__(self, n_buckets: int = 64, folder: str | None = None) -> None:
        super().__init__(scratch_folder(folder, self), n_buckets)

    @property
    def n_workers(self) -> int:
        """How many buckets are worked on at a time."""
        with blas_on_one_thread() as threads:
            return threads

    def run(self, task: Task, items: Sequence[Any], combine: Callable[[Any, Any], Any]) -> Any:
        """Do a task for each item on a few threads, and combine the results in order."""
        with blas_on_one_thread() as threads:
            results = in_order(task, items, threads)
            return reduce(combine, counted(results, len(items), 1, "buckets"))


def scratch_folder(parent: str | None, user: object) -> str:
    """Make a folder that is removed with its user, and remove those whose program was killed.

    Parameters
    ----------
    parent : str or None
        In which folder: a path, or an address that fsspec knows; the system's for temporary files
        if None. At an address, what a program that was killed has left is not removed.
    user : object
        Who needs it.
    """
    parent = parent or tempfile.gettempdir()
    if _plain.is_remote(parent):
        path = f"{parent.rstrip('/')}/{PREFIX}{uuid.uuid4().hex}"
        weakref.finalize(user, _plain.remove, path)
        return path
    os.makedirs(parent, exist_ok=True)
    # On a disk that machines share, locks may hold for one machine only: each removes its own.
    prefix = PREFIX + re.sub(r"\W", "", platform.node()) + "-"
    for name in os.listdir(parent):
        if name.startswith(prefix) and os.path.exists(os.path.join(parent, name, LOCK)):
            _remove_if_left(os.path.join(parent, name))
    path = tempfile.mkdtemp(prefix=prefix, dir=parent)
    try:
        lock = _locked(path)
    except (
        OSError
    ):  # this disk has no locks: without the file, nobody takes it for one that is left
        os.unlink(os.path.join(path, LOCK))
        weakref.finalize(user, _plain.remove, path)
        return path
    if lock is None:  # somebody took it for one that was left, before it was locked
        return scratch_folder(parent, user)
    weakref.finalize(user, _end, path, lock)
    return path


def _locked(path: str) -> int | None:
    """Return a file that is locked as long as this program lives; None if another has it.

    Raises an OSError where there are no locks.
    """
    try:
        lock = os.open(os.path.join(path, LOCK), os.O_CREAT | os.O_RDWR, 0o600)
    except OSError:  # it is another user's, or gone by now
        return None
    try:
        _lock(lock)
        if os.path.exists(os.path.join(path, LOCK)):
            return lock
    except (BlockingIOError, PermissionError):
        pass
    except OSError:
        os.close(lock)
        raise
    os.close(lock)
    return None


def _lock(file: int) -> None:
    if sys.platform == "win32":  # a folder in use cannot be removed there
        return
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_if_left(path: str) -> None:
    """Remove a folder that no living program holds."""
    with suppress(OSError):
        lock = _locked(path)
        if lock is not None:
            _end(path, lock)


def _end(path: str, lock: int) -> None:
    _plain.remove(path)
    os.close(lock)
