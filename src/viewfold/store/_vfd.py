"""Write and read a ``.vfd`` folder: a state in buckets, for engines that hold a few at once.

Files are never changed. A new generation is written beside the others, bucket by bucket and by
whoever has the bucket, and its manifest makes it the state of now; see `viewfold.store._manifest`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from viewfold.errors import BusyError, StateFileError, UnreadableError
from viewfold.store import _check, _lock, _manifest
from viewfold.store._catalogue import check_json
from viewfold.store._folder import Folder, reading
from viewfold.store._kept import Held, Kept
from viewfold.store._manifest import TABLES, Bucket, Generation, Manifest
from viewfold.store.tables import (
    COLUMNS,
    events_of,
    no_samples,
    of_columns,
    read_meta,
    small_tables,
)

if TYPE_CHECKING:
    from viewfold.core.log import Log
    from viewfold.core.state import State
    from viewfold.engine import BucketEngine, Engine, RowSet
    from viewfold.store._file import Change

StrPath = str | os.PathLike[str]

_begun: dict[tuple[str, int], tuple[int, _lock.Turn | None]] = {}
"""For each folder and thread that writes: the generation that it found, and its turn."""


def exists(path: StrPath) -> bool:
    """Tell whether there is a state in such a folder."""
    return bool(_manifest.numbers(Folder.at(path)))


def size(path: StrPath) -> int:
    """Return how many bytes all its states take."""
    return sum(one.size for one in _manifest.current(Folder.at(path)).states)


@contextmanager
def writing(path: StrPath, wait: float = 60) -> Iterator[None]:
    """Keep other writers of this machine away; elsewhere, the first one to finish wins."""
    folder = Folder.at(path)
    me = folder.address, threading.get_ident()
    if me in _begun:
        raise BusyError(
            f"{folder.name} is being edited by this very program: the block that does must end "
            "before it can be written otherwise."
        )
    alone = contextlib.nullcontext() if folder.remote else _lock.writing(folder.address, wait)
    with alone as turn:
        found = _manifest.latest(folder)
        if not folder.remote:
            _check_ours(folder, found)
            _manifest.clear(folder, found, alone=True)
        _begun[me] = 0 if found is None else found.generation, turn
        try:
            yield
        finally:
            _begun.pop(me, None)


def _check_ours(folder: Folder, found: Manifest | None) -> None:
    """Refuse to write into a folder that is somebody else's."""
    known = (_manifest.GENERATION, _manifest.NAME)
    strange = [name for name in folder.names() if not any(one.fullmatch(name) for one in known)]
    if found is None and any(not name.endswith(".draft") for name in strange):
        raise StateFileError(
            f"{folder} holds other things ({strange[0]!r}). Choose another name for the state."
        )


# -- writing


def write(
    path: StrPath,
    state: State,
    *,
    kept: Sequence[State | str] = (),
    change: Change | None = None,
    keep: int = 1,
) -> State:
    """Write a folder, or a new generation of one; see `viewfold.store._file.write`.

    A state to return to that stays as it is needs no copy. If there is something that has to be
    gone (`change`), or nothing to return to, nothing is left of earlier generations.
    """
    folder = Folder.at(path)
    me = folder.address, threading.get_ident()
    if me not in _begun:
        with writing(path):
            return write(path, state, kept=kept, change=change, keep=keep)
    found, turn = _begun[me]
    if (_manifest.numbers(folder) or [0])[0] != found:
        raise BusyError(_manifest.changed(folder))
    number, made = found + 1, list[str]()
    now = None if not found else _manifest.read(folder, found)
    try:
        folder.make()
        first, state = _put(folder, number, state, made)
        earlier = _put_kept(folder, number, kept[:keep], change, now, made)
        erases = change is not None or not kept
        manifest = Manifest(number, keep, (first, *earlier), erases)
        if turn is not None:
            turn.check()
        _manifest.publish(folder, manifest)
    except BaseException:
        for name in made:
            folder.remove(name)
        if not found and not folder.remote:
            with contextlib.suppress(OSError):
                os.rmdir(folder.address)
        raise
    _begun[me] = number, turn
    _manifest.clear(folder, manifest, alone=turn is not None)
    return state


def _put(folder: Folder, number: int, state: State, made: list[str]) -> tuple[Generation, State]:
    """Write the files of a state; return what they are, and the state with its rows in them."""
    from viewfold.store._bucket import WriteBucket, as_rows

    name = _manifest.new_folder(number)
    made.append(name)
    folder.make(name)
    engine = engine_for(state)
    state = state.placed(engine)
    buckets: list[Bucket] = []
    if state.views:
        assert state.clusters is not None
        rows = tuple(getattr(state, mine) for mine in COLUMNS.values())
        task = WriteBucket(folder, name, state.clusters)
        items = [item for item in engine._items(rows) if item[1][0].n]
        buckets = engine.each(task, items)
        assert [one.rows for one in buckets] == [parts[0].n for _, parts in items], "rows were lost"
    tables = {}
    for table, content in small_tables(state, {}).items():
        sink = pa.BufferOutputStream()
        parquet.write_table(content, sink, compression="zstd")
        data = sink.getvalue().to_pybytes()
        folder.write(f"{name}/{table}.parquet", data)
        tables[table] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    if not folder.remote:
        folder.settle(name)
    if state.views:
        kinds = {
            column: (getattr(state, mine).held.name, getattr(state, mine).tail)
            for column, mine in COLUMNS.items()
        }
        state = _holding(state, as_rows(folder, name, buckets, kinds, engine))
    return Generation(name, engine.n_buckets, tables, tuple(buckets)), state


