"""Rows of a matrix, a block at a time: from memory, from a file, or picked from other rows."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from viewfold._util.records import short_repr
from viewfold._util.types import Array, Matrix

_block_bytes: ContextVar[int] = ContextVar("block_bytes", default=8 * 2**20)


@contextmanager
def block_bytes(size: int) -> Iterator[None]:
    """Set how many bytes of a matrix are in one block (8 MiB by default).

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.rows import Rows, block_bytes
    >>> with block_bytes(64):
    ...     [block.shape for _, block in Rows(np.ones((10, 4))).blocks()]
    [(2, 4), (2, 4), (2, 4), (2, 4), (2, 4)]
    """
    token = _block_bytes.set(size)
    try:
        yield
    finally:
        _block_bytes.reset(token)


def rows_per_block(width: float, itemsize: int) -> int:
    """Return how many rows are in one block, if each has so many entries."""
    return max(1, int(_block_bytes.get() // max(1, width * itemsize)))


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a matrix, without those of absent samples, read in blocks of floating-point numbers.

    Parameters
    ----------
    X : ndarray, memmap or csr_array of shape (n_rows, n_features)
        The matrix. It is never copied as a whole.
    present : ndarray of int, optional
        Numbers of the rows to read, ascending; all of them if not given.
    columns : ndarray of int, optional
        Numbers of the columns to read, in the order in which blocks have them; all of them, as they
        are, if not given.
    double : bool, default=False
        Whether blocks are in double precision even if the matrix is in single precision.
    fill : callable, optional
        Returns a block with numbers in the place of NaN; None if there is no NaN, or if it is
        wanted.
    """

    __repr__ = short_repr

    X: Matrix
    present: NDArray[np.intp] | None = None
    columns: NDArray[np.intp] | None = None
    double: bool = False
    fill: Callable[[Matrix], Matrix] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows that are there, features."""
        n = self.X.shape[0] if self.present is None else self.present.size
        return n, self.X.shape[1] if self.columns is None else self.columns.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """What blocks come as: float32, where it holds every value exactly, else float64."""
        single = self.X.dtype.itemsize <= 2 or self.X.dtype == np.float32
        return np.dtype(np.float32 if single and not self.double else np.float64)

    @property
    def on_disk(self) -> bool:
        """Whether each pass reads a file."""
        return isinstance(self.X, np.memmap)

    @property
    def is_sparse(self) -> bool:
        """Whether blocks are CSR arrays."""
        return bool(sparse.issparse(self.X))

    @property
    def stored(self) -> int:
        """Number of stored entries: all of a dense matrix, the non-zeros of a sparse one."""
        n, d = self.shape
        return int(self.X.nnz) if self.is_sparse else n * d

    def column(self, of_matrix: int) -> int:
        """Return which column of blocks a column of the matrix is."""
        if self.columns is None:
            return of_matrix
        return int(np.flatnonzero(self.columns == of_matrix)[0])

    def block_rows(self) -> int:
        """Return how many rows a block has."""
        n, d = self.shape
        width = self.stored / max(n, 1) * 1.5 if self.is_sparse else d
        return rows_per_block(width, self.dtype.itemsize)

    def read(self, rows: slice) -> Matrix:
        """One block."""
        block = self._read(rows)
        return block if self.fill is None else self.fill(block)

    def _read(self, rows: slice) -> Matrix:
        if self.present is None:
            block = self.X[rows]
        else:
            keep = self.present[rows]
            if not keep.size:
                return self._in_order(self.X[:0].astype(self.dtype))
            block = self.X[keep[0] : keep[-1] + 1][keep - keep[0]]
        if isinstance(self.X, np.memmap):
            block = np.array(block, dtype=self.dtype)
            self._release()
            return self._in_order(block)
        return self._in_order(block.astype(self.dtype, copy=False))

    def _in_order(self, block: Matrix) -> Matrix:
        if self.columns is None:
            return block
        if isinstance(block, np.ndarray):  # row by row in memory, as a block that is in order
            return np.take(block, self.columns, axis=1)
        return block[:, self.columns]

    def take(self, which: NDArray[np.intp]) -> Matrix:
        """Read some rows, in the given order."""
        block = self._take(which if self.present is None else self.present[which])
        return block if self.fill is None else self.fill(block)

    def _take(self, at: NDArray[np.intp]) -> Matrix:
        if not self.on_disk:
            return self._in_order(self.X[at].astype(self.dtype))
        taken = np.empty((at.size, self.X.shape[1]), self.dtype)
        for start in range(0, at.size, 32):  # for one row, the system maps a megabyte or two
            some = slice(start, start + 32)
            taken[some] = self.X[at[some]]
            self._release()
        return self._in_order(taken)

    def _release(self) -> None:
        """Give the pages of a file back, so that a pass needs the memory of a few blocks."""
        # A copy-on-write map may hold changes that exist nowhere else.
        if self.X.mode != "c" and hasattr(mmap, "MADV_DONTNEED"):
            self.X._mmap.madvise(mmap.MADV_DONTNEED)

    def blocks(self) -> Iterator[tuple[slice, Matrix]]:
        """Return slice and block, one after the other."""
        n, step = self.shape[0], self.block_rows()
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            yield rows, self.read(rows)


@dataclass(frozen=True, eq=False)
class Plain:
    """An array of any kind with a row (or one entry) per sample, read as it is."""

    __repr__ = short_repr

    X: Matrix

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, columns."""
        return tuple(self.X.shape)

    def block_rows(self) -> int:
        """Return how many rows a block has."""
        return rows_per_block(float(np.prod(self.shape[1:])), self.X.dtype.itemsize)

    def read(self, rows: slice) -> Matrix:
        """One block."""
        return self.X[rows]

    def take(self, which: NDArray[np.intp]) -> Matrix:
        """Read some rows, in the given order."""
        return self.X[which]


@dataclass(frozen=True, eq=False)
class Picked:
    """Rows picked from others by their number, in any order; they are read when they are needed.

    Parameters
    ----------
    source : Rows or Plain
        The others.
    at : ndarray of int
        Their numbers; −1 is a row of `fill`, if that is given.
    fill : number, optional
        What is in rows that are not there.
    """

    __repr__ = short_repr

    source: Rows | Plain
    at: NDArray[np.intp]
    fill: float | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, columns."""
        return self.at.size, *self.source.shape[1:]

    def block_rows(self) -> int:
        """Return how many rows a block has."""
        return self.source.block_rows()

    def read(self, rows: slice) -> Matrix:
        """One block."""
        which = self.at[rows]
        block = self.source.take(which)
        if self.fill is not None:
            block[which < 0] = self.fill
        return block


RowBlocks: TypeAlias = Rows | Plain | Picked


def as_row_blocks(rows: Array | sparse.csr_array | RowBlocks) -> RowBlocks:
    """Return what can be read by blocks: arrays are read as they are."""
    return rows if isinstance(rows, Rows | Plain | Picked) else Plain(rows)
