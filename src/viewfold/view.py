"""One view: sample ids, a matrix with a row for each of them, and a name.

Everything users hold becomes a `View` here (`as_view`, `as_views`), or an error that says what is
wrong and what to do. Nothing behind this door sees a DataFrame, a NaN or a duplicate id.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from viewfold.blocks import Array, Matrix, Rows, blas_on_one_thread, for_each


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
    """

    ids: Array
    rows: Rows
    name: str | None = None
    features: tuple[str, ...] | None = None
    length: int | None = None

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
        sparse array, an AnnData (``obs_names`` are the ids), a NumPy memmap or the path of a
        ``.npy`` file (read block by block, never as a whole), or an iterator of row batches, each
        of them one of the above. Rows that are entirely NaN are absent samples.
    ids : array-like or str, optional
        One int or str per row, or the name of the DataFrame column that holds them. Without any,
        samples are known by their row number.
    name : str, optional
        What to call the view.

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
    return without_absent(open_view(X, ids=ids, name=name))


def open_view(X: Any, *, ids: Any = None, name: str | None = None) -> View:
    """Do what `as_view` does, short of looking at the cells."""
    if isinstance(X, View):
        if ids is not None:
            raise ValueError(f"{_called(name or X.name)} is a View and has its ids already.")
        return replace(X, name=name or X.name)
    if _is_anndata(X):
        ids = X.obs_names if ids is None else ids
        matrix, features = _matrix(X.X, name), _names(X.var_names)
    elif isinstance(X, Iterator):
        ids, matrix, features = _spool(X, ids, name)
    else:
        ids, matrix, features = _columns(X, ids, name)
    n, d = matrix.shape
    if n == 0 or d == 0:
        raise ValueError(
            f"{_called(name)} is empty: found array with {n} sample(s) and {d} feature(s) "
            f"(shape={matrix.shape}) while a minimum of 1 is required. Leave the view out."
        )
    length = n if ids is None else None
    ids = np.arange(n) if ids is None else _ids(ids, n, name)
    return View(ids, Rows(matrix), name, features, length)


def without_absent(view: View) -> View:
    """Look at the cells: leave out rows that are NaN throughout, refuse any other NaN or inf."""
    if view.rows.present is not None:
        return view  # it was looked at before
    present = _present(view)
    if present is None:
        return view
    return replace(view, ids=view.ids[present], rows=Rows(view.rows.X, present))


def as_views(X: Any, *, ids: Any = None) -> list[View]:
    """Make a list of `View` of one view, a list or tuple of views, a dict of them or a MuData.

    Parameters
    ----------
    X : object
        Anything `as_view` takes, a list or a dict (its keys are the names) of such things, or a
        MuData (each modality is a view).
    ids : array-like, list or dict, optional
        For one view, its ids; for several, a list or dict with the ids of each.

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
    by_name = named_views(X)
    if by_name is not None:
        names, held = list(by_name), list(by_name.values())
    elif isinstance(X, list | tuple) and X and _is_one_view(X[0]):
        names, held = [_own_name(view) or f"view{i}" for i, view in enumerate(X)], list(X)
    else:
        return [as_view(X, ids=ids, name=_own_name(X) or "view0")]
    if not held:
        raise ValueError("There is no view: got an empty collection. Give at least one.")
    ids_of = _ids_of_each(ids, names)
    return [as_view(view, ids=ids_of[i], name=names[i]) for i, view in enumerate(held)]


def _own_name(X: Any) -> str | None:
    return X.name if isinstance(X, View) else None


def _ids_of_each(ids: Any, names: list[str]) -> list[Any]:
    if isinstance(ids, Mapping):
        given = {str(name): of_view for name, of_view in ids.items()}
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise ValueError(f"ids are given for {unknown}, but the views are {names}.")
        return [given.get(name) for name in names]
    if ids is None:
        return [None] * len(names)
    if not isinstance(ids, Sequence) or len(ids) != len(names):
        raise ValueError(
            f"ids must be a list or dict with the ids of each of the {len(names)} views."
        )
    return list(ids)


def named_views(X: Any) -> dict[str, Any] | None:
    """Return the views of a dict or MuData by name, None for anything else."""
    if hasattr(X, "mod") and isinstance(X.mod, Mapping):  # MuData
        X = X.mod
    if isinstance(X, Mapping) and not sparse.issparse(X):  # a dok_array is a Mapping
        return {str(name): view for name, view in X.items()}
    return None


def _called(name: str | None) -> str:
    return "The view" if name is None else f"View {name!r}"


def _is_anndata(X: Any) -> bool:
    return all(hasattr(X, part) for part in ("obs_names", "var_names", "X"))


def _is_frame(X: Any) -> bool:
    return isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame)


def _is_one_view(X: Any) -> bool:
    """Whether a list's first element is a view of its own, rather than a row of numbers."""
    return (
        getattr(X, "ndim", 0) == 2
        or isinstance(X, View | os.PathLike | str | Iterator)
        or _is_anndata(X)
        or _is_frame(X)
    )


