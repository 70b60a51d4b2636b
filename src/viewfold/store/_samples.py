"""The table ``samples``: a row for each sample of a state, or of one bucket of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from viewfold._util.table import Table

if TYPE_CHECKING:
    from viewfold._util.types import Array
    from viewfold.rows import RowSet
    from viewfold.state.clusters import Clusters


def samples_table(
    clusters: Clusters | None,
    ids: Array,
    embedding: Array,
    seen: Array,
    history: Array,
    added: Array,
    fingerprints: Array,
) -> Table:
    """Return the table ``samples`` of these samples: all of a state, or those of one bucket."""
    from viewfold.rows import LocalEngine
    from viewfold.state.clusters import confidence

    assert clusters is not None
    kind = kind_of_ids(ids)
    sure = confidence(LocalEngine(), clusters, embedding, seen)
    columns = {
        "id": ids.astype(str).astype(object) if kind == "mixed" else ids,
        "label": np.ascontiguousarray(history[:, -1]),
        "confidence": sure.astype(np.float32),
        "added": added,
        "fingerprints": fingerprints,
        "views_seen": seen,
        "history": history,
        "embedding": embedding,
    }
    if kind == "mixed":
        columns["id_is_int"] = np.array([isinstance(i, int) for i in ids])
    return Table(columns)


def no_samples() -> Table:
    """Return the table ``samples`` before the first view."""
    columns = {"id": object, "label": np.int32, "confidence": np.float32, "added": np.int32}
    rows = {"views_seen": bool, "history": np.int32, "embedding": float, "fingerprints": np.int32}
    return Table(
        {name: np.empty(0, kind) for name, kind in columns.items()}
        | {name: np.empty((0, 1), kind) for name, kind in rows.items()}
    )


def kind_of_ids(ids: RowSet) -> str:
    """Return what ids are: ``int``, ``str`` or ``mixed``."""
    if ids.dtype != object:
        return "int"
    from viewfold.rows import BucketRows

    if isinstance(ids, BucketRows):  # they cannot be mixed there
        return "str"
    import pandas as pd

    return "str" if pd.api.types.infer_dtype(ids, skipna=False) == "string" else "mixed"
