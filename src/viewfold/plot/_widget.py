"""The map of a notebook: a widget where anywidget is installed, else a figure of matplotlib."""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from typing import TYPE_CHECKING, Any

from viewfold._util.arguments import suggests_arguments
from viewfold.plot._figures import sample_map
from viewfold.web import static_text
from viewfold.web.words import clip_name, from_line

if TYPE_CHECKING:
    import pandas as pd

    from viewfold.estimators import FoldingEstimator
    from viewfold.web import PageData


@suggests_arguments
def map(  # as users call it: plot.map
    model: FoldingEstimator,
    *,
    colour_by: str = "cluster",
    metadata: pd.DataFrame | None = None,
    ids: bool = True,
    height: int = 480,
) -> Any:
    """Show a map of the samples in a notebook: zoom, draw around samples, see who they are.

    Parameters
    ----------
    model, metadata
        See `viewfold.web.report.render`.
    colour_by : str, default="cluster"
        What colours tell: ``"cluster"``, ``"confidence"``, ``"coverage"`` (the number of views), or
        a column of `metadata`.
    ids : bool, default=True
        Whether the map knows sample ids. A notebook that is saved with its widgets holds them then.
    height : int, default=480
        In pixels.

    Returns
    -------
    anywidget.AnyWidget or matplotlib Axes
        The widget, if anywidget is installed: ``widget.selection`` has the numbers of the points
        that were chosen, ``widget.selected`` their sample ids; setting ``selection`` or
        ``colour_by`` changes the map. Else the Axes of `sample_map`.

    Examples
    --------
    >>> from viewfold import ViewFold, datasets, plot
    >>> data = datasets.make_multiview(60, (5, 4), 3, random_state=0)
    >>> model = ViewFold(3, random_state=0).fit(data.views)
    >>> shown = plot.map(model)
    >>> shown.selection = [3, 8]  # doctest: +SKIP
    >>> shown.selected  # doctest: +SKIP
    [17, 41]
    """
    model = model._snapshot()
    if importlib.util.find_spec("anywidget") is None:
        if colour_by != "cluster":
            raise ImportError(
                f"colour_by={colour_by!r} needs anywidget: pip install 'viewfold[notebook]'"
            )
        return sample_map(model)
    from viewfold.web import page_data

    data = page_data(model, ids=ids, metadata=metadata)
    columns = {name: data.packed(name) for name in data.columns}
    traits = {"colour_by": _way(data, colour_by), "height": height}
    widget = _widget_class()(summary=data.summary, columns=columns, **traits)
    if ids:
        names = [from_line(line) for line in columns["ids"].decode().split("\n")]
        whole = model._fitted.ids.dtype.kind == "i"
        widget._ids = [int(name) for name in names] if whole else names
    return widget


def _way(data: PageData, colour_by: str) -> str:
    """Return what a page calls something to colour by."""
    ways: dict[str, str] = {one["name"]: one["column"] for one in data.summary["metadata"]}
    ways |= {name: name for name in ("cluster", "confidence", "coverage")}
    if clip_name(colour_by) not in ways:
        known = ", ".join(repr(name) for name in ways)
        raise ValueError(f"colour_by={colour_by!r} is not there. Choose one of {known}.")
    return ways[clip_name(colour_by)]


@cache
def _widget_class() -> type[Any]:
    """Return the class of the widget; anywidget is imported when it is needed."""
    anywidget = importlib.import_module("anywidget")
    traitlets = importlib.import_module("traitlets")

    class MapWidget(anywidget.AnyWidget):  # type: ignore[name-defined]
        """A map of samples; see `viewfold.plot.map`."""

        _esm = static_text("widget.js")
        summary = traitlets.Dict().tag(sync=True)
        columns = traitlets.Dict().tag(sync=True)
        colour_by = traitlets.Unicode("cluster").tag(sync=True)
        selection = traitlets.List(traitlets.Int()).tag(sync=True)
        height = traitlets.Int(480).tag(sync=True)
        _ids: list[int] | list[str] | None = None

        @property
        def selected(self) -> list[int | str] | None:
            """The ids of the samples that are chosen; None if the map knows no ids."""
            if self._ids is None:
                return None
            return [self._ids[point] for point in self.selection]

    return MapWidget
