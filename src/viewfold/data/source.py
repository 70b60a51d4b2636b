"""What readers of files hand over, and how they complain.

A broken file can make a library raise anything; `reading` converts all of it to one kind of error
that names the file and says what to do.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from viewfold._util.messages import format_names, needed, with_suggestion
from viewfold._util.types import Array, Matrix
from viewfold.data.ids import MISSING
from viewfold.errors import NoSpaceError

if TYPE_CHECKING:
    from viewfold.data.arrays import Batches
    from viewfold.data.codes import Codes

Batch: TypeAlias = tuple[Array | None, Array]  # ids of some rows (None: no id column), the rows
FLOAT64: np.dtype[Any] = np.dtype(np.float64)
BATCH_BYTES = 16 * 2**20


class FileError(ValueError):
    """A file that cannot be read as a view; the message names it and the remedy."""


@dataclass(frozen=True)
class FileView:
    """A view as a file holds it; `as_view` takes it from here."""

    #: the matrix, or batches of its rows in the order of the file; an iterator can be used once
    rows: Matrix | Iterator[Batch]
    #: the sample ids, where the file has them and they do not come with the batches
    ids: Array | None = None
    features: tuple[str, ...] | None = None  #: names of the columns
    #: the name of the view: the file's name without its ending, unless the file names it
    name: str = ""
    file: str = ""  #: the path it comes from, for error messages
    #: columns whose cells are not numbers, and what the numbers in their place stand for, which is
    #: known when all rows were read; see `viewfold.data.codes`
    codes: Mapping[str, Any] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()  #: columns that were not read because the user said so
    #: how a text is written: encoding, delimiter, decimal sign
    written: Mapping[str, str] = field(default_factory=dict)
    #: how columns are written that are rewritten before they are read; see `viewfold.data.cleaning`
    cleaning: Mapping[str, str] = field(default_factory=dict)
    cleaned: list[str] = field(default_factory=list)  #: what was done to the file, for people
    #: the Parquet files that it is in, which workers can read for themselves
    files: tuple[str, ...] = ()
    id_column: str | None = None  #: the column of these files that holds the ids
    owner: Any = None  #: has a method ``cleanup``, which removes temporary files


@dataclass(frozen=True)
class Table(FileView):
    """A table whose columns are known and whose rows are read later, in the order of the file.

    So a file of gigabytes with the wrong columns fails at once. Its rows are `Batches`.
    """

    rows: Batches
    codes: dict[str, Codes] = field(default_factory=dict)
    dtype: np.dtype[Any] = FLOAT64
    sizes: tuple[int, ...] | None = None  # rows of each part that can be read by itself
    id_kind: str = ""  # what the column of ids holds, where the file says so
    nothing: frozenset[str] = frozenset()  # columns without a type, as no cell has a value

    @property
    def coded(self) -> frozenset[str]:
        """Columns whose cells are not numbers."""
        return frozenset(self.codes) - self.nothing

    @property
    def n_rows(self) -> int:
        return sum(self.sizes or ())

    @property
    def is_empty(self) -> bool:
        """Whether there is no row: what columns hold is not known then."""
        return self.sizes is not None and not self.n_rows


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


def natural(name: str) -> list[Any]:
    """Return a key that sorts part.2 before part.10."""
    parts = re.split(r"([0-9]+)", name)  # every second one is digits
    return [int(part) if i % 2 else part for i, part in enumerate(parts)]


def as_object(texts: Any) -> Array:
    """Return a 1-D array of Python objects, whatever their types."""
    out = np.empty(len(texts), dtype=object)
    out[:] = texts
    return out


def without(names: Iterable[str], others: Iterable[str | None]) -> tuple[str, ...]:
    """Return names that are not among others, in time that grows with their number only."""
    gone = set(others)
    return tuple(name for name in names if name not in gone)


def batch_rows(n_columns: int) -> int:
    """Return how many rows fit a batch."""
    return max(64, BATCH_BYTES // (8 * n_columns))


def id_columns(ids: str | None, names: Collection[str]) -> tuple[str, ...]:
    """Return the column of ids, or those of ``first,last``, if both are there."""
    if ids is None or ids in names:
        return () if ids is None else (ids,)
    several = tuple(name.strip() for name in ids.split(","))
    return several if len(several) > 1 and set(several) <= set(names) else (ids,)


def join_ids(columns: Sequence[Sequence[str]]) -> list[str]:
    """Return ids from the cells of one column, or of several with a stroke between them."""
    if len(columns) == 1:
        return list(columns[0])
    return ["/".join(cell.strip() for cell in cells) for cells in zip(*columns, strict=True)]


def check_names(file: str, names: Sequence[str], ids: str | None) -> None:
    """Refuse columns that cannot be told apart, and an id column that is not there."""
    named = id_columns(ids, names)
    name, times = Counter(names).most_common(1)[0]
    if times > 1 and not name:
        raise FileError(
            f"{file}: {times} columns have no name. Name or remove them. If the first line is a "
            "title, remove what stands above the names."
        )
    if times > 1:
        raise FileError(f"{file}: {times} columns are called {name!r}. Give each its own name.")
    if ids is not None and not set(named) <= set(names):
        raise FileError(f"{file}: there is no column {ids!r}. Its columns: {format_names(names)}.")
    if not set(names) - set(named):
        raise FileError(f"{file}: there is no column but the ids. Leave the view out.")
    if "" not in names or ids == "":
        return
    if where := names.index(""):
        raise FileError(
            f"{file}: the column after {names[where - 1]!r} has no name. Name it, or remove it: a "
            "delimiter at the end of each line makes one."
        )
    said = f"{file}: the first column has no name (pandas writes its index so). Name it"
    if ids is not None:
        raise FileError(f"{said}, or remove it.")
    said += ", remove it, or say ids='' if it holds the ids."
    raise with_suggestion(FileError(said), ids="")


def check_numbers(file: str, others: Mapping[str, str], ids: str | None) -> None:
    """Refuse columns that are not numbers, given with what they hold instead."""
    if not others:
        return
    first, found = next(iter(others.items()))
    if len(others) > 1:
        what, advice = f"columns {format_names(others)} hold no numbers", "Drop or encode them"
        advice += "." if ids is not None else ", and name the ids with ids=…."
    else:
        what, advice = f"column {first!r} holds no numbers", "Drop or encode it"
        advice += "." if ids is not None else f", or say ids={first!r} if it is the ids."
    raise with_suggestion(FileError(f"{file}: {what} ({found}). {advice}"), drop=list(others))


def ids_of_text(texts: list[str]) -> Array:
    """Return ids that were read as text: ints if every one is written as ints are, else texts.

    ``7`` and ``-12`` are ints; ``007``, ``+7``, ``7.0`` and what exceeds 64 bits are texts.
    As ints and their texts are one to one, a reader of batches can change its mind later on.
    """
    try:
        numbers = np.array(list(map(int, texts)), dtype=np.int64)
    except (ValueError, OverflowError):
        return as_object(texts)
    return numbers if list(map(str, numbers.tolist())) == texts else as_object(texts)


def check_present(file: str, ids: Sequence[str | None], place: Callable[[int], str]) -> None:
    """Refuse rows without an id; `place` names a row by its number among these."""
    for at, text in enumerate(ids):
        if text is None or text.strip().lower() in MISSING:
            raise no_id(file, place(at), text)
        if "\ufeff" in text:
            raise FileError(
                f"{file}, {place(at)}: the id {text!r} holds an invisible mark, which "
                "stands between files that were put together. Remove it."
            )


def no_id(file: str, place: str, written: Any) -> FileError:
    """Return the error about a row without an id, or with a word that stands for none."""
    found = f"the id {written!r} says that there is none" if written else "there is no id"
    return FileError(f"{file}, {place}: {found}. Fill it in or drop the row.")


def id_of_cell(file: str, place: str, value: Any) -> str:
    """Return the id in a cell that has a type of its own, as a text."""
    if value is None or (isinstance(value, str) and value.strip().lower() in MISSING):
        raise no_id(file, place, value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        written = value if isinstance(value, float) else str(value)
        raise FileError(
            f"{file}, {place}: the id {written!r} is a {type(value).__name__}. Ids are whole "
            "numbers or texts: write it as a text."
        )
    return str(value)
