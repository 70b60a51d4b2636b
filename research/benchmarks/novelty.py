"""How well novelty tells unlike rows from known ones: tables for docs/explain.md.

    python research/benchmarks/novelty.py --data DIR [--sets NAME …] [--seeds 1]
    python research/benchmarks/novelty.py --worlds 20

With sets: each dense view is folded without a fifth of its samples. The area under the ROC curve
(AUC) compares the novelty of these with that of as many rows of several kinds: ``shuffled`` (each
column permuted by itself), ``noise`` (normal, with the columns' means and spreads), ``apart``
(known rows, each moved by one spread in all columns on average), ``shifted`` (all moved alike, by
three spreads), ``group`` (a tight group off the data), and ``class`` (the samples of a class that
was left out, for up to three classes). ``above 0.9`` and ``above 0.99`` are shares of known rows.

With worlds: how often a planted group is told of, and how often none was there. A world has five
clusters in three tables of 8, 10 and 6 columns, each blind to one distinction.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from quality import sets
from quality.study import markdown
from viewfold import ViewFold, inspect_views

KINDS = ("shuffled", "noise", "apart", "shifted", "group", "class")
MOST = 6000
"""Samples of a view that are used at most."""


def dense_views(folder: Path, names: list[str]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the dense views of sets, with the classes of their samples."""
    for name in names:
        data = sets.load(folder, name)
        for i, X in enumerate(data.views):
            here = np.flatnonzero(~data.absent[:, i])
            here = np.random.default_rng(0).permutation(here)[:MOST]
            if sparse.issparse(X):
                continue
            if inspect_views(np.asarray(X[here[:1000]], float))[0].scale in ("zscore", "center"):
                yield f"{name} {i}", np.asarray(X[here], float), data.y[here]


def unlike(X: np.ndarray, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return rows of several kinds that are unlike those of X."""
    mean, spread, d = X.mean(axis=0), X.std(axis=0), X.shape[1]
    some = X[rng.integers(len(X), size=n)]
    way = rng.normal(size=(n, d))
    way *= np.sqrt(d) / np.linalg.norm(way, axis=1, keepdims=True)
    return {
        "shuffled": np.column_stack([rng.choice(column, n) for column in X.T]),
        "noise": mean + spread * rng.normal(size=(n, d)),
        "apart": some + spread * way,
        "shifted": some + 3 * spread * rng.choice([-1, 1], size=d),
        "group": mean + spread * rng.normal(size=d) + 0.3 * (some - mean),
    }


def novelty(model: ViewFold, rows: np.ndarray) -> np.ndarray:
    return model.predict_frame(rows, view="view")["novelty"].to_numpy()


def area(known: np.ndarray, other: np.ndarray) -> float:
    truth = np.repeat([0, 1], [len(known), len(other)])
    return float(roc_auc_score(truth, np.append(known, other)))


def measured(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, float]:
    """Return the AUC of each kind on one view."""
    rng = np.random.default_rng(seed)

    def taught(which: np.ndarray) -> tuple[ViewFold, np.ndarray, np.ndarray]:
        which = rng.permutation(which)
        held, rest = which[: len(which) // 5], which[len(which) // 5 :]
        model = ViewFold(3, n_init=1, random_state=seed).partial_fit(X[rest], view="view")
        return model, X[rest], novelty(model, X[held])

    model, rows, known = taught(np.arange(len(X)))
    others = unlike(rows, max(len(known), 50), rng)
    found = {kind: area(known, novelty(model, some)) for kind, some in others.items()}
    areas = []
    for c in rng.permutation(np.unique(y))[:3]:
        if np.sum(y == c) >= 5 and np.sum(y != c) >= 60:
            model, _, here = taught(np.flatnonzero(y != c))
            areas.append(area(here, novelty(model, X[y == c])))
    found["class"] = float(np.mean(areas)) if areas else np.nan
    return found | {"above 0.9": np.mean(known > 0.9), "above 0.99": np.mean(known > 0.99)}


def world(seed: int, share: float, apart: float, nights: int) -> bool:
    """Tell whether a group is told of, if it is this share of 1,200 samples; 150 others come."""
    rng, k, n = np.random.default_rng(seed), 5, 1200
    centers = [apart / np.sqrt(2) * rng.normal(size=(k + 1, d)) for d in (8, 10, 6)]
    for i, of_table in enumerate(centers):
        of_table[i] = of_table[i + 1]
    mixed = [np.eye(c.shape[1]) + 0.3 * rng.normal(size=(c.shape[1],) * 2) for c in centers]
    model = ViewFold(k, n_init=3, random_state=seed)

    def deliver(y: np.ndarray, name: str) -> None:
        for i, (of_table, mix) in enumerate(zip(centers, mixed, strict=True)):
            rows = of_table[y] + rng.normal(size=(len(y), len(mix))) @ mix
            frame = pd.DataFrame(rows, [f"{name} {j}" for j in range(len(y))])
            model.partial_fit(frame.add_prefix("c"), view=f"table {i}")

    deliver(rng.integers(k, size=n), "first")
    for night in range(nights):
        few = np.full(round(share * n / nights), k)
        deliver(np.append(rng.integers(k, size=150 // nights), few), f"night {night}")
    return bool(model.log_["n_novel"].notna().any())


def planted(n_worlds: int) -> None:
    """Print in how many worlds a group was told of."""
    rows = []
    for apart in (2.2, 1.5):
        for share, nights in ((0.0, 1), (0.03, 1), (0.03, 3), (0.05, 1)):
            told = sum(world(seed, share, apart, nights) for seed in range(n_worlds))
            rows.append([f"{apart}", f"{100 * share:.0f} %", str(nights), f"{told} of {n_worlds}"])
    markdown(["centres apart", "group", "nights", "told of"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of .npz files")
    parser.add_argument("--sets", nargs="+", default=[*sets.SETS, sets.LARGE])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--worlds", type=int, default=0, help="how many to plant groups in")
    asked = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if asked.worlds:
            planted(asked.worlds)
        if asked.data is None:
            return
        table: dict[str, list[dict[str, Any]]] = {}
        for name, X, y in dense_views(asked.data, asked.sets):
            runs = [measured(X, y, seed) for seed in range(asked.seeds)]
            table.setdefault(name.rsplit(" ", 1)[0], []).extend(runs)
    names = [*KINDS, "above 0.9", "above 0.99"]
    means = {
        name: [np.nanmean([run[kind] for run in runs]) for kind in names]
        for name, runs in table.items()
    }
    every = [[run[kind] for kind in names] for runs in table.values() for run in runs]
    means["mean of all views"] = list(np.nanmean(every, axis=0))
    markdown(
        ["data set", *names],
        [[name, *(f"{value:.3f}" for value in row)] for name, row in means.items()],
    )


if __name__ == "__main__":
    main()
