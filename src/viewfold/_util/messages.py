"""Parts of messages: a few of many names, and options that would help against an error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

AnyError = TypeVar("AnyError", bound=Exception)


def format_names(names: Iterable[object], most: int = 8) -> str:
    """Show the first few of many names."""
    names = list(names)
    shown = ", ".join(repr(str(name)) for name in names[:most])
    return shown + (f", … ({len(names)} in all)" if len(names) > most else "")


def with_suggestion(error: AnyError, **options: object) -> AnyError:
    """Return an error that knows which options would help, as its message says to people."""
    error.options = options  # type: ignore[attr-defined]
    return error


def suggestion_of(error: BaseException) -> dict[str, Any]:
    """Return the options that would help, as far as the error knows any."""
    found: dict[str, Any] = getattr(error, "options", {})
    return found
