"""State files: how they are written, read, checked and locked; docs/format.md describes them.

Names are imported when they are first used: what only replaces a file in one step, or waits for a
lock, needs neither DuckDB nor scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from viewfold.errors import StateFileError
    from viewfold.store._catalogue import meta_table
    from viewfold.store._convert import convert
    from viewfold.store._database import STORAGE
    from viewfold.store._file import check_schema, opened, read, write
    from viewfold.store._lock import writing
    from viewfold.store._verify import verify
    from viewfold.store.models import edit, forget, load, restore, undo

_home = {
    "STORAGE": "viewfold.store._database",
    "StateFileError": "viewfold.errors",
    "check_schema": "viewfold.store._file",
    "convert": "viewfold.store._convert",
    "edit": "viewfold.store.models",
    "forget": "viewfold.store.models",
    "load": "viewfold.store.models",
    "meta_table": "viewfold.store._catalogue",
    "opened": "viewfold.store._file",
    "read": "viewfold.store._file",
    "restore": "viewfold.store.models",
    "undo": "viewfold.store.models",
    "verify": "viewfold.store._verify",
    "write": "viewfold.store._file",
    "writing": "viewfold.store._lock",
}

__all__ = [
    "STORAGE",
    "StateFileError",
    "check_schema",
    "convert",
    "edit",
    "forget",
    "load",
    "meta_table",
    "opened",
    "read",
    "restore",
    "undo",
    "verify",
    "write",
    "writing",
]


def __getattr__(name: str) -> Any:
    if name in _home:
        return getattr(importlib.import_module(_home[name]), name)
    raise AttributeError(f"module 'viewfold.store' has no attribute {name!r}")
