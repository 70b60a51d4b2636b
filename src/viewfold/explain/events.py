"""What happened to clusters between two steps or states: merged, split, born, vanished, grew.

How far the labels of two steps agree is the adjusted mutual information (AMI); the survival of
clusters is the share of their samples that are still together with most of their cluster.

Everything comes from one table, which counts the samples of each cluster before in each cluster
after. Numbers of clusters are not trusted: one that is free is given to another cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

from viewfold._util import constants
from viewfold._util.arguments import is_whole_number
from viewfold._util.types import Array, Ids
from viewfold.method.clusters import match
from viewfold.rows import Engine, LocalEngine, RowSet
from viewfold.state.log import Event, Log, standing
from viewfold.state.names import Transfers
from viewfold.state.state import State

# What can happen to clusters, in the order in which it is told.
KINDS = ("step", "novel", "merged", "split", "born", "vanished", "grew", "shrank", "renumbered")

# Labels of two steps agree so far that samples can be followed in a figure.
FOLLOWED = 0.6

# Of more samples, as many are compared by their shares: the AMI takes time for every sample.
MOST_COMPARED = 100_000


@dataclass(frozen=True)
class ClusterEvent:
    """What happened to clusters at a step."""

    # the entry of the log that the step is; None between two states that are compared
    entry: int | None
    step: str  # what the step is called
    kind: str  # one of `KINDS`
    before: tuple[int, ...]  # before, after: the clusters before the step, and after it
    after: tuple[int, ...]
    # how many samples it is about: of a step, those that moved; of clusters that merged, were split
    # or renumbered, those that went on together; of one that was born or vanished, all; of novel
    # samples that look like a group of their own, these; else how many more or fewer
    samples: int
    # of the samples that the clusters before had. Of novel ones, of all; of one that was born,
    # how much of it is new; of one that vanished, the largest part of it that is in one cluster now
    share: float
    agreement: float | None = None  # of a step: the AMI of labels before and after
    # the share of the samples of the clusters before that stayed with most of their cluster; of a
    # step, of all clusters
    survival: float | None = None

    @property
    def said(self) -> str:
        """What happened, in a sentence without its full stop."""

        def listed(clusters: tuple[int, ...]) -> str:
            words = [str(c) for c in clusters]
            return " and ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)

        before, after = listed(self.before), listed(self.after)
        many = f"{self.samples:,} sample{'' if self.samples == 1 else 's'}"
        share = f"{100 * self.share:.{0 if self.share >= 0.01 else 1}f} %"
        agreement = "" if self.agreement is None else f"; agreement {self.agreement:.2f}"
        text: str = {
            "step": f"{many} moved ({share}{agreement})",
            "novel": f"{many} look like a group of their own ({share})",
            "merged": f"clusters {before} merged into {after} ({many})",
            "split": f"cluster {before} split into {after} ({many})",
            "born": f"cluster {after} is new ({many}, {share} of them new)",
            "vanished": f"cluster {before} is no more ({many})",
            "grew": f"cluster {after} grew by {many} ({share})",
            "shrank": f"cluster {after} shrank by {many} ({share})",
            "renumbered": f"cluster {before} is called {after} now ({many})",
        }[self.kind]
        return text


def whole_story(
    engine: Engine, history: RowSet, steps: Sequence[int], names: Sequence[str], log: Log
) -> list[ClusterEvent]:
    """Return what happened to clusters and to novel samples, in one pass over the history."""
    told = [
        ClusterEvent(
            e.entry, f"{e.view} ({e.entry})", "novel", (), (), n, round(n / e.n_samples, 4)
        )
        for e in standing(log)
        if (n := e.n_novel)
    ]
    n_pairs = len(steps) - 1

    def count(block: Array) -> list[Transfers]:
        return [Transfers.of(block[:, i], block[:, i + 1]) for i in range(n_pairs)]

    def both(some: list[Transfers], others: list[Transfers]) -> list[Transfers]:
        return [a + b for a, b in zip(some, others, strict=True)]

    moves = engine.reduce(count, history, combine=both) if n_pairs > 0 else []
    for transfers, entry, name in zip(moves, steps[1:], names[1:], strict=True):
        step = _Step(transfers)
        moved = int(step.count[step.i != step.j].sum())
        if moved:
            share = round(moved / float(step.count.sum()), 4)
            facts = {"agreement": step.agreement(), "survival": step.survival()}
            told.append(ClusterEvent(entry, name, "step", (), (), moved, share, **facts))
        told += events_of(step, entry, name)
    return sorted(told, key=lambda event: (event.entry or 0, KINDS.index(event.kind)))


def opening_step(moves: Sequence[Transfers]) -> int:
    """Return the first step from which figures can follow samples to the next, or the last but one.

    `moves` are those between steps. The clusters of the first views may have little to do with
    those that several views make: nobody asked for that tangle.
    """
    for i, moved in enumerate(moves):
        agreement = _Step(moved).agreement()
        if agreement is None or agreement >= FOLLOWED or i == len(moves) - 1:
            return i
    return 0


def events_of(found: _Step, entry: int | None = None, step: str = "") -> list[ClusterEvent]:
    """Return what happened to clusters at one step, from the samples that each gave to which."""
    told = [
        ClusterEvent(entry, step, kind, old, new, n, round(share, 4), survival=found.survival(old))
        for kind, old, new, n, share in (*found.structure(), *found.sizes())
    ]
    return sorted(told, key=lambda event: KINDS.index(event.kind))


_Found = tuple[str, tuple[int, ...], tuple[int, ...], int, float]


class _Step:
    """The clusters before and after a step, and which of them goes on in which.

    A cluster goes on in the one that has more than half of its samples. A cluster in which none
    goes on is a part of the one that more than half of its samples came from. Single samples that
    moved hither and thither are put back first, as far as they can be told from the table.
    """

    def __init__(self, moved: Transfers) -> None:
        known = moved.before >= 0
        self.i, self.j, self.count = moved.before[known], moved.after[known], moved.count[known]
        k = int(max(moved.before.max(initial=-1), moved.after.max(initial=-1))) + 1
        self.before = np.bincount(self.i, self.count, minlength=k)
        self.new = np.bincount(moved.after[~known], moved.count[~known], minlength=k)
        self.after = np.bincount(self.j, self.count, minlength=k) + self.new
        self.most = np.zeros(k)  # of each cluster before, how many stayed together
        np.maximum.at(self.most, self.i, self.count)
        put_back = np.maximum(self.count - self._background() * self.before[self.i], 0.0)
        left = np.bincount(self.i, put_back, minlength=k)[self.i]
        self.went = put_back * self.before[self.i] / np.maximum(left, 1e-300)
        self.settled = np.bincount(self.j, self.went, minlength=k) + self.new
        # In which clusters each goes on, and which go on in each.
        self.links: dict[int, list[int]] = {}
        self.origins: dict[int, list[int]] = {}
        for a, b in self._goes_on():
            self.links.setdefault(a, []).append(b)
            self.origins.setdefault(b, []).append(a)

    def _background(self) -> float:
        """Return the share of a cluster that goes to each other one without anything happening.

        The median of what leaves clusters that lost little stands for all, to all others alike.
        """
        told, n_after = self.before >= constants.FEWEST, int(np.count_nonzero(self.after))
        leaves = 1 - self.most[told] / self.before[told]
        little = leaves[leaves < constants.SHRANK]
        return float(np.median(little)) / (n_after - 1) if n_after > 1 and little.size else 0.0

    def _goes_on(self) -> Iterator[tuple[int, int]]:
        """Yield each cluster with one that it goes on in: the one with most of it, or a part."""
        half, known = constants.GOES_ON, self.settled - self.new
        whole = self.went > half * self.before[self.i]
        taken = np.isin(self.j, self.j[whole])
        part = (
            ~taken
            & (self.went > half * known[self.j])
            & (
                (self.went > constants.PART * self.before[self.i])
                | (self.went > half * self.settled[self.j])
            )
        )
        which = whole | part
        yield from zip(self.i[which].tolist(), self.j[which].tolist(), strict=True)

    def structure(self) -> Iterator[_Found]:
        """Yield which clusters merged, were split, were born and vanished."""
        told_before, told_after = (
            set(np.flatnonzero(sizes >= constants.FEWEST).tolist())
            for sizes in (self.before, self.after)
        )
        for b, some in sorted(self.origins.items()):
            whole = tuple(a for a in some if a in told_before)
            if len(whole) > 1:
                yield "merged", whole, (b,), *self._together(whole, (b,))
        for a, ends in sorted(self.links.items()):
            parts = tuple(b for b in ends if b in told_after)
            if len(parts) > 1:
                yield "split", (a,), parts, *self._together((a,), parts)
        for b in sorted(told_after - self.origins.keys()):
            yield "born", (), (b,), int(self.after[b]), float(self.new[b] / self.after[b])
        for a in sorted(told_before - self.links.keys()):
            share = float(self.most[a] / self.before[a])
            yield "vanished", (a,), (), int(self.before[a]), share

    def sizes(self) -> Iterator[_Found]:
        """Yield which clusters that go on as one grew, shrank, or have another number."""
        alone = [
            (a, some[0])
            for a, some in sorted(self.links.items())
            if len(some) == 1
            and len(self.origins[some[0]]) == 1
            and self.before[a] >= constants.FEWEST
        ]
        ratios = [self.settled[b] / self.before[a] for a, b in alone]
        # If many samples came, all clusters grew: told is who grew more than the others.
        usual = max(1.0, float(np.quantile(ratios, 0.5, method="lower"))) if ratios else 1.0
        for a, b in alone:
            same = self._together((a,), (b,))
            if a != b:
                yield "renumbered", (a,), (b,), *same
            turnover = self.before[a] + self.after[b] - 2 * same[0]
            chance = constants.CHANCE * np.sqrt(turnover)
            more = self.settled[b] - self.before[a] * usual
            fewer = self.before[a] - self.settled[b]
            change = int(abs(self.after[b] - self.before[a]))
            told = change, float(change / self.before[a])
            if more > max(constants.GREW * usual * self.before[a], chance):
                yield "grew", (a,), (b,), *told
            elif fewer > max(constants.SHRANK * self.before[a], chance):
                yield "shrank", (a,), (b,), *told

    def survival(self, before: Sequence[int] | None = None) -> float | None:
        """Return the share of samples of clusters that stayed with most of their cluster."""
        which = slice(None) if before is None else list(before)
        total = float(self.before[which].sum())
        return round(float(self.most[which].sum()) / total, 4) if total else None

    def agreement(self) -> float | None:
        """Return the adjusted mutual information of the labels before and after."""
        total = int(self.count.sum())
        if not total:
            return None
        count = np.rint(self.count * min(1.0, MOST_COMPARED / total)).astype(np.intp)
        labels = np.repeat(self.i, count), np.repeat(self.j, count)
        return round(float(adjusted_mutual_info_score(*labels)), 4)

    def _together(self, before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, float]:
        both = np.isin(self.i, before) & np.isin(self.j, after)
        samples = int(self.count[both].sum())
        return samples, samples / float(self.before[list(before)].sum())


@dataclass(frozen=True)
class Difference:
    """What differs between two clusterings."""

    n_both: int  # n_both, n_gone, n_new: samples in both, only in the first, only in the second
    n_gone: int
    n_new: int
    n_moved: int  # of those in both, how many have another cluster
    adjusted_rand: float | None  # the adjusted Rand index of those in both; None if there are none
    # the cluster of the second that each of the first was matched with; None if numbers mean the
    # same in both
    numbers: dict[int, int] | None
    events: tuple[ClusterEvent, ...]  # what happened to clusters, in the numbers of each


def difference(
    old: tuple[Ids, NDArray[np.integer]],
    new: tuple[Ids, NDArray[np.integer]],
    *,
    same_numbers: bool = False,
) -> Difference:
    """Compare two clusterings."""
    known, labels = pd.Index(old[0]), np.asarray(new[1])
    place = known.get_indexer(pd.Index(new[0]))
    both = place >= 0
    before = np.where(both, np.asarray(old[1])[place], -1)
    a, b = before[both], labels[both]
    numbers = None
    if not same_numbers:  # those of `a` that have most in common with each of `b`, one to one
        k, here = int(max(a.max(initial=-1), b.max(initial=-1))) + 1, set(a.tolist())
        of_new = match(LocalEngine(), a, b, k).tolist() if k else []
        numbers = {i: j for i, j in sorted(zip(of_new, range(k), strict=True)) if i in here}
    went = a if numbers is None else np.array([numbers.get(c, -1) for c in a.tolist()])
    events = events_of(_Step(Transfers.of(before, labels)))
    return Difference(
        n_both=a.size,
        n_gone=known.size - a.size,
        n_new=labels.size - a.size,
        n_moved=int(np.count_nonzero(went != b)),
        adjusted_rand=float(adjusted_rand_score(a, b)) if a.size else None,
        numbers=numbers,
        events=tuple(e for e in events if same_numbers or e.kind != "renumbered"),
    )


def one_story(log: Log, other: Log) -> bool:
    """Tell whether clusters have the same numbers in two states: one log begins with the other."""
    short, long = sorted((log, other), key=len)
    # After all was forgotten, there was a first fold again.
    again = any(e.what == "fold" and e.n_new == e.n_samples for e in long[len(short) :])
    return bool(short) and long[: len(short)] == short and not again


def events_table(engine: Engine, state: State) -> pd.DataFrame:
    found = whole_story(engine, state.history, state.steps, state.step_names, state.log)
    names = [*(field.name for field in fields(ClusterEvent)), "said"]
    rows = [vars(event) | {"said": event.said} for event in found]
    frame = pd.DataFrame(rows, columns=names)
    return frame.astype({"agreement": float, "survival": float})


def log_table(log: Log) -> pd.DataFrame:
    names = [field.name for field in fields(Event)]
    frame = pd.DataFrame([asdict(event) for event in log], columns=names)
    counts = [name for name in names if name.startswith("n_")]
    return frame.astype(dict.fromkeys([*counts, "undoes"], "Int64")).set_index("entry")


def movers_table(ids: Ids, history: Array, steps: Sequence[int], entry: int) -> pd.DataFrame:
    if not is_whole_number(entry) or entry not in steps:
        raise ValueError(f"Entry {entry} moved nobody: entries that may are {list(steps)}.")
    i = steps.index(entry)
    after = history[:, i]
    before = history[:, i - 1] if i else after
    moved = (before >= 0) & (before != after)
    index = pd.Index(ids[moved], name="id")
    return pd.DataFrame({"before": before[moved], "after": after[moved]}, index=index)
