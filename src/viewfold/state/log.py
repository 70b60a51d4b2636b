"""The log of a state: an entry for every change. Entries are only ever added."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from viewfold._util.version import __version__

FINAL = "forget"  # The change that is never taken back


@dataclass(frozen=True)
class Event:
    """An entry of the log: a change and its counts, None where a count does not apply."""

    entry: int  # its number: 1, 2, …; a number is never used again, not even after an undo
    # "fold", "update" (more rows of a known view), "refresh" (all of them), "extend", "recluster",
    # "rename", "forget", "undo", "restore", or "params": a change of the model's parameters
    what: str
    time: datetime  # when (UTC)
    version: str | None  # the viewfold that did it; None if not known
    view: str | None = None  # the view that was folded, updated or extended
    n_samples: int = 0  # samples in the state afterwards
    n_new: int | None = None  # samples that came
    n_shared: int | None = None  # that were known before; of an update: that have the view since
    n_moved: int | None = None  # that changed their cluster
    n_forgotten: int | None = None
    n_corrected: int | None = None  # of an update: that had the view, and have another row now
    n_novel: int | None = None  # that look like a group of their own
    undoes: int | None = None  # of an undo or a restore: the first entry that it took back
    n_clusters: int | None = None  # of a recluster: how many clusters there are since
    note: str | None = None  # what was learned, or happened to names of clusters

    @property
    def said(self) -> str:
        """What was done, in a few words."""
        of = self.view if self.what in ("fold", "update", "refresh", "extend") else None
        said = f"{self.what} of {of}" if of else self.what
        count = {"extend": self.n_new, "forget": self.n_forgotten}.get(self.what)
        if self.n_clusters is not None:
            said += f" to {self.n_clusters}"
        if self.what == "restore" and self.undoes is not None:
            said += f" to entry {self.undoes - 1}"
        if self.what == "undo" and self.undoes is not None:
            said += f" of entry {self.undoes}"
        said += "" if count is None else f", {count:,} sample{'' if count == 1 else 's'}"
        return said if self.note is None else f"{said}: {self.note}"

    def __str__(self) -> str:
        """Name the entry, what was done, and when."""
        return f"entry {self.entry} ({self.said}, {self.time:%Y-%m-%d %H:%M} UTC)"


Log = tuple[Event, ...]


def noted(log: Log, what: str, n_samples: int, **facts: str | int | None) -> Log:
    entry = log[-1].entry + 1 if log else 1
    time = datetime.now(UTC)
    return (*log, Event(entry, what, time, __version__, n_samples=n_samples, **facts))  # type: ignore[arg-type]


def standing(log: Log) -> Log:
    """Return the changes that are in force: restores among them, undos not, forgets always."""
    found: list[Event] = []
    left = len(log)
    while left > 0:
        left -= 1
        event = log[left]
        if event.what != "undo":
            found.append(event)
        if event.what in ("undo", "restore") and event.undoes is not None:
            first = max(0, min(event.undoes - 1, left))
            found += [e for e in reversed(log[first:left]) if e.what == FINAL]
            left = first
    return tuple(reversed(found))


def undoable(log: Log, earlier: Log) -> Log:
    """Return the entries since an earlier state that an undo takes back: all but forgets."""
    since = earlier[-1].entry if earlier else 0
    return tuple(e for e in standing(log) if e.entry > since and e.what != FINAL)
