"""Text for people: names, values and errors as messages show them, safe for terminals and sheets.

Names of columns, levels, ids, views and files are written by others. A terminal obeys the control
characters in them, and a spreadsheet runs a cell that begins with an equals sign.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Iterable
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, TypeVar, dataclass_transform
from unicodedata import category

from viewfold.errors import MissingExtraError

AnyError = TypeVar("AnyError", bound=Exception)
T = TypeVar("T")

LONGEST = 100  # characters of a value in `short_repr`
JOINERS = "\u200c\u200d"  # they join letters in Persian, Hindi and emoji, and change no order
_ESCAPED = re.compile(r"[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


# -- names and values


def format_names(names: Iterable[object], most: int = 8) -> str:
    names = list(names)
    shown = ", ".join(repr(str(name)) for name in names[:most])
    return shown + (f", … ({len(names)} in all)" if len(names) > most else "")


def visible(text: str) -> str:
    """Return text for a line of a terminal: characters that are not shown are written as escapes.

    Control characters, among them ends of lines, and those that change the direction of text.
    """
    if text.isprintable():
        return text
    return "".join(
        c
        if c.isprintable() or c in JOINERS or category(c) == "Zs"
        else c.encode("unicode_escape").decode()
        for c in text
    )


def visible_json(text: str) -> str:
    """Return JSON that says the same without characters that a terminal obeys."""
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def no_formula(text: str) -> str:
    """Return text for a cell of a CSV file: with an apostrophe, if spreadsheets would run it.

    A number stays a number. A text that begins with an apostrophe and a formula gets another one,
    so that taking one apostrophe away always gives what there was.
    """
    if not text.lstrip("'").startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


@dataclass_transform(frozen_default=True, eq_default=False)
def frozen_record(kind: type[T]) -> type[T]:
    """Make a class a frozen dataclass that is compared by identity and shown in a line."""
    kind.__repr__ = short_repr  # type: ignore[method-assign]
    return dataclass(frozen=True, eq=False, repr=False)(kind)


def short_repr(self: Any) -> str:
    """Show a dataclass that may hold arrays: names, kinds and shapes, no cell, no default.

    Such classes are compared by identity (``eq=False``): arrays give no single truth value.
    """
    shown = [
        f"{one.name}={_short(value)}"
        for one in fields(self)
        if one.repr and not _is_default(one, value := getattr(self, one.name))
    ]
    return f"{type(self).__name__}({', '.join(shown)})"


def _is_default(one: Field[Any], value: Any) -> bool:
    if one.default_factory is not MISSING:
        return isinstance(value, Collection) and not value
    default = one.default
    return value is default or (isinstance(value, str | int | float | tuple) and value == default)


def _short(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if shape is not None and shape != ():
        return f"<{getattr(value, 'dtype', type(value).__name__)} {tuple(shape)}>"
    if isinstance(value, Collection) and not isinstance(value, str | bytes):
        plain = len(value) <= 3 and all(isinstance(one, str | int | float) for one in value)
        if not plain or isinstance(value, dict):
            return f"<{type(value).__name__} of {len(value)}>"
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


# -- errors


def with_suggestion(error: AnyError, **options: object) -> AnyError:
    """Return an error that knows which options would help, as its message says to people."""
    error.options = options  # type: ignore[attr-defined]
    return error


def suggestion_of(error: BaseException) -> dict[str, Any]:
    """Return the options that would help, as far as the error knows any."""
    found: dict[str, Any] = getattr(error, "options", {})
    return found


def needed(module: str, extra: str, what: str) -> Any:
    """Import a package of an extra; the error says that `what` needs it, and how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        said = f"{what} needs {package}. Install it with: {_install(extra)}"
        raise MissingExtraError(said) from error


def lacking(what: str, extra: str, error: ImportError) -> MissingExtraError:
    """Return the error about a package that another one could not import."""
    return MissingExtraError(f"{what}: {error}. Install what it needs with: {_install(extra)}")


def _install(extra: str) -> str:
    return f"pip install 'viewfold[{extra}]'"
