"""Rows that users pass become a matrix, and no label is lost.

An object that has labels of its own, or that is lazy, could be converted to an array, but without
its labels. Only the types that are listed here are accepted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from viewfold._util.types import Array, Matrix, as_python

_OWN_LABELS_OR_LAZY = ("index", "columns", "coords", "compute", "collect", "mask", "schema")
_UNDERSTOOD = (
    "Understood are NumPy and SciPy sparse arrays, lists of rows, DataFrames in memory (pandas, "
    "polars and others that narwhals reads), polars LazyFrames, dask DataFrames and arrays, Spark "
    "DataFrames, AnnData, paths of files, and iterators of these"
)


def as_matrix(X: Any, label: str) -> Matrix:
    """Return a 2-D array of real numbers or a CSR array; cells are not looked at yet."""
    if not sparse.issparse(X):
        X = _array(X, label)
        if X.ndim != 2:
            raise ValueError(
                f"{label}: Expected 2D array, got {X.ndim}D array instead (shape {X.shape})"
                ". Reshape your data: one row per sample, one column per feature"
                + (", for instance X.reshape(-1, 1) for a single feature." if X.ndim == 1 else ".")
            )
    elif X.ndim != 2:
        raise ValueError(f"{label}: Expected 2D array, got a {X.ndim}D sparse array.")
    else:
        X = _csr(X, label)
    if np.issubdtype(X.dtype, np.complexfloating):
        raise ValueError(f"{label}: Complex data not supported. Give real features.")
    if X.dtype == object or X.dtype.kind in "USTV":
        X = _numbers(X, label)
    if X.dtype.kind not in "fiub" or X.dtype.itemsize > 8:
        raise ValueError(f"{label} holds {X.dtype}; expected real numbers.")
    return X


def _csr(X: Any, label: str) -> Matrix:
    """Return a CSR array after a check of its indices: compiled code does not check them."""
    if X.format in ("csr", "csc", "bsr"):
        try:
            X = type(X)(X)  # the arrays are shared, but a check may trim them
            X.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"{label} is not a valid sparse array: {error}.") from error
    return sparse.csr_array(X)


def _array(X: Any, label: str) -> Array:
    """Return rows as an array; refuse objects with labels of their own, and lazy ones."""
    if type(X) in (np.ndarray, np.memmap):
        return X  # type: ignore[no-any-return]
    bare = hasattr(X, "__array__") and not any(hasattr(X, own) for own in _OWN_LABELS_OR_LAZY)
    if isinstance(X, list | tuple) or bare:
        try:
            return np.asarray(X)
        except Exception as error:  # on a graphics card, with gradients, rows of different lengths
            raise ValueError(
                f"{label} cannot be read as an array: {error}. {_UNDERSTOOD}."
            ) from None
    kind = f"{type(X).__module__.split('.')[0]}.{type(X).__name__}"
    raise TypeError(f"{label} is a {kind}. {_UNDERSTOOD}. Convert it first{_way_from(X)}.")


def _way_from(X: Any) -> str:
    ways = ("to_pandas", "toPandas", "compute", "collect", "to_frame", "filled")
    way = next((way for way in ways if callable(getattr(X, way, None))), None)
    return "" if way is None else f", for instance with .{way}({'np.nan' * (way == 'filled')})"


def _numbers(X: Array, label: str) -> Array:
    """Return objects or texts that are numbers as float64."""
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError):
        row, column = next(cell for cell in np.ndindex(*X.shape) if not _is_number(X[cell]))
        value = as_python(X[row, column])
        error = ValueError if isinstance(value, str) else TypeError
        raise error(
            f"{label}, row {row}, column {column}: a cell must be a number (an argument "
            f"must be a string that reads as one, or a number), found {value!r} "
            f"({type(value).__name__}). Drop or encode columns that are not numbers."
        ) from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
