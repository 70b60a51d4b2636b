"""Draw docs/figures/tumours.svg: what becomes of 220 tumours, 70 of which lack a view.

Every row is a way to cluster, every column a tumour, and the colour its cluster. Run it where the
set is: `VIEWFOLD_DATA=FOLDER python docs/make_tumours.py`.
"""

from __future__ import annotations

from itertools import groupby, permutations
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans

from viewfold import FCMVC, ViewFold, metrics
from viewfold.plot import COLOURS
from viewfold_research import datasets

INK, SOFT, PALE = "#1f2933", "#66727f", "#e6eaee"
STARTS = 10  # numbers are means over so many seeds, colours those of the first
SUBTYPES = ["Basal", "HER2-enriched", "Luminal A"]


def scaled(X: np.ndarray) -> np.ndarray:
    """Standardise features by the rows that are there."""
    X = X.astype(float)
    return (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)


def ways(views: dict[str, np.ndarray], seed: int) -> dict[tuple[str, str], np.ndarray]:
    """Return clusters by the name of a method and what it does about gaps; -1 is no cluster."""

    def k_means(X: np.ndarray) -> np.ndarray:
        return KMeans(3, n_init=10, random_state=seed).fit_predict(X)

    raw = np.hstack([np.nan_to_num(X.astype(float)) for X in views.values()])
    even = np.hstack([scaled(X) for X in views.values()])
    complete = ~np.isnan(even).any(axis=1)
    part = np.full(len(even), -1)
    part[complete] = k_means(even[complete])
    return {
        ("ViewFold", "gaps stay gaps"): ViewFold(3, random_state=seed).fit_predict(views),
        ("k-means", "zeros for gaps"): k_means(raw),
        ("k-means", "scaled, means for gaps"): k_means(np.nan_to_num(even)),
        ("k-means", "complete tumours only"): part,
        ("FCMVC-IV", "gaps stay gaps"): FCMVC(3, random_state=seed).fit_predict(views),
    }


def as_subtypes(target: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Give clusters the numbers of the subtypes that they fit best, together."""
    there = labels >= 0
    counts = np.zeros((3, 3))
    np.add.at(counts, (labels[there], target[there]), 1)
    rows, columns = linear_sum_assignment(-counts)
    return np.where(there, columns[np.argsort(rows)][labels], -1)


def strip(ax: Any, y: float, height: float, colours: list[str]) -> None:
    """Draw a row of tumours; neighbours of one colour are one piece."""
    start = 0
    for colour, run in groupby(colours):
        n = len(list(run))
        ax.broken_barh([(start, n)], (y, height), facecolors=colour, linewidth=0)
        start += n


def main(path: Path) -> None:
    """Draw the figure."""
    plt.rcParams.update({"font.family": "DejaVu Sans", "svg.hashsalt": "tumours"})
    tumours = datasets.fetch("tcga-breast")
    target, lacks = tumours.target, np.isnan(tumours.views["protein"]).all(axis=1)
    order = np.lexsort([lacks, target])
    colour = dict(enumerate([COLOURS[5], COLOURS[1], COLOURS[0]])) | {-1: PALE}

    fig = plt.figure(figsize=(7.6, 4.75))
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(-88, 262), ylim=(10.55, -2.6))
    ax.axis("off")
    card = FancyBboxPatch((-84, -2.35), 342, 12.65, boxstyle="round,pad=0,rounding_size=5")
    card.set(facecolor="white", edgecolor="#d5dbe1", linewidth=1, mutation_aspect=0.045, zorder=0)
    ax.add_patch(card)
    words = {"va": "center", "color": INK}
    ax.text(
        -78,
        -1.62,
        "220 breast tumours, 70 without the protein view",
        size=13.5,
        weight="bold",
        **words,
    )

    ends = np.append(np.flatnonzero(np.diff(target[order])) + 1, len(target))
    for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        ax.text(
            (start + end) / 2,
            -0.52,
            SUBTYPES[number],
            size=11,
            ha="center",
            va="center",
            color=colour[number],
            weight="bold",
        )
    ax.text(-78, 0.3, "known subtype", size=11, **words)
    strip(ax, 0, 0.6, [colour[c] for c in target[order]])
    ax.text(-78, 1.15, "protein view", size=11, **words)
    strip(ax, 0.85, 0.6, [PALE if gone else "#8b98a5" for gone in lacks[order]])
    ax.text(224, 1.15, "70 gaps", size=11, **words)

    runs = [ways(tumours.views, seed) for seed in range(STARTS)]
    for row, (title, what) in enumerate(runs[0]):
        y, first = 2.25 + 1.62 * row, row == 0
        found = [as_subtypes(target, run[title, what]) for run in runs]
        right = 100 * np.mean([one == target for one in found])
        weight = "bold" if first else "normal"
        ax.text(-78, y + 0.3, title, size=12.5, weight=weight, **words)
        ax.text(-78, y + 0.86, what, size=9.5, va="center", color=SOFT)
        strip(ax, y, 1.12, [colour[c] for c in found[0][order]])
        ax.text(224, y + 0.38, f"{right:.0f} %", size=17 if first else 13.5, weight=weight, **words)
        if first:
            ax.text(224, y + 1.04, "right", size=9.5, va="center", color=SOFT)
        told = [metrics.nmi(target[one >= 0], one[one >= 0]) for one in found]
        print(f"{title}, {what}: {right:.1f}, NMI {100 * np.mean(told):.1f}")
    fig.savefig(path, transparent=True, metadata={"Date": None})


def tell_orders() -> None:
    """Print the share of tumours in the right cluster, over all orders of the views."""
    tumours = datasets.fetch("tcga-breast")
    for method in (ViewFold, FCMVC):
        means = []
        for names in permutations(tumours.views):
            views = {name: tumours.views[name] for name in names}
            runs = [method(3, random_state=seed).fit_predict(views) for seed in range(STARTS)]
            means.append(np.mean([metrics.accuracy(tumours.target, run) for run in runs]))
        print(f"{method.__name__}, six orders: {100 * min(means):.1f} to {100 * max(means):.1f}")


if __name__ == "__main__":
    tell_orders()
    main(Path(__file__).parent / "figures" / "tumours.svg")
