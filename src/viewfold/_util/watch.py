"""Progress of long work: readers and engines report it to a watcher, if there is one.

Nobody has to pass the watcher on; without one it costs a look at one variable per file and pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")


class Watcher(Protocol):
    """Hears how much is to be done (bytes of a file, rows of another pass), and how much is."""

    def begin(self, total: float, unit: str) -> None: ...

    def done(self, part: float) -> None: ...


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def watcher() -> Watcher | None:
    return _watcher.get()


class Tally:
    """Counts how much is done for whoever watches when it is made, if the total is known."""

    def __init__(self, total: float | None, unit: str = "bytes") -> None:
        self._who = _watcher.get() if total else None
        self._done = 0.0
        if self._who is not None:
            self._who.begin(total or 0, unit)

    def add(self, part: float) -> None:
        self.reach(self._done + part)

    def reach(self, part: float) -> None:
        self._done = part
        if self._who is not None:
            self._who.done(part)


def counted(parts: Iterator[T], total: int, step: int, unit: str = "rows") -> Iterator[T]:
    """Pass on the results of blocks of `step` rows, and report how many rows are done."""
    if _watcher.get() is None or step >= total:  # a single block is done at once
        yield from parts
        return
    tally = Tally(total, unit)
    for i, part in enumerate(parts, 1):
        yield part
        tally.reach(min(i * step, total))
