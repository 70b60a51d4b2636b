"""A report on a fitted model: one HTML file that needs nothing else.

It holds a map of the samples, what makes the clusters, and what happened to them. Without `ids`, no
sample id and no row of the consensus is in it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from viewfold._util.arguments import suggests_arguments
from viewfold.app.output import PAGES, replacing
from viewfold.web._last import last_report
from viewfold.web._shell import html

if TYPE_CHECKING:
    import pandas as pd

    from viewfold.estimators import FoldingEstimator

__all__ = ["last_report", "render", "write"]


@suggests_arguments
def write(
    model: FoldingEstimator,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    ids: bool = False,
    metadata: pd.DataFrame | None = None,
    since: int | Literal["last"] | None = None,
    private: str | os.PathLike[str] | None = None,
) -> Path:
    """Write a report to a file.

    Parameters
    ----------
    model : fitted estimator
        `ViewFold` or `FCMVC`.
    path : str or path-like
        The HTML file. If there is one already, it is replaced once the new one is complete.
    title, ids, metadata
        See `render`.
    since : int or "last", optional
        An entry of the log: the report says what changed since. ``"last"``: since the report that
        is replaced, if there is one, and it is of this model.
    private : path, optional
        A new file may be read by those who may read this one, such as the state that it is about.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> from viewfold import ViewFold, report
    >>> from viewfold.datasets import load_digits_views
    >>> model = ViewFold(10, random_state=0).fit(load_digits_views().views)  # doctest: +SKIP
    >>> report.write(model, "report.html")  # doctest: +SKIP
    PosixPath('report.html')
    """
    model = model._snapshot()
    path = Path(path)
    with replacing(path, PAGES, private=private) as draft:
        entry = last_report(path, model) if since == "last" else since
        page = render(model, title=title, ids=ids, metadata=metadata, since=entry)
        draft.write_text(page, encoding="utf-8", newline="\n")
    return path


@suggests_arguments
def render(
    model: FoldingEstimator,
    *,
    title: str | None = None,
    ids: bool = False,
    metadata: pd.DataFrame | None = None,
    since: int | None = None,
) -> str:
    """Return a report as HTML. The same model gives the same text.

    Parameters
    ----------
    model : fitted estimator
        `ViewFold` or `FCMVC`.
    title : str, optional
        The heading.
    ids : bool, default=False
        Whether sample ids are in the page, to search for and to be named; else it names nobody.
    metadata : DataFrame, optional
        Columns to colour the map by, with the sample ids in the index. Numbers are a scale; texts,
        booleans, categories and whole numbers with at most ten different values are categories,
        with at most 200 levels. A column that cannot be shown is left out, with a warning.
    since : int, optional
        An entry of the log: the report says what changed since.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import ViewFold, report
    >>> rng = np.random.default_rng(0)
    >>> model = ViewFold(3, random_state=0).fit([rng.normal(size=(60, 5))])
    >>> "<h1>Sixty &lt;samples&gt;</h1>" in report.render(model, title="Sixty <samples>")
    True
    """
    from viewfold.web import page_data

    return "".join(html(page_data(model, title=title, ids=ids, metadata=metadata, since=since)))
