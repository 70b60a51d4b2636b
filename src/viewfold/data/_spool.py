"""Rows go to a temporary file once, and are mapped from there: a fold passes over them repeatedly.

The file has no name, so that nothing of a view is left behind, however the program ends.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from viewfold._util.types import Array
from viewfold.data.source import Batch
from viewfold.errors import FULL, NoSpaceError

_ZEROS = 2**20  # bytes that are written at once where room cannot be reserved


class Spool:
    """A matrix that grows in a temporary file.

    Most readers give rows in order, and `append` writes them. One that has to read by columns
    reserves room for its rows, puts each piece in its place, and then gives out what is there:
    `append` knows those rows and writes nothing.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self._n_given = 0
        self._columns = 0
        self._dtype: np.dtype[Any] = np.dtype(np.float64)
        self._file: IO[bytes] | None = None

    def append(self, block: Array, dtype: np.dtype[Any]) -> None:
        """Write the next rows, unless they are there already."""
        if self._n_given == self.n_rows:
            rows = np.ascontiguousarray(block, dtype=dtype)
            with _naming_a_full_disk():
                file = self._opened(block.shape[1], dtype)
                file.seek(self.n_rows * self._row_bytes)
                # Not tofile: it does not notice that the disk has no room for the last bytes.
                file.write(rows.reshape(-1).view(np.uint8).data if rows.size else b"")
                file.flush()
            self.n_rows += block.shape[0]
        self._n_given += block.shape[0]

    def reserve(self, n_rows: int, columns: int, dtype: np.dtype[Any]) -> int:
        """Make room for rows that `put` fills; return the number of the first of them."""
        # A page of a mapped file that the disk has no room for would end the process.
        start = self.n_rows
        with _naming_a_full_disk():
            file = self._opened(columns, dtype)
            _allocate(file, start * self._row_bytes, n_rows * self._row_bytes)
        self.n_rows += n_rows
        return start

    def put(self, row: int, column: int, block: Array) -> None:
        """Write some columns of some reserved rows."""
        if block.size:
            self._map(row, block.shape[0], "r+")[:, column : column + block.shape[1]] = block

    def rows(self, row: int, n_rows: int) -> Array:
        """Return some rows, mapped."""
        return self._map(row, n_rows, "r")

    def matrix(self) -> Array:
        """Return all rows, mapped; the file is closed, and lives as long as the map."""
        if self._file is None or self.n_rows == 0:
            return np.empty((0, self._columns), self._dtype)
        with self._file:
            return self._map(0, self.n_rows, "r")

    @property
    def _row_bytes(self) -> int:
        return self._columns * self._dtype.itemsize

    def _opened(self, columns: int, dtype: np.dtype[Any]) -> IO[bytes]:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="viewfold-")  # noqa: SIM115
            self._columns, self._dtype = columns, dtype
        return self._file

    def _map(self, row: int, n_rows: int, mode: Any) -> Array:
        assert self._file is not None
        shape, offset = (n_rows, self._columns), row * self._row_bytes
        return np.memmap(self._file, self._dtype, mode, offset, shape)


class Batches(Iterator[Batch]):
    """The rows of a table, batch after batch in the order of the file; they come once.

    Parameters
    ----------
    read : callable
        ``read(spool)`` gives the batches. The spool is where a reader puts rows that it cannot
        read in order.
    """

    def __init__(self, read: Callable[[Spool], Iterator[Batch]]) -> None:
        self._read = read
        self._running: Iterator[Batch] | None = None

    def __next__(self) -> Batch:
        if self._running is None:
            self._running = self.into(Spool())
        return next(self._running)

    def into(self, spool: Spool) -> Iterator[Batch]:
        """Give the batches to one who appends each of them to this spool."""
        return self._read(spool)


@contextmanager
def _naming_a_full_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise NoSpaceError(
            f"No space is left for temporary files in {tempfile.gettempdir()}. Free some, or set "
            "TMPDIR to a folder on a larger disk."
        ) from None


def _allocate(file: IO[bytes], start: int, size: int) -> None:
    """Reserve room on the disk, or fail as a write would."""
    if hasattr(os, "posix_fallocate") and size:
        try:
            os.posix_fallocate(file.fileno(), start, size)
            return
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
    file.seek(start)
    for done in range(0, size, _ZEROS):
        file.write(bytes(min(_ZEROS, size - done)))
    file.flush()
