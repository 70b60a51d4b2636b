"""Columns of tables that are not numbers: their cells become numbers while the table is read.

A `Codes` gives every cell of a column a number and remembers what it stands for, so that one pass
finds the levels of a file of any size. It sees `Cells`, whatever the table was before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from math import isinf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewfold._util.arguments import warn_user
from viewfold._util.file import ReadOptions
from viewfold._util.messages import with_suggestion
from viewfold._util.types import Array, Kind
from viewfold.data.id_columns import HEAD
from viewfold.data.view import Column

DAYS = "days"
# Sine and cosine of an angle: December is beside January, and Sunday beside Monday.
MONTH, WEEKDAY = ("month.sin", "month.cos"), ("weekday.sin", "weekday.cos")

MOST_LEVELS = 1000  # of a column that the user calls a category
LONGEST_LEVEL = 200  # a longer text is no level of anything

_FLAGS = {"true": 1.0, "false": 0.0}
_POINT = re.compile(r"^(-?\d+)\.0+$")
_NUMBER = re.compile(
    r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?)", re.ASCII | re.IGNORECASE
)
_TIME = re.compile(  # as ISO 8601 has it
    r"\d{4}-\d\d-\d\d(?:[ T]\d\d(?::\d\d(?::\d\d(?:\.\d{1,6})?)?)?(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_DAY = 86_400_000_000  # microseconds
_1970 = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Cells:
    """Cells of some rows of one column: the texts that occur, and which of them each cell is."""

    texts: list[str]  # all different
    at: NDArray[np.intp]  # for each cell, which text it is; -1 if it is missing
    declared: bool = False  # whether the table says that the column is a category
    moments: Array | None = None  # dates instead: microseconds since 1970, NaN where missing

    @classmethod
    def of(cls, values: Iterable[Any], *, declared: bool = False) -> Cells:
        """Return Python's values: whole numbers are written without a point."""
        texts = [value if type(value) is str else _written(value) for value in values]
        place: dict[str, int] = {}
        at = [-1 if text is None else place.setdefault(text, len(place)) for text in texts]
        return cls(list(place), np.array(at, np.intp), declared)

    @classmethod
    def of_dates(cls, dates: Iterable[date | None]) -> Cells:
        return cls.of_moments([np.nan if day is None else _microseconds(day) for day in dates])

    @classmethod
    def of_moments(cls, moments: Any) -> Cells:
        """Return times that are given in microseconds since 1970."""
        found = np.asarray(moments, dtype=np.float64)
        return cls([], np.full(found.size, -1), moments=found)

    def spread(self, values: Sequence[float]) -> Array:
        """Return for each cell what its text stands for; NaN where it is missing."""
        return np.array([*values, np.nan])[self.at]