def _names(columns: Any) -> tuple[str, ...] | None:
    """Column names, if all of them are strings."""
    names = list(columns)
    return tuple(map(str, names)) if all(isinstance(name, str) for name in names) else None


def _columns(X: Any, ids: Any, name: str | None) -> tuple[Any, Matrix, tuple[str, ...] | None]:
    """Ids (None if there are none), matrix and column names of a table or array."""
    if not _is_frame(X):
        if isinstance(ids, str):
            raise ValueError(
                f"ids={ids!r} names a column, but {_called(name).lower()} is not a DataFrame. "
                "Pass one id per row instead."
            )
        return ids, _matrix(X, name), None
    frame = nw.from_native(X, eager_only=True)
    if isinstance(ids, str):
        if ids not in frame.columns:
            raise ValueError(
                f"{_called(name)} has no id column {ids!r}. Its columns: {_some(frame.columns)}."
            )
        frame, ids = frame.drop(ids), frame[ids].to_list()
    elif ids is None:
        index = nw.maybe_get_index(frame)
        if index is not None and not _is_default(index):
            ids = index
    schema = frame.schema
    numeric = {column: kind.is_numeric() or kind == nw.Boolean for column, kind in schema.items()}
    other = [column for column, fine in numeric.items() if not fine]
    if other:
        raise ValueError(
            f"{_called(name)} has columns that are not numbers: {_some(other)} "
            f"({schema[other[0]]}). Drop or encode them"
            + ("." if ids is not None else ", or name the one that holds the ids with ids=….")
        )
    single = all(kind == nw.Float32 for kind in schema.values())
    as_float = frame.select(nw.all().cast(nw.Float32 if single else nw.Float64))
    return ids, _matrix(as_float.to_numpy(), name), _names(frame.columns)


