"""Matrices of numbers without ids: NumPy's .npy and .npz, MATLAB's .mat, Matrix Market's .mtx.

MATLAB and Matrix Market are parsed here: SciPy 1.17 ended the process in seven of eight rounds of
4,000 damaged files.
"""

from __future__ import annotations

import csv
import io
import os
import re
import struct
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from viewfold._util.file import ReadOptions
from viewfold._util.messages import format_names
from viewfold._util.types import Array
from viewfold.data.arrays import Spool
from viewfold.data.fetch import beside
from viewfold.data.guard import LONGEST_LINE, PACKED, Budget, Unpacked, as_csr
from viewfold.data.hdf5 import ask, opened
from viewfold.data.source import (
    BATCH_BYTES,
    FileError,
    FileView,
    as_object,
    leave_out,
    natural,
    reading,
    too_large,
)

# -- NumPy: .npy is one view, copied and mapped, never held whole; .npz holds several

_PARTS = ("data", "indices", "indptr", "shape")  # of a sparse matrix in an archive
_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10_000  # as numpy.load has it


class _Header(NamedTuple):
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

    def check(self, place: str, there: int) -> None:
        if self.size > there:
            raise FileError(
                f"{place} says that it is {self}, which takes {self.size:,} bytes, but there are "
                f"{there:,}. Is the file whole?"
            )


def read_numpy(file: str, ids: str | None, options: ReadOptions) -> dict[str, FileView]:
    """Read the views of a file; its rows are known by their number."""
    if not file.lower().endswith(".npy"):
        views, unused, _ = _archive(file, with_target=False)
        called = [name for name in views if is_called_target(name)]
        if called:
            warnings.warn(
                f"{file}: {format_names(called)} taken as a view, as a matrix is. If it holds "
                "classes, leave it out of the file.",
                stacklevel=2,
            )
        leave_out(file, unused, views)
        return {name: FileView(rows) for name, rows in views.items()}
    with reading(file, "a NumPy array"), open(file, "rb") as stream:
        if stream.read(2) == b"PK":
            raise FileError(f"{file}: an .npz archive. Rename it to .npz.")
        stream.seek(0)
        header = _header(file, stream)
        header.check(f"{file}: the array", os.path.getsize(file) - stream.tell())
        if not header.size:  # nothing can be mapped where nothing is
            return {"": FileView(np.empty(header.shape, header.dtype))}
        if not header.is_view:  # which is refused by whoever makes a view of it
            Budget(file).hold(header.size, str(header))
            return {"": FileView(np.load(file, allow_pickle=False))}
        return {"": FileView(_spooled(file, stream, header))}


