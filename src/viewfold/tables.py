"""A model's state as tables, and back: what a ``.vf`` file holds, without the file.

The tables are Arrow's: ``meta``, ``views``, ``samples`` and ``arrays``, as docs/format.md describes
them. A digest of all of them tells whether anybody else has changed one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from viewfold.blocks import Array
from viewfold.clustering import Clustering
from viewfold.consensus import Consensus, ViewRecord
from viewfold.errors import NewerFormatError, StateFileError, UnreadableError
from viewfold.methods.parts import put_together, take_apart
from viewfold.state import State

FORMAT = 1
"""Version of the format. Files of every version up to this one can be read."""

NUMBERS = ("float64", "float32", "int64", "int32", "bool")
"""What arrays in a file may hold."""


@dataclass(frozen=True)
class Saved:
    """What a file holds.

    Attributes
    ----------
    method : str
        Name of the estimator's class.
    params : dict
        Its parameters.
    state : State or None
        What it has learned; None before the first view.
    folded : dict
        When each view was folded into the file: its name, and the time (UTC).
    """

    method: str
    params: Mapping[str, Any]
    state: State | None
    folded: Mapping[str, datetime]


def now() -> datetime:
    """Return the time in UTC, as files hold it."""
    return datetime.now(UTC).replace(tzinfo=None)


# -- from a state to tables


def to_tables(saved: Saved) -> dict[str, pa.Table]:
    """Return all tables of a state, by name."""
    samples = _no_samples() if saved.state is None else _samples(saved.state)
    views, arrays, meta = _views(saved), _arrays(saved.state), _meta(saved)
    digest = Digest()
    digest.add(samples)
    meta["digest"] = digest.seal(meta, views, arrays)
    entries = pa.table({"key": list(meta), "value": [json.dumps(v) for v in meta.values()]})
    return {"meta": entries, "views": views, "samples": samples, "arrays": arrays}


def _samples(state: State) -> pa.Table:
    consensus = state.consensus
    kind = _kind_of_ids(consensus.ids)
    ids = consensus.ids.astype(str) if kind == "mixed" else consensus.ids
    columns = {
        "id": pa.array(ids, pa.int64() if kind == "int" else pa.string()),
        "label": np.ascontiguousarray(state.history[:, -1]),
        "confidence": state.clustering.confidence(consensus.embedding).astype(np.float32),
        "views_seen": _as_lists(consensus.seen),
        "history": _as_lists(state.history),
        "embedding": _as_lists(consensus.embedding),
    }
    if kind == "mixed":
        columns["id_is_int"] = np.array([isinstance(i, int) for i in consensus.ids])
    return pa.table(columns)


def _no_samples() -> pa.Table:
    columns = {"id": pa.string(), "label": pa.int32(), "confidence": pa.float32()}
    rows = {"views_seen": pa.bool_(), "history": pa.int32(), "embedding": pa.float64()}
    lists = {name: pa.list_(kind, 1) for name, kind in rows.items()}
    return pa.schema({**columns, **lists}).empty_table()


def _kind_of_ids(ids: Array) -> str:
    if ids.dtype != object:
        return "int"
    return "str" if pd.api.types.infer_dtype(ids, skipna=False) == "string" else "mixed"


def _as_lists(rows: Array) -> pa.Array:
    """Return rows as Arrow lists of one length, without a copy where there can be none."""
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(rows)), rows.shape[1])


def _views(saved: Saved) -> pa.Table:
    records = saved.state.consensus.views if saved.state else ()
    columns = {
        "fold": pa.int32(),
        "name": pa.string(),
        "n_samples": pa.int64(),
        "n_features": pa.int64(),
        "n_new": pa.int64(),
        "n_shared": pa.int64(),
        "n_iter": pa.int64(),
        "objective": pa.list_(pa.float64()),
        "agreement": pa.float64(),
        "features": pa.list_(pa.string()),
        "folded": pa.timestamp("us"),
    }
    rows = [
        {
            "fold": i + 1,
            **{f.name: getattr(record, f.name) for f in fields(record) if f.name in columns},
            "folded": saved.folded.get(record.name) or now(),
        }
        for i, record in enumerate(records)
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema(columns))


def _arrays(state: State | None) -> pa.Table:
    parts: dict[str, str | Array] = {}
    if state is not None:
        parts |= {"centers": state.clustering.centers, "projection": state.clustering.projection}
        for i, record in enumerate(state.consensus.views):
            parts |= take_apart(record.encoder, f"encoder/{i + 1}")
        for i, turn in enumerate(state.consensus.turns):
            parts |= take_apart(turn, f"turn/{i + 1}")
    columns = {
        "name": pa.string(),
        "kind": pa.string(),
        "shape": pa.list_(pa.int64()),
        "by_column": pa.bool_(),
        "data": pa.binary(),
    }
    rows = [{"name": name, **_row(part)} for name, part in parts.items()]
    return pa.Table.from_pylist(rows, schema=pa.schema(columns))


def _row(part: str | Array) -> dict[str, Any]:
    if isinstance(part, str):
        return {"kind": part}
    assert part.dtype.name in NUMBERS
    # An array laid out by columns comes back so: BLAS may round differently otherwise.
    by_column = part.flags.f_contiguous and not part.flags.c_contiguous
    return {
        "kind": part.dtype.name,
        "shape": list(part.shape),
        "by_column": by_column,
        "data": part.tobytes("F" if by_column else "C"),
    }


def _meta(saved: Saved) -> dict[str, Any]:
    meta: dict[str, Any] = {
        "format": "viewfold",
        "version": FORMAT,
        "written_by": f"viewfold {version('viewfold')}",
        "method": saved.method,
        "params": {name: _plain(value) for name, value in saved.params.items()},
    }
    if saved.state is not None:
        consensus = saved.state.consensus
        meta |= {
            "n_samples": int(consensus.ids.size),
            "ids": _kind_of_ids(consensus.ids),
            "length": consensus.length,
        }
    return meta


def _plain(value: Any) -> Any:
    """Return a parameter as JSON has it."""
    if isinstance(value, np.random.RandomState):
        name, keys, *rest = cast(tuple[Any, ...], value.get_state(legacy=True))
        return {"RandomState": [name, keys.tolist(), *rest]}
    return value.item() if isinstance(value, np.generic) else value


def _from_plain(value: Any) -> Any:
    if isinstance(value, dict):
        generator = np.random.RandomState()
        generator.set_state(tuple(value["RandomState"]))
        return generator
    return value


# -- from tables to a state


def read_meta(table: pa.Table) -> dict[str, Any]:
    """Return what the table ``meta`` says, if it is one that can be read.

    Raises
    ------
    UnreadableError
        If the tables are another program's, or of a newer version.
    """
    meta = {row["key"]: json.loads(row["value"]) for row in table.to_pylist()}
    if meta.get("format") != "viewfold":
        raise UnreadableError("it is a database, but not one of viewfold", StateFileError)
    if meta["version"] > FORMAT:
        raise UnreadableError(
            f"it has format {meta['version']} and this viewfold reads up to {FORMAT}; install a "
            "newer viewfold",
            NewerFormatError,
        )
    return meta


def from_tables(
    meta: dict[str, Any], views: pa.Table, arrays: pa.Table, samples: Iterable[pa.RecordBatch]
) -> Saved:
    """Return the state that tables hold.

    Parameters
    ----------
    meta : dict
        What `read_meta` returned.
    views, arrays : pyarrow.Table
        The tables of these names.
    samples : iterable of pyarrow.RecordBatch
        The table ``samples``, in batches of any size.

    Returns
    -------
    Saved

    Raises
    ------
    UnreadableError
        If the tables are not as they were written. Of tables that are damaged in other ways, any
        other exception.
    """
    digest = Digest()
    columns = _gather(samples, meta.get("n_samples", 0), digest)
    sealed = meta.pop("digest")
    if digest.seal(meta, views, arrays) != sealed:
        raise UnreadableError("its content was changed by another program")
    folded = dict(zip(views["name"].to_pylist(), views["folded"].to_pylist(), strict=True))
    params = {name: _from_plain(value) for name, value in meta["params"].items()}
    state = _state(meta, views, arrays, columns) if "n_samples" in meta else None
    return Saved(meta["method"], params, state, folded)


def _gather(batches: Iterable[pa.RecordBatch], n: int, digest: Digest) -> dict[str, Array]:
    """Return the columns of a table with n rows as arrays."""
    columns: dict[str, Array] = {}
    at = 0
    for batch in batches:
        digest.add(batch)
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            width: tuple[int, ...] = ()
            if pa.types.is_fixed_size_list(column.type):
                width, column = (column.type.list_size,), column.flatten()
            values = column.to_numpy(zero_copy_only=False).reshape(-1, *width)
            if name not in columns:
                columns[name] = np.empty((n, *width), values.dtype)
            columns[name][at : at + len(values)] = values
        at += len(batch)
    if at != n:
        raise UnreadableError(f"it has {at} samples and should have {n}")
    return columns


def _state(
    meta: dict[str, Any], views: pa.Table, arrays: pa.Table, samples: dict[str, Array]
) -> State:
    ids, history = samples["id"], samples["history"]
    if meta["ids"] == "mixed":
        is_int = samples["id_is_int"]
        ids[is_int] = [int(i) for i in ids[is_int]]
    parts = {row["name"]: _part(row) for row in arrays.to_pylist()}
    records = []
    for row in views.to_pylist():
        fold, _ = row.pop("fold"), row.pop("folded")
        row["objective"] = tuple(row["objective"])
        row["features"] = None if row["features"] is None else tuple(row["features"])
        records.append(ViewRecord(**row, encoder=put_together(parts, f"encoder/{fold}")))
    # Earlier files know no turns: their encoders are of the present consensus.
    turns = tuple(cast(Array | None, parts.get(f"turn/{i + 1}")) for i in range(len(records)))
    labels = history[:, -1].astype(np.intp)
    centers = cast(Array, parts["centers"])  # earlier files know no groups
    return State(
        Consensus(
            ids,
            samples["embedding"],
            samples["views_seen"],
            tuple(records),
            meta["length"],
            turns,
        ),
        Clustering(
            labels, cast(Array, parts["projection"]), centers.reshape(-1, *centers.shape[-2:])
        ),
        history,
    )


def _part(row: dict[str, Any]) -> str | Array:
    if row["shape"] is None:
        return cast(str, row["kind"])
    if row["kind"] not in NUMBERS:
        raise UnreadableError(f"it holds an array of {row['kind']}")
    order = "F" if row["by_column"] else "C"
    # A bytearray, so that the array is one's own to write to.
    flat = np.frombuffer(bytearray(row["data"]), row["kind"])
    return flat.reshape(row["shape"], order=cast(Any, order))


class Digest:
    """What tables say, in a few bytes, however they are cut into batches."""

    def __init__(self) -> None:
        self.columns: dict[str, Any] = {}

    def add(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Take more rows of the large table in."""
        batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
        for batch in batches:
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                self._add(name, column)

    def _add(self, name: str, values: pa.Array) -> None:
        if pa.types.is_fixed_size_list(values.type):
            name, values = f"{name}[{values.type.list_size}]", values.flatten()
        if pa.types.is_string(values.type):
            self._add(f"length of {name}", pc.binary_length(values))
            _, places, characters = values.buffers()
            ends = np.frombuffer(places, np.int32)[[values.offset, values.offset + len(values)]]
            content: Any = memoryview(characters or b"")[ends[0] : ends[1]]
        else:
            content = np.ascontiguousarray(values.to_numpy(zero_copy_only=False))
            name = f"{name} {content.dtype}"
        self.columns.setdefault(name, hashlib.sha256()).update(content)

    def seal(self, meta: dict[str, Any], *small: pa.Table) -> str:
        """Return the digest of all rows, and of the small tables beside them."""
        large = sorted((name, digest.hexdigest()) for name, digest in self.columns.items())
        whole = hashlib.sha256(json.dumps([meta, large], sort_keys=True).encode())
        for table in small:
            for row in table.to_pylist():
                data = row.pop("data", None) or b""
                whole.update(repr(sorted(row.items())).encode())
                whole.update(data)
        return whole.hexdigest()
