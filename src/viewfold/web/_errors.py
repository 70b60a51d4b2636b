"""Errors as answers: the library's codes, each with the HTTP status that fits it."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

from viewfold import errors
from viewfold._util.messages import suggestion_of
from viewfold.app.words import for_cli
from viewfold.web._uploads import TooLargeError
from viewfold.web.words import printable


class ChangedError(errors.BusyError):
    """The state is not the one that was looked at."""


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
"""By code; any other is 500."""


def status_of(error: BaseException) -> int:
    """Return the HTTP status of an error.

    Examples
    --------
    >>> from viewfold.errors import BusyError
    >>> from viewfold.web._errors import ChangedError, status_of
    >>> status_of(BusyError("s.vf is being written")), status_of(ChangedError("s.vf has changed"))
    (423, 409)
    """
    if isinstance(error, ChangedError):
        return 409
    if isinstance(error, TooLargeError):
        return 413
    return STATUS.get(errors.code_of(error)[0], 500)


def told(error: BaseException, words: Callable[[str], str] = str) -> dict[str, Any]:
    """Return what is told of an error: its code, a message, and options that would help."""
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
