"""Figures of a fitted model: a map, sizes, confidence, views, how labels flowed.

Every function draws with matplotlib, into `ax` if given, and returns the Axes. A notebook shows the
figure by itself; ``ax.figure.savefig("map.svg")`` (or ``"map.png"``) saves it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold._types import Array
from viewfold.core.sampling import draw
from viewfold.engine import LocalEngine, all_on_one_thread
from viewfold.linalg import unit_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from viewfold.estimators import FoldingEstimator

# Okabe and Ito's colours, which colour-blind people can tell apart, with violet in place of yellow
# and black, which vanish on light or dark paper. Seven colours and eight shapes have no common
# divisor: clusters next to each other differ in both, and the first 56 pairs are all different.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8250df")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GREY = "#8a919c"
"""Whatever is not one cluster: samples not seen yet, clusters taken together."""

MOST_SAMPLES = 2000
"""How many samples the map shows at most; it takes three seconds or so."""

PATTERNS = 20
"""How many patterns of missing views are shown on their own."""

FLOWING = 12
"""How many clusters are shown on their own where labels flow."""

MANY = 30
"""Above how many clusters marks are smaller and bars have no edges."""

GAP = 0.023
"""Share of the height that is free below each cluster where labels flow: room for a number."""


def sample_map(
    model: FoldingEstimator, ax: Axes | None = None, *, most: int = MOST_SAMPLES
) -> Axes:
    """Draw a map on which samples with similar rows of the consensus are neighbours.

    Parameters
    ----------
    model : fitted estimator
        `ViewFold` or `FCMVC`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    most : int, default=2000
        Of more samples than this, so many are drawn at random: always the same ones.

    Returns
    -------
    matplotlib Axes

    Notes
    -----
    The map is a t-SNE of the consensus that knows nothing of the clusters: where they look apart,
    they are. It keeps neighbours together; distances between groups and their areas mean little.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import ViewFold, plot
    >>> rng = np.random.default_rng(0)
    >>> model = ViewFold(3, random_state=0).fit([rng.normal(size=(60, 5))])
    >>> ax = plot.sample_map(model)
    >>> ax.figure.savefig("map.svg")  # doctest: +SKIP
    >>> ax.get_xlabel()
    '60 samples'
    """
    drawn = draw(LocalEngine(), model.ids_, most, seed=0, purpose="plot")
    place, labels = _layout(model.embedding_[drawn]), model.labels_[drawn]
    ax = _axes(ax, (7, 6))
    present = np.unique(labels)
    for c in present:
        points = place[labels == c]
        ax.plot(*points.T, linestyle="none", label=f"cluster {c}", gid=f"cluster{c}.points")
        ax.lines[-1].set(**_mark(c, 4 if len(drawn) > 300 else 6))
    for c in present:
        points = place[labels == c]
        # A mean may lie in the middle of others; the point next to the median does not.
        middle = points[np.argmin(((points - np.median(points, axis=0)) ** 2).sum(axis=1))]
        _name_tag(ax, middle, int(c), many=len(present) > MANY)
    ax.set(xticks=[], yticks=[], xlabel=said_sample(len(drawn), model.ids_.size))
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[:].set_visible(False)
    return ax


def cluster_sizes(model: FoldingEstimator, ax: Axes | None = None) -> Axes:
    """Draw how many samples each cluster has.

    Parameters
    ----------
    model : fitted estimator
        `ViewFold` or `FCMVC`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import ViewFold, plot
    >>> rng = np.random.default_rng(0)
    >>> model = ViewFold(3, random_state=0).fit([rng.normal(size=(60, 5))])
    >>> ax = plot.cluster_sizes(model)
    >>> int(sum(bar.get_height() for bar in ax.patches))
    60
    """
    sizes = sizes_of(model)
    ax = _axes(ax, (6, 4))
    for c, size in enumerate(sizes):
        (bar,) = ax.bar(c, size, width=0.75, color=_colour(c), edgecolor=_darker(_colour(c)))
        bar.set(gid=f"cluster{c}.size", linewidth=0.6 if len(sizes) <= MANY else 0)
        if len(sizes) <= 20:
            turn = 90 if len(sizes) > 12 else 0
            _small(ax, (c, size), short(size), offset=(0, 3), ha="center", va="bottom", turn=turn)
    ax.margins(y=0.16 if 12 < len(sizes) <= 20 else 0.1)
    ax.set_ylabel("samples")
    ax.yaxis.set_major_formatter(lambda value, _: short(value))
    _cluster_axis(ax, len(sizes))
    return ax


def confidence(model: FoldingEstimator, ax: Axes | None = None) -> Axes:
    """Draw how clear the clusters of the samples are.

    Parameters
    ----------
    model : fitted estimator
        `ViewFold` or `FCMVC`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes

    Notes
    -----
    Confidence is 0 halfway between two clusters and 1 at the centre of one. Of each cluster, the
    thin line holds nine samples out of ten, the thick one the middle half, and the mark is the
    median.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import ViewFold, plot
    >>> rng = np.random.default_rng(0)
    >>> model = ViewFold(3, random_state=0).fit([rng.normal(size=(60, 5))])
    >>> plot.confidence(model).get_ylabel()
    'confidence'
    """
    return draw_confidence(model.to_frame(), len(model.cluster_centers_), ax)


def draw_confidence(frame: pd.DataFrame, n_clusters: int, ax: Axes | None = None) -> Axes:
    """Draw `confidence` from the table of all samples, for those who have it already."""
    ax = _axes(ax, (6, 4))
    thick = 7 if n_clusters <= MANY else 2.5
    for c, own in frame.groupby("cluster")["confidence"]:
        low, first, middle, third, high = own.quantile([0.05, 0.25, 0.5, 0.75, 0.95])
        line: dict[str, Any] = {"color": _colour(int(c)), "solid_capstyle": "butt"}
        ax.plot([c, c], [low, high], linewidth=thick / 4, gid=f"cluster{c}.most", **line)
        ax.plot([c, c], [first, third], linewidth=thick, gid=f"cluster{c}.half", **line)
        ax.plot(c, middle, gid=f"cluster{c}.median")
        hollow = {"markerfacecolor": _paper(ax), "markeredgewidth": 1, "clip_on": False}
        ax.lines[-1].set(**_mark(int(c), thick + 1) | hollow)
    ax.set(ylim=(0, 1), ylabel="confidence")
    _cluster_axis(ax, n_clusters)
    return ax


def views_seen(model: FoldingEstimator, ax: Axes | None = None) -> Axes:
    """Draw which views the samples are in: each combination, and how many samples have it.

    Parameters
    ----------
    model : fitted estimator
        `ViewFold` or `FCMVC`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given. It is divided into two: bars with the number of
        samples above, dots for the views that they are in below (``ax.child_axes``).

    Returns
    -------
    matplotlib Axes

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
    seen = model.seen_.to_numpy()
    patterns, counts = _patterns(seen)
    shown, rest = counts[:PATTERNS], counts[PATTERNS:]
    n_views = seen.shape[1]
    ax = _axes(ax, (8, 2.6 + 0.24 * n_views))
    ax.set_axis_off()
    share = min(0.65, 0.15 + 0.05 * n_views)
    bars = ax.inset_axes((0.0, share + 0.02, 1.0, 0.98 - share))
    dots = ax.inset_axes((0.0, 0.0, 1.0, share), sharex=bars)
    bars.bar(np.arange(len(shown)), shown, color=_ink(), alpha=0.8, width=0.7)
    for x, count in enumerate(shown):
        _small(bars, (x, count), short(count), offset=(0, 2), ha="center", va="bottom")
    if rest.size:
        said = f"and {some(rest.sum(), 'sample')} in {some(rest.size, 'other combination')}"
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


