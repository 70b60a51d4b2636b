"""The page: a report in one file, `viewfold ui` in the browser, a widget in a notebook.

`server` and `session` are a small server for one person's browser; docs/ui.md describes its JSON
interface and who can reach it. Figures share the colours, the words and the map.
"""

from __future__ import annotations

import importlib
from importlib import resources
from typing import TYPE_CHECKING, Any

from viewfold.web.words import COLOURS, colour_of

if TYPE_CHECKING:
    from viewfold.web.data import PageData, page_data

__all__ = ["COLOURS", "PageData", "colour_of", "page_data", "static_text"]


def __getattr__(name: str) -> Any:
    """Import what computes pages when it is asked for: figures need colours and words only."""
    if name not in ("PageData", "page_data"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("viewfold.web.data"), name)


def static_text(name: str) -> str:
    """Return a script or style of the page, as it was built.

    Examples
    --------
    >>> from viewfold.web import static_text
    >>> "viewfold" in static_text("page.js")
    True
    """
    return resources.files(__name__).joinpath("static", name).read_text(encoding="utf-8")
