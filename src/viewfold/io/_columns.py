"""Columns of tables that are not numbers: their cells become numbers while the table is read.

A `Codes` gives every cell of a column a number and remembers what it stands for, so that one pass
finds the levels of a file of any size.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewfold._option import helped_by, option
from viewfold._types import Array, Kind
from viewfold.io._asked import asked_now
from viewfold.io._source import FileError

MOST_LEVELS = 1000
"""What is asked to be a category may have so many levels."""

LONGEST_LEVEL = 200
"""A longer text is no level of anything."""

_FLAGS = {"true": 1.0, "false": 0.0}
_POINT = re.compile(r"^(-?\d+)\.0+$")
_DAY = 86_400_000_000  # microseconds


class Codes:
    """Numbers for the cells of one column, and what they stand for.

    Of a category, a cell becomes the number of its level, in the order in which levels are met; of
    dates, days since 1970; of numbers that are written as text, these. The first cells tell which
    it is. A missing cell is NaN.

    Parameters
    ----------
    name : str
        The column.
    label : str
        What errors call the table.
    markers : frozenset of str
        What stands for a missing cell.
    kind : str, optional
        What it is, if that is known.

    Attributes
    ----------
    kind : str or None
        What it is; None as long as all cells are missing.
    levels : dict of str to int
        Of a category: the number of each level.
    n_cells, n_missing : int
        How many cells are not missing, and how many are.
    repeats : bool
        Whether any text was met twice.
    too_many : bool
        Whether there are so many texts, or so long ones, that they were not remembered.
    declared : bool
        Whether the table says that it is a category, or the user does.
    days : set of int
        Of dates: those that occur, in days since 1970.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from viewfold.io._asked import EMPTY_MARKERS
    >>> from viewfold.io._columns import Codes
    >>> ward = Codes("ward", "labs.csv", EMPTY_MARKERS)
    >>> ward(pa.array(["ICU", "ER", None, "ICU", "NA"])), ward.levels
    (array([ 0.,  1., nan,  0., nan]), {'ICU': 0, 'ER': 1})
    """

    def __init__(
        self, name: str, label: str, markers: frozenset[str], kind: Kind | None = None
    ) -> None:
        self.name, self.label, self.kind = name, label, kind
        self.levels: dict[str, int] = {}
        self.n_cells, self.n_missing, self.repeats, self.too_many = 0, 0, False, False
        self.days: set[int] = set()
        self.declared = kind == "category"
        self._markers = pa.array(sorted(markers), pa.string())

    def __call__(self, column: Any) -> Array:
        """Return a number for each cell of some rows."""
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_dictionary(column.type):
            self.declared |= self.kind is None
            self.kind = self.kind or "category"
            column = column.dictionary_decode()
        if self.kind != "category" and _is_date(column.type):
            self.kind = self.kind or "date"
        if pa.types.is_null(column.type):
            return np.full(len(column), np.nan)
        if self.kind == "date" and _is_date(column.type):
            return self._days(column)
        texts = self._texts(column)
        held = len(texts) - texts.null_count
        if self.kind is None and held:
            self.kind = "number" if _numbers(texts) is not None else None
            self.kind = self.kind or ("date" if _times(texts) is not None else "category")
        self.n_cells += held
        self.n_missing += texts.null_count
        if self.kind == "date":
            return self._days(self._parsed(_times, texts, "date"))
        if self.kind == "number":
            return _as_floats(self._parsed(_numbers, texts, "number"))
        return self._numbers_of(texts)

    def joined(self, other: Codes) -> Codes:
        """Add what was found in rows that follow, in another file; levels get new numbers."""
        if self.kind and other.kind and self.kind != other.kind:
            said = (
                f"{other.label}, column {self.name!r}: its cells are read as {other.kind}, those "
                f"of {self.label} as {self.kind}. Write them alike, or say what the column is: "
                f"{option('categories', [self.name])}, or {option('drop', [self.name])}."
            )
            raise helped_by(FileError(said), categories=[self.name])
        self.kind = self.kind or other.kind
        self.repeats |= other.repeats or not self.levels.keys().isdisjoint(other.levels)
        for level in other.levels:
            if level not in self.levels and len(self.levels) < MOST_LEVELS:
                self.levels[level] = len(self.levels)
        self.too_many |= other.too_many or not other.levels.keys() <= self.levels.keys()
        self.n_cells += other.n_cells
        self.n_missing += other.n_missing
        self.declared |= other.declared
        self.days |= other.days
        return self

    def _texts(self, column: Any) -> Any:
        """Return cells as texts without space around; what stands for a missing cell is null."""
        texts = pc.utf8_trim_whitespace(as_texts(column))
        gone = pc.is_in(texts, value_set=self._markers)
        return pc.if_else(gone, pa.scalar(None, pa.string()), texts)

    def _parsed(self, parse: Any, texts: Any, what: str) -> Any:
        found = parse(texts)
        if found is None:
            cell = next(c for c in texts.to_pylist() if c is not None and parse(_one(c)) is None)
            said = (
                f"{self.label}, column {self.name!r}: {cell[:40]!r} is not a {what}, as the cells "
                f"before it are. Correct it, or say what the column is: "
                f"{option('categories', [self.name])}, or {option('drop', [self.name])}."
            )
            raise helped_by(FileError(said), categories=[self.name])
        return found

    def _days(self, times: Any) -> Array:
        """Return days since 1970, and note which there are."""
        moments = times.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        days = _as_floats(moments) / _DAY
        held = days[np.isfinite(days)]
        if held.size:
            self.days.update(np.unique(np.floor(held)).astype(int).tolist())
        return days

    def _numbers_of(self, texts: Any) -> Array:
        """Return the number of each level; new ones get the next."""
        coded = texts.dictionary_encode()
        # A whole number is one level, whether a program wrote it with a point or without.
        found = [_POINT.sub(r"\1", level) for level in coded.dictionary.to_pylist()]
        held = len(texts) - texts.null_count
        self.repeats |= len(set(found)) < held or any(level in self.levels for level in found)
        for level in found:
            if len(self.levels) >= MOST_LEVELS or len(level) > LONGEST_LEVEL:
                self.too_many = True
            elif level not in self.levels:
                self.levels[level] = len(self.levels)
        numbers = np.array([*(self.levels.get(level, -1) for level in found), np.nan])
        return np.asarray(numbers[_as_ints(coded.indices, len(found))])


def codes_of(names: Iterable[str], label: str) -> dict[str, Codes]:
    """Return codes for columns that are not numbers."""
    asked = asked_now()
    return {name: Codes(name, label, asked.empty_markers, asked.kind_of(name)) for name in names}


def is_codable(kind: Any) -> bool:
    """Whether a column of this Arrow type can be given numbers."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    names = ["string", "large_string", "string_view", "boolean", "integer", "floating", "null"]
    tests = [getattr(pa.types, f"is_{name}", _no) for name in names]
    return _is_date(kind) or any(test(kind) for test in tests)


