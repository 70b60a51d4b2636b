"""Batches of rows become one matrix and one list of ids."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from viewfold._util.types import Matrix
from viewfold.data._spool import Spool
from viewfold.rows import Rows


def spool_batches(parts: Iterator[Any], label: str, spool: Spool) -> Any:
    """Collect row batches in a temporary file and map that: an iterator can be read only once."""
    first = next(parts, None)
    if first is None:
        raise ValueError(f"{label} is empty: its iterator gave no batch.")
    _, top, features = first
    known: list[Any] = []

    def blocks() -> Iterator[Matrix]:
        for ids, block, names in chain([first], parts):
            _same_columns(block, names, top, features, label)
            known.append(ids)
            yield block

    if sparse.issparse(top):
        matrix = sparse.csr_array(sparse.vstack(list(blocks()), format="csr"))
    else:
        for block in blocks():
            spool.append(block, Rows(top).dtype)
        matrix = spool.matrix()
    return joined_ids(known), matrix, features


def in_blocks(rows: Any, label: str) -> Any:
    """Return rows that lie in an open file (a backed AnnData) as an array or sparse matrix.

    Dense ones go through a temporary file, block by block; others are returned as they are.
    """
    if type(rows).__module__.split(".")[0] not in ("h5py", "zarr", "anndata"):
        return rows
    from viewfold.data._tables import batch_rows

    if getattr(rows, "format", "csr") != "csr":  # by columns: there are no blocks of rows
        return rows.to_memory()
    step = batch_rows(rows.shape[1])
    starts = range(0, rows.shape[0], step)
    parts = ((None, rows[start : start + step], None) for start in starts)
    return spool_batches(parts, label, Spool())[1] if starts else rows[:0]


def joined_ids(known: list[Any]) -> Any:
    """Ids of all batches. A column that holds text in some batches is text in all of them."""
    if any(ids is None for ids in known):
        return None
    if all(_is_ints(ids) for ids in known):
        return np.concatenate(known)
    if all(_is_ints(ids) or pd.api.types.infer_dtype(ids) == "string" for ids in known):
        known = [ids.astype(str).tolist() if _is_ints(ids) else ids for ids in known]
    return list(chain.from_iterable(known))


def _is_ints(ids: Any) -> bool:
    return isinstance(ids, np.ndarray) and ids.dtype.kind in "iu"


def _same_columns(block: Matrix, names: Any, top: Matrix, features: Any, label: str) -> None:
    if sparse.issparse(block) != sparse.issparse(top):
        raise ValueError(f"{label} mixes dense and sparse batches. Use one kind.")
    if block.shape[1] != top.shape[1] or names != features:
        raise ValueError(
            f"{label}: a batch has {block.shape[1]} columns where the first one had "
            f"{top.shape[1]}, or other names. Give every batch the same columns in the same order."
        )
