"""Numbers and names as figures and reports write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite

LONGEST = 200
"""Letters of a name on a page: thousands of endless ones would make it endless, too."""

JOINERS = "\u200c\u200d"
"""Persian words, Indic letters and emoji are written with them."""


def counted(number: int, what: str) -> str:
    """Say how many of something there are.

    Examples
    --------
    >>> from viewfold.web.words import counted
    >>> counted(1, "view"), counted(1797, "sample")
    ('1 view', '1,797 samples')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def counted_sample(drawn: int, n: int) -> str:
    """Say how many of the samples a picture shows.

    Examples
    --------
    >>> from viewfold.web.words import counted_sample
    >>> counted_sample(1797, 1797), counted_sample(2000, 1000000)
    ('1,797 samples', 'a sample of 2,000 of 1,000,000')
    """
    if drawn == n:
        return counted(n, "sample")
    return f"a sample of {drawn:,} of {n:,}"


def short(number: float) -> str:
    """Write a number so that it fits above a bar.

    Examples
    --------
    >>> from viewfold.web.words import short
    >>> [short(n) for n in (0, 1234, 9999, 12345, 100000, 999999, 2500000, 0.5)]
    ['0', '1,234', '9,999', '12.3k', '100k', '1M', '2.5M', '0.5']
    """
    # The bounds are where rounding would give one digit more.
    if abs(number) < 9_999.5:
        return f"{number:,.4g}" if number != int(number) else f"{int(number):,}"
    if abs(number) < 999_500:
        return f"{number / 1000:.3g}k"
    return f"{number / 1e6:,.3g}M" if abs(number) < 999.5e6 else f"{number:.2g}"


def called(cluster: int, names: Mapping[int, str], most: int = 20) -> str:
    """Return the number of a cluster, with its name if it has one.

    Examples
    --------
    >>> from viewfold.web.words import called
    >>> called(2, {3: "late responders"}), called(3, {3: "late responders"})
    ('2', '3 late responders')
    """
    return f"{cluster} {shorten(names[cluster], most)}" if cluster in names else str(cluster)


def shorten(name: str, most: int = 28) -> str:
    """Return a name that fits next to an axis: the middle of a long one is left out.

    Examples
    --------
    >>> from viewfold.web.words import shorten
    >>> shorten("gene expression, tumour, batch 2024-07", 20)
    'gene expre…h 2024-07'
    """
    name = printable(name)
    return name if len(name) <= most else f"{name[: most // 2]}…{name[1 - most // 2 :]}"


def named(text: str) -> str:
    """Return a name as pages tell it: whole, unless it is endless.

    Examples
    --------
    >>> from viewfold.web.words import named
    >>> named("gene expression, tumour"), len(named("x" * 5000))
    ('gene expression, tumour', 200)
    """
    return shorten(text, LONGEST)


def printable(text: str) -> str:
    r"""Return a text in which nothing is hidden: other spaces are spaces, the rest is escaped.

    A bidirectional control would turn around what stands beside it, and a zero-width space would
    let two names look the same. Scripts and emoji need joiners, which stay.

    Examples
    --------
    >>> from viewfold.web.words import printable
    >>> print(printable("a\tb\x00c\u202ed"))
    a b\x00c\u202ed
    """
    return "".join(
        letter
        if letter.isprintable() or letter in JOINERS
        else " "
        if letter.isspace()
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def as_line(sample: int | str) -> str:
    r"""Return a sample id as a line of a text that gives it back to the letter.

    Examples
    --------
    >>> from viewfold.web.words import as_line, from_line
    >>> as_line(17), as_line("p 17"), as_line("p\t17")
    ('17', 'p 17', '"p\\t17"')
    >>> from_line(as_line("p\t17"))
    'p\t17'
    """
    text = str(sample)
    return text if text.isprintable() and not text.startswith('"') else json.dumps(text)


def from_line(line: str) -> str:
    """Return the sample id that a line stands for."""
    return str(json.loads(line)) if line.startswith('"') else line


def told(number: float | None) -> float | None:
    """Return a number with the four digits that a page shows; None if there is none.

    Examples
    --------
    >>> from viewfold.web.words import told
    >>> told(0.123456), told(float("nan")), told(None)
    (0.1235, None, None)
    """
    if number is None or not isfinite(number):
        return None
    return float(f"{number:.4g}")
