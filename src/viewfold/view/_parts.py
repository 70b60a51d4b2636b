"""Ids, matrix and column names of what users pass: arrays, tables, AnnData, files, batches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, TypeAlias

import narwhals as nw
import pandas as pd

from viewfold import io
from viewfold._types import Matrix
from viewfold.io._source import some
from viewfold.io._spool import Batches, Spool
from viewfold.view._arrays import as_matrix
from viewfold.view._spool import in_blocks, spool_batches

Parts: TypeAlias = tuple[Any, Matrix, tuple[str, ...] | None]  # ids or None, matrix, column names


def of_object(X: Any, ids: Any, label: str) -> Parts:
    """Return ids, matrix and column names of an object in memory."""
    if is_anndata(X):
        if isinstance(ids, str):
            ids = _id_column(nw.from_native(X.obs), ids, label)
        matrix = as_matrix(in_blocks(X.X, label), label)
        return X.obs_names if ids is None else ids, matrix, _names(X.var_names)
    X = _lazy_parts(X)
    if isinstance(X, Iterator):
        column = ids if isinstance(ids, str) else None
        parts = (columns_of(batch, column, label) for batch in X)
        found, matrix, features = spool_batches(parts, label, Spool())
        return found if ids is None or column else ids, matrix, features
    return columns_of(X, ids, label)


def of_file(source: io.FileView, ids: Any, label: str) -> Parts:
    """Return ids, matrix and column names of what a reader returns."""
    if isinstance(source.rows, Iterator):
        spool = Spool()
        batches = source.rows.into(spool) if isinstance(source.rows, Batches) else source.rows
        parts = ((known, rows, source.features) for known, rows in batches)
        found, matrix, features = spool_batches(parts, label, spool)
    else:
        found, features = source.ids, source.features
        # Where the reader found no ids, their name is a mistake that `_columns` tells.
        _, matrix, _ = columns_of(source.rows, ids if found is None else None, label)
    return found if ids is None or isinstance(ids, str) else ids, matrix, features


def columns_of(X: Any, ids: Any, label: str) -> Parts:
    """Ids (None if there are none), matrix and column names of a table or array."""
    if not is_frame(X):
        if isinstance(ids, str):
            raise ValueError(
                f"ids={ids!r} names a column, but there is none: {label} is not a table. Pass one "
                "id per row instead."
            )
        return ids, as_matrix(X, label), None
    frame = nw.from_native(X, eager_only=True)
    if isinstance(ids, str):
        ids, frame = _id_column(frame, ids, label), frame.drop(ids)
    elif ids is None:
        index = nw.maybe_get_index(frame)
        if index is not None and not _is_default(index):
            ids = index
    schema = frame.schema
    numeric = {column: kind.is_numeric() or kind == nw.Boolean for column, kind in schema.items()}
    other = [column for column, fine in numeric.items() if not fine]
    if other:
        raise ValueError(
            f"{label} has columns that are not numbers: {some(other, 5)} "
            f"({schema[other[0]]}). Drop or encode them"
            + ("." if ids is not None else ", or name the one that holds the ids with ids=….")
        )
    single = all(kind == nw.Float32 for kind in schema.values())
    as_float = frame.select(nw.all().cast(nw.Float32 if single else nw.Float64))
    return ids, as_matrix(as_float.to_numpy(), label), _names(frame.columns)


def _id_column(frame: nw.DataFrame[Any], name: str, label: str) -> Any:
    """Ids of a column; ints stay an array, which takes a fifth of a list's memory."""
    if name not in frame.columns:
        raise ValueError(
            f"{label} has no id column {name!r}. Its columns: {some(frame.columns, 5)}."
        )
    column = frame[name]
    whole = column.dtype.is_integer() and not column.null_count()
    return column.to_numpy() if whole else column.to_list()


def _names(columns: Any) -> tuple[str, ...] | None:
    """Column names, if all of them are strings."""
    names = list(columns)
    return tuple(map(str, names)) if all(isinstance(name, str) for name in names) else None


def _is_default(index: Any) -> bool:
    """Whether nobody set this index: pandas numbers rows from 0 by itself."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def is_path(X: Any) -> bool:
    """Whether this names a file."""
    return isinstance(X, str | os.PathLike)


def is_anndata(X: Any) -> bool:
    """Whether this has rows with names and columns with names, as an AnnData has."""
    return all(hasattr(X, part) for part in ("obs_names", "var_names", "X"))


def _lazy_parts(X: Any) -> Any:
    """Return what a polars LazyFrame gives: batches of rows, or all if this polars has none."""
    if not is_lazy(X):
        return X
    if hasattr(X, "collect_batches"):
        return iter(X.collect_batches(maintain_order=True, engine="streaming"))
    return X.collect()


def is_lazy(X: Any) -> bool:
    """Whether this is a polars LazyFrame."""
    return bool(nw.dependencies.is_polars_lazyframe(X))


def is_frame(X: Any) -> bool:
    """Whether this is a DataFrame in memory, of any library that narwhals knows."""
    return isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame)
