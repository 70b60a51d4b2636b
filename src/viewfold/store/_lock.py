"""Writers of one file take turns, first come, first served.

A writer takes the next number and locks that byte of a lock file beside the state; it is its turn
when nobody holds a lower one. The system releases the locks of a process that ends. A writer that
lost the lock file, or finds that the state is not the one from the start, must not write.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from viewfold._util.replace import clear
from viewfold.errors import NO_LOCKS, BusyError, without_locks

POLL = 0.02
"""Seconds between two looks at whose turn it is."""

FIRST, LAST = 1, 2**30
"""Place of the byte that belongs to number 0, and the highest number. The file stays empty."""

Identity = tuple[int, ...] | None


class Turn:
    """The right to write a file, while it lasts.

    Parameters
    ----------
    target : Path
        The state.
    lock : Path
        Its lock file.
    handle : int
        The lock file, open.
    """

    def __init__(self, target: Path, lock: Path, handle: int) -> None:
        self.target, self.lock, self.handle = target, lock, handle
        self.found = identity(target)

    def check(self) -> None:
        """Refuse to go on if the turn is lost, or if another program changed the state meanwhile.

        Raises
        ------
        BusyError
        """
        if not _same(self.lock, self.handle):
            raise BusyError(
                f"The lock of {self.target.name} ({self.lock.name}) was removed while this program "
                "held it, so another one may be writing. Nothing was written: try again."
            )
        if identity(self.target) != self.found:
            raise BusyError(
                f"{self.target.name} was changed by another program since it was read. Nothing "
                "was written: try again."
            )

    def written(self) -> None:
        """Take note that the state is now what was written in this turn."""
        self.found = identity(self.target)


def identity(path: str | os.PathLike[str]) -> Identity:
    """Return what tells a file from any that takes its place; None if there is none.

    What is in a folder changes while it is written: there, the numbers of manifests tell.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


_threads = threading.Condition()
_waiting: dict[Path, deque[int]] = {}
_turns: dict[tuple[Path, int], Turn] = {}


def _forget() -> None:
    """Start without turns in a process that was forked: they are not inherited."""
    global _threads
    _threads = threading.Condition()
    for turn in _turns.values():
        os.close(turn.handle)  # or the lock would last as long as this process, too
    _waiting.clear()
    _turns.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@contextmanager
def writing(path: str | os.PathLike[str], wait: float = 60) -> Iterator[Turn]:
    """Keep other writers away; wait some seconds for those who came before.

    Parameters
    ----------
    path : path
        The state.
    wait : float, default=60
        Seconds to wait.

    Yields
    ------
    Turn

    Raises
    ------
    BusyError
        If the time was not enough, or if this thread is writing the file already.
    """
    target = Path(os.path.realpath(path))
    me = target, threading.get_ident()
    if me in _turns:
        raise BusyError(
            f"{target.name} is being edited by this very program: the block that does must end "
            "before the file can be written otherwise."
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}. Make it first.")
    until = time.monotonic() + wait
    with _only_thread(target, until) as alone:
        turn = _take(target, until) if alone else None
        if turn is None:
            raise BusyError(
                f"{target.name} is being written by another program, which was not done after "
                f"{wait:g} s. Try again when it is."
            )
        _turns[me] = turn
        try:
            clear(target)
            yield turn
        finally:
            if _turns.pop(me, None):  # not in a process that was forked meanwhile
                os.close(turn.handle)


@contextmanager
def own_turn(target: Path) -> Iterator[Turn]:
    """Give the turn that this thread has, or wait for one."""
    turn = _turns.get((target, threading.get_ident()))
    if turn is not None:
        yield turn
        return
    with writing(target) as turn:
        yield turn


