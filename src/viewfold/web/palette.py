"""The colours of clusters, in figures and on pages: twenty that differ, then shades of them."""

from __future__ import annotations

from functools import cache

COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8250df"),
    *("#a80c60", "#6c5400", "#cc00b4", "#00d8c0", "#c06cfc", "#906084", "#d8b49c"),
    *("#c0cc48", "#787854", "#fc84fc", "#84b46c", "#545478", "#6000fc"),
)
"""The first seven are Okabe and Ito's, with violet in place of yellow and black, which vanish on
light or dark paper. The others are as far as possible from these and from each other, also for
people who lack one kind of cones: no two are nearer than 0.11 in OKLab, or than 0.055 as
protanopes, deuteranopes or tritanopes see them."""

SHADES = (0.0, 0.45, -0.4, 0.22, -0.22)
"""How far the colours of each further round are on their way to white, or to black below 0."""

GREY = "#8a919c"
"""Whatever is not one cluster: samples not seen yet, clusters taken together."""


@cache
def colour_of(cluster: int) -> str:
    """Return the colour of a cluster: the first hundred have colours of their own.

    Examples
    --------
    >>> from viewfold.web.palette import colour_of
    >>> colour_of(0), colour_of(20), colour_of(40)
    ('#0072b2', '#73b1d5', '#00446b')
    """
    base = COLOURS[cluster % len(COLOURS)]
    shade = SHADES[cluster // len(COLOURS) % len(SHADES)]
    parts = [int(base[i : i + 2], 16) for i in (1, 3, 5)]
    end = 255 if shade > 0 else 0
    return "#" + "".join(f"{round(part + abs(shade) * (end - part)):02x}" for part in parts)
