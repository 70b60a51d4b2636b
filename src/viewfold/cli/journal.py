"""The log of a command (``--log FILE``): a JSON object per line, for programs that watch jobs.

It says what messages say, and how long it took: no ids, no cells, no arguments of the command.
"""

from __future__ import annotations

import json
import os
import warnings
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from viewfold._util.visible import visible_json

_OPEN_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT


class Journal:
    """A file to which events are appended, each in one piece; nothing happens before `open`."""

    path: Path | None
    command: str | None

    def __init__(self) -> None:
        self.close()

    def open(self, path: Path) -> None:
        """Append to a file from now on; what is no log is left alone."""
        if path.exists() and not _is_log(path):
            raise ValueError(f"{path} is there, and is no log of viewfold. Choose another name.")
        self.path = path
        os.close(os.open(path, _OPEN_FLAGS, 0o600))

    def close(self) -> None:
        """Forget the file; the clock starts again."""
        self.path = self.command = None
        self.started = perf_counter()

    def begin(self, command: str) -> None:
        """Note which command runs, once."""
        if self.command is None:
            self.command = command
            from viewfold._util.version import __version__

            self.note("start", version=__version__, process=os.getpid())

    def note(self, event: str, **facts: Any) -> None:
        """Append an event."""
        if self.path is None:
            return
        when = datetime.now(UTC).isoformat(timespec="milliseconds")
        seconds = round(perf_counter() - self.started, 3)
        line = {"time": when, "event": event, "command": self.command, **facts}
        text = json.dumps({**line, "seconds": seconds}, ensure_ascii=False, default=str)
        text = visible_json(text)  # logs are read in terminals
        try:
            handle = os.open(self.path, _OPEN_FLAGS, 0o600)
            try:
                os.write(handle, f"{text}\n".encode())
            finally:
                os.close(handle)
        except OSError as error:  # the work goes on without it
            path, self.path = self.path, None
            warnings.warn(f"Nothing more is logged to {path}: {error.strerror}.", stacklevel=2)


def _is_log(path: Path) -> bool:
    """Whether a file is empty, or begins with an event."""
    if not path.is_file():
        return not path.is_dir()  # such as /dev/stderr
    with path.open("rb") as file:
        first = file.readline(10**6)
    try:
        return not first or "event" in json.loads(first)
    except (ValueError, TypeError):
        return False


journal = Journal()
"""The log of the command that runs."""
