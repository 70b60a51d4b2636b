"""Write values as R's `save` does, by its manual "R Internals", for tests of the reader."""

from __future__ import annotations

import struct

import numpy as np

NIL, LIST, PAIRS, REAL, INTEGER, TEXTS = 254, 19, 2, 14, 13, 16
ATTRIBUTES, TAG = 0x200, 0x400


def whole(number: int) -> bytes:
    return struct.pack(">i", number)


def symbol(name: str) -> bytes:
    return whole(1) + text(name)


def text(value: str) -> bytes:
    held = value.encode()
    return whole(0x40009) + whole(len(held)) + held


def pairs(**values: bytes) -> bytes:
    """Named values: attributes, and what a file has at its top."""
    parts = [whole(PAIRS | TAG) + symbol(name) + value for name, value in values.items()]
    return b"".join(parts) + whole(NIL)


def value(kind: int, length: int, body: bytes, **attributes: bytes) -> bytes:
    flags = kind | (ATTRIBUTES if attributes else 0)
    return whole(flags) + whole(length) + body + (pairs(**attributes) if attributes else b"")


def texts(*values: str) -> bytes:
    return value(TEXTS, len(values), b"".join(map(text, values)))


def integers(values: np.ndarray, **attributes: bytes) -> bytes:
    return value(INTEGER, values.size, values.astype(">i4").tobytes(), **attributes)


def named(**parts: bytes) -> bytes:
    return value(LIST, len(parts), b"".join(parts.values()), names=texts(*parts))


def matrix(X: np.ndarray, columns: list[str]) -> bytes:
    sides = value(LIST, 2, whole(NIL) + texts(*columns))
    body = X.astype(">f8").tobytes(order="F")
    return value(REAL, X.size, body, dim=integers(np.array(X.shape)), dimnames=sides)


def data_frame(X: np.ndarray, columns: list[str]) -> bytes:
    body = b"".join(value(REAL, len(column), column.astype(">f8").tobytes()) for column in X.T)
    return value(LIST, len(columns), body, names=texts(*columns), **{"class": texts("data.frame")})


def factor(codes: np.ndarray, *levels: str) -> bytes:
    return integers(codes + 1, levels=texts(*levels))


def saved(**objects: bytes) -> bytes:
    return b"RDX2\nX\n" + whole(2) + whole(0x30400) + whole(0x20300) + pairs(**objects)
