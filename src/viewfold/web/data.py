"""The data of a page about a model: a summary, and a column of small numbers for every property.

Report, local server and notebook show the same data; docs/report.md says what is in it.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from viewfold._util.constants import FEWEST
from viewfold._util.types import Array
from viewfold._util.version import __version__
from viewfold.app.summaries import describe_hanging
from viewfold.app.words import counted
from viewfold.estimators.answers import ask_views
from viewfold.explain import ViewEffects, feature_table, variance_table
from viewfold.explain.events import opening_step
from viewfold.state.clusters import next_nearest
from viewfold.state.names import Transfers
from viewfold.store.queries import hanging_shares
from viewfold.web.counts import (
    STEPS,
    Counts,
    as_flow,
    count_moves,
    count_samples,
    largest_clusters,
    last_entry,
    summarize_changes,
)
from viewfold.web.layout import ModelRows, Points
from viewfold.web.words import clip_name, colour_of, printable, rounded

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator


FORMAT = 1  # the number of the present form of these data


@dataclass(frozen=True)
class PageData:
    """The data of a page."""

    summary: dict[str, Any]  # what can be written as JSON
    # A value for every point of the map, by name: little-endian numbers; ``ids``, where they are
    # let in, are UTF-8, one on each line, as `viewfold.web.words.as_line` writes it.
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
    """Return the data of a page about a model; `viewfold.report.render` says what the options do.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import ViewFold
    >>> from viewfold.web import page_data
    >>> model = ViewFold(3, random_state=0).fit(np.random.default_rng(0).normal(size=(60, 5)))
    >>> data = page_data(model)
    >>> data.summary["n"], sorted(data.columns)
    (60, ['cluster', 'confidence', 'coverage', 'novelty', 'x', 'y'])
    """
    check_is_fitted(model)
    model = model._snapshot()
    found = ModelFacts(model)
    # An entry that is not there is refused before the work is done.
    since_then = (
        None if since is None else summarize_changes(found.engine, found.state, since, found.alone)
    )
    points = Points.of(found, metadata, ids)
    k = found.counts.sizes.size
    columns = points.columns(k, ids)
    size = f"{counted(found.state.n_samples, 'sample')} in {counted(k, 'cluster')}"
    summary = {
        "format": FORMAT,
        "version": __version__,
        "title": printable(title or size),
        "method": type(model).__name__,
        **found.summary(points, ids),
        "since": since_then,
        "metadata": [one.facts for one in points.coloured],
        "notes": [*points.notes, *found.left_out()],
        "columns": {
            name: "text" if isinstance(column, bytes) else f"uint{8 * column.dtype.itemsize}"
            for name, column in columns.items()
        },
    }
    return PageData(summary, columns)


# How many of the latest events, frequent combinations and uncertain samples a page shows.
EVENTS, PATTERNS, UNCERTAIN = 50, 30, 50
# With more clusters, neither their stability nor their number is looked into: it takes minutes.
MANY = 100


class ModelFacts(ModelRows):
    """What a page shows of a model, from its rows."""

    def __init__(self, model: FoldingEstimator) -> None:
        super().__init__(model)
        self.model = model

    @cached_property
    def counts(self) -> Counts:
        return count_samples(self.engine, self.state, self.labels, self.sure)

    @cached_property
    def moves(self) -> list[Transfers]:
        return count_moves(self.engine, self.state)

    def moved(self) -> dict[str, Any] | None:
        """Count the samples that changed their cluster at the last step, of those known before."""
        if len(self.state.steps) < 2:
            return None
        last = self.moves[-1]
        known = last.before >= 0
        n_known = int(last.count[known].sum())
        moved = int(last.count[known & (last.before != last.after)].sum())
        share = moved / n_known if n_known else 0.0
        step = clip_name(self.state.step_names[-1])
        return {"count": moved, "share": rounded(share), "step": step}

    def clusters(self, points: Points) -> list[dict[str, Any]]:
        """Return what is known of each cluster."""
        sizes, n = self.counts.sizes, self.state.n_samples
        stable, trusted = self._stability(sizes.size)
        names, tags = self.state.cluster_names, points.tags(sizes.size)
        found = []
        for c, size in enumerate(sizes.tolist()):
            found.append(
                {
                    "number": c,
                    "name": printable(names[c]) if c in names else None,
                    "size": size,
                    "share": rounded(size / n),
                    "confidence": rounded(float(self.counts.sure[c])),
                    "stability": rounded(stable[c]),
                    "trusted": None if np.isnan(stable[c]) else trusted[c],
                    "colour": colour_of(c),
                    **dict(zip("xy", tags.get(c, (None, None)), strict=True)),
                }
            )
        return found

    def _stability(self, k: int) -> tuple[list[float], list[bool]]:
        """Return the stability of each cluster, NaN if it is not known, and who is trusted."""
        if self.state.n_samples < FEWEST or k > MANY:
            return [np.nan] * k, [False] * k
        found = self.model.stability()
        return found["stability"].tolist(), found["trusted"].tolist()

    def views(self, variance: pd.DataFrame | None) -> list[dict[str, Any]]:
        """Return what is known of each view."""
        names = "n_samples", "n_features", "n_new", "n_shared", "n_empty", "n_missing"
        found = []
        for record in self.state.views:
            counts = {name: int(getattr(record, name)) for name in names}
            share: dict[str, Any] = dict.fromkeys(("consensus", "explained", "by_cluster"))
            if variance is not None and record.name in variance.index:
                consensus, clusters, *each = variance.loc[record.name].tolist()
                share = {"consensus": rounded(consensus), "explained": rounded(clusters)}
                share["by_cluster"] = [rounded(one) for one in each]
            agreement = rounded(record.agreement)
            found.append(
                {"name": clip_name(record.name), **counts, "agreement": agreement, **share}
            )
        return found

    def coverage(self) -> dict[str, Any]:
        shown, rest = self.counts.patterns[:PATTERNS], self.counts.patterns[PATTERNS:]
        others = {"patterns": len(rest), "count": sum(many for _, many in rest)} if rest else None
        return {
            "patterns": [{"views": list(views), "count": many} for views, many in shown],
            "others": others,
        }

    def hanging(self) -> str | None:
        """Say how many labels hang on one view."""
        found: Counter[int] = self.engine.reduce(
            lambda block: Counter(block[:, 0].tolist()), self.hangs, combine=lambda a, b: a + b
        )
        shares = hanging_shares(found, [clip_name(name) for name in self.state.names])
        return describe_hanging(shares, private=not self.model.keep_encoders)

    def uncertain(self, points: Points, name_ids: bool) -> list[dict[str, Any]]:
        """Return the samples whose cluster is least certain."""
        assert self.state.clusters is not None
        every = self.engine.collect(self.sure)
        numbers = every.argsort(kind="stable")[:UNCERTAIN]
        sure = every[numbers]
        labels, rows = self.take(self.labels, numbers), self.take(self.state.embedding, numbers)
        other = self.engine.collect(next_nearest(self.engine, self.state.clusters, rows, labels))
        ids = self.take(self.state.ids, numbers).tolist() if name_ids else [None] * numbers.size
        return [
            {
                "point": point,
                "id": None if name is None else clip_name(str(name)),
                "cluster": int(own),
                "next": int(second) if second >= 0 else None,
                "confidence": rounded(float(certain)),
            }
            for point, name, own, second, certain in zip(
                points.at(numbers), ids, labels, other, sure, strict=True
            )
        ]

    @property
    def alone(self) -> list[int] | None:
        """The clusters that are on their own where samples move; None for all."""
        return largest_clusters(self.counts.sizes)

    def summary(self, points: Points, name_ids: bool) -> dict[str, Any]:
        """Return what a page shows of samples, clusters and views."""
        features, variance = summarize_features(self.model)
        state, k = self.state, self.counts.sizes.size
        return {
            "n": state.n_samples,
            "n_drawn": points.numbers.size,
            "complete": self.counts.complete,
            "entry": last_entry(state),
            "when": state.log[-1].time.isoformat() if state.log else None,
            "moved": self.moved(),
            "clusters": self.clusters(points),
            "views": self.views(variance),
            "steps": [clip_name(name) for name in state.step_names[-STEPS:]],
            "earlier_steps": max(0, len(state.steps) - STEPS),
            "opening_step": opening_step(self.moves[1:]),
            "flow": [as_flow(moved, self.alone) for moved in self.moves],
            "events": events(self.model),
            "coverage": self.coverage(),
            "hanging": self.hanging(),
            "features": features,
            "uncertain": self.uncertain(points, name_ids),
            "number": number(self.model) if k <= MANY else None,
        }

    def left_out(self) -> list[str]:
        """Say what is not computed for models that are very small, or have very many clusters."""
        if self.counts.sizes.size > MANY:
            return [
                f"With more than {MANY} clusters, their stability and other numbers of clusters "
                "are not shown: viewfold status --stability and viewfold suggest take minutes, "
                "and tell."
            ]
        few = self.state.n_samples < FEWEST
        return [f"Stability is not known for fewer than {FEWEST} samples."] if few else []


def events(model: FoldingEstimator) -> list[dict[str, Any]]:
    """Return what happened to clusters, the latest first, as many as a page shows."""
    found = model.events_[::-1][:EVENTS].to_dict("records")
    return [
        {
            "step": clip_name(event["step"]),
            "entry": None if event["entry"] is None else int(event["entry"]),
            "kind": event["kind"],
            "before": [int(c) for c in event["before"]],
            "after": [int(c) for c in event["after"]],
            "count": int(event["samples"]),
            "share": rounded(event["share"]),
            "text": event["said"][:1].upper() + event["said"][1:],
        }
        for event in found
    ]


def number(model: FoldingEstimator) -> dict[str, Any] | None:
    """Return how much each number of clusters stands out, in time that samples do not change."""
    from viewfold.estimators.selection import candidates, suggest_n_clusters

    numbers = candidates(model)
    if len(numbers) < 2:
        return None
    found = suggest_n_clusters(model, numbers)
    return {
        "scores": [[k, rounded(score)] for k, score in found.scores.items()],
        "best": found.best,
        "now": len(model.cluster_centers_),
        "stands_out": found.stands_out,
    }


TOP = 10  # how many features are named for each cluster
MOST = 2000  # how many are named in all: fewer for each where there are very many clusters
HEAT = 60  # how many rows the heat map has


def summarize_features(model: FoldingEstimator) -> tuple[dict[str, Any], pd.DataFrame | None]:
    """Return what features tell about the clusters, and how much of each view is explained."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            tellers = ask_views(model, None)
        except ValueError as error:
            return {"top": [], "heat": None, "note": str(error)}, None
    notes = [str(one.message) for one in said]
    state = model._fitted
    assert state.clusters is not None
    k = state.clusters.n_clusters
    top = max(1, min(TOP, MOST // k))
    table = feature_table(tellers, range(k), top)
    few = sorted(set.intersection(*(set(one.too_few()) for one in tellers)))
    if few:
        shown = ", ".join(map(str, few[:20])) + (", …" if len(few) > 20 else "")
        notes.append(f"Clusters with fewer than ten samples in a view are left out: {shown}.")
    features = {
        "top": [_row(row) for row in table.to_dict("records")],
        "heat": _heat(tellers),
        "note": " ".join(notes) or None,
    }
    return features, variance_table(model._engine, state, tellers)


def _row(row: dict[Any, Any]) -> dict[str, Any]:
    names = {name: clip_name(str(row[name])) for name in ("view", "feature")}
    numbers = {name: rounded(row[name]) for name in ("mean", "overall_mean", "effect")}
    return {"cluster": int(row["cluster"]), **names, **numbers, "rank": int(row["rank"])}


def _heat(tellers: Sequence[ViewEffects]) -> dict[str, Any] | None:
    """Return the effects of the strongest features of each cluster in all clusters."""
    effects = np.concatenate([one.effects for one in tellers], axis=1)
    chosen = _strongest(effects)
    if not chosen.size:
        return None
    starts = np.cumsum([0, *(one.effects.shape[1] for one in tellers)])
    rows = []
    for at in chosen.tolist():
        which = int(np.searchsorted(starts, at, side="right")) - 1
        one = tellers[which]
        name = clip_name(str(one.names[at - int(starts[which])]))
        rows.append({"view": clip_name(one.view.name), "feature": name})
    return {
        "rows": rows,
        "effects": [[rounded(float(e)) for e in effects[:, at]] for at in chosen.tolist()],
    }


def _strongest(effects: Array) -> Array:
    """Return columns by turns: the strongest of each cluster, then the second of each, and so on.

    They are in the order of the cluster for which each is strongest, so that a heat map has blocks.
    """
    size = np.nan_to_num(np.abs(effects), nan=-1.0)
    depth = min(HEAT, size.shape[1])
    best = np.argsort(-size, axis=1, kind="stable")[:, :depth]
    chosen: dict[int, None] = {}
    for rank in range(depth):
        for cluster in range(len(size)):
            at = int(best[cluster, rank])
            if size[cluster, at] > 0 and len(chosen) < HEAT:
                chosen.setdefault(at)
    columns = np.fromiter(chosen, np.intp, len(chosen))
    strongest = size[:, columns]
    order = np.lexsort((columns, -strongest.max(axis=0, initial=0), strongest.argmax(axis=0)))
    return np.asarray(columns[order])


def changes_since(model: FoldingEstimator, since: int) -> dict[str, Any] | None:
    """Return what changed since an entry of the log; None if nothing was known then."""
    state = model._fitted
    if not state.steps or since < state.steps[0]:
        return None
    found = summarize_changes(model._engine, state, since, None)
    assert found is not None
    later = [one for one in events(model) if one["entry"] is not None and one["entry"] > since]
    return {**found, "events": later}


def with_new_names(data: PageData, model: FoldingEstimator) -> PageData | None:
    """Return a page with other names of clusters; None if more than these changed since.

    A map and the stability of clusters take a while for many samples, and a name changes neither.
    """
    log, known = model._fitted.log, data.summary["entry"]
    later = [event for event in log if event.entry > known]
    before = [event for event in log if event.entry == known]
    same = [event.time.isoformat() for event in before] == [data.summary["when"]]
    if not same or not later or any(event.what != "rename" for event in later):
        return None
    names = {number: printable(name) for number, name in model.cluster_names_.items()}
    clusters = [{**one, "name": names.get(one["number"])} for one in data.summary["clusters"]]
    last = {"entry": later[-1].entry, "when": later[-1].time.isoformat()}
    return replace(data, summary={**data.summary, **last, "clusters": clusters})
