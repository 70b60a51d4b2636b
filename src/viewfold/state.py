"""Everything a model has learned, in one frozen object: what a file holds and a change replaces.

A state knows its past: the log has an entry for every change, and entries are only ever added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from viewfold._version import __version__

if TYPE_CHECKING:  # commands that only read the log need not wait for these
    import numpy as np
    from numpy.typing import NDArray

    from viewfold.clustering import Clustering
    from viewfold.consensus import Consensus

FINAL = "forget"
"""The change that is never taken back."""


@dataclass(frozen=True)
class Event:
    """An entry of the log: a change, and what it came to. None is what does not apply.

    Attributes
    ----------
    entry : int
        Its number: 1, 2, …; a number is never used again, not even after an undo.
    what : {"fold", "extend", "forget", "undo", "params"}
        What was done; "params" is a change of the model's parameters in a file.
    time : datetime
        When (UTC).
    version : str or None
        The viewfold that did it; None if not known.
    view : str or None
        The view that was folded or extended.
    n_samples : int
        Samples in the state afterwards.
    n_new, n_shared, n_moved, n_forgotten : int or None
        Samples that came, that were known before, that changed their cluster, that were forgotten.
    undoes : int or None
        Of an undo: the entry that it took back, with those after it.
    """

    entry: int
    what: str
    time: datetime
    version: str | None
    view: str | None = None
    n_samples: int = 0
    n_new: int | None = None
    n_shared: int | None = None
    n_moved: int | None = None
    n_forgotten: int | None = None
    undoes: int | None = None

    def __str__(self) -> str:
        """Say in a few words what was done."""
        counts = {"extend": self.n_new, "forget": self.n_forgotten}
        of = self.view if self.what in ("fold", "extend") else None
        said = f"{self.what} of {of}" if of else self.what
        count = counts.get(self.what)
        said += "" if count is None else f", {count:,} sample{'' if count == 1 else 's'}"
        return f"entry {self.entry} ({said}, {self.time:%Y-%m-%d %H:%M} UTC)"


Log = tuple[Event, ...]


def noted(log: Log, what: str, n_samples: int, **facts: str | int | None) -> Log:
    """Return a log with one more entry, of now.

    Examples
    --------
    >>> from viewfold.state import noted
    >>> log = noted(noted((), "fold", 60, view="labs", n_new=60), "forget", 58, n_forgotten=2)
    >>> [(event.entry, event.what) for event in log]
    [(1, 'fold'), (2, 'forget')]
    """
    entry = log[-1].entry + 1 if log else 1
    time = datetime.now(UTC)
    return (*log, Event(entry, what, time, __version__, n_samples=n_samples, **facts))  # type: ignore[arg-type]


def undoable(log: Log, earlier: Log) -> Log:
    """Return the changes between an earlier state and now that a return to it takes back."""
    return tuple(event for event in log[len(earlier) :] if event.what != FINAL)


@dataclass(frozen=True)
class State:
    """Everything a model has learned.

    Attributes
    ----------
    consensus : Consensus
        What is left of the views.
    clustering : Clustering
        The clusters, as of now.
    history : ndarray of int, shape (n_samples, n_views)
        The cluster of every sample after each fold, −1 before it was seen; a sample that came by
        `extend` has its first cluster in the column of the fold before. The last column holds the
        labels of now.
    added : ndarray of int, shape (n_samples,)
        The log entry by which each sample came.
    log : tuple of Event
        What was done, from the first view on.
    """

    consensus: Consensus
    clustering: Clustering
    history: NDArray[np.int32]
    added: NDArray[np.int32]
    log: Log

    def after(self, log: Log) -> State:
        """Return the same state with what its log says after the entries of another log."""
        shift = log[-1].entry if log else 0
        moved = [
            replace(e, entry=e.entry + shift, undoes=e.undoes and e.undoes + shift)
            for e in self.log
        ]
        views = tuple(replace(v, entry=v.entry + shift) for v in self.consensus.views)
        consensus = replace(self.consensus, views=views)
        return replace(self, consensus=consensus, added=self.added + shift, log=(*log, *moved))
