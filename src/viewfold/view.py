"""One view: sample ids, a matrix with a row for each of them, and a name.

Everything users hold becomes a `View` here (`as_view`, `as_views`), or an error that says what is
wrong and what to do. Nothing behind this door sees a file, a DataFrame, a NaN or a duplicate id.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import pandas as pd
from scipy import sparse

from viewfold import io
from viewfold._choice import which_view
from viewfold.arrays import as_matrix
from viewfold.blocks import Array, Matrix, Rows, blas_on_one_thread, for_each
from viewfold.ids import as_ids, is_called_id, look_like_ids
from viewfold.io._spool import Batches, Spool

LARGEST, LARGEST_SINGLE = 1e140, 1e15
"""All methods begin with sums of squares. Those of larger numbers would be infinite; those of large
numbers in single precision are computed in double precision."""


@dataclass(frozen=True)
class View:
    """A view: who is in it and what it says about them.

    Use `as_view` to make one; it checks what this class takes for granted.

    Parameters
    ----------
    ids : ndarray of int or object
        The samples, each once.
    rows : Rows
        A finite row for each id, in the same order.
    name : str or None
        The view's name.
    features : tuple of str or None
        Names of the columns, where they have names.
    length : int or None
        For a view that came without ids, the number of rows it came with (absent ones included):
        its ids are then row numbers. None if the ids were given.
    file : str or None
        The path it was read from; errors name it.
    checked : bool
        Whether its cells were looked at: what is checked once is not checked again.
    """

    ids: Array
    rows: Rows
    name: str | None = None
    features: tuple[str, ...] | None = None
    length: int | None = None
    file: str | None = None
    checked: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Samples, features."""
        return self.rows.shape

    def __repr__(self) -> str:
        n, d = self.shape
        kind = "sparse" if sparse.issparse(self.rows.X) else str(self.rows.X.dtype)
        return f"View({self.name!r}, {n} samples × {d} features, {kind})"


def as_view(X: Any, *, ids: Any = None, name: str | None = None) -> View:
    """Make a `View` of anything that holds one row per sample.

    Parameters
    ----------
    X : array-like, sparse matrix, DataFrame, AnnData, memmap, path or iterator
        A DataFrame of pandas, polars or any other library that narwhals reads (numeric columns;
        the index of a pandas DataFrame holds the ids, unless it is the default one), a dense or
        sparse array, an AnnData (``obs_names`` are the ids), a NumPy memmap (read block by block,
        never as a whole), the path of a file (see `viewfold.io.read`; tables and ``.npy`` files
        may be larger than memory), or an iterator of row batches, each of them one of the above.
        Rows that are entirely NaN are absent samples.
    ids : array-like, str or False, optional
        One int or str per row, or the name of the column that holds them. Without any, samples
        are known by their row number, unless a column looks as if it held ids, which is an error.
        False says that none does, and that an index is no ids either.
    name : str, optional
        What to call the view; a view from ``labs.csv`` is called ``labs`` otherwise. In a file
        of several views, the name of the one to take.

    Returns
    -------
    View

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import as_view
    >>> as_view([[1.0, 2.0], [3.0, 4.0]], ids=["ann", "bob"], name="labs")
    View('labs', 2 samples × 2 features, float64)
    >>> as_view(np.array([[1.0, 2.0], [np.nan, np.nan], [5.0, 6.0]])).ids
    array([0, 2])
    """
    view = open_view(X, ids=ids, name=name)
    if ids is None and not view.checked:
        _check_no_id_column(view)
    return without_absent(view)


