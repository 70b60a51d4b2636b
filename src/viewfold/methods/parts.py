"""Take encoders apart into plain arrays, and put them together again.

A file holds arrays and the tags of a few known classes, nothing that could be run. Tags are names
that a file keeps for ever: a class may be renamed, and a new version of one is another entry here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from viewfold.blocks import Array
from viewfold.methods.encoders import Encoder, Landmarks
from viewfold.methods.scaling import Affine, Scaling, Text


class Tag(NamedTuple):
    """What a file calls a class that has parts, and the version of its parts."""

    type: str
    version: int


Part: TypeAlias = Tag | Array

KINDS: dict[Tag, type[Any]] = {
    Tag("affine", 1): Affine,
    Tag("encoder", 1): Encoder,
    Tag("landmarks", 1): Landmarks,
    Tag("scaling", 1): Scaling,
    Tag("text", 1): Text,
}
"""Whatever was ever written can be read: entries stay. Of several for one class, the last is
written."""

_tags = {kind: tag for tag, kind in KINDS.items()}


def tag_of(thing: Any) -> Tag | None:
    """Return what a file calls the class of a thing; None if a file cannot hold it."""
    return _tags.get(type(thing))


def take_apart(thing: Any, name: str) -> Iterator[tuple[str, Part]]:
    """Yield the arrays of an encoder with their names, and the tag of every part that has parts.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.methods.parts import put_together, take_apart
    >>> from viewfold.methods.scaling import Affine
    >>> parts = dict(take_apart(Affine(np.eye(2), np.zeros(2)), "encoder"))
    >>> list(parts)
    ['encoder', 'encoder/weights', 'encoder/offset']
    >>> parts["encoder"]
    Tag(type='affine', version=1)
    >>> put_together(parts, "encoder")
    Affine(weights=array([[1., 0.],
           [0., 1.]]), offset=array([0., 0.]))
    """
    if thing is None:
        return
    if is_dataclass(thing):
        yield name, _tags[type(thing)]
        for field in fields(thing):
            yield from take_apart(getattr(thing, field.name), f"{name}/{field.name}")
    else:
        yield name, np.asarray(thing)


def put_together(parts: Mapping[str, Part], name: str) -> Any:
    """Return what was taken apart under a name; None if nothing was.

    Raises
    ------
    KeyError, TypeError
        If the parts are not those of a known class.
    """
    part = parts.get(name)
    if not isinstance(part, Tag):
        return part if part is None or part.ndim else part.item()
    kind = KINDS[part]
    return kind(**{f.name: put_together(parts, f"{name}/{f.name}") for f in fields(kind)})
