"""Long work, one piece at a time: what is done, how far it is, what came of it.

The page asks now and then (`Job.facts`). Work that is no longer wanted ends at its next sign of
life, as with Ctrl-C: what it was about to change stays as it was.
"""

from __future__ import annotations

import contextvars
import secrets
import threading
import warnings
from collections.abc import Callable
from time import monotonic
from typing import Any

from viewfold._util.watch import watching
from viewfold.app.words import for_cli
from viewfold.errors import BusyError
from viewfold.web._errors import told
from viewfold.web.words import printable


class StoppedError(KeyboardInterrupt):
    """Somebody wants work to end; a KeyboardInterrupt, so that nobody takes it for an error."""


class Job:
    """A piece of work that takes a while.

    Parameters
    ----------
    what : str
        What it is, such as "fold".
    doing : str
        What is done first.
    """

    def __init__(self, what: str, doing: str) -> None:
        self.key, self.what, self.doing = secrets.token_hex(8), what, doing
        self.total = self.part = 0.0
        self.passes = 0
        self.notes: list[str] = []
        self.answer: dict[str, Any] | None = None
        self.raised: BaseException | None = None
        self.stopping = self.written = False
        self.words: Callable[[str], str] = str
        self.started, self.ended = monotonic(), 0.0

    def step(self, doing: str) -> None:
        """Go on with something else, of which it is not known yet how much there is."""
        self._alive()
        self.doing, self.passes, self.total, self.part = doing, 0, 0.0, 0.0

    def begin(self, total: float, unit: str) -> None:
        """Hear that so much is to be done; rows are passed over more than once."""
        self._alive()
        self.passes += unit == "rows"
        self.total, self.part = total, 0.0

    def done(self, part: float) -> None:
        """Hear that so much of it is done by now."""
        self._alive()
        self.part = part

    def _alive(self) -> None:
        # Another thread of an engine may tell, too: the work ends where it is told there.
        # Once the change is on the disk, it is too late to say that nothing was changed.
        if self.stopping and not self.written:
            raise StoppedError

    @property
    def state(self) -> str:
        """How it stands: running, done or failed."""
        return "failed" if self.raised else "running" if self.answer is None else "done"

    def facts(self) -> dict[str, Any]:
        """Return how far it is, and what came of it."""
        end = self.ended or monotonic()
        return {
            "job": self.key,
            "what": self.what,
            "state": self.state,
            "doing": printable(self.words(self.doing))
            + (f", pass {self.passes}" if self.passes > 1 else ""),
            "share": min(self.part / self.total, 1.0) if self.total else None,
            "seconds": round(end - self.started, 1),
            "notes": [printable(self.words(note)) for note in self.notes],
            "answer": self.answer,
            "error": None if self.raised is None else told(self.raised, self.words),
        }


_job: contextvars.ContextVar[Job | None] = contextvars.ContextVar("job", default=None)


def hear_warnings() -> None:
    """Let warnings reach the work that gives them, each time it does."""

    def hear(message: Warning | str, *_: Any, **__: Any) -> None:
        job, line = _job.get(), for_cli(" ".join(str(message).split()))
        if job is not None and line not in job.notes:
            job.notes.append(line)

    warnings.simplefilter("always")
    warnings.showwarning = hear


Work = Callable[[Job], dict[str, Any]]


class Worker:
    """Does one piece of work at a time, in a thread of its own."""

    def __init__(self) -> None:
        self.context = contextvars.copy_context()  # which engine
        self.latest: Job | None = None
        self._turn, self._thread = threading.Lock(), threading.Thread()

    def start(self, job: Job, work: Work) -> threading.Thread:
        """Begin; refuse if something else is being done."""
        with self._turn:
            if self.latest is not None and self.latest.state == "running":
                raise BusyError(
                    f"This page is at work already: {self.latest.words(self.latest.doing)}. "
                    "Try again when it is done."
                )
            self.latest = job
            run = self.context.copy().run
            self._thread = threading.Thread(target=run, args=(_run, job, work), daemon=True)
            self._thread.start()
            return self._thread

    def now(self, job: Job, work: Work) -> dict[str, Any]:
        """Do something that is soon done; return what came of it."""
        self.start(job, work).join()
        if job.raised is not None:
            raise job.raised
        assert job.answer is not None
        return job.answer

    def stop(self, seconds: float | None = None) -> None:
        """End what is being done, and wait for the end."""
        if self.latest is not None:
            self.latest.stopping = True
        self.wait(seconds)

    def wait(self, seconds: float | None = None) -> None:
        """Wait for the end of what is being done."""
        if self._thread.is_alive():
            self._thread.join(seconds)


def _run(job: Job, work: Work) -> None:
    _job.set(job)
    hear_warnings()
    try:
        with watching(job):
            answer = work(job)
        job.ended, job.answer = monotonic(), answer
    except BaseException as error:
        job.ended, job.raised = monotonic(), error
