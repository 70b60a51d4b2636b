"""One line on a terminal that tells how far a long piece of work is, and that it goes on.

Only imported where somebody looks at a terminal.
"""

from __future__ import annotations

import sys
from threading import Event, RLock, Thread
from time import monotonic
from typing import Any

from tqdm import tqdm

from viewfold._util.messages import visible

SECONDS = 0.25  # between two looks at the clock
NUMBERS = 30  # characters of a line that are not about what is done


class Line(tqdm):
    """What is done, how much of it, how long it has taken and will take; gone at the end.

    It watches what readers and engines report (`viewfold._util.watch`).
    """

    monitor_interval = 0  # it needs nobody to look after it

    def __init__(self, doing: str, total: float | None = None, known: float = 0) -> None:
        self.doing, self.passes, self.since = doing, 0, monotonic()
        super().__init__(
            desc=doing,
            total=total,
            initial=known,
            file=sys.stderr,
            leave=False,
            dynamic_ncols=True,
            smoothing=0,  # it has no use for `update`, so that time left follows from all parts
        )
        self._ended = Event()
        self._clock = Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Line:
        self._clock.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._clock.join()
        self.close()

    def step(self, doing: str) -> None:
        """Go on with something else, of which it is not known yet how much there is."""
        self.doing, self.passes, self.since = doing, 0, monotonic()
        self.desc, self.total = doing, None
        self.reset()

    def begin(self, total: float, unit: str) -> None:
        """Show how much there is to do; rows are passed over more than once."""
        self.passes += unit == "rows"
        self.desc = f"{self.doing}, pass {self.passes}" if self.passes else self.doing
        self.reset(total)

    def done(self, part: float) -> None:
        """Show, from the next look at the clock on, how much is done."""
        self.n = part

    @property
    def format_dict(self) -> dict[str, Any]:
        """What the line shows."""
        found: dict[str, Any] = super().format_dict
        room = (found["ncols"] or sys.maxsize) - NUMBERS
        name = visible(self.desc)
        found["prefix"] = name if len(name) <= room else f"{name[: room - 1]}…"
        found["taken"] = self.format_interval(monotonic() - self.since)
        how_far = " {percentage:3.0f}% {taken} left: {remaining}" if self.total else " {taken}"
        found["bar_format"] = "{desc}" + how_far
        return found

    def _tick(self) -> None:
        while not self._ended.wait(SECONDS):
            self.refresh()


# That of tqdm is for processes, too, and starts one where there is no fork.
Line.set_lock(RLock())
