"""A table about the samples, read from a file: columns to colour a map by."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from viewfold._util.messages import format_names
from viewfold._util.types import Array
from viewfold.data import files as io
from viewfold.data.parts import of_file

if TYPE_CHECKING:
    from viewfold.data.codes import Codes


def read_metadata(
    path: io.File | str | os.PathLike[str],
    ids: str | None = None,
    columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Read a table about the samples.

    Parameters
    ----------
    path : str or path-like
        Any table that `viewfold.data.read` takes: CSV, TSV, Parquet, Arrow, JSON lines, Excel.
    ids : str, optional
        The column that holds the sample ids.
    columns : sequence of str, optional
        The columns to take; all if not given.

    Returns
    -------
    DataFrame
        With the ids in its index; `render` takes it.
    """
    shown = os.fspath(path)
    views = io.read(path, ids=ids)
    if len(views) > 1:
        raise ValueError(
            f"{shown}: metadata are one table, and this file holds {format_names(views)}. Write "
            "the one that is meant to a file of its own."
        )
    (view,) = views.values()
    parts = of_file(view, ids, shown)
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
    levels = list(codes.levels)
    places = np.where(np.isnan(numbers), -1, numbers).astype(np.intp)
    return pd.Categorical.from_codes(places, levels)
