"""A results database filled by hand, with everything that tables and figures show."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from viewfold_research.bench.results import Cell, Outcome, Results, as_setting

METHODS = {"ViewFold": 24, "FCMVC-IV": 0, "FCMVC-IV exact": 0.4, "FCMVC+ZF": -2, "IMG": -9}
METRICS = {"ACC": 60.0, "NMI": 50.0, "purity": 62.0, "F": 45.0}
SETS = {"uci-digit": 2000, "Wiki": 2866}


def scores(rng: np.random.Generator, height: float, runs: int = 50) -> dict[str, list[float]]:
    return {m: list(base + height + rng.normal(0, 2, runs)) for m, base in METRICS.items()}


def outcome(rng: np.random.Generator, method: str, n: int, height: float = 0) -> Outcome:
    if method == "IMG" and n > 2500:
        return Outcome("out of memory", load=1.0)
    return Outcome(
        scores=scores(rng, METHODS[method] + height, 1 if method == "ViewFold" else 50),
        cpu_seconds=1e-5 * n ** (2.6 if method == "IMG" else 1) * rng.uniform(0.9, 1.1),
        wall_seconds=1e-5 * n,
        peak_bytes=int(900 * n ** (2 if method == "IMG" else 1)),
        n_samples=n,
        n_clusters=10,
        load=0.7,
    )


def curve(rng: np.random.Generator, rises: bool) -> list[float]:
    fall = list(1000 * (0.8 + 0.2 * np.exp(-0.5 * np.arange(12))) + rng.normal(0, 0.01))
    fall.append(fall[-1] * (1 + 1e-13))  # round-off
    return [*fall, fall[-1] + 9, fall[-1] + 8.9] if rises else fall


def fill(database: Results) -> None:
    rng = np.random.default_rng(0)
    for method in METHODS:
        for name, n in SETS.items():
            found = outcome(rng, method, n)
            database.add(Cell("complete", name, method), found)
            database.add(Cell("time", name, method), found)
            for ratio in (0.1, 0.2, 0.3, 0.4, 0.5):
                for draw in range(3):
                    cell = Cell("incomplete", name, method, ratio, draw)
                    database.add(cell, outcome(rng, method, n, -40 * ratio))
        for n in (1000, 10_000, 100_000):
            cell = Cell("scale", "synthetic", method, setting=as_setting(n=n))
            database.add(cell, outcome(rng, method, n))
    for method in ("ViewFold", "FCMVC-IV"):
        for name in ("uci-digit", "Wiki"):
            for order in permutations(range(3)):
                shift = 0 if method == "ViewFold" else 9 * order[-1]
                cell = Cell("order", name, method, setting=as_setting(order=list(order)))
                database.add(cell, outcome(rng, method, 500, shift))
    for method, rises in (("FCMVC-IV", True), ("FCMVC-IV exact", False)):
        views = [[500.0], curve(rng, False), curve(rng, rises)]
        cell = Cell("convergence", "proteinFold", method, 0.3)
        database.add(cell, Outcome(curves=views, n_samples=694))


@pytest.fixture(scope="module")
def results_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("results")
    with Results(path, write=True) as database:
        fill(database)
    return path


@pytest.fixture
def small_results(tmp_path: Path) -> Path:
    """Results that make one figure."""
    with Results(tmp_path, write=True) as database:
        for n in (100, 1000):
            cell = Cell("scale", "synthetic", "ViewFold", setting=as_setting(n=n))
            database.add(cell, Outcome(cpu_seconds=n / 100, peak_bytes=n, n_samples=n))
    return tmp_path


def line(table: pd.DataFrame, dataset: str, method: str, metric: str = "ACC") -> pd.Series:
    chosen = (table[["dataset", "method", "metric"]] == (dataset, method, metric)).all(axis=1)
    assert chosen.sum() == 1
    return table[chosen].iloc[0]
