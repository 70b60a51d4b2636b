"""A model's state as tables, and back: what a ``.vf`` file holds, without the file.

The tables are ``meta``, ``views``, ``samples``, ``arrays`` and ``log``, as docs/format.md
describes them. Digests of all of them tell whether another program has changed one. The classes of
models are imported only where a model is made: commands that read a table do not need them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from viewfold._util.table import Table
from viewfold._util.types import as_python
from viewfold._util.version import __version__
from viewfold.errors import NewerFormatError, StateFileError, UnreadableError
from viewfold.state.log import Event, Log
from viewfold.store import digests
from viewfold.store._check import cluster_names
from viewfold.store._samples import kind_of_ids, no_samples, samples_table

if TYPE_CHECKING:
    from viewfold._util.types import Array
    from viewfold.rows import RowSet
    from viewfold.state.parts import Part
    from viewfold.state.state import State, ViewRecord

FORMAT = 3
"""Version of the format. Files of every version up to this one can be read."""

NUMBERS = ("float64", "float32", "int64", "int32", "bool")
"""What arrays in a file may hold."""

CHANGED = "its content was damaged, or changed by another program"

ARRAY = ("array", 1)
"""The tag of arrays; `viewfold.state.parts` has the tags of what consists of parts."""


COLUMNS = {
    "id": "ids",
    "embedding": "embedding",
    "views_seen": "seen",
    "history": "history",
    "added": "added",
    "fingerprints": "fingerprints",
}
"""The columns of the table ``samples`` that a state is made of, and what they are called there."""

MAP = "turn"
"""What files call the linear map of a fold; the format keeps this name for ever."""


# -- from a state to tables


def to_tables(state: State, **facts: int) -> dict[str, Table]:
    """Return all tables of a state, by name; `meta` says the facts as well."""
    from viewfold.explain import distinguished

    state = distinguished(state.gathered())
    rows = [getattr(state, name) for name in COLUMNS.values()]
    samples = samples_table(state.clusters, *rows) if state.views else no_samples()
    small = small_tables(state, digests.of_columns(samples.columns), **facts)
    return {"meta": small["meta"], "samples": samples, **small}


def small_tables(state: State, samples: dict[str, str], **facts: int) -> dict[str, Table]:
    """Return all tables but that of samples, whose digests are given."""
    small = {"views": _views(state), "arrays": _arrays(state), "log": _log(state.log)}
    small["steps"] = _steps(state)
    meta = _meta(state) | facts
    meta["digests"] = {"samples": samples}
    meta["digests"] |= {name: digests.of_table(table) for name, table in small.items()}
    meta["digest"] = digests.of_meta(meta)
    entries = Table(
        {"key": list(meta), "value": [json.dumps(v) for v in meta.values()]},
        {"key": "VARCHAR", "value": "VARCHAR"},
    )
    return {"meta": entries, **small}


def _views(state: State) -> Table:
    columns = {
        "fold": "INTEGER",
        "name": "VARCHAR",
        "n_samples": "BIGINT",
        "n_features": "BIGINT",
        "n_new": "BIGINT",
        "n_shared": "BIGINT",
        "n_iter": "BIGINT",
        "objective": "DOUBLE[]",
        "agreement": "DOUBLE",
        "features": "VARCHAR[]",
        "entry": "INTEGER",
        "n_empty": "BIGINT",
        "n_missing": "BIGINT",
    }
    rows = [
        {
            "fold": i + 1,
            **{f.name: getattr(record, f.name) for f in fields(record) if f.name in columns},
        }
        for i, record in enumerate(state.views)
    ]
    return Table.of_rows(_as_python(rows), columns)


def _steps(state: State) -> Table:
    entries = [int(entry) for entry in state.steps]
    columns = {
        "step": list(range(1, len(entries) + 1)),
        "entry": entries,
        "name": list(state.step_names),
    }
    return Table(columns, {"step": "INTEGER", "entry": "INTEGER", "name": "VARCHAR"})


def _log(log: Log) -> Table:
    counts = ("n_samples", "n_new", "n_shared", "n_moved", "n_forgotten", "n_corrected")
    columns = {
        "entry": "INTEGER",
        "what": "VARCHAR",
        "time": "TIMESTAMP WITH TIME ZONE",
        "version": "VARCHAR",
        "view": "VARCHAR",
        **dict.fromkeys(counts, "BIGINT"),
        "undoes": "INTEGER",
        "n_clusters": "BIGINT",
    }
    if any(event.note is not None for event in log):
        columns["note"] = "VARCHAR"
    rows = [asdict(event) | {"time": digests.microseconds_of(event.time)} for event in log]
    return Table.of_rows(_as_python(rows), columns)


def _as_python(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with numbers of Python: what is written has one digest, whoever counted it."""
    return [
        {
            name: [as_python(one) for one in cell] if isinstance(cell, tuple) else as_python(cell)
            for name, cell in row.items()
        }
        for row in rows
    ]


