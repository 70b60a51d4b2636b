"""How dataclasses that hold arrays are shown: names, kinds and shapes, and never a cell.

They are compared by identity (``eq=False``): arrays give no single truth value.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")

LONGEST = 100
"""Letters of one value at most."""


@dataclass_transform(frozen_default=True, eq_default=False)
def frozen_record(kind: type[T]) -> type[T]:
    """Make a class a frozen dataclass that is compared by identity and shown in a line."""
    kind.__repr__ = short_repr  # type: ignore[method-assign]
    return dataclass(frozen=True, eq=False, repr=False)(kind)


def short_repr(self: Any) -> str:
    """Show a dataclass in a line, without fields that have their default.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> from viewfold._util.records import short_repr
    >>> @dataclass(frozen=True, eq=False)
    ... class Map:
    ...     weights: np.ndarray
    ...     name: str = "map"
    ...     __repr__ = short_repr
    >>> Map(np.zeros((40, 3)))
    Map(weights=<float64 (40, 3)>)
    """
    held = {one.name: getattr(self, one.name) for one in fields(self) if one.repr}
    defaults = {one.name: one for one in fields(self)}
    shown = [
        f"{name}={_short(value)}"
        for name, value in held.items()
        if not _is_default(defaults[name], value)
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
