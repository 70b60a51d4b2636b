"""What a page tells of a model: clusters, views, what happened, who is least certain."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from viewfold._util.constants import FEWEST
from viewfold.state.clusters import next_nearest
from viewfold.state.names import Transfers
from viewfold.web import _counts
from viewfold.web._features import explained
from viewfold.web._points import Points, Rows
from viewfold.web._since import changed, last_entry
from viewfold.web.palette import colour_of
from viewfold.web.words import counted, named, printable, told

if TYPE_CHECKING:
    import pandas as pd

    from viewfold.estimators import FoldingEstimator

EVENTS, PATTERNS, UNCERTAIN = 50, 30, 50
"""How many of the latest events, frequent combinations and uncertain samples are told."""

MANY = 100
"""With more clusters, neither their stability nor their number is looked into: it takes minutes."""


class Found(Rows):
    """What a page tells of a model, from its rows."""

    def __init__(self, model: FoldingEstimator) -> None:
        super().__init__(model)
        self.model = model

    @cached_property
    def counts(self) -> _counts.Counts:
        return _counts.count(self.engine, self.state, self.labels, self.sure)

    @cached_property
    def moves(self) -> list[Transfers]:
        return _counts.moves(self.engine, self.state)

    def moved(self) -> dict[str, Any] | None:
        """Count the samples that changed their cluster at the last step, of those known before."""
        if len(self.state.steps) < 2:
            return None
        last = self.moves[-1]
        known = last.before >= 0
        n_known = int(last.count[known].sum())
        moved = int(last.count[known & (last.before != last.after)].sum())
        share = moved / n_known if n_known else 0.0
        step = named(self.state.step_names[-1])
        return {"count": moved, "share": told(share), "step": step}

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
                    "share": told(size / n),
                    "confidence": told(float(self.counts.sure[c])),
                    "stability": told(stable[c]),
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
                share = {"consensus": told(consensus), "explained": told(clusters)}
                share["by_cluster"] = [told(one) for one in each]
            agreement = told(record.agreement)
            found.append({"name": named(record.name), **counts, "agreement": agreement, **share})
        return found

    def coverage(self) -> dict[str, Any]:
        """Return which combinations of views there are."""
        shown, rest = self.counts.patterns[:PATTERNS], self.counts.patterns[PATTERNS:]
        others = {"patterns": len(rest), "count": sum(many for _, many in rest)} if rest else None
        return {
            "patterns": [{"views": list(views), "count": many} for views, many in shown],
            "others": others,
        }

    def uncertain(self, points: Points, name_ids: bool) -> list[dict[str, Any]]:
        """Return the samples whose cluster is least certain."""
        assert self.state.clusters is not None
        numbers, sure = _counts.least_certain(self.engine, self.sure, UNCERTAIN)
        labels, rows = self.taken(self.labels, numbers), self.taken(self.state.embedding, numbers)
        other = self.engine.collect(next_nearest(self.engine, self.state.clusters, rows, labels))
        ids = self.taken(self.state.ids, numbers).tolist() if name_ids else [None] * numbers.size
        return [
            {
                "point": points.at(int(number)),
                "id": None if name is None else named(str(name)),
                "cluster": int(own),
                "next": int(second) if second >= 0 else None,
                "confidence": told(float(certain)),
            }
            for number, name, own, second, certain in zip(
                numbers, ids, labels, other, sure, strict=True
            )
        ]

    def size(self) -> str:
        """Say how large the model is."""
        n, k = self.state.n_samples, self.counts.sizes.size
        return f"{counted(n, 'sample')} in {counted(k, 'cluster')}"

    def since(self, entry: int | None) -> dict[str, Any] | None:
        """Return what changed since an entry of the log."""
        return None if entry is None else changed(self.engine, self.state, entry, self.alone)

    @property
    def alone(self) -> list[int] | None:
        """The clusters that are on their own where samples move; None for all."""
        return _counts.on_their_own(self.counts.sizes)

    def summary(self, points: Points, name_ids: bool) -> dict[str, Any]:
        """Return what is told of samples, clusters and views."""
        features, variance = explained(self.model)
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
            "steps": [named(name) for name in state.step_names[-_counts.STEPS :]],
            "earlier_steps": max(0, len(state.steps) - _counts.STEPS),
            "flow": [_counts.as_flow(moved, self.alone) for moved in self.moves],
            "events": events(self.model),
            "coverage": self.coverage(),
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
    """Return what happened to clusters, the latest first, as far as that is told."""
    found = model.events_[::-1][:EVENTS].to_dict("records")
    return [
        {
            "step": named(event["step"]),
            "entry": None if event["entry"] is None else int(event["entry"]),
            "kind": event["kind"],
            "before": [int(c) for c in event["before"]],
            "after": [int(c) for c in event["after"]],
            "count": int(event["samples"]),
            "share": told(event["share"]),
            "text": _said(event),
        }
        for event in found
    ]


def _said(event: Mapping[str, Any]) -> str:
    """Say what happened."""

    def listed(clusters: tuple[int, ...]) -> str:
        numbers = ", ".join(map(str, clusters[:-1]))
        several = f"clusters {numbers} and {clusters[-1]}" if numbers else ""
        return several or f"cluster {clusters[0]}"

    kind, before, after = event["kind"], event["before"], event["after"]
    many, share = counted(int(event["samples"]), "sample"), f"{100 * event['share']:.0f} %"
    sentences = {
        "merged": lambda: f"{listed(before)} became {listed(after)} ({many})",
        "split": lambda: f"{listed(before)} became {listed(after)} ({many})",
        "born": lambda: f"{listed(after)} is new ({many}, {share} of them new)",
        "vanished": lambda: f"{listed(before)} is no more ({many})",
        "grew": lambda: f"{listed(after)} grew by {many} ({share})",
        "shrank": lambda: f"{listed(after)} shrank by {many} ({share})",
        "renumbered": lambda: f"{listed(before)} is called {listed(after)} now ({many})",
    }
    text: str = sentences[kind]()
    return text[0].upper() + text[1:]


def number(model: FoldingEstimator) -> dict[str, Any] | None:
    """Return how much each number of clusters stands out, in time that samples do not change."""
    from viewfold.estimators.selection import candidates, suggest_n_clusters

    numbers = candidates(model)
    if len(numbers) < 2:
        return None
    found = suggest_n_clusters(model, numbers)
    return {
        "scores": [[k, told(score)] for k, score in found.scores.items()],
        "best": found.best,
        "now": len(model.cluster_centers_),
        "stands_out": found.stands_out,
    }