class Codes:
    """Numbers for the cells of one column, and what they stand for.

    Of a category, a cell becomes the number of its level, in the order in which levels are met; of
    dates, days since 1970; of numbers that are written as text, these. The first cells tell which
    it is, unless that is known (`kind`). A missing cell is NaN.
    """

    def __init__(
        self, name: str, label: str, markers: frozenset[str], kind: Kind | None = None
    ) -> None:
        self.name, self.label = name, label
        self.kind = kind  # None as long as all cells are missing
        self.levels: dict[str, int] = {}  # of a category: the number of each level
        self.n_cells, self.n_missing = 0, 0
        self.repeats = False  # whether any text was met twice
        self.too_many = False  # whether texts were so many, or so long, that they were forgotten
        self.texts: (
            list[str] | None
        ) = []  # as written, while they may be ids: all there, no two same
        self.declared = kind == "category"  # whether the table or the user says so
        self.head: list[str | None] = []  # the first cells, as written
        self.days: set[int] = set()  # of dates: those that occur, in days since 1970
        self._markers = markers

    def __call__(self, cells: Cells) -> Array:
        if cells.declared:
            self.declared |= self.kind is None
            self.kind = self.kind or "category"
        if len(self.head) < HEAD and cells.moments is None:
            self.head += [cells.texts[i] if i >= 0 else None for i in cells.at[:HEAD].tolist()]
        if cells.moments is not None:
            self.kind = self.kind or "date"
            return self._days(cells.moments)
        texts, cells = cells, self._without_markers(cells)
        held = int(np.count_nonzero(cells.at >= 0))
        if self.kind is None and held:
            self.kind = "number" if _numbers(cells.texts) is not None else None
            self.kind = self.kind or ("date" if _times(cells.texts) is not None else "category")
        self.n_cells += held
        self.n_missing += cells.at.size - held
        if self.kind == "date":
            return self._days(cells.spread(self._parsed(_times, cells.texts, "date")))
        if self.kind == "number":
            found = self._parsed(_numbers, cells.texts, "number")
            for text, value in zip(cells.texts, found, strict=True):
                if isinf(value) and "n" not in text.lower():  # neither inf nor infinity
                    from viewfold.data.source import too_large

                    raise too_large(f"{self.label}, column {self.name!r}", text)
            return cells.spread(found)
        numbers = self._numbers_of(cells, held)
        if self.repeats or self.n_missing or max(map(len, texts.texts), default=0) > LONGEST_LEVEL:
            self.texts = None
        elif self.texts is not None:
            self.texts += [texts.texts[i] for i in texts.at.tolist()]
        return numbers

    def joined(self, other: Codes) -> Codes:
        """Add what was found in rows that follow, in another file; levels get new numbers."""
        if self.kind and other.kind and self.kind != other.kind:
            said = (
                f"{other.label}, column {self.name!r}: its cells are read as {other.kind}, those "
                f"of {self.label} as {self.kind}. Write them alike, or say what the column is: "
                f"categories={[self.name]!r}, or drop={[self.name]!r}."
            )
            raise _contradiction(said, self.name)
        self.kind, self.texts = self.kind or other.kind, None
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

    def _without_markers(self, cells: Cells) -> Cells:
        """Return texts without space around; what stands for a missing cell is missing."""
        place: dict[str, int] = {}
        bare = [text.strip() for text in cells.texts]
        new = [-1 if text in self._markers else place.setdefault(text, len(place)) for text in bare]
        return Cells(list(place), np.array([*new, -1])[cells.at])

    def _parsed(self, parse: Any, texts: list[str], what: str) -> list[float]:
        found: list[float] | None = parse(texts)
        if found is None:
            cell = next(text for text in texts if parse([text]) is None)
            said = (
                f"{self.label}, column {self.name!r}: {cell[:40]!r} is not a {what}, as the cells "
                f"before it are. Correct it, or say what the column is: "
                f"categories={[self.name]!r}, or drop={[self.name]!r}."
            )
            raise _contradiction(said, self.name)
        return found

    def _days(self, moments: Array) -> Array:
        days = moments / _DAY
        held = days[np.isfinite(days)]
        if held.size:
            self.days.update(np.unique(np.floor(held)).astype(int).tolist())
        return days

    def _numbers_of(self, cells: Cells, held: int) -> Array:
        # A whole number is one level, whether a program wrote it with a point or without.
        found = [_POINT.sub(r"\1", level) for level in cells.texts]
        self.repeats |= len(set(found)) < held or any(level in self.levels for level in found)
        for level in found:
            if len(self.levels) >= MOST_LEVELS or len(level) > LONGEST_LEVEL:
                self.too_many = True
            elif level not in self.levels:
                self.levels[level] = len(self.levels)
        return cells.spread([self.levels.get(level, -1) for level in found])


def _contradiction(said: str, column: str) -> ValueError:
    from viewfold.data.source import FileError

    return with_suggestion(FileError(said), categories=[column])