def as_texts(column: Any) -> Any:
    """Return cells as texts; a whole number is written without a point, wherever it comes from."""
    if pa.types.is_floating(column.type) or pa.types.is_boolean(column.type):
        return pa.array([_written(value) for value in column.to_pylist()], pa.string())
    return column.cast(pa.string())


def texts_of(values: Iterable[Any]) -> Any:
    """Return Python values as texts."""
    return pa.array([_written(value) for value in values], pa.string())


def _written(value: Any) -> str | None:
    if value is None or value != value:
        return None
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _one(cell: str) -> Any:
    return pa.array([cell], pa.string())


def _is_date(kind: Any) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _no(_: Any) -> bool:
    return False


def _numbers(texts: Any) -> Any | None:
    """Return texts as numbers (true is 1, false is 0); None if one of them is none."""
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        flags = [
            None if text is None else _FLAGS.get(text.lower(), text) for text in texts.to_pylist()
        ]
        return (
            None if any(isinstance(flag, str) for flag in flags) else pa.array(flags, pa.float64())
        )


def _times(texts: Any) -> Any | None:
    """Return texts as times, if all of them are written as ISO 8601 has it; else None."""
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return texts.cast(kind)
        except pa.ArrowInvalid:
            continue
    return None


def _as_floats(column: Any) -> Array:
    return np.asarray(column.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(False))


def _as_ints(column: Any, fill: int) -> Array:
    return np.asarray(column.cast(pa.int64()).fill_null(fill).to_numpy(False))
