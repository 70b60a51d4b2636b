"""Leaderboards that are computed here, and files of views for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from viewfold_research.bench.plan import Options, plan
from viewfold_research.bench.protocol import compute
from viewfold_research.bench.results import Results

TWO = ("ViewFold", "OPIMC")


def save(path: Path, *views: np.ndarray, y: np.ndarray, **more: Any) -> None:
    np.savez(path, **{f"view_{v}": X for v, X in enumerate(views)}, y=y, **more)


def views_of(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    with np.load(path) as file:
        return file["view_0"], file["view_1"], file["y"]


def compute_here(options: Options, out: Path) -> None:
    """Compute a leaderboard in this process, which takes less time than processes of their own."""
    with Results(out, write=True) as results:
        for task in plan("leaderboard", options):
            task = replace(task, judged=str(out / "single-views"), time_limit=None)
            results.add(task.cell, compute(task))
