"""Continual clustering of multi-view data with incomplete views.

Views of the same samples are folded one after the other into one small consensus matrix; each of
them may lack samples, and none is needed after it was folded.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from viewfold._util.version import __version__ as __version__

if TYPE_CHECKING:
    from viewfold import data, datasets, errors, metrics, plot
    from viewfold.app.inspection import Inspection, inspect_views
    from viewfold.data import View, as_view, as_views
    from viewfold.datasets import missing
    from viewfold.errors import DeliveryWarning, StateFileError
    from viewfold.estimators import FCMVC, ViewFold
    from viewfold.estimators.selection import Suggestion, suggest_n_clusters
    from viewfold.state.state import State, ViewRecord
    from viewfold.store import convert, edit, forget, load, undo, verify
    from viewfold.store.encoder import ExportedEncoder, load_encoder
    from viewfold.web import report

_home = {
    name: module
    for module, names in {
        "viewfold.app.inspection": ("Inspection", "inspect_views"),
        "viewfold.data": ("View", "as_view", "as_views"),
        "viewfold.errors": ("DeliveryWarning", "StateFileError"),
        "viewfold.estimators": ("FCMVC", "ViewFold"),
        "viewfold.estimators.selection": ("Suggestion", "suggest_n_clusters"),
        "viewfold.state.state": ("State", "ViewRecord"),
        "viewfold.store.encoder": ("ExportedEncoder", "load_encoder"),
        "viewfold.store": ("convert", "edit", "forget", "load", "undo", "verify"),
    }.items()
    for name in names
}

_module = {"missing": "viewfold.datasets.missing", "report": "viewfold.web.report"}

__all__ = [
    "FCMVC",
    "DeliveryWarning",
    "ExportedEncoder",
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
    "data",
    "datasets",
    "edit",
    "errors",
    "forget",
    "inspect_views",
    "load",
    "load_encoder",
    "metrics",
    "missing",
    "plot",
    "report",
    "suggest_n_clusters",
    "undo",
    "verify",
]


def __getattr__(name: str) -> Any:
    # `import viewfold` is instant; what a name needs is imported when it is first used.
    if name in _home:
        return getattr(importlib.import_module(_home[name]), name)
    if name in __all__:
        return importlib.import_module(_module.get(name, f"viewfold.{name}"))
    raise AttributeError(f"module 'viewfold' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
