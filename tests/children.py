"""Programs that tests run beside themselves: forks of a process that has imported viewfold.

Python and the packages take a second to start, a fork takes milliseconds. Tests of what is
imported, of the command `viewfold` itself and of memory start a Python of their own.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Sequence
from functools import partialmethod
from multiprocessing import reduction
from typing import Any

CAN_FORK = "forkserver" in multiprocessing.get_all_start_methods()
PRELOADED = [__name__, "pandas", "scipy.cluster.hierarchy", "viewfold.cli", "viewfold.estimators"]
PRELOADED += ["viewfold.store.models", "viewfold.store.queries", "viewfold.web.server", "uvicorn"]


class Descriptor:
    """The number of an open file, which is that of the same file in the child."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (reduction.DupFd(self.number),)


def _received(copy: Any) -> int:
    return int(copy.detach())


def _be(script: str, words: Sequence[str], files: Sequence[int]) -> None:
    """Run a program as Python does."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  (multiprocessing closes that of a child)
    sys.argv = ["-c", *words]
    code: Any = 0
    try:
        exec(compile(textwrap.dedent(script), "<program>", "exec"), {"__name__": "__main__"})
    except SystemExit as ended:
        code = ended.code
    except KeyboardInterrupt:
        code = -signal.SIGINT
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.exit(code)


class Child:
    """As much of ``subprocess.Popen`` as tests need; all that it reads and writes is text."""

    def __init__(self, script: str, words: Sequence[Any]) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        (stdin, into), (out, stdout), (said, stderr) = (os.pipe() for _ in range(3))
        theirs = [stdin, stdout, stderr]
        asked = (script, [*map(str, words)], [*map(Descriptor, theirs)])
        self._process = context.Process(target=_be, args=asked)
        self._process.start()
        for one in theirs:
            os.close(one)
        self.stdin, self.stdout, self.stderr = open(into, "w"), open(out), open(said)  # noqa: SIM115

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    poll = returncode.fget

    def wait(self, timeout: float | None = None) -> int | None:
        self._process.join(timeout)
        return self.returncode

    def send_signal(self, number: int) -> None:
        os.kill(self._process.pid, number)

    terminate = partialmethod(send_signal, signal.SIGTERM)
    kill = partialmethod(send_signal, getattr(signal, "SIGKILL", signal.SIGTERM))

    def communicate(self, text: str = "", timeout: float | None = None) -> tuple[str, str]:
        if not self.stdin.closed:
            self.stdin.write(text)
            self.stdin.close()
        # What a child says is short: it fits into a pipe while nobody reads it.
        answer = self.stdout.read(), self.stderr.read()
        self.wait(timeout)
        return answer


def start(script: str, *words: Any) -> Any:
    """Start a program beside this one; return what to write to, read from and wait for."""
    if CAN_FORK:
        return Child(script, words)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, words)]
    return subprocess.Popen(command, text=True, **pipes)
