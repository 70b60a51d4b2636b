"""Another matrix of an AnnData than its X: a layer, or an entry of obsm.

It is remembered what was taken, and which empty markers were named: later rows are read likewise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from viewfold._util.file import as_file
from viewfold._util.messages import format_names
from viewfold.data.asked import EMPTY_MARKERS, Asked
from viewfold.data.column import Source
from viewfold.data.parts import is_anndata, is_path
from viewfold.data.reading import Reading
from viewfold.data.source import FileView


@dataclass(frozen=True)
class _Cells:
    """What is used of an AnnData, with another X."""

    X: Any
    obs: Any
    obs_names: Any
    var_names: Any
    layer: str | None
    use_rep: str | None


def chosen(X: Any, reading: Reading) -> tuple[Any, Reading]:
    """Return what has the layer or representation where X would be, and what else is said."""
    rest = reading.copy()
    layer, use_rep = rest.pop("layer", None), rest.pop("use_rep", None)
    if layer is not None or use_rep is not None:
        X = _asked_of(X, layer, use_rep)
    return X, rest


def _asked_of(X: Any, layer: str | None, use_rep: str | None) -> Any:
    if is_path(X):  # readers are told
        return replace(as_file(X), layer=layer, use_rep=use_rep)
    if not is_anndata(X):
        said = f"{layer=}" if layer is not None else f"{use_rep=}"
        raise ValueError(f"{said} names a part of an AnnData, but X is a {type(X).__name__}.")
    if layer is not None and use_rep is not None:
        raise ValueError("layer and use_rep both say what to take instead of X. Choose one.")
    return with_part(X, layer, use_rep)


def with_part(X: Any, layer: str | None, use_rep: str | None) -> Any:
    """Return an AnnData with the layer or representation where X would be, if one is named."""
    if isinstance(X, _Cells) or (layer is None and use_rep is None):
        return X
    if layer is not None:
        rows = _part(X.layers, layer, "layer")
        return _Cells(rows, X.obs, X.obs_names, X.var_names, layer, None)
    from viewfold.data._bio import representation

    rows, names = representation(_part(X.obsm, use_rep, "representation"), str(use_rep))
    return _Cells(rows, X.obs, X.obs_names, list(names), None, use_rep)


def source_of(X: Any, asked: Asked) -> Source | None:
    """Return what was said about how to read a view, if anything was."""
    said = Source()
    if isinstance(X, _Cells | FileView):
        said = Source(layer=X.layer, use_rep=X.use_rep)
    if asked.empty_markers != EMPTY_MARKERS:
        said = replace(said, empty_markers=tuple(sorted(asked.empty_markers)))
    return None if said == Source() else said


def _part(parts: Any, name: str | None, what: str) -> Any:
    if name not in parts:
        there = format_names(parts) if len(parts) else "none"
        raise ValueError(f"The AnnData has no {what} {name!r}. It has {there}.")
    return parts[name]