def _spooled(file: str, stream: IO[bytes], header: _Header) -> Array:
    """Copy an array to a temporary file, block by block, and map that.

    The file itself is not mapped: if anybody shortened it, the next look at it would end the
    process.
    """
    Budget(file).spool(header.size, str(header))
    n, d = header.shape[::-1] if header.by_columns else header.shape
    spool, step = Spool(), max(1, BATCH_BYTES // max(1, d * header.dtype.itemsize))
    start = spool.reserve(header.shape[0], header.shape[1], header.dtype)
    for at in range(0, n, step):
        many = min(step, n - at)
        block = np.fromfile(stream, header.dtype, many * d)
        if block.size < many * d:
            raise FileError(f"{file}: it became shorter while it was read. Give it again.")
        block = block.reshape(many, d)
        spool.put(*((start, at, block.T) if header.by_columns else (start + at, 0, block)))
    return spool.matrix()


def _archive(file: str, with_target: bool) -> tuple[dict[str, Any], dict[str, str], Array | None]:
    """Return the views of an archive, what else there is, and the classes, if they are wanted.

    The headers of all arrays are looked at before one of them is read.
    """
    with reading(file, "a NumPy archive"), open(file, "rb") as stream:
        if stream.read(len(_MAGIC)) == _MAGIC:
            raise FileError(f"{file}: a single array, not an archive. Rename it to .npy.")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as archive:
            headers = _headers(file, archive)
            if {"format", "shape", "data"} <= headers.keys():  # as SciPy writes it
                return {"": as_csr(sparse.load_npz(file), file)}, {}, None
            called = [name for name in headers if with_target and is_called_target(name)]
            targets = {name: held for name in called if is_target(name, held := archive[name])}
            target = as_target(file, list(targets.values())[-1]) if targets else None
            views = _matrices(file, archive, headers, [n for n in headers if n not in targets])
            unused = [name for name in headers if {name, _split(name, headers)}.isdisjoint(views)]
            return views, {name: str(headers[name]) for name in unused}, target


def _headers(file: str, archive: Any) -> dict[str, _Header]:
    members = {info.filename.removesuffix(".npy"): info for info in archive.zip.infolist()}
    if len(members) != len(archive.zip.infolist()):
        raise FileError(f"{file}: two arrays have the same name. Give each its own.")
    headers = {}
    for name, info in members.items():
        with archive.zip.open(info) as stream:
            headers[name] = _header(file, stream)
        headers[name].check(f"{file}: {name!r}", info.file_size)
    total = sum(header.size for header in headers.values())
    Budget(file).hold(total, f"{len(headers)} arrays")
    return headers


def _header(file: str, stream: IO[bytes]) -> _Header:
    """Read a header, which has a length of its own, of four bytes since version 2."""
    start = stream.read(12)
    if start[:6] != _MAGIC or len(start) < 12:
        raise FileError(f"{file}: cannot be read as a NumPy array: its first bytes are others.")
    first = start[6] == 1
    length = int.from_bytes(start[8:10] if first else start[8:12], "little")
    if length > _LONGEST_HEADER:
        raise FileError(f"{file}: a header of {length:,} bytes, where a hundred do. Is it whole?")
    text = io.BytesIO(start[8:] + stream.read(length - 2 if first else length))
    parse = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = parse(text)
    if min(shape, default=0) < 0:
        raise FileError(f"{file}: an array of shape {shape}. Is the file whole?")
    return _Header(tuple(map(int, shape)), dtype, by_columns)


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
            data, indices, indptr, shape = (archive[f"{base}_{part}"] for part in _PARTS)
            held = sparse.csr_array((data, indices, indptr), shape=tuple(map(int, shape)))
            views[base] = as_csr(held, file)
    if not views:
        raise FileError(
            f"{file}: there is no 2-D array of numbers among {format_names(headers)}. Save a view "
            "with one row per sample and one column per feature."
        )
    return dict(sorted(views.items(), key=lambda item: natural(item[0])))


def _split(name: str, names: dict[str, _Header]) -> str | None:
    """Return what a sparse matrix is called, of which this array is one of four parts."""
    base, _, part = name.rpartition("_")
    whole = part in _PARTS and base and all(f"{base}_{other}" in names for other in _PARTS)
    return base if whole else None


# -- MATLAB, version 5 to 7.3: the matrices of a cell array, or those of the file

_HDF5 = b"\x89HDF\r\n\x1a\n"
_USUAL = ("x", "data", "fea", "feature", "features", "views", "view")


def read_matlab(file: str, ids: str | None, options: ReadOptions) -> dict[str, FileView]:
    """Read the views of a file; its rows are known by their number."""
    with reading(file, "a MATLAB file"):
        variables = _variables(file)
        views, unused = _choose(file, variables)
        others = {name: variables[name] for name in unused}
        shapes = (
            f"cell array of {len(held)}" if isinstance(held, list) else f"shape {held.shape}"
            for held in others.values()
        )
        leave_out(file, dict(zip(others, shapes, strict=True)), views)
        # A vector of classes is no view, but it tells how many samples there are.
        target = _target(file, others)
        return {name: FileView(rows) for name, rows in _upright(file, views, target).items()}


def read_set(file: str) -> tuple[dict[str, Any], Array | None]:
    """Read views and target of an .npz or .mat file."""
    if file.lower().endswith(".npz"):
        views, _, target = _archive(file, with_target=True)
        return views, target
    with reading(file, "a MATLAB file"):
        variables = _variables(file)
        target = _target(file, variables)
        others = {name: held for name, held in variables.items() if not is_target(name, held)}
        return _upright(file, _choose(file, others)[0], target), target


def _variables(file: str) -> dict[str, Any]:
    """Return the matrices of a file by name, and cell arrays as lists of their matrices."""
    with open(file, "rb") as stream:
        start = stream.read(520)
        if not start.startswith(_HDF5) and start[512:] != _HDF5:
            stream.seek(0)
            return _version_5(file, stream)
    budget = Budget(file)
    with opened(file, "hdf5") as whole:
        found = {name: _node_73(whole[name], budget) for name in whole if name != "#refs#"}
    return {name: held for name, held in found.items() if held is not None}


def _target(file: str, variables: dict[str, Any]) -> Array | None:
    found = (as_target(file, held) for name, held in variables.items() if is_target(name, held))
    return next((target for target in found if target is not None), None)


def _choose(file: str, variables: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the matrices that are views, those of one cell array or all there are, and the rest.

    The rest are the names of variables that are no view. Samples may be in rows or in columns.
    """
    lists = {name: held for name, held in variables.items() if isinstance(held, list)}
    cells = {name: found for name in lists if (found := list(filter(_is_view, lists[name])))}
    usual = [name for name in cells if name.lower() in _USUAL]
    if len(cells) > 1 and len(usual) != 1:
        raise FileError(
            f"{file}: several cell arrays could hold the views: {format_names(cells)}. Keep one of "
            "them, or call it X."
        )
    if cells:
        name = usual[0] if usual else next(iter(cells))
        views = {f"{name}{i}": matrix for i, matrix in enumerate(cells[name], 1)}
        return views, [other for other in variables if other != name]
    views = {name: held for name, held in variables.items() if _is_view(held)}
    if not views:
        raise FileError(
            f"{file}: there is no matrix of numbers among {format_names(variables)}. Save the "
            "views in a cell array X, one row per sample."
        )
    return views, [name for name in variables if name not in views]


def _is_view(held: Any) -> bool:
    array = sparse.issparse(held) or isinstance(held, np.ndarray)
    return array and held.ndim == 2 and held.dtype.kind in "fiub" and min(held.shape) > 1


def _upright(file: str, views: dict[str, Any], target: Array | None) -> dict[str, Any]:
    """Put samples in rows, whichever number of them the views (and the classes) agree on."""
    shapes = [matrix.shape for matrix in views.values()]
    agreed = set.intersection(*map(set, shapes))
    if target is not None:
        agreed &= {target.size}
    in_rows = {rows for rows, _ in shapes}
    if len(in_rows) == 1 and in_rows <= agreed:  # equal shapes, for instance
        agreed = in_rows
    if len(agreed) != 1:
        classes = "" if target is None else f" and {target.size} classes"
        raise FileError(
            f"{file}: the views have shapes {', '.join(map(str, shapes[:6]))}{classes}: there is "
            "no number of samples that all agree on. Save one row per sample in every view."
        )
    (n,) = agreed
    # A square matrix does not say how it lies: as the others do.
    across = any(rows != n for rows, _ in shapes)
    upright = {}
    for name, matrix in views.items():
        turned = matrix.T if matrix.shape[0] != n or (across and matrix.shape[1] == n) else matrix
        is_sparse = sparse.issparse(matrix)
        upright[name] = as_csr(turned, file) if is_sparse else np.ascontiguousarray(turned)
    return upright


def _node_73(node: Any, budget: Budget) -> Any:
    """Return a matrix, the matrices of a cell array as a list, None for anything else."""
    import h5py

    if _is_matrix_73(node):
        ask(node, budget)
        return _matrix_73(node)
    if not isinstance(node, h5py.Dataset) or node.dtype != h5py.ref_dtype:
        return None
    ask(node, budget)
    parts = [node.file[ref] for ref in node[()].ravel(order="F") if ref]
    # A cell array in a cell array is no view, and may hold itself.
    parts = [part for part in parts if _is_matrix_73(part)]
    for part in parts:  # before one of them is read
        ask(part, budget)
    return [_matrix_73(part) for part in parts]


def _is_matrix_73(node: Any) -> bool:
    return "MATLAB_sparse" in node.attrs or (hasattr(node, "dtype") and not node.dtype.hasobject)


def _matrix_73(node: Any) -> Any:
    if "MATLAB_empty" in node.attrs and "MATLAB_sparse" not in node.attrs:
        return np.empty((0, 0))
    if "MATLAB_sparse" not in node.attrs:
        return node[()].T  # MATLAB counts columns first, HDF5 rows
    pointers = node["jc"][()].astype(np.int64)
    shape = (int(node.attrs["MATLAB_sparse"]), pointers.size - 1)
    if "data" not in node:  # no entry at all
        return sparse.csc_array(shape)
    return sparse.csc_array(
        (node["data"][()], node["ir"][()].astype(np.int64), pointers), shape=shape
    )


# -- MATLAB's format 5 to 7: elements one after the other, a kind, a length, and so many bytes

_NUMBERS = {
    **{1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4"},
    **{7: "f4", 9: "f8", 12: "i8", 13: "u8", 16: "u1"},
}
_MATRIX, _COMPRESSED = 14, 15
_CELL, _SPARSE = 1, 5
_DENSE = dict(enumerate(("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"), 6))
_COMPLEX = 0x800
_DEEPEST = 20


@dataclass(frozen=True)
class _Bytes:
    """The bytes of some elements."""

    content: memoryview
    order: str
    budget: Budget

    def elements(self) -> Iterator[tuple[int, memoryview]]:
        """Yield kind and bytes of each element; a compressed one as what it holds."""
        at = 0
        while len(self.content) - at >= 8:
            kind, length = struct.unpack_from(f"{self.order}II", self.content, at)
            start, step = at + 8, length if kind == _COMPRESSED else -(-length // 8) * 8
            if kind >> 16:  # up to four bytes stand where the length would be
                kind, length, start, step = kind & 0xFFFF, min(kind >> 16, 4), at + 4, 0
            held = self.content[start : start + length]
            if len(held) < length:
                raise ValueError("a part of it is missing")
            at += 8 + step
            if kind == _COMPRESSED:
                yield from self.part(self._unpacked(held)).elements()
            else:
                yield kind, held

    def _unpacked(self, held: memoryview) -> memoryview:
        """Unpack one element, which says first how long it is."""
        unpacker = zlib.decompressobj()
        tag = unpacker.decompress(held, 8)
        length = 8 + struct.unpack(f"{self.order}II", tag)[1]
        self.budget.hold(length, "a packed matrix")
        content = tag + unpacker.decompress(unpacker.unconsumed_tail, length - 8 or 1)
        rest = unpacker.decompress(unpacker.unconsumed_tail, 8)  # it may be padded
        if not unpacker.eof or len(content) < length:
            raise ValueError("a compressed part of it is shorter or longer than it says")
        return memoryview(content + rest)

    def part(self, content: memoryview) -> _Bytes:
        return _Bytes(content, self.order, self.budget)

    def numbers(self, kind: int) -> Array:
        """Return the bytes as the numbers that they are."""
        return np.frombuffer(self.content, np.dtype(self.order + _NUMBERS[kind]))


def _version_5(file: str, stream: IO[bytes]) -> dict[str, Any]:
    """Return the matrices of a file; texts, structs and complex numbers are passed over."""
    budget = Budget(file)
    budget.hold(os.path.getsize(file), "the file")
    content = memoryview(stream.read())
    order = {b"IM": "<", b"MI": ">"}.get(bytes(content[126:128]))
    if order is None:
        raise FileError(
            f"{file}: not a MATLAB file of version 5 to 7.3. Save it in MATLAB with the option -v7."
        )
    found: dict[str, Any] = {}
    whole = _Bytes(content[128:], order, budget)
    for kind, held in whole.elements():
        if kind == _MATRIX and held:
            name, matrix = _matrix_5(whole.part(held), 0)
            if matrix is not None:
                found[name] = matrix
    return found


def _matrix_5(whole: _Bytes, depth: int) -> tuple[str, Any]:
    """Return name and content; None for what is no matrix of real numbers."""
    parts = whole.elements()
    flags, dims, name = (whole.part(held).numbers(kind) for kind, held in _take(parts, 3))
    shape = tuple(int(size) for size in dims)
    if len(shape) < 2 or min(shape) < 0:
        raise ValueError(f"a matrix of shape {shape}")
    kind = int(flags[0]) & 0xFF
    label = name.tobytes().decode("latin-1")
    if kind == _CELL and depth < _DEEPEST:
        cells = [held for number, held in _take(parts, prod(shape)) if number == _MATRIX and held]
        found = [_matrix_5(whole.part(held), depth + 1)[1] for held in cells]
        return label, [one for one in found if not isinstance(one, list | None)]
    if int(flags[0]) & _COMPLEX or kind not in (*_DENSE, _SPARSE):
        return label, None
    numbers = (whole.part(held).numbers(number) for number, held in parts)
    if kind == _SPARSE:
        rows, pointers, values = (next(numbers) for _ in range(3))
        many = int(pointers[-1])
        if min(rows.size, values.size) < many:
            raise ValueError("entries of a sparse matrix are missing")
        kept = values[:many].astype(np.float64), rows[:many].astype(np.int64)
        return label, sparse.csc_array((*kept, pointers.astype(np.int64)), shape=shape[:2])
    values = next(numbers, np.empty(0))
    if values.size != prod(shape):
        raise ValueError(f"{values.size} numbers for a matrix of shape {shape}")
    whole.budget.hold(values.size * np.dtype(_DENSE[kind]).itemsize, f"{label!r} of shape {shape}")
    return label, values.astype(_DENSE[kind]).reshape(shape, order="F")


def _take(parts: Iterator[tuple[int, memoryview]], many: int) -> Iterator[tuple[int, memoryview]]:
    for _ in range(many):
        part = next(parts, None)
        if part is None:
            raise ValueError("a part of it is missing")
        yield part


# -- Matrix Market: beside its files of names (barcodes and features, of 10x Genomics and others) a
# -- matrix has cells in columns

_NAMED = re.compile(r"(.*?)matrix\.mtx(\.gz|\.zst|\.bz2)?", re.I)


def read_matrix_market(file: str, ids: str | None, options: ReadOptions) -> dict[str, FileView]:
    """Read a matrix; its rows are known by their number, unless there are barcodes beside it."""
    matrix = _market(file)
    barcodes, features = (_beside(file, *kinds) for kinds in (["barcodes"], ["features", "genes"]))
    if barcodes is None and features is None:
        return {"": FileView(matrix)}
    if barcodes is None or features is None:
        gone = "barcodes.tsv" if barcodes is None else "features.tsv (or genes.tsv)"
        raise FileError(f"{file}: there is no {gone} beside it. Is the folder whole?")
    if ids is not None:
        raise FileError(f"{file}: its barcodes are the ids. Leave ids={ids!r} out.")
    return _named(file, matrix, [row[0] for row in _names(barcodes)], _names(features))


def _named(
    file: str, matrix: Any, barcodes: list[str], features: list[list[str]]
) -> dict[str, FileView]:
    """Return a view for each type of feature, with its names."""
    if matrix.shape == (len(features), len(barcodes)):
        matrix = matrix.T.tocsr() if sparse.issparse(matrix) else matrix.T
    elif matrix.shape != (len(barcodes), len(features)):
        n, d = matrix.shape
        raise FileError(
            f"{file}: {n:,} × {d:,} numbers, but {len(features):,} features and {len(barcodes):,} "
            "barcodes beside it. Is the folder whole?"
        )
    names = [row[1] if len(row) > 1 else row[0] for row in features]
    many = Counter(names)
    types: dict[str, list[int]] = {}
    for j, row in enumerate(features):
        if many[names[j]] > 1:  # several with one name are told apart by their ids
            names[j] = f"{names[j]} ({row[0]})"
        types.setdefault(row[2] if len(row) > 2 else "", []).append(j)
    known, views = as_object(barcodes), {}
    for kind, at in types.items():
        chosen = matrix if len(types) == 1 else matrix[:, at]
        views[kind or "matrix"] = FileView(chosen, known, tuple(names[j] for j in at))
    return views


def _beside(file: str, *kinds: str) -> str | None:
    """Return the file of names that belongs to a matrix."""
    found = _NAMED.fullmatch(os.path.basename(file))
    if not found:
        return None
    names = (f"{found[1]}{kind}.tsv{packed}" for kind in kinds for packed in ("", *PACKED))
    return next((one for name in names if (one := beside(file, name))), None)


def _names(file: str) -> list[list[str]]:
    """Return the cells of a file of names; a row has at least one."""
    budget = Budget(file)
    rows = []
    with reading(file, "names in lines"), Unpacked(file, LONGEST_LINE) as raw:
        for number, line in enumerate(io.BufferedReader(raw, 2**20), 1):
            budget.hold(200 + len(line), "its names")
            cells = line.decode("utf-8-sig").rstrip("\r\n").split("\t")
            if not cells[0].strip():
                raise FileError(f"{file}, line {number}: there is no name. Is the file whole?")
            rows.append(cells)
    return rows


def _market(file: str) -> Any:
    with reading(file, "a Matrix Market file"), Unpacked(file, LONGEST_LINE) as raw:
        text = io.BufferedReader(raw, 2**20)
        banner = text.readline(1000).decode("ascii").lower().split()
        if len(banner) != 5 or banner[:2] != ["%%matrixmarket", "matrix"]:
            raise FileError(f"{file}: the first line is not that of a Matrix Market matrix.")
        layout, field, symmetry = banner[2:]
        if field not in ("real", "double", "integer", "pattern"):
            raise FileError(f"{file}: holds {field} numbers; expected real ones.")
        while (line := text.readline(100_000)).startswith(b"%") or line.isspace():
            pass
        size = [int(number) for number in line.split()]
        if layout == "coordinate":
            return as_csr(_coordinates(file, text, size, field, symmetry), file)
        if layout != "array" or symmetry != "general":
            raise FileError(f"{file}: cannot read the layout {layout} {symmetry}. Use coordinates.")
        n, d = size
        (values,) = _body(file, text, [np.float64], n * d)
        return values.reshape((n, d), order="F")


def _coordinates(
    file: str, text: Any, size: list[int], field: str, symmetry: str
) -> sparse.coo_array:
    n, d, stored = size
    kinds = [np.int64, np.int64] + [np.float64] * (field != "pattern")
    rows, columns, *values = _body(file, text, kinds, stored)
    inside = (rows > 0) & (rows <= n) & (columns > 0) & (columns <= d)
    if not inside.all():
        raise FileError(f"{file}: an entry lies outside of the {n} × {d} matrix.")
    data = values[0] if values else np.ones(stored)
    half = sparse.coo_array((data, (rows - 1, columns - 1)), shape=(n, d))
    if symmetry == "general":
        return half
    # The file holds one triangle; the other one mirrors it.
    sign = -1 if symmetry == "skew-symmetric" else 1
    return sparse.coo_array(half + sign * sparse.tril(half, -1).T)


def _body(file: str, text: Any, kinds: list[Any], rows: int) -> list[Array]:
    """Read the numbers of the body; one more column shows that no line has more of them."""
    Budget(file).hold(8 * len(kinds) * rows, f"{rows:,} entries")
    try:
        with warnings.catch_warnings():
            # Too many numbers in a line are seen by the extra column.
            warnings.simplefilter("ignore", pd.errors.ParserWarning)
            frame = pd.read_csv(
                text,
                sep=r"\s+",
                header=None,
                comment="%",
                quoting=csv.QUOTE_NONE,
                names=range(len(kinds) + 1),
                index_col=False,
                dtype=dict(enumerate([*kinds, np.float64])),
                nrows=rows + 1,
                # As Python reads them. The other parsers of pandas get the last bit of every third
                # number wrong, and crash on large exponents.
                float_precision="round_trip",
            )
    except ValueError:
        _check_numbers(file)
        raise
    if len(frame) and np.isinf(frame.to_numpy()).any():
        _check_numbers(file)
    extra = frame.pop(len(kinds)).notna().any()
    if extra or len(frame) != rows:
        raise FileError(
            f"{file}: {'more than ' * (len(frame) > rows)}{min(len(frame), rows)} entries"
            f"{' that are too long' * bool(extra)} where its size line says {rows}. Is the file "
            "whole?"
        )
    return [frame[column].to_numpy() for column in frame]


def _check_numbers(file: str) -> None:
    """Refuse the first entry that is no number, or that float64 cannot hold."""
    with Unpacked(file, LONGEST_LINE) as raw:
        for number, line in enumerate(io.BufferedReader(raw, 2**20), 1):
            for cell in line.partition(b"%")[0].decode("ascii", "replace").split():
                place = f"{file}, line {number}"
                try:
                    value = float(cell)
                except ValueError:
                    raise FileError(
                        f"{place}: {cell[:40]!r} is not a number. Correct it."
                    ) from None
                if np.isinf(value) and "n" not in cell.lower():  # neither inf nor infinity
                    raise too_large(place, cell, "write nan")


# -- true classes: benchmark files hold them under one of a handful of names, never to be folded

_TARGETS = re.compile(r"y|gt|gnd|(ground)?truth|(true)?labels?|targets?|classes")


def is_called_target(name: str) -> bool:
    return _TARGETS.fullmatch(name.lower().replace("_", "")) is not None


def is_target(name: str, held: Any) -> bool:
    """Whether a variable holds classes: by its name, unless it is a matrix of measurements."""
    if not is_called_target(name):
        return False
    if isinstance(held, list) or held.ndim < 2 or 1 in held.shape or held.dtype.kind not in "fiub":
        return True
    values = held.data if sparse.issparse(held) else held
    return bool(np.isin(values, (-1, 0, 1)).all())


def as_target(file: str, held: Any) -> Array | None:
    """Return one class per sample; None if there is no telling (several labels per sample)."""
    if isinstance(held, list):
        return as_target(file, held[0]) if held else None
    Budget(file).hold(8 * prod(held.shape), f"classes of shape {held.shape}")
    dense = held.toarray() if sparse.issparse(held) else np.asarray(held)
    if dense.ndim == 2 and 1 not in dense.shape:
        hot = dense > 0
        return np.argmax(hot, axis=1) if (hot.sum(axis=1) == 1).all() else None
    flat = dense.ravel()
    if flat.dtype.kind == "f" and np.isfinite(flat).all() and (flat == np.rint(flat)).all():
        return flat.astype(np.int64)
    return flat
