"""What a reader hands over, and how it complains.

A broken file can make a library raise anything; `reading` converts all of it to one kind of error
that names the file and says what to do.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from viewfold._util.messages import format_names, needed
from viewfold._util.types import Array, Matrix
from viewfold.errors import NoSpaceError

Batch: TypeAlias = tuple[Array | None, Array]  # ids of some rows (None: no id column), the rows


class FileError(ValueError):
    """A file that cannot be read as a view; the message names it and the remedy."""


@dataclass(frozen=True)
class FileView:
    """A view as a file holds it; `as_view` takes it from here.

    Parameters
    ----------
    rows : ndarray, memmap, csr_array or iterator of (ids, ndarray)
        The matrix, or batches of its rows in the order of the file; an iterator can be used once.
    ids : ndarray, optional
        The sample ids, where the file has them and they do not come with the batches.
    features : tuple of str, optional
        Names of the columns.
    name : str
        What the view is called: the file's name without its ending, unless the file names it.
    file : str
        The path it comes from, for error messages.
    codes : dict of str to Codes
        Columns whose cells are not numbers, and what the numbers in their place stand for, which is
        known when all rows were read; see `viewfold.data.codes`.
    dropped : tuple of str
        Columns that were not read because the user said so.
    written : dict of str to str
        How a text is written: encoding, delimiter, decimal sign.
    files : tuple of str
        The Parquet files that it is in, which workers can read for themselves.
    id_column : str, optional
        The column of these files that holds the ids.
    owner : object
        Has a method ``cleanup``, which removes the files, if they were made for a while.
    """

    rows: Matrix | Iterator[Batch]
    ids: Array | None = None
    features: tuple[str, ...] | None = None
    name: str = ""
    file: str = ""
    codes: Mapping[str, Any] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    written: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    id_column: str | None = None
    owner: Any = None


@contextmanager
def reading(file: str, what: str) -> Iterator[None]:
    """Convert errors of a reader to FileError, but not what is wrong with the machine."""
    try:
        yield
    except (FileError, FileNotFoundError, PermissionError, NoSpaceError, ImportError):
        raise
    except Exception as error:  # libraries raise anything for a broken file
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise FileError(
            f"{file}: cannot be read as {what} ({said[0][:200]}). Is the file whole, and was it "
            "written as such?"
        ) from error


def too_large(place: str, cell: str, empty: str = "leave the cell empty") -> FileError:
    """Return the error about a number that no float64 can hold; every reader refuses it so."""
    shown = cell if len(cell) <= 40 else f"{cell[:30]}… ({len(cell):,} characters)"
    return FileError(
        f"{place}: {shown} is too large for a 64-bit floating-point number, which ends at 1.8e308. "
        f"Correct it, or {empty} if it marks a missing value."
    )


def optional(module: str, extra: str, file: str) -> Any:
    """Import what only some formats need."""
    return needed(module, extra, f"{file}: reading it")


def leave_out(file: str, others: Mapping[str, str], views: Iterable[str]) -> None:
    """Tell which arrays of a file are no views, given with what they are."""
    if others:
        shown = ", ".join(f"{name!r} ({what})" for name, what in list(others.items())[:5])
        more = f", … ({len(others)} in all)" if len(others) > 5 else ""
        warnings.warn(
            f"{file}: {shown}{more} left out: a view is a matrix of numbers with one row per "
            f"sample. Taken: {format_names(views)}.",
            stacklevel=2,
        )


def is_numeric(held: Any) -> bool:
    """Whether an array or sparse matrix holds real numbers."""
    return held.dtype.kind in "fiub"


def natural(name: str) -> list[Any]:
    """Sort part.2 before part.10."""
    parts = re.split(r"([0-9]+)", name)  # every second one is digits
    return [int(part) if i % 2 else part for i, part in enumerate(parts)]


def as_object(texts: Any) -> Array:
    """Return a 1-D array of Python objects, whatever their types."""
    out = np.empty(len(texts), dtype=object)
    out[:] = texts
    return out
