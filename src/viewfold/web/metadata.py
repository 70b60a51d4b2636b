"""A table about the samples, and its columns by which a map can be coloured."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold._util.file import ReadOptions
from viewfold._util.messages import format_names
from viewfold._util.types import Array, Ids
from viewfold.app.words import counted
from viewfold.data.files import File, read
from viewfold.data.ids import as_ids
from viewfold.data.parts import split_file
from viewfold.rows import Engine, RowSet
from viewfold.web.words import clip_name, rounded

if TYPE_CHECKING:
    from viewfold.data.codes import Codes


def read_metadata(
    path: File | str | os.PathLike[str],
    ids: str | None = None,
    columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Read a table about the samples from any file that `viewfold.data.read` takes.

    The ids, of column `ids`, are in its index; of other columns, it has those that are named.
    """
    shown = os.fspath(path)
    views = read(path, ids=ids)
    if len(views) > 1:
        raise ValueError(
            f"{shown}: metadata are one table, and this file holds {format_names(views)}. Write "
            "the one that is meant to a file of its own."
        )
    (view,) = views.values()
    parts = split_file(view, ids, shown, ReadOptions())
    names = parts.names or ()
    if parts.ids is None or not names:
        which = f" Its columns: {format_names(names)}." if names else ""
        raise ValueError(
            f"{shown}: which column holds the sample ids? Name it with metadata_id='COLUMN'.{which}"
        )
    unknown = [name for name in columns or () if name not in names]
    if unknown:
        raise ValueError(
            f"{shown}: there is no column {unknown[0]!r}, which metadata_columns=… "
            f"names. Its columns: {format_names(names)}."
        )
    rows = np.asarray(parts.rows.toarray() if hasattr(parts.rows, "toarray") else parts.rows)
    found = {}
    for j, name in enumerate(names):
        if columns is not None and name not in columns:
            continue
        cells = _cells(rows[:, j], parts.codes.get(name))
        if cells is None:
            warnings.warn(
                f"{shown}: column {name!r} has very many different texts, or long ones. It is left "
                "out.",
                stacklevel=2,
            )
        else:
            found[name] = cells
    return pd.DataFrame(found, index=pd.Index(parts.ids, tupleize_cols=False))


def _cells(numbers: Array, codes: Codes | None) -> Any:
    """Return the cells of a column as they were meant; None if they are not known."""
    if codes is None or codes.kind in (None, "number"):
        return numbers
    if codes.kind == "date":
        days = np.where(np.isnan(numbers), np.iinfo(np.int64).min, numbers).astype(np.int64)
        return days.astype("datetime64[D]").astype("datetime64[s]")
    if codes.too_many:
        return None
    places = np.where(np.isnan(numbers), -1, numbers).astype(np.intp)
    return pd.Categorical.from_codes(places, list(codes.levels))


LEVELS = 200  # how many levels a category may have
FEW = 10  # whole numbers with at most so many different values are a category
EXACT = 2**53  # up to here a floating-point number is one whole number and no other
# Days that have a name in four digits of a year; what lies beyond is at the end of the scale.
YEARS = np.datetime64("0001-01-01"), np.datetime64("9999-12-31")
MISSING, MOST = 255, 254  # how a missing cell is written, and the highest value of a number


@dataclass(frozen=True)
class ColourColumn:
    """A column to colour by."""

    facts: dict[str, Any]  # what a page says about it
    values: NDArray[np.uint8]  # a value for each point


