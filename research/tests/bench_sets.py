"""Small data sets and methods of another package, for the tests of the benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from viewfold.datasets.missing import by_paper_rule
from viewfold_research.bench import methods
from viewfold_research.bench.results import Results

QUICK = {"kmeans_runs": 3, "draws": 1, "ratios": (0.3,)}


@pytest.fixture
def bench_sets(tmp_path: Path) -> Path:
    """A folder with two small data sets, easy and with one view of noise."""
    rng = np.random.default_rng(3)
    y = rng.permutation(np.repeat([0, 1, 2], 30))
    clear = 5 * rng.normal(size=(3, 6))[y] + rng.normal(size=(90, 6)) + 9
    other = 3 * rng.normal(size=(3, 4))[y] + rng.normal(size=(90, 4)) + 9
    noise = rng.normal(size=(90, 5))
    (tmp_path / "sets").mkdir()
    np.savez(tmp_path / "sets" / "easy.npz", view_0=clear, view_1=other, y=y)
    np.savez(tmp_path / "sets" / "noisy.npz", view_0=noise, view_1=clear, y=y)
    return tmp_path / "sets"


PACKAGE = """
import os, pathlib, signal, time, uuid
import numpy as np

def sums(views, missing, n_clusters, seed):
    seen = [np.where(missing[:, [v]], 0, X) for v, X in enumerate(views)]
    return np.column_stack([X.sum(axis=1) for X in seen] + [np.ones(len(missing))])

def marks(views, missing, n_clusters, seed):
    time.sleep(0.05)
    pathlib.Path(os.environ["MARKS"], f"{uuid.uuid4()}.{os.getpid()}").touch()
    return np.arange(len(missing)) % n_clusters

def dies(views, missing, n_clusters, seed):
    os.kill(os.getpid(), signal.SIGKILL)

def fails(views, missing, n_clusters, seed):
    raise RuntimeError("no\\nluck" if "LUCK" not in os.environ else os.environ["LUCK"])

def greedy(views, missing, n_clusters, seed):
    taken = np.empty(8 * 10**9, np.uint8)  # without a limit, nobody minds before it is written to
    return np.arange(len(missing)) % n_clusters

def spins(views, missing, n_clusters, seed):
    pathlib.Path(os.environ["MARKS"], f"{uuid.uuid4()}.{os.getpid()}").touch()
    while True:
        pass

def short(views, missing, n_clusters, seed):
    return np.ones(3)
"""


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Another package that adds methods, as if it were installed."""
    place = tmp_path / "site"
    info = place / "others-1.0.dist-info"
    info.mkdir(parents=True)
    (place / "others.py").write_text(PACKAGE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    names = ("sums", "marks", "dies", "fails", "greedy", "short", "spins")
    lines = [f"{name} = others:{name}" for name in names] + ["gone = others:nothing"]
    (info / "entry_points.txt").write_text("[viewfold.method]\n" + "\n".join(lines))
    monkeypatch.syspath_prepend(str(place))
    methods.find.cache_clear()
    yield place
    methods.find.cache_clear()


def cells(out: Path, columns: str = "method, status", where: str = "true") -> list[Any]:
    with Results(out) as results:
        return results.query(f"SELECT {columns} FROM cells WHERE {where} ORDER BY ALL")


def incomplete(folder: Path) -> tuple[list[np.ndarray], np.ndarray]:
    with np.load(folder / "easy.npz") as file:
        return [file["view_0"], file["view_1"]], by_paper_rule(90, 2, 0.3, 1)
