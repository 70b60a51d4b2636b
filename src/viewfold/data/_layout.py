"""How a delimited text is written, as its first rows tell, and what is said about its cells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from viewfold._util.messages import with_suggestion
from viewfold.data._numerals import Numerals, helps, hint, is_ambiguous, ways_to_read
from viewfold.data.source import FileError

LONGEST_LINE = 64 * 2**20
"""A line may have so many characters."""

CellKind: TypeAlias = Literal["number", "flag", "text"]
"""What the cells of a column are."""


@dataclass(frozen=True)
class Layout:
    """How to read the file, as its first rows tell."""

    encoding: str
    delimiter: str
    numerals: Numerals
    names: tuple[str, ...]
    named: bool
    kinds: dict[str, CellKind]
    skip: int
    block: int
    empty: frozenset[str]

    @property
    def written(self) -> dict[str, str]:
        """What had to be found out, as people are told."""
        plain = "utf-8" if self.encoding.startswith("utf-8") else self.encoding
        found = {"encoding": plain, "delimiter": self.delimiter}
        found["decimal"] = self.numerals.decimal
        return found | ({"thousands": t} if (t := self.numerals.thousands) else {})


def without_mark(encoding: str) -> str:
    """Return an encoding that leaves out the mark with which a text may begin."""
    return "utf-8-sig" if re.sub(r"[-_]", "", encoding.lower()) == "utf8" else encoding


def unclear(place: str, cell: str) -> FileError:
    sign = "," if "," in cell else "."
    return with_suggestion(FileError(f"{place}: {ways_to_read(cell)}"), decimal=sign)


def unclosed(file: str) -> FileError:
    return FileError(
        f"{file}: a quote is opened and not closed, or a cell is very long. Look for a single "
        '" in the file.'
    )


def not_a_number(file: str, line: int | str, name: str, cell: str, numerals: Numerals) -> FileError:
    if is_ambiguous(cell) and not numerals.met:
        return unclear(f"{file}, line {line}, column {name!r}", cell)
    if "\n" in cell:
        return unclosed(f"{file}, line {line}, column {name!r}")
    hinted = hint(cell[:40], numerals)
    advice = hinted or (
        "Correct or impute it; of a sample that the view lacks, leave all cells empty. If it "
        f"stands for a missing cell, name it with empty_markers=…; if {name!r} is a "
        f"category, say categories={[name]!r}."
    )
    said = f"{file}, line {line}, column {name!r}: {cell[:40]!r} is not a number. {advice}"
    return with_suggestion(
        FileError(said), **(helps(cell, numerals) if hinted else {"categories": [name]})
    )
