"""A report on a fitted model: one HTML file that needs nothing else.

It holds the figures of `viewfold.plot`, tables of views and clusters, and how to read them. No
sample id and no row of the consensus is in it.
"""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from viewfold import __version__, plot
from viewfold._output import PAGES, replacing
from viewfold.plot import counted
from viewfold.report._svg import marker, svg

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator
    from viewfold.selection import Suggestion

__all__ = ["render", "write"]

MOST_EVENTS = 50
"""How many of the latest events the page lists."""


def write(
    model: FoldingEstimator, path: str | os.PathLike[str], *, title: str | None = None
) -> Path:
    """Write a report to a file.

    Parameters
    ----------
    model : fitted estimator
        `ViewFold` or `FCMVC`.
    path : str or path-like
        The HTML file. If there is one already, it is replaced once the new one is complete.
    title : str, optional
        The heading.

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
    path = Path(path)
    with replacing(path, PAGES) as draft:
        draft.write_text(render(model, title=title), encoding="utf-8", newline="\n")
    return path


def render(model: FoldingEstimator, *, title: str | None = None) -> str:
    """Return a report as HTML. The same model gives the same text.

    Parameters
    ----------
    model : fitted estimator
        `ViewFold` or `FCMVC`.
    title : str, optional
        The heading.

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
    from jinja2 import Environment, StrictUndefined

    frame = model.to_frame()
    text = resources.files(__name__).joinpath("page.html.jinja").read_text(encoding="utf-8")
    settings: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(autoescape=True, undefined=StrictUndefined, **settings)
    environment.filters["count"] = "{:,}".format
    n, k = len(frame), len(model.cluster_centers_)
    number = _number(model)
    return environment.from_string(text).render(
        title=_printable(title) if title else f"{counted(n, 'sample')} in {counted(k, 'cluster')}",
        version=__version__,
        method=type(model).__name__,
        n_samples=n,
        drawn=plot.counted_sample(min(n, plot.MOST_SAMPLES), n),
        complete=int(model.seen_.to_numpy().all(axis=1).sum()),
        moved=_moved(model),
        views=[_view(record) for record in model.views_],
        clusters=_clusters(model, frame),
        events=_events(model),
        shapes=[marker(shape) for shape in plot.MARKERS],
        figures=_figures(model, frame, number),
        flowing=plot.FLOWING,
        many=k > plot.MANY,
        number=number,
    )


def _number(model: FoldingEstimator) -> Suggestion | None:
    """Return how much each number of clusters stands out, in time that samples do not change."""
    from viewfold.selection import candidates, suggest_n_clusters

    numbers = candidates(model)
    return suggest_n_clusters(model, numbers) if len(numbers) > 1 else None


def _figures(
    model: FoldingEstimator, frame: pd.DataFrame, number: Suggestion | None
) -> dict[str, Any]:
    """Draw the figures, and say what they show to those who cannot see them."""
    from markupsafe import Markup

    n, k, views = len(frame), len(model.cluster_centers_), len(model.views_)
    clusters = counted(k, "cluster")
    drawn = plot.counted_sample(min(n, plot.MOST_SAMPLES), n)
    by_cluster = (5.2, 3.1) if k <= plot.MANY else (8.6, 2.8)
    figures = {
        "map": svg(
            lambda ax: plot.sample_map(model, ax),
            "map",
            (5.7, 4.9),
            f"Map of the samples ({drawn}) in {clusters}, similar samples next to each other.",
        ),
        "sizes": svg(
            lambda ax: plot.cluster_sizes(model, ax),
            "sizes",
            by_cluster,
            f"Bars: how many samples each of {clusters} has, as in the table of clusters.",
        ),
        "confidence": svg(
            lambda ax: plot.draw_confidence(frame, k, ax),
            "confidence",
            by_cluster,
            f"Lines: confidence of the samples in each of {clusters}.",
        ),
        "seen": svg(
            lambda ax: plot.views_seen(model, ax),
            "seen",
            (8.6, 2.3 + 0.22 * views),
            f"Bars and dots: which of {counted(views, 'view')} the samples are in.",
        ),
    }
    if any(record.agreement is not None for record in model.views_):
        figures["agreement"] = svg(
            lambda ax: plot.agreement(model, ax),
            "agreement",
            (5.2, 0.8 + 0.27 * views),
            "Bars: agreement of each view with those before it, as in the table of views.",
        )
    if views > 1:
        figures["flow"] = svg(
            lambda ax: plot.label_flow(model, ax),
            "flow",
            (max(8.6, 0.75 * views), 5.0),
            f"Ribbons: how samples went from cluster to cluster in {counted(views - 1, 'fold')}.",
        )
    if number is not None:
        figures["number"] = svg(
            lambda ax: number.plot(ax, now=k),
            "number",
            (8.6, 2.8),
            f"Line: scores of {min(number.scores)} to {max(number.scores)} clusters; "
            f"{number.best} has the highest.",
        )
    return {name: Markup(figure) for name, figure in figures.items()}


def _view(record: Any) -> dict[str, Any]:
    counts = ("n_samples", "n_features", "n_new", "n_shared", "n_empty", "n_missing", "agreement")
    return {"name": _printable(record.name), **{key: getattr(record, key) for key in counts}}


def _clusters(model: FoldingEstimator, frame: pd.DataFrame) -> list[dict[str, Any]]:
    means = frame.groupby("cluster")["confidence"].mean()
    return [
        {
            "name": _printable(model.cluster_names_.get(c, "")),
            "size": int(size),
            "share": size / len(frame),
            "confidence": means.get(c),
            "colour": plot.COLOURS[c % len(plot.COLOURS)],
            "shape": c % len(plot.MARKERS),
        }
        for c, size in enumerate(plot.sizes_of(model))
    ]


def _events(model: FoldingEstimator) -> list[dict[str, Any]]:
    """Return what happened to clusters, the latest first, as far as that is shown."""
    found = model.events_[::-1][:MOST_EVENTS].to_dict("records")
    return [
        {
            **event,
            "step": _printable(event["step"]),
            "before": ", ".join(map(str, event["before"])),
            "after": ", ".join(map(str, event["after"])),
        }
        for event in found
    ]


def _moved(model: FoldingEstimator) -> dict[str, Any] | None:
    """Count the samples that changed their cluster at the last step, of those known before."""
    history = model.history_.to_numpy()
    if history.shape[1] == 1:
        return None
    before, now = history[:, -2], history[:, -1]
    known = int(np.count_nonzero(before >= 0))
    moved = int(np.count_nonzero((before >= 0) & (before != now)))
    return {"count": moved, "share": moved / known if known else 0.0}


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
