"""Figures of a model: samples and clusters, views, and how labels went from fold to fold."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from viewfold._util.types import Array
from viewfold.app.words import counted
from viewfold.explain.events import opening_step
from viewfold.plot._style import (
    MANY,
    annotate,
    axes_or_new,
    cluster_axis,
    cluster_colour,
    darker,
    figure,
    mark,
    tag_cluster,
    text_colour,
)
from viewfold.rows import LocalEngine
from viewfold.rows.linalg import unit_rows
from viewfold.state.hashes import draw
from viewfold.state.names import Transfers
from viewfold.web.layout import LAID_OUT, tsne
from viewfold.web.words import GREY, counted_sample, label_cluster, short, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from viewfold.estimators import FoldingEstimator


MOST_SAMPLES = LAID_OUT  # how many samples the map shows at most; it takes three seconds or so


@figure
def sample_map(
    model: FoldingEstimator, ax: Axes | None = None, *, most: int = MOST_SAMPLES
) -> Axes:
    """Draw a map on which samples with similar rows of the consensus are neighbours.

    The map is a t-SNE of the consensus that knows nothing of the clusters: where they look apart,
    they are. It keeps neighbours together; distances between groups and their areas mean little. Of
    more than `most` samples, so many are drawn at random: always the same ones.

    Examples
    --------
    {model}
    >>> ax = plot.sample_map(model)
    >>> ax.figure.savefig("map.svg")  # doctest: +SKIP
    >>> ax.get_xlabel()
    '60 samples'
    """
    model = model._snapshot()
    drawn = draw(LocalEngine(), model.ids_, most, seed=0, purpose="plot")
    rows = unit_rows(model.embedding_[drawn].astype(np.float64))
    place, labels = tsne(rows), model.labels_[drawn]
    ax = axes_or_new(ax, (7, 6))
    present = np.unique(labels)
    for c in present:
        points = place[labels == c]
        ax.plot(*points.T, linestyle="none", label=f"cluster {c}", gid=f"cluster{c}.points")
        ax.lines[-1].set(**mark(c, 4 if len(drawn) > 300 else 6))
    for c in present:
        points = place[labels == c]
        # A mean may lie in the middle of others; the point next to the median does not.
        middle = points[np.argmin(((points - np.median(points, axis=0)) ** 2).sum(axis=1))]
        tag_cluster(ax, middle, int(c), len(present) > MANY, model.cluster_names_)
    ax.set(xticks=[], yticks=[], xlabel=counted_sample(len(drawn), model.ids_.size))
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[:].set_visible(False)
    return ax


@figure
def cluster_sizes(model: FoldingEstimator, ax: Axes | None = None) -> Axes:
    """Draw how many samples each cluster has.

    Examples
    --------
    {model}
    >>> ax = plot.cluster_sizes(model)
    >>> int(sum(bar.get_height() for bar in ax.patches))
    60
    """
    model = model._snapshot()
    sizes = np.bincount(model.labels_, minlength=len(model.cluster_centers_))
    ax = axes_or_new(ax, (6, 4))
    for c, size in enumerate(sizes):
        (bar,) = ax.bar(
            c, size, width=0.75, color=cluster_colour(c), edgecolor=darker(cluster_colour(c))
        )
        bar.set(gid=f"cluster{c}.size", linewidth=0.6 if len(sizes) <= MANY else 0)
        if len(sizes) <= 20:
            angle = 90 if len(sizes) > 12 else 0
            above: dict[str, Any] = {"ha": "center", "va": "bottom", "rotation": angle}
            annotate(ax, (c, size), short(size), offset=(0, 3), **above)
    ax.margins(y=0.16 if 12 < len(sizes) <= 20 else 0.1)
    ax.set_ylabel("samples")
    ax.yaxis.set_major_formatter(lambda value, _: short(value))
    cluster_axis(ax, len(sizes), model.cluster_names_)
    return ax


@figure
def confidence(model: FoldingEstimator, ax: Axes | None = None) -> Axes:
    """Draw how clear the clusters of the samples are.

    Confidence is the probability that a sample is in the right cluster, see `to_frame`. Of each
    cluster, the thin line holds nine samples out of ten, the thick one the middle half, and the
    mark is the median.

    Examples
    --------
    {model}
    >>> plot.confidence(model).get_ylabel()
    'confidence'
    """
    model = model._snapshot()
    frame, n_clusters = model.to_frame(), len(model.cluster_centers_)
    ax = axes_or_new(ax, (6, 4))
    thick = 7 if n_clusters <= MANY else 2.5
    for c, own in frame.groupby("cluster")["confidence"]:
        low, first, middle, third, high = own.quantile([0.05, 0.25, 0.5, 0.75, 0.95])
        line: dict[str, Any] = {"color": cluster_colour(int(c)), "solid_capstyle": "butt"}
        ax.plot([c, c], [low, high], linewidth=thick / 4, gid=f"cluster{c}.most", **line)
        ax.plot([c, c], [first, third], linewidth=thick, gid=f"cluster{c}.half", **line)
        ax.plot(c, middle, gid=f"cluster{c}.median")
        hollow = {"markerfacecolor": ax.get_facecolor(), "markeredgewidth": 1, "clip_on": False}
        ax.lines[-1].set(**mark(int(c), thick + 1) | hollow)
    ax.set(ylim=(0, 1), ylabel="confidence")
    cluster_axis(ax, n_clusters, model.cluster_names_)
    return ax


PATTERNS = 20  # how many patterns of missing views are shown on their own


@figure
def views_seen(model: FoldingEstimator, ax: Axes | None = None) -> Axes:
    """Draw which views the samples are in: each combination, and how many samples have it.

    The Axes are divided into two: bars with the number of samples above, dots for the views that
    they are in below (``ax.child_axes``).

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import ViewFold, plot
    >>> rng = np.random.default_rng(0)
    >>> model = ViewFold(3, random_state=0).partial_fit(rng.normal(size=(60, 5)), ids=range(60))
    >>> model = model.partial_fit(rng.normal(size=(70, 4)), ids=range(30, 100))
    >>> bars, dots = plot.views_seen(model).child_axes
    >>> [int(bar.get_height()) for bar in bars.patches]
    [40, 30, 30]
    """
    model = model._snapshot()
    seen = model.seen_.to_numpy()
    patterns, counts = _patterns(seen)
    shown, rest = counts[:PATTERNS], counts[PATTERNS:]
    n_views = seen.shape[1]
    ax = axes_or_new(ax, (8, 2.6 + 0.24 * n_views))
    ax.set_axis_off()
    share = min(0.65, 0.15 + 0.05 * n_views)
    bars = ax.inset_axes((0.0, share + 0.02, 1.0, 0.98 - share))
    dots = ax.inset_axes((0.0, 0.0, 1.0, share), sharex=bars)
    bars.bar(np.arange(len(shown)), shown, color=text_colour(), alpha=0.8, width=0.7)
    for x, count in enumerate(shown):
        annotate(bars, (x, count), short(count), offset=(0, 2), ha="center", va="bottom")
    if rest.size:
        said = f"and {counted(rest.sum(), 'sample')} in {counted(rest.size, 'other combination')}"
        bars.text(1, 1, said, transform=bars.transAxes, ha="right", va="top", fontsize=9)
    bars.set(ylabel="samples", xlim=(-0.6, max(len(shown), 6) - 0.4))
    bars.margins(y=0.12)
    bars.tick_params(bottom=False, labelbottom=False)
    bars.yaxis.set_major_formatter(lambda value, _: short(value))
    bars.spines[["top", "right", "bottom"]].set_visible(False)
    _dots(dots, patterns[: len(shown)])
    of = [f"{shorten(r.name)} ({short(n)})" for r, n in zip(model.views_, seen.sum(0), strict=True)]
    dots.set_yticks(range(n_views), of, parse_math=False)
    return ax


@figure
def agreement(model: FoldingEstimator, ax: Axes | None = None) -> Axes:
    """Draw how much of each view the consensus before it explains; with `FCMVC` it is not known.

    Examples
    --------
    {model}
    >>> plot.agreement(model).texts[0].get_text()
    'first view: nothing to compare it with'
    """
    model = model._snapshot()
    ax = axes_or_new(ax, (6, 1.2 + 0.32 * len(model.views_)))
    for y, record in enumerate(model.views_):
        if record.agreement is None:
            said = "unknown" if y else "first view: nothing to compare it with"
            annotate(ax, (0, y), said, offset=(4, 0), ha="left", va="center")
            continue
        ax.barh(y, record.agreement, height=0.6, color=text_colour(), alpha=0.8)
        at = (record.agreement, y)
        annotate(ax, at, f"{record.agreement:.2f}", offset=(4, 0), ha="left", va="center")
    names = [shorten(record.name) for record in model.views_]
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.set(xlim=(0, 1.08), ylim=(len(names) - 0.4, -0.6), xlabel="agreement with earlier views")
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1])
    ax.tick_params(left=False)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_bounds(0, 1)
    return ax


def _patterns(seen: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return the combinations of views that samples are in, and how many have each, most first."""
    packed, counts = np.unique(np.packbits(seen, axis=1), axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return np.unpackbits(packed[order], axis=1, count=seen.shape[1]).astype(bool), counts[order]


def _dots(ax: Axes, patterns: NDArray[np.bool_]) -> None:
    """Draw a column of dots for each pattern, filled where samples are in the view."""
    n_views = patterns.shape[1]
    for v in range(0, n_views, 2):
        ax.axhspan(v - 0.5, v + 0.5, color=GREY, alpha=0.12, linewidth=0)
    for x, pattern in enumerate(patterns):
        there, not_there = np.flatnonzero(pattern), np.flatnonzero(~pattern)
        ax.plot([x, x], [there[0], there[-1]], color=text_colour(), linewidth=1.5)
        ax.plot(np.full(there.size, x), there, "o", color=text_colour(), markersize=6)
        ax.plot(np.full(not_there.size, x), not_there, "o", color=GREY, alpha=0.35, markersize=4)
    ax.set(ylim=(n_views - 0.5, -0.5))
    ax.tick_params(left=False, bottom=False, labelbottom=False)
    ax.spines[:].set_visible(False)


FLOWING = 12  # how many clusters are shown on their own where labels flow
THIN = 0.01  # ribbons of a smaller share of the samples are not drawn, unless all of them stayed
# Share of the height that is free below each cluster where labels flow: room for a number.
GAP = 0.023


@figure
def label_flow(model: FoldingEstimator, ax: Axes | None = None, *, all_steps: bool = False) -> Axes:
    """Draw how the labels of the samples flowed from cluster to cluster, fold by fold.

    A column of blocks is the clusters after a fold, and a ribbon the samples that went from one to
    another; both are as high as they have samples. If there are more than 12 clusters, the smaller
    ones are taken together. Ribbons of less than 1 % of the samples that moved are not drawn. It
    begins at the first step whose clusters last until the next (an adjusted mutual information of
    0.6), or with `all_steps` at the very first.

    Examples
    --------
    {model}
    >>> [name.get_text() for name in plot.label_flow(model).get_xticklabels()]
    ['view0', 'view1']
    """
    model = model._snapshot()
    names, states = _states(model)
    history = model.history_.to_numpy()
    pairs = [Transfers.of(before, after) for before, after in pairwise(history.T)]
    first = 0 if all_steps else opening_step(pairs)
    states = states[:, first:]
    ax = axes_or_new(ax, (9, 5.5))
    n, n_folds = states.shape
    counts = np.stack([np.bincount(fold, minlength=len(names)) for fold in states.T])
    gap = GAP * n / (1 - GAP * len(names))
    top = np.cumsum(counts, axis=1) - counts + gap * np.arange(len(names))
    for fold in range(n_folds):
        # What clusters are called today is written where they are those of today.
        last = fold == n_folds - 1
        today = model.cluster_names_ if last else {}
        titles = [name if isinstance(name, str) else label_cluster(name, today) for name in names]
        _blocks(ax, fold, (names, titles), counts[fold], top[fold], ends=(fold == 0, last))
    n_thin, unseen = 0, len(names) - 1
    for fold, (before, after) in enumerate(pairwise(states.T)):
        flow = np.bincount(before * len(names) + after, minlength=len(names) ** 2)
        flow = flow.reshape(len(names), len(names))
        # Ribbons leave a block in the order of where they go, and so they cross least.
        start = top[fold][:, None] + np.cumsum(flow, axis=1) - flow
        stop = top[fold + 1] + np.cumsum(flow, axis=0) - flow
        for a, b in np.argwhere(flow):
            if a != b and flow[a, b] < THIN * n:
                n_thin += int(flow[a, b]) * (a != unseen)
                continue
            ends = (float(start[a, b]), float(stop[a, b]))
            _ribbon(ax, fold, ends, float(flow[a, b]), (names[a], names[b]))
    ax.set(xlim=(-0.35, n_folds - 0.65), ylim=(n + gap * len(names), -gap), yticks=[])
    rotated: dict[str, Any] = {"rotation": 30, "ha": "right"} if n_folds > 7 else {}
    steps = [shorten(name, 16) for name in model.history_][first:]
    ax.set_xticks(range(n_folds), steps, parse_math=False, **rotated)
    title = "clusters after each step" + (f", without the first {first}" if first else "")
    thin = f"\n{counted(n_thin, 'move')} in ribbons of less than 1 % are not drawn"
    ax.set_xlabel(title + thin * bool(n_thin))
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
