"""Arguments that a function does not have, or not so: say which function, and what was meant.

Python names the mixin that holds a method instead of the class of the model, and suggests nothing
before version 3.13.
"""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from numbers import Integral
from typing import Any, ParamSpec, TypeGuard, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def check_arguments(called: str, takes: Iterable[str], given: Iterable[str]) -> None:
    """Refuse the first argument that a function does not take.

    Examples
    --------
    >>> from viewfold._util.arguments import check_arguments
    >>> check_arguments("load", ["path", "engine"], {"engin": None})
    Traceback (most recent call last):
    TypeError: load() has no argument 'engin'. Did you mean 'engine'?
    """
    takes = list(takes)
    for name in given:
        if name not in takes:
            near = get_close_matches(name, takes)
            said = " or ".join(map(repr, near))
            help = f"Did you mean {said}?" if near else f"It takes {', '.join(takes)}."
            raise TypeError(f"{called}() has no argument {name!r}. {help}")


def is_whole_number(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number of Python or NumPy, and no boolean.

    Examples
    --------
    >>> from viewfold._util.arguments import is_whole_number
    >>> is_whole_number(1), is_whole_number(True), is_whole_number(1.0)
    (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


def size_in_bytes(text: str, what: str) -> int:
    """Return a size that was written as 500M, 4GB or in bytes; an error calls it `what`."""
    found = re.fullmatch(r"(\d+)\s*([KMGT]?)B?", text.strip().upper())
    if not found:
        raise ValueError(f"{what} is no size. Write bytes, or for instance 500M or 20G.")
    return int(found[1]) * _UNITS[found[2]]


def arguments_of(function: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments of a function or method."""
    return [name for name in inspect.signature(function).parameters if name != "self"]


def warn_user(message: str) -> None:
    """Warn, and point to the line outside viewfold that led here, however deep that is."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("viewfold."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def suggests_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function, or a constructor, name what was meant instead of an argument it has not."""
    takes = arguments_of(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        made = function.__name__ == "__init__"
        check_arguments(type(args[0]).__name__ if made else function.__name__, takes, kwargs)
        return function(*args, **kwargs)

    return call