def open_view(X: Any, *, ids: Any = None, name: str | None = None) -> View:
    """Do what `as_view` does, short of looking at the cells."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f"The name of a view is a text, got {name!r} ({type(name).__name__}).")
    if isinstance(X, View):
        if ids is not None and ids is not False:
            raise ValueError(f"{_called(name or X.name)} is a View and has its ids already.")
        return replace(X, name=name or X.name)
    if _is_path(X):
        path, X = os.fspath(X), opened(X, ids)
        if isinstance(X, dict):
            X = X[list(X)[which_view(list(X), name, f"{path} holds")]]
    name = name or own_name(X)
    file = X.file if isinstance(X, io.Source) else None
    label = _called(name, file)
    take_apart = _of_object if file is None else _of_file
    found, matrix, features = take_apart(X, None if ids is False else ids, label)
    ids = None if ids is False else found
    n, d = matrix.shape
    if n == 0 or d == 0:
        raise ValueError(
            f"{label} is empty: found array with {n} sample(s) and {d} feature(s) "
            f"(shape={matrix.shape}) while a minimum of 1 is required. Leave the view out."
        )
    length = n if ids is None else None
    ids = np.arange(n) if ids is None else as_ids(ids, n, label)
    return View(ids, Rows(matrix), name, features, length, file)


def _check_no_id_column(view: View) -> None:
    """Refuse a column of ids that would be taken for a feature: by its name, and by its values."""
    if view.length is None or view.features is None or sparse.issparse(view.rows.X):
        return
    for j, name in enumerate(view.features):
        if is_called_id(name, first=j == 0) and look_like_ids(view.rows.X[:, j]):
            raise ValueError(
                f"{_called(view.name, view.file)}: column {name!r} looks like ids: whole numbers "
                f"that are all different. Pass ids={name!r} (--id {name}) if it holds them, or "
                "ids=False (--no-id) if it is a feature and samples are known by their row number."
            )


Parts: TypeAlias = tuple[Any, Matrix, tuple[str, ...] | None]  # ids or None, matrix, column names


def _of_object(X: Any, ids: Any, label: str) -> Parts:
    """Take apart what is held in memory."""
    if _is_anndata(X):
        if isinstance(ids, str):
            ids = _id_column(nw.from_native(X.obs), ids, label)
        return X.obs_names if ids is None else ids, as_matrix(X.X, label), _names(X.var_names)
    if isinstance(X, Iterator):
        column = ids if isinstance(ids, str) else None
        parts = (_columns(batch, column, label) for batch in X)
        found, matrix, features = _spool(parts, label, Spool())
        return found if ids is None or column else ids, matrix, features
    return _columns(X, ids, label)


def _of_file(source: io.Source, ids: Any, label: str) -> Parts:
    """Take apart what a reader gives."""
    if isinstance(source.rows, Iterator):
        spool = Spool()
        batches = source.rows.into(spool) if isinstance(source.rows, Batches) else source.rows
        parts = ((known, rows, source.features) for known, rows in batches)
        found, matrix, features = _spool(parts, label, spool)
    else:
        found, features = source.ids, source.features
        # Where the reader found no ids, their name is a mistake that `_columns` tells.
        _, matrix, _ = _columns(source.rows, ids if found is None else None, label)
    return found if ids is None or isinstance(ids, str) else ids, matrix, features


def without_absent(view: View) -> View:
    """Leave out rows that are NaN throughout; refuse any other NaN, inf and what is too large."""
    if view.checked:
        return view
    rows = _usable(view)
    ids = view.ids if rows.present is None else view.ids[rows.present]
    return replace(view, ids=ids, rows=rows, checked=True)


def as_views(X: Any, *, ids: Any = None) -> list[View]:
    """Make a list of `View` of one view, a list or tuple of views, a dict of them or a MuData.

    Parameters
    ----------
    X : object
        Anything `as_view` takes, a list or a dict (its keys are the names) of such things, a
        MuData (each modality is a view), or the path of a file of several views (``.npz``,
        ``.mat``, ``.h5mu``).
    ids : array-like, str, False, list or dict, optional
        For one view, its ids; for several, the name of the column that all of them have, or a
        list or dict with the ids of each. False: samples are known by their row number.

    Returns
    -------
    list of View

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import as_views
    >>> as_views({"labs": np.ones((3, 2)), "scan": np.ones((2, 5))}, ids={"scan": [1, 2]})
    [View('labs', 3 samples × 2 features, float64), View('scan', 2 samples × 5 features, float64)]
    """
    X = opened(X, ids)
    by_name = named_views(X)
    if by_name is not None:
        names, held = list(by_name), list(by_name.values())
    elif isinstance(X, list | tuple) and X and _is_one_view(X[0]):
        names, held = [own_name(view) or f"view{i}" for i, view in enumerate(X)], list(X)
    else:
        return [as_view(X, ids=ids, name=own_name(X) or "view0")]
    if not held:
        raise ValueError("There is no view: got an empty collection. Give at least one.")
    ids_of = _ids_of_each(ids, names)
    return [as_view(view, ids=ids_of[i], name=names[i]) for i, view in enumerate(held)]


def opened(X: Any, ids: Any = None) -> Any:
    """Read a path, once: the Source of its only view, or all of them by name.

    Whatever is not a path is returned as it is.
    """
    if not _is_path(X):
        return X
    views = io.read(X, ids=ids if isinstance(ids, str) else None)
    return views if len(views) > 1 else next(iter(views.values()))


def own_name(X: Any) -> str | None:
    """Return what a view is called if nobody names it: a file's view is called like the file."""
    if _is_path(X):
        return io.name_of(X)
    return X.name if isinstance(X, View | io.Source) else None


