"""NumPy's files: .npy is one view, copied and mapped, never held whole; .npz holds several."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import IO, Any

import numpy as np
from scipy import sparse

from viewfold._util.messages import format_names
from viewfold._util.types import Array
from viewfold.data._budget import Budget
from viewfold.data._sparse import as_csr
from viewfold.data._spool import Spool
from viewfold.data._tables import BATCH_BYTES
from viewfold.data._targets import as_target, is_called_target, is_target
from viewfold.data.source import FileError, FileView, leave_out, natural, reading

_SPARSE = ("data", "indices", "indptr", "shape")
_MAGIC = 6
_LONGEST_HEADER = 10_000  # as numpy.load has it


@dataclass(frozen=True)
class _Header:
    """What an array says of itself, before it is read."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_columns: bool = False

    @property
    def size(self) -> int:
        """Bytes that its numbers take."""
        return prod(self.shape) * max(1, self.dtype.itemsize)

    @property
    def is_view(self) -> bool:
        return len(self.shape) == 2 and self.dtype.kind in "fiub"

    def __str__(self) -> str:
        return f"{self.dtype} of shape {self.shape}"


def read_views(file: str, ids: str | None, options: object) -> dict[str, FileView]:
    """Read the views of a file; its rows are known by their number."""
    if not file.lower().endswith(".npy"):
        return {name: FileView(rows) for name, rows in _archive(file, _all_views).items()}
    with reading(file, "a NumPy array"):
        with open(file, "rb") as stream:
            if stream.read(2) == b"PK":
                raise FileError(f"{file}: an .npz archive. Rename it to .npz.")
            stream.seek(0)
            header = _header(file, stream)
            rest = os.path.getsize(file) - stream.tell()
        if header.size > rest:
            raise FileError(
                f"{file}: says that it holds {header}, which takes {header.size:,} bytes, but "
                f"there are {rest:,}. Is the file whole?"
            )
        if not header.size:  # nothing can be mapped where nothing is
            return {"": FileView(np.empty(header.shape, header.dtype))}
        if not header.is_view:  # which is refused by whoever makes a view of it
            Budget(file).hold(header.size, str(header))
            return {"": FileView(np.load(file, allow_pickle=False))}
        return {"": FileView(_spooled(file, header))}


