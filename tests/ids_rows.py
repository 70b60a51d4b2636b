"""Rows and ids for the tests of ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from viewfold import FCMVC
from viewfold.state.state import ViewRecord

N = 12
RECORD = ViewRecord("labs", 1, 1, 1, 0, 1)
TEXTS = [f"p{i}" for i in range(N)]


def rows(n: int = N, d: int = 3) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, d))


def folded(ids: Any, **options: Any) -> FCMVC:
    return FCMVC(2, random_state=0).partial_fit(rows(len(ids)), ids=ids, view="labs", **options)
