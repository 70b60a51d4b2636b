"""Rows in buckets, in plain files: a sample is in the bucket that its id falls into.

A file holds nothing but bytes, so that a slice of rows is one range of it. A path is one of this
machine, or an address that fsspec knows (``s3://…``). A file appears whole or not at all, and
writing it again changes nothing: a task can be repeated.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from viewfold._util.file import plain
from viewfold._util.messages import needed
from viewfold._util.types import Array, Matrix
from viewfold.errors import FULL, NoSpaceError
from viewfold.rows.linalg import is_sparse
from viewfold.rows.local import LocalEngine, Rows
from viewfold.rows.normal import hashed

# Numbers; the non-zeros of a sparse matrix; or sample ids that are texts.
Kind: TypeAlias = Literal["dense", "sparse", "text"]


@dataclass(frozen=True)
class Stored:
    """Rows from `start` to `stop` of a file; texts and sparse rows are in several with one path."""

    path: str
    kind: Kind
    dtype: str
    tail: tuple[int, ...]  # the shape of one row
    start: int
    stop: int

    @property
    def n(self) -> int:
        return self.stop - self.start

    def part(self, start: int, stop: int) -> Stored:
        return replace(self, start=self.start + start, stop=self.start + stop)

    def open(self) -> Matrix:
        """Read the rows."""
        if not self.n:
            if self.kind == "sparse":
                return scipy.sparse.csr_array((0, *self.tail), dtype=self.dtype)
            return np.empty((0, *self.tail), object if self.kind == "text" else self.dtype)
        if self.kind == "dense":
            width = int(np.prod(self.tail, dtype=np.int64))
            flat = self._range("rows", self.dtype, self.start * width, self.stop * width)
            return flat.reshape(self.n, *self.tail)
        starts = self._range("starts", "int64", self.start, self.stop + 1)
        first, last = int(starts[0]), int(starts[-1])
        starts -= first
        if self.kind == "text":
            letters, ends = self._range("letters", "uint8", first, last).tobytes(), starts.tolist()
            if letters.isascii():
                text = letters.decode()
                texts = [text[a:b] for a, b in pairwise(ends)]
            else:
                texts = [letters[a:b].decode() for a, b in pairwise(ends)]
            return np.array(texts, dtype=object)
        values = self._range("values", self.dtype, first, last)
        columns = self._range("columns", "int32", first, last)
        return scipy.sparse.csr_array((values, columns, starts), shape=(self.n, *self.tail))

    def _range(self, ending: str, dtype: str, start: int, stop: int) -> Array:
        kind, path = np.dtype(dtype), f"{self.path}.{ending}"
        if not is_remote(path):
            read = np.fromfile(path, kind, stop - start, offset=start * kind.itemsize)
        else:
            fs, inside = filesystem(path)
            held = fs.cat_file(inside, start=start * kind.itemsize, end=stop * kind.itemsize)
            read = np.frombuffer(held, kind).copy()
        if read.size != stop - start:
            raise OSError(f"{path} is shorter than it was: it was changed by another program.")
        return read


def store(path: str, rows: Matrix) -> Stored:
    """Write rows to a file."""
    n, tail = rows.shape[0], tuple(int(width) for width in rows.shape[1:])
    if is_sparse(rows):
        rows = scipy.sparse.csr_array(rows)
        _write(f"{path}.starts", rows.indptr.astype(np.int64))
        _write(f"{path}.columns", rows.indices.astype(np.int32))
        _write(f"{path}.values", rows.data)
        return Stored(path, "sparse", rows.dtype.name, tail, 0, n)
    if rows.dtype == object:
        starts, letters = _encode(rows)
        _write(f"{path}.starts", starts)
        _write(f"{path}.letters", letters)
        return Stored(path, "text", "object", tail, 0, n)
    _write(f"{path}.rows", rows)
    return Stored(path, "dense", rows.dtype.name, tail, 0, n)


def _encode(texts: Array) -> tuple[Array, Array]:
    """Return where each text begins, and all of them as UTF-8, one behind the other."""
    try:
        letters = "".join(texts.tolist()).encode()
    except TypeError:
        raise ValueError(
            "Some ids are whole numbers and others are texts. In partitions, all samples need ids "
            "of one kind: write all of them as texts."
        ) from None
    starts = np.zeros(texts.size + 1, np.int64)
    alone = letters.isascii()  # then a letter is a byte
    lengths = [len(text) if alone else len(text.encode()) for text in texts.tolist()]
    np.cumsum(lengths, out=starts[1:])
    return starts, np.frombuffer(letters, np.uint8)


def _write(path: str, array: Array) -> None:
    """Write an array, unless it is of no rows: then nobody reads it."""
    if array.size == (path.endswith(".starts")):
        return
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b""
    if is_remote(path):
        fs, inside = filesystem(path)
        fs.makedirs(os.path.dirname(inside), exist_ok=True)
        fs.pipe_file(inside, bytes(data))
        return
    draft = f"{path}.{uuid.uuid4().hex}"
    try:
        with open(draft, "wb") as file:
            file.write(data)
        os.replace(draft, path)
    except BaseException as error:
        if os.path.exists(draft):
            os.unlink(draft)
        if isinstance(error, OSError) and error.errno in FULL:
            raise NoSpaceError(
                f"No space is left for temporary files in {os.path.dirname(path)}. Free some, or "
                f"name a folder on a larger disk: folder=…, or TMPDIR."
            ) from None
        raise


def is_remote(path: str) -> bool:
    """Whether this is an address rather than a path of this machine."""
    return "://" in path


def filesystem(path: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path in it."""
    fs, inside = needed("fsspec", "remote", f"{plain(path)}: reaching it").core.url_to_fs(path)
    return fs, inside


