"""AnnData (.h5ad) and MuData (.h5mu): cells are samples, each modality is a view.

Only X and the names are read; layers, graphs and embeddings stay where they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from viewfold._types import Array
from viewfold.io import _hdf5
from viewfold.io._budget import Budget
from viewfold.io._source import FileError, FileView, as_object, optional, reading, some
from viewfold.io._sparse import as_csr


def read_views(file: str, ids: str | None) -> dict[str, FileView]:
    """Read the views of a file, with obs_names (or a column of obs) as ids."""
    read = optional("anndata", "bio", file).io.read_elem
    budget = Budget(file)
    with reading(file, "AnnData or MuData"), _hdf5.opened(file, "bio") as opened:
        if not file.lower().endswith(".h5mu"):
            return {"": _view(budget, opened, read, ids)}
        modalities = opened["mod"]
        order = [str(name) for name in modalities.attrs.get("mod-order", modalities)]
        return {name: _view(budget, modalities[name], read, ids) for name in order}


def _view(budget: Budget, group: Any, read: Any, ids: str | None) -> FileView:
    file = budget.file
    if "X" not in group:
        raise FileError(f"{file}: {group.name} has no X. Write the file with one.")
    rows, obs, var = (_part(budget, group[part], read) for part in ("X", "obs", "var"))
    if sparse.issparse(rows):
        rows = as_csr(rows, file)
    if rows.shape != (len(obs), len(var)):
        raise FileError(f"{file}: X of shape {rows.shape} has {len(obs)} obs and {len(var)} var.")
    return FileView(rows, _ids(file, obs, ids), tuple(map(str, var.index)))


def _part(budget: Budget, node: Any, read: Any) -> Any:
    _hdf5.ask(node, budget)
    return read(node)


def _ids(file: str, obs: Any, ids: str | None) -> Array:
    if ids is None:
        return as_object([str(name) for name in obs.index])
    if ids not in obs.columns:
        raise FileError(f"{file}: obs has no column {ids!r}. Its columns: {some(obs.columns)}.")
    column = obs[ids]
    return np.asarray(column) if column.dtype.kind in "iu" else as_object(column.to_list())
