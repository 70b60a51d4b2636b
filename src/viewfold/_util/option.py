"""What an option is called: as an argument in Python, and on the command line as one types it.

A message that says what to do says it in the words of who reads it.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

AnyError = TypeVar("AnyError", bound=Exception)

_typed: ContextVar[bool] = ContextVar("typed", default=False)
_FLAGS = {
    "ids": "--id",
    "use_rep": "--rep",
    "name": "--view",
    "n_buckets": "--buckets",
    "n_clusters": "--clusters",
    "random_state": "--seed",
}
_SWITCHES = {
    ("ids", False): "--no-id",
    ("keep_encoders", False): "--private",
}
"""Options that have no value on the command line."""
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@contextmanager
def command_line() -> Iterator[None]:
    """Call options as the command line does, as long as this lasts."""
    token = _typed.set(True)
    try:
        yield
    finally:
        _typed.reset(token)


def is_typed() -> bool:
    """Whether options are called as the command line does."""
    return _typed.get()


def option(name: str, value: object = None) -> str:
    r"""Return an option, with a value if there is one, as the user would write it.

    Examples
    --------
    >>> from viewfold._util.option import command_line, option
    >>> option("ids", "patient"), option("encoding"), option("drop", ["note", "a, b"])
    ("ids='patient'", 'encoding=…', "drop=['note', 'a, b']")
    >>> with command_line():
    ...     option("ids", "patient"), option("encoding"), option("drop", ["note", "a, b"])
    ('--id patient', '--encoding …', '--drop \'note,"a, b"\'')
    >>> with command_line():
    ...     option("ids", False), option("keep_encoders", False), option("n_clusters", 3)
    ('--no-id', '--private', '--clusters 3')
    """
    if not _typed.get():
        return f"{name}={'…' if value is None else repr(value)}"
    if isinstance(value, bool) and (name, value) in _SWITCHES:
        return _SWITCHES[name, value]
    flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
    if value is True:
        return flag
    return f"{flag} {'…' if value is None else _quoted(_written(value))}"


def size_in_bytes(text: str, what: str) -> int:
    """Return a size that was written as 500M, 4GB or in bytes.

    Parameters
    ----------
    text : str
        The size.
    what : str
        What an error calls it.

    Examples
    --------
    >>> from viewfold._util.option import size_in_bytes
    >>> size_in_bytes("4GB", "--memory"), size_in_bytes("500 m", "--memory")
    (4294967296, 524288000)
    """
    found = re.fullmatch(r"(\d+)\s*([KMGT]?)B?", text.strip().upper())
    if not found:
        raise ValueError(f"{what} is no size. Write bytes, or for instance 500M or 20G.")
    return int(found[1]) * _UNITS[found[2]]


def _quoted(text: str) -> str:
    """Return a text as one types it into a shell."""
    return f'"{text}"' if "'" in text and not set(text) & set('"$`\\!') else shlex.quote(text)


def worded(python: str, typed: str) -> str:
    """Return what to say to who writes Python, or to who types commands.

    For advice that is more than an option: there is no DataFrame on the command line.

    Examples
    --------
    >>> from viewfold._util.option import command_line, worded
    >>> worded("Call fit.", "Use viewfold add.")
    'Call fit.'
    >>> with command_line():
    ...     worded("Call fit.", "Use viewfold add.")
    'Use viewfold add.'
    """
    return typed if _typed.get() else python


def helped_by(error: AnyError, **options: object) -> AnyError:
    """Return an error that knows which options would help, as its message says to people."""
    error.options = options  # type: ignore[attr-defined]
    return error


def help_of(error: BaseException) -> dict[str, Any]:
    """Return the options that would help, as far as the error knows any."""
    found: dict[str, Any] = getattr(error, "options", {})
    return found


def _written(value: object) -> str:
    """Return a value as the command line takes it: names with commas between them."""
    if not isinstance(value, list | tuple):
        return str(value)
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(value)
    return line.getvalue()
