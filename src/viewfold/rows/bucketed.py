"""Rows in buckets: each sample is in the bucket that its id falls into, whoever brings it.

`BucketRows` is all that a program may know of them. What is in a bucket is a recipe (`Part`) that
is followed where the bucket is worked on: read a slice of a file, pick rows by number, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from viewfold._util.types import Array, Matrix
from viewfold.rows._rows import Plain, RowBlocks, Rows
from viewfold.rows.normal import hashed
from viewfold.rows.plain import Stored, store


class Part(Protocol):
    """The rows of one bucket, as they can be had."""

    @property
    def n(self) -> int:
        """Return how many rows there are."""

    def open(self) -> Any:
        """Return rows that the local engine can read."""


@dataclass(frozen=True)
class Pieces:
    """Slices of several files: what each partition of a view has of a bucket."""

    pieces: tuple[Stored, ...]

    @property
    def n(self) -> int:
        """How many rows."""
        return sum(piece.n for piece in self.pieces)

    def open(self) -> Matrix:
        """Read all of them."""
        found = [piece.open() for piece in self.pieces if piece.n] or [self.pieces[0].open()]
        if len(found) == 1:
            return found[0]
        return sparse.vstack(found, format="csr") if sparse.issparse(found[0]) else _joined(found)


def _joined(arrays: list[Array]) -> Array:
    return np.concatenate(arrays)


@dataclass(frozen=True)
class Made:
    """Rows that are made of other rows when they are needed."""

    make: Callable[..., Any]
    parts: tuple[Part, ...]
    n: int

    def open(self) -> Any:
        """Make them."""
        return self.make(*(part.open() for part in self.parts))


@dataclass(frozen=True, eq=False)
class BucketRows:
    """Rows (or single values) of samples, in buckets.

    Attributes
    ----------
    parts : tuple of Part
        The rows of each bucket.
    held : numpy.dtype
        Their type in files.
    tail : tuple of int
        The shape of one row.
    is_sparse : bool
        Whether they are CSR arrays.
    stored : int
        Number of stored entries.
    cells : bool
        Whether these are rows of a view, read in blocks of floating-point numbers as `Rows` does.
    columns, double, fill
        See `Rows`.
    engine : BucketEngine
        Computes with them.
    owner : object
        Files are removed when nobody holds this any more.
    """

    parts: tuple[Part, ...]
    held: np.dtype[Any]
    tail: tuple[int, ...]
    engine: Any
    is_sparse: bool = False
    stored: int = 0
    cells: bool = False
    columns: NDArray[np.intp] | None = None
    double: bool = False
    fill: Callable[[Matrix], Matrix] | None = None
    owner: Any = None

    def __reduce__(self) -> Any:
        raise TypeError("Rows in buckets cannot be pickled: save the model to a .vfd folder.")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Rows in buckets are no array: use the verbs of the engine, or `collect`.")

    @property
    def n(self) -> int:
        """How many rows there are."""
        return sum(part.n for part in self.parts)

    @property
    def size(self) -> int:
        """How many values there are."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, columns."""
        tail = self.tail if self.columns is None else (self.columns.size,)
        return (self.n, *tail)

    @property
    def ndim(self) -> int:
        """1 of single values, 2 of rows."""
        return 1 + len(self.tail)

    @property
    def dtype(self) -> np.dtype[Any]:
        """What blocks come as."""
        if not self.cells:
            return self.held
        return Rows(np.empty((0, 1), self.held), double=self.double).dtype

    @property
    def on_disk(self) -> bool:
        """Whether each pass reads files."""
        return True

    def column(self, of_matrix: int) -> int:
        """Return which column of blocks a column of the matrix is."""
        return Rows(np.empty((0, 0)), columns=self.columns).column(of_matrix)

    @property
    def opener(self) -> Callable[[Any], Any]:
        """What is done with an opened part before it is read."""
        if not self.cells:
            return _same
        return partial(_as_rows, columns=self.columns, double=self.double, fill=self.fill)


def _same(rows: Any) -> Any:
    return rows


def _as_rows(rows: Any, **how: Any) -> Rows:
    return Rows(whole(rows), **how)


