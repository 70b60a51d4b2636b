"""Rows become matrices: what users pass, what is collected in temporary files, and their cells.

`look_at` passes over the cells of rows once: absent samples, missing cells, what cannot be squared.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any

import numpy as np
import pandas as pd
from scipy import sparse

from viewfold._util.types import Array, Matrix, as_python
from viewfold.data.source import Batch, batch_rows
from viewfold.data.view import View, view_label
from viewfold.errors import FULL, NoSpaceError
from viewfold.rows import LocalEngine, Rows

_OWN_LABELS_OR_LAZY = ("index", "columns", "coords", "compute", "collect", "mask", "schema")
_UNDERSTOOD = (
    "Understood are NumPy and SciPy sparse arrays, lists of rows, DataFrames in memory (pandas, "
    "polars and others that narwhals reads), polars LazyFrames, dask DataFrames and arrays, Spark "
    "DataFrames, AnnData, paths of files, and iterators of these"
)


def as_matrix(X: Any, label: str) -> Matrix:
    """Return a 2-D array of real numbers or a CSR array; cells are not looked at yet.

    An object that has labels of its own, or that is lazy, could be converted to an array, but
    without its labels: only types that are known to have none are accepted.
    """
    if not sparse.issparse(X):
        X = _array(X, label)
        if X.ndim != 2:
            raise ValueError(
                f"{label}: Expected 2D array, got {X.ndim}D array instead (shape {X.shape})"
                ". Reshape your data: one row per sample, one column per feature"
                + (", for instance X.reshape(-1, 1) for a single feature." if X.ndim == 1 else ".")
            )
    elif X.ndim != 2:
        raise ValueError(f"{label}: Expected 2D array, got a {X.ndim}D sparse array.")
    else:
        if X.format in ("csr", "csc", "bsr"):  # compiled code does not check indices
            try:
                X = type(X)(X)  # the arrays are shared, but a check may trim them
                X.check_format(full_check=True)
            except ValueError as error:
                raise ValueError(f"{label} is not a valid sparse array: {error}.") from error
        X = sparse.csr_array(X)
    if np.issubdtype(X.dtype, np.complexfloating):
        raise ValueError(f"{label}: Complex data not supported. Give real features.")
    if X.dtype == object or X.dtype.kind in "USTV":
        X = _numbers(X, label)
    if X.dtype.kind not in "fiub" or X.dtype.itemsize > 8:
        raise ValueError(f"{label} holds {X.dtype}; expected real numbers.")
    return X


def _array(X: Any, label: str) -> Array:
    if type(X) in (np.ndarray, np.memmap):
        return X  # type: ignore[no-any-return]
    bare = hasattr(X, "__array__") and not any(hasattr(X, own) for own in _OWN_LABELS_OR_LAZY)
    if isinstance(X, list | tuple) or bare:
        try:
            return np.asarray(X)
        except Exception as error:  # on a graphics card, with gradients, rows of different lengths
            raise ValueError(
                f"{label} cannot be read as an array: {error}. {_UNDERSTOOD}."
            ) from None
    kind = f"{type(X).__module__.split('.')[0]}.{type(X).__name__}"
    ways = ("to_pandas", "toPandas", "compute", "collect", "to_frame", "filled")
    way = next((way for way in ways if callable(getattr(X, way, None))), None)
    shown = "" if way is None else f", for instance with .{way}({'np.nan' * (way == 'filled')})"
    raise TypeError(f"{label} is a {kind}. {_UNDERSTOOD}. Convert it first{shown}.")


def _numbers(X: Array, label: str) -> Array:
    """Return objects or texts that are numbers as float64."""
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError):
        row, column = next(cell for cell in np.ndindex(*X.shape) if not _is_number(X[cell]))
        value = as_python(X[row, column])
        error = ValueError if isinstance(value, str) else TypeError
        raise error(
            f"{label}, row {row}, column {column}: a cell must be a number (an argument "
            f"must be a string that reads as one, or a number), found {value!r} "
            f"({type(value).__name__}). Drop or encode columns that are not numbers."
        ) from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


# -- temporary files: rows go there once and are mapped, as a fold passes over them repeatedly


class Spool:
    """A matrix that grows in a temporary file.

    Most readers give rows in order, and `append` writes them. One that has to read by columns
    reserves room for its rows, puts each piece in its place, and then gives out what is there:
    `append` knows those rows and writes nothing. The file has no name, so that nothing of a view
    is left behind, however the program ends.
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

    ``read(spool)`` gives the batches; a reader puts rows into the spool that it cannot read in
    order. Who appends the batches to a spool of their own takes them with ``read``.
    """

    def __init__(self, read: Callable[[Spool], Iterator[Batch]]) -> None:
        self.into = read
        self._running: Iterator[Batch] | None = None

    def __next__(self) -> Batch:
        if self._running is None:
            self._running = self.into(Spool())
        return next(self._running)


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
    for done in range(0, size, 2**20):
        file.write(bytes(min(2**20, size - done)))
    file.flush()


def spool_batches(parts: Iterator[Any], label: str, spool: Spool) -> Any:
    """Collect row batches in a temporary file and map that: an iterator can be read only once."""
    first = next(parts, None)
    if first is None:
        raise ValueError(f"{label} is empty: its iterator gave no batch.")
    _, top, features = first
    known: list[Any] = []

    def blocks() -> Iterator[Matrix]:
        for ids, block, names in chain([first], parts):
            if sparse.issparse(block) != sparse.issparse(top):
                raise ValueError(f"{label} mixes dense and sparse batches. Use one kind.")
            if block.shape[1] != top.shape[1] or names != features:
                raise ValueError(
                    f"{label}: a batch has {block.shape[1]} columns where the first one had "
                    f"{top.shape[1]}, or other names. Give every batch the same columns in the "
                    "same order."
                )
            known.append(ids)
            yield block

    if sparse.issparse(top):
        matrix = sparse.csr_array(sparse.vstack(list(blocks()), format="csr"))
    else:
        for block in blocks():
            spool.append(block, Rows(top).dtype)
        matrix = spool.matrix()
    return _joined_ids(known), matrix, features


def in_blocks(rows: Any, label: str) -> Any:
    """Return rows that lie in an open file (a backed AnnData) as an array or sparse matrix.

    Dense ones go through a temporary file, block by block; others are returned as they are.
    """
    if type(rows).__module__.split(".")[0] not in ("h5py", "zarr", "anndata"):
        return rows
    if getattr(rows, "format", "csr") != "csr":  # by columns: there are no blocks of rows
        return rows.to_memory()
    step = batch_rows(rows.shape[1])
    starts = range(0, rows.shape[0], step)
    parts = ((None, rows[start : start + step], None) for start in starts)
    return spool_batches(parts, label, Spool())[1] if starts else rows[:0]


def _joined_ids(known: list[Any]) -> Any:
    """Return the ids of all batches; a column that holds text in some batches is text in all."""
    if any(ids is None for ids in known):
        return None
    if all(_is_ints(ids) for ids in known):
        return np.concatenate(known)
    if all(_is_ints(ids) or pd.api.types.infer_dtype(ids) == "string" for ids in known):
        known = [ids.astype(str).tolist() if _is_ints(ids) else ids for ids in known]
    return list(chain.from_iterable(known))


def _is_ints(ids: Any) -> bool:
    return isinstance(ids, np.ndarray) and ids.dtype.kind in "iu"


# -- a look at the cells

# All methods begin with sums of squares. Those of larger numbers would be infinite; those of large
# numbers in single precision are computed in double precision.
LARGEST, LARGEST_SINGLE = 1e140, 1e15
FEWEST_VALUES = 10  # a row with fewer values other than zero may be next to empty by chance


@dataclass(frozen=True)
class Found:
    """What a look at the cells of some rows tells."""

    large: bool  # whether numbers need double precision
    absent: Array  # numbers of the rows of NaN
    empty: Array  # numbers of the rows of zeros
    signed: bool  # whether there is a number below zero
    n_poor: int  # how many rows have few values other than zero, but some
    low: Array | None = None  # the extremes of each feature, of a dense view
    high: Array | None = None
    gaps: bool = False  # whether there is a NaN in a row that has other values

    def mean_absent(self, n: int, n_absent: int, n_empty: int) -> bool:
        """Whether rows of zeros are samples that a view lacks: n_empty of n; others are NaN."""
        return not self.signed and n_empty + n_absent < n and n_empty > self.n_poor

    def __add__(self, other: Found) -> Found:
        return Found(
            self.large or other.large,
            np.append(self.absent, other.absent),
            np.append(self.empty, other.empty),
            self.signed or other.signed,
            self.n_poor + other.n_poor,
            _extreme(np.minimum, self.low, other.low),
            _extreme(np.maximum, self.high, other.high),
            self.gaps or other.gaps,
        )


def _extreme(which: np.ufunc, a: Array | None, b: Array | None) -> Array | None:
    return None if a is None or b is None else np.asarray(which(a, b))


def look_at(view: View, *, ignore_zeros: bool, refuse: bool, first: int = 0) -> Found:
    """Pass over the cells of a view, once; errors call its first row number `first`."""
    X = view.rows.X
    # With few features every row has few values, and a row of zeros is one like any other.
    ignore_zeros |= X.shape[1] < FEWEST_VALUES
    nothing = np.empty(0, np.intp)
    lacking = view.rows.columns is not None and (view.rows.columns < 0).any()
    if X.dtype.kind != "f" and ignore_zeros and not lacking:
        return Found(view.rows.double, nothing, nothing, False, 0)
    most = min(LARGEST, float(np.finfo(view.rows.dtype).max))
    if view.rows.is_sparse:
        return _look_at_sparse(view, most, ignore_zeros, refuse)

    def look(block: Matrix, numbers: Array) -> Found:
        # Extremes tell most of the time, and take no memory; a NaN is in both of them.
        lows, highs = block.min(axis=0), block.max(axis=0)
        low, high = float(lows.min()), float(highs.max())
        single = block.dtype == np.float32
        large, absent, gaps = False, numbers[:0], False
        if not max(-low, high) <= (LARGEST_SINGLE if single else most):
            size = np.abs(block)
            large = single and bool((size > LARGEST_SINGLE).any())
            fine = size <= most
            if not fine.all():
                missing = np.isnan(block)
                gone = missing.all(axis=1)
                cells = np.argwhere(~(fine | gone[:, None] | (missing & (not refuse))))
                if cells.size:
                    row, column = (int(i) for i in cells[0])
                    raise unusable(view, int(numbers[row]), column, block[row, column], first)
                absent, there = numbers[gone], block[~gone]
                gaps = bool(missing[~gone].any())
                lows = np.fmin.reduce(there, axis=0, initial=np.inf)
                highs = np.fmax.reduce(there, axis=0, initial=-np.inf)
                low = float(lows.min())
        if low != 0 or ignore_zeros:
            return Found(large, absent, numbers[:0], low < 0, 0, lows, highs, gaps)
        few = _few(np.count_nonzero(block, axis=1), numbers)
        return Found(large, absent, *few, lows, highs, gaps)

    engine = LocalEngine()
    found: Found = engine.reduce(look, view.rows, engine.numbers(view.rows), combine=Found.__add__)
    return found


def _look_at_sparse(view: View, most: float, ignore_zeros: bool, refuse: bool) -> Found:
    X, large, gaps, nothing = view.rows.X, False, False, np.empty(0, np.intp)
    absent = nothing
    if X.dtype.kind == "f":
        size = np.abs(X.data.astype(view.rows.dtype, copy=False))
        bad = np.flatnonzero(~(size <= most))
        missing = np.isnan(size[bad])
        if missing.any():
            row = np.searchsorted(X.indptr, bad[missing], side="right") - 1
            count = np.bincount(row, minlength=X.shape[0])
            absent = np.flatnonzero(count == X.shape[1])
            gaps = bool(((count > 0) & (count < X.shape[1])).any())
        bad = bad if refuse else bad[~missing]
        if bad.size:
            row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
            raise unusable(view, row, view.rows.column(int(X.indices[bad[0]])), X.data[bad[0]])
        large = bool((size > LARGEST_SINGLE).any())
    if ignore_zeros or (X.data < 0).any():
        return Found(large, absent, nothing, True, 0, gaps=gaps)
    stored = np.diff(X.indptr) if X.data.all() else X.count_nonzero(axis=1)
    return Found(large, absent, *_few(stored, np.arange(X.shape[0])), gaps=gaps)


def _few(counts: Array, numbers: Array) -> tuple[Array, bool, int]:
    """Return the rows without a value other than zero, and how many have few."""
    poor = (counts > 0) & (counts < FEWEST_VALUES)
    return numbers[counts == 0], False, int(np.count_nonzero(poor))


def unusable(view: View, row: int, column: int, value: Any, first: int = 0) -> ValueError:
    """Return the error about a cell that cannot be computed with."""
    which = repr(view.features[column]) if view.features else column
    if np.isfinite(value):
        shown = f"{value:.3g}"
        said = (
            f"Numbers beyond {LARGEST:.0e} cannot be squared. If it marks a missing value, impute "
            "or drop it; otherwise divide the column by a large number."
        )
    else:
        shown = "NaN" if np.isnan(value) else "inf"
        said = (
            "Impute or drop it; a sample that this view lacks altogether is a row "
            "without any value."
        )
        if np.isnan(value):
            said += " missing_cells='accept' takes it as it is."
    return ValueError(
        f"{view_label(view.name, view.file)} contains {shown} in row {first + row} "
        f"(id {as_python(view.ids[row])!r}), column {which}. {said}"
    )