def label_flow(model: FoldingEstimator, ax: Axes | None = None) -> Axes:
    """Draw how the labels of the samples flowed from cluster to cluster, fold by fold.

    Parameters
    ----------
    model : fitted estimator
        `ViewFold` or `FCMVC`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes

    Notes
    -----
    A column of blocks is the clusters after a fold, and a ribbon the samples that went from one to
    another; both are as high as they have samples. If there are more than 12 clusters, the smaller
    ones are taken together.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import ViewFold, plot
    >>> rng = np.random.default_rng(0)
    >>> model = ViewFold(3, random_state=0)
    >>> model = model.fit([rng.normal(size=(60, 5)), rng.normal(size=(60, 4))])
    >>> [name.get_text() for name in plot.label_flow(model).get_xticklabels()]
    ['view0', 'view1']
    """
    names, states = _states(model)
    ax = _axes(ax, (9, 5.5))
    n, n_folds = states.shape
    counts = np.stack([np.bincount(fold, minlength=len(names)) for fold in states.T])
    gap = GAP * n / (1 - GAP * len(names))
    top = np.cumsum(counts, axis=1) - counts + gap * np.arange(len(names))
    for fold in range(n_folds):
        _blocks(ax, fold, names, counts[fold], top[fold], ends=(fold == 0, fold == n_folds - 1))
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
    turned: dict[str, Any] = {"rotation": 30, "ha": "right"} if n_folds > 7 else {}
    called = [shorten(record.name, 16) for record in model.views_]
    ax.set_xticks(range(n_folds), called, parse_math=False, **turned)
    ax.set_xlabel("clusters after each view was folded")
    ax.tick_params(bottom=False)
    ax.spines[:].set_visible(False)
    return ax


