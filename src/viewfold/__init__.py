"""Continual clustering of multi-view data with incomplete views.

Views of the same samples are folded one after the other into one small consensus matrix; each of
them may lack samples, and none is needed after it was folded.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from viewfold._version import __version__ as __version__

if TYPE_CHECKING:
    from viewfold import datasets, errors, io, metrics, missing, plot, report
    from viewfold.core.state import State, ViewRecord
    from viewfold.errors import StateFileError
    from viewfold.estimators import FCMVC, ViewFold
    from viewfold.inspection import Inspection, inspect_views
    from viewfold.selection import Suggestion, suggest_n_clusters
    from viewfold.store import convert, edit, forget, load, restore, undo, verify
    from viewfold.view import View, as_view, as_views

_home = {
    "FCMVC": "viewfold.estimators",
    "ViewFold": "viewfold.estimators",
    "State": "viewfold.core.state",
    "ViewRecord": "viewfold.core.state",
    "convert": "viewfold.store",
    "edit": "viewfold.store",
    "forget": "viewfold.store",
    "load": "viewfold.store",
    "restore": "viewfold.store",
    "undo": "viewfold.store",
    "verify": "viewfold.store",
    "StateFileError": "viewfold.errors",
    "Inspection": "viewfold.inspection",
    "inspect_views": "viewfold.inspection",
    "Suggestion": "viewfold.selection",
    "suggest_n_clusters": "viewfold.selection",
    "View": "viewfold.view",
    "as_view": "viewfold.view",
    "as_views": "viewfold.view",
}

__all__ = [
    "FCMVC",
    "Inspection",
    "State",
    "StateFileError",
    "Suggestion",
    "View",
    "ViewFold",
    "ViewRecord",
    "as_view",
    "as_views",
    "convert",
    "datasets",
    "edit",
    "errors",
    "forget",
    "inspect_views",
    "io",
    "load",
    "metrics",
    "missing",
    "plot",
    "report",
    "restore",
    "suggest_n_clusters",
    "undo",
    "verify",
]


def __getattr__(name: str) -> Any:
    # `import viewfold` is instant; what a name needs is imported when it is first used.
    if name in _home:
        return getattr(importlib.import_module(_home[name]), name)
    if name in __all__:
        return importlib.import_module(f"viewfold.{name}")
    raise AttributeError(f"module 'viewfold' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