def _put_kept(
    folder: Folder,
    number: int,
    kept: Sequence[State | str],
    change: Change | None,
    now: Manifest | None,
    made: list[str],
) -> list[Generation]:
    """Return the states to return to; those that have to be changed are written anew."""
    there = {} if now is None else {one.folder: one for one in now.states}
    if now is not None:
        there["main"] = now.states[0]
    found = []
    for one in kept:
        if isinstance(one, str) and change is None:
            found.append(there[one])
            continue
        if isinstance(one, str):
            assert change is not None
            try:
                state = change(_get(folder, there[one]))
            except StateFileError as error:
                warnings.warn(
                    f"A part of the folder that undo returns to is damaged and was left out: "
                    f"{error}",
                    stacklevel=5,
                )
                continue
        else:
            state = one
        if state is not None:
            found.append(_put(folder, number, state, made)[0])
    return found


def engine_for(
    state: State | None = None, engine: Engine | None = None, n_buckets: int | None = None
) -> BucketEngine:
    """Return an engine with buckets: that of the rows, the given one, that of now, or a disk."""
    from viewfold.engine import BucketEngine, BucketRows, DiskEngine, current_engine

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
                return _get(folder, one, engine, unpack=unpack)
        return None

    return _manifest.steady(folder, found)


def kept_in(path: StrPath) -> tuple[int, tuple[str, ...]]:
    """Return how many states a folder may keep to return to, and the names of those it has."""
    if not exists(path):
        return 1, ()
    manifest = _manifest.current(Folder.at(path))
    return manifest.keep, tuple(one.folder for one in manifest.states[1:])


def _get(
    folder: Folder, one: Generation, engine: Engine | None = None, *, unpack: bool = False
) -> State:
    from viewfold.engine import BucketEngine

    small = {name: _table(folder, one, name) for name in TABLES}
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
    from viewfold.store._bucket import CheckBucket, as_rows

    room, owner = engine.room() if unpack else (None, None)
    task = CheckBucket(folder, one.folder, one.n_buckets, _check.Expected.of(bare), room)
    found = engine.each(task, list(one.samples))
    kinds = found[0][0]
    for bucket, (mine, _) in zip(one.samples, found, strict=True):
        if mine != kinds:
            with reading(folder, f"{one.folder}/{bucket.file}"):
                raise UnreadableError("its columns are of other types than those of other buckets")
    rows = as_rows(folder, one.folder, one.samples, kinds, engine)
    if unpack:
        parts = list(rows["embedding"].parts)
        for bucket, (_, left) in zip(one.samples, found, strict=True):
            parts[bucket.bucket] = left
        rows["embedding"] = replace(rows["embedding"], parts=tuple(parts), owner=owner)
    return _holding(bare, rows)


def _holding(state: State, columns: dict[str, RowSet]) -> State:
    """Return a state with other rows."""
    rows: dict[str, Any] = {COLUMNS[name]: held for name, held in columns.items()}
    return replace(state, **rows)


def _table(folder: Folder, one: Generation, name: str) -> pa.Table:
    """Read a small table, if its bytes are those that were written."""
    file = f"{one.folder}/{name}.parquet"
    with reading(folder, file):
        data = folder.read(file)
        if hashlib.sha256(data).hexdigest() != one.tables[name]["sha256"]:
            raise UnreadableError("its content was damaged, or changed by another program")
        return parquet.read_table(pa.BufferReader(data))


def _meta(table: pa.Table) -> dict[str, Any]:
    for text in table["value"].to_pylist():
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
    from viewfold.store._bucket import check_digests, columns_of

    one = now.states[0]
    tables = {name: _table(folder, one, name) for name in TABLES}
    with reading(folder, f"{one.folder}/meta.parquet"):
        meta = _meta(tables["meta"])
    for bucket in one.samples if columns else ():
        file = f"{one.folder}/{bucket.file}"
        with reading(folder, file):
            check_digests(columns_of(folder, file, bucket, columns), bucket)
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
        db.register("samples", no_samples())
        return
    from pyarrow import dataset

    from viewfold.engine._plain import filesystem

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
    return events_of(_table(folder, one, "log"))


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
    from viewfold.engine._bucketed import bucket_of

    folder, found = Folder.at(path), dict[str, list[Any]]()
    for one in _manifest.current(folder).states:
        places = set(bucket_of(np.array(list(ids), object), one.n_buckets).tolist())
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
