"""Data for tests: small clusters that are easy to tell apart, and the shared sets if present."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

pytest_plugins = [
    "browser_tabs",
    "crafted_files",
    "store_models",
    "ui_pages",
    "vfd_models",
    "writers",
]

# The first example imports things; whoever runs the tests again sees what others saw.
settings.register_profile("viewfold", deadline=None, derandomize=True)
settings.load_profile("viewfold")

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name tests not after bytes: packed files hold the second in which they were packed."""
    return argname if isinstance(val, bytes) else None


@dataclass(frozen=True)
class Data:
    views: dict[str, np.ndarray]
    y: np.ndarray
    missing: np.ndarray

    def parts(self) -> dict[str, tuple[np.ndarray, list[str]]]:
        """Matrix and ids of what is there of each view."""
        kept = ~self.missing
        return {
            name: (X[kept[:, v]], [f"s{i}" for i in np.flatnonzero(kept[:, v])])
            for v, (name, X) in enumerate(self.views.items())
        }


@pytest.fixture(scope="session")
def data() -> Data:
    rng = np.random.default_rng(7)
    y = rng.permutation(np.repeat(np.arange(4), 40))
    views = {}
    for name, d in (("labs", 12), ("scan", 30), ("text", 7)):
        centers = 4 * rng.normal(size=(4, d))
        views[name] = centers[y] + rng.normal(size=(160, d))
    missing = np.zeros((160, 3), bool)
    for v in range(3):
        missing[40 * v : 40 * v + 40, v] = True
    return Data(views, y, missing)


def load(name: str) -> tuple[list[Any], np.ndarray]:
    """Views and classes of a shared data set."""
    path = SHARED / "data" / f"{name}.npz"
    if not path.exists():
        pytest.skip("the shared data sets are not here")
    with np.load(path) as file:
        views = [file[f"view_{i}"] for i in range(99) if f"view_{i}" in file]
        return views, file["y"]


def golden_files() -> list[Path]:
    """Answers of the authors' program on shared data sets (the synthetic one is in tests/)."""
    found = (SHARED / "golden").glob("*.npz")
    return sorted(p for p in found if not p.stem.endswith(("masks", "synthetic-small")))


def zscore(X: np.ndarray) -> np.ndarray:
    X = X.astype(np.float64)
    spread = X.std(axis=0, ddof=1)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, np.inf)


@pytest.fixture(scope="module", autouse=True)
def _keys_of_the_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Draw the keys of fingerprints alike in every run: two of 16 bits may be equal by chance."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "randbits", random.Random(request.node.nodeid).getrandbits)
        yield


@pytest.fixture(autouse=True)
def _keys_of_the_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "randbits", random.Random(request.node.nodeid).getrandbits)


@pytest.fixture
def quick_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without what takes most of the time, for tests that do not look at it."""
    monkeypatch.setattr("viewfold.web.data.number", lambda model: None)
    unknown = lambda self, k: ([np.nan] * k, [False] * k)  # noqa: E731
    monkeypatch.setattr("viewfold.web.data.ModelFacts._stability", unknown)
    monkeypatch.setattr("viewfold.web.layout.tsne", lambda rows: rows[:, :2])
