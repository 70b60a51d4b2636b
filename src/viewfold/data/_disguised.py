"""Texts that would be taken for categories and are something else: numbers and dates in disguise.

``5.1 mg``, ``12 %``, ``1,5`` in a column of texts, ``03/04/2024``, and numbers among words: as
categories or as free text they would be misread, and nobody would notice. They are refused, unless
the user says what they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from viewfold._util.messages import with_suggestion
from viewfold.data._numerals import DATE

_SIGN = r"[+\-\u2212\u2013]?"
_DIGITS = r"(?:\d[\d.,'’_ \u00a0\u202f]*|[.,]\d+)(?:[eE][+-]?\d+)?"
_MONEY = r"[€$£¥]"
# A unit without a space begins with a small letter: 1A and 2A are names of rooms.
_UNIT = rf"(?:[%‰]|{_MONEY}|°[CF]?|[a-zµμ][\w/µμ²³^.·*-]*|(?<=[ \u00a0])[A-Zµμ°Ω][\w/µμ²³^.·*-]*)"
_QUANTITY = re.compile(
    rf"(?P<before>{_MONEY}?)\s*\(?{_SIGN}\s*{_DIGITS}\)?\s*(?P<unit>{_UNIT}?)", re.ASCII
)
_NUMBER = re.compile(rf"{_SIGN}(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def refuse_disguised(name: str, levels: Collection[str], label: str) -> None:
    """Refuse a column of texts that are no words: numbers or dates that are not written as such.

    Parameters
    ----------
    name : str
        The column.
    levels : collection of str
        Its different texts.
    label : str
        What errors call the table.

    Examples
    --------
    >>> from viewfold.data._disguised import refuse_disguised
    >>> refuse_disguised("ward", ["ICU", "ER", "3a"], "labs")
    >>> try:
    ...     refuse_disguised("dose", ["5 mg", "7.5 mg"], "labs")
    ... except ValueError as error:
    ...     print(str(error).partition(" Write")[0])
    labs: column 'dose' holds numbers with 'mg', such as '5 mg'.
    """
    told = _told(list(levels))
    if told:
        said = (
            f"{label}: column {name!r} holds {told} If it is a category, say "
            f"categories={name!r}; if it is none of these, drop={name!r}."
        )
        raise with_suggestion(ValueError(said), drop=[name])


def _told(levels: list[str]) -> str:
    if len(levels) < 2:
        return ""
    if all(DATE.fullmatch(level) for level in levels):
        return (
            f"dates such as {levels[0]!r}. One form is read, as 03/04 may be March or April. "
            "Write them as 2024-12-31."
        )
    found = [_QUANTITY.fullmatch(level) for level in levels]
    around = {(one["before"], one["unit"]) for one in found if one}
    if all(found) and len(around) == 1:
        ((before, unit),) = around
        extra = f"with {unit or before!r}" if unit or before else "in another form"
        return f"numbers {extra}, such as {levels[0]!r}. Write numbers alone, as 12.5."
    numbers = [level for level in levels if _NUMBER.fullmatch(level)]
    if numbers:
        others = [level for level in levels if level not in set(numbers)]
        text = f" and texts such as {others[0]!r}" if others else " and texts"
        return (
            f"numbers such as {numbers[0]!r}{text}. Correct or impute the texts; if they stand for "
            f"missing cells, name them with empty_markers=…."
        )
    return ""
