"""Read a ``.vfd`` folder: a state whose samples stay in their buckets, or answers to questions."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from viewfold._util.table import Table
from viewfold.errors import StateFileError, UnreadableError
from viewfold.store import _check
from viewfold.store import manifest as _manifest
from viewfold.store._catalogue import check_json
from viewfold.store._samples import no_samples
from viewfold.store._sql import put
from viewfold.store.folder import Folder, reading
from viewfold.store.kept import Held, Kept
from viewfold.store.manifest import TABLES, Bucket, Generation, Manifest
from viewfold.store.tables import CHANGED, COLUMNS, events_of, of_columns, read_meta

if TYPE_CHECKING:
    from viewfold.rows import BucketEngine, Engine, RowSet
    from viewfold.state.log import Log
    from viewfold.state.state import State

StrPath = str | os.PathLike[str]


def engine_for(
    state: State | None = None, engine: Engine | None = None, n_buckets: int | None = None
) -> BucketEngine:
    """Return an engine with buckets: that of the rows, the given one, that of now, or a disk."""
    from viewfold.rows import BucketEngine, BucketRows, DiskEngine, current_engine

    if state is not None and isinstance(state.ids, BucketRows):
        held: BucketEngine = state.ids.engine
        return held
    for one in (engine, current_engine()):
        if isinstance(one, BucketEngine):
            return one
    return DiskEngine() if n_buckets is None else DiskEngine(n_buckets)


# -- reading


def read(
    path: StrPath, schema: str = "main", engine: Engine | None = None, *, unpack: bool = False
) -> State | None:
    """Read and check a state; see `viewfold.store._file.read`.

    Its rows stay in their buckets, unless the engine is one that has them in memory. With `unpack`,
    the embedding is where it can be read quickly, again and again.
    """
    folder = Folder.at(path)

    def found(manifest: Manifest) -> State | None:
        for i, one in enumerate(manifest.states):
            if schema == one.folder or (schema == "main" and not i):
                return get_state(folder, one, engine, unpack=unpack)
        return None

    return _manifest.steady(folder, found)


def get_state(
    folder: Folder, one: Generation, engine: Engine | None = None, *, unpack: bool = False
) -> State:
    from viewfold.rows import BucketEngine

    small = {name: _small(folder, one, name) for name in TABLES}
    with reading(folder, f"{one.folder}/meta.parquet"):
        meta = _meta(small["meta"])
        if meta.get("n_samples", 0) != one.n_samples:
            raise UnreadableError(
                f"it has {one.n_samples} samples and should have {meta.get('n_samples', 0)}"
            )
        views, log, steps = small["views"], small["log"], small["steps"]
        _check.check_views(views, empty="n_samples" not in meta)
        _check.check_steps(steps)
        bare = of_columns(meta, views, small["arrays"], _bare(one), {}, log, steps)
    if not bare.views:
        return bare
    workers = engine_for(None, engine, one.n_buckets)
    if workers.n_buckets != one.n_buckets:
        raise StateFileError(
            f"{folder.name} has {one.n_buckets} buckets and the engine has {workers.n_buckets}. "
            f"Give it an engine with {one.n_buckets}, or write it anew: viewfold convert "
            f"{folder.name} other.vfd --buckets {workers.n_buckets}"
        )
    state = _with_rows(folder, one, bare, workers, unpack)
    with reading(folder, one.folder):
        _check.check_state(state)
    in_memory = engine is not None and not isinstance(engine, BucketEngine)
    return state.gathered() if in_memory else state


def _bare(one: Generation) -> dict[str, Any]:
    """Return columns without rows."""
    if not one.samples:
        return {}
    return {name: np.empty((0, 0)) for name in COLUMNS}


def _with_rows(
    folder: Folder, one: Generation, bare: State, engine: BucketEngine, unpack: bool
) -> State:
    """Return a state with its rows: those in the files, each of which is checked by a worker."""
    from viewfold.store._bucket import CheckBucket, as_rows, refuse_doubles
    from viewfold.store._convert import dealt_anew

    room, owner = engine.room() if unpack else (None, None)
    task = CheckBucket(folder, one.folder, one.n_buckets, _check.Expected.of(bare), room)
    found = engine.each(task, list(one.samples))
    kinds = found[0][0]
    for bucket, (mine, *_) in zip(one.samples, found, strict=True):
        if mine != kinds:
            with reading(folder, f"{one.folder}/{bucket.file}"):
                raise UnreadableError("its columns are of other types than those of other buckets")
    rows = as_rows(folder, one.folder, one.samples, kinds, engine)
    if unpack:
        parts = list(rows["embedding"].parts)
        for bucket, (_, left, _) in zip(one.samples, found, strict=True):
            parts[bucket.bucket] = left
        rows["embedding"] = replace(rows["embedding"], parts=tuple(parts), owner=owner)
    state = holding(bare, rows)
    if any(elsewhere for *_, elsewhere in found):
        state = dealt_anew(state, engine)
        with reading(folder, one.folder):
            engine.each(refuse_doubles, engine._items((state.ids,)))
    return state


def holding(state: State, columns: dict[str, RowSet]) -> State:
    """Return a state with other rows."""
    rows: dict[str, Any] = {COLUMNS[name]: held for name, held in columns.items()}
    return replace(state, **rows)


def _table(folder: Folder, one: Generation, name: str) -> pa.Table:
    """Read a small table, if its bytes are those that were written."""
    file = f"{one.folder}/{name}.parquet"
    with reading(folder, file):
        data = folder.read(file)
        if hashlib.sha256(data).hexdigest() != one.tables[name]["sha256"]:
            raise UnreadableError(CHANGED)
        return parquet.read_table(pa.BufferReader(data))


def _small(folder: Folder, one: Generation, name: str) -> Table:
    """Return a small table as a state is made of."""
    held = _table(folder, one, name)
    with reading(folder, f"{one.folder}/{name}.parquet"):
        return Table.of_arrow(held)


def _meta(table: Table) -> dict[str, Any]:
    for text in table["value"]:
        check_json(text)
    return read_meta(table)


# -- questions


@contextmanager
def asked(
    path: StrPath, columns: Sequence[str], small: Sequence[str]
) -> Iterator[tuple[duckdb.DuckDBPyConnection, dict[str, Any]]]:
    """Open a folder for questions; see `viewfold.store.queries.opened`."""
    folder = Folder.at(path)
    meta, tables, one = _manifest.steady(folder, lambda now: _checked(folder, now, columns))
    with duckdb.connect(":memory:") as db, reading(folder, one.folder):
        for name, table in tables.items():
            db.register(name, table)
        _register(db, folder, one, ordered=meta.get("length") is not None)
        db.execute("SET enable_external_access = false")
        yield db, meta


def _checked(
    folder: Folder, now: Manifest, columns: Sequence[str]
) -> tuple[dict[str, Any], dict[str, pa.Table], Generation]:
    from viewfold.store._bucket import as_array, check_digests, columns_of

    one = now.states[0]
    tables = {name: _table(folder, one, name) for name in TABLES}
    with reading(folder, f"{one.folder}/meta.parquet"):
        meta = _meta(Table.of_arrow(tables["meta"]))
    for bucket in one.samples if columns else ():
        file = f"{one.folder}/{bucket.file}"
        with reading(folder, file):
            table = columns_of(folder, file, bucket, columns)
            check_digests({name: as_array(table, name) for name in table.column_names}, bucket)
    return meta, tables, one


def _register(
    db: duckdb.DuckDBPyConnection,
    folder: Folder,
    one: Generation,
    *,
    ordered: bool = False,
    buckets: Sequence[Bucket] | None = None,
) -> None:
    """Let a database see the samples of a state, or of some buckets, as the table ``samples``."""
    chosen = one.samples if buckets is None else buckets
    if not chosen:
        put(db, "samples", no_samples())
        return
    from pyarrow import dataset

    from viewfold.rows.bucket_files import filesystem

    files = [f"{folder.address}/{one.folder}/{bucket.file}" for bucket in chosen]
    fs = None
    if folder.remote:
        fs = filesystem(files[0])[0]
        files = [filesystem(file)[1] for file in files]
    db.register("in_buckets", dataset.dataset(files, format="parquet", filesystem=fs))
    # Samples that are known by row number come in that order, wherever they are.
    order = "ORDER BY id" if ordered else ""
    db.execute(f"CREATE TEMP VIEW samples AS FROM in_buckets {order}")


# -- states to return to


def held(path: StrPath) -> Held:
    """Return what a folder holds to return to."""
    folder = Folder.at(path)

    def found(now: Manifest) -> Held:
        log = _log_of(folder, now.states[0])
        return Held(log, now.keep, tuple(_kept(folder, one) for one in now.states[1:]))

    return _manifest.steady(folder, found)


def _log_of(folder: Folder, one: Generation) -> Log:
    return events_of(_small(folder, one, "log"))


def _kept(folder: Folder, one: Generation) -> Kept:
    try:
        return Kept(one.folder, _log_of(folder, one))
    except StateFileError as error:
        return Kept(one.folder, wrong=str(error))


def listed(path: StrPath) -> list[dict[str, Any]]:
    """Return what there is to say about the states that a folder can be returned to."""
    folder = Folder.at(path)
    sizes = {one.folder: one.size for one in _manifest.current(folder).states}
    return [{**state.facts(), "bytes": sizes.get(state.schema, 0)} for state in held(path).states]


def known_to(path: StrPath, ids: Sequence[str]) -> dict[str, list[Any]]:
    """Return samples of any state of a folder, by how their ids are written.

    Only the buckets that they fall into are read; a state that is damaged is passed over.
    """
    from viewfold.rows.bucket_files import bucket_of, former_bucket_of

    folder, found = Folder.at(path), dict[str, list[Any]]()
    for one in _manifest.current(folder).states:
        texts = np.array(list(ids), object)
        places = {
            *bucket_of(texts, one.n_buckets).tolist(),
            *former_bucket_of(texts, one.n_buckets).tolist(),
        }
        chosen = [bucket for bucket in one.samples if bucket.bucket in places]
        if not chosen:
            continue
        try:
            with duckdb.connect(":memory:") as db, reading(folder, one.folder):
                _register(db, folder, one, buckets=chosen)
                rows = db.execute(
                    "SELECT id::VARCHAR, id FROM samples WHERE id::VARCHAR IN (SELECT unnest($1))",
                    [list(ids)],
                ).fetchall()
        except StateFileError:
            continue
        for text, value in rows:
            found.setdefault(text, []).append(value)
    return found
