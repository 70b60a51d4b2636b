"""From matplotlib's figures to SVG that can live inside a page.

There, ids must differ between figures, colours of text and paper follow the page (light or dark),
and parts that belong to a cluster say so in ``data-cluster``, for the page's script.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, LINE, PAPER = "#1b1f25", "#9aa1ac", "#fefefd"
"""Colours that stand for those of the page."""

_VARIABLES = {INK: "var(--ink)", LINE: "var(--line)", PAPER: "var(--paper)"}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.labelsize": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "axes.edgecolor": LINE,
    "axes.facecolor": PAPER,
    "figure.facecolor": PAPER,
}


def svg(draw: Callable[[Axes], object], name: str, size: tuple[float, float], label: str) -> str:
    """Draw a figure and return it as an SVG element.

    Parameters
    ----------
    draw : callable
        Draws into the Axes that it is given.
    name : str
        What the figure is called: the beginning of all ids in it.
    size : tuple of float
        Width and height, in inches.
    label : str
        What the figure shows, for those who cannot see it.

    Returns
    -------
    str
    """
    from matplotlib.figure import Figure

    file = StringIO()
    with _own_style(name):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.subplots())
        figure.savefig(file, format="svg")
    root = ElementTree.fromstring(file.getvalue())
    _clean(root, name)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": label}
    return ElementTree.tostring(root, encoding="unicode")


def marker(shape: str) -> str:
    """Return one of matplotlib's markers as the ``d`` of an SVG path, one unit wide."""
    from matplotlib.markers import MarkerStyle

    style = MarkerStyle(shape)
    path = style.get_path().transformed(style.get_transform())
    letters = {1: "M", 2: "L", 3: "Q", 4: "C", 79: "Z"}
    parts = []
    for points, code in path.iter_segments(simplify=False):
        numbers = np.asarray(points).reshape(-1, 2) * (1, -1)  # y goes down in SVG
        numbers *= 1.25 if shape == "*" else 1  # a star is mostly rays
        end = letters[int(code)] == "Z"
        parts.append(
            "Z" if end else letters[int(code)] + " ".join(f"{x:.3g}" for x in numbers.flat)
        )
    return "".join(parts)


@contextmanager
def _own_style(name: str) -> Iterator[None]:
    """Draw as the page needs it, whatever the user's settings are, and leave those alone."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**_STYLE, "svg.hashsalt": name})
        # matplotlib measures text with a font that lacks some scripts; browsers have others.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


def _clean(root: ElementTree.Element, name: str) -> None:
    """Take out what a page does not need, and rename what must not meet its like."""
    for parent in root.iter():
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', ElementTree.tostring(root, "unicode")))
    for element in root.iter():
        element.tag = element.tag.partition("}")[2] or element.tag
        element.tail = None
        if element.tag != "text":
            element.text = None
        old, element.attrib = element.attrib, {}
        for key, value in old.items():
            element.attrib.update(_attribute(key.partition("}")[2] or key, value, name, used))
        _share_style(element)


def _attribute(key: str, value: str, name: str, used: set[str]) -> dict[str, str]:
    """Return what becomes of an attribute."""
    if key == "id":
        clusters = dict.fromkeys(re.findall(r"cluster(\d+)\.", value))
        kept = {"data-cluster": " ".join(clusters)} if clusters else {}
        return kept | ({"id": f"{name}-{value}"} if value in used else {})
    if key == "href":
        return {"href": f"#{name}-{value[1:]}"}
    if key == "clip-path":
        return {key: value.replace("#", f"#{name}-")}
    if key == "style":
        # Before 3.11, matplotlib wrote all about the font at once.
        value = re.sub(
            r"font: (?:(\S+) )?([\d.]+px)[^;]*", r"font-weight: \1; font-size: \2", value
        )
        value = re.sub(r"font-(family: [^;]*|weight: ); ?", "", value)
        return {key: re.sub("|".join(_VARIABLES), lambda found: _VARIABLES[found[0]], value)}
    if key == "transform" and value.startswith("rotate(-0 "):
        return {}
    # A hundredth of a point is finer than any screen.
    return {key: re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", value).strip()}


def _share_style(group: ElementTree.Element) -> None:
    """Say once, for all marks of a group, what they look like."""
    styles = {mark.get("style") for mark in group if mark.tag.endswith("use")}
    if len(group) > 1 and len(styles) == 1 and all(mark.tag.endswith("use") for mark in group):
        group.set("style", _attribute("style", styles.pop() or "", "", set())["style"])
        for mark in group:
            mark.attrib.pop("style", None)
