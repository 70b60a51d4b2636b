"""How a view is to be read: the keywords that `as_view`, `fit` and `partial_fit` have in common."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict, TypeVar, Unpack

from viewfold.data.asked import Asked
from viewfold.data.cells import EmptyRows, MissingCells

Names: TypeAlias = Sequence[str] | str
Categories: TypeAlias = Names | Mapping[str, Sequence[str] | None]
Function = TypeVar("Function", bound=Callable[..., Any])


class Reading(TypedDict, total=False):
    """How a view is to be read; see `as_view`."""

    empty_rows: EmptyRows
    missing_cells: MissingCells
    columns: Names | Mapping[str, Names] | None
    drop: Names | Mapping[str, Names]
    categories: Categories | Mapping[str, Categories]
    empty_markers: Iterable[str | float] | None
    strict: bool
    layer: str | None
    use_rep: str | None


DEFAULTS: Reading = {
    "empty_rows": "absent",
    "missing_cells": "accept",
    "columns": None,
    "drop": (),
    "categories": (),
    "empty_markers": None,
    "strict": False,
    "layer": None,
    "use_rep": None,
}

OF_ONE_VIEW = ("columns", "drop", "categories")


def takes_reading(function: Function) -> Function:
    """Show the options of reading in the signature of a function that takes them as ``**reading``.

    So help, editors and the reference list them, and a wrong one is named with its near misses.
    """
    signature = inspect.signature(function)
    *own, _ = signature.parameters.values()
    options = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )
        for (name, default), annotation in zip(
            DEFAULTS.items(), Reading.__annotations__.values(), strict=True
        )
    ]
    function.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*own, *options]
    )
    return function


def parted(**reading: Unpack[Reading]) -> tuple[tuple[EmptyRows, MissingCells], Asked]:
    """Return what rows of zeros and missing cells are, and what is said about columns."""
    said: dict[str, Any] = dict(reading)
    rules = said.pop("empty_rows", "absent"), said.pop("missing_cells", "accept")
    return rules, Asked.of(**said)


def of_view(reading: Reading, name: str, names: Sequence[str]) -> Reading:
    """Return what is said about one of several views."""
    said: dict[str, Any] = dict(reading)
    for key in OF_ONE_VIEW:
        given = said.pop(key, None)
        if given is None or (not isinstance(given, Mapping) and not len(given)):
            continue
        if not isinstance(given, Mapping) or not set(given) <= set(names):
            raise ValueError(
                f"{key}=… is said of columns of one view, but there are several. "
                f"Pass {{view: …}} with names out of {list(names)}, or one view at a time."
            )
        if name in given:
            said[key] = given[name]
    result: Reading = said  # type: ignore[assignment]
    return result


def of_whole(reading: Reading) -> Reading:
    """Return what can be said of a file before it is known which views it holds."""
    said = {
        key: given
        for key, given in reading.items()
        if not (key in ("columns", "drop") and isinstance(given, Mapping))
    }
    result: Reading = said  # type: ignore[assignment]
    return result
