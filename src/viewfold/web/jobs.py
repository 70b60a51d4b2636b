"""Long work, one piece at a time: what is done, how far it is, what came of it.

The page asks now and then (`Job.facts`). Work that is no longer wanted ends at its next sign of
life, as with Ctrl-C: what it was about to change stays as it was.
"""

from __future__ import annotations

import contextvars
import secrets
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from time import monotonic
from typing import Any

from viewfold import errors
from viewfold._util.messages import suggestion_of
from viewfold._util.watch import watcher, watching
from viewfold.app.words import for_cli
from viewfold.web.inputs import TooLargeError
from viewfold.web.words import printable


class Job:
    """A piece of work that takes a while."""

    def __init__(self, what: str, doing: str, words: Callable[[str], str] = str) -> None:
        self.key, self.what, self.doing, self.words = secrets.token_hex(8), what, doing, words
        self.total = self.part = 0.0
        self.passes = 0
        self.notes: list[str] = []
        self.answer: dict[str, Any] | None = None
        self.raised: BaseException | None = None
        self.stopping = self.written = False
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
            raise KeyboardInterrupt  # so that nobody takes it for an error

    @property
    def state(self) -> str:
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
            "error": None if self.raised is None else error_facts(self.raised, self.words),
        }


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
                raise errors.BusyError(
                    f"This page is at work already: {self.latest.words(self.latest.doing)}. "
                    "Try again when it is done."
                )
            self.latest = job
            run = self.context.copy().run
            self._thread = threading.Thread(target=run, args=(_run, job, work), daemon=True)
            self._thread.start()
            return self._thread

    def stop(self, seconds: float | None = None) -> None:
        """End what is being done, and wait for the end."""
        if self.latest is not None:
            self.latest.stopping = True
        self.wait(seconds)

    def wait(self, seconds: float | None = None) -> None:
        if self._thread.is_alive():
            self._thread.join(seconds)


def _run(job: Job, work: Work) -> None:
    warnings.simplefilter("always")
    warnings.showwarning = _note_warning
    try:
        with watching(job):
            answer = work(job)
        job.ended, job.answer = monotonic(), answer
    except BaseException as error:
        job.ended, job.raised = monotonic(), error


def _note_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Let a warning reach the job that gives it."""
    job, line = watcher(), for_cli(" ".join(str(message).split()))
    if isinstance(job, Job) and line not in job.notes:
        job.notes.append(line)


# -- errors as answers


class ChangedError(errors.BusyError):
    """The state is not the one that was looked at."""


# By code; any other is 500.
STATUS = {
    "bad-input": 400,
    "usage": 400,
    "no-permission": 403,
    "not-found": 404,
    "not-usable": 409,
    "newer-format": 409,
    "interrupted": 409,
    "busy": 423,
    "missing-extra": 501,
    "no-space": 507,
    "out-of-memory": 507,
}


def status_of(error: BaseException) -> int:
    if isinstance(error, ChangedError):
        return 409
    if isinstance(error, TooLargeError):
        return 413
    return STATUS.get(errors.code_of(error)[0], 500)


def error_facts(error: BaseException, words: Callable[[str], str] = str) -> dict[str, Any]:
    """Return the code of an error, a message, and options that would help."""
    code, _ = errors.code_of(error)
    message = printable(words(for_cli(" ".join(str(error).split())))) or type(error).__name__
    if code == errors.INTERRUPTED[0]:
        message = "It was stopped. Nothing was changed."
    elif code == errors.ViewfoldError.code:
        traceback.print_exception(error, file=sys.stderr)
        message = f"This is a defect of viewfold, please report it: {message}"
    facts: dict[str, Any] = {"code": code, "message": message}
    options = suggestion_of(error)
    return {**facts, "options": options} if options else facts
