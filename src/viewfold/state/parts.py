"""Take encoders apart into plain arrays, and put them together again.

A file holds arrays and the tags of a few known classes, nothing that could be run. Tags are names
that a file keeps for ever: a class may be renamed, and a new version of one is another entry here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from viewfold._util.types import Array
from viewfold.errors import StateFileError, UnreadableError
from viewfold.state.registry import PARTS


class Tag(NamedTuple):
    """The name and version under which a file holds a class."""

    type: str
    version: int


Part: TypeAlias = Tag | Array
C = TypeVar("C", bound=type)

_tags: dict[type, Tag] = {}
_axes: dict[type, Mapping[str, str]] = {}


def part(name: str, version: int = 1, axes: Mapping[str, str] | None = None) -> Callable[[C], C]:
    """Return a decorator for a dataclass that files may hold: fields are arrays or such classes.

    Parameters
    ----------
    name : str
        What files call it. It stays the same if the class is renamed. A name without a dot is one
        of viewfold's own, which `viewfold.state.registry.PARTS` lists; other packages put theirs in
        front (``"package.name"``), and announce the class as an entry point.
    version : int, default=1
        The version of its fields.
    axes : dict, optional
        A letter for each axis of its arrays. Axes with the same letter have to have the same
        length, or a file is taken for damaged: d are the features of the view, r the columns of the
        embedding.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from viewfold.state.parts import part, put_together, take_apart
    >>> @part("example.scale")
    ... @dataclass(frozen=True)
    ... class Scale:
    ...     factor: np.ndarray
    >>> parts = dict(take_apart(Scale(np.ones(2)), "encoder"))
    >>> parts["encoder"]
    Tag(type='example.scale', version=1)
    >>> put_together(parts, "encoder")
    Scale(factor=array([1., 1.]))
    """

    def add(kind: C) -> C:
        full = f"{name}/{version}"
        if full not in PARTS.built_in:
            if "." not in name:
                raise TypeError(
                    f"viewfold.state.registry.PARTS does not list {full!r}, so a new process could "
                    "not read it. Add it there; another package calls it 'package.name'."
                )
            PARTS.register(full)(kind)
        _tags[kind], _axes[kind] = Tag(name, version), axes or {}
        return kind

    return add


def tag_of(thing: Any) -> Tag | None:
    return _tags.get(type(thing))


def axes_of(thing: Any) -> Mapping[str, str]:
    return _axes[type(thing)]


def take_apart(thing: Any, name: str) -> Iterator[tuple[str, Part]]:
    """Yield the arrays of an encoder with their names, and the tag of every part that has parts."""
    if thing is None:
        return
    if is_dataclass(thing):
        yield name, _tags[type(thing)]
        for field in fields(thing):
            yield from take_apart(getattr(thing, field.name), f"{name}/{field.name}")
    else:
        yield name, np.asarray(thing)


def put_together(parts: Mapping[str, Part], name: str) -> Any:
    """Return what `take_apart` stored under a name; None if there is nothing."""
    found = parts.get(name)
    if not isinstance(found, Tag):
        return found if found is None or found.ndim else found.item()
    tag = f"{found.type}/{found.version}"
    if tag not in PARTS:
        raise UnreadableError(
            f"it holds something that this viewfold does not know: {tag!r}; install a newer "
            "viewfold, or the package that brings it along",
            StateFileError,
        )
    make = PARTS[tag]
    needed = inspect.signature(make).parameters
    return make(**{of: put_together(parts, f"{name}/{of}") for of in needed})