def is_held(path: str | os.PathLike[str]) -> bool | None:
    """Tell whether another program writes a file now; None where looking would disturb it.

    Examples
    --------
    >>> import tempfile
    >>> from viewfold.store._lock import is_held
    >>> is_held(tempfile.mkdtemp() + "/a.vf") in (False, None)
    True
    """
    target = Path(os.path.realpath(path))
    if any(of == target for of, _ in list(_turns)):
        return False
    try:
        handle = os.open(target.parent / f".{target.name}.lock", os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        return _is_locked(handle)
    finally:
        os.close(handle)


@contextmanager
def _only_thread(target: Path, until: float) -> Iterator[bool]:
    """Let threads of this process queue first: to the system they are one."""
    me = threading.get_ident()
    with _threads:
        queue = _waiting.setdefault(target, deque())
        queue.append(me)
    try:
        with _threads:
            left = max(until - time.monotonic(), 0)
            first = _threads.wait_for(lambda: queue[0] == me, left)
        yield first
    finally:
        with _threads:
            queue.remove(me)
            if not queue:
                _waiting.pop(target, None)
            _threads.notify_all()


# -- among processes


def _take(target: Path, until: float) -> Turn | None:
    """Wait for a turn; None if it did not come in time."""
    lock = target.parent / f".{target.name}.lock"
    while True:
        handle = _open(lock, target)
        try:
            if not _queue(handle, until):
                os.close(handle)
                return None
            if _same(lock, handle):
                return Turn(target, lock, handle)
        except BaseException as error:
            os.close(handle)
            if isinstance(error, OSError) and error.errno in NO_LOCKS:
                raise without_locks(target.name) from None
            raise
        os.close(handle)  # somebody removed the file: others may queue at a new one


def _open(lock: Path, target: Path) -> int:
    """Open the lock file; whoever may write the state may lock it."""
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
            break
        except PermissionError:
            if not os.access(target, os.W_OK):
                raise PermissionError(
                    errno.EACCES, f"You may not write to {target.name}. Ask its owner for the right"
                ) from None
            os.unlink(lock)  # made before others got rights; who holds it will find out
    if hasattr(os, "fchown") and target.exists():
        wanted, now = target.stat(), os.fstat(handle)
        mode = stat.S_IMODE(wanted.st_mode) & 0o666 | 0o600
        with contextlib.suppress(PermissionError):
            if (now.st_uid, now.st_gid) != (wanted.st_uid, wanted.st_gid):
                os.fchown(handle, wanted.st_uid, wanted.st_gid)
        with contextlib.suppress(PermissionError):
            if stat.S_IMODE(now.st_mode) != mode:
                os.fchmod(handle, mode)
    return handle


def _same(lock: Path, handle: int) -> bool:
    """Tell whether an open lock file is still the one that others find."""
    try:
        return os.path.samestat(lock.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _queue(handle: int, until: float) -> bool:
    """Take a number and wait until all lower ones are done; False if that took too long."""
    if not _wait(handle, 0, 1, until):  # numbers are taken one at a time
        return False
    number = _next(handle)
    _try(handle, FIRST + number, 1)
    _release(handle, 0, 1)
    return _wait(handle, FIRST, number, until)


def _next(handle: int) -> int:
    """Return the lowest number from which on all are free: whoever waits has a lower one."""
    taken, free = 0, 1
    step = 1
    while not _free_from(handle, free):
        taken, step = free, 2 * step
        free += step
    while free - taken > 1:
        middle = (taken + free) // 2
        taken, free = (taken, middle) if _free_from(handle, middle) else (middle, free)
    return free


def _free_from(handle: int, number: int) -> bool:
    if not _try(handle, FIRST + number, LAST - number):
        return False
    _release(handle, FIRST + number, LAST - number)
    return True


def _wait(handle: int, start: int, length: int, until: float) -> bool:
    while not _try(handle, start, length):
        left = until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(POLL, left))
    return True


try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    def _try(handle: int, start: int, length: int) -> bool:
        """Lock some bytes of a file, unless another process has locked one of them."""
        os.lseek(handle, start, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, length)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True

    def _release(handle: int, start: int, length: int) -> None:
        os.lseek(handle, start, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, length)  # type: ignore[attr-defined]

    def _is_locked(handle: int) -> bool | None:
        return None  # one can only try to lock it

else:
    # Locks that belong to the open file where there are any: those that belong to the process are
    # gone as soon as any code in it opens the lock file and closes it again.
    OPEN_FILE = sys.platform == "linux" and sys.maxsize > 2**32 and hasattr(fcntl, "F_OFD_SETLK")

    def _set(handle: int, kind: int, start: int, length: int) -> None:
        if OPEN_FILE:
            asked = struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0)
            fcntl.fcntl(handle, fcntl.F_OFD_SETLK, asked)
        else:
            act = fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB
            fcntl.lockf(handle, act, length, start)

    def _try(handle: int, start: int, length: int) -> bool:
        """Lock some bytes of a file, unless another process has locked one of them."""
        try:
            _set(handle, fcntl.F_WRLCK, start, length)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise
        return True

    def _release(handle: int, start: int, length: int) -> None:
        _set(handle, fcntl.F_UNLCK, start, length)

    def _is_locked(handle: int) -> bool | None:
        """Tell whether any number is taken, without taking one."""
        if not OPEN_FILE:  # closing the file would release what this process has locked
            return None
        asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, FIRST, LAST, 0)
        found = fcntl.fcntl(handle, fcntl.F_OFD_GETLK, asked)
        return bool(struct.unpack("hhqqi4x", found)[0] != fcntl.F_UNLCK)
