"""Clusters go back to where people work: into the obs and obsm of an AnnData or MuData.

Samples are matched by name. A file is changed in place, and only where something is added: callers
make a copy, however large, and no matrix is ever read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold._util.types import Array, Ids
from viewfold.data import hdf5
from viewfold.data.source import FileError, optional, reading

ENDINGS = (".h5ad", ".h5mu")
"""The files that can be annotated."""


class Counts(NamedTuple):
    """How many samples of a file or object are known, are not; how many known ones it lacks."""

    known: int
    unknown: int
    elsewhere: int


@dataclass(frozen=True)
class Annotation:
    """What is known of samples.

    Attributes
    ----------
    ids : ndarray of shape (n_samples,)
        Who they are: whole numbers or texts.
    clusters, confidence : ndarray of shape (n_samples,)
        The cluster of each, and how sure that is.
    embedding : ndarray of shape (n_samples, n_components)
        The consensus.
    key : str
        What the new columns are called, or begin with.
    names : dict of int to str
        Names of clusters that have one.
    """

    ids: Ids
    clusters: Array
    confidence: Array
    embedding: Array
    key: str = "viewfold"
    names: Mapping[int, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the new columns of obs: cluster, confidence, and name if there are names."""
        named = (f"{self.key}_name",) if self.names else ()
        return self.key, f"{self.key}_confidence", *named

    @property
    def matrix(self) -> str:
        """The name of the new entry of obsm."""
        return f"X_{self.key}"

    def matched(self, names: Iterable[Any], label: str) -> tuple[dict[str, Any], Array, Counts]:
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
                f"column of obs holds the ids, name it with ids=…."
            )
        found = self.clusters[place]
        names_of = [str(cluster) for cluster in np.unique(found[known])]
        codes = np.searchsorted(np.unique(found[known]), found)
        clusters = pd.Categorical.from_codes(np.where(known, codes, -1), names_of)
        sure = np.where(known, self.confidence[place], np.nan).astype(np.float32)
        embedding = np.where(known[:, None], self.embedding[place], np.nan)
        n = int(np.unique(place[known]).size)
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
        twice = texts.duplicated(keep=False)
        kept = np.array(
            [not (again and isinstance(i, int)) for again, i in zip(twice, ids, strict=True)]
        )
        found = texts[kept].get_indexer(names)
        return np.where(found >= 0, np.flatnonzero(kept)[found], -1)

    def into_object(self, data: Any, ids: str | None, overwrite: bool) -> Counts:
        """Annotate an AnnData or MuData in memory."""
        if not all(hasattr(data, part) for part in ("obs", "obs_names", "obsm")):
            raise TypeError(f"Expected an AnnData or a MuData, got a {type(data).__name__}.")
        label = f"The {type(data).__name__}"
        parts: Mapping[str, Any] = getattr(data, "mod", {})  # of a MuData
        self._refuse_to_replace(data.obs.columns, data.obsm, overwrite, label)
        for part, one in parts.items():
            self._refuse_to_replace(one.obs.columns, one.obsm, overwrite, label, part)
        names = data.obs_names if ids is None else _column(data.obs, ids, data.obs.columns, label)
        columns, embedding, counts = self.matched(names, label)
        for name, values in columns.items():
            data.obs[name] = values
        data.obsm[self.matrix] = embedding
        for part, one in parts.items():
            at = _rows_of(data.obsmap[part])
            for name, values in columns.items():
                one.obs[name] = values[at]
            one.obsm[self.matrix] = embedding[at]
        return counts

    def into_file(self, file: str, ids: str | None, overwrite: bool, label: str) -> Counts:
        """Annotate a file in place; errors call it `label`."""
        anndata_io = optional("anndata", "bio", label).io
        with reading(label, "AnnData or MuData"):
            with hdf5.opened(file, "bio"):
                pass  # nothing in it leads to another file, which would be written to
            import h5py

            with h5py.File(file, "r+") as held:
                obs, order = _obs_of(held, label)
                parts = held.get("mod", {})  # of a MuData
                self._refuse_to_replace(order, held.get("obsm", ()), overwrite, label)
                for part, one in parts.items():
                    known = _obs_of(one, f"{label}, modality {part!r}")[1]
                    self._refuse_to_replace(known, one.get("obsm", ()), overwrite, label, part)
                column = obs.attrs["_index"] if ids is None else ids
                at = _column(obs, column, order if ids else [column], label)
                names = anndata_io.read_elem(at)
                columns, embedding, counts = self.matched(names, label)
                self._put_into(anndata_io, held, columns, embedding)
                for part, one in parts.items():
                    rows = _rows_of(held["obsmap"][part][()])
                    own = {name: values[rows] for name, values in columns.items()}
                    self._put_into(anndata_io, one, own, embedding[rows])
        return counts

    def _put_into(
        self, anndata_io: Any, group: Any, columns: Mapping[str, Any], embedding: Array
    ) -> None:
        """Write columns and the embedding into the group of an AnnData or MuData."""
        obs, order = _obs_of(group, "")
        for name, values in columns.items():
            _put(anndata_io, obs, name, values)
        order += [name for name in columns if name not in order]
        import h5py

        obs.attrs["column-order"] = np.array(order, dtype=h5py.string_dtype())
        obsm = group.require_group("obsm")
        _put(anndata_io, obsm, self.matrix, embedding)
        obsm.attrs.setdefault("encoding-type", "dict")
        obsm.attrs.setdefault("encoding-version", "0.1.0")

    def _refuse_to_replace(
        self,
        columns: Iterable[str],
        matrices: Iterable[str],
        overwrite: bool,
        label: str,
        part: str | None = None,
    ) -> None:
        where = "" if part is None else f"mod[{part!r}]."
        there = [f"{where}obs[{name!r}]" for name in self.columns if name in columns]
        there += [f"{where}obsm[{self.matrix!r}]"] if self.matrix in matrices else []
        if there and not overwrite:
            raise FileError(
                f"{label} has {' and '.join(there)} already. Choose another key=…, or "
                f"replace it with overwrite=True."
            )


def copy_name(file: str | os.PathLike[str], key: str) -> str:
    """Return what an annotated copy is called if nobody names it.

    Examples
    --------
    >>> from viewfold.data.annotate import copy_name
    >>> copy_name("data/cells.h5mu", "viewfold")
    'data/cells-viewfold.h5mu'
    """
    stem, suffix = os.path.splitext(os.fspath(file))
    return f"{stem}-{key}{suffix}"


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


def _put(anndata_io: Any, group: Any, name: str, values: Any) -> None:
    if name in group:
        del group[name]
    anndata_io.write_elem(group, name, values)
