"""How numbers are written in a text: the decimal sign, and what separates thousands.

``115,499`` is 115 thousand to one reader and 115.499 to another. The decimal sign is told from
cells that can be read in one way only; where there are none, the user has to say it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from viewfold._util.file import SEPARATORS, SPACES, ReadOptions
from viewfold._util.types import Array

# Three digits after the sign, one to three before it, and not 0 alone: either reading makes sense.
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}")
_DECIMAL = re.compile(r"[+-]?\d*([.,])\d+([eE][+-]?\d+)?")
_DAY = r"(\d{1,2}([./-])\d{1,2}\2(\d{4}|\d{2})|\d{4}([./-])\d{1,2}\4\d{1,2})"
DATE = re.compile(rf"{_DAY}([T ]\d{{1,2}}:\d{{2}}(:\d{{2}}(\.\d+)?)?)?", re.ASCII)
"""A date, in whatever order day, month and year are."""


@dataclass(frozen=True)
class Numerals:
    """How numbers are written.

    Parameters
    ----------
    decimal : {".", ","}
        The decimal sign.
    thousands : str, optional
        What separates thousands.
    unsure : bool
        Whether a point may be either, as the first rows have none.
    met : bool
        Whether a cell with this decimal sign was met.
    """

    decimal: str = "."
    thousands: str | None = None
    unsure: bool = False
    met: bool = False

    @property
    def usual(self) -> bool:
        """Whether other programs would read such numbers alike."""
        return self.thousands is None and not self.unsure

    def can_read(self, cell: str) -> bool:
        """Whether a cell holds a number that is written so."""
        bare = cell.strip()
        return self._pattern.match(bare) is not None or bare.lower() in _WORDS

    def numbers(self, cells: Sequence[str], empty: Collection[str]) -> Array:
        """Return cells as numbers, NaN for those that are empty; NotANumberError for others.

        Examples
        --------
        >>> from viewfold.data._numerals import Numerals
        >>> Numerals(",", ".").numbers(["1.234,5", "NA", "-7"], {"NA"})
        array([1234.5,    nan,   -7. ])
        """
        found = np.full(len(cells), np.nan)
        fine = re.compile(self._pattern.pattern, re.ASCII).match
        signs = None if self.thousands is None else re.compile(f"[{self._signs()}]")
        for row, cell in enumerate(cells):
            if cell in empty:
                continue
            # Of a space that is none of these, nobody knows what it stands for.
            bare = cell.strip() if signs is not None or self.unsure else cell.strip(" \t")
            if not fine(bare) and bare.lower() not in _WORDS:
                raise NotANumberError(row, cell)
            if self.unsure and "." in bare and _EITHER.fullmatch(bare):
                raise NotANumberError(row, cell)
            if signs is not None:
                bare = signs.sub("", bare)
            found[row] = float(bare.replace(",", ".") if self.decimal == "," else bare)
        return found

    def is_too_large(self, cell: str, empty: Collection[str]) -> bool:
        """Whether a cell holds a number that float64 turns to infinity; ``inf`` itself is fine."""
        if cell in empty or cell.strip().lower() in _WORDS:
            return False
        try:
            return bool(np.isinf(self.numbers([cell], empty)[0]))
        except NotANumberError:
            return False

    def _signs(self) -> str:
        """Return what separates thousands, as a class of characters: a space may be any."""
        assert self.thousands is not None
        return SPACES if self.thousands in SPACES else re.escape(self.thousands)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """How a number is written; made once, as it is asked for every cell."""
        whole = r"\d+"
        if self.thousands is not None:
            whole = rf"(\d{{1,3}}([{self._signs()}]\d{{3}})+|\d+)"
        sign = re.escape(self.decimal)
        return re.compile(rf"^[+-]?({whole}({sign}\d*)?|{sign}\d+)([eE][+-]?\d+)?$")


_WAYS = (Numerals("."), Numerals(","))


class NotANumberError(ValueError):
    """A cell that is no number: its row in the batch, and what it holds."""

    def __init__(self, row: int, cell: str) -> None:
        super().__init__(f"{cell!r} is not a number")
        self.row, self.cell = row, cell


class AmbiguousError(ValueError):
    """A cell that is one number or another: the place in the sample, and what it holds."""

    def __init__(self, row: int, column: int, cell: str) -> None:
        super().__init__(cell)
        self.row, self.column, self.cell = row, column, cell


def numerals_of(
    sample: list[list[str]], delimiter: str, skip: Collection[int], options: ReadOptions
) -> Numerals:
    """Tell from the first rows, without columns to skip, how numbers are written.

    What the user says counts.
    """
    if options.decimal is not None or options.thousands is not None:
        return Numerals(options.decimal or _other(options.thousands), options.thousands)
    unclear: tuple[int, int, str] | None = None
    for i, j, cell in _cells(sample):
        if j in skip:
            continue
        either = _EITHER.fullmatch(cell)
        # Semicolons are there where commas are decimal signs: there a point may be a separator.
        if either and (either[1] == "," or delimiter == ";"):
            unclear = unclear or (i, j, cell)
        elif not either and (found := _DECIMAL.fullmatch(cell)) and delimiter != found[1]:
            return Numerals(found[1], met=True)
    if unclear is not None:
        raise AmbiguousError(*unclear)
    return Numerals(unsure=delimiter == ";")


def holds_numbers(cells: list[str]) -> bool:
    """Whether all cells are numbers, with points or with commas."""
    return any(all(map(way.can_read, cells)) for way in _WAYS)


def ways_to_read(cell: str) -> str:
    """Say what a cell may be, and how to say which."""
    sign = "," if "," in cell else "."
    digits = cell.strip().lstrip("+-")
    whole, _, rest = digits.partition(sign)
    return (
        f"{cell.strip()!r} is {whole}.{rest} (decimal={sign!r}) or {whole}{rest} "
        f"(thousands={sign!r}). Say which."
    )


def is_ambiguous(cell: str) -> bool:
    """Whether a cell is one number or another."""
    return _EITHER.fullmatch(cell.strip()) is not None


def hint(cell: str, numerals: Numerals | None = None) -> str:
    """Say what may help with a cell that is no number, where others are, written as `numerals`."""
    bare = cell.strip()
    if numerals is not None and cell != bare and numerals.can_read(bare):
        return "There is space around it, or what looks like it. Remove that."
    found = helps(cell, numerals)
    said = " and ".join(f"{name}={sign!r}" for name, sign in found.items())
    other = _other_sign(bare, numerals)
    if numerals is not None and other:
        told = f"Other cells have {numerals.decimal!r} as decimal sign"
        if found:
            return f"{told}: if it is {bare.replace(other, '')}, {said}."
        return f"{told}. Write all in one way."
    return f"If it is one, say {said}." if said else ""


def helps(cell: str, numerals: Numerals | None = None) -> dict[str, object]:
    """Return the options with which a cell would be a number, if there are any."""
    bare = cell.strip()
    if DATE.fullmatch(bare):
        return {}
    other = _other_sign(bare, numerals)
    if other:
        return {"thousands": other} if is_ambiguous(bare) else {}
    signs = [sign for sign in SEPARATORS if sign in bare]
    if not signs or not re.fullmatch(rf"[+-]?\d[\d{re.escape(SEPARATORS)}]*", bare):
        return {}
    last, found = max(signs, key=bare.rindex), dict[str, object]()
    if last in ",." and bare.count(last) == 1:
        found["decimal"] = last
        signs.remove(last)
    if signs:
        found["thousands"] = signs[0]
    return found


def _other_sign(bare: str, numerals: Numerals | None) -> str:
    """Return the decimal sign of a cell, if it is not the one that other cells have."""
    if numerals is None or not numerals.met:
        return ""
    other = "." if numerals.decimal == "," else ","
    return other if Numerals(other).can_read(bare) else ""


_WORDS = frozenset(["nan", "inf", "+inf", "-inf", "infinity", "-infinity"])


def _other(thousands: str | None) -> str:
    return "," if thousands == "." else "."


def _cells(sample: list[list[str]]) -> Iterator[tuple[int, int, str]]:
    for i, row in enumerate(sample):
        for j, cell in enumerate(row):
            yield i, j, cell.strip()
