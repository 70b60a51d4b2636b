"""Numbers, names and colours as figures and reports write them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from math import isfinite

from viewfold._util.messages import visible
from viewfold.app.words import counted

LONGEST = 200  # letters of a name on a page: endless ones would make the page endless, too


def counted_sample(drawn: int, n: int) -> str:
    """Say how many of the samples a picture shows."""
    if drawn == n:
        return counted(n, "sample")
    return f"a sample of {drawn:,} of {n:,}"


def short(number: float) -> str:
    """Write a number so that it fits above a bar."""
    # The bounds are where rounding would give one digit more.
    if abs(number) < 9_999.5:
        return f"{number:,.4g}" if number != int(number) else f"{int(number):,}"
    if abs(number) < 999_500:
        return f"{number / 1000:.3g}k"
    return f"{number / 1e6:,.3g}M" if abs(number) < 999.5e6 else f"{number:.2g}"


def label_cluster(cluster: int, names: Mapping[int, str], most: int = 20) -> str:
    """Return the number of a cluster, with its name if it has one."""
    return f"{cluster} {shorten(names[cluster], most)}" if cluster in names else str(cluster)


def shorten(name: str, most: int = 28) -> str:
    """Return a name that fits next to an axis: the middle of a long one is left out."""
    name = printable(name)
    return name if len(name) <= most else f"{name[: most // 2]}…{name[1 - most // 2 :]}"


def clip_name(text: str) -> str:
    """Return a name as pages tell it: whole, unless it is endless."""
    return shorten(text, LONGEST)


def printable(text: str) -> str:
    """Return a text in which nothing is hidden: other spaces are spaces, the rest is escaped.

    A bidirectional control would turn around what stands beside it, and a zero-width space would
    let two names look the same. Scripts and emoji need joiners, which stay.
    """
    return visible(re.sub(r"\s", " ", text))


def as_line(sample: int | str) -> str:
    """Return a sample id as a line of a text that gives it back to the letter."""
    text = str(sample)
    return text if text.isprintable() and not text.startswith('"') else json.dumps(text)


def from_line(line: str) -> str:
    return str(json.loads(line)) if line.startswith('"') else line


def rounded(number: float | None) -> float | None:
    """Return a number with the four digits that a page shows; None if there is none."""
    if number is None or not isfinite(number):
        return None
    return float(f"{number:.4g}")


# The first seven are Okabe and Ito's, with violet in place of yellow and black, which vanish on
# light or dark paper. The others are as far as possible from these and from each other, also for
# people who lack one kind of cones: no two are nearer than 0.11 in OKLab, or than 0.055 as
# protanopes, deuteranopes or tritanopes see them.
COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8250df"),
    *("#a80c60", "#6c5400", "#cc00b4", "#00d8c0", "#c06cfc", "#906084", "#d8b49c"),
    *("#c0cc48", "#787854", "#fc84fc", "#84b46c", "#545478", "#6000fc"),
)
# How far the colours of each further round are on their way to white, or to black below 0.
SHADES = (0.0, 0.45, -0.4, 0.22, -0.22)
GREY = "#8a919c"  # whatever is not one cluster: samples not seen yet, clusters taken together


@cache
def colour_of(cluster: int) -> str:
    """Return the colour of a cluster: the first hundred have colours of their own."""
    base = COLOURS[cluster % len(COLOURS)]
    shade = SHADES[cluster // len(COLOURS) % len(SHADES)]
    parts = [int(base[i : i + 2], 16) for i in (1, 3, 5)]
    end = 255 if shade > 0 else 0
    return "#" + "".join(f"{round(part + abs(shade) * (end - part)):02x}" for part in parts)
