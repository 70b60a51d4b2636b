"""Other people's methods for multi-view clustering, one module and one class each.

All of them take a list or dict of views and follow scikit-learn: ``fit(X)``, ``labels_``,
``objective_``, ``n_iter_``. They see all views at once; `FCMVC` and `ViewFold` do not.
research/docs/baselines.md says what each does, costs and is good for.
"""

from __future__ import annotations

import importlib
from typing import Any

_home: dict[str, str] = {
    "FMR": "fmr",
    "PMSC": "pmsc",
    "AMGL": "amgl",
    "MultiNMF": "multinmf",
    "LMVSC": "lmvsc",
    "OPMC": "opmc",
    "FMCNOF": "fmcnof",
    "FPMVS": "fpmvs",
    "CMVC": "cmvc",
    "IMG": "img",
    "MIC": "mic",
    "AGCIMC": "agc_imc",
    "UEAF": "ueaf",
    "PVC": "pvc",
    "OPIMC": "opimc",
    "NEMO": "nemo",
}
"""Class and module of every method, in the order of the paper's tables."""

__all__ = sorted(_home)


def __getattr__(name: str) -> Any:
    if name in _home:
        return getattr(importlib.import_module(f"viewfold_research.baselines.{_home[name]}"), name)
    raise AttributeError(f"module 'viewfold_research.baselines' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
