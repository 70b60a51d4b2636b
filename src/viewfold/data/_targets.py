"""Telling the classes of a benchmark file from its views.

Benchmark files hold their true classes under one of a handful of names; they must never be folded.
"""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np
from scipy import sparse

from viewfold._util.types import Array
from viewfold.data.guard import Budget

_NAMES = re.compile(r"y|gt|gnd|(ground)?truth|(true)?labels?|targets?|classes")


def is_called_target(name: str) -> bool:
    """Whether a variable is called as classes are."""
    return _NAMES.fullmatch(name.lower().replace("_", "")) is not None


def is_target(name: str, held: Any) -> bool:
    """Whether a variable holds classes: by its name, unless it is a matrix of measurements."""
    if not is_called_target(name):
        return False
    if isinstance(held, list) or held.ndim < 2 or 1 in held.shape or held.dtype.kind not in "fiub":
        return True
    values = held.data if sparse.issparse(held) else held
    return bool(np.isin(values, (-1, 0, 1)).all())


def as_target(file: str, held: Any) -> Array | None:
    """Return one class per sample; None if there is no telling (several labels per sample)."""
    if isinstance(held, list):
        return as_target(file, held[0]) if held else None
    Budget(file).hold(8 * prod(held.shape), f"classes of shape {held.shape}")
    dense = held.toarray() if sparse.issparse(held) else np.asarray(held)
    if dense.ndim == 2 and 1 not in dense.shape:
        hot = dense > 0
        return np.argmax(hot, axis=1) if (hot.sum(axis=1) == 1).all() else None
    flat = dense.ravel()
    if flat.dtype.kind == "f" and np.isfinite(flat).all() and (flat == np.rint(flat)).all():
        return flat.astype(np.int64)
    return flat
