"""The figure of labels over time: how samples went from cluster to cluster, fold by fold."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from viewfold._util.types import Array
from viewfold.plot._docs import figure
from viewfold.plot._style import annotate, axes_or_new, cluster_colour
from viewfold.web.words import called, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from viewfold.estimators import FoldingEstimator

FLOWING = 12
"""How many clusters are shown on their own where labels flow."""
GAP = 0.023
"""Share of the height that is free below each cluster where labels flow: room for a number."""


@figure
def label_flow(model: FoldingEstimator, ax: Axes | None = None) -> Axes:
    """Draw how the labels of the samples flowed from cluster to cluster, fold by fold.

    {model_and_ax}

    {axes}

    Notes
    -----
    A column of blocks is the clusters after a fold, and a ribbon the samples that went from one to
    another; both are as high as they have samples. If there are more than 12 clusters, the smaller
    ones are taken together.

    Examples
    --------
    {model}
    >>> [name.get_text() for name in plot.label_flow(model).get_xticklabels()]
    ['view0', 'view1']
    """
    model = model._snapshot()
    names, states = _states(model)
    ax = axes_or_new(ax, (9, 5.5))
    n, n_folds = states.shape
    counts = np.stack([np.bincount(fold, minlength=len(names)) for fold in states.T])
    gap = GAP * n / (1 - GAP * len(names))
    top = np.cumsum(counts, axis=1) - counts + gap * np.arange(len(names))
    for fold in range(n_folds):
        # What clusters are called today is written where they are those of today.
        last = fold == n_folds - 1
        today = model.cluster_names_ if last else {}
        titles = [name if isinstance(name, str) else called(name, today) for name in names]
        _blocks(ax, fold, (names, titles), counts[fold], top[fold], ends=(fold == 0, last))
    for fold, (before, after) in enumerate(pairwise(states.T)):
        flow = np.bincount(before * len(names) + after, minlength=len(names) ** 2)
        flow = flow.reshape(len(names), len(names))
        # Ribbons leave a block in the order of where they go, and so they cross least.
        start = top[fold][:, None] + np.cumsum(flow, axis=1) - flow
        stop = top[fold + 1] + np.cumsum(flow, axis=0) - flow
        for a, b in np.argwhere(flow):
            ends = (float(start[a, b]), float(stop[a, b]))
            _ribbon(ax, fold, ends, float(flow[a, b]), (names[a], names[b]))
    ax.set(xlim=(-0.35, n_folds - 0.65), ylim=(n + gap * len(names), -gap), yticks=[])
    rotated: dict[str, Any] = {"rotation": 30, "ha": "right"} if n_folds > 7 else {}
    steps = [shorten(name, 16) for name in model.history_]
    ax.set_xticks(range(n_folds), steps, parse_math=False, **rotated)
    ax.set_xlabel("clusters after each step")
    ax.tick_params(bottom=False)
    ax.spines[:].set_visible(False)
    return ax


def _states(model: FoldingEstimator) -> tuple[list[int | str], NDArray[np.intp]]:
    """Return the names of what samples can be in, and where in that list each is after each fold.

    The names are the numbers of the largest clusters, then "others", then "not seen yet".
    """
    history = model.history_.to_numpy()
    # There may have been more clusters at an earlier fold.
    n_clusters = max(len(model.cluster_centers_), int(history.max()) + 1)
    sizes = np.bincount(model.labels_, minlength=n_clusters)
    largest = np.sort(np.argsort(-sizes, kind="stable")[:FLOWING])
    names: list[int | str] = [int(c) for c in largest]
    if len(largest) < n_clusters:
        names.append(f"{n_clusters - len(largest)} others")
    place = np.full(n_clusters + 1, len(largest), np.intp)
    place[largest] = np.arange(len(largest))
    place[-1] = len(names)  # −1, the last one, is a sample that was not seen yet
    return [*names, "not seen yet"], place[history]


def _blocks(
    ax: Axes,
    fold: int,
    names: tuple[list[int | str], list[str]],
    counts: NDArray[np.intp],
    top: Array,
    ends: tuple[bool, bool],
) -> None:
    """Draw the clusters after a fold, one above the other, what they are called at both ends."""
    from matplotlib.patches import Rectangle

    for name, title, count, y in zip(*names, counts, top, strict=True):
        if not count:
            continue
        colour = cluster_colour(name)
        block = Rectangle((fold - 0.06, y), 0.12, count, color=colour, linewidth=0)
        block.set(gid=f"{_key(name)}.after{fold}", in_layout=False)
        ax.add_artist(block)
        for end, side, ha in zip(ends, (-1, 1), ("right", "left"), strict=True):
            if end:
                at = (fold + 0.06 * side, y + count / 2)
                annotate(ax, at, title, offset=(4 * side, 0), ha=ha, va="center", size=7)


def _ribbon(
    ax: Axes, fold: int, ends: tuple[float, float], count: float, names: tuple[int | str, int | str]
) -> None:
    """Draw the samples that went from one block to another: those that moved stand out."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    left, middle, right = fold + 0.06, fold + 0.5, fold + 0.94
    start, stop = ends
    upper = [(left, start), (middle, start), (middle, stop), (right, stop)]
    lower = [(x, y + count) for x, y in reversed(upper)]
    curve = [Path.CURVE4] * 3
    codes = [Path.MOVETO, *curve, Path.LINETO, *curve, Path.CLOSEPOLY]
    before, after = names
    colour = cluster_colour(before)
    moved = before != after and isinstance(before, int)
    ribbon = PathPatch(Path([*upper, *lower, (left, start)], codes), facecolor=colour)
    ribbon.set(alpha=0.8 if moved else 0.3, edgecolor=colour, linewidth=0.4 if moved else 0)
    ribbon.set(gid=f"{_key(before)}.{_key(after)}.fold{fold + 1}", in_layout=False)
    ax.add_artist(ribbon)


def _key(name: int | str) -> str:
    """Return what a cluster is called among the ids of an SVG."""
    return f"cluster{name}" if isinstance(name, int) else name.split()[-1]
