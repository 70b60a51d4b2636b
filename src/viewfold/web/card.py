"""What notebooks show of a fitted model: a card with samples, views and clusters.

It is cheap, also for models whose rows live elsewhere: no map, and of very many samples only some
are looked at. Styles are inline, and colours of text those of the notebook, light or dark.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from viewfold._util.types import Array
from viewfold.state.clusters import confidence
from viewfold.web.words import colour_of, counted, printable, shorten

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator

MOST_COUNTED = 10**6  # so many samples are all counted; of more, `SOME` are, and the card says so
SOME = 20_000  # the confidence of clusters is a mean over so many samples at most
SHOWN = 24  # how many views and clusters are listed
_LINE = "rgba(128,128,128,.35)"
_BAR = "rgba(128,128,128,.25)"
_PLAIN = "border:0;background:none;color:inherit"
_CELL = f"padding:2px 10px 2px 0;text-align:right;white-space:nowrap;{_PLAIN}"
_NAME = _CELL.replace("right", "left")


@dataclass(frozen=True)
class _Seen:
    """What is counted: samples of clusters and views, as shares, and mean confidence."""

    clusters: Array
    views: Array
    sure: Array
    complete: float
    exact: bool


def card(model: FoldingEstimator, diagram: str) -> str:
    """Return a card about a fitted model as HTML."""
    n, seen = model.n_samples_, _look(model)
    about = "" if seen.exact else f", shares of {counted(SOME, 'sample')} among them"
    sizes = (
        f"{counted(n, 'sample')}, {counted(len(seen.views), 'view')}, "
        f"{counted(len(seen.clusters), 'cluster')}; {100 * seen.complete:.0f} % in every view"
        f"{about}"
    )
    return (
        f'<div style="font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;'
        f'max-width:46rem;padding:10px 14px;border:1px solid {_LINE};border-radius:8px">'
        f'<div style="margin-bottom:8px"><b>{escape(type(model).__name__)}</b> {sizes}</div>'
        '<div style="display:flex;flex-wrap:wrap;gap:8px 32px;align-items:flex-start">'
        f"{_views(model, seen)}{_clusters(model, seen)}</div>"
        '<details style="margin-top:8px"><summary style="cursor:pointer">Parameters</summary>'
        f"{diagram}</details></div>"
    )


def _look(model: FoldingEstimator) -> _Seen:
    """Count, in one pass over labels and views, or over some samples."""
    engine, state = model._engine, model._fitted
    state = model._judged if state.n_samples <= MOST_COUNTED else state
    assert state.clusters is not None
    n, k = state.n_samples, state.clusters.n_clusters

    def work(history: Array, seen: Array) -> Array:
        labels = np.bincount(history[:, -1], minlength=k)
        everywhere = np.count_nonzero(seen.all(axis=1))
        return np.concatenate([labels, seen.sum(axis=0), [everywhere, len(seen)]])

    numbers: NDArray[np.intp] = np.linspace(0, n - 1, min(n, SOME)).astype(np.intp)
    history, seen, rows, novelty = (
        engine.collect(engine.select(one, numbers))
        for one in (state.history, state.seen, state.embedding, state.novelty)
    )
    exact = n <= MOST_COUNTED
    counts = engine.reduce(work, state.history, state.seen) if exact else work(history, seen)
    shares = counts[:-1] / max(float(counts[-1]), 1)
    certain = engine.collect(confidence(engine, state.clusters, rows, seen, novelty))
    own = history[:, -1]
    many = np.bincount(own, minlength=k)
    total = np.bincount(own, certain, minlength=k)
    sure = np.divide(total, many, out=np.full(k, np.nan), where=many > 0)
    return _Seen(shares[:k], shares[k:-1], sure, float(shares[-1]), exact)


def _views(model: FoldingEstimator, seen: _Seen) -> str:
    """Return the views, with bars for the share of samples that they have."""
    rows = []
    for record, share in list(zip(model.views_, seen.views, strict=True))[:SHOWN]:
        whole = escape(printable(record.name))
        name = escape(shorten(record.name))
        bar = (
            f'<div style="width:90px;height:9px;background:{_BAR};border-radius:5px">'
            f'<div style="width:{100 * share:.0f}%;height:9px;background:{colour_of(0)};'
            'border-radius:5px"></div></div>'
        )
        rows.append(
            f'<tr style="{_PLAIN}"><td style="{_NAME}" title="{whole}">{name}</td>'
            f'<td style="{_CELL}">{record.n_features:,}</td><td style="{_CELL}">{bar}</td>'
            f'<td style="{_CELL}">{100 * share:.0f} %</td></tr>'
        )
    return _table("view", "features", "", "samples", rows=rows, n=len(seen.views))


def _clusters(model: FoldingEstimator, seen: _Seen) -> str:
    """Return the clusters, with colours, names, sizes and confidence."""
    rows, names = [], model.cluster_names_
    for c, (share, sure) in enumerate(zip(seen.clusters[:SHOWN], seen.sure, strict=False)):
        dot = (
            '<span style="display:inline-block;width:9px;height:9px;border-radius:50%;'
            f'margin-right:6px;background:{colour_of(c)}"></span>'
        )
        name = f" {escape(shorten(names[c]))}" if c in names else ""
        size = f"{round(share * model.n_samples_):,}"
        rows.append(
            f'<tr style="{_PLAIN}"><td style="{_NAME}">{dot}<b>{c}</b>{name}</td>'
            f'<td style="{_CELL}">{size if seen.exact else f"≈ {size}"}</td>'
            f'<td style="{_CELL}">{100 * share:.0f} %</td>'
            f'<td style="{_CELL}">{"–" if np.isnan(sure) else f"{sure:.2f}"}</td></tr>'
        )
    heads = "cluster", "samples", "", "confidence"
    return _table(*heads, rows=rows, n=len(seen.clusters))


def _table(*heads: str, rows: list[str], n: int) -> str:
    """Return a small table; the first column is of names."""
    styles = [_NAME, *[_CELL] * (len(heads) - 1)]
    head = "".join(
        f'<th style="{style};font-weight:normal;opacity:.7">{text}</th>'
        for style, text in zip(styles, heads, strict=True)
    )
    more = f'<div style="opacity:.7">and {n - len(rows):,} more</div>' if n > len(rows) else ""
    return (
        '<div style="max-width:100%;overflow-x:auto">'
        f'<table style="border-collapse:collapse;margin:0;font-size:inherit;{_PLAIN}">'
        f'<thead style="{_PLAIN}"><tr style="{_PLAIN}">{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>{more}</div>"
    )
