"""NumPy's files: .npy is one view, mapped and never read as a whole; .npz holds several."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from viewfold.io._source import (
    Array,
    FileError,
    Source,
    as_csr,
    is_numeric,
    natural,
    reading,
    some,
)
from viewfold.io._targets import as_target, is_target

_SPARSE = ("data", "indices", "indptr", "shape")


def read_views(file: str, ids: str | None) -> dict[str, Source]:
    """Read the views of a file; its rows are known by their number."""
    if not file.lower().endswith(".npy"):
        return {name: Source(rows) for name, rows in read_set(file)[0].items()}
    with reading(file, "a NumPy array"):
        try:
            rows = np.load(file, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            if "mmap" not in str(error):
                raise
            rows = np.load(file, allow_pickle=False)  # nothing can be mapped where nothing is
        if not isinstance(rows, np.ndarray):
            raise FileError(f"{file}: an .npz archive. Rename it to .npz.")
        return {"": Source(rows)}


def read_set(file: str) -> tuple[dict[str, Any], Array | None]:
    """Read views and target of an .npz file."""
    with reading(file, "a NumPy archive"):
        archive = np.load(file, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise FileError(f"{file}: a single array, not an archive. Rename it to .npy.")
        with archive:
            names = list(archive.files)
            if {"format", "shape", "data"} <= set(names):
                return {"": as_csr(sparse.load_npz(file), file)}, None
            return _views_and_target(file, archive, names)


def _views_and_target(file: str, archive: Any, names: list[str]) -> tuple[dict[str, Any], Any]:
    parts = {name: _split(name, names) for name in names}
    views: dict[str, Any] = {}
    target = None
    for name in names:
        base = parts[name]
        if base is not None:
            if base not in views:
                views[base] = _csr(file, archive, base)
            continue
        held = archive[name]
        if is_target(name, held):
            target = as_target(held)
        elif held.ndim == 2 and is_numeric(held):
            views[name] = held
    if not views:
        raise FileError(
            f"{file}: there is no 2-D array of numbers among {some(names)}. Save a view with one "
            "row per sample and one column per feature."
        )
    return dict(sorted(views.items(), key=lambda item: natural(item[0]))), target


def _split(name: str, names: list[str]) -> str | None:
    """Return what a sparse matrix is called, of which this array is one of four parts."""
    base, _, part = name.rpartition("_")
    whole = part in _SPARSE and base and all(f"{base}_{other}" in names for other in _SPARSE)
    return base if whole else None


def _csr(file: str, archive: Any, base: str) -> sparse.csr_array:
    data, indices, indptr, shape = (archive[f"{base}_{part}"] for part in _SPARSE)
    return as_csr(sparse.csr_array((data, indices, indptr), shape=tuple(map(int, shape))), file)
