"""Take encoders apart into plain arrays, and put them together again.

A file holds arrays and the names of a few known classes, nothing that could be run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from viewfold.blocks import Array
from viewfold.methods.encoders import Encoder, Landmarks
from viewfold.methods.scaling import Affine, Scaling, Text

KINDS = {kind.__name__: kind for kind in (Affine, Encoder, Landmarks, Scaling, Text)}


def take_apart(thing: Any, name: str) -> Iterator[tuple[str, str | Array]]:
    """Yield the arrays of an encoder with their names, and the class of every part that has parts.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.methods.parts import put_together, take_apart
    >>> from viewfold.methods.scaling import Affine
    >>> parts = dict(take_apart(Affine(np.eye(2), np.zeros(2)), "encoder"))
    >>> list(parts)
    ['encoder', 'encoder/weights', 'encoder/offset']
    >>> put_together(parts, "encoder")
    Affine(weights=array([[1., 0.],
           [0., 1.]]), offset=array([0., 0.]))
    """
    if thing is None:
        return
    if is_dataclass(thing):
        kind = type(thing).__name__
        assert KINDS[kind] is type(thing)
        yield name, kind
        for field in fields(thing):
            yield from take_apart(getattr(thing, field.name), f"{name}/{field.name}")
    else:
        yield name, np.asarray(thing)


def put_together(parts: Mapping[str, str | Array], name: str) -> Any:
    """Return what was taken apart under a name; None if nothing was.

    Raises
    ------
    KeyError, TypeError
        If the parts are not those of a known class.
    """
    part = parts.get(name)
    if not isinstance(part, str):
        return part if part is None or part.ndim else part.item()
    kind = KINDS[part]
    return kind(**{f.name: put_together(parts, f"{name}/{f.name}") for f in fields(kind)})
