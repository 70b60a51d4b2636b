"""The table ``samples``: a row for each sample of a state, or of one bucket of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from viewfold._types import Array
    from viewfold.core.state import Clusters
    from viewfold.engine import RowSet


def samples_table(
    clusters: Clusters | None,
    ids: Array,
    embedding: Array,
    seen: Array,
    history: Array,
    added: Array,
    fingerprints: Array,
) -> pa.Table:
    """Return the table ``samples`` of these samples: all of a state, or those of one bucket."""
    from viewfold.clustering import confidence
    from viewfold.engine import LocalEngine

    assert clusters is not None
    kind = kind_of_ids(ids)
    sure = confidence(LocalEngine(), clusters, embedding, seen)
    columns = {
        "id": pa.array(
            ids.astype(str) if kind == "mixed" else ids,
            pa.int64() if kind == "int" else pa.string(),
        ),
        "label": np.ascontiguousarray(history[:, -1]),
        "confidence": sure.astype(np.float32),
        "added": added,
        "fingerprints": _as_lists(fingerprints),
        "views_seen": _as_lists(seen),
        "history": _as_lists(history),
        "embedding": _as_lists(embedding),
    }
    if kind == "mixed":
        columns["id_is_int"] = np.array([isinstance(i, int) for i in ids])
    return pa.table(columns)


def no_samples() -> pa.Table:
    """Return the table ``samples`` before the first view."""
    columns = {"id": pa.string(), "label": pa.int32(), "confidence": pa.float32()}
    columns["added"] = pa.int32()
    rows = {"views_seen": pa.bool_(), "history": pa.int32(), "embedding": pa.float64()}
    rows["fingerprints"] = pa.int32()
    lists = {name: pa.list_(kind, 1) for name, kind in rows.items()}
    return pa.schema({**columns, **lists}).empty_table()


def kind_of_ids(ids: RowSet) -> str:
    """Return what ids are: ``int``, ``str`` or ``mixed``."""
    if ids.dtype != object:
        return "int"
    from viewfold.engine import BucketRows

    if isinstance(ids, BucketRows):  # they cannot be mixed there
        return "str"
    import pandas as pd

    return "str" if pd.api.types.infer_dtype(ids, skipna=False) == "string" else "mixed"


def _as_lists(rows: Array) -> pa.Array:
    """Return rows as Arrow lists of one length, without a copy where there can be none."""
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(rows)), rows.shape[1])
