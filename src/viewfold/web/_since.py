"""What changed since an entry of the log: who is new, who moved, who is gone."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np

from viewfold._util.types import Array
from viewfold.rows import Engine
from viewfold.state.names import Transfers
from viewfold.state.state import State
from viewfold.web._counts import as_flow
from viewfold.web.words import counted, named, told


def last_entry(state: State) -> int:
    """Return the last entry of the log."""
    return state.log[-1].entry if state.log else max(state.steps, default=0)


def changed(
    engine: Engine, state: State, entry: int, alone: list[int] | None
) -> dict[str, Any] | None:
    """Return what changed since an entry of the log, from the history of labels.

    Parameters
    ----------
    engine : Engine
        Computes with the rows.
    state : State
        The state.
    entry : int
        An entry of the log; what was done by it is not counted.
    alone : list of int or None
        See `viewfold.web._counts.as_flow`.

    Returns
    -------
    dict
        ``new``, ``moved``, ``gone`` and so on.

    Raises
    ------
    ValueError
        If there is no such entry, or nothing is left of the labels of then.
    """
    events = {event.entry: event for event in state.log}
    column = bisect_right(state.steps, entry) - 1
    if (events and entry not in events) or entry > last_entry(state) or column < 0:
        first = max(state.steps[0], min(events, default=0))
        raise ValueError(
            f"since={entry!r}: labels are known from entry {first} to "
            f"{last_entry(state)} of the log. Name one of these."
        )

    def work(history: Array, added: Array) -> Transfers:
        before = np.where(added <= entry, history[:, column], -1)
        return Transfers.of(before, history[:, -1])

    found: Transfers = engine.reduce(work, state.history, state.added, combine=lambda a, b: a + b)
    known = found.before >= 0
    new, stayed = int(found.count[~known].sum()), int(found.count[known].sum())
    moved = int(found.count[known & (found.before != found.after)].sum())
    event = events.get(entry)
    gone = 0 if event is None else max(0, event.n_samples + new - state.n_samples)
    share = moved / stayed if stayed else 0.0
    where = f"entry {entry}" if event is None else named(str(event))
    text = (
        f"Since {where}: {counted(new, 'new sample')}, {moved:,} moved to another cluster "
        f"({100 * share:.1f} %), {gone:,} gone."
    )
    if any(e.undoes is not None and e.undoes <= entry < e.entry for e in state.log):
        text += " Some of what was done by then was taken back: samples are compared with before."
    return {
        "entry": entry,
        "when": None if event is None else f"{event.time:%Y-%m-%d}",
        **{"new": new, "moved": moved, "gone": gone, "share": told(share)},
        "flow": as_flow(found, alone),
        "text": text,
    }
