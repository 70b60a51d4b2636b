"""Files are never changed in place: a new one is written beside and takes the old one's place.

Every file that viewfold writes, state or output, goes this way. It is brought to the disk before it
is renamed, keeps owner, group and mode, and what a killed process left is cleared by the next one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from viewfold.errors import NO_LOCKS

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PRIVATE = 0o600  # mode of a new file that follows no other

# What this process has written, in order: states, files or folders, and outputs. The one place that
# knows: an error or Ctrl-C may come when a change is done for good.
written: list[str] = []


@contextmanager
def replacing(
    path: str | os.PathLike[str],
    *,
    like: str | os.PathLike[str] | None = None,
    mode: int | None = PRIVATE,
    ready: Callable[[], None] | None = None,
    folder: Path | None = None,
) -> Iterator[Path]:
    """Give a path to write to; when the block succeeds, that file takes the place of another.

    If the block fails, nothing has happened. The draft has the same name, in a folder of its own
    beside the file (`folder`, or any that is not there yet); a path that is no regular file, such
    as a pipe, is written to as it is. A file that is replaced keeps owner, group and mode; a new
    one takes after `like`, or gets `mode` (None for what the system gives). `ready` is called when
    the draft is on the disk, and may refuse.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}. Make it first.")
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder. Give the name of a file.")
    if target.exists() and not target.is_file():
        yield target
        return
    with workshop(target, folder) as made:
        draft = made / target.name
        yield draft
        model = next((p for p in (target, like) if p and os.path.exists(p)), None)
        if model is not None:
            _take_after(draft, model)
        elif mode is not None:
            draft.chmod(mode)
        flush(draft)
        if ready is not None:
            ready()
        try:
            os.replace(draft, target)
        finally:  # Ctrl-C may come between the renaming and the next line
            if not draft.exists():
                written.append(str(target))
        flush(target.parent)


def _take_after(draft: Path, model: str | os.PathLike[str]) -> None:
    """Give a file the owner, group and mode of another, as far as that is allowed."""
    wanted = os.stat(model)
    mode = stat.S_IMODE(wanted.st_mode) & (0o666 if stat.S_ISDIR(wanted.st_mode) else 0o777)
    if hasattr(os, "chown"):
        with contextlib.suppress(PermissionError):
            os.chown(draft, -1, wanted.st_gid)
        with contextlib.suppress(PermissionError):  # only root may give files away
            os.chown(draft, wanted.st_uid, -1)
        if draft.stat().st_gid != wanted.st_gid:
            mode &= 0o707  # the rights of one group are not those of another
    draft.chmod(mode)


def flush(path: Path) -> None:
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        sync(handle, path)
    finally:
        os.close(handle)


def sync(handle: int, path: str | os.PathLike[str]) -> None:
    """Wait until an open file is on the disk; an error says which file it is, as others do."""
    try:
        os.fsync(handle)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


# -- folders to write in


@contextmanager
def workshop(target: Path, wanted: Path | None = None) -> Iterator[Path]:
    """Make a folder beside a path; it is locked, so that others know that somebody works there."""
    clear(target)
    while True:
        if wanted is None:
            name = tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        else:
            wanted.mkdir(0o700)
        folder, lock = Path(name) if wanted is None else wanted, None
        try:
            try:
                lock = _lock(folder)
            except (BlockingIOError, FileNotFoundError):
                continue  # cleared by another, who came between the two lines
            yield folder
            return
        finally:
            _remove(folder)
            if lock is not None:
                os.close(lock)


def clear(target: Path) -> None:
    """Remove what processes left beside a file that were killed while they wrote it."""
    left = re.compile(rf"\.{re.escape(target.name)}\.[a-z0-9_]{{8}}\.part")
    for name in os.listdir(target.parent):
        if left.fullmatch(name):
            with contextlib.suppress(OSError):
                folder = target.parent / name
                lock = _lock(folder)
                if lock is not None:
                    _remove(folder)
                    os.close(lock)


def _lock(folder: Path) -> int | None:
    """Lock a folder: None where there are no such locks, BlockingIOError if another has it."""
    if fcntl is None:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        if error.errno in (errno.EBADF, *NO_LOCKS):  # on some network drives
            return None
        raise
    try:
        os.stat(folder)  # who had the lock a moment ago may have removed it
    except FileNotFoundError:
        os.close(handle)
        raise
    return handle


def _remove(folder: Path) -> None:
    """Remove a folder; what fails once is tried again, and then left to the next writer."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
