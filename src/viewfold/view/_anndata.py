"""Another matrix of an AnnData than its X: a layer, or an entry of obsm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from viewfold._file import as_file
from viewfold._option import option
from viewfold.io._source import some
from viewfold.view._parts import is_anndata, is_path
from viewfold.view._reading import Reading


@dataclass(frozen=True)
class _Cells:
    """What is used of an AnnData, with another X."""

    X: Any
    obs: Any
    obs_names: Any
    var_names: Any


def chosen(X: Any, reading: Reading) -> tuple[Any, Reading]:
    """Return what has the layer or representation where X would be, and what else is said."""
    rest = reading.copy()
    layer, use_rep = rest.pop("layer", None), rest.pop("use_rep", None)
    if layer is not None or use_rep is not None:
        X = _with(X, layer, use_rep)
    return X, rest


def _with(X: Any, layer: str | None, use_rep: str | None) -> Any:
    if is_path(X):  # readers are told
        return replace(as_file(X), layer=layer, use_rep=use_rep)
    if not is_anndata(X):
        said = option("layer", layer) if layer is not None else option("use_rep", use_rep)
        raise ValueError(f"{said} names a part of an AnnData, but X is a {type(X).__name__}.")
    if layer is not None and use_rep is not None:
        raise ValueError("layer and use_rep both say what to take instead of X. Choose one.")
    if layer is not None:
        rows = _part(X.layers, layer, "layer")
        return _Cells(rows, X.obs, X.obs_names, X.var_names)
    from viewfold.io._bio import representation

    rows, names = representation(_part(X.obsm, use_rep, "representation"), str(use_rep))
    return _Cells(rows, X.obs, X.obs_names, list(names))


def _part(parts: Any, name: str | None, what: str) -> Any:
    if name not in parts:
        there = some(parts) if len(parts) else "none"
        raise ValueError(f"The AnnData has no {what} {name!r}. It has {there}.")
    return parts[name]
