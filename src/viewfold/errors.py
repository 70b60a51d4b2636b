"""What can go wrong, each with a code for programs and an exit code for the command line.

The classes keep their built-in bases, so that ``except ValueError`` goes on working. Codes and exit
codes are part of the interface: docs/commands.md lists them, and none is ever given a new meaning.
"""

from __future__ import annotations

import errno
from typing import Any


class ViewfoldError(Exception):
    """An error with a stable name, `code`, and the `exit_code` of the command line."""

    code = "internal"
    exit_code = 70


class InputError(ViewfoldError, ValueError):
    """Data, options or parameters that cannot be used."""

    code = "bad-input"
    exit_code = 1


class StateFileError(ViewfoldError, ValueError):
    """A ``.vf`` file that cannot be used: another program's, damaged, too new, or being written."""

    code = "not-usable"
    exit_code = 3


class DamagedFileError(StateFileError):
    """A ``.vf`` file that is not as viewfold wrote it."""

    code = "damaged-file"
    exit_code = 4


class NewerFormatError(StateFileError):
    """A ``.vf`` file of a newer viewfold."""

    code = "newer-format"
    exit_code = 5


class BusyError(StateFileError):
    """A ``.vf`` file that another program writes to, or has changed meanwhile."""

    code = "busy"
    exit_code = 6


class NoSpaceError(ViewfoldError, OSError):
    """The disk is full, or a limit on the size of files is reached."""

    code = "no-space"
    exit_code = 7


class MissingExtraError(ViewfoldError, ImportError):
    """What was asked for needs a package that is not installed; the message has the command."""

    code = "missing-extra"
    exit_code = 8


class UnreadableError(ValueError):
    """Why a file cannot be read, as the rest of a sentence; readers name it, and raise `kind`."""

    def __init__(self, why: str, kind: type[StateFileError] = DamagedFileError) -> None:
        super().__init__(why)
        self.kind = kind


class DeliveryWarning(ViewfoldError, UserWarning):  # noqa: N818 - it is a warning, too
    """More rows of a known view are not what the view looked like before.

    The message has the columns, what was expected, what came, and what to do. The rows are folded
    all the same, unless the warning is made an error: then the model stays as it was. `comparison`
    has what was found in the `view`, for programs; see `viewfold.state.deliveries.Comparison`.

    Examples
    --------
    >>> import warnings
    >>> from viewfold import DeliveryWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", DeliveryWarning)  # partial_fit now refuses such rows
    """

    code = "suspicious"
    exit_code = 14

    def __init__(self, message: str, view: str = "", comparison: Any = None) -> None:
        super().__init__(message)
        self.view, self.comparison = view, comparison


USAGE = ("usage", 2)
MOVED = ("moved", 13)
"""No error: more samples moved than ``--max-moved`` says, and what was asked for was done."""
QUARANTINED = ("quarantined", 15)
"""No error: suspicious rows were written to the file of ``--quarantine``, the others folded."""
INTERRUPTED = ("interrupted", 130)
BUILT_IN: tuple[tuple[type[BaseException], str, int], ...] = (
    (KeyboardInterrupt, *INTERRUPTED),
    (ImportError, MissingExtraError.code, MissingExtraError.exit_code),
    (FileNotFoundError, "not-found", 9),
    (PermissionError, "no-permission", 10),
    (MemoryError, "out-of-memory", 11),
    (OSError, "system", 12),
    (ValueError, "bad-input", 1),
    (TypeError, "bad-input", 1),
)
"""Codes and exit codes of Python's own errors; the first that fits counts."""

NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""What the system says where files cannot be locked, as on some network drives."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says when there is no space: on the disk, by quota, for one file."""


def without_locks(name: str) -> StateFileError:
    """Return the error about a state on a drive that cannot lock files."""
    return StateFileError(
        f"{name} is on a drive without file locks, as some network drives are: two programs could "
        "write it at once. Copy it to a local disk and work there, or have locks enabled for the "
        "drive."
    )


def code_of(error: BaseException) -> tuple[str, int]:
    """Return the code and the exit code of an error.

    Examples
    --------
    >>> from viewfold.errors import BusyError, code_of
    >>> code_of(BusyError("patients.vf is being written"))
    ('busy', 6)
    >>> code_of(ValueError("no such column")), code_of(ModuleNotFoundError("h5py"))
    (('bad-input', 1), ('missing-extra', 8))
    """
    if isinstance(error, ViewfoldError):
        return error.code, error.exit_code
    if isinstance(error, OSError) and error.errno in FULL:
        return NoSpaceError.code, NoSpaceError.exit_code
    for kind, code, exit_code in BUILT_IN:
        if isinstance(error, kind):
            return code, exit_code
    return ViewfoldError.code, ViewfoldError.exit_code