def _ids_of_each(ids: Any, names: list[str]) -> list[Any]:
    if isinstance(ids, Mapping):
        given = {str(name): of_view for name, of_view in ids.items()}
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise ValueError(f"ids are given for {unknown}, but the views are {names}.")
        return [given.get(name) for name in names]
    if ids is None or ids is False or isinstance(ids, str):
        return [ids] * len(names)
    if not isinstance(ids, Sequence) or len(ids) != len(names):
        raise ValueError(
            f"ids must be a list or dict with the ids of each of the {len(names)} views."
        )
    return list(ids)


def named_views(X: Any) -> dict[str, Any] | None:
    """Return the views of a dict or a MuData by name, None for one view."""
    if hasattr(X, "mod") and isinstance(X.mod, Mapping):  # MuData
        X = X.mod
    if isinstance(X, Mapping) and not sparse.issparse(X):  # a dok_array is a Mapping
        return {str(name): view for name, view in X.items()}
    return None


def _called(name: str | None, file: str | None = None) -> str:
    called = "The view" if name is None else f"View {name!r}"
    return called if file is None else f"{called} ({file})"


def _is_path(X: Any) -> bool:
    return isinstance(X, str | os.PathLike)


def _is_anndata(X: Any) -> bool:
    return all(hasattr(X, part) for part in ("obs_names", "var_names", "X"))


def _is_frame(X: Any) -> bool:
    return isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame)


def _is_one_view(X: Any) -> bool:
    """Whether a list's first element is a view of its own, rather than a row of numbers."""
    return (
        getattr(X, "ndim", 0) == 2
        or isinstance(X, View | io.Source | os.PathLike | str | Iterator)
        or _is_anndata(X)
        or _is_frame(X)
    )


def is_view_like(X: Any) -> bool:
    """Whether this could be meant as a view, or as several, rather than as a target."""
    if isinstance(X, Mapping) or (hasattr(X, "mod") and isinstance(X.mod, Mapping)):
        return True
    if isinstance(X, list | tuple):
        return (
            bool(X)
            and not isinstance(X[0], str)
            and (_is_one_view(X[0]) or isinstance(X[0], list | tuple | np.ndarray))
        )
    if isinstance(X, np.ndarray):
        return X.ndim > 2 or (X.ndim == 2 and X.shape[1] > 1)
    return sparse.issparse(X) or _is_one_view(X)


def _names(columns: Any) -> tuple[str, ...] | None:
    """Column names, if all of them are strings."""
    names = list(columns)
    return tuple(map(str, names)) if all(isinstance(name, str) for name in names) else None


def _columns(X: Any, ids: Any, label: str) -> Parts:
    """Ids (None if there are none), matrix and column names of a table or array."""
    if not _is_frame(X):
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
            f"{label} has columns that are not numbers: {_some(other)} "
            f"({schema[other[0]]}). Drop or encode them"
            + ("." if ids is not None else ", or name the one that holds the ids with ids=….")
        )
    single = all(kind == nw.Float32 for kind in schema.values())
    as_float = frame.select(nw.all().cast(nw.Float32 if single else nw.Float64))
    return ids, as_matrix(as_float.to_numpy(), label), _names(frame.columns)


