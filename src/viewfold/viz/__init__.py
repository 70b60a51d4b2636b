"""What pages and figures share: colours, words, the map, and the data of a page."""

from __future__ import annotations

import importlib
from importlib import resources
from typing import TYPE_CHECKING, Any

from viewfold.viz.palette import COLOURS, colour_of

if TYPE_CHECKING:
    from viewfold.viz.data import PageData, page_data

__all__ = ["COLOURS", "PageData", "colour_of", "page_data", "static_text"]


def __getattr__(name: str) -> Any:
    """Import what computes pages when it is asked for: figures need colours and words only."""
    if name not in ("PageData", "page_data"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("viewfold.viz.data"), name)


def static_text(name: str) -> str:
    """Return a script or style of the page, as it was built.

    Examples
    --------
    >>> from viewfold.viz import static_text
    >>> "viewfold" in static_text("page.js")
    True
    """
    return resources.files(__name__).joinpath("static", name).read_text(encoding="utf-8")
