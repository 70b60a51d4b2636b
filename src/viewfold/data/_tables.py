"""What all tables have in common: features that are numbers, and perhaps a column of ids.

A table is opened (its columns are looked at) before it is read (in batches, in the file's order),
so that a file of gigabytes with the wrong columns fails at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from viewfold._util.messages import format_names, with_suggestion
from viewfold._util.types import Array
from viewfold.data._spool import Spool
from viewfold.data.codes import Codes
from viewfold.data.ids import MISSING
from viewfold.data.source import Batch, FileError, as_object

BATCH_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Table:
    """An opened table.

    Parameters
    ----------
    features : tuple of str or None
        Names of the columns other than the ids; None if the file has no names.
    dtype : dtype
        float32 if all features are single precision, else float64.
    batches : callable
        ``batches(spool)`` gives the rows; see `viewfold.data._spool.Batches`.
    codes : dict of str to Codes
        What the numbers of columns that hold none stand for, as far as rows were read.
    dropped : tuple of str
        Columns that are not read because the user said so.
    written : dict of str to str
        How it is written, where that had to be found out: encoding, delimiter, decimal sign.
    sizes : tuple of int, or None
        How many rows are in each part of the file that can be read by itself, if there are any.
    id_kind : str
        What the column of ids holds, where the file says so.
    nothing : frozenset of str
        Columns without a type, as no cell has a value.
    """

    features: tuple[str, ...] | None
    dtype: np.dtype[Any]
    batches: Callable[[Spool], Iterator[Batch]]
    codes: dict[str, Codes] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    written: Mapping[str, str] = field(default_factory=dict)
    sizes: tuple[int, ...] | None = None
    id_kind: str = ""
    nothing: frozenset[str] = frozenset()


def check_names(file: str, names: Sequence[str], ids: str | None) -> None:
    """Refuse columns that cannot be told apart, and an id column that is not there."""
    name, times = Counter(names).most_common(1)[0]
    if times > 1 and not name:
        raise FileError(
            f"{file}: {times} columns have no name. Name or remove them. If the first line is a "
            "title, remove what stands above the names."
        )
    if times > 1:
        raise FileError(f"{file}: {times} columns are called {name!r}. Give each its own name.")
    if ids is not None and ids not in names:
        raise FileError(f"{file}: there is no column {ids!r}. Its columns: {format_names(names)}.")
    if "" in names and ids != "":
        raise _nameless(file, names.index(""), names, ids)
    if not set(names) - {ids}:
        raise FileError(f"{file}: there is no column but the ids. Leave the view out.")


def without(names: Iterable[str], others: Iterable[str | None]) -> tuple[str, ...]:
    """Return names that are not among others, in time that grows with their number only."""
    gone = set(others)
    return tuple(name for name in names if name not in gone)


def _nameless(file: str, where: int, names: Sequence[str], ids: str | None) -> FileError:
    """Return the error about a column without a name; the first one may hold the ids."""
    if where:
        return FileError(
            f"{file}: the column after {names[where - 1]!r} has no name. Name it, or remove it: a "
            "delimiter at the end of each line makes one."
        )
    said = f"{file}: the first column has no name (pandas writes its index so). Name it"
    if ids is not None:
        return FileError(f"{said}, or remove it.")
    said += ", remove it, or say ids='' if it holds the ids."
    return with_suggestion(FileError(said), ids="")


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

    Examples
    --------
    >>> from viewfold.data._tables import ids_of_text
    >>> ids_of_text(["7", "-12"]), ids_of_text(["7", "007"])
    (array([  7, -12]), array(['7', '007'], dtype=object))
    """
    if all(text[-1:].isdigit() for text in texts):
        try:
            numbers = np.array(list(map(int, texts)), dtype=np.int64)
        except (ValueError, OverflowError):
            return as_object(texts)
        if list(map(str, numbers.tolist())) == texts:
            return numbers
    return as_object(texts)


def check_present(
    file: str,
    ids: Sequence[str | None],
    row: int,
    place: Callable[[int], str] = "row {}".format,
) -> None:
    """Refuse rows without an id; the first of them is number `row`."""
    for at, text in enumerate(ids):
        if text is None or text.strip().lower() in MISSING:
            raise no_id(file, place(row + at), text)
    for at, text in enumerate(ids):
        if "\ufeff" in (text or ""):
            raise FileError(
                f"{file}, {place(row + at)}: the id {text!r} holds an invisible mark, which "
                "stands between files that were put together. Remove it."
            )


def no_id(file: str, place: str, written: Any) -> FileError:
    """Return the error about a row without an id, or with a word that stands for none."""
    found = f"the id {written!r} says that there is none" if written else "there is no id"
    return FileError(f"{file}, {place}: {found}. Fill it in or drop the row.")


def batch_rows(n_columns: int) -> int:
    """Return how many rows fit a batch."""
    return max(64, BATCH_BYTES // (8 * n_columns))
