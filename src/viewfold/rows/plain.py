"""Rows in plain files: nothing but bytes, so that a slice of rows is one range of each file.

A path is one of this machine, or an address that fsspec knows (``s3://…``). A file appears whole or
not at all, and writing it again changes nothing: a task can be repeated.
"""

from __future__ import annotations

import os
import shutil
import uuid
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

from viewfold._util.extra import needed
from viewfold._util.file import plain
from viewfold._util.types import Array, Matrix
from viewfold.errors import FULL, NoSpaceError

Kind: TypeAlias = Literal["dense", "sparse", "text"]
"""Numbers; the non-zeros of a sparse matrix; or sample ids that are texts."""


@dataclass(frozen=True)
class Stored:
    """Some rows of a file.

    Attributes
    ----------
    path : str
        The file, without its ending: texts and sparse rows are in several.
    kind : {"dense", "sparse", "text"}
        What rows are.
    dtype : str
        The type of their numbers.
    tail : tuple of int
        The shape of one row.
    start, stop : int
        Which rows.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from viewfold.rows.plain import store
    >>> stored = store(tempfile.mkdtemp() + "/ids", np.array(["ann", "bob", "cleo"], object))
    >>> stored.part(1, 3).open()
    array(['bob', 'cleo'], dtype=object)
    """

    path: str
    kind: Kind
    dtype: str
    tail: tuple[int, ...]
    start: int
    stop: int

    @property
    def n(self) -> int:
        """How many rows."""
        return self.stop - self.start

    def part(self, start: int, stop: int) -> Stored:
        """Return some of these rows."""
        return replace(self, start=self.start + start, stop=self.start + stop)

    def open(self) -> Matrix:
        """Read the rows."""
        if not self.n:
            return self._nothing()
        if self.kind == "dense":
            width = int(np.prod(self.tail, dtype=np.int64))
            flat = self._range("rows", self.dtype, self.start * width, self.stop * width)
            return flat.reshape(self.n, *self.tail)
        starts = self._range("starts", "int64", self.start, self.stop + 1)
        first, last = int(starts[0]), int(starts[-1])
        starts -= first
        if self.kind == "text":
            return _texts(starts, self._range("letters", "uint8", first, last))
        values = self._range("values", self.dtype, first, last)
        columns = self._range("columns", "int32", first, last)
        return sparse.csr_array((values, columns, starts), shape=(self.n, *self.tail))

    def _nothing(self) -> Matrix:
        if self.kind == "sparse":
            return sparse.csr_array((0, *self.tail), dtype=self.dtype)
        return np.empty((0, *self.tail), object if self.kind == "text" else self.dtype)

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
    if sparse.issparse(rows):
        rows = sparse.csr_array(rows)
        _write(f"{path}.starts", rows.indptr.astype(np.int64))
        _write(f"{path}.columns", rows.indices.astype(np.int32))
        _write(f"{path}.values", rows.data)
        return Stored(path, "sparse", rows.dtype.name, tail, 0, n)
    if rows.dtype == object:
        starts, letters = _letters(rows)
        _write(f"{path}.starts", starts)
        _write(f"{path}.letters", letters)
        return Stored(path, "text", "object", tail, 0, n)
    _write(f"{path}.rows", rows)
    return Stored(path, "dense", rows.dtype.name, tail, 0, n)


def _letters(texts: Array) -> tuple[Array, Array]:
    """Return where each text begins, and all of them as UTF-8, one behind the other."""
    try:
        letters = "".join(texts.tolist()).encode()
    except TypeError:
        raise ValueError(
            "Some ids are whole numbers and others are texts. In partitions, all samples need ids "
            "of one kind: write all of them as texts."
        ) from None
    lengths = lengths_of(texts.tolist(), ascii_only=letters.isascii())
    starts = np.zeros(texts.size + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts, np.frombuffer(letters, np.uint8)


def lengths_of(texts: list[str], *, ascii_only: bool) -> list[int]:
    """Return how many bytes each text has in UTF-8."""
    return [len(text) if ascii_only else len(text.encode()) for text in texts]


def _texts(starts: Array, letters: Array) -> Array:
    whole, ends = letters.tobytes(), starts.tolist()
    if whole.isascii():
        text = whole.decode()
        found = [text[a:b] for a, b in pairwise(ends)]
    else:
        found = [whole[a:b].decode() for a, b in pairwise(ends)]
    return np.array(found, dtype=object)


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


def make_folder(path: str) -> None:
    """Make a folder, for its owner only; where there are no folders, nothing has to be made."""
    if not is_remote(path):
        os.makedirs(path, mode=0o700, exist_ok=True)


def remove(path: str) -> None:
    """Remove a folder with all that is in it, if it is there."""
    if not is_remote(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    fs, inside = filesystem(path)
    if fs.exists(inside):
        fs.rm(inside, recursive=True)
