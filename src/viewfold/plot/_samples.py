"""Figures of samples and clusters: the map, sizes and confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold.plot._docs import figure
from viewfold.plot._style import (
    MANY,
    annotate,
    axes_or_new,
    background,
    cluster_axis,
    cluster_colour,
    darker,
    mark,
    tag_cluster,
)
from viewfold.rows import LocalEngine
from viewfold.rows.linalg import unit_rows
from viewfold.state.hashes import draw
from viewfold.web.layout import LAID_OUT, tsne
from viewfold.web.words import counted_sample, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from viewfold.estimators import FoldingEstimator

MOST_SAMPLES = LAID_OUT
"""How many samples the map shows at most; it takes three seconds or so."""


@figure
def sample_map(
    model: FoldingEstimator, ax: Axes | None = None, *, most: int = MOST_SAMPLES
) -> Axes:
    """Draw a map on which samples with similar rows of the consensus are neighbours.

    {model_and_ax}
    most : int, default=2000
        Of more samples than this, so many are drawn at random: always the same ones.

    {axes}

    Notes
    -----
    The map is a t-SNE of the consensus that knows nothing of the clusters: where they look apart,
    they are. It keeps neighbours together; distances between groups and their areas mean little.

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

    {model_and_ax}

    {axes}

    Examples
    --------
    {model}
    >>> ax = plot.cluster_sizes(model)
    >>> int(sum(bar.get_height() for bar in ax.patches))
    60
    """
    model = model._snapshot()
    sizes = sizes_of(model)
    ax = axes_or_new(ax, (6, 4))
    for c, size in enumerate(sizes):
        (bar,) = ax.bar(
            c, size, width=0.75, color=cluster_colour(c), edgecolor=darker(cluster_colour(c))
        )
        bar.set(gid=f"cluster{c}.size", linewidth=0.6 if len(sizes) <= MANY else 0)
        if len(sizes) <= 20:
            angle = 90 if len(sizes) > 12 else 0
            annotate(
                ax,
                (c, size),
                short(size),
                offset=(0, 3),
                ha="center",
                va="bottom",
                rotation=angle,
            )
    ax.margins(y=0.16 if 12 < len(sizes) <= 20 else 0.1)
    ax.set_ylabel("samples")
    ax.yaxis.set_major_formatter(lambda value, _: short(value))
    cluster_axis(ax, len(sizes), model.cluster_names_)
    return ax


@figure
def confidence(model: FoldingEstimator, ax: Axes | None = None) -> Axes:
    """Draw how clear the clusters of the samples are.

    {model_and_ax}

    {axes}

    Notes
    -----
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
    return draw_confidence(model.to_frame(), len(model.cluster_centers_), ax)


def draw_confidence(frame: pd.DataFrame, n_clusters: int, ax: Axes | None = None) -> Axes:
    """Draw `confidence` from the table of all samples, for those who have it already."""
    ax = axes_or_new(ax, (6, 4))
    thick = 7 if n_clusters <= MANY else 2.5
    for c, own in frame.groupby("cluster")["confidence"]:
        low, first, middle, third, high = own.quantile([0.05, 0.25, 0.5, 0.75, 0.95])
        line: dict[str, Any] = {"color": cluster_colour(int(c)), "solid_capstyle": "butt"}
        ax.plot([c, c], [low, high], linewidth=thick / 4, gid=f"cluster{c}.most", **line)
        ax.plot([c, c], [first, third], linewidth=thick, gid=f"cluster{c}.half", **line)
        ax.plot(c, middle, gid=f"cluster{c}.median")
        hollow = {"markerfacecolor": background(ax), "markeredgewidth": 1, "clip_on": False}
        ax.lines[-1].set(**mark(int(c), thick + 1) | hollow)
    ax.set(ylim=(0, 1), ylabel="confidence")
    named = frame.drop_duplicates("cluster").dropna() if "name" in frame else frame[:0]
    names = dict(zip(named["cluster"], named["name"], strict=True)) if len(named) else {}
    cluster_axis(ax, n_clusters, names)
    return ax


def sizes_of(model: FoldingEstimator) -> NDArray[np.intp]:
    """Return the number of samples of each cluster, also of those that are empty."""
    return np.bincount(model.labels_, minlength=len(model.cluster_centers_))
