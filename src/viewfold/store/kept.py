"""The states that a file can be returned to: which there are, and what returning to one takes back.

Each is a whole state with a log of its own, which is the beginning of the log of now. Damage in one
hinders neither the others nor the state of now.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewfold.errors import DamagedFileError, StateFileError
from viewfold.state.log import FINAL, Log, standing, undoable
from viewfold.store.kinds import store_of

StrPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Kept:
    """A state that a file can be returned to.

    Attributes
    ----------
    schema : str
        Where it is in the file.
    log : tuple of Event or None
        Its log; None if that is damaged.
    wrong : str
        Then, what is wrong with it.
    """

    schema: str
    log: Log | None = None
    wrong: str = ""

    @property
    def entry(self) -> int | None:
        """The entry after which the file was so; 0 before the first, None if that is not known."""
        return None if self.log is None else self.log[-1].entry if self.log else 0

    def facts(self) -> dict[str, Any]:
        """Return what there is to say about it."""
        last = self.log[-1] if self.log else None
        return {
            "entry": self.entry,
            **{name: getattr(last, name, None) for name in ("what", "view", "time")},
        }


@dataclass(frozen=True)
class Held:
    """What a file holds to return to.

    Attributes
    ----------
    log : tuple of Event
        The log of now.
    keep : int
        How many states the file keeps.
    states : tuple of Kept
        Those that it has, the latest first.
    """

    log: Log
    keep: int
    states: tuple[Kept, ...]


def held(path: StrPath) -> Held:
    """Return what a file holds to return to."""
    return store_of(path).held(path)


def undoing(path: StrPath, entry: int | None = None) -> tuple[Held, Log]:
    """Return what a file holds, and the entries of its log that `undo` takes back.

    Raises
    ------
    StateFileError
        If there is nothing to take back, or something else than was asked for.
    """
    name = Path(path).name
    found = held(path)
    now, states = found.log, found.states
    in_force = standing(now)
    last = in_force[-1] if in_force else None
    after_forget = last is not None and last.what == FINAL
    if not states:
        why = f"The last change, {last}, cannot be taken back" if after_forget else ""
        raise StateFileError(
            f"There is nothing to undo in {name}. "
            + (f"{why}." if why else "It keeps no state to return to; keep=3 would.")
        )
    earlier = states[0].log
    if earlier is None:
        raise DamagedFileError(
            f"The state before the last change cannot be read: {states[0].wrong} "
            f"{_ways(name, states)}"
        )
    taken = undoable(now, earlier)
    said = " and ".join(map(str, taken))
    n = taken[0].entry if taken else 0
    how = f"viewfold.undo({name!r}, entry={n})"
    if entry is None and after_forget:
        before = f" To take back the change before it, {said}: {how}." if taken else ""
        raise StateFileError(f"The last change to {name}, {last}, cannot be taken back.{before}")
    if entry is not None and (not taken or taken[0].entry != entry):
        can = f"what can be is {said}: {how}" if taken else "the log does not say what can be"
        raise StateFileError(f"Entry {entry} of {name} cannot be taken back; {can}.")
    return found, taken


def restoring(path: StrPath, entry: int) -> tuple[Held, Kept]:
    """Return what a file holds, and of this the state after an entry of its log.

    Raises
    ------
    StateFileError
        If there is no such state.
    """
    name = Path(path).name
    found = held(path)
    now, states = found.log, found.states
    for state in states:
        if state.entry == entry:
            return found, state
    if entry == (now[-1].entry if now else 0):
        raise StateFileError(f"{name} is in the state after entry {entry} already.")
    raise StateFileError(
        f"{name} does not hold the state after entry {entry}. {_ways(name, states)}"
    )


def _ways(name: str, states: Sequence[Kept]) -> str:
    """Say which states there are to return to."""
    known = [state.entry for state in states if state.entry is not None]
    if not known:
        return "There is no other state to return to."
    said = ", ".join(map(str, known))
    what = f"those after entries {said}" if len(known) > 1 else f"the one after entry {said}"
    return f"What it can be returned to: {what} (viewfold undo {name} --to {known[0]})."
