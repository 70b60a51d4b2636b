"""MATLAB's .mat files, version 5 to 7.3, as the data sets of the field use them.

Views are the matrices of a cell array, or the matrices of the file; samples are in rows or in
columns, whichever the views (and the classes) agree on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from viewfold._util.messages import format_names
from viewfold._util.types import Array
from viewfold.data import _hdf5, _mat5
from viewfold.data._budget import Budget
from viewfold.data._sparse import as_csr
from viewfold.data._targets import as_target, is_target
from viewfold.data.source import FileError, FileView, is_numeric, leave_out, reading

_HDF5 = b"\x89HDF\r\n\x1a\n"
_USUAL = ("x", "data", "fea", "feature", "features", "views", "view")


def read_views(file: str, ids: str | None, options: object) -> dict[str, FileView]:
    """Read the views of a file; its rows are known by their number."""
    with reading(file, "a MATLAB file"):
        variables = _variables(file)
        views, unused = _choose(file, variables)
        leave_out(file, {name: _described(variables[name]) for name in unused}, views)
        # A vector of classes is no view, but it tells how many samples there are.
        target = _target(file, {name: variables[name] for name in unused})
        return {name: FileView(rows) for name, rows in _upright(file, views, target).items()}


def read_set(file: str) -> tuple[dict[str, Any], Array | None]:
    """Read views and target of a .mat file."""
    with reading(file, "a MATLAB file"):
        variables = _variables(file)
        target = _target(file, variables)
        others = {name: held for name, held in variables.items() if not is_target(name, held)}
        return _upright(file, _choose(file, others)[0], target), target


def _variables(file: str) -> dict[str, Any]:
    return _version_73(file) if _is_hdf5(file) else _mat5.read(file)


def _target(file: str, variables: dict[str, Any]) -> Array | None:
    found = (as_target(file, held) for name, held in variables.items() if is_target(name, held))
    return next((target for target in found if target is not None), None)


def _described(held: Any) -> str:
    return f"cell array of {len(held)}" if isinstance(held, list) else f"shape {held.shape}"


def _is_hdf5(file: str) -> bool:
    with open(file, "rb") as opened:
        start = opened.read(520)
    return start.startswith(_HDF5) or start[512:] == _HDF5


def _is_array(held: Any) -> bool:
    return sparse.issparse(held) or isinstance(held, np.ndarray)


def _version_73(file: str) -> dict[str, Any]:
    budget = Budget(file)
    with _hdf5.opened(file, "hdf5") as opened:
        found = {name: _node_73(opened[name], budget) for name in opened if name != "#refs#"}
    return {name: held for name, held in found.items() if held is not None}


def _node_73(node: Any, budget: Budget) -> Any:
    """Return a matrix, the matrices of a cell array as a list, None for anything else."""
    import h5py

    if _is_matrix_73(node):
        _hdf5.ask(node, budget)
        return _matrix_73(node)
    if not isinstance(node, h5py.Dataset) or node.dtype != h5py.ref_dtype:
        return None
    _hdf5.ask(node, budget)
    parts = [node.file[ref] for ref in node[()].ravel(order="F") if ref]
    # A cell array in a cell array is no view, and may hold itself.
    parts = [part for part in parts if _is_matrix_73(part)]
    for part in parts:
        _hdf5.ask(part, budget)
    return [_matrix_73(part) for part in parts]


def _is_matrix_73(node: Any) -> bool:
    return "MATLAB_sparse" in node.attrs or (hasattr(node, "dtype") and not node.dtype.hasobject)


def _matrix_73(node: Any) -> Any:
    if "MATLAB_sparse" in node.attrs:
        return _sparse_73(node)
    if "MATLAB_empty" in node.attrs:
        return np.empty((0, 0))
    return node[()].T  # MATLAB counts columns first, HDF5 rows


def _sparse_73(group: Any) -> sparse.csc_array:
    pointers = group["jc"][()].astype(np.int64)
    shape = (int(group.attrs["MATLAB_sparse"]), pointers.size - 1)
    if "data" not in group:  # no entry at all
        return sparse.csc_array(shape)
    return sparse.csc_array(
        (group["data"][()], group["ir"][()].astype(np.int64), pointers), shape=shape
    )


def _choose(file: str, variables: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the matrices that are views, those of one cell array or all there are, and the rest.

    The rest are the names of variables that are no view.
    """
    lists = {name: held for name, held in variables.items() if isinstance(held, list)}
    cells = {name: found for name in lists if (found := list(filter(_is_view, lists[name])))}
    usual = [name for name in cells if name.lower() in _USUAL]
    if len(cells) > 1 and len(usual) != 1:
        raise FileError(
            f"{file}: several cell arrays could hold the views: {format_names(cells)}. Keep one "
            "of them, or call it X."
        )
    if cells:
        name = usual[0] if usual else next(iter(cells))
        views = {f"{name}{i}": matrix for i, matrix in enumerate(cells[name], 1)}
        return views, [other for other in variables if other != name]
    views = {name: held for name, held in variables.items() if _is_view(held)}
    if not views:
        raise FileError(
            f"{file}: there is no matrix of numbers among {format_names(variables)}. Save the "
            "views in a cell array X, one row per sample."
        )
    return views, [name for name in variables if name not in views]


def _is_view(held: Any) -> bool:
    return _is_array(held) and held.ndim == 2 and is_numeric(held) and min(held.shape) > 1


def _upright(file: str, views: dict[str, Any], target: Array | None) -> dict[str, Any]:
    """Put samples in rows."""
    shapes = [matrix.shape for matrix in views.values()]
    agreed = set.intersection(*map(set, shapes))
    if target is not None:
        agreed &= {target.size}
    in_rows = {rows for rows, _ in shapes}
    if len(in_rows) == 1 and in_rows <= agreed:  # equal shapes, for instance
        agreed = in_rows
    if len(agreed) != 1:
        classes = "" if target is None else f" and {target.size} classes"
        raise FileError(
            f"{file}: the views have shapes {', '.join(map(str, shapes[:6]))}{classes}: there is "
            "no number of samples that all agree on. Save one row per sample in every view."
        )
    (n,) = agreed
    # A square matrix does not say how it lies: as the others do.
    across = any(rows != n for rows, _ in shapes)
    upright = {
        name: matrix.T if matrix.shape[0] != n or (across and matrix.shape[1] == n) else matrix
        for name, matrix in views.items()
    }
    return {
        name: as_csr(matrix, file) if sparse.issparse(matrix) else np.ascontiguousarray(matrix)
        for name, matrix in upright.items()
    }
