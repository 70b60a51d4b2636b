"""Writers of one state take turns: the library filelock locks a file beside the state.

The system releases the lock when a process ends. A writer whose lock file was removed, or who finds
that the state is not the one it read, must not write.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from viewfold._util.replace import clear
from viewfold.errors import NO_LOCKS, BusyError, without_locks

POLL = 0.02  # seconds between two tries

Identity = tuple[int, ...] | None

_writers: set[tuple[str, int]] = set()  # the states that threads of this process write

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_writers.clear)  # a turn is not inherited


class Turn:
    """The right to write a state, while it lasts."""

    def __init__(self, target: Path, lock: Path) -> None:
        self.target, self.lock = target, lock
        self._lock_was, self._target_was = identity(lock), identity(target)

    def check(self) -> None:
        """Refuse to go on if the turn is lost, or if another program changed the state."""
        if self._lock_was is None or (identity(self.lock) or ())[:2] != self._lock_was[:2]:
            raise BusyError(
                f"The lock of {self.target.name} ({self.lock.name}) was removed while this program "
                "held it, so another one may be writing. Nothing was written: try again."
            )
        if identity(self.target) != self._target_was:
            raise BusyError(
                f"{self.target.name} was changed by another program since it was read. Nothing "
                "was written: try again."
            )

    def note_written(self) -> None:
        self._target_was = identity(self.target)


def identity(path: str | os.PathLike[str]) -> Identity:
    """Return what tells a file from any that takes its place; None if there is none.

    The content of a folder changes while it is written: there, the numbers of manifests tell.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def only_once(address: str) -> Iterator[None]:
    """Refuse to write a state that this thread is writing already: it would wait for itself."""
    me = address, threading.get_ident()
    if me in _writers:
        raise BusyError(
            f"{address.replace(os.sep, '/').rpartition('/')[2]} is being edited by this very "
            "program: the block that does must end before it can be written otherwise."
        )
    _writers.add(me)
    try:
        yield
    finally:
        _writers.discard(me)


@contextmanager
def writing(path: str | os.PathLike[str], wait: float = 60) -> Iterator[Turn]:
    """Keep other writers away; wait so many seconds for one that came before."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}. Make it first.")
    lock = _lock_file(target)
    with only_once(str(target)):
        _make(lock, target)
        held = FileLock(lock, thread_local=False)
        try:
            # Whoever asks `is_held` has the lock for a moment, and does not count as a writer.
            held.acquire(timeout=max(wait, 5 * POLL), poll_interval=POLL)
        except Timeout:
            raise BusyError(
                f"{target.name} is being written by another program, which was not done after "
                f"{wait:g} s. Try again when it is."
            ) from None
        except (OSError, NotImplementedError) as error:
            if isinstance(error, NotImplementedError) or error.errno in NO_LOCKS:
                raise without_locks(target.name) from None
            raise
        try:
            clear(target)
            yield Turn(target, lock)
        finally:
            try:
                held.release()
            except OSError:
                held.release(force=True)  # or this process keeps the lock until it is collected
                raise


def is_held(path: str | os.PathLike[str]) -> bool | None:
    """Tell whether another program writes a state now; None if this user may not find out."""
    target = os.path.realpath(path)
    lock = _lock_file(Path(target))
    if any(address == target for address, _ in list(_writers)) or not lock.exists():
        return False
    try:
        with FileLock(lock, timeout=0, thread_local=False):
            return False
    except Timeout:
        return True
    except (OSError, NotImplementedError):
        return None


def _lock_file(target: Path) -> Path:
    return target.parent / f".{target.name}.lock"


def _make(lock: Path, target: Path) -> None:
    """Make the lock file; whoever may write the state may lock it."""
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    except PermissionError:
        if not os.access(target, os.W_OK):
            raise PermissionError(
                errno.EACCES, f"You may not write to {target.name}. Ask its owner for the right"
            ) from None
        os.unlink(lock)  # made before others got rights; who holds it will find out
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not hasattr(os, "fchown") or not target.exists():
            return
        wanted, now = target.stat(), os.fstat(handle)
        mode = stat.S_IMODE(wanted.st_mode) & 0o666 | 0o600
        with contextlib.suppress(PermissionError):
            if (now.st_uid, now.st_gid) != (wanted.st_uid, wanted.st_gid):
                os.fchown(handle, wanted.st_uid, wanted.st_gid)
        with contextlib.suppress(PermissionError):
            if stat.S_IMODE(now.st_mode) != mode:
                os.fchmod(handle, mode)
    finally:
        os.close(handle)
