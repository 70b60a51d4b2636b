"""Columns of a table about the samples, by which a map can be coloured."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold._util.types import Array, Ids
from viewfold.data.ids import as_ids
from viewfold.rows import Engine, RowSet
from viewfold.web.words import counted, named, told

LEVELS = 200
"""How many levels a category may have."""

FEW = 10
"""Whole numbers with at most so many different values are a category."""

EXACT = 2**53
"""Up to here a floating-point number is one whole number and no other."""

YEARS = np.datetime64("0001-01-01"), np.datetime64("9999-12-31")
"""Days that have a name in four digits of a year; what lies beyond is at the end of the scale."""

MISSING, MOST = 255, 254
"""How a missing cell is written, and the highest value of a number."""


@dataclass(frozen=True)
class Coloured:
    """A column to colour by.

    Attributes
    ----------
    facts : dict
        What a page says about it.
    values : ndarray of uint8
        A value for each point.
    """

    facts: dict[str, Any]
    values: NDArray[np.uint8]


def coloured(
    engine: Engine, known: RowSet, ids: Ids, table: Any, *, name_ids: bool
) -> tuple[list[Coloured], list[str]]:
    """Return the columns of a table by which points can be coloured, and what was left out.

    Parameters
    ----------
    engine : Engine
        Computes with the rows.
    known : RowSet
        The ids of all samples.
    ids : ndarray
        The ids of the points.
    table : DataFrame
        Its index holds ids.
    name_ids : bool
        Whether samples may be named on the page, and so texts that differ from sample to sample.

    Returns
    -------
    list of Coloured, list of str
    """
    index = _ids_of(table)
    own = _of_samples(engine, known, index)
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
    found: list[Coloured] = []
    for number, name in enumerate(table.columns):
        one = _column(table.iloc[:, number], named(str(name)), len(table), name_ids)
        if isinstance(one, str):
            notes.append(one)
            continue
        facts, values = one
        facts["column"] = f"meta{len(found)}"
        found.append(Coloured(facts, np.where(at < 0, np.uint8(MISSING), values[at])))
    for note in notes:
        warnings.warn(note, stacklevel=4)
    return found, notes


def _ids_of(table: Any) -> pd.Index:
    """Return the ids of a table, if it can be matched by them."""
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
    return index


def _of_samples(engine: Engine, known: RowSet, index: pd.Index) -> NDArray[np.bool_]:
    """Tell which rows of a table are of samples that there are."""

    def work(block: Ids) -> NDArray[np.bool_]:
        own = np.zeros(len(index), bool)
        at = index.get_indexer(_index(block))
        own[at[at >= 0]] = True
        return own

    found: NDArray[np.bool_] = engine.reduce(work, known, combine=np.logical_or)
    return found


def _index(ids: Ids) -> pd.Index:
    """Return ids as they are written: a number and a text that look the same are one sample."""
    return pd.Index(ids.astype(str) if ids.dtype.kind != "O" else [str(one) for one in ids])


def _column(
    column: pd.Series, name: str, n: int, name_ids: bool
) -> tuple[dict[str, Any], NDArray[np.uint8]] | str:
    """Return what is said about a column and its values, or why it is left out."""
    called = {"name": name}
    kind = column.dtype
    if pd.api.types.is_datetime64_any_dtype(kind):
        return _dates(column, name, called)
    numeric = pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)
    if pd.api.types.is_complex_dtype(kind):
        return f"Column {name!r} of the metadata has complex numbers, and is left out."
    if numeric and not isinstance(kind, pd.CategoricalDtype):
        cells = column.to_numpy(np.float64, na_value=np.nan)
        there = np.unique(cells[np.isfinite(cells)])
        if there.size == 0:
            return f"Column {name!r} of the metadata is empty, and left out."
        whole = (there == np.round(there)).all() and abs(there).max() <= EXACT
        if there.size > FEW or not whole:
            return {**called, **_scale(there)}, _scaled(cells, there[0], there[-1])
        column = pd.Series(pd.Categorical(cells, there).rename_categories(there.astype(int)))
    try:
        cells = column.astype("category").cat.remove_unused_categories().cat
    except TypeError:  # of lists, say
        return f"Column {name!r} of the metadata has cells that cannot be compared. It is left out."
    levels = [named(str(level)) for level in cells.categories]
    if not levels:
        return f"Column {name!r} of the metadata is empty, and left out."
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
    facts = {**called, "kind": "category", "levels": levels}
    return facts, np.where(codes < 0, MISSING, codes).astype(np.uint8)


def _dates(
    column: pd.Series, name: str, called: dict[str, Any]
) -> tuple[dict[str, Any], NDArray[np.uint8]] | str:
    """Return days as a scale; its ends are days, too, since a year says little within one."""
    when = pd.to_datetime(column, utc=True).dt.tz_localize(None).to_numpy("datetime64[s]")
    if np.isnat(when).all():
        return f"Column {name!r} of the metadata is empty, and left out."
    there = when[~np.isnat(when)].astype("datetime64[D]")
    days = np.where(np.isnat(when), np.nan, when.astype("datetime64[D]").astype(np.float64))
    low, high = (np.clip(day, *YEARS) for day in (there.min(), there.max()))
    ends = {"kind": "date", "low": str(low), "high": str(high)}
    return {**called, **ends}, _scaled(days, float(low.astype(int)), float(high.astype(int)))


def _scale(there: Array) -> dict[str, Any]:
    return {"kind": "number", "low": told(there[0]), "high": told(there[-1])}


def _scaled(cells: Array, low: float, high: float) -> NDArray[np.uint8]:
    known = np.isfinite(cells)
    # In halves: the whole difference of the largest numbers is infinite.
    half = high / 2 - low / 2
    share = (np.where(known, cells, low) / 2 - low / 2) / (half or 1)
    shades = np.round(MOST * np.clip(share, 0, 1))
    return np.where(known, shades, MISSING).astype(np.uint8)
