"""A state as tables, and back: what files hold (docs/format.md), in memory, in DuckDB, digested.

The classes of models are imported only where a state is made: commands that read a table do not
need them. DuckDB's rows of numbers become NumPy's matrices with nothing in between.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from viewfold._util.table import Table
from viewfold._util.types import as_python
from viewfold._util.version import __version__
from viewfold.errors import NewerFormatError, StateFileError, UnreadableError
from viewfold.state.log import Event, Log
from viewfold.store.check import check_steps, check_views, cluster_names

if TYPE_CHECKING:
    import duckdb

    from viewfold._util.types import Array
    from viewfold.rows import RowSet
    from viewfold.state.clusters import Clusters
    from viewfold.state.evidence import Directions
    from viewfold.state.parts import Part
    from viewfold.state.state import State, ViewRecord

FORMAT = 4  # of files and folders; the only one that is read

CHANGED = "its content was damaged, or changed by another program"
NOT_OURS = "it is a database, but not one of viewfold"

# The columns of the table ``samples`` that a state is made of, and what a state calls them.
COLUMNS = {
    "id": "ids",
    "embedding": "embedding",
    "views_seen": "seen",
    "history": "history",
    "added": "added",
    "fingerprints": "fingerprints",
    "evidence": "evidence",
    "novelty": "novelty",
}

# What each column of the table ``samples`` may hold, as NumPy calls it; and which of them have one
# value for each sample, and not a row of numbers.
SAMPLES = {
    "id": ("object", "int64"),
    "label": ("int32",),
    "confidence": ("float32",),
    "hangs_on": ("int32",),
    "added": ("int32",),
    "fingerprints": ("int32",),
    "evidence": ("int8",),
    "novelty": ("uint8",),
    "views_seen": ("bool",),
    "history": ("int32",),
    "embedding": ("float64", "float32"),
}
SINGLE = ("id", "label", "confidence", "added", "novelty", "hangs_on")
SQL = {"float32": "FLOAT", "float64": "DOUBLE", "int32": "INTEGER", "int64": "BIGINT"}
SQL |= {"bool": "BOOLEAN", "object": "VARCHAR", "int8": "TINYINT", "uint8": "UTINYINT"}

_TIME = "TIMESTAMP WITH TIME ZONE"
_COUNTS = ("n_samples", "n_new", "n_shared", "n_moved", "n_forgotten", "n_corrected", "n_novel")

# The small tables: their columns and types, as they are written and as files have to have them.
SMALL = {
    "meta": {"key": "VARCHAR", "value": "VARCHAR"},
    "views": {
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
    },
    "arrays": {
        "name": "VARCHAR",
        "type": "VARCHAR",
        "version": "INTEGER",
        "dtype": "VARCHAR",
        "shape": "BIGINT[]",
        "by_column": "BOOLEAN",
        "data": "BLOB",
    },
    "log": {
        "entry": "INTEGER",
        "what": "VARCHAR",
        "time": _TIME,
        "version": "VARCHAR",
        "view": "VARCHAR",
        **dict.fromkeys(_COUNTS, "BIGINT"),
        "undoes": "INTEGER",
        "n_clusters": "BIGINT",
        "note": "VARCHAR",
    },
    "steps": {"step": "INTEGER", "entry": "INTEGER", "name": "VARCHAR"},
}

_MAP = "turn"  # what files call the linear map of a fold


# -- from a state to tables


def to_tables(state: State, **facts: int) -> dict[str, Table]:
    """Return all tables of a state, by name; `meta` says the facts as well."""
    state = state.gathered()
    if state.clusters is None:
        samples = no_samples()
    else:
        rows = {name: getattr(state, mine) for name, mine in COLUMNS.items()}
        samples = samples_table(state.clusters, state.directions, rows)
    small = small_tables(state, column_digests(samples.columns), **facts)
    return {"meta": small["meta"], "samples": samples, **small}


def samples_table(
    clusters: Clusters, directions: Directions | None, rows: Mapping[str, Array]
) -> Table:
    """Return the table ``samples`` of these rows: all of a state, or those of one bucket."""
    from viewfold.rows import LocalEngine
    from viewfold.state.clusters import confidence, hangs_on

    engine, embedding, novelty = LocalEngine(), rows["embedding"], rows["novelty"]
    hangs = hangs_on(engine, clusters, directions, embedding, rows["evidence"])
    made = {
        **rows,
        "label": np.ascontiguousarray(rows["history"][:, -1]),
        "confidence": np.float32(
            confidence(engine, clusters, embedding, rows["views_seen"], novelty, hangs)
        ),
        "hangs_on": np.ascontiguousarray(hangs[:, 0]),
    }
    columns = {name: made[name] for name in SAMPLES}
    if kind_of_ids(rows["id"]) == "mixed":
        columns["id"] = rows["id"].astype(str).astype(object)
        columns["id_is_int"] = np.array([isinstance(i, int) for i in rows["id"]])
    return Table(columns)


def no_samples() -> Table:
    shapes = {name: (0,) if name in SINGLE else (0, 1) for name in SAMPLES}
    return Table({name: np.empty(shapes[name], kinds[0]) for name, kinds in SAMPLES.items()})


def kind_of_ids(ids: RowSet) -> str:
    """Return what ids are: ``int``, ``str`` or ``mixed``."""
    if ids.dtype != object:
        return "int"
    from viewfold.rows import BucketRows

    if isinstance(ids, BucketRows):  # they cannot be mixed there
        return "str"
    import pandas as pd

    return "str" if pd.api.types.infer_dtype(ids, skipna=False) == "string" else "mixed"


def small_tables(state: State, samples: dict[str, str], **facts: int) -> dict[str, Table]:
    """Return all tables but that of samples, whose digests are given."""
    folds, steps = (range(1, len(each) + 1) for each in (state.views, state.steps))
    times = [(event.time - _1970) // timedelta(microseconds=1) for event in state.log]
    arrays = [_row(name, part) for name, part in state_parts(state).items()]
    small = {
        "views": _attributes("views", state.views, fold=folds),
        "arrays": Table.of_rows(arrays, SMALL["arrays"]),
        "log": _attributes("log", state.log, time=times),
        "steps": _attributes("steps", (), step=steps, entry=state.steps, name=state.step_names),
    }
    meta = _meta(state) | facts
    meta["digests"] = {"samples": samples}
    meta["digests"] |= {name: table_digest(table) for name, table in small.items()}
    meta["digest"] = meta_digest(meta)
    said = [{"key": key, "value": json.dumps(value)} for key, value in meta.items()]
    return {"meta": Table.of_rows(said, SMALL["meta"]), **small}


def _attributes(table: str, things: Sequence[Any], **columns: Iterable[Any]) -> Table:
    """Return what things have as a table, next to columns that are given.

    Its numbers are Python's: what is written has one digest, whoever counted it.
    """
    cells = {
        name: columns.get(name) or [getattr(one, name) for one in things] for name in SMALL[table]
    }
    return Table(
        {
            name: [
                list(map(as_python, c)) if isinstance(c, tuple) else as_python(c) for c in column
            ]
            for name, column in cells.items()
        },
        SMALL[table],
    )


def state_parts(state: State) -> dict[str, Part]:
    """Return the arrays and tags that a state consists of, but for its samples, by name."""
    from viewfold.state.parts import StoredColumns, StoredSource, take_apart

    parts: dict[str, Part] = {}
    for name in ("centers", "projection", "scatter", "apart"):
        parts |= take_apart(getattr(state.clusters, name, None), name)
    parts |= take_apart(state.directions, "directions")
    for i, record in enumerate(state.views, 1):
        parts |= take_apart(record.encoder, f"encoder/{i}")
        parts |= take_apart(record.moments, f"moments/{i}")
        parts |= take_apart(record.profile, f"profile/{i}")
        if record.columns is not None:
            parts |= take_apart(StoredColumns.of(record.columns), f"columns/{i}")
        if record.source is not None:
            parts |= take_apart(StoredSource.of(record.source), f"source/{i}")
    for i, linear_map in enumerate(state.maps, 1):
        parts |= take_apart(linear_map, f"{_MAP}/{i}")
    return parts


def _row(name: str, part: Part) -> dict[str, Any]:
    if isinstance(part, tuple):
        return {**dict.fromkeys(SMALL["arrays"]), "name": name, **part._asdict()}
    # An array laid out by columns comes back so: BLAS may round differently otherwise.
    by_column = part.flags.f_contiguous and not part.flags.c_contiguous
    return {
        "name": name,
        "type": "array",  # `viewfold.state.parts` has the tags of classes
        "version": 1,
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
        "params": {name: _to_json(value) for name, value in state.params.items()},
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


def _to_json(value: Any) -> Any:
    if isinstance(value, np.random.RandomState):
        name, keys, *rest = value.get_state(legacy=True)
        return {"RandomState": [name, np.asarray(keys).tolist(), *rest]}
    return value.item() if isinstance(value, np.generic) else value


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        generator = np.random.RandomState()
        generator.set_state(tuple(value["RandomState"]))
        return generator
    return value


# -- from tables to a state


def check_format(said: Mapping[str, Any], what: str = "it") -> None:
    """Refuse a format other than the one that is read; say who wrote it, and what to do."""
    version = said.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise UnreadableError(f"its format is {version!r}")
    if version > FORMAT:
        raise UnreadableError(
            f"{what} has format {version} and this viewfold reads format {FORMAT}; install a newer "
            "viewfold",
            NewerFormatError,
        )
    if version < FORMAT:
        raise UnreadableError(
            f"{what} has format {version}, written by {said.get('written_by')}, and this viewfold "
            f"reads format {FORMAT} only; make it anew from the data",
            StateFileError,
        )


def read_meta(table: Table) -> dict[str, Any]:
    """Return what the table ``meta`` says, if it is one that can be read."""
    meta = {row["key"]: json.loads(row["value"]) for row in table.rows()}
    if meta.get("format") != "viewfold":
        raise UnreadableError(NOT_OURS, StateFileError)
    check_format(meta)
    if meta_digest(meta) != meta["digest"]:
        raise UnreadableError(CHANGED)
    return meta


def to_state(
    meta: dict[str, Any],
    small: Mapping[str, Table],
    samples: Mapping[str, Any],
    digest: dict[str, str],
) -> State:
    """Return the state that tables hold, given the columns of ``samples`` and their digests.

    Of tables that are damaged in ways that digests do not tell, any exception may come.
    """
    from viewfold.state.parts import put_together
    from viewfold.state.state import State

    check_views(small["views"], empty="n_samples" not in meta)
    check_steps(small["steps"])
    found = {name: table_digest(table) for name, table in small.items() if name != "meta"}
    if {"samples": digest, **found} != meta["digests"]:
        raise UnreadableError(CHANGED)
    log, steps = events_of(small["log"]), tuple(small["steps"]["entry"])
    params = {name: _from_json(value) for name, value in meta["params"].items()}
    if "n_samples" not in meta:
        return replace(State.empty(meta["method"], params), log=log, steps=steps)
    if meta["ids"] == "mixed":
        ids, is_int = samples["id"], samples["id_is_int"]
        ids[is_int] = [int(i) for i in ids[is_int]]
    parts = parts_of(small["arrays"])
    records = tuple(view_record(row, parts) for row in small["views"].rows())
    return State(
        **{mine: samples[name] for name, mine in COLUMNS.items()},
        views=records,
        maps=tuple(parts.get(f"{_MAP}/{i + 1}") for i in range(len(records))),
        clusters=clusters_of(parts),
        directions=put_together(parts, "directions"),
        length=meta["length"],
        key=meta["key"],
        cluster_names=cluster_names(meta),
        log=log,
        steps=steps,
        method=meta["method"],
        params=params,
    )


def clusters_of(parts: Mapping[str, Any]) -> Clusters:
    from viewfold.state.clusters import Clusters

    scatter, apart = parts.get("scatter"), parts.get("apart")
    return Clusters(parts["projection"], parts["centers"], scatter, apart)


def events_of(log: Table) -> Log:
    return tuple(Event(**{**row, "time": time_of(row["time"])}) for row in log.rows())


def view_record(row: dict[str, Any], parts: dict[str, Part]) -> ViewRecord:
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
        profile=put_together(parts, f"profile/{fold}"),
    )


def parts_of(arrays: Table) -> dict[str, Any]:
    """Return the arrays of a file by name."""
    return {row["name"]: _part(row) for row in arrays.rows()}


def _part(row: dict[str, Any]) -> Part:
    from viewfold.state.parts import Tag

    if row["shape"] is None:
        return Tag(row["type"], row["version"])
    # A bytearray, so that the array is one's own to write to.
    flat = np.frombuffer(bytearray(row["data"]), row["dtype"])
    return flat.reshape(row["shape"], order="F" if row["by_column"] else "C")


# -- digests: is what was read what was written? They find damage; they do not prove who wrote it.


def column_digests(columns: Mapping[str, Array]) -> dict[str, str]:
    """Return the digest of each column, by a name that says what the column is made of."""
    found = dict[str, str]()
    for name, values in columns.items():
        if not len(values):
            continue
        if values.dtype == object:
            texts = values.tolist()
            letters = "".join(texts).encode()
            plain = letters.isascii()
            sizes = [len(text) if plain else len(text.encode()) for text in texts]
            held: dict[str, Any] = {
                f"length of {name} int32": np.array(sizes, np.int32),
                name: letters,
            }
        else:
            row = f"{name}[{values.shape[1]}]" if values.ndim == 2 else name
            held = {f"{row} {values.dtype}": np.ascontiguousarray(values).reshape(-1)}
        found |= {part: hashlib.sha256(content).hexdigest() for part, content in held.items()}
    return found


def table_digest(table: Table) -> str:
    """Return the digest of a small table; its times are whole numbers, which have no zone."""
    whole = hashlib.sha256(json.dumps(table.column_names).encode())
    for row in table.rows():
        data = row.pop("data", None) or b""
        whole.update(json.dumps(row).encode())
        whole.update(data)
    return whole.hexdigest()


def meta_digest(meta: dict[str, Any]) -> str:
    """Return the digest of what the table ``meta`` says, the digests of all others included."""
    said = {key: value for key, value in meta.items() if key != "digest"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


_1970 = datetime(1970, 1, 1, tzinfo=UTC)


def time_of(microseconds: int) -> datetime:
    return _1970 + timedelta(microseconds=microseconds)


# -- tables in DuckDB. It hands rows of numbers out number by number, and makes them of columns of
# numbers, which it reads where NumPy has them.

BATCH_ROWS = 122_880  # read at once: as many as DuckDB keeps together

_LENGTH = re.compile(r"\w+\[(\d+)\]")


def small_table(
    db: duckdb.DuckDBPyConnection, table: str, types: Mapping[str, str], **instead: str
) -> Table:
    """Return columns of a small table; cells may be missing, times are microseconds since 1970."""
    chosen = [
        instead.get(name) or (f"epoch_us({_quoted(name)})" if kind == _TIME else _quoted(name))
        for name, kind in types.items()
    ]
    rows = db.execute(f"SELECT {', '.join(chosen)} FROM {table}").fetchall()
    return Table({name: [row[i] for row in rows] for i, name in enumerate(types)})


def read_rows(
    db: duckdb.DuckDBPyConnection, table: str, names: Sequence[str], n: int
) -> dict[str, Array]:
    """Return columns of a table of n rows, in their order and without missing cells."""
    chosen, columns = ", ".join(map(_quoted, names)), dict[str, Any]()
    for start in range(0, max(n, 1), BATCH_ROWS):
        some = f"rowid >= {start} AND rowid < {start + BATCH_ROWS}"
        found = table_of(db.sql(f"SELECT {chosen} FROM {table} WHERE {some}"))
        for name, rows in found.columns.items():
            if np.ma.is_masked(rows):
                raise UnreadableError(f"samples have no {name!r}")
            whole = columns.setdefault(name, np.empty((n, *rows.shape[1:]), rows.dtype))
            whole[start : start + len(rows)] = rows
    return columns


def table_of(relation: duckdb.DuckDBPyRelation) -> Table:
    """Return a table as NumPy has it; a column with missing cells is a masked array."""
    lengths = [_LENGTH.fullmatch(str(kind)) for kind in relation.types]
    widths = [None if length is None else int(length[1]) for length in lengths]
    chosen = []
    for i, (name, width) in enumerate(zip(relation.columns, widths, strict=True)):
        if width is None:
            chosen.append(f"{_quoted(name)} AS c{i}")
        chosen += [f"{_quoted(name)}[{j + 1}] AS c{i}_{j}" for j in range(width or 0)]
    found, columns = relation.project(", ".join(chosen)).fetchnumpy(), {}
    for i, (name, width) in enumerate(zip(relation.columns, widths, strict=True)):
        if width is None:
            columns[name] = found.pop(f"c{i}")
            continue
        parts = [found.pop(f"c{i}_{j}") for j in range(width)]
        gaps = any(map(np.ma.is_masked, parts))
        columns[name] = np.ma.column_stack(parts) if gaps else np.column_stack(parts)
    return Table(columns)


def put(db: duckdb.DuckDBPyConnection, name: str, table: Table) -> None:
    """Make a table in a database."""
    columns, chosen = dict[str, Any](), []
    for i, (column, held) in enumerate(table.columns.items()):
        kind = table.types.get(column)
        made = f"c{i}::{kind or SQL[held.dtype.name]}"
        if kind is not None:
            columns[f"c{i}"] = np.fromiter((_bound(cell, kind) for cell in held), object, len(held))
        elif held.ndim == 1:
            columns[f"c{i}"] = held
        else:
            parts = [f"c{i}_{j}" for j in range(held.shape[1])]
            columns |= {part: held[:, j] for j, part in enumerate(parts)}
            made = f"array_value({', '.join(parts)})::{SQL[held.dtype.name]}[{len(parts)}]"
        chosen.append(f"{made} AS {_quoted(column)}")
    db.register("incoming", columns)
    try:
        db.execute(f"CREATE TABLE {name} AS SELECT {', '.join(chosen)} FROM incoming")
    finally:
        db.unregister("incoming")


def _bound(cell: Any, kind: str) -> Any:
    """Return a cell as DuckDB takes it: numbers as texts, as NaN would get lost."""
    if cell is None or kind not in (_TIME, "DOUBLE", "DOUBLE[]"):
        return cell
    if kind == _TIME:
        return time_of(cell)
    return repr(float(cell)) if kind == "DOUBLE" else [repr(float(one)) for one in cell]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
