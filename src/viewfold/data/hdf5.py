"""AnnData (.h5ad) and MuData (.h5mu), read and annotated: cells are samples, modalities views.

An HDF5 file may point to other files, whose content would come back as a view, may name programs to
unpack it, and may claim any size. Only what lies in the file itself is read, within a budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from viewfold._util.file import ReadOptions
from viewfold._util.messages import format_names
from viewfold._util.types import Array, Ids
from viewfold.data.guard import Budget, as_csr, free_memory
from viewfold.data.source import FileError, FileView, as_object, leave_out, optional, reading

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
        found = {name: _where(modalities[name], parts[name]) for name in order}
        have = [name for name in order if found[name][0] is not None] or order
        leave_out(file, {name: f"no {found[name][1]}" for name in order if name not in have}, have)
        return {name: _view(budget, modalities[name], read, ids, parts[name]) for name in have}


def _where(group: Any, part: Part) -> tuple[Any, str, list[str]]:
    """Return where the rows are, None if they are not there; what they are called; and others."""
    layer, use_rep = part
    if layer is None and use_rep is None:
        return group.get("X"), "X", []
    held = group.get("obsm" if layer is None else "layers", {})
    called = f"layer {layer!r}" if use_rep is None else f"representation {use_rep!r} in obsm"
    return held.get(layer if use_rep is None else use_rep), called, list(held)


def _view(budget: Budget, group: Any, read: Any, ids: str | None, part: Part) -> FileView:
    file, use_rep = budget.file, part[1]
    where, called, there = _where(group, part)
    if where is None:
        others = f"It has {format_names(there) if there else 'none'}."
        remedy = "Write the file with one." if part == (None, None) else others
        raise FileError(f"{file}: {group.name} has no {called}. {remedy}")

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
            f"{file}: {called} of shape {rows.shape} has {len(obs)} obs and {len(names)} var."
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
        sizes = (len(t) if isinstance(t, str | bytes) else getattr(t, "nbytes", 0) for t in texts)
        budget.hold(sum(sizes), f"what {node.name} refers to")


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
    for number, _, _, name in map(how.get_filter, range(how.get_nfilters())):
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


# -- clusters go back to where people work: into obs and obsm

ENDINGS = (".h5ad", ".h5mu")  # the files that can be annotated


class Counts(NamedTuple):
    """How many samples of a file or object are known, are not; how many known ones it lacks."""

    known: int
    unknown: int
    elsewhere: int


@dataclass(frozen=True)
class Annotation:
    """What is known of samples; they are matched by name."""

    ids: Ids
    clusters: Array
    confidence: Array
    embedding: Array
    key: str = "viewfold"  # the new columns begin with it
    names: Mapping[int, str] = field(default_factory=dict)  # of clusters that have one

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the new columns of obs: cluster, confidence, and name if there are names."""
        named = (f"{self.key}_name",) if self.names else ()
        return self.key, f"{self.key}_confidence", *named

    @property
    def matrix(self) -> str:
        """The name of the new entry of obsm."""
        return f"X_{self.key}"

    def _matched(self, names: Iterable[Any], label: str) -> tuple[dict[str, Any], Array, Counts]:
        """Return columns of obs and an entry of obsm for samples with these names, and counts.

        Samples that are not known have no category, and NaN elsewhere.
        """
        texts = [str(name) for name in names]
        place = self._places(texts)
        known = place >= 0
        if not known.any():
            raise FileError(
                f"{label}: none of its {len(texts):,} samples is known. They are called like "
                f"{texts[0] if texts else ''!r}, known are samples like {str(self.ids[0])!r}. If a "
                "column of obs holds the ids, name it with ids=…."
            )
        found = self.clusters[place]
        there = np.unique(found[known])
        codes = np.where(known, np.searchsorted(there, found), -1)
        clusters = pd.Categorical.from_codes(codes, list(map(str, there)))
        sure = np.where(known, self.confidence[place], np.nan).astype(np.float32)
        embedding = np.where(known[:, None], self.embedding[place], np.nan)
        n = np.unique(place[known]).size
        counts = Counts(int(known.sum()), int((~known).sum()), len(self.ids) - n)
        columns: list[Any] = [clusters, sure]
        if self.names:
            called = pd.Series(found).where(known).map(dict(self.names))
            columns.append(pd.Categorical(called, [self.names[c] for c in sorted(self.names)]))
        return dict(zip(self.columns, columns, strict=True)), embedding, counts

    def _places(self, names: list[str]) -> NDArray[np.intp]:
        """Return where samples of these names are, −1 if they are not known."""
        ids = self.ids.tolist()
        texts = pd.Index([str(i) for i in ids])
        # Of a number and a text that look the same, the text is meant.
        kept = ~(texts.duplicated(keep=False) & [isinstance(i, int) for i in ids])
        found = texts[kept].get_indexer(names)
        return np.where(found >= 0, np.flatnonzero(kept)[found], -1)

    def into_object(self, data: Any, ids: str | None, overwrite: bool) -> Counts:
        """Annotate an AnnData or MuData in memory."""
        if not all(hasattr(data, part) for part in ("obs", "obs_names", "obsm")):
            raise TypeError(f"Expected an AnnData or a MuData, got a {type(data).__name__}.")
        label = f"The {type(data).__name__}"
        parts: Mapping[str | None, Any] = {None: data, **getattr(data, "mod", {})}  # of a MuData
        for part, one in parts.items():
            self._refuse_to_replace(one.obs.columns, one.obsm, overwrite, label, part)
        names = data.obs_names if ids is None else _column(data.obs, ids, data.obs.columns, label)
        columns, embedding, counts = self._matched(names, label)
        for part, one in parts.items():
            at = slice(None) if part is None else _rows_of(data.obsmap[part])
            for name, values in columns.items():
                one.obs[name] = values[at]
            one.obsm[self.matrix] = embedding[at]
        return counts

    def into_file(self, file: str, ids: str | None, overwrite: bool, label: str) -> Counts:
        """Annotate a file in place; errors call it `label`."""
        anndata_io = optional("anndata", "bio", label).io
        read_elem, write_elem = anndata_io.read_elem, anndata_io.write_elem
        # Nothing in it leads to another file, which would be written to.
        with reading(label, "AnnData or MuData"), opened(file, "bio", "r+") as held:
            obs, order = _obs_of(held, label)
            parts: Mapping[str | None, Any] = {None: held, **held.get("mod", {})}  # of a MuData
            for part, one in parts.items():
                known = _obs_of(one, label if part is None else f"{label}, modality {part!r}")[1]
                self._refuse_to_replace(known, one.get("obsm", ()), overwrite, label, part)
            column = obs.attrs["_index"] if ids is None else ids
            names = read_elem(_column(obs, column, order if ids else [column], label))
            columns, embedding, counts = self._matched(names, label)
            for part, one in parts.items():
                at = slice(None) if part is None else _rows_of(held["obsmap"][part][()])
                obs, order = _obs_of(one, label)
                for name, values in columns.items():
                    write_elem(obs, name, values[at])
                order += [name for name in columns if name not in order]
                obs.attrs["column-order"] = order
                obsm = one.require_group("obsm")
                write_elem(obsm, self.matrix, embedding[at])
                obsm.attrs.setdefault("encoding-type", "dict")
                obsm.attrs.setdefault("encoding-version", "0.1.0")
        return counts

    def _refuse_to_replace(
        self, columns: Any, matrices: Any, overwrite: bool, label: str, part: str | None
    ) -> None:
        where = "" if part is None else f"mod[{part!r}]."
        there = [f"{where}obs[{name!r}]" for name in self.columns if name in columns]
        there += [f"{where}obsm[{self.matrix!r}]"] if self.matrix in matrices else []
        if there and not overwrite:
            raise FileError(
                f"{label} has {' and '.join(there)} already. Choose another key=…, or "
                "replace it with overwrite=True."
            )


def _column(obs: Any, name: str, there: Iterable[str], label: str) -> Any:
    if name not in there:
        raise FileError(f"{label} has no column {name!r} in obs. It has {list(there)[:8]}.")
    return obs[name]


def _obs_of(group: Any, label: str) -> tuple[Any, list[str]]:
    """Return the group of obs in a file, and the names of its columns."""
    obs = group.get("obs")
    if "_index" not in getattr(obs, "attrs", {}):
        raise FileError(
            f"{label}: its obs is not as anndata writes it since version 0.7. Read and write it "
            "with a newer one."
        )
    return obs, [str(name) for name in obs.attrs.get("column-order", ())]


def _rows_of(obsmap: Any) -> NDArray[np.intp]:
    """Return where the samples of a modality are in the whole, in the order of the modality.

    A MuData has, for each of its samples, the number of its row in the modality, from 1; else 0.
    """
    numbers = np.asarray(obsmap).ravel().astype(np.intp)
    return np.argsort(numbers, kind="stable")[np.count_nonzero(numbers == 0) :]
