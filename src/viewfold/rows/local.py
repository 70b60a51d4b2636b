"""The three verbs, for rows in memory or in a mapped file: a block at a time, on threads.

`reduce` sums small matrices over row blocks, `map` makes row blocks of row blocks, `join` aligns
samples by id. Everything else in viewfold is algebra on small matrices. In memory, on disk or on a
cluster, a method is the same program.
"""

from __future__ import annotations

import itertools
import mmap
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from functools import reduce as fold_left
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from viewfold._util.messages import frozen_record
from viewfold._util.types import Array, Matrix
from viewfold._util.watch import counted
from viewfold.rows.linalg import is_sparse, pick_columns

# Rows (or single values) of samples, in the engine's order: an array, if they are in memory.
RowSet: TypeAlias = Any
Work: TypeAlias = Callable[..., Any]
# -- threads -------------------------------------------------------------------------------------


@cache
def _blas(per_thread: bool, with_scipy: bool) -> list[Any]:
    """Return the BLAS libraries whose limit is each thread's own, or those with one for all.

    SciPy brings one of its own, which is there when somebody computes with it.
    """
    found = []
    for library in ThreadpoolController().select(user_api="blas").lib_controllers:
        layer = library.threading_layer if library.internal_api == "openblas" else None
        if (layer == "openmp") == per_thread:
            found.append(library)
    return found


@contextmanager
def _limited(libraries: list[Any]) -> Iterator[int]:
    """Keep libraries on one thread and tell how many they would have used."""
    before = [(library, library.num_threads) for library in libraries]
    # From 3.8 on, threadpoolctl obeys the thread only that was the first to set a limit.
    try:
        for library, _ in before:
            getattr(library, "_real_set_num_threads", library.set_num_threads)(1)
        yield max((threads for _, threads in before), default=1)
    finally:
        for library, threads in before:
            getattr(library, "_real_set_num_threads", library.set_num_threads)(threads)


@dataclass
class _ProcessLimit:
    """The limit of the whole process, which its threads share.

    A thread that saved and restored it alone would restore the limit of another thread. So users
    are counted: the first one sets the limit, the last one restores what was before.
    """

    lock: Any = field(default_factory=Lock)
    users: int = 0
    threads: int = 1
    limit: ExitStack = field(default_factory=ExitStack)


_process = _ProcessLimit()


@contextmanager
def blas_on_one_thread() -> Iterator[int]:
    """Keep BLAS on one thread and tell how many threads it would have used.

    Blocks are spread over that many Python threads instead. Small matrices are faster so, cores
    that are busy with something else cost nothing, and sums are taken in the order of the rows,
    so that the number of threads does not change a single bit of the result. Uses may be nested,
    and may overlap in several threads.
    """
    with _process.lock:
        if not _process.users:
            limited = _limited(_blas(False, "scipy.linalg" in sys.modules))
            _process.threads = _process.limit.enter_context(limited)
        _process.users += 1
    try:
        with _limited(_blas(True, "scipy.linalg" in sys.modules)) as own:
            yield max(_process.threads, own)
    finally:
        with _process.lock:
            _process.users -= 1
            if not _process.users:
                _process.limit.close()


@contextmanager
def all_on_one_thread() -> Iterator[None]:
    """Keep OpenMP on one thread, too: for scikit-learn, on small data and where bits count."""
    # Each thread has a limit of its own for OpenMP: nobody restores what another thread had set.
    # Looked for every time, since scikit-learn may have been imported in the meantime.
    openmp = ThreadpoolController().select(user_api="openmp").lib_controllers
    with blas_on_one_thread(), _limited(openmp):
        yield


def in_order(work: Callable[[Any], Any], items: Iterable[Any], threads: int) -> Iterator[Any]:
    """Yield what `work` makes of every item, in order; a few items are worked on at a time."""
    left = iter(items)
    first = list(itertools.islice(left, 2))
    if threads == 1 or len(first) < 2:
        yield from map(work, itertools.chain(first, left))
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[Any]] = deque()
        for item in itertools.chain(first, left):
            pending.append(pool.submit(work, item))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


# -- row blocks ----------------------------------------------------------------------------------

_block_bytes = 8 * 2**20


