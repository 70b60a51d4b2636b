"""How far a long piece of work is: readers and engines tell, if anybody watches.

Nobody has to pass anything on, and where nobody watches it costs a look at one variable per file
and per pass over the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")


class Watcher(Protocol):
    """Somebody who wants to know how far it is."""

    def begin(self, total: float, unit: str) -> None:
        """Hear that so much is to be done: bytes of a file, or rows of one more pass."""

    def done(self, part: float) -> None:
        """Hear that so much of it is done by now."""


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Let somebody watch for a while."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def watcher() -> Watcher | None:
    """Return who watches now."""
    return _watcher.get()


class Tally:
    """How much of something is done, told to who watches when it is made.

    Parameters
    ----------
    total : float or None
        How much there is; nothing is told if that is not known.
    unit : str
        Of what.
    """

    def __init__(self, total: float | None, unit: str = "bytes") -> None:
        self._who = _watcher.get() if total else None
        self._done = 0.0
        if self._who is not None:
            self._who.begin(total or 0, unit)

    def add(self, part: float) -> None:
        """Say that so much more is done."""
        self.reach(self._done + part)

    def reach(self, part: float) -> None:
        """Say that so much is done by now."""
        self._done = part
        if self._who is not None:
            self._who.done(part)


def counted(parts: Iterator[T], total: int, step: int, unit: str = "rows") -> Iterator[T]:
    """Pass on the results of blocks of `step` rows (or what else), and tell how many are done.

    Examples
    --------
    >>> from viewfold._util.watch import counted, watching
    >>> class Printer:
    ...     def begin(self, total, unit):
    ...         print(total, unit)
    ...
    ...     def done(self, part):
    ...         print(part)
    >>> with watching(Printer()):
    ...     _ = list(counted(iter("ab"), 5, 3))
    5 rows
    3
    5
    """
    if _watcher.get() is None or step >= total:  # a single block is done at once
        yield from parts
        return
    tally = Tally(total, unit)
    for i, part in enumerate(parts, 1):
        yield part
        tally.reach(min(i * step, total))