def codes_of(names: Iterable[str], label: str, options: ReadOptions) -> dict[str, Codes]:
    return {name: Codes(name, label, options.markers, options.kind_of(name)) for name in names}


def _written(value: Any) -> str | None:
    if value is None or type(value).__name__ == "NAType" or value != value:
        return None
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _numbers(texts: list[str]) -> list[float] | None:
    """Return texts as numbers (true is 1, false is 0); None if one of them is none."""
    if all(map(_NUMBER.fullmatch, texts)):
        return list(map(float, texts))
    flags = [_FLAGS.get(text.lower()) for text in texts]
    return None if None in flags else [flag for flag in flags if flag is not None]


def _times(texts: list[str]) -> list[float] | None:
    """Return texts as times, if all are written as ISO 8601 has it, with a zone or without."""
    found = [one for one in map(_TIME.fullmatch, texts) if one is not None]
    if len(found) < len(texts) or len({one[1] is None for one in found}) > 1:
        return None
    try:
        return [_microseconds(datetime.fromisoformat(one[0])) for one in found]
    except ValueError:  # no month has so many days
        return None


def _microseconds(day: date) -> float:
    if not isinstance(day, datetime):
        day = datetime(day.year, day.month, day.day)
    away = day.utcoffset() or timedelta()
    return float((day.replace(tzinfo=None) - _1970 - away) // timedelta(microseconds=1))


# -- features of coded cells


def month_of(days: Array) -> Array:
    return np.asarray(days.astype("datetime64[M]").astype(int) % 12 + 1)


def weekday_of(days: Array) -> Array:
    # 1 is Monday, 7 is Sunday.
    return np.asarray((days.astype("datetime64[D]").astype(int) + 3) % 7 + 1)


def features_of_cells(
    cells: Array, column: Column, codes: Codes | None, unknown: dict[str, int]
) -> Array:
    """Return the features of a column of a known view; count cells that are of no known level."""
    if column.kind == "number":
        return cells[:, None]
    if column.kind == "date":
        days = np.floor(np.where(np.isnan(cells), 0, cells)).astype("datetime64[D]")
        made = {DAYS: cells - column.first}
        for names, part, period in ((MONTH, month_of(days), 12), (WEEKDAY, weekday_of(days), 7)):
            angle = 2 * np.pi * (part - 1) / period
            made |= zip(names, (np.sin(angle), np.cos(angle)), strict=True)
        found = np.column_stack([made[part] for part in column.levels]).astype(np.float64)
        found[np.isnan(cells)] = np.nan
        return found
    if codes is None:  # the table lacks the column
        return np.full((len(cells), len(column.levels)), np.nan)
    place = {level: j for j, level in enumerate(column.levels)}
    # The last but one is for other levels, the last for missing cells.
    other, missing = len(place), len(place) + 1
    of_code = np.array([*(place.get(level, other) for level in codes.levels), other, missing])
    code = np.where(np.isnan(cells), len(codes.levels) + 1, cells).astype(int)
    code[code < 0] = len(codes.levels)
    at = of_code[code]
    n_other = int(np.count_nonzero(at == other))
    if n_other:
        unknown[column.name] = unknown.get(column.name, 0) + n_other
    found = np.asarray(at[:, None] == np.arange(len(place)), np.float64)
    found[at >= other] = np.nan  # nobody knows which level it is: a missing cell, as of numbers
    return found


def tell_unknown(unknown: Mapping[str, int], label: str, batch: str | None = None) -> None:
    unknown = dict(unknown)
    if n_rows := unknown.pop(batch or "", 0):
        warn_user(
            f"{label}: {n_rows:,} rows are of a batch ({batch!r}) that is not known, and are not "
            "corrected. Refresh the view with all its rows to learn the batch."
        )
    if unknown:
        shown = ", ".join(f"{n:,} of {name!r}" for name, n in list(unknown.items())[:5])
        warn_user(
            f"{label}: cells with a level that is not known: {shown}. They count as missing cells.",
        )
