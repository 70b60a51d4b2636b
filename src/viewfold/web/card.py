"""What notebooks show of a fitted model: a card with samples, views and clusters.

It is cheap, also for models whose rows live elsewhere: no map, and of very many samples only some
are looked at. Tables look as the notebook shows them, light or dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from viewfold._util.types import Array
from viewfold.app.words import counted
from viewfold.state.clusters import confidence, hangs_on
from viewfold.web.words import colour_of, shorten

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator

MOST_COUNTED = 10**6  # so many samples are all counted; of more, `SOME` are, and the card says so
SOME = 20_000  # the confidence of clusters is a mean over so many samples at most
SHOWN = 24  # how many views and clusters are listed


class _Seen(NamedTuple):
    """What is counted: samples of clusters and views, as shares, and mean confidence."""

    clusters: Array
    views: Array
    sure: Array
    complete: float
    exact: bool


def card(model: FoldingEstimator, diagram: str) -> str:
    """Return a card about a fitted model as HTML."""
    seen, names = _look(model), model.cluster_names_
    views = [
        (escape(shorten(record.name)), f"{record.n_features:,}", f"{100 * share:.0f} %")
        for record, share in list(zip(model.views_, seen.views, strict=True))[:SHOWN]
    ]
    clusters = []
    for c, (share, sure) in enumerate(zip(seen.clusters[:SHOWN], seen.sure, strict=False)):
        name = f"<b>{c}</b> {escape(shorten(names[c]))}" if c in names else f"<b>{c}</b>"
        size = f"{'' if seen.exact else '≈ '}{round(share * model.n_samples_):,}"
        certain = "–" if np.isnan(sure) else f"{sure:.2f}"
        dot = f'<span style="color:{colour_of(c)}">●</span>'
        clusters.append((dot, name, size, f"{100 * share:.0f} %", certain))
    about = "" if seen.exact else f", shares of {counted(SOME, 'sample')} among them"
    return (
        f"<div><b>{escape(type(model).__name__)}</b> {counted(model.n_samples_, 'sample')}, "
        f"{counted(len(seen.views), 'view')}, {counted(len(seen.clusters), 'cluster')}; "
        f"{100 * seen.complete:.0f} % in every view{about}"
        '<div style="display:flex;flex-wrap:wrap;gap:8px 32px;align-items:flex-start">'
        f"{_table(('view', 'features', 'samples'), views, len(seen.views))}"
        f"{_table(('', 'cluster', 'samples', '', 'confidence'), clusters, len(seen.clusters))}"
        f"</div><details><summary>Parameters</summary>{diagram}</details></div>"
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
    history, seen, rows, novelty, evidence = (
        engine.collect(engine.select(one, numbers))
        for one in (state.history, state.seen, state.embedding, state.novelty, state.evidence)
    )
    exact = n <= MOST_COUNTED
    counts = engine.reduce(work, state.history, state.seen) if exact else work(history, seen)
    shares = counts[:-1] / max(float(counts[-1]), 1)
    hangs = hangs_on(engine, state.clusters, state.directions, rows, evidence)
    certain = engine.collect(confidence(engine, state.clusters, rows, seen, novelty, hangs))
    own = history[:, -1]
    many = np.bincount(own, minlength=k)
    total = np.bincount(own, certain, minlength=k)
    sure = np.divide(total, many, out=np.full(k, np.nan), where=many > 0)
    return _Seen(shares[:k], shares[k:-1], sure, float(shares[-1]), exact)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], n: int) -> str:
    head = "".join(f"<th>{text}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    more = f"<div>and {n - len(rows):,} more</div>" if n > len(rows) else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div style="max-width:100%;overflow-x:auto">{table}{more}</div>'
