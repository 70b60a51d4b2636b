"""What an option is called: as an argument in Python, and on the command line as one types it.

A message that says what to do says it in the words of who reads it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_typed: ContextVar[bool] = ContextVar("typed", default=False)
_FLAGS = {"ids": "--id", "use_rep": "--rep", "name": "--view"}


@contextmanager
def command_line() -> Iterator[None]:
    """Call options as the command line does, as long as this lasts."""
    token = _typed.set(True)
    try:
        yield
    finally:
        _typed.reset(token)


def option(name: str, value: object = None) -> str:
    """Return an option, with a value if there is one, as the user would write it.

    Examples
    --------
    >>> from viewfold._option import command_line, option
    >>> option("ids", "patient"), option("encoding")
    ("ids='patient'", 'encoding=…')
    >>> with command_line():
    ...     option("ids", "patient"), option("encoding")
    ('--id patient', '--encoding …')
    """
    if not _typed.get():
        return f"{name}={'…' if value is None else repr(value)}"
    flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
    if value is True:
        return flag
    return f"{flag} {'…' if value is None else _quoted(str(value))}"


def _quoted(text: str) -> str:
    """Return a text as one types it into a shell."""
    return f'"{text}"' if "'" in text and not set(text) & set('"$`\\!') else shlex.quote(text)
