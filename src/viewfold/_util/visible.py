"""Text out of data, made safe for what shows it: terminals, JSON on terminals, spreadsheets.

Names of columns, levels, ids, views and files are written by others. A terminal obeys the control
characters in them, and a spreadsheet runs a cell that begins with an equals sign.
"""

from __future__ import annotations

import re
from unicodedata import category

JOINERS = "\u200c\u200d"
"""Letters are joined by these in Persian, Hindi and emoji: they change no order."""

_ESCAPED = re.compile(r"[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def visible(text: str) -> str:
    r"""Return text for a line of a terminal: characters that are not shown are written as escapes.

    Control characters, among them ends of lines, and those that change the direction of text.

    Examples
    --------
    >>> from viewfold._util.visible import visible
    >>> print(visible("\x1b[31mred\N{RIGHT-TO-LEFT OVERRIDE} é"))
    \x1b[31mred\u202e é
    """
    if text.isprintable():
        return text
    return "".join(c if _is_shown(c) else c.encode("unicode_escape").decode() for c in text)


def visible_lines(text: str) -> str:
    """Return text of several lines for a terminal."""
    return "\n".join(map(visible, text.split("\n")))


def visible_json(text: str) -> str:
    r"""Return JSON that says the same without characters that a terminal obeys.

    Examples
    --------
    >>> from viewfold._util.visible import visible_json
    >>> print(visible_json('"\x9b31m"'))
    "\u009b31m"
    """
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def no_formula(text: str) -> str:
    """Return text for a cell of a CSV file: with an apostrophe, if spreadsheets would run it.

    A number stays a number. A text that begins with an apostrophe and a formula gets another one,
    so that taking one apostrophe away always gives what there was.

    Examples
    --------
    >>> from viewfold._util.visible import no_formula
    >>> [no_formula(text) for text in ("=1+1", "'=1+1", "-5.5", "p7", "'p7")]
    ["'=1+1", "''=1+1", '-5.5', 'p7', "'p7"]
    """
    if not text.lstrip("'").startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def _is_shown(c: str) -> bool:
    return c.isprintable() or c in JOINERS or category(c) == "Zs"
