"""Walk a matrix by blocks of rows.

All mathematics of viewfold is `reduce` (sum small matrices over blocks) and `for_each` (write one
block of the result after the other). Who walks the blocks, in memory or from disk, is decided here
and nowhere else.
"""

from __future__ import annotations

import itertools
import mmap
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from functools import reduce as fold_left
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import ThreadpoolController

from viewfold._types import Array as Array
from viewfold._types import Matrix as Matrix

_block_bytes: ContextVar[int] = ContextVar("block_bytes", default=8 * 2**20)


@contextmanager
def block_bytes(size: int) -> Iterator[None]:
    """Set how many bytes of a matrix are looked at in one go (8 MiB unless told).

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.blocks import Rows, block_bytes
    >>> with block_bytes(64):
    ...     [block.shape for _, block in Rows(np.ones((10, 4))).blocks()]
    [(2, 4), (2, 4), (2, 4), (2, 4), (2, 4)]
    """
    token = _block_bytes.set(size)
    try:
        yield
    finally:
        _block_bytes.reset(token)


@cache
def _blas(per_thread: bool) -> list[Any]:
    """Return the BLAS libraries whose limit is each thread's own, or those with one for all."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library for library in found if (_layer(library) == "openmp") == per_thread]


def _layer(library: Any) -> str | None:
    return library.threading_layer if library.internal_api == "openblas" else None


@contextmanager
def _limited(libraries: list[Any]) -> Iterator[int]:
    """Keep libraries on one thread and tell how many they would have used."""
    # From 3.8 on, threadpoolctl obeys the thread only that was the first to set a limit.
    setters = [getattr(lib, "_real_set_num_threads", lib.set_num_threads) for lib in libraries]
    before = [library.num_threads for library in libraries]
    try:
        for limit in setters:
            limit(1)
        yield max(before, default=1)
    finally:
        for limit, threads in zip(setters, before, strict=True):
            limit(threads)


class _ForAll:
    """The limit of the whole process: it lasts as long as anybody wants it.

    Whoever saved and restored it for himself would restore what another thread had set, so users
    are counted: the first one sets it, the last one restores it.
    """

    def __init__(self) -> None:
        self.lock, self.users, self.threads = Lock(), 0, 1
        self.limit = ExitStack()

    @contextmanager
    def held(self) -> Iterator[int]:
        with self.lock:
            if not self.users:
                self.threads = self.limit.enter_context(_limited(_blas(per_thread=False)))
            self.users += 1
        try:
            yield self.threads
        finally:
            with self.lock:
                self.users -= 1
                if not self.users:
                    self.limit.close()


_for_all = _ForAll()


@contextmanager
def blas_on_one_thread() -> Iterator[int]:
    """Keep BLAS on one thread and tell how many threads it would have used.

    Blocks are spread over that many Python threads instead. Small matrices are faster so, cores
    that are busy with something else cost nothing, and sums are taken in the order of the rows,
    so that the number of threads does not change a single bit of the result. Uses may be nested,
    and may overlap in several threads.
    """
    with _for_all.held() as shared, _limited(_blas(per_thread=True)) as own:
        yield max(shared, own)


@contextmanager
def all_on_one_thread() -> Iterator[None]:
    """Keep OpenMP on one thread, too: for scikit-learn, on small data and where bits count."""
    # Each thread has a limit of its own for OpenMP: nobody restores what another thread had set.
    # Looked for every time, since scikit-learn may have been imported in the meantime.
    openmp = ThreadpoolController().select(user_api="openmp").lib_controllers
    with blas_on_one_thread(), _limited(openmp):
        yield


@dataclass(frozen=True)
class Rows:
    """The rows of a matrix that are there, as floating-point blocks.

    Parameters
    ----------
    X : ndarray, memmap or csr_array of shape (n_rows, n_features)
        The matrix. It is never copied as a whole.
    present : ndarray of int, optional
        Which rows count, ascending; all of them if not given.
    double : bool, default=False
        Whether single precision is not enough, though the matrix has it.
    """

    X: Matrix
    present: NDArray[np.intp] | None = None
    double: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Rows that are there, features."""
        n = self.X.shape[0] if self.present is None else self.present.size
        return n, self.X.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """What blocks come as: float32, where it holds every value exactly, else float64."""
        single = self.X.dtype.itemsize <= 2 or self.X.dtype == np.float32
        return np.dtype(np.float32 if single and not self.double else np.float64)

    @property
    def on_disk(self) -> bool:
        """Whether each walk reads a file."""
        return isinstance(self.X, np.memmap)

    @property
    def stored(self) -> int:
        """Number of stored entries: all of a dense matrix, the non-zeros of a sparse one."""
        n, d = self.shape
        return int(self.X.nnz) if sparse.issparse(self.X) else n * d

    def _block_rows(self) -> int:
        n, d = self.shape
        width = self.stored / max(n, 1) * 1.5 if sparse.issparse(self.X) else d
        return max(1, int(_block_bytes.get() // max(1, width * self.dtype.itemsize)))

    def slices(self) -> Iterator[slice]:
        """Return the blocks, as slices into the rows that are there."""
        n, step = self.shape[0], self._block_rows()
        return (slice(start, min(start + step, n)) for start in range(0, n, step))

    def read(self, rows: slice) -> Matrix:
        """One block."""
        if self.present is None:
            block = self.X[rows]
        else:
            keep = self.present[rows]
            block = self.X[keep[0] : keep[-1] + 1][keep - keep[0]]
        if isinstance(self.X, np.memmap):
            block = np.array(block, dtype=self.dtype)
            self._release()
            return block
        return block.astype(self.dtype, copy=False)

    def take(self, which: NDArray[np.intp]) -> Matrix:
        """Read some rows, in the given order."""
        at = which if self.present is None else self.present[which]
        if not self.on_disk:
            return self.X[at].astype(self.dtype)
        taken = np.empty((at.size, self.X.shape[1]), self.dtype)
        for start in range(0, at.size, 32):  # for one row, the system maps a megabyte or two
            some = slice(start, start + 32)
            taken[some] = self.X[at[some]]
            self._release()
        return taken

    def taken(self, which: NDArray[np.intp]) -> Iterator[Matrix]:
        """Read some rows, in the given order, a block after the other."""
        step = self._block_rows()
        return (self.take(which[start : start + step]) for start in range(0, which.size, step))

    def _release(self) -> None:
        """Give the pages of a file back, so that a walk needs the memory of a few blocks."""
        # A copy-on-write map may hold changes that exist nowhere else.
        if self.X.mode != "c" and hasattr(mmap, "MADV_DONTNEED"):
            self.X._mmap.madvise(mmap.MADV_DONTNEED)

    def blocks(self) -> Iterator[tuple[slice, Matrix]]:
        """Return slice and block, one after the other."""
        return ((rows, self.read(rows)) for rows in self.slices())


def _walk(rows: Rows, work: Callable[[slice, Matrix], Any], threads: int) -> Iterator[Any]:
    """Yield ``work(slice, block)`` for every block, in order, computed on several threads."""

    def one(where: slice) -> Any:
        return work(where, rows.read(where))

    slices = rows.slices()
    first = list(itertools.islice(slices, 2))
    if threads == 1 or len(first) < 2:
        yield from map(one, itertools.chain(first, slices))
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[Any]] = deque()
        for where in itertools.chain(first, slices):
            pending.append(pool.submit(one, where))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def reduce(
    rows: Rows, work: Callable[[slice, Matrix], tuple[Array, ...]], threads: int = 1
) -> tuple[Array, ...]:
    """Sum the small matrices that `work` makes of each block, in double precision.

    Parameters
    ----------
    rows : Rows
        What to walk.
    work : callable
        ``work(slice, block)`` returns a tuple of arrays of the same shapes for every block.
    threads : int, default=1
        How many blocks are worked on at once. The sums do not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.blocks import Rows, reduce
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> reduce(Rows(X), lambda rows, block: (block.T @ block,))[0]
    array([[20., 26.],
           [26., 35.]])
    """

    def add(total: tuple[Array, ...], part: tuple[Array, ...]) -> tuple[Array, ...]:
        for t, p in zip(total, part, strict=True):
            t += p
        return total

    parts = _walk(rows, work, threads)
    first = tuple(np.array(part, dtype=np.float64) for part in next(parts))
    return fold_left(add, parts, first)


def for_each(rows: Rows, work: Callable[[slice, Matrix], None], threads: int = 1) -> None:
    """Call `work` with the slice and content of each block; it writes its part of a result.

    Parameters
    ----------
    rows : Rows
        What to walk.
    work : callable
        ``work(slice, block)``; blocks may be worked on at the same time.
    threads : int, default=1
        How many blocks are worked on at once.
    """
    for _ in _walk(rows, work, threads):
        pass


def unit_rows(rows: Array) -> Array:
    """Return rows of length 1; a row of zeros stays as it is."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1).astype(rows.dtype))
