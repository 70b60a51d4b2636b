"""What a request says, checked: each value by name and kind, and nothing that is not known."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from viewfold._util.file import ReadOptions
from viewfold.app.folding import Wanted
from viewfold.app.numbers import AUTO
from viewfold.errors import InputError

Check = Callable[[Any], Any]

_NUMBER = re.compile("[0-9]{1,18}")


class _WrongError(Exception):
    """A value that is not of its kind; the text says what was expected."""


def text(value: Any) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise _WrongError("a text")
    return value


def any_text(value: Any) -> str:
    """Return a text, which may be empty."""
    if not isinstance(value, str):
        raise _WrongError("a text")
    return value


def flag(value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise _WrongError("true or false")
    return value


def whole(least: int, most: int | None = None) -> Check:
    """Return a check for whole numbers."""

    def check(value: Any) -> int:
        if isinstance(value, str) and _NUMBER.fullmatch(value):  # of an address
            value = int(value)
        right = isinstance(value, int) and not isinstance(value, bool)
        if not right or value < least or (most is not None and value > most):
            upto = "" if most is None else f" to {most}"
            raise _WrongError(f"a whole number from {least}{upto}")
        return int(value)

    return check


def share(value: Any) -> float:
    """Return a number of samples, or a part of them below 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise _WrongError("a number of samples such as 100, or a part of them such as 0.5")
    if value > 1 and value != int(value):
        raise _WrongError("a whole number of samples")
    return float(value) if value <= 1 and isinstance(value, float) else int(value)


def clusters(value: Any) -> int:
    """Return a number of clusters, or what stands for the one that stands out."""
    return AUTO if value == "auto" else int(whole(1)(value))


def texts(value: Any) -> list[str]:
    """Return a list of texts."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _WrongError("a list of texts")
    return value


def one_of(*words: str) -> Check:
    """Return a check for one of some words."""

    def check(value: Any) -> str:
        if value not in words:
            raise _WrongError(f"one of {', '.join(words)}")
        return str(value)

    return check


def ids(value: Any) -> list[int | str]:
    """Return a list of sample ids."""
    right = isinstance(value, list) and value
    if not right or not all(isinstance(one, str | int) and one is not True for one in value):
        raise _WrongError("a list of sample ids, at least one")
    return list(value)


FILE: dict[str, Check] = {
    "sheet": texts,
    "encoding": text,
    "decimal": text,
    "thousands": text,
    "layer": text,
    "use_rep": text,
}
"""What is said about a file; see `viewfold.data.File`."""

READING: dict[str, Check] = {
    "empty_rows": one_of("absent", "keep"),
    "missing_cells": one_of("accept", "error"),
    "columns": texts,
    "drop": texts,
    "categories": texts,
    "empty_markers": texts,
    "strict": flag,
}
"""What is said about its rows and columns; see `viewfold.as_view`."""

VIEW: dict[str, Check] = {
    "upload": text,
    "view": text,
    "id_column": text,
    "no_id": flag,
    "similar_ids": one_of("refuse", "match", "new"),
    **FILE,
    **READING,
}
"""What is said to look at a file."""

FOLD: dict[str, Check] = {
    **VIEW,
    "min_shared": share,
    "clusters": clusters,
    "unconnected": one_of("pair", "separate"),
    "method": text,
    "seed": whole(0, 2**32 - 1),
    "private": flag,
    "keep": whole(0, 100),
    "dry_run": flag,
}
"""What is said to fold it."""


def checked(said: Any, known: Mapping[str, Check], needed: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the values of a request; null is the same as none.

    Examples
    --------
    >>> from viewfold.web._fields import FOLD, checked
    >>> checked({"upload": "9f", "clusters": "auto", "view": None}, FOLD, ("upload",))
    {'upload': '9f', 'clusters': 0}
    """
    if not isinstance(said, dict):
        raise InputError("The request should hold a JSON object.")
    said = {name: value for name, value in said.items() if value is not None}
    for name in said:
        if name not in known:
            raise InputError(f"There is no {name!r} here. Known are: {', '.join(known)}.")
    for name in needed:
        if name not in said:
            raise InputError(f"{name!r} is missing.")
    try:
        return {(at := name): known[name](value) for name, value in said.items()}
    except _WrongError as wrong:
        raise InputError(f"{at!r} should be {wrong}, and is {said[at]!r:.60}.") from None


def proposed(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a fold, other than ids and name of a view, as a request says them."""
    return {name: value for name, value in said.items() if name in VIEW and name != "view"}


def ids_said(said: Mapping[str, Any]) -> str | bool | None:
    """Return what is said about ids: their column, that there are none (False), or nothing."""
    column: str | None = said.get("id_column")
    if said.get("no_id") and column is not None:
        raise InputError("'id_column' names a column of ids, 'no_id' says that there is none.")
    return False if said.get("no_id") else column


def of(said: Mapping[str, Any], names: Mapping[str, Check]) -> dict[str, Any]:
    """Return the values that belong together."""
    return {name: value for name, value in said.items() if name in names}


def wanted(said: Mapping[str, Any], view: str | None, keep: int | None, wait: float) -> Wanted:
    """Return how a file is to be folded."""
    rest = {
        name: value
        for name, value in said.items()
        if name in FOLD and name not in VIEW and name != "keep"
    }
    return Wanted(
        ids=ids_said(said),
        view=view,
        options=ReadOptions.of(**of(said, READING)),
        similar_ids=said.get("similar_ids", "refuse"),
        keep=said.get("keep", keep),
        wait=wait,
        **rest,
    )
