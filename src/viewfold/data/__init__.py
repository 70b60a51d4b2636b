"""Anything a user holds becomes a `View`: sample ids, a row of numbers for each, and a name.

`as_view` and `as_views` take arrays, tables, AnnData and files, or raise an error that says what is
wrong and what to do. Later code sees no file, DataFrame, NaN or duplicate id.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from viewfold.data.files import File, FileError, FileView, formats, name_of, read, register
    from viewfold.data.opening import as_view, as_views
    from viewfold.data.view import View

__all__ = [
    "File",
    "FileError",
    "FileView",
    "View",
    "as_view",
    "as_views",
    "formats",
    "name_of",
    "read",
    "register",
]

_HOME = {"as_view": "opening", "as_views": "opening", "View": "view"}


def __getattr__(name: str) -> Any:
    # Readers are imported when somebody reads: `viewfold.load_encoder` gets along without them.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"viewfold.data.{_HOME.get(name, 'files')}"), name)
