"""Does the order of views matter, and do labels that hang on one view tell? For docs/explain.md.

    python research/benchmarks/order.py --data DIR [--sets NAME …] [--orders 5]

30 % of the samples are missing from each view by the paper's rule. Views are folded in several
random orders. ``AMI`` is the mean adjusted mutual information of the labels of two orders,
``hang`` the share of labels that hang on one view, of samples with two or more. ``hanging`` and
``others`` are the shares of labels that hang and of the others that are in another cluster in
another order. The second table has the calibration error (ECE) and the area under the ROC curve of
confidence against right and wrong labels, for factors of the confidence of labels that hang.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import permutations
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_mutual_info_score, roc_auc_score

from confidence import ece, right
from quality import sets
from quality.study import markdown
from viewfold import ViewFold, missing
from viewfold._util import constants

SETS = ("uci-digit", "msrc-v5", "bbc-4view", "tcga-breast", "yale-3view", "orl-4views")
FACTORS = (1.0, 0.95, 0.9, 0.8)


def in_another(labels: np.ndarray, other: np.ndarray, k: int) -> np.ndarray:
    """Return whose cluster is another one, once clusters are matched."""
    together = np.zeros((k, k))
    np.add.at(together, (labels, other), 1)
    return np.asarray(linear_sum_assignment(together, maximize=True)[1][labels] != other)


def measured(data: sets.DataSet, orders: int) -> tuple[list[float], np.ndarray]:
    """Return the numbers of both tables for one set."""
    views = missing.by_mask(data.views, sets.mask(data, 0.3, 0))
    random, frames, scores = np.random.default_rng(0), [], []
    for _ in range(orders):
        order = random.permutation(len(views))
        model = ViewFold(data.k, random_state=0).fit([views[i] for i in order])
        frames.append(model.to_frame().sort_index())
        hit = right(data.y[frames[-1].index], frames[-1]["cluster"].to_numpy())
        kept, found = constants.HANGING, []
        for constants.HANGING in FACTORS:  # read when it is used
            told = model.to_frame().sort_index()["confidence"].to_numpy()
            found.append([ece(told, hit), roc_auc_score(hit, told)])
        constants.HANGING = kept
        scores.append(found)
    labels = [one["cluster"].to_numpy() for one in frames]
    hangs = [one["hangs_on"].notna().to_numpy() for one in frames]
    pairs = list(permutations(range(orders), 2))
    moved = [in_another(labels[a], labels[b], data.k) for a, b in pairs]
    which = [hangs[a] for a, _ in pairs]
    row = [
        np.mean([adjusted_mutual_info_score(labels[a], labels[b]) for a, b in pairs if a < b]),
        np.mean([h[one["views_seen"] > 1].mean() for h, one in zip(hangs, frames, strict=True)]),
        np.concatenate([m[h] for m, h in zip(moved, which, strict=True)]).mean(),
        np.concatenate([m[~h] for m, h in zip(moved, which, strict=True)]).mean(),
    ]
    return [float(one) for one in row], np.mean(scores, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of .npz files")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--orders", type=int, default=5)
    asked = parser.parse_args()
    rows, tables = [], []
    with warnings.catch_warnings(action="ignore"):  # views without common samples
        for name in asked.sets:
            data = sets.load(asked.data, name)
            row, scores = measured(data, asked.orders)
            rows.append([name, str(len(data.views)), *(f"{one:.3f}" for one in row)])
            tables.append(scores)
    markdown(["data set", "views", "AMI", "hang", "hanging", "others"], rows)
    print()
    means = np.mean(tables, axis=0)
    told = zip(FACTORS, means, strict=True)
    markdown(["factor", "ECE", "AUROC"], [[f"{f:g}", f"{e:.4f}", f"{a:.4f}"] for f, (e, a) in told])


if __name__ == "__main__":
    main()