def _is_default(index: Any) -> bool:
    """Whether nobody set this index: pandas numbers rows from 0 by itself."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def _usable(view: View) -> Rows:
    """Return the rows that are not NaN throughout, in double precision if they ask for it."""
    X = view.rows.X
    if X.dtype.kind != "f":
        return view.rows
    most = min(LARGEST, float(np.finfo(view.rows.dtype).max))
    if sparse.issparse(X):
        size = np.abs(X.data.astype(view.rows.dtype, copy=False))
        bad = np.flatnonzero(~(size <= most))
        if bad.size:
            row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
            raise _unusable(view, row, int(X.indices[bad[0]]), X.data[bad[0]])
        return replace(view.rows, double=bool((size > LARGEST_SINGLE).any()))
    absent: list[Array] = []
    large: list[bool] = []

    def look(where: slice, block: Matrix) -> None:
        # Two numbers tell most of the time, and take no memory; a NaN is in both of them.
        largest = max(-float(block.min()), float(block.max()))
        single = block.dtype == np.float32
        if largest <= (LARGEST_SINGLE if single else most):
            return
        size = np.abs(block)
        if single and (size > LARGEST_SINGLE).any():
            large.append(True)
        fine = size <= most
        if fine.all():
            return
        gone = np.isnan(block).all(axis=1)
        cells = np.argwhere(~fine & ~gone[:, None])
        if cells.size:
            row, column = (int(i) for i in cells[0])
            raise _unusable(view, where.start + row, column, block[row, column])
        absent.append(where.start + np.flatnonzero(gone))

    with blas_on_one_thread() as threads:
        for_each(view.rows, look, threads)
    rows = replace(view.rows, double=bool(large))
    if not absent:
        return rows
    present = np.setdiff1d(np.arange(X.shape[0]), np.concatenate(absent), assume_unique=True)
    if not present.size:
        raise ValueError(
            f"{_called(view.name, view.file)} is empty: all its rows are NaN. Leave the view out."
        )
    return replace(rows, present=present)


def _unusable(view: View, row: int, column: int, value: Any) -> ValueError:
    which = repr(view.features[column]) if view.features else column
    if np.isfinite(value):
        shown = f"{value:.3g}"
        said = (
            f"Numbers beyond {LARGEST:.0e} cannot be squared. If it marks a missing value, impute "
            "or drop it; otherwise divide the column by a large number."
        )
    else:
        shown = "NaN" if np.isnan(value) else "inf"
        said = (
            "Impute or drop it; a sample that this view lacks altogether is a row with NaN in "
            "every column."
        )
    return ValueError(
        f"{_called(view.name, view.file)} contains {shown} in row {row} (id {view.ids[row]!r}), "
        f"column {which}. {said}"
    )


def _spool(parts: Iterator[Parts], label: str, spool: Spool) -> Parts:
    """Collect row batches in a temporary file and map that: an iterator can be read only once."""
    first = next(parts, None)
    if first is None:
        raise ValueError(f"{label} is empty: its iterator gave no batch.")
    _, top, features = first
    known: list[Any] = []

    def blocks() -> Iterator[Matrix]:
        for ids, block, names in chain([first], parts):
            _same_columns(block, names, top, features, label)
            known.append(ids)
            yield block

    if sparse.issparse(top):
        matrix = sparse.csr_array(sparse.vstack(list(blocks()), format="csr"))
    else:
        for block in blocks():
            spool.append(block, Rows(top).dtype)
        matrix = spool.matrix()
    return _joined(known), matrix, features


def _id_column(frame: nw.DataFrame[Any], name: str, label: str) -> Any:
    """Ids of a column; ints stay an array, which takes a fifth of a list's memory."""
    if name not in frame.columns:
        raise ValueError(f"{label} has no id column {name!r}. Its columns: {_some(frame.columns)}.")
    column = frame[name]
    whole = column.dtype.is_integer() and not column.null_count()
    return column.to_numpy() if whole else column.to_list()


def _joined(known: list[Any]) -> Any:
    """Ids of all batches. A column that holds text in some batches is text in all of them."""
    if any(ids is None for ids in known):
        return None
    if all(_is_ints(ids) for ids in known):
        return np.concatenate(known)
    if all(_is_ints(ids) or pd.api.types.infer_dtype(ids) == "string" for ids in known):
        known = [ids.astype(str).tolist() if _is_ints(ids) else ids for ids in known]
    return list(chain.from_iterable(known))


def _is_ints(ids: Any) -> bool:
    return isinstance(ids, np.ndarray) and ids.dtype.kind in "iu"


def _same_columns(block: Matrix, names: Any, top: Matrix, features: Any, label: str) -> None:
    if sparse.issparse(block) != sparse.issparse(top):
        raise ValueError(f"{label} mixes dense and sparse batches. Use one kind.")
    if block.shape[1] != top.shape[1] or names != features:
        raise ValueError(
            f"{label}: a batch has {block.shape[1]} columns where the first one had "
            f"{top.shape[1]}, or other names. Give every batch the same columns in the same order."
        )


def _some(things: Any, most: int = 5) -> str:
    shown = ", ".join(repr(thing) for thing in things[:most])
    return shown + (f", … ({len(things)} in all)" if len(things) > most else "")