def _arrays(state: State) -> Table:
    from viewfold.state.parts import StoredColumns, StoredSource, take_apart

    parts: dict[str, Part] = {}
    if (found := state.clusters) is not None:
        parts |= {"centers": found.centers, "projection": found.projection}
        parts |= [*take_apart(found.scatter, "scatter"), *take_apart(found.apart, "apart")]
    for i, record in enumerate(state.views):
        parts |= take_apart(record.encoder, f"encoder/{i + 1}")
        parts |= take_apart(record.moments, f"moments/{i + 1}")
        if record.columns is not None:
            parts |= take_apart(StoredColumns.of(record.columns), f"columns/{i + 1}")
        if record.source is not None:
            parts |= take_apart(StoredSource.of(record.source), f"source/{i + 1}")
    for i, linear_map in enumerate(state.maps):
        parts |= take_apart(linear_map, f"{MAP}/{i + 1}")
    columns = {
        "name": "VARCHAR",
        "type": "VARCHAR",
        "version": "INTEGER",
        "dtype": "VARCHAR",
        "shape": "BIGINT[]",
        "by_column": "BOOLEAN",
        "data": "BLOB",
    }
    nothing = dict.fromkeys(columns)
    rows = [{**nothing, "name": name, **_row(part)} for name, part in parts.items()]
    return Table.of_rows(rows, columns)


def _row(part: Part) -> dict[str, Any]:
    if isinstance(part, tuple):
        return part._asdict()
    assert part.dtype.name in NUMBERS
    # An array laid out by columns comes back so: BLAS may round differently otherwise.
    by_column = part.flags.f_contiguous and not part.flags.c_contiguous
    return {
        "type": ARRAY[0],
        "version": ARRAY[1],
        "dtype": part.dtype.name,
        "shape": list(part.shape),
        "by_column": by_column,
        "data": part.tobytes("F" if by_column else "C"),
    }


def _meta(state: State) -> dict[str, Any]:
    meta: dict[str, Any] = {
        "format": "viewfold",
        "version": FORMAT,
        "written_by": f"viewfold {__version__}",
        "method": state.method,
        "params": {name: _plain(value) for name, value in state.params.items()},
    }
    if state.views:
        meta |= {
            "n_samples": state.n_samples,
            "ids": kind_of_ids(state.ids),
            "length": state.length,
            "key": state.key,
        }
    if state.cluster_names:
        meta["cluster_names"] = {str(c): name for c, name in state.cluster_names.items()}
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


def read_meta(table: Table) -> dict[str, Any]:
    """Return what the table ``meta`` says, if it is one that can be read.

    Raises
    ------
    UnreadableError
        If the tables are another program's, or of a newer version.
    """
    meta = {row["key"]: json.loads(row["value"]) for row in table.rows()}
    if meta.get("format") != "viewfold":
        raise UnreadableError("it is a database, but not one of viewfold", StateFileError)
    if meta["version"] > FORMAT:
        raise UnreadableError(
            f"it has format {meta['version']} and this viewfold reads up to {FORMAT}; install a "
            "newer viewfold",
            NewerFormatError,
        )
    if meta["version"] > 1 and digests.of_meta(meta) != meta["digest"]:
        raise UnreadableError(CHANGED)
    return meta


def from_tables(
    meta: dict[str, Any],
    views: Table,
    arrays: Table,
    samples: Iterable[dict[str, Array]],
    log: Table | None = None,
    steps: Table | None = None,
) -> State:
    """Return the state that tables hold.

    Parameters
    ----------
    meta : dict
        What `read_meta` returned.
    views, arrays : Table
        The tables of these names.
    samples : iterable of dict
        The columns of the table ``samples``, in batches of any size.
    log : Table, optional
        The table of this name; files of format 1 have none.
    steps : Table, optional
        The table of this name; before format 3, every step was the fold of a view.

    Returns
    -------
    State

    Raises
    ------
    UnreadableError
        If the tables are not as they were written. Of tables that are damaged in other ways, any
        other exception.
    """
    digest = digests.Columns()
    columns = _gather(samples, meta.get("n_samples", 0), digest)
    return of_columns(meta, views, arrays, columns, digest.found(), log, steps)


def of_columns(
    meta: dict[str, Any],
    views: Table,
    arrays: Table,
    columns: dict[str, RowSet],
    digest: dict[str, str],
    log: Table | None,
    steps: Table | None,
) -> State:
    """Return the state that tables hold, if the columns of ``samples`` were read already."""
    rows, parts = views.rows(), arrays.rows()
    if log is None:
        if digests.of_format_1(meta, digest, views, arrays) != meta["digest"]:
            raise UnreadableError(CHANGED)
        events = _from_format_1(views.rows(), rows, parts, columns)
    else:
        small = {"views": views, "arrays": arrays, "log": log}
        small |= {} if steps is None else {"steps": steps}
        found = {name: digests.of_table(table) for name, table in small.items()}
        if {"samples": digest, **found} != meta["digests"]:
            raise UnreadableError(CHANGED)
        events = events_of(log)
    entries = [row["entry"] for row in rows] if steps is None else steps["entry"]
    return replace(_state(meta, rows, parts, columns, events), steps=tuple(entries))


