"""What callers pass: names of arguments and views, sizes; and warnings that point to their line.

Python suggests nothing before version 3.13, and would name the wrapper instead of the function.
"""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import wraps
from numbers import Integral
from typing import Any, ParamSpec, TypeGuard, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def check_arguments(function: str, takes: Iterable[str], given: Iterable[str]) -> None:
    """Refuse the first argument that a function does not take, and suggest another one."""
    takes = list(takes)
    for name in given:
        if name not in takes:
            near = get_close_matches(name, takes)
            said = " or ".join(map(repr, near))
            help = f"Did you mean {said}?" if near else f"It takes {', '.join(takes)}."
            raise TypeError(f"{function}() has no argument {name!r}. {help}")


def arguments_of(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def suggests_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function or a constructor suggest an argument for one that it does not have."""
    takes = arguments_of(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        made = function.__name__ == "__init__"
        check_arguments(type(args[0]).__name__ if made else function.__name__, takes, kwargs)
        return function(*args, **kwargs)

    return call


def warn_user(message: str | Warning) -> None:
    """Warn, and point to the line outside viewfold that led here, however deep that is."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("viewfold."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def is_whole_number(value: object) -> TypeGuard[int]:
    """Tell whether a value is a whole number of Python or NumPy, and no boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def which_view(names: Sequence[str], wanted: str | int | None, holder: str) -> int:
    """Return the place of the view that is meant: by name, by number, or the only one.

    Errors say `holder`, such as "the model has folded", before the names.
    """
    if wanted is None and len(names) > 1:
        raise ValueError(
            f"Which view is meant? Pass view=, one of {list(names)} (name= to as_view): "
            f"{holder} {len(names)} views."
        )
    place = 0 if wanted is None else wanted
    if isinstance(wanted, str) and wanted in names:
        place = list(names).index(wanted)
    if not is_whole_number(place) or not -len(names) <= place < len(names):
        raise ValueError(f"There is no view {wanted!r}; {holder} {list(names)}.")
    return int(place) % len(names)


def size_in_bytes(text: str, what: str) -> int:
    """Return a size that was written as 500M, 4GB or in bytes; an error calls it `what`."""
    found = re.fullmatch(r"(\d+)\s*([KMGT]?)B?", text.strip().upper())
    if not found:
        raise ValueError(f"{what} is no size. Write bytes, or for instance 500M or 20G.")
    return int(found[1]) * _UNITS[found[2]]
