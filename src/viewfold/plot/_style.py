"""Colours, marks, small texts and documentation that all figures share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from viewfold._util.arguments import suggests_arguments
from viewfold._util.messages import needed
from viewfold._util.types import Array
from viewfold.web.words import GREY, colour_of, label_cluster

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Colours and shapes of clusters next to each other both differ.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MANY = 30  # above how many clusters marks are smaller and bars have no edges


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the given Axes, or those of a new figure of pyplot, which notebooks show."""
    if ax is not None:
        return ax
    pyplot = needed("matplotlib.pyplot", "plots", "A plot")
    made: Axes = pyplot.subplots(figsize=size, layout="constrained")[1]
    return made


def cluster_colour(cluster: int | str) -> str:
    """Return the colour of a cluster; what is not one cluster is called by a text, and grey."""
    return GREY if isinstance(cluster, str) else colour_of(int(cluster))


def darker(colour: str) -> tuple[float, float, float]:
    """Return the colour of an edge: light fills alone would be hard to see on white."""
    from matplotlib.colors import to_rgb

    r, g, b = (0.65 * part for part in to_rgb(colour))
    return r, g, b


def mark(c: int, size: float) -> dict[str, Any]:
    marker = MARKERS[c % len(MARKERS)]
    return {
        "marker": marker,
        "markersize": 1.5 * size if marker == "*" else size,  # a star is mostly rays
        "markerfacecolor": cluster_colour(c),
        "markeredgecolor": darker(cluster_colour(c)),
        "markeredgewidth": 0.4,
    }


def text_colour() -> str:
    """Return the colour of text, which is light where people like their figures dark."""
    from matplotlib import rcParams

    return str(rcParams["text.color"])


def annotate(
    ax: Axes,
    at: tuple[float, float],
    text: str,
    *,
    offset: tuple[float, float],
    size: float = 8,
    **how: Any,
) -> None:
    """Write something small at some points' distance from a place."""
    how |= {"textcoords": "offset points", "fontsize": size, "parse_math": False}
    ax.annotate(text, at, xytext=offset, **how)


def tag_cluster(ax: Axes, at: Array, c: int, many: bool, names: Mapping[int, str]) -> None:
    """Write what a cluster is on a little tag: above its middle if it could hide a small one."""
    tag: dict[str, Any] = {
        "boxstyle": "round,pad=0.2",
        "facecolor": ax.get_facecolor(),
        "edgecolor": cluster_colour(c),
        "linewidth": 0.6 if many else 1,
    }
    up, size = (9, 6) if many else (0, 8)
    said = label_cluster(c, names)
    text = ax.annotate(said, (at[0], at[1]), (0, up), textcoords="offset points", bbox=tag)
    text.set(ha="center", va="center", size=size, weight="bold", gid=f"cluster{c}.tag")
    text.set_parse_math(False)


def cluster_axis(ax: Axes, n_clusters: int, names: Mapping[int, str]) -> None:
    """Let x be the clusters, with as many numbers as can be read, and their names."""
    shown = range(0, n_clusters, 1 if n_clusters <= MANY else 5 * -(-n_clusters // 100))
    how: dict[str, Any] = {"rotation": 30, "ha": "right"} if names else {}
    texts = [label_cluster(c, names) for c in shown]
    size = 8 if n_clusters > 20 else None
    ax.set_xticks(shown, texts, fontsize=size, parse_math=False, **how)
    ax.set(xlim=(-0.6, n_clusters - 0.4), xlabel="cluster")
    ax.tick_params(bottom=False)
    ax.spines[["top", "right"]].set_visible(False)


P = ParamSpec("P")
R = TypeVar("R")

# Sections that stand before the examples of every figure, and the model that these are about.
PARAMETERS = """
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
"""
MODEL = """\
>>> from viewfold import ViewFold, datasets, plot
>>> data = datasets.make_multiview(60, (5, 4), 3, random_state=0)
>>> model = ViewFold(3, random_state=0).fit(data.views)"""


def figure(draw: Callable[P, R]) -> Callable[P, R]:
    """Add to the docstring of a figure what all of them share; ``{model}`` is made in examples."""
    text = inspect.cleandoc(draw.__doc__ or "").replace("{model}", MODEL)
    draw.__doc__ = text.replace("\nExamples\n", PARAMETERS)
    return suggests_arguments(draw)