def _is_default(index: Any) -> bool:
    """Whether nobody set this index: pandas numbers rows from 0 by itself."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def _matrix(X: Any, name: str | None) -> Matrix:
    """Return a 2-D array of real numbers or a CSR array; cells are not looked at yet."""
    if isinstance(X, str | os.PathLike):
        if not os.fspath(X).endswith(".npy"):
            raise ValueError(
                f"{_called(name)}: cannot read {os.fspath(X)!r}; expected a .npy file. Read other "
                "files first, for instance with pandas.read_csv(…, index_col=0)."
            )
        X = np.load(X, mmap_mode="r", allow_pickle=False)
    if not sparse.issparse(X):
        if not isinstance(X, np.ndarray):
            X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(
                f"{_called(name)}: Expected 2D array, got {X.ndim}D array instead (shape {X.shape})"
                ". Reshape your data: one row per sample, one column per feature"
                + (", for instance X.reshape(-1, 1) for a single feature." if X.ndim == 1 else ".")
            )
    elif X.ndim != 2:
        raise ValueError(f"{_called(name)}: Expected 2D array, got a {X.ndim}D sparse array.")
    else:
        X = sparse.csr_array(X)
    if np.issubdtype(X.dtype, np.complexfloating):
        raise ValueError(f"{_called(name)}: Complex data not supported. Pass real features.")
    if X.dtype == object or X.dtype.kind in "USTV":
        X = _numbers(X, name)
    if X.dtype.kind not in "fiub" or X.dtype.itemsize > 8:
        raise ValueError(f"{_called(name)} holds {X.dtype}; expected real numbers.")
    return X


def _numbers(X: Array, name: str | None) -> Array:
    """Objects that are numbers after all, as float64."""
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError):
        row, column = next(cell for cell in np.ndindex(*X.shape) if not _is_number(X[cell]))
        value = X[row, column]
        error = ValueError if isinstance(value, str) else TypeError
        raise error(
            f"{_called(name)}, row {row}, column {column}: a cell must be a number (an argument "
            f"must be a string that reads as one, or a number), found {value!r} "
            f"({type(value).__name__}). Drop or encode columns that are not numbers."
        ) from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _ids(ids: Any, n: int, name: str | None) -> Array:
    """One int or str per row, each once."""
    if not (isinstance(ids, np.ndarray | pd.Index) and ids.dtype.kind in "iu"):
        ids = ids.to_list() if hasattr(ids, "to_list") else list(ids)  # keeps 1 apart from "1"
    index = pd.Index(ids, tupleize_cols=False)
    if len(index) != n:
        raise ValueError(
            f"{_called(name)} has {n} rows but {len(index)} ids were given. Give one id per row."
        )
    if index.inferred_type == "integer":
        known: Array = index.to_numpy(dtype=np.int64)
    else:
        known = index.to_numpy(dtype=object)
        for row, value in enumerate(known):
            if isinstance(value, bool) or not isinstance(value, int | str):
                raise ValueError(
                    f"{_called(name)}, row {row}: the id {value!r} is a {type(value).__name__}. "
                    "Ids are ints or strings; convert them, and drop rows without an id."
                )
    if not index.is_unique:
        twice = index[index.duplicated()].tolist()[0]
        where = np.flatnonzero(known == twice)
        raise ValueError(
            f"{_called(name)} has duplicate ids: {twice!r} stands in rows {_some(where.tolist())}. "
            "Keep one row per sample."
        )
    return known


def _present(view: View) -> NDArray[np.intp] | None:
    """Return the rows that are not NaN throughout, None if all of them are there."""
    X = view.rows.X
    if X.dtype.kind != "f":
        return None
    if sparse.issparse(X):
        bad = np.flatnonzero(~np.isfinite(X.data))
        if bad.size:
            row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
            raise _not_finite(view, row, int(X.indices[bad[0]]), X.data[bad[0]])
        return None
    absent: list[Array] = []

    def look(where: slice, block: Matrix) -> None:
        finite = np.isfinite(block)
        if finite.all():
            return
        gone = np.isnan(block).all(axis=1)
        cells = np.argwhere(~finite & ~gone[:, None])
        if cells.size:
            row, column = (int(i) for i in cells[0])
            raise _not_finite(view, where.start + row, column, block[row, column])
        absent.append(where.start + np.flatnonzero(gone))

    with blas_on_one_thread() as threads:
        for_each(view.rows, look, threads)
    if not absent:
        return None
    present = np.setdiff1d(np.arange(X.shape[0]), np.concatenate(absent), assume_unique=True)
    if not present.size:
        raise ValueError(
            f"{_called(view.name)} is empty: all its rows are NaN. Leave the view out."
        )
    return present


def _not_finite(view: View, row: int, column: int, value: Any) -> ValueError:
    which = repr(view.features[column]) if view.features else column
    shown = "NaN" if np.isnan(value) else "inf"
    return ValueError(
        f"{_called(view.name)} contains {shown} in row {row} (id {view.ids[row]!r}), column "
        f"{which}. Impute or drop it; a sample that this view lacks altogether is a row with NaN "
        "in every column."
    )


def _spool(
    batches: Iterator[Any], ids: Any, name: str | None
) -> tuple[Any, Matrix, tuple[str, ...] | None]:
    """Collect an iterator's row batches in an unnamed temporary file and map that.

    An iterator can be walked once, a fold walks its view two or more times. The file has no name,
    so that nothing of the view is left behind, however the program ends.
    """
    column = ids if isinstance(ids, str) else None
    parts = (_columns(batch, column, name) for batch in batches)
    first = next(parts, None)
    if first is None:
        raise ValueError(f"{_called(name)} is empty: its iterator gave no batch.")
    _, top, features = first
    found: list[Any] = []
    if sparse.issparse(top):
        stack = []
        for batch_ids, block, names in chain([first], parts):
            _same_columns(block, names, top, features, name)
            found.append(batch_ids)
            stack.append(block)
        matrix = sparse.csr_array(sparse.vstack(stack, format="csr"))
    else:
        dtype = Rows(top).dtype
        with tempfile.TemporaryFile(prefix="viewfold-") as file:
            n = 0
            for batch_ids, block, names in chain([first], parts):
                _same_columns(block, names, top, features, name)
                found.append(batch_ids)
                np.ascontiguousarray(block, dtype=dtype).tofile(file)
                n += block.shape[0]
            file.flush()
            if n == 0:
                return None, np.empty((0, top.shape[1]), dtype), features
            matrix = np.memmap(file, dtype=dtype, mode="r", shape=(n, top.shape[1]))
    if ids is not None and column is None:
        return ids, matrix, features
    if any(batch_ids is None for batch_ids in found):
        return None, matrix, features
    return list(chain.from_iterable(found)), matrix, features


def _same_columns(block: Matrix, names: Any, top: Matrix, features: Any, name: str | None) -> None:
    if sparse.issparse(block) != sparse.issparse(top):
        raise ValueError(f"{_called(name)} mixes dense and sparse batches. Use one kind.")
    if block.shape[1] != top.shape[1] or names != features:
        raise ValueError(
            f"{_called(name)}: a batch has {block.shape[1]} columns where the first one had "
            f"{top.shape[1]}, or other names. Give every batch the same columns in the same order."
        )


def _some(things: Any, most: int = 5) -> str:
    shown = ", ".join(repr(thing) for thing in things[:most])
    return shown + (f", … ({len(things)} in all)" if len(things) > most else "")
