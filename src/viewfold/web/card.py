"""What notebooks show of a fitted model: a card with samples, views and clusters.

It has no map, and of very many samples only what takes no pass over them. Tables look as the
notebook shows them, light or dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from viewfold.app.words import counted
from viewfold.web.counts import count_samples
from viewfold.web.layout import ModelRows
from viewfold.web.words import colour_of, shorten

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator

MOST_COUNTED = 10**6  # samples; of more, the card counts none
SHOWN = 24  # how many views and clusters are listed


def card(model: FoldingEstimator, diagram: str) -> str:
    """Return a card about a fitted model as HTML."""
    state, names = model._fitted, model.cluster_names_
    assert state.clusters is not None
    n, n_clusters = state.n_samples, state.clusters.n_clusters
    heads: tuple[str, ...] = ("view", "features")
    tables = complete = ""
    views: list[tuple[str, ...]]
    views = [(escape(shorten(one.name)), f"{one.n_features:,}") for one in state.views[:SHOWN]]
    if n <= MOST_COUNTED:
        rows = ModelRows(model)
        counts = count_samples(rows.engine, state, rows.labels, rows.sure)
        complete = f"; {100 * counts.complete / n:.0f} % in every view"
        heads = (*heads, "samples")
        seen = np.zeros(len(state.views), int)
        for which, many in counts.patterns:
            seen[list(which)] += many
        views = [(*row, f"{100 * many / n:.0f} %") for row, many in zip(views, seen, strict=False)]
        clusters = []
        for c, (size, sure) in enumerate(zip(counts.sizes[:SHOWN], counts.sure, strict=False)):
            name = f"<b>{c}</b> {escape(shorten(names[c]))}" if c in names else f"<b>{c}</b>"
            dot = f'<span style="color:{colour_of(c)}">●</span>'
            certain = "–" if np.isnan(sure) else f"{sure:.2f}"
            clusters.append((dot, name, f"{size:,}", f"{100 * size / n:.0f} %", certain))
        tables = _table(("", "cluster", "samples", "", "confidence"), clusters, n_clusters)
    return (
        f"<div><b>{escape(type(model).__name__)}</b> {counted(n, 'sample')}, "
        f"{counted(len(state.views), 'view')}, {counted(n_clusters, 'cluster')}{complete}"
        '<div style="display:flex;flex-wrap:wrap;gap:8px 32px;align-items:flex-start">'
        f"{_table(heads, views, len(state.views))}{tables}"
        f"</div><details><summary>Parameters</summary>{diagram}</details></div>"
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], n: int) -> str:
    head = "".join(f"<th>{text}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    more = f"<div>and {n - len(rows):,} more</div>" if n > len(rows) else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div style="max-width:100%;overflow-x:auto">{table}{more}</div>'