@contextmanager
def block_bytes(size: int) -> Iterator[None]:
    """Set how many bytes of a matrix are in one block (8 MiB by default), for the whole process.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.rows import Rows, block_bytes
    >>> with block_bytes(64):
    ...     [block.shape for _, block in Rows(np.ones((10, 4))).blocks()]
    [(2, 4), (2, 4), (2, 4), (2, 4), (2, 4)]
    """
    global _block_bytes
    before, _block_bytes = _block_bytes, size
    try:
        yield
    finally:
        _block_bytes = before


@frozen_record
class Rows:
    """Rows of a matrix, without those of absent samples, read in blocks of floating-point cells."""

    X: Matrix  #: the matrix. It is never copied as a whole.
    #: numbers of the rows to read, ascending; all of them if not given
    present: NDArray[np.intp] | None = None
    #: numbers of the columns to read, in the order in which blocks have them; all of them, as they
    #: are, if not given. −1 is a column of missing cells (NaN).
    columns: NDArray[np.intp] | None = None
    #: whether blocks are in double precision even if the matrix is in single precision
    double: bool = False
    #: returns a block with numbers in the place of NaN; None if there is no NaN, or if it is wanted
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
        return is_sparse(self.X)

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

    def read(self, rows: slice) -> Matrix:
        """Return one block."""
        if self.present is None:
            block = self.X[rows]
        else:
            keep = self.present[rows]
            block = self.X[keep[0] : keep[-1] + 1][keep - keep[0]] if keep.size else self.X[:0]
        if isinstance(self.X, np.memmap):
            block = np.array(block, dtype=self.dtype)
            self._release()
        return self._finish(block.astype(self.dtype, copy=False))

    def take(self, which: NDArray[np.intp]) -> Matrix:
        """Read some rows, in the given order."""
        at = which if self.present is None else self.present[which]
        if not isinstance(self.X, np.memmap):
            return self._finish(self.X[at].astype(self.dtype))
        taken = np.empty((at.size, self.X.shape[1]), self.dtype)
        for start in range(0, at.size, 32):  # for one row, the system maps a megabyte or two
            few = slice(start, start + 32)
            taken[few] = self.X[at[few]]
            self._release()
        return self._finish(taken)

    def _finish(self, block: Matrix) -> Matrix:
        """Put columns in order and numbers in the place of NaN."""
        if self.columns is not None:
            block = pick_columns(block, self.columns)
        return block if self.fill is None else self.fill(block)

    def _release(self) -> None:
        """Give the pages of a file back, so that a pass needs the memory of a few blocks."""
        # A copy-on-write map may hold changes that exist nowhere else.
        if self.X.mode != "c" and hasattr(mmap, "MADV_DONTNEED"):
            self.X._mmap.madvise(mmap.MADV_DONTNEED)

    def blocks(self) -> Iterator[tuple[slice, Matrix]]:
        """Return slice and block, one after the other."""
        n, step = self.shape[0], rows_per_block(self)
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            yield rows, self.read(rows)


@frozen_record
class Picked:
    """Rows picked from others by their number, in any order; they are read when they are needed.

    The number −1 is a row of `fill`, if that is given.
    """

    source: Rows | Matrix
    at: NDArray[np.intp]
    fill: float | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.at.size, *self.source.shape[1:]

    def read(self, rows: slice) -> Matrix:
        which, source = self.at[rows], self.source
        block = source.take(which) if isinstance(source, Rows) else source[which]
        if self.fill is not None:
            block[which < 0] = self.fill
        return block


# Arrays are read as they are.
RowBlocks: TypeAlias = Rows | Picked | Matrix


