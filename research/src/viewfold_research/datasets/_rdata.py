"""Reader of what R's ``save`` writes, as far as tables of numbers need it.

One public set is published in this form only. R's manual "R Internals" (Serialization Formats)
describes it: a tree of values, each with a header of four bytes. Code of R (functions, calls,
environments) is refused, not skipped; nothing in a file is ever run.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

_PACKED: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZ": bz2.open,
    b"\xfd7": lzma.open,
}
_DEEPEST = 40  # lists within lists; a table is three deep
_NIL, _REFERENCE, _ALTERNATIVE = 254, 255, 238
_SYMBOL, _PAIRS, _STRING, _TEXTS, _LIST = 1, 2, 9, 16, 19
_NUMBERS = {10: ">i4", 13: ">i4", 14: ">f8"}  # logical, integer, real


@dataclass
class RValue:
    """A value of R: numbers, texts or a list of values, and its attributes by name."""

    values: Any
    attributes: dict[str, RValue] = field(default_factory=dict)

    def __getitem__(self, name: str) -> RValue:
        names = self.texts("names")
        if name not in names:
            raise ValueError(f"there is no {name!r} among {names}")
        found: RValue = self.values[names.index(name)]
        return found

    def texts(self, attribute: str) -> list[str]:
        """Return an attribute that is a vector of texts, empty if there is none."""
        held = self.attributes.get(attribute)
        return [] if held is None or not isinstance(held.values, list) else list(held.values)


def read(path: str | Path, most: int) -> dict[str, RValue]:
    """Read what ``save`` wrote, by the names of its objects."""
    with open(path, "rb") as start:
        unpack = _PACKED.get(start.read(2))
    try:
        with unpack(path, "rb") if unpack else open(path, "rb") as stream:
            data = stream.read(most + 1)
        if len(data) > most:
            raise ValueError(f"it unpacks to more than {most:,} bytes")
        found = _Reader(data).value(0)
        if not isinstance(found, dict):
            raise ValueError("it holds no named objects")
        return found
    except (EOFError, OSError, lzma.LZMAError, struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"it cannot be read as a file of R ({error})") from error


class _Reader:
    """Reads one value after the other."""

    def __init__(self, data: bytes) -> None:
        if data[:7] not in (b"RDX2\nX\n", b"RDX3\nX\n"):
            raise ValueError("it is not in the binary format of R's save")
        self.stream, self.size = io.BytesIO(data), len(data)
        self.known: list[str] = []  # symbols, which later ones refer to
        self.take(7 + 12)
        if data[3:4] == b"3":
            self.take(self.number())  # the encoding of the session that wrote it

    def take(self, size: int) -> bytes:
        if not 0 <= size <= self.size - self.stream.tell():
            raise ValueError("it ends before its last value")
        return self.stream.read(size)

    def number(self) -> int:
        return int(struct.unpack(">i", self.take(4))[0])

    def value(self, depth: int, flags: int | None = None) -> Any:
        """Read a value; pairs become a dict, a symbol its name, nothing None."""
        if depth > _DEEPEST:
            raise ValueError(f"lists are more than {_DEEPEST} deep")
        flags = self.number() if flags is None else flags
        kind = flags & 0xFF
        if kind == _NIL:
            return None
        if kind == _SYMBOL:
            self.known.append(str(self.value(depth + 1)))
            return self.known[-1]
        if kind == _REFERENCE:
            number = flags >> 8 or self.number()
            if not 0 < number <= len(self.known):
                raise ValueError("it refers to a name that it does not have")
            return self.known[number - 1]
        if kind == _PAIRS:
            return self.pairs(flags, depth)
        if kind == _STRING:
            length = self.number()
            return None if length == -1 else self.take(length).decode("utf-8", "replace")
        if kind == _ALTERNATIVE:
            return self.alternative(depth)
        held = RValue(self.vector(kind, depth))
        if flags & 0x200:
            held.attributes = self.value(depth + 1) or {}
        return held

    def pairs(self, flags: int, depth: int) -> dict[str, RValue]:
        found: dict[str, RValue] = {}
        while flags & 0xFF == _PAIRS:
            if flags & 0x200:
                self.value(depth + 1)
            name = self.value(depth + 1) if flags & 0x400 else str(len(found))
            found[name] = self.value(depth + 1)
            flags = self.number()
        if flags & 0xFF != _NIL:  # a pair, and no list
            found["."] = self.value(depth + 1, flags)
        return found

    def vector(self, kind: int, depth: int) -> Any:
        if kind not in (*_NUMBERS, _TEXTS, _LIST):
            raise ValueError(f"it holds more than numbers, texts and lists (type {kind} of R)")
        length = self.number()
        if kind in _NUMBERS:
            dtype = np.dtype(_NUMBERS[kind])
            return np.frombuffer(self.take(length * dtype.itemsize), dtype).astype(dtype.str[1:])
        if not 0 <= length <= self.size // 4:
            raise ValueError("it ends before its last value")
        return [self.value(depth + 1) for _ in range(length)]

    def alternative(self, depth: int) -> Any:
        """Read a vector that R has another form of: a range, or one in a wrapping."""
        form, state, attributes = (self.value(depth + 1) for _ in range(3))
        name = next(iter(form.values())) if isinstance(form, dict) and form else ""
        if name in ("compact_intseq", "compact_realseq"):
            length, start, step = state.values
            held = RValue(start + step * np.arange(int(length)))
        elif str(name).startswith("wrap_"):
            held = state.values[0] if isinstance(state, RValue) else next(iter(state.values()))
        else:
            raise ValueError(f"it holds a vector in the form {name!r}, which is not read")
        return RValue(held.values, attributes or held.attributes)


def matrix(table: RValue) -> tuple[np.ndarray, list[str], list[str]]:
    """Return a matrix or a data frame of numbers, with the names of its rows and its columns."""
    if "dim" in table.attributes:
        shape = tuple(int(size) for size in table.attributes["dim"].values)
        names = table.attributes.get("dimnames")
        sides = [side.values if side else [] for side in names.values] if names else [[], []]
        X = np.asarray(table.values, float)
        if len(shape) != 2 or X.size != shape[0] * shape[1]:
            raise ValueError(f"a matrix of shape {shape} has {X.size} values")
        return X.reshape(shape, order="F"), list(sides[0]), list(sides[1])
    columns = [np.asarray(column.values, float) for column in table.values]
    rows = table.attributes.get("row.names")
    named = rows is not None and isinstance(rows.values, list)
    return np.column_stack(columns), table.texts("row.names") if named else [], table.texts("names")


def factor(values: RValue) -> tuple[np.ndarray, list[str]]:
    levels = values.texts("levels")
    codes = np.asarray(values.values) - 1
    if not set(codes.tolist()) <= set(range(len(levels))):
        raise ValueError("the classes are no factor")
    return codes.astype(np.int64), levels
