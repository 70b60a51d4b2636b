"""Ids, matrix and column names of what users pass: arrays, tables, AnnData, files, batches."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.exceptions import DuplicateError

from viewfold._util.file import ReadOptions
from viewfold._util.messages import format_names, with_suggestion
from viewfold._util.types import Array, Matrix
from viewfold.data.arrays import Batches, Spool, as_matrix, in_blocks, spool_batches
from viewfold.data.files import FileView
from viewfold.data.source import without
from viewfold.data.view import View

if TYPE_CHECKING:
    from viewfold.data.codes import Cells, Codes


class Parts(NamedTuple):
    """What a view is made of."""

    ids: Any  # None if there are none
    rows: Matrix  # ndarray, memmap or csr_array: a row of numbers per sample
    names: tuple[str, ...] | None  # of the columns
    codes: Mapping[str, Codes] = MappingProxyType({})  # what numbers stand for, by column
    dropped: tuple[str, ...] = ()  # columns that the user left out


def source_kind(X: Any) -> str:
    """Return what holds a view, or several; empty for an array, a list and anything else."""
    if is_path(X):
        return "path"
    if isinstance(X, FileView | View):
        return "file" if isinstance(X, FileView) else "view"
    if isinstance(X, Iterator):  # of batches of rows
        return "batches"
    package = type(X).__module__.split(".")[0]
    if package in ("dask", "dask_expr"):
        table = hasattr(X, "npartitions") or hasattr(X, "chunks")
        return "dask" if hasattr(X, "compute") and getattr(X, "ndim", 0) == 2 and table else ""
    if package == "pyspark" and hasattr(X, "write") and hasattr(X, "columns"):
        return "spark"
    if all(hasattr(X, part) for part in ("obs_names", "var_names", "X")):
        return "anndata"  # it has rows with names and columns with names
    if nw.dependencies.is_polars_lazyframe(X):
        return "lazy"
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except DuplicateError:
        return "frame"  # `split_table` says which column it is, and of which view
    return "frame" if isinstance(frame, nw.DataFrame) else ""


def split_object(X: Any, ids: Any, label: str, options: ReadOptions) -> Parts:
    kind = source_kind(X)
    if kind == "anndata":
        _check_no_columns_named(label, options)
        if isinstance(ids, str):
            ids = _id_column(nw.from_native(X.obs), ids, label)
        rows, columns = _part_of_anndata(X, *options.part)
        names = tuple(columns)
        texts = all(isinstance(name, str) for name in names)
        matrix = as_matrix(in_blocks(rows, label), label)
        return Parts(X.obs_names if ids is None else ids, matrix, names if texts else None)
    if kind == "lazy":  # a polars LazyFrame gives batches of rows, or all if this polars has none
        kind = "batches" if hasattr(X, "collect_batches") else kind
        asked = {"maintain_order": True, "engine": "streaming"}
        X = iter(X.collect_batches(**asked)) if kind == "batches" else X.collect()
    if kind != "batches":
        return split_table(X, ids, label, {}, options)
    column = ids if isinstance(ids, str) else None
    codes: dict[str, Codes] = {}
    dropped: tuple[str, ...] = ()

    def batches() -> Iterator[tuple[Any, Matrix, Any]]:
        nonlocal dropped
        for i, batch in enumerate(X):
            part = split_table(batch, column, label, codes, options, later=i > 0)
            dropped = part.dropped if i == 0 else dropped
            yield part[:3]

    found, matrix, features = spool_batches(batches(), label, Spool())
    return Parts(found if ids is None or column else ids, matrix, features, codes, dropped)


def check_part(X: Any, options: ReadOptions) -> None:
    """Refuse a layer or representation of what is no AnnData; readers of files check their own."""
    name = "layer" if options.layer is not None else "use_rep"
    given = getattr(options, name)
    if given is not None and source_kind(X) not in ("path", "anndata", "file"):
        raise ValueError(
            f"{name}={given!r} names a part of an AnnData, but X is a {type(X).__name__}."
        )


def _part_of_anndata(X: Any, layer: str | None, use_rep: str | None) -> tuple[Any, Any]:
    """Return X, the layer or the entry of obsm, and names of its columns."""
    if layer is None and use_rep is None:
        return X.X, X.var_names
    from viewfold.data.hdf5 import representation

    parts, what = (X.obsm, "representation") if layer is None else (X.layers, "layer")
    name = use_rep if layer is None else layer
    if name not in parts:
        there = format_names(parts) if len(parts) else "none"
        raise ValueError(f"The AnnData has no {what} {name!r}. It has {there}.")
    found = parts[name]
    return representation(found, str(name)) if layer is None else (found, X.var_names)


def split_file(source: FileView, ids: Any, label: str, options: ReadOptions) -> Parts:
    """Take apart what a reader returns; temporary files are removed."""
    try:
        if isinstance(source.rows, Iterator):
            spool = Spool()
            batches = source.rows.into(spool) if isinstance(source.rows, Batches) else source.rows
            parts = ((known, rows, source.features) for known, rows in batches)
            found, matrix, features = spool_batches(parts, label, spool)
        else:
            found, features = source.ids, source.features
            # Where the reader found no ids, their name is a mistake that `split_table` tells.
            named = ids if found is None else None
            matrix = split_table(source.rows, named, label, {}, options).rows
    finally:
        if source.owner is not None:
            source.owner.cleanup()
    known = found if ids is None or isinstance(ids, str) else ids
    return Parts(known, matrix, features, source.codes, source.dropped)


def split_table(
    X: Any,
    ids: Any,
    label: str,
    codes: dict[str, Codes],
    options: ReadOptions,
    *,
    later: bool = False,
) -> Parts:
    """Take a table or array apart.

    Cells that are not numbers become numbers; `codes` says of which columns and what they stand
    for. Of a `later` batch of rows, the same columns are coded as in the first.
    """
    if source_kind(X) != "frame":
        _check_no_columns_named(label, options)
        if isinstance(ids, str):
            raise ValueError(
                f"ids={ids!r} names a column, but there is none: {label} is not a table. "
                "Pass one id per row instead."
            )
        return Parts(ids, as_matrix(X, label), None)
    columns = list(X.column_names if nw.dependencies.is_pyarrow_table(X) else X.columns)
    if len(set(map(str, columns))) < len(columns):
        twice = Counter(map(str, columns)).most_common(1)[0][0]
        raise ValueError(
            f"{label}: two columns are called {twice!r}. Give each column its own name."
        )
    named = all(isinstance(name, str) for name in columns)
    if not named:  # narwhals takes a name such as 0, 1, 2 of pandas for a row
        X = X.copy(deep=False)
        X.columns = list(map(str, columns))
    frame = nw.from_native(X, eager_only=True)
    if isinstance(ids, str):
        ids, frame = _id_column(frame, ids, label), frame.drop(ids)
    elif ids is None:
        index = nw.maybe_get_index(frame)
        ids = None if index is None or _is_default(index) else index
    whole = frame.columns
    if not whole:  # which libraries give no array of no columns
        return Parts(ids, np.empty((len(frame), 0)), None)
    # A table whose columns are numbered has no names, unless the view knows it by them.
    known = bool(options.kinds) and (named or not options.kinds.keys().isdisjoint(whole))
    if known or options.names_columns:
        frame = frame.select(*options.wanted(whole, label))
    schema = frame.schema
    said = options.kinds or options.categories or options.batch
    coded = [
        column
        for column, kind in schema.items()
        if not (kind.is_numeric() or kind == nw.Boolean)
        or column in codes
        or (said and options.is_coded(column))
    ]
    dropped = tuple(name for name in whole if name not in schema)
    if coded:
        numbers = _coded(frame, coded, codes, label, options, later)
        return Parts(ids, numbers, tuple(schema), codes, dropped)
    single = all(kind == nw.Float32 for kind in schema.values())
    numbers = _floats(frame, nw.Float32 if single else nw.Float64)
    features = tuple(frame.columns) if named or dropped or known else None
    return Parts(ids, numbers, features, {}, dropped)


def _floats(frame: nw.DataFrame[Any], kind: Any) -> Array:
    """Return a table of numbers as an array; a column costs time only if it has another type."""
    others = [name for name, dtype in frame.schema.items() if dtype != kind]
    numbers = (frame.with_columns(nw.col(*others).cast(kind)) if others else frame).to_numpy()
    # The order in memory decides the last bits of sums: the same for a table, however it was cut.
    return np.ascontiguousarray(numbers)


def _coded(
    frame: nw.DataFrame[Any],
    coded: list[str],
    codes: dict[str, Codes],
    label: str,
    options: ReadOptions,
    later: bool,
) -> Array:
    new = [column for column in coded if column not in codes]
    if later and new:
        raise ValueError(
            f"{label}: column {new[0]!r} holds numbers in the first batch, and "
            f"{frame.schema[new[0]]} in a later one. Give all batches the same types."
        )
    from viewfold.data.codes import codes_of

    codes.update(codes_of(new, label, options))
    out = np.full((len(frame), len(frame.columns)), np.nan)
    place = {name: j for j, name in enumerate(frame.columns)}
    others = without(frame.columns, coded)
    if others:
        out[:, [place[name] for name in others]] = _floats(frame.select(*others), nw.Float64)
    for name in coded:
        column = frame[name]
        if column.null_count() == len(column):
            continue
        cells = _cells(column, codes[name].kind)
        if cells is None:
            said = (
                f"{label}: column {name!r} holds {column.dtype}, which is no number, category "
                f"or date. Drop or encode it (drop={[name]!r})."
            )
            raise with_suggestion(ValueError(said), drop=[name])
        out[:, place[name]] = codes[name](cells)
    return out


def _cells(column: nw.Series[Any], kind: str | None) -> Cells | None:
    """Return the cells of a column, given what it is known to be; None if they cannot be coded."""
    from viewfold.data.codes import Cells

    declared = column.dtype in (nw.Categorical, nw.Enum)
    dates = kind == "date" or (kind is None and not declared)
    if dates and column.dtype in (nw.Date, nw.Datetime):
        return Cells.of_moments(column.dt.timestamp("us").cast(nw.Float64).to_numpy())
    known = (nw.String, nw.Boolean, nw.Date, nw.Datetime)
    if (column.dtype.is_numeric() and column.dtype != nw.Decimal) or column.dtype in known:
        return Cells.of(column.to_list())
    if not declared and column.dtype not in (nw.Object, nw.Unknown):
        return None
    nothing = (pd.NA, pd.NaT, np.nan)
    values = [None if any(v is no for no in nothing) else v for v in column.to_list()]
    held = [value for value in values if value is not None]
    if dates and all(isinstance(value, date) for value in held):
        return Cells.of_dates(values)
    # What is mixed is texts, but what is a list or the like throughout is nothing of this kind.
    plain = str | int | float | date | np.bool_ | np.number
    if not any(isinstance(value, plain) for value in held):
        return None
    return Cells.of(values, declared=declared)


def _check_no_columns_named(label: str, options: ReadOptions) -> None:
    if options.names_columns:
        raise ValueError(
            f"{label} is not a table: it has no columns that columns=…, drop=…, categories=… or "
            "batch=… could name. Pass a DataFrame, or choose the columns yourself."
        )


def _id_column(frame: nw.DataFrame[Any], name: str, label: str) -> Any:
    """Ids of a column; ints stay an array, which takes a fifth of a list's memory."""
    if name not in frame.columns:
        raise ValueError(
            f"{label} has no id column {name!r}. Its columns: {format_names(frame.columns, 5)}."
        )
    column = frame[name]
    whole = column.dtype.is_integer() and not column.null_count()
    return column.to_numpy() if whole else column.to_list()


def _is_default(index: Any) -> bool:
    """Whether nobody set this index: pandas numbers rows from 0 by itself."""
    counted = isinstance(index, pd.RangeIndex) or type(index).__name__ == "RangeIndex"
    return counted and index.start == 0 and index.step == 1


def is_path(X: Any) -> bool:
    return isinstance(X, str | os.PathLike)
