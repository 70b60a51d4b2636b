"""How numbers are written in a text: the decimal sign, and what separates thousands.

``115,499`` is 115 thousand to one reader and 115.499 to another. The decimal sign is told from
cells that can be read in one way only; where there are none, the user has to say it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from viewfold._util.file import SEPARATORS, SPACES
from viewfold._util.messages import with_suggestion
from viewfold._util.types import Array
from viewfold.data.source import FileError

# Three digits after the sign, one to three before it, and not 0 alone: either reading makes sense.
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}")
_DAY = r"(\d{1,2}([./-])\d{1,2}\2(\d{4}|\d{2})|\d{4}([./-])\d{1,2}\4\d{1,2})"
# A date, in whatever order day, month and year are.
_DATE = re.compile(rf"{_DAY}([T ]\d{{1,2}}:\d{{2}}(:\d{{2}}(\.\d+)?)?)?", re.ASCII)
_WORDS = frozenset(["nan", "inf", "+inf", "-inf", "infinity", "-infinity"])
_PLAIN = b"0123456789+-eE \t" + b"nanifty" + b"NANIFTY"  # infinity is a number, too


@dataclass(frozen=True)
class Numerals:
    """How numbers are written."""

    decimal: str = "."
    thousands: str | None = None
    unsure: bool = False  # a point may be either, as the first rows have none
    met: bool = False  # a cell with this decimal sign was met

    def can_read(self, cell: str) -> bool:
        """Whether a cell holds a number that is written so."""
        bare = cell.strip()
        return self._pattern.match(bare) is not None or bare.lower() in _WORDS

    def numbers(self, cells: Sequence[str], empty: frozenset[str]) -> Array:
        """Return cells as numbers, NaN for those that are empty; NotANumberError for others."""
        if self.thousands is None and not self.unsure:
            held = cells
            if not empty.isdisjoint(cells):
                held = ["nan" if cell in empty else cell for cell in cells]
            # All at once, if no cell holds anything but what numbers are written with: this takes
            # a third of the time. Python's float is exact; it would take 1_000, too.
            joined = "".join(held)
            if not joined.encode(errors="replace").translate(None, _PLAIN + self.decimal.encode()):
                if self.decimal == ",":
                    held = [cell.replace(",", ".") for cell in held]
                try:
                    return np.array(held, dtype=np.float64)
                except ValueError:
                    pass
        return self._numbers_one_by_one(cells, empty)

    def _numbers_one_by_one(self, cells: Sequence[str], empty: frozenset[str]) -> Array:
        found = np.full(len(cells), np.nan)
        fine = re.compile(self._pattern.pattern, re.ASCII).match
        signs = self._signs
        for at, cell in enumerate(cells):
            if cell in empty:
                continue
            # Of a space that is none of these, nobody knows what it stands for.
            bare = cell.strip() if signs is not None or self.unsure else cell.strip(" \t")
            if not fine(bare) and bare.lower() not in _WORDS:
                raise NotANumberError(at, cell)
            if self.unsure and "." in bare and _EITHER.fullmatch(bare):
                raise NotANumberError(at, cell)
            if signs is not None:
                bare = re.sub(signs, "", bare)
            found[at] = float(bare.replace(",", ".") if self.decimal == "," else bare)
        return found

    @cached_property
    def _signs(self) -> str | None:
        """What separates thousands, as a class of characters: a space may be any."""
        if self.thousands is None:
            return None
        return f"[{SPACES if self.thousands in SPACES else re.escape(self.thousands)}]"

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """How a number is written; made once, as it is asked for every cell."""
        whole = r"\d+" if self._signs is None else rf"(\d{{1,3}}({self._signs}\d{{3}})+|\d+)"
        sign = re.escape(self.decimal)
        return re.compile(rf"^[+-]?({whole}({sign}\d*)?|{sign}\d+)([eE][+-]?\d+)?$")


_WAYS = (Numerals("."), Numerals(","))


class NotANumberError(ValueError):
    """A cell that is no number: its place among the cells, and what it holds."""

    def __init__(self, at: int, cell: str) -> None:
        super().__init__(f"{cell!r} is not a number")
        self.at, self.cell = at, cell


def holds_numbers(cells: list[str]) -> bool:
    """Whether all cells are numbers, with points or with commas."""
    return any(all(map(way.can_read, cells)) for way in _WAYS)


def is_too_large(text: str, value: float) -> bool:
    """Whether a number was turned to infinity by float64; ``inf`` itself is fine."""
    return bool(np.isinf(value)) and text.strip().lower() not in _WORDS


# -- what errors say about cells


def _unclear(place: str, cell: str) -> FileError:
    """Return the error about a cell that is one number or another."""
    sign = "," if "," in cell else "."
    whole, _, rest = cell.strip().lstrip("+-").partition(sign)
    said = (
        f"{place}: {cell.strip()!r} is {whole}.{rest} (decimal={sign!r}) or {whole}{rest} "
        f"(thousands={sign!r}). Say which."
    )
    return with_suggestion(FileError(said), decimal=sign)


def unclosed(place: str) -> FileError:
    """Return the error about a quote that is not closed."""
    return FileError(
        f"{place}: a quote is opened and not closed, or a cell is very long. Look for a single "
        '" in the file.'
    )


def not_a_number(place: str, name: str, cell: str, numerals: Numerals) -> FileError:
    """Return the error about a cell of the column of this name that is no number."""
    if _EITHER.fullmatch(cell.strip()) and not numerals.met:
        return _unclear(place, cell)
    if "\n" in cell:
        return unclosed(place)
    advice, options = hint(cell[:40], numerals)
    if not advice:
        options = {"categories": [name]}
        advice = (
            "Correct or impute it; of a sample that the view lacks, leave all cells empty. If it "
            f"stands for a missing cell, name it with empty_markers=…; if {name!r} is a "
            f"category, say categories={[name]!r}."
        )
    said = f"{place}: {cell[:40]!r} is not a number. {advice}"
    return with_suggestion(FileError(said), **options)


def hint(cell: str, numerals: Numerals | None = None) -> tuple[str, dict[str, object]]:
    """Say what may help with a cell that is no number, where others are; return the options, too.

    Others are written as `numerals`.
    """
    bare, found = cell.strip(), dict[str, object]()
    if numerals is not None and cell != bare and numerals.can_read(bare):
        return "There is space around it, or what looks like it. Remove that.", found
    if _DATE.fullmatch(bare):
        return "", found
    if numerals is not None and numerals.met:
        other = "." if numerals.decimal == "," else ","
        if Numerals(other).can_read(bare):
            told = f"Other cells have {numerals.decimal!r} as decimal sign"
            if not _EITHER.fullmatch(bare):
                return f"{told}. Write all in one way.", found
            whole = bare.replace(other, "")
            return f"{told}: if it is {whole}, thousands={other!r}.", {"thousands": other}
    signs = [sign for sign in SEPARATORS if sign in bare]
    if not signs or not re.fullmatch(rf"[+-]?\d[\d{re.escape(SEPARATORS)}]*", bare):
        return "", found
    last = max(signs, key=bare.rindex)
    if last in ",." and bare.count(last) == 1:
        found["decimal"] = last
        signs.remove(last)
    if signs:
        found["thousands"] = signs[0]
    said = " and ".join(f"{name}={sign!r}" for name, sign in found.items())
    return f"If it is one, say {said}.", found
