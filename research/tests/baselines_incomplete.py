"""Views that lack samples, and the simplex by bisection, for references of baselines."""

from __future__ import annotations

from typing import Any

import baselines_contract as contract
import numpy as np

from viewfold.datasets.missing import by_paper_rule


def named(model: Any) -> str:
    return type(model).__name__


def incomplete(
    n: int = 60,
    widths: tuple[int, ...] = (5, 7),
    ratio: float = 0.3,
    k: int = 3,
    apart: float = 6,
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Views with rows of NaN, who is present, and the clusters."""
    views, y = contract.blobs(n, widths, k, apart=apart)
    missing = by_paper_rule(n, len(widths), ratio, random_state=0)
    return contract.with_nan(views, missing), ~missing, y


def filled_with(value: float, views: list[np.ndarray]) -> list[np.ndarray]:
    return [np.where(np.isnan(X), value, X) for X in views]


def projected(a: np.ndarray) -> np.ndarray:
    """Project on the simplex by bisection."""
    low, high = a.min() - 1, a.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(a - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(a - low, 0)
