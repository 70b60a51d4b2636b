"""Figures of views: which samples are in them, and how far they agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold.plot._docs import figure
from viewfold.plot._style import annotate, axes_or_new, text_colour
from viewfold.web.words import GREY, counted, short, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from viewfold.estimators import FoldingEstimator

PATTERNS = 20
"""How many patterns of missing views are shown on their own."""


@figure
def views_seen(model: FoldingEstimator, ax: Axes | None = None) -> Axes:
    """Draw which views the samples are in: each combination, and how many samples have it.

    {model_and_ax}

    {axes}

    Notes
    -----
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

    {model_and_ax}

    {axes}

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
        ax.plot([x, x], [there[0], there[-1]], color=text_colour(), linewidth=1.5)
        ax.plot(np.full(there.size, x), there, "o", color=text_colour(), markersize=6)
        ax.plot(np.full(not_there.size, x), not_there, "o", color=GREY, alpha=0.35, markersize=4)
    ax.set(ylim=(n_views - 0.5, -0.5))
    ax.tick_params(left=False, bottom=False, labelbottom=False)
    ax.spines[:].set_visible(False)