def agreement(model: FoldingEstimator, ax: Axes | None = None) -> Axes:
    """Draw how much of each view the consensus before it foretold.

    Parameters
    ----------
    model : fitted estimator
        `ViewFold`; with `FCMVC` agreement is not known.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import ViewFold, plot
    >>> rng = np.random.default_rng(0)
    >>> model = ViewFold(3, random_state=0).fit([rng.normal(size=(60, 5))])
    >>> plot.agreement(model).texts[0].get_text()
    'first view: nothing to compare it with'
    """
    ax = _axes(ax, (6, 1.2 + 0.32 * len(model.views_)))
    for y, record in enumerate(model.views_):
        if record.agreement is None:
            said = "unknown" if y else "first view: nothing to compare it with"
            _small(ax, (0, y), said, offset=(4, 0), ha="left", va="center")
            continue
        ax.barh(y, record.agreement, height=0.6, color=_ink(), alpha=0.8)
        at = (record.agreement, y)
        _small(ax, at, f"{record.agreement:.2f}", offset=(4, 0), ha="left", va="center")
    names = [shorten(record.name) for record in model.views_]
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.set(xlim=(0, 1.08), ylim=(len(names) - 0.4, -0.6), xlabel="agreement with earlier views")
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1])
    ax.tick_params(left=False)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_bounds(0, 1)
    return ax


def sizes_of(model: FoldingEstimator) -> NDArray[np.intp]:
    """Return the number of samples of each cluster, also of those that are empty."""
    return np.bincount(model.labels_, minlength=len(model.cluster_centers_))


