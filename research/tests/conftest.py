"""What several tests of research use: the shared data sets, where they are present."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

pytest_plugins = ["bench_results", "bench_sets", "web_server"]

settings.register_profile("viewfold", deadline=None)  # the first example imports things
settings.load_profile("viewfold")

SHARED = Path(__file__).resolve().parents[3] / "shared"


def load(name: str) -> tuple[list[Any], np.ndarray]:
    """Views and classes of a shared data set."""
    path = SHARED / "data" / f"{name}.npz"
    if not path.exists():
        pytest.skip("the shared data sets are not here")
    with np.load(path) as file:
        views = [file[f"view_{i}"] for i in range(99) if f"view_{i}" in file]
        return views, file["y"]


def zscore(X: np.ndarray) -> np.ndarray:
    X = X.astype(np.float64)
    spread = X.std(axis=0, ddof=1)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
