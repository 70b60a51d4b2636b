"""MATLAB's format 5 to 7: numbers, sparse matrices and cell arrays of them.

SciPy reads more of it, but ends the whole program on some damaged files. What is not needed here
(texts, structs, complex numbers) is passed over.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from scipy import sparse

from viewfold._util.types import Array
from viewfold.data._budget import Budget
from viewfold.data.source import FileError

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
    """Elements one after the other: a kind, a length, and so many bytes."""

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
                yield from self.part(_unpacked(held, self.order, self.budget)).elements()
            else:
                yield kind, held

    def part(self, content: memoryview) -> _Bytes:
        """Return some of the bytes, or what they hold."""
        return _Bytes(content, self.order, self.budget)

    def numbers(self, kind: int) -> Array:
        """Return the bytes as the numbers that they are."""
        return np.frombuffer(self.content, np.dtype(self.order + _NUMBERS[kind]))


def read(file: str) -> dict[str, Any]:
    """Return the matrices of a file by name, and cell arrays as lists of their matrices."""
    budget = Budget(file)
    budget.hold(os.path.getsize(file), "the file")
    with open(file, "rb") as opened:
        content = memoryview(opened.read())
    order = {b"IM": "<", b"MI": ">"}.get(bytes(content[126:128]))
    if order is None:
        raise FileError(
            f"{file}: not a MATLAB file of version 5 to 7.3. Save it in MATLAB with the option -v7."
        )
    found: dict[str, Any] = {}
    whole = _Bytes(content[128:], order, budget)
    for kind, held in whole.elements():
        if kind == _MATRIX and held:
            name, matrix = _matrix(whole.part(held), 0)
            if matrix is not None:
                found[name] = matrix
    return found


def _unpacked(held: memoryview, order: str, budget: Budget) -> memoryview:
    """Unpack one element, which says first how long it is."""
    unpacker = zlib.decompressobj()
    tag = unpacker.decompress(held, 8)
    length = 8 + struct.unpack(f"{order}II", tag)[1]
    budget.hold(length, "a packed matrix")
    content = tag + unpacker.decompress(unpacker.unconsumed_tail, length - 8 or 1)
    rest = unpacker.decompress(unpacker.unconsumed_tail, 8)  # it may be padded
    if not unpacker.eof or len(content) < length:
        raise ValueError("a compressed part of it is shorter or longer than it says")
    return memoryview(content + rest)


def _matrix(whole: _Bytes, depth: int) -> tuple[str, Any]:
    """Return name and content; None for what is no matrix of real numbers."""
    parts = whole.elements()
    flags, dims, name = (whole.part(held).numbers(kind) for kind, held in _take(parts, 3))
    shape = tuple(int(size) for size in dims)
    if len(shape) < 2 or min(shape) < 0:
        raise ValueError(f"a matrix of shape {shape}")
    kind = int(flags[0]) & 0xFF
    label = name.tobytes().decode("latin-1")
    if kind == _CELL and depth < _DEEPEST:
        return label, [
            matrix
            for number, held in _take(parts, prod(shape))
            if number == _MATRIX
            and held
            and (matrix := _matrix(whole.part(held), depth + 1)[1]) is not None
            and not isinstance(matrix, list)
        ]
    if int(flags[0]) & _COMPLEX or kind not in (*_DENSE, _SPARSE):
        return label, None
    numbers = (whole.part(held).numbers(number) for number, held in parts)
    if kind == _SPARSE:
        rows, pointers, values = (next(numbers) for _ in range(3))
        return label, _sparse(rows, pointers, values, shape)
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


def _sparse(rows: Array, pointers: Array, values: Array, shape: tuple[int, ...]) -> Any:
    many = int(pointers[-1])
    if min(rows.size, values.size) < many:
        raise ValueError("entries of a sparse matrix are missing")
    kept = values[:many].astype(np.float64), rows[:many].astype(np.int64)
    return sparse.csc_array((*kept, pointers.astype(np.int64)), shape=shape[:2])