def some(number: int, what: str) -> str:
    """Say how many of something there are.

    Examples
    --------
    >>> from viewfold.plot import some
    >>> some(1, "view"), some(1797, "sample")
    ('1 view', '1,797 samples')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def said_sample(drawn: int, n: int) -> str:
    """Say how many of the samples a picture shows.

    Examples
    --------
    >>> from viewfold.plot import said_sample
    >>> said_sample(1797, 1797), said_sample(2000, 1000000)
    ('1,797 samples', 'a sample of 2,000 of 1,000,000')
    """
    if drawn == n:
        return some(n, "sample")
    return f"a sample of {drawn:,} of {n:,}"


def short(number: float) -> str:
    """Write a number so that it fits above a bar.

    Examples
    --------
    >>> from viewfold.plot import short
    >>> [short(n) for n in (0, 1234, 9999, 12345, 100000, 999999, 2500000, 0.5)]
    ['0', '1,234', '9,999', '12.3k', '100k', '1M', '2.5M', '0.5']
    """
    if abs(number) < 10_000:
        return f"{number:,.4g}" if number != int(number) else f"{int(number):,}"
    if abs(number) < 999_500:
        return f"{number / 1000:.3g}k"
    return f"{number / 1e6:,.3g}M" if abs(number) < 1e9 else f"{number:.2g}"


def shorten(name: str, most: int = 28) -> str:
    """Return a name that fits next to an axis: the middle of a long one is left out.

    Examples
    --------
    >>> from viewfold.plot import shorten
    >>> shorten("gene expression, tumour, batch 2024-07", 20)
    'gene expre…h 2024-07'
    """
    name = "".join(letter if letter.isprintable() else " " for letter in name)
    return name if len(name) <= most else f"{name[: most // 2]}…{name[1 - most // 2 :]}"


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the given Axes, or those of a new figure of pyplot, which notebooks show."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    made: Axes = pyplot.subplots(figsize=size, layout="constrained")[1]
    return made


def _layout(rows: Array) -> Array:
    """Return a place in the plane for each row: t-SNE from the two main directions."""
    from sklearn.manifold import TSNE

    rows = unit_rows(rows.astype(np.float64))
    # t-SNE magnifies round-off: with the number of threads, the map would change.
    with all_on_one_thread():
        U, s, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
        plane = np.zeros((len(rows), 2))
        plane[:, : s.size] = (U * s)[:, :2]
        spread = plane[:, 0].std()
        if len(rows) <= 10 or spread < 1e-9:  # too few neighbours, or all the same
            return plane
        tsne = TSNE(
            init=plane / spread * 1e-4,
            perplexity=min(20, (len(rows) - 1) / 3),
            max_iter=400,
            angle=0.8,
            random_state=0,
            n_jobs=1,
        )
        return np.asarray(tsne.fit_transform(rows))


def _colour(c: int) -> str:
    return COLOURS[c % len(COLOURS)]


def _darker(colour: str) -> tuple[float, float, float]:
    """Return the colour of an edge: light fills alone would be hard to see on white."""
    from matplotlib.colors import to_rgb

    r, g, b = (0.65 * part for part in to_rgb(colour))
    return r, g, b


def _mark(c: int, size: float) -> dict[str, Any]:
    """Return how a cluster is marked."""
    marker = MARKERS[c % len(MARKERS)]
    return {
        "marker": marker,
        "markersize": 1.5 * size if marker == "*" else size,  # a star is mostly rays
        "markerfacecolor": _colour(c),
        "markeredgecolor": _darker(_colour(c)),
        "markeredgewidth": 0.4,
    }


def _ink() -> str:
    """Return the colour of text, which is light where people like their figures dark."""
    from matplotlib import rcParams

    return str(rcParams["text.color"])


def _paper(ax: Axes) -> Any:
    return ax.get_facecolor()


def _small(
    ax: Axes,
    at: tuple[float, float],
    text: str,
    *,
    offset: tuple[float, float],
    ha: str,
    va: str,
    turn: float = 0,
    size: float = 8,
) -> None:
    """Write something small at some points' distance from a place."""
    ax.annotate(
        text,
        at,
        xytext=offset,
        textcoords="offset points",
        ha=ha,
        va=va,
        rotation=turn,
        fontsize=size,
    )


