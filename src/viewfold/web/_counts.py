"""What is counted over all samples, block by block: clusters, combinations of views, moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viewfold._util.types import Array
from viewfold.rows import Engine, RowSet
from viewfold.state.names import Transfers
from viewfold.state.state import State

STEPS = 24
"""How many of the latest steps are told of."""

FLOWING = 60
"""So many clusters, the largest, are on their own where samples move; others are together."""

OTHERS = -2
"""The number of clusters that are taken together."""

Flow = list[dict[str, int]]


@dataclass(frozen=True)
class Counts:
    """What is counted in one pass over all samples.

    Attributes
    ----------
    sizes : ndarray of int, shape (n_clusters,)
        Samples of each cluster.
    sure : ndarray of shape (n_clusters,)
        The mean confidence of each; NaN for clusters without samples.
    complete : int
        Samples that are in every view.
    patterns : list of (tuple of int, int)
        Combinations of views, and how many samples have each, the most frequent first.
    """

    sizes: NDArray[np.intp]
    sure: Array
    complete: int
    patterns: list[tuple[tuple[int, ...], int]]


def count(engine: Engine, state: State, labels: RowSet, sure: RowSet) -> Counts:
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


def moves(engine: Engine, state: State) -> list[Transfers]:
    """Count who went where, for the latest steps; the first of them is all that came before.

    Returns
    -------
    list of Transfers
        One for each of the last `STEPS` columns of the history: from the column before it, from −1
        (not seen) into the first.
    """
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
    """Return moves as a page tells them; only some clusters are on their own, if those are named.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.state.names import Transfers
    >>> from viewfold.web._counts import as_flow
    >>> moved = Transfers.of(np.array([0, 1, 2, -1]), np.array([0, 0, 1, 2]))
    >>> as_flow(moved, alone=[0])[-2:]
    [{'from': -1, 'to': -2, 'count': 1}, {'from': 0, 'to': 0, 'count': 1}]
    """
    before, after = moved.before, moved.after
    if alone is not None:
        before = np.where((before < 0) | np.isin(before, alone), before, OTHERS)
        after = np.where(np.isin(after, alone), after, OTHERS)
    total: Counter[tuple[int, int]] = Counter()
    for a, b, many in zip(before.tolist(), after.tolist(), moved.count.tolist(), strict=True):
        total[a, b] += many
    return [{"from": a, "to": b, "count": many} for (a, b), many in sorted(total.items())]


def on_their_own(sizes: NDArray[np.intp]) -> list[int] | None:
    """Return the largest clusters if there are too many to show where each sample went."""
    if sizes.size <= FLOWING:
        return None
    return [int(c) for c in np.sort(np.argsort(-sizes, kind="stable")[:FLOWING])]


def least_certain(engine: Engine, sure: RowSet, most: int) -> tuple[NDArray[np.intp], Array]:
    """Return row numbers and confidence of the least certain samples, the least certain first."""

    def first(certain: Array, numbers: Array) -> tuple[Array, Array]:
        if certain.size > most:
            at = np.flatnonzero(certain <= np.partition(certain, most - 1)[most - 1])
            certain, numbers = certain[at], numbers[at]
        order = np.lexsort((numbers, certain))[:most]
        return certain[order], numbers[order]

    def both(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        return first(np.append(a[0], b[0]), np.append(a[1], b[1]))

    certain, numbers = engine.reduce(first, sure, engine.numbers(sure), combine=both)
    return np.asarray(numbers, np.intp), certain
