"""Figures of a fitted model: a map, sizes, confidence, views, how labels flowed.

Every function draws with matplotlib, into `ax` if given, and returns the Axes. A notebook shows the
figure by itself; ``ax.figure.savefig("map.svg")`` (or ``"map.png"``) saves it. `map` is a widget to
zoom and select in, where anywidget is installed.
"""

from viewfold.plot._flow import FLOWING, label_flow
from viewfold.plot._samples import (
    MOST_SAMPLES,
    cluster_sizes,
    confidence,
    draw_confidence,
    sample_map,
    sizes_of,
)
from viewfold.plot._style import MANY, MARKERS
from viewfold.plot._views import PATTERNS, agreement, views_seen
from viewfold.plot._widget import map
from viewfold.viz.palette import COLOURS
from viewfold.viz.words import counted, counted_sample, short, shorten

__all__ = [
    "COLOURS",
    "FLOWING",
    "MANY",
    "MARKERS",
    "MOST_SAMPLES",
    "PATTERNS",
    "agreement",
    "cluster_sizes",
    "confidence",
    "counted",
    "counted_sample",
    "draw_confidence",
    "label_flow",
    "map",
    "sample_map",
    "short",
    "shorten",
    "sizes_of",
    "views_seen",
]