def remove(path: str) -> None:
    """Remove a folder with all that is in it, if it is there."""
    if not is_remote(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    fs, inside = filesystem(path)
    if fs.exists(inside):
        fs.rm(inside, recursive=True)


# -- the rows of buckets -------------------------------------------------------------------------


class Part(Protocol):
    """The rows of one bucket: a recipe that is followed where the bucket is worked on."""

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
        return sum(piece.n for piece in self.pieces)

    def open(self) -> Matrix:
        return stacked([p.open() for p in self.pieces if p.n] or [self.pieces[0].open()])


def stacked(blocks: list[Matrix]) -> Any:
    if len(blocks) == 1:
        return blocks[0]
    if any(is_sparse(block) for block in blocks):
        return scipy.sparse.csr_array(scipy.sparse.vstack(blocks, format="csr"))
    return np.concatenate(blocks)


@dataclass(frozen=True)
class Made:
    """Rows that are made of other rows when they are needed."""

    make: Callable[..., Any]
    parts: tuple[Part, ...]
    n: int

    def open(self) -> Any:
        return self.make(*(part.open() for part in self.parts))


@dataclass(frozen=True, eq=False)
class BucketRows:
    """Rows (or single values) of samples, in buckets: all that a program may know of them.

    `columns`, `double` and `fill` are those of `Rows`.
    """

    parts: tuple[Part, ...]  # the rows of each bucket
    held: np.dtype[Any]  # their type in files
    tail: tuple[int, ...]  # the shape of one row
    engine: Any  # computes with them
    is_sparse: bool = False
    stored: int = 0  # number of stored entries
    cells: bool = False  # rows of a view, read in blocks of floating-point numbers as `Rows` does
    columns: NDArray[np.intp] | None = None
    double: bool = False
    fill: Callable[[Matrix], Matrix] | None = None
    owner: Any = None  # files are removed when nobody holds this any more
    on_disk = True

    def __reduce__(self) -> Any:
        raise TypeError("Rows in buckets cannot be pickled: save the model to a .vfd folder.")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Rows in buckets are no array: use the verbs of the engine, or `collect`.")

    @property
    def n(self) -> int:
        return sum(part.n for part in self.parts)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def shape(self) -> tuple[int, ...]:
        tail = self.tail if self.columns is None else (self.columns.size,)
        return (self.n, *tail)

    @property
    def ndim(self) -> int:
        return 1 + len(self.tail)

    @property
    def dtype(self) -> np.dtype[Any]:
        """What blocks come as."""
        if not self.cells:
            return self.held
        return Rows(np.empty((0, 1), self.held), double=self.double).dtype

    def column(self, of_matrix: int) -> int:
        """Return which column of blocks a column of the matrix is."""
        return Rows(np.empty((0, 0)), columns=self.columns).column(of_matrix)

    def lazily(
        self,
        make: Callable[..., Any],
        *others: BucketRows,
        n: Sequence[int] | None = None,
        **changes: Any,
    ) -> BucketRows:
        """Return rows that are made of these, and of others, whenever a bucket is worked on.

        ``n`` are how many each bucket has then, if not as many as here.
        """
        buckets = zip(self.parts, *(other.parts for other in others), strict=True)
        many = n or [part.n for part in self.parts]
        parts = tuple(Made(make, own, many[i]) for i, own in enumerate(buckets))
        owner = (self.owner, *(other.owner for other in others))
        return replace(self, parts=parts, owner=owner, **changes)

    @property
    def opener(self) -> Callable[[Any], Any]:
        """What is done with an opened part before it is read."""
        if not self.cells:
            return same
        how: dict[str, Any] = {"columns": self.columns, "double": self.double, "fill": self.fill}
        return lambda rows: Rows(whole(rows), **how)


def same(rows: Any) -> Any:
    return rows


def whole(rows: Any) -> Any:
    """Return opened rows as one array."""
    return LocalEngine().collect(rows)


def bucket_of(ids: Array, n_buckets: int) -> NDArray[np.intp]:
    """Return the bucket of each id. Ids that are almost the same are in the same bucket."""
    return np.asarray(hashed(ids) % np.uint64(n_buckets), np.intp)


@dataclass(frozen=True)
class PartitionFiles:
    """Ids and rows of one partition in files, sorted by bucket."""

    files: tuple[Stored, ...]
    starts: NDArray[np.int64]  # where the rows of each bucket begin, and the end
    stored: tuple[int, ...]  # how many entries each file has

    def piece(self, which: int, bucket: int) -> Stored:
        return self.files[which].part(int(self.starts[bucket]), int(self.starts[bucket + 1]))


def write_buckets(
    path: str, n_buckets: int, ids: Array, *rows: Matrix | list[Array]
) -> PartitionFiles:
    """Write ids and rows of a partition to files that begin with a path, sorted by bucket.

    Rows may be a list of arrays that follow each other.
    """
    bucket = bucket_of(ids, n_buckets)
    order = np.argsort(bucket.astype(np.uint16 if n_buckets < 2**16 else np.int64), kind="stable")
    count = np.bincount(bucket, minlength=n_buckets)
    held, entries = [], []
    for i, one in enumerate((ids, *rows)):
        ordered = _in_order(one, order)
        held.append(store(f"{path}-{i}", ordered))
        entries.append(n_entries(ordered))
    return PartitionFiles(tuple(held), np.append(0, np.cumsum(count)), tuple(entries))


def n_entries(rows: Matrix) -> int:
    return int(rows.nnz if is_sparse(rows) else rows.size)


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


def combine_partitions(
    partitions: list[PartitionFiles], engine: Any, *, owner: Any
) -> tuple[BucketRows, ...]:
    """Return ids and rows of all partitions; rows of numbers are those of a view."""
    made = []
    for which, first in enumerate(partitions[0].files):
        parts = tuple(
            Pieces(tuple(one.piece(which, bucket) for one in partitions))
            for bucket in range(engine.n_buckets)
        )
        made.append(
            BucketRows(
                parts,
                np.dtype(object if first.kind == "text" else first.dtype),
                first.tail,
                engine,
                is_sparse=first.kind == "sparse",
                stored=sum(one.stored[which] for one in partitions),
                cells=which > 0 and len(first.tail) == 1,
                owner=owner,
            )
        )
    return tuple(made)