def events_of(log: Table) -> Log:
    """Return the events of the table ``log``."""
    return tuple(Event(**{**row, "time": digests.time_of(row["time"])}) for row in log.rows())


def _from_format_1(
    timed: list[dict[str, Any]],
    views: list[dict[str, Any]],
    arrays: list[dict[str, Any]],
    samples: dict[str, Array],
) -> Log:
    """Bring what a file of format 1 holds up to date, in place; return the log as far as known."""
    for row in arrays:
        kind = row.pop("kind")
        tag = ARRAY if row["shape"] is not None else (kind.lower(), 1)
        row |= {"type": tag[0], "version": tag[1], "dtype": kind}
    for row in views:
        row["entry"] = row["fold"]
        del row["folded"]
    if not views:
        return ()
    history = samples["history"]
    known = history >= 0
    samples["added"] = (1 + known.argmax(axis=1)).astype(np.int32)
    return tuple(
        Event(
            entry=row["fold"],
            what="fold",
            time=digests.time_of(digests.microseconds_of(row["folded"])),
            version=None,
            view=row["name"],
            n_samples=int(known[:, i].sum()),
            n_new=row["n_new"],
            n_shared=row["n_shared"],
            n_moved=int((known[:, i - 1] & (history[:, i - 1] != history[:, i])).sum()) if i else 0,
        )
        for i, row in enumerate(timed)
    )


def _gather(
    batches: Iterable[dict[str, Array]], n: int, digest: digests.Columns
) -> dict[str, Array]:
    """Return the columns of a table with n rows, which come in batches."""
    columns: dict[str, Array] = {}
    at = 0
    for batch in batches:
        digest.add(batch)
        for name, values in batch.items():
            if name not in columns:
                columns[name] = np.empty((n, *values.shape[1:]), values.dtype)
            columns[name][at : at + len(values)] = values
        at += len(batch["id"])
    if at != n:
        raise UnreadableError(f"it has {at} samples and should have {n}")
    return columns


def _state(
    meta: dict[str, Any],
    views: list[dict[str, Any]],
    arrays: list[dict[str, Any]],
    samples: dict[str, RowSet],
    log: Log,
) -> State:
    from viewfold.state.clusters import Clusters
    from viewfold.state.hashes import new_key
    from viewfold.state.state import State

    params = {name: _from_plain(value) for name, value in meta["params"].items()}
    if "n_samples" not in meta:
        return replace(State.empty(meta["method"], params), log=log)
    ids = samples["id"]
    if meta["ids"] == "mixed":
        is_int = samples["id_is_int"]
        ids[is_int] = [int(i) for i in ids[is_int]]
    old = "fingerprints" not in samples  # before format 3
    if old:
        samples["fingerprints"] = np.zeros(samples["views_seen"].shape, np.int32)
    parts = {row["name"]: _part(row) for row in arrays}
    records = tuple(_record(row, parts) for row in views)
    centers = cast("Array", parts["centers"])  # earlier files know no groups
    return State(
        ids=ids,
        embedding=samples["embedding"],
        seen=samples["views_seen"],
        history=samples["history"],
        added=samples["added"],
        fingerprints=samples["fingerprints"],
        views=records,
        # Earlier files know no maps: their encoders are of the present consensus.
        maps=tuple(cast("Array | None", parts.get(f"{MAP}/{i + 1}")) for i in range(len(records))),
        clusters=Clusters(
            cast("Array", parts["projection"]),
            centers.reshape(-1, *centers.shape[-2:]),
            # Earlier files have none of these.
            *(cast("Array | None", parts.get(name)) for name in ("scatter", "apart")),
        ),
        length=meta["length"],
        key=new_key() if old else meta["key"],
        cluster_names=cluster_names(meta),
        log=log,
        method=meta["method"],
        params=params,
    )


def _record(row: dict[str, Any], parts: dict[str, Part]) -> ViewRecord:
    from viewfold.state.parts import put_together
    from viewfold.state.state import ViewRecord

    fold = row.pop("fold")
    row["objective"] = tuple(row["objective"])
    row["features"] = None if row["features"] is None else tuple(row["features"])
    stored, said = (put_together(parts, f"{what}/{fold}") for what in ("columns", "source"))
    return ViewRecord(
        **row,
        columns=None if stored is None else stored.columns(),
        source=None if said is None else said.source(),
        encoder=put_together(parts, f"encoder/{fold}"),
        moments=put_together(parts, f"moments/{fold}"),
    )


def _part(row: dict[str, Any]) -> Part:
    from viewfold.state.parts import Tag

    if row["shape"] is None:
        return Tag(row["type"], row["version"])
    order = "F" if row["by_column"] else "C"
    # A bytearray, so that the array is one's own to write to.
    flat = np.frombuffer(bytearray(row["data"]), row["dtype"])
    return flat.reshape(row["shape"], order=cast(Any, order))
