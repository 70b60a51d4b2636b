"""The one guard against hostile files: readers ask here before they take memory or disk.

A file of a hundred bytes can claim a matrix of terabytes, or unpack to one. What a file needs must
fit what is free, and must stand in proportion to the file's own size.
"""

from __future__ import annotations

import bz2
import gzip
import io
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

from scipy import sparse

from viewfold._util.arguments import size_in_bytes
from viewfold._util.messages import needed
from viewfold._util.watch import Tally
from viewfold.data.source import FileError

# A child process with limits would guard more, but it has no limits on Windows, takes a second to
# start, and its end does not say what to do about the file.
SETTING = "VIEWFOLD_MEMORY"
HARMLESS = 256 * 2**20  # what any file may take
RATIO = 500  # deflate reaches 1,000 on zeros; dense tables of rare words 300
LONGEST_LINE = 16 * 2**20  # of JSON and Matrix Market: one million numbers
PACKED = (".gz", ".bz2", ".zst")  # of text only: the other formats compress themselves
_PER_LINE = 240  # bytes of a sparse row or column: its pointer, and thirty numbers in a fold


class Budget:
    """What one file may take, all its parts together."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._taken = {"memory": 0, "disk": 0, "text": 0}
        self._free: dict[str, int | None] = {}

    def hold(self, size: int, what: str) -> None:
        """Ask for memory, before it is taken; what was asked for earlier counts as taken."""
        allowed = _allowed()
        if allowed is None:
            self._take(size, what, "memory", free_memory)
            return
        self._taken["memory"] += size
        if self._taken["memory"] > allowed:
            raise self._refusal(what, "memory", f"{SETTING} allows {shown(allowed)}")

    @property
    def limit(self) -> int:
        """How many bytes of memory the file may take."""
        most = _allowed() or max(HARMLESS, RATIO * os.path.getsize(self.file))
        return min(most, free_memory() or most)

    def spool(self, size: int, what: str) -> None:
        """Ask for room in a temporary file."""
        self._take(size, what, "disk", free_disk)

    def unpack(self, size: int, what: str) -> None:
        """Ask to go on with text that is read piece by piece, and not kept."""
        self._take(size, what, "text", lambda: None)

    def _take(self, size: int, what: str, where: str, free: Callable[[], int | None]) -> None:
        self._taken[where] += size
        if self._taken[where] <= HARMLESS // 16:
            return
        own = os.path.getsize(self.file)
        if self._taken[where] > max(HARMLESS, RATIO * own, _allowed() or 0):
            raise self._refusal(what, where, f"the file has {shown(own)}")
        if where not in self._free:  # as it was before anything was taken
            self._free[where] = free()
        left = self._free[where]
        if left is not None and self._taken[where] > left:
            raise self._refusal(what, where, f"{shown(left)} are free")

    def _refusal(self, what: str, where: str, why: str) -> FileError:
        size = self._taken[where]
        enough = f"{-(-size // 2**30)}G" if size > 2**30 else f"{-(-size // 2**20)}M"
        remedy = f"allow that much: {SETTING}={enough}"
        if where == "disk" and "free" in why:
            remedy = "make room, or let TMPDIR name a folder on another disk"
        return FileError(
            f"{self.file}: {what} would take {shown(size)} of {where}, but {why}. Is the file "
            f"what it should be? If it is, {remedy}."
        )


class Unpacked(io.RawIOBase):
    """The bytes of a text file, unpacked as they are read, within the file's budget.

    `longest` is the most bytes that a line may have.
    """

    def __init__(self, file: str, longest: int | None = None) -> None:
        self._budget = Budget(file)
        # Opened by itself, since only then it is known how much of a packed file is read.
        self._file = open(file, "rb")  # noqa: SIM115  closed by `close`
        try:
            self._stream = _unpacking(self._file, file)
        except BaseException:
            self._file.close()
            raise
        self._tally = Tally(os.fstat(self._file.fileno()).st_size)
        self._longest = longest
        self._line = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece: bytes = self._stream.read(len(buffer))
        self._tally.reach(self._file.tell())
        self._budget.unpack(len(piece), "what is unpacked")
        last = piece.rfind(b"\n")
        self._line = self._line + len(piece) if last < 0 else len(piece) - 1 - last
        if self._longest is not None and self._line > self._longest:
            raise FileError(
                f"{self._budget.file}: a line of more than {shown(self._longest)}. Write one "
                "sample per line."
            )
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._stream.close()
        self._file.close()
        super().close()


def as_csr(matrix: Any, file: str) -> sparse.csr_array:
    """Return a sparse matrix of a file as CSR, after a look at its shape and its indices."""
    shape = tuple(matrix.shape)
    Budget(file).hold(_PER_LINE * sum(shape), f"a sparse matrix of shape {shape}")
    if matrix.format in ("csr", "csc", "bsr"):  # compiled code trusts indices
        matrix.check_format(full_check=True)
    return sparse.csr_array(matrix)


def _unpacking(stream: Any, file: str) -> Any:
    """Return what unpacks a stream, if the name of its file says that it is packed."""
    kind = os.path.splitext(file)[1].lower()
    if kind == ".gz":
        # The last four bytes say how long the text is; a file that lies is caught as it is read.
        stream.seek(-min(4, os.fstat(stream.fileno()).st_size), os.SEEK_END)
        Budget(file).unpack(int.from_bytes(stream.read(4), "little"), "what is unpacked")
        stream.seek(0)
        return gzip.GzipFile(fileobj=stream)
    if kind == ".bz2":
        return bz2.BZ2File(stream)
    if kind == ".zst":
        arrow = needed("pyarrow", "parquet", f"{file}: unpacking it")
        return arrow.input_stream(arrow.PythonFile(stream), compression="zstd")
    return stream


def free_memory() -> int | None:
    """Return the bytes that this process can still take; None if there is no telling."""
    known = map(_quietly, (_machine, _container, _limit))
    return min((left for left in known if left is not None and left >= 0), default=None)


def free_disk() -> int | None:
    """Return the bytes that are free where temporary files go."""
    return _quietly(lambda: shutil.disk_usage(tempfile.gettempdir()).free)


def _allowed() -> int | None:
    """Return what the user allows, in bytes."""
    text = os.environ.get(SETTING, "").strip()
    return size_in_bytes(text, f"{SETTING}={text!r}") if text else None


def _quietly(look: Callable[[], int | None]) -> int | None:
    try:
        return look()
    except (ImportError, OSError, ValueError, AttributeError):
        return None  # another system, which does not tell


def _machine() -> int | None:
    with open("/proc/meminfo") as file:
        found = re.search(r"MemAvailable:\s+(\d+) kB", file.read())
    return int(found[1]) * 1024 if found else None


def _container() -> int | None:
    with open("/sys/fs/cgroup/memory.max") as most, open("/sys/fs/cgroup/memory.current") as now:
        return int(most.read()) - int(now.read())


def _limit() -> int | None:
    import resource

    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        return None
    with open("/proc/self/statm") as file:
        return most - int(file.read().split()[0]) * resource.getpagesize()


def shown(size: float) -> str:
    """Return a number of bytes as people write it."""
    if size < 1000:
        return f"{size} bytes"
    for unit in ("KB", "MB", "GB"):
        size /= 1000
        if size < 1000:
            return f"{size:.3g} {unit}"
    size /= 1000
    return f"{size:,.0f} TB" if size >= 10 else f"{size:.2g} TB"
