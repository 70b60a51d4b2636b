"""AnnData (.h5ad) and MuData (.h5mu): cells are samples, each modality is a view.

An HDF5 file may point to other files, whose content would come back as a view, may name programs to
unpack it, and may claim any size. Only what lies in the file itself is read, within a budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from viewfold._util.file import ReadOptions
from viewfold._util.messages import format_names
from viewfold._util.types import Array
from viewfold.data.guard import Budget, as_csr, free_memory
from viewfold.data.source import (
    FileError,
    FileView,
    as_object,
    leave_out,
    optional,
    reading,
)

_FILTERS = {1, 2, 3, 4, 5, 6, 32000}  # HDF5's own, and LZF, which comes with h5py
Part: TypeAlias = tuple[str | None, str | None]  # the layer, or entry of obsm, instead of X
_NAMES = 10_000  # texts that are measured together


def read_anndata(file: str, ids: str | None, options: ReadOptions) -> dict[str, FileView]:
    """Read the views of a file, with obs_names (or a column of obs) as ids.

    Only X, or the layer or representation that is asked for, and the names are read.
    """
    read = optional("anndata", "bio", file).io.read_elem
    budget = Budget(file)
    with reading(file, "AnnData or MuData"), opened(file, "bio") as whole:
        if not file.lower().endswith(".h5mu"):
            return {"": _view(budget, whole, read, ids, options.part)}
        modalities = whole["mod"]
        order = [str(name) for name in modalities.attrs.get("mod-order", modalities)]
        parts = {name: options.in_file(name).part for name in order}
        have = [name for name in order if _where(modalities[name], parts[name])] or order
        lack = {name: f"no {_called(parts[name])}" for name in order if name not in have}
        leave_out(file, lack, have)
        return {name: _view(budget, modalities[name], read, ids, parts[name]) for name in have}


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
    file, (layer, use_rep) = budget.file, part
    where = _where(group, part)
    if where is None:
        there = list(group.get("layers" if layer is not None else "obsm", {}))
        others = f"It has {format_names(there) if there else 'none'}."
        remedy = "Write the file with one." if part == (None, None) else others
        raise FileError(f"{file}: {group.name} has no {_called(part)}. {remedy}")

    def read_node(node: Any) -> Any:
        ask(node, budget)
        return read(node)

    rows, obs = read_node(where), read_node(group["obs"])
    names: tuple[str, ...]
    if use_rep is not None:
        rows, names = representation(rows, use_rep)
    else:
        names = tuple(map(str, read_node(group["var"]).index))
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


def _ids(file: str, obs: Any, ids: str | None) -> Array:
    if ids is None:
        return as_object([str(name) for name in obs.index])
    if ids not in obs.columns:
        raise FileError(
            f"{file}: obs has no column {ids!r}. Its columns: {format_names(obs.columns)}."
        )
    column = obs[ids]
    return np.asarray(column) if column.dtype.kind in "iu" else as_object(column.to_list())


# -- a look at the whole file before any library reads it


@contextmanager
def opened(file: str, extra: str, mode: str = "r") -> Iterator[Any]:
    """Open a file from which nothing leads out."""
    h5py = optional("h5py", extra, file)
    with h5py.File(file, mode) as whole:
        for node in _objects(h5py, file, whole):
            if isinstance(node, h5py.Dataset):
                _check_dataset(file, node)
        yield whole


def ask(node: Any, budget: Budget) -> None:
    """Ask for the memory that a dataset, or all there is in a group, takes when it is read."""
    import h5py

    for held in _objects(h5py, budget.file, node, follow=True):
        if not isinstance(held, h5py.Dataset):
            continue
        shape = (0,) if held.shape is None else tuple(map(int, held.shape))
        size = held.id.get_type().get_size() * prod(shape)
        budget.hold(size, f"{held.name} of shape {shape}")
        if held.dtype.hasobject and shape and size:
            _ask_for_texts(held, budget)


def _ask_for_texts(node: Any, budget: Budget) -> None:
    """Measure texts of any length: many of them may be the same one, of any size."""
    # So few at once that they fit memory, even if each is as long as the file.
    free, longest = free_memory(), node.file.id.get_filesize()
    step = _NAMES if free is None else max(1, min(_NAMES, free // (4 * longest)))
    for start in range(0, node.shape[0], step):
        block = node[start : start + step]
        fields = [block] if block.dtype.names is None else [block[n] for n in block.dtype.names]
        texts = (text for field in fields if field.dtype.hasobject for text in field.ravel())
        budget.hold(sum(map(_size, texts)), f"what {node.name} refers to")


def _size(held: Any) -> int:
    return len(held) if isinstance(held, str | bytes) else int(getattr(held, "nbytes", 0))


def _objects(h5py: Any, file: str, top: Any, follow: bool = False) -> Iterator[Any]:
    """Yield groups and datasets, each once, however often the file links to it.

    A soft link names another place in the file; it is safe to follow once all links were looked at.
    """
    seen: set[tuple[int, int]] = set()
    waiting = [top]
    while waiting:
        node = waiting.pop()
        place = h5py.h5o.get_info(node.id)
        if (place.fileno, place.addr) in seen:
            continue
        seen.add((place.fileno, place.addr))
        yield node
        if isinstance(node, h5py.Group):
            for name in list(node.id):
                kind = node.id.links.get_info(name).type
                if kind == h5py.h5l.TYPE_HARD:
                    waiting.append(node[name])
                elif kind != h5py.h5l.TYPE_SOFT:
                    raise _leads_out(file, f"{node.name}/{name.decode(errors='replace')}", "a link")
                elif follow and name in node:  # else it leads nowhere, or in a circle
                    waiting.append(node[name])


def _check_dataset(file: str, node: Any) -> None:
    how = node.id.get_create_plist()
    if how.get_external_count():
        raise _leads_out(file, node.name, "data")
    if node.is_virtual:
        raise _leads_out(file, node.name, "a virtual dataset")
    for i in range(how.get_nfilters()):
        number, _, _, name = how.get_filter(i)
        if number not in _FILTERS:
            raise FileError(
                f"{file}: {node.name} is packed with filter {number} "
                f"({name.decode(errors='replace') or 'unknown'}), which is not part of HDF5. Write "
                "the file with gzip, or unpacked."
            )


def _leads_out(file: str, name: str, what: str) -> FileError:
    return FileError(
        f"{file}: {name.replace('//', '/')} is {what} in another file. Only what lies in the file "
        "itself is read: copy the data into it."
    )
