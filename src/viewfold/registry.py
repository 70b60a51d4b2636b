"""What can be added from outside: a name, and what stands for it.

One decorated class or function adds an entry. Other packages announce theirs as entry points, which
are imported when they are asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """Names and what they stand for.

    Parameters
    ----------
    group : str
        The entry points that belong here.
    built_in : dict
        Where to find what viewfold brings along, as ``"module:name"``.

    Examples
    --------
    >>> from viewfold.registry import Registry
    >>> shapes = Registry("example.shapes", {"path": "pathlib:Path"})
    >>> @shapes.register("square")
    ... def square():
    ...     return "square"
    >>> shapes.names()
    ['path', 'square']
    >>> shapes["square"]()
    'square'
    """

    def __init__(self, group: str, built_in: Mapping[str, str] | None = None) -> None:
        self.group, self._places = group, dict(built_in or {})
        self._known: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that adds an entry."""

        def add(thing: T) -> T:
            if name in self._places or self._known.get(name, thing) is not thing:
                raise ValueError(f"There is a {name!r} in {self.group} already.")
            self._known[name] = thing
            return thing

        return add

    def names(self) -> list[str]:
        """Return all names, those of other packages included."""
        found = [point.name for point in entry_points(group=self.group)]
        return list(dict.fromkeys([*self._places, *self._known, *found]))

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._places or name in self.names()

    def __getitem__(self, name: str) -> T:
        if name not in self._known:
            self._known[name] = self._load(name)
        return self._known[name]

    def _load(self, name: str) -> T:
        if name in self._places:
            module, attribute = self._places[name].split(":")
            found: Any = getattr(importlib.import_module(module), attribute)
            thing: T = found
            return thing
        for point in entry_points(group=self.group, name=name):
            loaded: T = point.load()
            return loaded
        raise KeyError(name)
