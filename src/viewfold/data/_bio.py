"""AnnData (.h5ad) and MuData (.h5mu): cells are samples, each modality is a view.

Only X, or the layer or representation that is asked for, and the names are read; everything else
stays where it is.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from viewfold._util.file import ReadOptions
from viewfold._util.messages import format_names
from viewfold._util.types import Array
from viewfold.data import _hdf5
from viewfold.data._budget import Budget
from viewfold.data._sparse import as_csr
from viewfold.data.source import (
    FileError,
    FileView,
    as_object,
    leave_out,
    optional,
    reading,
)

# The layer, or the entry of obsm, that is read instead of X.
Part: TypeAlias = tuple[str | None, str | None]


def read_views(file: str, ids: str | None, options: ReadOptions) -> dict[str, FileView]:
    """Read the views of a file, with obs_names (or a column of obs) as ids."""
    read = optional("anndata", "bio", file).io.read_elem
    budget = Budget(file)
    with reading(file, "AnnData or MuData"), _hdf5.opened(file, "bio") as opened:
        if not file.lower().endswith(".h5mu"):
            return {"": _view(budget, opened, read, ids, options.part)}
        modalities = opened["mod"]
        order = [str(name) for name in modalities.attrs.get("mod-order", modalities)]
        said = {name: options.in_file(name).part for name in order}
        have = [name for name in order if _where(modalities[name], said[name])] or order
        lack = {name: f"no {_called(said[name])}" for name in order if name not in have}
        leave_out(file, lack, have)
        return {name: _view(budget, modalities[name], read, ids, said[name]) for name in have}


def _where(group: Any, part: Part) -> Any:
    """Return where the rows are; None if they are not there."""
    layer, use_rep = part
    if layer is not None:
        return group.get("layers", {}).get(layer)
    return group.get("X") if use_rep is None else group.get("obsm", {}).get(use_rep)


def _called(part: Part) -> str:
    layer, use_rep = part
    if layer is not None:
        return f"layer {layer!r}"
    return "X" if use_rep is None else f"representation {use_rep!r} in obsm"


def _view(budget: Budget, group: Any, read: Any, ids: str | None, part: Part) -> FileView:
    file, (_, use_rep) = budget.file, part
    where = _where(group, part)
    if where is None:
        raise FileError(f"{file}: {group.name} has no {_called(part)}. {_others(group, part)}")
    rows, obs = (_part(budget, node, read) for node in (where, group["obs"]))
    names: tuple[str, ...]
    if use_rep is not None:
        rows, names = representation(rows, use_rep)
    else:
        names = tuple(map(str, _part(budget, group["var"], read).index))
    if sparse.issparse(rows):
        rows = as_csr(rows, file)
    if rows.shape != (len(obs), len(names)):
        raise FileError(
            f"{file}: {_called(part)} of shape {rows.shape} has {len(obs)} obs and {len(names)} "
            "var."
        )
    return FileView(rows, _ids(file, obs, ids), names)


def representation(held: Any, name: str) -> tuple[Any, tuple[str, ...]]:
    """Return an entry of obsm as a matrix, and names for its columns."""
    if hasattr(held, "columns"):
        return held.to_numpy(), tuple(map(str, held.columns))
    if getattr(held, "ndim", 0) != 2:
        raise FileError(f"The representation {name!r} is no matrix with a row per sample.")
    return held, tuple(f"{name}_{j}" for j in range(held.shape[1]))


def _others(group: Any, part: Part) -> str:
    layer, use_rep = part
    if layer is None and use_rep is None:
        return "Write the file with one."
    there = list(group.get("layers" if layer is not None else "obsm", {}))
    return f"It has {format_names(there) if there else 'none'}."


def _part(budget: Budget, node: Any, read: Any) -> Any:
    _hdf5.ask(node, budget)
    return read(node)


def _ids(file: str, obs: Any, ids: str | None) -> Array:
    if ids is None:
        return as_object([str(name) for name in obs.index])
    if ids not in obs.columns:
        raise FileError(
            f"{file}: obs has no column {ids!r}. Its columns: {format_names(obs.columns)}."
        )
    column = obs[ids]
    return np.asarray(column) if column.dtype.kind in "iu" else as_object(column.to_list())
