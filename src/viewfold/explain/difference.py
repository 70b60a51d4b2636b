"""What differs between two clusterings of the same samples: who moved, what became of clusters.

Their clusters may be numbered in different ways: then numbers are matched first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from viewfold._util.types import Ids
from viewfold.explain.events import ClusterEvent, events_of
from viewfold.method.clusters import match
from viewfold.rows import LocalEngine
from viewfold.state.log import Log
from viewfold.state.transfers import Transfers


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
    numbers = None if same_numbers else _matched(a, b)
    went = a if numbers is None else np.array([numbers.get(c, -1) for c in a.tolist()])
    events = events_of(Transfers.of(before, labels))
    return Difference(
        n_both=a.size,
        n_gone=known.size - a.size,
        n_new=labels.size - a.size,
        n_moved=int(np.count_nonzero(went != b)),
        adjusted_rand=float(adjusted_rand_score(a, b)) if a.size else None,
        numbers=numbers,
        events=tuple(e for e in events if same_numbers or e.kind != "renumbered"),
    )


def _matched(a: NDArray[np.integer], b: NDArray[np.integer]) -> dict[int, int]:
    """Return the cluster of `b` that each of `a` has most in common with, one to one."""
    k = int(max(a.max(initial=-1), b.max(initial=-1))) + 1
    of_new = match(LocalEngine(), a, b, k) if k else np.empty(0, np.intp)
    here = set(np.unique(a).tolist())
    return {int(i): j for j, i in sorted(enumerate(of_new), key=lambda x: x[1]) if int(i) in here}


def one_story(log: Log, other: Log) -> bool:
    """Tell whether clusters have the same numbers in two states, as far as they are the same.

    They have if one log is the beginning of the other, unless all was forgotten in between: then
    there was a first fold again.
    """
    short, long = sorted((log, other), key=len)
    again = any(e.what == "fold" and e.n_new == e.n_samples for e in long[len(short) :])
    return bool(short) and long[: len(short)] == short and not again
