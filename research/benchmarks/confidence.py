"""How far confidence can be trusted: tables for docs/method.md.

    python research/benchmarks/confidence.py --data DIR [--sets NAME …] [--draws 2]

A sample is right if its cluster, matched with the classes by the Hungarian method, is its class.
Samples are put into ten bins of equal size by their confidence. The expected calibration error
(ECE) is the mean, over samples, of the difference between the mean confidence of their bin and the
share of it that is right. Labels are those of ViewFold with its defaults; nothing is missing, or
30 % by the paper's rule, drawn twice.

``left out`` is the ECE with the constant `CAUTION` that is best for all other sets. ``chance`` is
what the ECE would be if samples were right with exactly the told probability. ``ratio`` is that of
the former confidence, 1 − d₁ / d₂ of the distances to the nearest centres.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from threadpoolctl import threadpool_limits

from quality import sets
from quality.study import markdown
from viewfold import ViewFold, missing
from viewfold._util import constants
from viewfold.metrics import accuracy
from viewfold_research._linalg import unit_rows

CAUTIONS = (4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0)
"""The values of `CAUTION` to choose from."""

SAME = 0.8
"""Below this accuracy, classes are something else than clusters."""


def right(y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return whose cluster is their class."""
    table = np.zeros((labels.max() + 1, y.max() + 1))
    np.add.at(table, (labels, y), 1)
    rows, columns = linear_sum_assignment(table, maximize=True)
    match = np.full(len(table), -1)
    match[rows] = columns
    return np.asarray(match[labels] == y)


def ece(confidence: np.ndarray, hit: np.ndarray) -> float:
    """Return the expected calibration error, in ten bins of equal size."""
    bins = np.array_split(np.argsort(confidence, kind="stable"), 10)
    apart = [len(b) * abs(confidence[b].mean() - hit[b].mean()) for b in bins if len(b)]
    return float(sum(apart) / len(hit))


def ratio(model: ViewFold) -> np.ndarray:
    """Return what was told before: one minus the nearest distance over the next."""
    state = model._state
    clusters = state.clusters
    assert clusters is not None
    rows = unit_rows(state.embedding[:, : len(clusters.projection)]) @ clusters.projection
    apart = np.linalg.norm(rows[:, None] - clusters.centers.sum(axis=0), axis=2)
    first, second = np.partition(apart, 1, axis=1)[:, :2].T
    return np.asarray(1 - first / np.maximum(second, 1e-12))


def measured(data: sets.DataSet, gone: np.ndarray) -> dict[str, Any]:
    """Return accuracy and calibration errors on one set and mask."""
    model = ViewFold(data.k, random_state=0).fit(missing.by_mask(data.views, gone))
    y, frame = data.y[model.ids_], model.to_frame()
    hit, told = right(y, frame["cluster"].to_numpy()), frame["confidence"].to_numpy()
    random = np.random.default_rng(0)
    chance = [ece(told, random.random(told.size) < told) for _ in range(20)]
    others, kept = [], constants.CAUTION
    for constants.CAUTION in CAUTIONS:  # read when it is used
        others.append(ece(model.to_frame()["confidence"].to_numpy(), hit))
    constants.CAUTION = kept
    return {
        "accuracy": accuracy(y, frame["cluster"].to_numpy()),
        "told": told.mean(),
        "ece": ece(told, hit),
        "chance": np.mean(chance),
        "ratio": ece(ratio(model), hit),
        "others": np.array(others),
    }


def left_out(found: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """Return the error of each set with the constant that is best for the others."""
    table = {name: np.mean([one["others"] for one in runs], axis=0) for name, runs in found.items()}
    chosen = {}
    for name in table:
        others = [errors for other, errors in table.items() if other != name]
        chosen[name] = table[name][np.mean(others, axis=0).argmin()] if others else np.nan
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of .npz files")
    parser.add_argument("--sets", nargs="+", default=sets.SETS, help="all nineteen if not given")
    parser.add_argument("--draws", type=int, default=2, help="of missing samples")
    asked = parser.parse_args()
    masks = [(0.0, 0), *((0.3, draw) for draw in range(asked.draws))]
    found: dict[str, list[dict[str, Any]]] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # views without common samples
        for name in asked.sets:
            data = sets.load(asked.data, name)
            found[name] = [measured(data, sets.mask(data, *mask)) for mask in masks]
    show(found)


def show(found: dict[str, list[dict[str, Any]]]) -> None:
    """Print the table, and what sets whose clusters are not the classes have to do with it."""
    names = ("accuracy", "told", "ece", "chance", "ratio")
    chosen = left_out(found)
    means = {name: [np.mean([one[n] for one in runs]) for n in names] + [chosen[name]]
             for name, runs in found.items()}  # fmt: skip
    total = np.array(list(means.values()))
    same = total[:, 0] >= SAME
    rows = [[name, *(f"{value:.3f}" for value in row)] for name, row in means.items()]
    for what, which in (
        ("mean", slice(None)),
        (f"mean, accuracy ≥ {SAME}", same),
        (f"mean, accuracy < {SAME}", ~same),
    ):
        if total[which].size:
            rows.append([what, *(f"{value:.3f}" for value in total[which].mean(axis=0))])
    markdown(["data set", "accuracy", "told", "ECE", "chance", "ratio", "left out"], rows)
    share = total[~same, 2].sum() / total[:, 2].sum()
    print(f"\n{share:.0%} of the mean ECE are from the {(~same).sum()} sets below {SAME}.")


if __name__ == "__main__":
    main()
