"""What is counted over all samples, block by block: clusters, combinations of views, moves.

And what changed since an entry of the log: who is new, who moved, who is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewfold._util.types import Array
from viewfold.app.states import transfers_since
from viewfold.app.words import counted
from viewfold.rows import Engine, RowSet
from viewfold.state.names import Transfers
from viewfold.state.state import State
from viewfold.web.words import clip_name, rounded

STEPS = 24  # how many of the latest steps a page shows
# So many clusters, the largest, are on their own where samples move; others are together.
FLOWING = 60
OTHERS = -2  # the number of clusters that are taken together
Flow = list[dict[str, int]]


@dataclass(frozen=True)
class Counts:
    """What is counted in one pass over all samples."""

    sizes: NDArray[np.intp]  # samples of each cluster
    sure: Array  # the mean confidence of each; NaN for clusters without samples
    complete: int  # samples that are in every view
    # Combinations of views, and how many samples have each, the most frequent first.
    patterns: list[tuple[tuple[int, ...], int]]


def count_samples(engine: Engine, state: State, labels: RowSet, sure: RowSet) -> Counts:
    """Count clusters, confidence and combinations of views."""
    assert state.clusters is not None
    k, n_views = state.clusters.n_clusters, len(state.views)

    def work(own: Array, certain: Array, seen: Array) -> tuple[Array, Array, Counter[bytes]]:
        sizes = np.bincount(own, minlength=k)
        total = np.bincount(own, np.nan_to_num(certain), minlength=k)
        packed = np.ascontiguousarray(np.packbits(seen, axis=1))
        keys, many = np.unique(
            packed.view(np.dtype((np.void, packed.shape[1]))).ravel(), return_counts=True
        )
        found = [key.tobytes() for key in keys]
        return sizes, total, Counter(dict(zip(found, many.tolist(), strict=True)))

    def both(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(one + other for one, other in zip(a, b, strict=True))

    sizes, total, found = engine.reduce(work, labels, sure, state.seen, combine=both)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = total / sizes

    def views(key: bytes) -> tuple[int, ...]:
        bits = np.unpackbits(np.frombuffer(key, np.uint8), count=n_views)
        return tuple(np.flatnonzero(bits).tolist())

    patterns = [(views(key), many) for key, many in found.items()]
    patterns.sort(key=lambda one: (-one[1], one[0]))
    complete = sum(many for of, many in patterns if len(of) == n_views)
    return Counts(np.asarray(sizes, np.intp), means, int(complete), patterns)


def count_moves(engine: Engine, state: State) -> list[Transfers]:
    """Count who went where, for the latest steps; the first of them is all that came before."""
    n_steps = len(state.steps)
    shown = range(max(0, n_steps - STEPS), n_steps)

    def work(history: Array) -> list[Transfers]:
        nobody = np.full(len(history), -1)
        starts = [nobody, *(history[:, i] for i in shown[:-1])]
        return [Transfers.of(a, history[:, i]) for a, i in zip(starts, shown, strict=True)]

    def both(some: list[Transfers], others: list[Transfers]) -> list[Transfers]:
        return [a + b for a, b in zip(some, others, strict=True)]

    found: list[Transfers] = engine.reduce(work, state.history, combine=both)
    return found


def as_flow(moved: Transfers, alone: Sequence[int] | None) -> Flow:
    """Return moves as a page shows them; if `alone` names clusters, the others are one."""
    before, after = moved.before, moved.after
    if alone is not None:
        before = np.where((before < 0) | np.isin(before, alone), before, OTHERS)
        after = np.where(np.isin(after, alone), after, OTHERS)
    total: Counter[tuple[int, int]] = Counter()
    for a, b, many in zip(before.tolist(), after.tolist(), moved.count.tolist(), strict=True):
        total[a, b] += many
    return [{"from": a, "to": b, "count": many} for (a, b), many in sorted(total.items())]


def largest_clusters(sizes: NDArray[np.intp]) -> list[int] | None:
    """Return the largest clusters if there are too many to show where each sample went."""
    if sizes.size <= FLOWING:
        return None
    return [int(c) for c in np.sort(np.argsort(-sizes, kind="stable")[:FLOWING])]


def last_entry(state: State) -> int:
    return state.log[-1].entry if state.log else max(state.steps, default=0)


def summarize_changes(
    engine: Engine, state: State, entry: int, alone: list[int] | None
) -> dict[str, Any]:
    """Return what changed since an entry of the log, from the history of labels."""
    events = {event.entry: event for event in state.log}
    unknown = (events and entry not in events) or entry > last_entry(state)
    found = None if unknown else transfers_since(engine, state, entry)
    if found is None:
        first = max(state.steps[0], min(events, default=0))
        raise ValueError(
            f"since={entry!r}: labels are known from entry {first} to "
            f"{last_entry(state)} of the log. Name one of these."
        )
    known = found.before >= 0
    new, stayed = int(found.count[~known].sum()), int(found.count[known].sum())
    moved = int(found.count[known & (found.before != found.after)].sum())
    event = events.get(entry)
    gone = 0 if event is None else max(0, event.n_samples + new - state.n_samples)
    share = moved / stayed if stayed else 0.0
    where = f"entry {entry}" if event is None else clip_name(str(event))
    text = (
        f"Since {where}: {counted(new, 'new sample')}, {moved:,} moved to another cluster "
        f"({100 * share:.1f} %), {gone:,} gone."
    )
    if any(e.undoes is not None and e.undoes <= entry < e.entry for e in state.log):
        text += " Some of what was done by then was taken back: samples are compared with before."
    return {
        "entry": entry,
        "when": None if event is None else f"{event.time:%Y-%m-%d}",
        **{"new": new, "moved": moved, "gone": gone, "share": rounded(share)},
        "flow": as_flow(found, alone),
        "text": text,
    }
