"""The data of a page about a model: a summary, and a column of small numbers for every property.

Report, local server and notebook show the same data; docs/report.md says what is in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from viewfold._util.version import __version__
from viewfold.web._found import Found, events
from viewfold.web._points import Points
from viewfold.web.words import printable

if TYPE_CHECKING:
    import pandas as pd

    from viewfold.estimators import FoldingEstimator

__all__ = ["FORMAT", "PageData", "events", "page_data"]

FORMAT = 1
"""The number of the present form of these data."""


@dataclass(frozen=True)
class PageData:
    """The data of a page.

    Attributes
    ----------
    summary : dict
        What can be written as JSON.
    columns : dict of str to ndarray or bytes
        A value for every point of the map, by name: little-endian arrays of `uint8` or `uint16`;
        ``ids``, where they are let in, are UTF-8, one on each line; see
        `viewfold.web.words.as_line`.
    """

    summary: dict[str, Any]
    columns: dict[str, NDArray[np.uint8] | NDArray[np.uint16] | bytes] = field(repr=False)

    def packed(self, name: str) -> bytes:
        """Return a column as bytes, as a page reads it."""
        column = self.columns[name]
        return column if isinstance(column, bytes) else column.tobytes()


def page_data(
    model: FoldingEstimator,
    *,
    title: str | None = None,
    ids: bool = False,
    metadata: pd.DataFrame | None = None,
    since: int | None = None,
) -> PageData:
    """Return the data of a page about a model. The same model gives the same data.

    Parameters
    ----------
    model : fitted estimator
        `ViewFold` or `FCMVC`.
    title : str, optional
        The heading.
    ids : bool, default=False
        Whether sample ids are in it; without, nothing tells who a point is.
    metadata : DataFrame, optional
        Columns to colour the map by; the index holds sample ids.
    since : int, optional
        An entry of the log: what changed since is told.

    Returns
    -------
    PageData

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import ViewFold
    >>> from viewfold.web import page_data
    >>> model = ViewFold(3, random_state=0).fit(np.random.default_rng(0).normal(size=(60, 5)))
    >>> data = page_data(model)
    >>> data.summary["n"], sorted(data.columns)
    (60, ['cluster', 'confidence', 'coverage', 'x', 'y'])
    """
    check_is_fitted(model)
    model = model._snapshot()
    found = Found(model)
    changes = found.since(since)  # refuses an entry that is not there, before the work is done
    points = Points.of(found, metadata, ids)
    columns = points.columns(found.counts.sizes.size, ids)
    summary = {
        "format": FORMAT,
        "version": __version__,
        "title": printable(title or found.size()),
        "method": type(model).__name__,
        **found.summary(points, ids),
        "since": changes,
        "metadata": [one.facts for one in points.coloured],
        "notes": [*points.notes, *found.left_out()],
        "columns": {name: _kind(column) for name, column in columns.items()},
    }
    return PageData(summary, columns)


def _kind(column: Any) -> str:
    return "text" if isinstance(column, bytes) else f"uint{8 * column.dtype.itemsize}"
