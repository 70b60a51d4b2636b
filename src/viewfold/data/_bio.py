"""AnnData (.h5ad) and MuData (.h5mu): cells are samples, each modality is a view.

Only X, or the layer or representation that is asked for, and the names are read; everything else
stays where it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from viewfold._util.file import File
from viewfold._util.messages import format_names
from viewfold._util.types import Array
from viewfold.data import _hdf5
from viewfold.data._budget import Budget
from viewfold.data._sparse import as_csr
from viewfold.data.asked import asked_now
from viewfold.data.source import FileError, FileView, as_object, leave_out, optional, reading


def read_views(file: str, ids: str | None, asked: File) -> dict[str, FileView]:
    """Read the views of a file, with obs_names (or a column of obs) as ids."""
    read = optional("anndata", "bio", file).io.read_elem
    budget = Budget(file)
    with reading(file, "AnnData or MuData"), _hdf5.opened(file, "bio") as opened:
        if not file.lower().endswith(".h5mu"):
            return {"": _view(budget, opened, read, ids, _as_known(asked, ""))}
        modalities = opened["mod"]
        order = [str(name) for name in modalities.attrs.get("mod-order", modalities)]
        said = {name: _as_known(asked, name) for name in order}
        have = [name for name in order if _where(modalities[name], said[name])] or order
        lack = {name: f"no {_called(said[name])}" for name in order if name not in have}
        leave_out(file, lack, have)
        return {name: _view(budget, modalities[name], read, ids, said[name]) for name in have}


def _as_known(asked: File, name: str) -> File:
    """Return what is asked of a file; if nothing is, what a known view had instead of X."""
    known = asked_now().of_view(name)
    if asked.layer is not None or asked.use_rep is not None:
        return asked
    return replace(asked, layer=known.layer, use_rep=known.use_rep)


def _where(group: Any, asked: File) -> Any:
    """Return where the rows are; None if they are not there."""
    if asked.layer is not None:
        return group.get("layers", {}).get(asked.layer)
    if asked.use_rep is not None:
        return group.get("obsm", {}).get(asked.use_rep)
    return group.get("X")


def _called(asked: File) -> str:
    if asked.layer is not None:
        return f"layer {asked.layer!r}"
    return "X" if asked.use_rep is None else f"representation {asked.use_rep!r} in obsm"


def _view(budget: Budget, group: Any, read: Any, ids: str | None, asked: File) -> FileView:
    file = budget.file
    where = _where(group, asked)
    if where is None:
        raise FileError(f"{file}: {group.name} has no {_called(asked)}. {_others(group, asked)}")
    rows, obs = (_part(budget, part, read) for part in (where, group["obs"]))
    names: tuple[str, ...]
    if asked.use_rep is not None:
        rows, names = representation(rows, asked.use_rep)
    else:
        names = tuple(map(str, _part(budget, group["var"], read).index))
    if sparse.issparse(rows):
        rows = as_csr(rows, file)
    if rows.shape != (len(obs), len(names)):
        raise FileError(
            f"{file}: {_called(asked)} of shape {rows.shape} has {len(obs)} obs and {len(names)} "
            "var."
        )
    known = _ids(file, obs, ids)
    return FileView(rows, known, names, layer=asked.layer, use_rep=asked.use_rep)


def representation(held: Any, name: str) -> tuple[Any, tuple[str, ...]]:
    """Return an entry of obsm as a matrix, and names for its columns."""
    if hasattr(held, "columns"):
        return held.to_numpy(), tuple(map(str, held.columns))
    if getattr(held, "ndim", 0) != 2:
        raise FileError(f"The representation {name!r} is no matrix with a row per sample.")
    return held, tuple(f"{name}_{j}" for j in range(held.shape[1]))


def _others(group: Any, asked: File) -> str:
    if asked.layer is None and asked.use_rep is None:
        return "Write the file with one."
    there = list(group.get("layers" if asked.layer is not None else "obsm", {}))
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
