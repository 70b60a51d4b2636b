"""Views with planted features, and the effects that the raw data give, to compare with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

N = 240


def planted(seed: int = 0, n: int = N) -> tuple[dict[str, pd.DataFrame], np.ndarray]:
    """Three views of four clusters; each has features of other clusters, units and offsets."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 4)
    views = {}
    for name, d, unit, offset in (
        ("labs", 9, 20.0, 500.0),
        ("scan", 30, 1.0, 0.0),
        ("ekg", 6, 1e-3, 1.0),
    ):
        centers = 2.5 * rng.normal(size=(4, d))
        X = offset + unit * (centers[y] + rng.normal(size=(n, d)))
        views[name] = pd.DataFrame(X, [f"p{i}" for i in range(n)]).add_prefix(f"{name}_")
    return views, y


def effects_of(X: pd.DataFrame, labels: pd.Series) -> pd.DataFrame:
    """Return the effects that raw rows and labels give: a row per cluster."""
    z = (X - X.mean()) / X.std(ddof=0)
    found = z.groupby(labels.reindex(X.index)).mean()
    return found[(labels.reindex(X.index).value_counts().sort_index() >= 10).to_numpy()]


def told_by(model: Any, view: str) -> pd.DataFrame:
    """Return the effects that a model tells without the view: a row per cluster."""
    told = model.features(view=view, top=None)
    return told.pivot(index="cluster", columns="feature", values="effect")


def farthest(model: Any, view: str, X: pd.DataFrame) -> float:
    """Return the largest difference between effects that are told and those of the data."""
    true = effects_of(X, model.to_frame()["cluster"])
    told = told_by(model, view)
    return float(np.abs(told[true.columns] - true).to_numpy().max())
