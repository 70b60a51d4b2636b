"""Figures of a fitted model: a map, sizes, confidence, views, how labels flowed.

Every function draws with matplotlib, into `ax` if given, and returns the Axes. A notebook shows the
figure by itself; ``ax.figure.savefig("map.svg")`` (or ``"map.png"``) saves it. `map` is a widget to
zoom and select in, where anywidget is installed.
"""

from viewfold.plot._figures import (
    agreement,
    cluster_sizes,
    confidence,
    label_flow,
    sample_map,
    views_seen,
)
from viewfold.plot._widget import map
from viewfold.web.words import COLOURS

__all__ = [
    "COLOURS",
    "agreement",
    "cluster_sizes",
    "confidence",
    "label_flow",
    "map",
    "sample_map",
    "views_seen",
]
