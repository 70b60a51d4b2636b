"""MATLAB's .mat files, version 5 to 7.3, as the data sets of the field use them.

Views are the matrices of a cell array, or the matrices of the file; samples are in rows or in
columns, whichever the views (and the classes) agree on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from viewfold.io import _mat5
from viewfold.io._source import (
    Array,
    FileError,
    Source,
    as_csr,
    is_numeric,
    optional,
    reading,
    some,
)
from viewfold.io._targets import as_target, is_target

_HDF5 = b"\x89HDF\r\n\x1a\n"
_USUAL = ("x", "data", "fea", "feature", "features", "views", "view")


def read_views(file: str, ids: str | None) -> dict[str, Source]:
    """Read the views of a file; its rows are known by their number."""
    return {name: Source(rows) for name, rows in read_set(file)[0].items()}


def read_set(file: str) -> tuple[dict[str, Any], Array | None]:
    """Read views and target of a .mat file."""
    with reading(file, "a MATLAB file"):
        variables = _version_73(file) if _is_hdf5(file) else _mat5.read(file)
        targets = {name: held for name, held in variables.items() if is_target(name, held)}
        target = next((y for y in map(as_target, targets.values()) if y is not None), None)
        others = {name: held for name, held in variables.items() if name not in targets}
        return _upright(file, _choose(file, others), target), target


def _is_hdf5(file: str) -> bool:
    with open(file, "rb") as opened:
        start = opened.read(520)
    return start.startswith(_HDF5) or start[512:] == _HDF5


def _is_array(held: Any) -> bool:
    return sparse.issparse(held) or isinstance(held, np.ndarray)


def _version_73(file: str) -> dict[str, Any]:
    h5py = optional("h5py", "hdf5", file)

    def read(node: Any) -> Any:
        if isinstance(node, h5py.Group):
            return _sparse_73(node) if "MATLAB_sparse" in node.attrs else None
        if "MATLAB_empty" in node.attrs:
            return np.empty((0, 0))
        if node.dtype == h5py.ref_dtype:
            parts = (read(node.file[ref]) for ref in node[()].ravel(order="F") if ref)
            return [part for part in parts if _is_array(part)]
        return node[()].T  # MATLAB counts columns first, HDF5 rows

    with h5py.File(file, "r") as opened:
        found = {name: read(opened[name]) for name in opened if name != "#refs#"}
    return {name: held for name, held in found.items() if held is not None}


def _sparse_73(group: Any) -> sparse.csc_array:
    pointers = group["jc"][()].astype(np.int64)
    shape = (int(group.attrs["MATLAB_sparse"]), pointers.size - 1)
    if "data" not in group:  # no entry at all
        return sparse.csc_array(shape)
    return sparse.csc_array(
        (group["data"][()], group["ir"][()].astype(np.int64), pointers), shape=shape
    )


def _choose(file: str, variables: dict[str, Any]) -> dict[str, Any]:
    """Return the matrices that are views, by name: those of one cell array, or all there are."""
    lists = {name: held for name, held in variables.items() if isinstance(held, list)}
    cells = {name: found for name in lists if (found := list(filter(_is_view, lists[name])))}
    usual = [name for name in cells if name.lower() in _USUAL]
    if len(cells) > 1 and len(usual) != 1:
        raise FileError(
            f"{file}: several cell arrays could hold the views: {some(cells)}. Keep one of them, "
            "or call it X."
        )
    if cells:
        name = usual[0] if usual else next(iter(cells))
        return {f"{name}{i}": matrix for i, matrix in enumerate(cells[name], 1)}
    views = {name: held for name, held in variables.items() if _is_view(held)}
    if not views:
        raise FileError(
            f"{file}: there is no matrix of numbers among {some(variables)}. Save the views in a "
            "cell array X, one row per sample."
        )
    return views


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