def colour_columns(
    engine: Engine, known: RowSet, ids: Ids, table: Any, *, name_ids: bool
) -> tuple[list[ColourColumn], list[str]]:
    """Return the columns of a table by which points can be coloured, and what was left out.

    `known` are the ids of all samples, `ids` those of the points, and the table has ids in its
    index. With `name_ids`, texts may differ from sample to sample.
    """
    if not isinstance(table, pd.DataFrame):
        raise TypeError(
            f"Metadata are a pandas DataFrame with the sample ids in its index, got "
            f"{type(table).__name__}."
        )
    if not len(table.columns):
        raise ValueError("The metadata have no column to colour by besides the ids.")
    index = _index(as_ids(table.index.to_numpy(), len(table), "the metadata"))
    if not index.is_unique:
        twice = index[index.duplicated()][0]
        raise ValueError(f"The metadata have {twice!r} twice, as a number and as a text.")

    def find(block: Ids) -> NDArray[np.bool_]:
        here = np.zeros(len(index), bool)
        at = index.get_indexer(_index(block))
        here[at[at >= 0]] = True
        return here

    # Rows of the table that are of samples that there are.
    own: NDArray[np.bool_] = engine.reduce(find, known, combine=np.logical_or)
    matched = int(own.sum())
    if not matched:
        raise ValueError(
            "No id of the metadata is known to the model: their column of ids is another one, or "
            "ids are written differently."
        )
    notes = []
    if len(table) > matched:
        notes.append(f"Of no sample: {counted(len(table) - matched, 'row')} of the metadata.")
    missing = known.shape[0] - matched
    if missing:
        notes.append(f"Not in the metadata: {counted(missing, 'sample')}.")
    # Names and numbers of others are none of this page's business, and would spread its scales.
    table, index = table[own], index[own]
    at = index.get_indexer(_index(ids))
    found: list[ColourColumn] = []
    for number, name in enumerate(table.columns):
        one = _column(table.iloc[:, number], clip_name(str(name)), len(table), name_ids)
        if isinstance(one, str):
            notes.append(one)
            continue
        facts, values = one
        facts["column"] = f"meta{len(found)}"
        found.append(ColourColumn(facts, np.where(at < 0, np.uint8(MISSING), values[at])))
    for note in notes:
        warnings.warn(note, stacklevel=4)
    return found, notes


def _index(ids: Ids) -> pd.Index:
    """Return ids as they are written: a number and a text that look the same are one sample."""
    return pd.Index(ids.astype(str) if ids.dtype.kind != "O" else [str(one) for one in ids])


def _column(
    column: pd.Series, name: str, n: int, name_ids: bool
) -> tuple[dict[str, Any], NDArray[np.uint8]] | str:
    """Return what is said about a column and its values, or why it is left out."""
    kind, empty = column.dtype, f"Column {name!r} of the metadata is empty, and left out."
    if pd.api.types.is_datetime64_any_dtype(kind):
        # Days are a scale; its ends are days, too, since a year says little within one.
        when = pd.to_datetime(column, utc=True).dt.tz_localize(None).to_numpy("datetime64[D]")
        gone = np.isnat(when)
        if gone.all():
            return empty
        days = np.where(gone, np.nan, when.astype(np.float64))
        low, high = np.clip([when[~gone].min(), when[~gone].max()], *YEARS)
        days_facts = {"name": name, "kind": "date", "low": str(low), "high": str(high)}
        return days_facts, _scaled(days, float(low.astype(int)), float(high.astype(int)))
    numeric = pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)
    if pd.api.types.is_complex_dtype(kind):
        return f"Column {name!r} of the metadata has complex numbers, and is left out."
    if numeric and not isinstance(kind, pd.CategoricalDtype):
        cells = column.to_numpy(np.float64, na_value=np.nan)
        there = np.unique(cells[np.isfinite(cells)])
        if there.size == 0:
            return empty
        whole = (there == np.round(there)).all() and abs(there).max() <= EXACT
        if there.size > FEW or not whole:
            low, high = there[[0, -1]]
            ends = {"name": name, "kind": "number", "low": rounded(low), "high": rounded(high)}
            return ends, _scaled(cells, low, high)
        column = pd.Series(pd.Categorical(cells, there).rename_categories(there.astype(int)))
    try:
        cells = column.astype("category").cat.remove_unused_categories().cat
    except TypeError:  # of lists, say
        return f"Column {name!r} of the metadata has cells that cannot be compared. It is left out."
    levels = [clip_name(str(level)) for level in cells.categories]
    if not levels:
        return empty
    if len(levels) > LEVELS:
        return (
            f"Column {name!r} of the metadata has {len(levels):,} different values: a map can show "
            f"{LEVELS}. It is left out; group its values to see it."
        )
    if len(levels) > max(20, n / 2) and not name_ids:
        return (
            f"Column {name!r} of the metadata has another value for almost every sample, which "
            "could tell who is who. It is left out, unless ids are let in."
        )
    codes = cells.codes.to_numpy()
    facts = {"name": name, "kind": "category", "levels": levels}
    return facts, np.where(codes < 0, MISSING, codes).astype(np.uint8)


def _scaled(cells: Array, low: float, high: float) -> NDArray[np.uint8]:
    known = np.isfinite(cells)
    # In halves: the whole difference of the largest numbers is infinite.
    half = high / 2 - low / 2
    share = (np.where(known, cells, low) / 2 - low / 2) / (half or 1)
    shades = np.round(MOST * np.clip(share, 0, 1))
    return np.where(known, shades, MISSING).astype(np.uint8)