def whole(rows: Any) -> Any:
    """Return opened rows as one array."""
    if isinstance(rows, RowBlocks):
        return rows.read(slice(0, rows.shape[0]))
    return rows


def plain(rows: Any) -> Plain:
    """Return opened rows as rows that can be picked from."""
    return rows if isinstance(rows, Plain) else Plain(whole(rows))


def bucket_of(ids: Array, n_buckets: int) -> NDArray[np.intp]:
    """Return the bucket of each id. Ids that are almost the same are in the same bucket.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.rows.bucketed import bucket_of
    >>> one, two, three = bucket_of(np.array(["P7", "p7 ", "p8"], object), 1000)
    >>> bool(one == two), bool(one == three)
    (True, False)
    >>> bool(bucket_of(np.array([7]), 9) == bucket_of(np.array(["007"], object), 9))
    True
    """
    return np.asarray(hashed(ids) % np.uint64(n_buckets), np.intp)


def former_bucket_of(ids: Array, n_buckets: int) -> NDArray[np.intp]:
    """Return where viewfold 0.1 put each id: whole numbers of 19 digits and their texts apart.

    Folders that it wrote are still read; nothing is written so any more.
    """
    return np.asarray(hashed(ids, digits=18) % np.uint64(n_buckets), np.intp)


@dataclass(frozen=True)
class Dealt:
    """Rows of one partition in files, sorted by bucket.

    Attributes
    ----------
    files : tuple of Stored
        The ids, then the other rows.
    starts : ndarray of int, shape (n_buckets + 1,)
        Where the rows of each bucket begin.
    stored : tuple of int
        How many entries each has.
    """

    files: tuple[Stored, ...]
    starts: NDArray[np.int64]
    stored: tuple[int, ...]

    def piece(self, which: int, bucket: int) -> Stored:
        """Return what there is of a bucket."""
        return self.files[which].part(int(self.starts[bucket]), int(self.starts[bucket + 1]))


def deal(path: str, n_buckets: int, ids: Array, *rows: Matrix | list[Array]) -> Dealt:
    """Write ids and rows of a partition to files, sorted by bucket.

    Parameters
    ----------
    path : str
        How files begin.
    n_buckets : int
        How many buckets there are.
    ids : ndarray
        The samples.
    *rows : array, csr_array or list of arrays
        Rows of the same samples; those of a list follow each other.
    """
    bucket = bucket_of(ids, n_buckets)
    order = np.argsort(bucket.astype(np.uint16 if n_buckets < 2**16 else np.int64), kind="stable")
    count = np.bincount(bucket, minlength=n_buckets)
    held, entries = [], []
    for i, one in enumerate((ids, *rows)):
        ordered = _in_order(one, order)
        held.append(store(f"{path}-{i}", ordered))
        entries.append(int(ordered.nnz if sparse.issparse(ordered) else ordered.size))
    return Dealt(tuple(held), np.append(0, np.cumsum(count)), tuple(entries))


def _in_order(rows: Matrix | list[Array], order: NDArray[np.intp]) -> Matrix:
    if not isinstance(rows, list):
        return rows[order]
    out = np.empty((order.size, *rows[0].shape[1:]), rows[0].dtype)
    place, start = np.empty_like(order), 0
    place[order] = np.arange(order.size)
    for block in rows:  # each row is copied once
        out[place[start : start + len(block)]] = block
        start += len(block)
    return out


def assembled(dealt: list[Dealt], engine: Any, *, owner: Any) -> tuple[BucketRows, ...]:
    """Return ids and rows of all partitions; rows of numbers are those of a view."""
    made = []
    for which in range(len(dealt[0].files)):
        first = dealt[0].files[which]
        parts = tuple(
            Pieces(tuple(one.piece(which, bucket) for one in dealt))
            for bucket in range(engine.n_buckets)
        )
        made.append(
            BucketRows(
                parts,
                np.dtype(object if first.kind == "text" else first.dtype),
                first.tail,
                engine,
                is_sparse=first.kind == "sparse",
                stored=sum(one.stored[which] for one in dealt),
                cells=which > 0 and len(first.tail) == 1,
                owner=owner,
            )
        )
    return tuple(made)
