"""Files from elsewhere: addresses that fsspec opens, and standard input.

They are copied to a temporary folder, piece by piece, and read from there as every other file is:
with the same limits, in batches, and as often as a reader needs.
"""

from __future__ import annotations

import os
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from viewfold._util.file import WEB, is_address, plain
from viewfold._util.messages import lacking
from viewfold._util.watch import Tally
from viewfold.data.guard import free_disk, shown
from viewfold.data.source import FileError, optional

STDIN = "-"
_PIECE = 2**20
_MAGIC = {
    b"PAR1": ".parquet",
    b"\x93NUMPY": ".npy",
    b"%%MatrixMarket": ".mtx",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
    b"BZh": ".csv.bz2",
    b"{": ".jsonl",
}


class Named(str):
    """A path that messages call something else: what the user knows of it."""

    _called: str

    def __new__(cls, path: str, called: str) -> Self:
        named = super().__new__(cls, path)
        named._called = called
        return named

    def __reduce__(self) -> Any:
        return Named, (str(self), self._called)

    def __format__(self, spec: str) -> str:
        return format(self._called, spec)


class Place(Named):
    """The path of a temporary copy, in a folder that goes when this object goes.

    A reader has it as long as it reads. `address` is where it was fetched from.
    """

    address: str | None = None
    _folder: Any = None


def temporary(name: str, called: str, address: str | None = None) -> Place:
    """Return a place for a file in a temporary folder of its own."""
    folder = tempfile.TemporaryDirectory(prefix="viewfold-", ignore_cleanup_errors=True)
    place = Place(os.path.join(folder.name, name), called)
    place.address, place._folder = address, folder
    return place


def file_of(address: str) -> str:
    """Return the file that an address leads to; of a chain, the innermost one."""
    parts = plain(address).split("::")
    return next((part for part in parts if "://" in part), parts[0])


def fetched(file: str) -> str:
    """Return the path of a local copy; of a local file, its path."""
    if isinstance(file, Place) or not is_address(file):
        return file
    with _system(file) as (system, path):
        # A web server may not be able to give pieces of a file.
        options = {"block_size": 0} if WEB.match(file) else {}
        with system.open(path, "rb", **options) as stream:
            return _copied(stream, file, getattr(stream, "size", None))


def with_end_only(file: str) -> str:
    """Return a copy of a Parquet file elsewhere of which nothing is filled in but what it says.

    That stands at its end, after all rows: these are fetched by whoever reads them.
    """
    with _system(file) as (system, path):
        size = system.size(path) or 0
        last = system.cat_file(path, start=max(0, size - 8), end=size) if size else b""
        if last[4:] != b"PAR1":
            return fetched(file)
        start = max(0, size - 8 - int.from_bytes(last[:4], "little"))
        end = system.cat_file(path, start=start, end=size)
    place = temporary(os.path.basename(file_of(file)), _called(file), file)
    with open(place, "wb") as copy:
        copy.write(b"PAR1")
        copy.truncate(size)
        copy.seek(start)
        copy.write(end)
    return place


def addresses(pattern: str) -> list[str]:
    """Return the addresses of the files that a pattern or a folder elsewhere stands for."""
    with _system(pattern) as (system, path):
        found = system.glob(path) if any(mark in path for mark in "*?[") else system.find(path)
        return [system.unstrip_protocol(one) for one in found]


def standard_input() -> Place:
    """Return a copy of standard input, whose name ends as its first bytes tell."""
    if sys.stdin is None or sys.stdin.isatty():
        raise FileError(
            "standard input: there is nothing. Give a file, or send one through a pipe."
        )
    return _copied(sys.stdin.buffer, None, None)


def beside(file: str, name: str) -> str | None:
    """Return a file that lies beside another one, also elsewhere; None if there is none."""
    address = file.address if isinstance(file, Place) else None
    if address is None:
        found = os.path.join(os.path.dirname(file), name)
        return found if os.path.isfile(found) else None
    own = os.path.basename(file_of(address))
    try:
        return fetched(name.join(address.rsplit(own, 1)))
    except FileNotFoundError:
        return None


def _copied(stream: Any, address: str | None, size: int | None) -> Place:
    """Copy a stream; without an address it is standard input, and its first bytes tell a name."""
    called = "standard input" if address is None else _called(address)
    free = free_disk()
    _check_room(called, size or 0, free)
    done, tally = 0, Tally(size)
    piece = stream.read(_PIECE)
    name = f"stdin{_ending(piece)}" if address is None else os.path.basename(file_of(address))
    place = temporary(name, called, address)
    with open(place, "wb") as copy:
        while piece:
            done += len(piece)
            _check_room(called, done, free)
            copy.write(piece)
            tally.reach(done)
            piece = stream.read(_PIECE)
    return place


def _called(address: str) -> str:
    return f"{address}" if isinstance(address, Named) else plain(address)


def _check_room(called: str, size: int, free: int | None) -> None:
    if free is not None and size > free:
        raise FileError(
            f"{called}: a copy would take {shown(size)} of disk or more, but {shown(free)} are "
            "free. Make room, or let TMPDIR name a folder on another disk."
        )


def _ending(first: bytes) -> str:
    """Return how the name of a file with these first bytes should end."""
    if first.startswith(b"PK\x03\x04"):
        return ".npz" if b".npy" in first[:300] else ".xlsx"
    if first.startswith(b"\x89HDF"):
        raise FileError("standard input: HDF5 has many uses. Save it as a file, and name that.")
    if first.startswith(b"\x1f\x8b"):
        return _ending(zlib.decompressobj(31).decompress(first, 1000)) + ".gz"
    found = (ending for magic, ending in _MAGIC.items() if first.lstrip()[:20].startswith(magic))
    return next(found, ".csv")


@contextmanager
def _system(address: str) -> Iterator[tuple[Any, str]]:
    """Yield the file system of an address, and the path there; errors name the address."""
    called = _called(address)
    core = optional("fsspec", "remote", called).core
    try:
        yield core.url_to_fs(address)
    except (FileError, PermissionError):
        raise
    except FileNotFoundError:
        raise FileNotFoundError(f"{called}: there is no such file. Is the address right?") from None
    except ImportError as error:
        raise lacking(called, "remote", error) from error
    except Exception as error:  # networks and their libraries raise anything
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise FileError(
            f"{called}: cannot be fetched ({said[0].replace(address, called)[:200]}). Is the "
            "address right, and may you read it?"
        ) from None
