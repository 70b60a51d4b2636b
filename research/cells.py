"""Simulated single cells whose types are known: whether clusters follow types or depth.

    python research/cells.py [--cells 30000] [--seeds 1] [--strength 0.8]

A cell has counts of 2,000 genes and of 200 proteins (CITE-seq); its depth is log-normal and says
nothing about its type; half of the cells have one of both. Raw counts are folded as `scale="auto"`
scales them, with a z-score, and after the usual steps by hand (genes: divided by depth, logarithm,
30 principal components; proteins: centred log-ratios).
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.metrics import normalized_mutual_info_score

from viewfold import ViewFold

TYPES = 8


def simulate_counts(
    rng: np.random.Generator, types: Any, n_features: int, depth: Any, strength: float
) -> Any:
    """Draw counts (negative binomial); a tenth of the features differ in each type."""
    rate = rng.lognormal(0, 1.2, n_features) * np.exp(
        rng.normal(0, strength, (TYPES, n_features)) * (rng.random((TYPES, n_features)) < 0.1)
    )
    rate /= rate.sum(axis=1, keepdims=True)
    blocks = np.array_split(np.arange(types.size), max(types.size // 1000, 1))
    mean = (rate[types[rows]] * depth[rows, None] for rows in blocks)
    return np.vstack([rng.poisson(rng.gamma(2, m / 2)).astype(np.float32) for m in mean])


def fold(views: list[Any], ids: list[Any], scale: str) -> tuple[Any, float]:
    """Fold views of some cells; return the clusters by cell, and seconds."""
    model, start = ViewFold(TYPES, scale=scale, random_state=0), time.perf_counter()
    for name, X, rows in zip(("genes", "proteins"), views, ids, strict=True):
        model.partial_fit(X, ids=rows, view=name)
    seconds = time.perf_counter() - start
    return model.to_frame()["cluster"].sort_index().to_numpy(), seconds


def share_explained(values: Any, labels: Any) -> float:
    groups = pd.Series(values).groupby(labels)
    return float(groups.transform("mean").var() / np.var(values, ddof=1))


def by_hand(genes: Any, proteins: Any) -> list[Any]:
    total = genes.sum(axis=1, keepdims=True)
    logs, ratios = np.log1p(genes * (total.mean() / total)), np.log1p(proteins)
    scores = PCA(30, random_state=0).fit_transform(logs)
    return [scores, ratios - ratios.mean(axis=1, keepdims=True)]


def run(n: int, seed: int, strength: float) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    types = rng.choice(TYPES, n, p=rng.dirichlet(np.full(TYPES, 5.0)))
    depth = 2000 * rng.lognormal(0, 0.6, n)
    views = [
        simulate_counts(rng, types, 2000, depth, strength),
        simulate_counts(rng, types, 200, 0.5 * depth * rng.lognormal(0, 0.2, n), strength),
    ]
    which = rng.random(n)
    ids = [np.flatnonzero(which < 0.75), np.flatnonzero((which < 0.5) | (which >= 0.75))]
    views = [X[rows] for X, rows in zip(views, ids, strict=True)]
    found = []
    for how, given, scale in (
        ("raw counts", views, "auto"),
        ("raw counts, z-score", views, "zscore"),
        ("normalised by hand", by_hand(*views), "auto"),
    ):
        labels, seconds = fold(given, ids, scale)
        both = which < 0.5
        found.append(
            {
                "": how,
                "NMI": normalized_mutual_info_score(types, labels),
                "NMI of cells with both": normalized_mutual_info_score(types[both], labels[both]),
                "depth explained": share_explained(np.log(depth), labels),
                "seconds": seconds,
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--cells", type=int, default=30_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--strength", type=float, default=0.8, help="How far types differ.")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    rows = [row for s in range(asked.seeds) for row in run(asked.cells, s, asked.strength)]
    print(pd.DataFrame(rows).groupby("", sort=False).mean().round(3).to_string())


if __name__ == "__main__":
    main()
