"""Count how often the files of a folder are opened, by whatever library or process."""

from __future__ import annotations

import ctypes
import os
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ACCESS, CLOSE, OPEN, OVERFLOW, IS_FOLDER = 0x1, 0x18, 0x20, 0x4000, 0x40000000  # inotify(7)


@contextmanager
def opened(folder: Path) -> Iterator[Counter[str]]:
    """Count, until the end of the block, how often each file in a folder is opened, by its path.

    The kernel counts, so that DuckDB, Arrow and processes of their own count as well.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    # Two events in a row that are the same are told once: reading and closing stand between them.
    asked = OPEN | ACCESS | CLOSE
    watched = {libc.inotify_add_watch(watch, os.fsencode(path), asked): path for path in folders}
    assert min(watched) >= 0
    found: Counter[str] = Counter()
    try:
        yield found
        while events := _read(watch):
            while events:
                number, mask, _, length = struct.unpack_from("iIII", events)
                assert not mask & OVERFLOW
                name, events = events[16 : 16 + length].rstrip(b"\0"), events[16 + length :]
                if mask & OPEN and not mask & IS_FOLDER:
                    path = watched[number] / os.fsdecode(name)
                    found[path.relative_to(folder).as_posix()] += 1
    finally:
        os.close(watch)


def _read(watch: int) -> bytes:
    try:
        return os.read(watch, 1 << 16)
    except BlockingIOError:
        return b""