def _spooled(file: str, header: _Header) -> Array:
    """Copy an array to a temporary file, block by block, and map that.

    The file itself is not mapped: if anybody shortened it, the next look at it would end the
    process.
    """
    Budget(file).spool(header.size, str(header))
    n, d = header.shape[::-1] if header.by_columns else header.shape
    spool, step = Spool(), max(1, BATCH_BYTES // max(1, d * header.dtype.itemsize))
    start = spool.reserve(header.shape[0], header.shape[1], header.dtype)
    with open(file, "rb") as stream:
        _header(file, stream)
        for at in range(0, n, step):
            many = min(step, n - at)
            block = np.fromfile(stream, header.dtype, many * d)
            if block.size < many * d:
                raise FileError(f"{file}: it became shorter while it was read. Give it again.")
            block = block.reshape(many, d)
            if header.by_columns:
                spool.put(start, at, block.T)
            else:
                spool.put(start + at, 0, block)
    return spool.matrix()


def read_set(file: str) -> tuple[dict[str, Any], Array | None]:
    """Read views and target of an .npz file."""
    found: tuple[dict[str, Any], Array | None] = _archive(file, _views_and_target)
    return found


def _archive(file: str, take: Callable[[str, Any, dict[str, _Header]], Any]) -> Any:
    """Open an archive, and look at the headers of all arrays before one of them is read."""
    with reading(file, "a NumPy archive"):
        with open(file, "rb") as stream:
            if stream.read(_MAGIC) == b"\x93NUMPY":
                raise FileError(f"{file}: a single array, not an archive. Rename it to .npy.")
        with np.load(file, allow_pickle=False) as archive:
            return take(file, archive, _headers(file, archive))


def _headers(file: str, archive: Any) -> dict[str, _Header]:
    members = {info.filename.removesuffix(".npy"): info for info in archive.zip.infolist()}
    if len(members) != len(archive.zip.infolist()):
        raise FileError(f"{file}: two arrays have the same name. Give each its own.")
    headers = {}
    for name, info in members.items():
        with archive.zip.open(info) as stream:
            header = _header(file, stream)
        if header.size > info.file_size:
            raise FileError(
                f"{file}: {name!r} says that it is {header}, which takes {header.size:,} bytes, "
                f"but there are {info.file_size:,}. Is the file whole?"
            )
        headers[name] = header
    total = sum(header.size for header in headers.values())
    Budget(file).hold(total, f"{len(headers)} arrays")
    return headers


def _header(file: str, stream: IO[bytes]) -> _Header:
    """Read a header, which has a length of its own, of four bytes since version 2."""
    start = stream.read(_MAGIC + 6)
    if start[:_MAGIC] != b"\x93NUMPY" or len(start) < _MAGIC + 6:
        raise FileError(f"{file}: cannot be read as a NumPy array: its first bytes are others.")
    first = start[_MAGIC] == 1
    length = int.from_bytes(start[8:10] if first else start[8:12], "little")
    if length > _LONGEST_HEADER:
        raise FileError(f"{file}: a header of {length:,} bytes, where a hundred do. Is it whole?")
    text = io.BytesIO(start[8:] + stream.read(length - 2 if first else length))
    parse = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = parse(text)
    if min(shape, default=0) < 0:
        raise FileError(f"{file}: an array of shape {shape}. Is the file whole?")
    return _Header(tuple(map(int, shape)), dtype, by_columns)


def _all_views(file: str, archive: Any, headers: dict[str, _Header]) -> dict[str, Any]:
    """Return every matrix of numbers, whatever it is called, and tell what else there is."""
    if _is_scipy(headers):
        return {"": as_csr(sparse.load_npz(file), file)}
    views = _matrices(file, archive, headers, list(headers))
    called = [name for name in views if is_called_target(name)]
    if called:
        warnings.warn(
            f"{file}: {format_names(called)} taken as a view, as a matrix is. If it holds "
            "classes, leave it out of the file.",
            stacklevel=2,
        )
    unused = [name for name in headers if {name, _split(name, headers)}.isdisjoint(views)]
    leave_out(file, {name: str(headers[name]) for name in unused}, views)
    return views


def _views_and_target(
    file: str, archive: Any, headers: dict[str, _Header]
) -> tuple[dict[str, Any], Array | None]:
    if _is_scipy(headers):
        return {"": as_csr(sparse.load_npz(file), file)}, None
    called = {name: archive[name] for name in headers if is_called_target(name)}
    targets = {name: held for name, held in called.items() if is_target(name, held)}
    target = as_target(file, list(targets.values())[-1]) if targets else None
    return _matrices(file, archive, headers, [n for n in headers if n not in targets]), target


def _matrices(
    file: str, archive: Any, headers: dict[str, _Header], names: list[str]
) -> dict[str, Any]:
    views: dict[str, Any] = {}
    for name in names:
        base = _split(name, headers)
        if base is None:
            if headers[name].is_view:
                views[name] = archive[name]
        elif base not in views:
            views[base] = _csr(file, archive, base)
    if not views:
        raise FileError(
            f"{file}: there is no 2-D array of numbers among {format_names(headers)}. Save a "
            "view with one row per sample and one column per feature."
        )
    return dict(sorted(views.items(), key=lambda item: natural(item[0])))


def _is_scipy(headers: dict[str, _Header]) -> bool:
    return {"format", "shape", "data"} <= headers.keys()


def _split(name: str, names: dict[str, _Header]) -> str | None:
    """Return what a sparse matrix is called, of which this array is one of four parts."""
    base, _, part = name.rpartition("_")
    whole = part in _SPARSE and base and all(f"{base}_{other}" in names for other in _SPARSE)
    return base if whole else None


def _csr(file: str, archive: Any, base: str) -> sparse.csr_array:
    data, indices, indptr, shape = (archive[f"{base}_{part}"] for part in _SPARSE)
    return as_csr(sparse.csr_array((data, indices, indptr), shape=tuple(map(int, shape))), file)