def rows_per_block(rows: RowBlocks, width: float | None = None) -> int:
    """Return how many rows are in one block; `width` is that of larger intermediate results."""
    if width is not None:
        kind = rows.dtype if isinstance(rows, Rows) else rows
        return max(1, int(_block_bytes // max(1, width * getattr(kind, "itemsize", 8))))
    if isinstance(rows, Picked):
        rows = rows.source
    if isinstance(rows, Rows) and is_sparse(rows.X):
        width = rows.X.nnz / max(rows.shape[0], 1) * 1.5
    else:
        width = float(np.prod(rows.shape[1:]))
    return max(1, int(_block_bytes // max(1, width * rows.dtype.itemsize)))


# -- the engine ----------------------------------------------------------------------------------


class Engine:
    """Where rows live, and who computes with them.

    This one computes with rows in memory, whose sums it takes in their order, so that the number of
    threads does not change a bit. Engines with buckets override the verbs for rows that they hold.
    """

    n_threads: int | None = None

    # A context manager that is open while a state is changed: linear algebra keeps to one thread.
    session: Callable[[], AbstractContextManager[Any]] = staticmethod(blas_on_one_thread)

    def partition(self, ids: RowSet, *rows: RowSet) -> tuple[RowSet, ...]:
        """Take over samples and their rows, so that they can be joined with those that are known.

        What the engine holds already is returned as it is. Rows in memory that belong to nobody in
        particular need no place: every verb takes arrays, too.
        """
        return (ids, *rows)

    def materialize(self, rows: RowSet) -> RowSet:
        """Return rows of a view, those whose cells are filled when they are read computed once."""
        return Rows(self.map(lambda block: block, rows))

    def match(self, work: Work, rows: RowSet, others: RowSet) -> RowSet:
        """Return the rows that `work` makes of rows and of all others that could belong to them.

        ``work(few, others)`` returns a row for each of the few. Ids that are almost the same come
        together.
        """
        return work(rows, others)

    def reduce(
        self, work: Work, *rows: RowSet, combine: Callable[[Any, Any], Any] | None = None
    ) -> Any:
        """Sum the small matrices that `work` makes of each block, in double precision.

        Parameters
        ----------
        work : callable
            ``work(*blocks)`` returns an array, or a tuple of arrays, of the same shapes for every
            block. There may be empty blocks.
        *rows : RowSet
            Rows of the same samples.
        combine : callable, optional
            ``combine(a, b)`` instead of the sum, with what `work` returns.
        """
        parts = self._each_block(work, rows)
        return _add_up(parts) if combine is None else fold_left(combine, parts)

    def map(
        self,
        work: Work,
        *rows: RowSet,
        sums: bool = False,
        width: int | None = None,
        reuse: bool = False,
    ) -> Any:
        """Return the rows that `work` makes of each block.

        Parameters
        ----------
        work : callable
            ``work(*blocks)`` returns a block, or a tuple of blocks, with a row for each row.
        *rows : RowSet
            Rows of the same samples.
        sums : bool, default=False
            Whether `work` returns ``(blocks, matrices)``, and the sums of these are wanted, too:
            two verbs in one pass over the data.
        width : int, optional
            Number of columns of intermediate results, if larger than that of `rows`: blocks are
            cut so that these fit.
        reuse : bool, default=False
            Whether the result may overwrite the rows, as it has their shape and type and nobody
            needs them any more; or be computed, again and again, when it is read.
        """
        result = _Result(rows[0].shape[0], [rows[0]] if reuse else [])

        def keep(where: slice, made: Any) -> Any:
            blocks, parts = made if sums else (made, None)
            result.put(where, blocks)
            return parts

        parts = self._each_block(work, rows, width, keep)
        if sums:
            total = _add_up(parts)
            return result.rows(), total
        deque(parts, maxlen=0)
        return result.rows()

    def _each_block(
        self,
        work: Work,
        rows: Any,
        width: int | None = None,
        keep: Callable[[slice, Any], Any] | None = None,
    ) -> Iterator[Any]:
        """Yield what `work` makes of every block, in order, and tell the watcher how far it is.

        The first rows tell how blocks are cut, and there is one block at least. Whatever `keep`
        makes of a result, in the same thread, is yielded instead.
        """
        n, step = rows[0].shape[0], rows_per_block(rows[0], width)

        def one(start: int) -> Any:
            where = slice(start, min(start + step, n))
            made = work(
                *(
                    part.read(where) if isinstance(part, Rows | Picked) else part[where]
                    for part in rows
                )
            )
            return made if keep is None else keep(where, made)

        with blas_on_one_thread() as threads:
            results = in_order(one, range(0, max(n, 1), step), self.n_threads or threads)
            yield from counted(results, n, step)

    def join(self, ids: RowSet, others: RowSet, *, ordered: bool = False) -> Alignment:
        """Align known samples and those of a view by their ids.

        Known samples keep their order and new ones follow in the order of the view; with `ordered`,
        all are sorted by id.
        """
        import pandas as pd  # not needed by who only asks (`viewfold.load_encoder`)

        n, n_before = others.size, ids.size
        if np.array_equal(ids, others):
            same = np.arange(n)
            return Alignment(self, ids, same, same, same, np.empty(0, np.intp))
        partner = pd.Index(ids).get_indexer(pd.Index(others)) if n_before else np.full(n, -1)
        new = partner < 0
        rows = partner.copy()
        rows[new] = n_before + np.arange(np.count_nonzero(new))
        previous = np.arange(n_before)
        union = np.concatenate([ids, others[new]]) if n_before else others
        if ordered:
            order = np.argsort(union)
            place = np.empty_like(order)
            place[order] = np.arange(order.size)
            union, rows, previous = union[order], place[rows], place[previous]
        known = np.zeros(n_before, bool)
        known[partner[~new]] = True
        return Alignment(self, union, rows, previous, partner, np.flatnonzero(~known))

    def numbers(self, rows: RowSet) -> RowSet:
        """Return a number for each row, by which it can be selected."""
        return np.arange(rows.shape[0])

    def select(self, rows: RowSet, numbers: NDArray[np.intp]) -> RowSet:
        """Return a few rows, in the given order."""
        assert not isinstance(rows, Picked)
        return Picked(rows, numbers)

    def keep(self, rows: RowSet, kept: RowSet) -> RowSet:
        """Return the rows for which `kept` is true."""
        if isinstance(rows, Rows):
            at = np.flatnonzero(kept)
            return replace(rows, present=at if rows.present is None else rows.present[at])
        return np.asarray(rows[kept])

    def leading(self, rows: RowSet, columns: int) -> RowSet:
        """Return the first columns."""
        if not isinstance(rows, Rows):
            return rows[:, :columns]
        if rows.fill is not None:  # what stands for missing cells is known for whole rows
            return self.map(lambda block: block[:, :columns], rows)
        if rows.columns is not None:
            return replace(rows, columns=rows.columns[:columns])
        return replace(rows, X=rows.X[:, :columns])

    def head(self, rows: RowSet, most: int) -> Matrix:
        """Return at most so many rows, all from one block, as an array."""
        block = slice(0, min(rows.shape[0], rows_per_block(rows)))
        return (rows.read(block) if isinstance(rows, Rows | Picked) else rows[block])[:most]

    def collect(self, rows: RowSet) -> Array:
        """Return all rows as one array; they have to fit in memory."""
        array: Array = rows
        return rows.read(slice(0, rows.shape[0])) if isinstance(rows, Rows | Picked) else array


@dataclass(eq=False)
class LocalEngine(Engine):
    """Rows are arrays, or files that are mapped into memory.

    Parameters
    ----------
    n_threads : int, optional
        How many blocks are worked on at a time; as many as BLAS would use threads if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.rows import LocalEngine
    >>> from viewfold.rows.linalg import gram
    >>> engine, X = LocalEngine(), np.arange(6.0).reshape(3, 2)
    >>> engine.reduce(gram, X)
    array([[20., 26.],
           [26., 35.]])
    >>> engine.map(lambda block: block @ np.array([1.0, 10.0]), X)
    array([10., 32., 54.])
    >>> alignment = engine.join(np.array([7, 8, 9]), np.array([9, 5]))
    >>> alignment.ids, alignment.known
    (array([7, 8, 9, 5]), array([ True, False]))
    """

    n_threads: int | None = None


class Alignment:
    """Where the samples of a view and those known before stand in their union."""

    ids: RowSet  #: the union
    known: RowSet  #: for each row of the view, whether its sample was known
    n_samples: int  #: how many are in the union,
    n_shared: int  #: in both,
    n_new: int  #: in the view only,
    n_before: int  #: and were known before

    def __init__(
        self,
        engine: Engine,
        ids: RowSet,
        rows: RowSet,
        previous: RowSet,
        partner: RowSet,
        lacking: RowSet,
    ) -> None:
        self.engine, self.ids = engine, ids
        # Position in the union of each of the view's rows, and of each sample known before.
        self.rows, self.previous = rows, previous
        # For each of the view's rows, its number among the known samples, −1 for new ones; and the
        # numbers of the known samples that the view lacks.
        self.partner, self.lacking = partner, lacking
        self.known = partner >= 0
        self.n_samples, self.n_before = int(ids.size), previous.size
        self.n_shared = self.n_before - lacking.size
        self.n_new = rows.size - self.n_shared

    def partners(self, rows: RowSet, fill: float = 0) -> RowSet:
        """Return, for each row of the view, what is known of its sample; `fill` if it is new."""
        return self._picked(rows, self.partner, fill)

    def _picked(self, rows: RowSet, at: RowSet, fill: float | None = None) -> RowSet:
        return Picked(rows, at, fill)

    def absent(self, rows: RowSet) -> RowSet:
        """Return what is known of the samples that the view lacks."""
        return lacking_rows(rows, self.lacking)

    def view_rows(self, rows: RowSet) -> RowSet:
        """Return, for each row of the view, the row of its sample among those of the union."""
        return self._picked(rows, self.rows)

    def known_rows(self, rows: RowSet) -> RowSet:
        """Return, for each sample known before, its row among those of the union."""
        return self._picked(rows, self.previous)

    def carry(self, rows: RowSet, fill: float) -> RowSet:
        """Return what is known of each sample of the union, and `fill` for the new ones."""
        return carried_rows(rows, self.previous, fill, self.n_samples)

    def merge(self, of_view: tuple[Any, ...], of_absent: tuple[Any, ...]) -> RowSet:
        """Return a row for each sample of the union.

        Each argument is a work and rows: what `map` is to do with rows of the view, and with those
        of samples that it lacks.
        """
        result = _Result(self.n_samples)
        for (work, *rows), place in (
            (of_view, self.rows),
            (of_absent, self.previous[self.lacking]),
        ):

            def keep(where: slice, made: Any, place: NDArray[np.intp] = place) -> None:
                result.put(place[where], made)

            deque(self.engine._each_block(work, rows, None, keep), maxlen=0)
        return result.rows()


def lacking_rows(rows: Array, lacking: NDArray[np.intp]) -> RowBlocks:
    if rows.ndim == 2 and rows.dtype.kind == "f":
        return Rows(rows, lacking)
    return Picked(rows, lacking)


def carried_rows(rows: Array, previous: NDArray[np.intp], fill: float, n: int) -> Array:
    out = np.full((n, *rows.shape[1:]), fill, rows.dtype)
    out[previous] = rows
    return out


@dataclass
class _Result:
    """Rows that several threads write block by block; the first block tells shape and type."""

    n: int
    out: list[Any] = field(default_factory=list)
    several: bool = False
    lock: Any = field(default_factory=Lock)

    def put(self, where: Any, made: Any) -> None:
        blocks = made if isinstance(made, tuple) else (made,)
        with self.lock:
            if not self.out:
                self.several = isinstance(made, tuple)
                for block in blocks:
                    thin = is_sparse(block)
                    shape = (self.n, *block.shape[1:])
                    self.out.append({} if thin else np.empty(shape, block.dtype))
        for out, block in zip(self.out, blocks, strict=True):
            out[where.start if isinstance(out, dict) else where] = block

    def rows(self) -> Any:
        for i, part in enumerate(self.out):
            if isinstance(part, dict):
                stack = [part.pop(start) for start in sorted(part)]
                self.out[i] = scipy.sparse.vstack(stack, format="csr")
        return tuple(self.out) if self.several else self.out[0]


def added(a: Any, b: Any) -> Any:
    """Return the sum of two sums, or of two tuples of them; the first may be overwritten."""
    if isinstance(a, tuple):
        return tuple(added(one, other) for one, other in zip(a, b, strict=True))
    a += b
    return a


def _add_up(parts: Iterator[Any]) -> Any:
    """Return the sum of arrays, or of tuples of them, in double precision."""
    first = next(parts)
    if isinstance(first, tuple):
        total: Any = tuple(np.array(part, dtype=np.float64) for part in first)
    else:
        total = np.array(first, dtype=np.float64)
    return fold_left(added, parts, total)