def _name_tag(ax: Axes, at: Array, c: int, many: bool) -> None:
    """Write a cluster's number on a little tag: above its middle if it could hide a small one."""
    tag = {"boxstyle": "round,pad=0.2", "facecolor": _paper(ax), "edgecolor": _colour(c)}
    up, size = (9, 6) if many else (0, 8)
    tag["linewidth"] = 0.6 if many else 1
    text = ax.annotate(str(c), (at[0], at[1]), (0, up), textcoords="offset points", bbox=tag)
    text.set(ha="center", va="center", size=size, weight="bold", gid=f"cluster{c}.tag")


def _cluster_axis(ax: Axes, n_clusters: int) -> None:
    """Let x be the clusters, with as many numbers as can be read."""
    names = range(0, n_clusters, 1 if n_clusters <= MANY else 5 * -(-n_clusters // 100))
    ax.set_xticks(names, [str(c) for c in names], fontsize=8 if n_clusters > 20 else None)
    ax.set(xlim=(-0.6, n_clusters - 0.4), xlabel="cluster")
    ax.tick_params(bottom=False)
    ax.spines[["top", "right"]].set_visible(False)


def _patterns(seen: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return the combinations of views that samples are in, and how many have each, most first."""
    packed = pd.DataFrame(np.packbits(seen, axis=1))
    counts = (
        packed.groupby(list(packed), sort=True).size().sort_values(ascending=False, kind="stable")
    )
    rows = counts.index.to_frame().to_numpy(np.uint8)
    return np.unpackbits(rows, axis=1, count=seen.shape[1]).astype(bool), counts.to_numpy()


def _dots(ax: Axes, patterns: NDArray[np.bool_]) -> None:
    """Draw a column of dots for each pattern, filled where samples are in the view."""
    n_views = patterns.shape[1]
    for v in range(0, n_views, 2):
        ax.axhspan(v - 0.5, v + 0.5, color=GREY, alpha=0.12, linewidth=0)
    for x, pattern in enumerate(patterns):
        there, not_there = np.flatnonzero(pattern), np.flatnonzero(~pattern)
        ax.plot([x, x], [there[0], there[-1]], color=_ink(), linewidth=1.5)
        ax.plot(np.full(there.size, x), there, "o", color=_ink(), markersize=6)
        ax.plot(np.full(not_there.size, x), not_there, "o", color=GREY, alpha=0.35, markersize=4)
    ax.set(ylim=(n_views - 0.5, -0.5))
    ax.tick_params(left=False, bottom=False, labelbottom=False)
    ax.spines[:].set_visible(False)


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
    names: list[int | str],
    counts: NDArray[np.intp],
    top: Array,
    ends: tuple[bool, bool],
) -> None:
    """Draw the clusters after a fold, one above the other, and their names at both ends."""
    from matplotlib.patches import Rectangle

    for name, count, y in zip(names, counts, top, strict=True):
        if not count:
            continue
        colour = _colour(name) if isinstance(name, int) else GREY
        block = Rectangle((fold - 0.06, y), 0.12, count, color=colour, linewidth=0)
        block.set(gid=f"{_key(name)}.after{fold}", in_layout=False)
        ax.add_artist(block)
        for end, side, ha in zip(ends, (-1, 1), ("right", "left"), strict=True):
            if end:
                at = (fold + 0.06 * side, y + count / 2)
                _small(ax, at, str(name), offset=(4 * side, 0), ha=ha, va="center", size=7)


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
    colour = _colour(before) if isinstance(before, int) else GREY
    moved = before != after and isinstance(before, int)
    ribbon = PathPatch(Path([*upper, *lower, (left, start)], codes), facecolor=colour)
    ribbon.set(alpha=0.8 if moved else 0.3, edgecolor=colour, linewidth=0.4 if moved else 0)
    ribbon.set(gid=f"{_key(before)}.{_key(after)}.fold{fold + 1}", in_layout=False)
    ax.add_artist(ribbon)


def _key(name: int | str) -> str:
    """Return what a cluster is called among the ids of an SVG."""
    return f"cluster{name}" if isinstance(name, int) else name.split()[-1]
