"""A ``.vfd`` folder: a state in buckets of Parquet, for engines that hold a few at once.

Files are never changed. A new generation is written beside the others, bucket by bucket and by
whoever has the bucket, and its manifest makes it the state of now; see `viewfold.store.folder`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from viewfold._util.replace import written
from viewfold._util.table import Table
from viewfold._util.types import Array
from viewfold.errors import DamagedFileError, StateFileError, UnreadableError
from viewfold.rows import BucketEngine, BucketRows, DiskEngine, Engine, RowSet, current_engine
from viewfold.rows.bucket_files import (
    Part,
    PartitionFiles,
    Stored,
    bucket_of,
    combine_partitions,
    filesystem,
    store,
    whole,
    write_buckets,
)
from viewfold.rows.buckets import check_rows
from viewfold.state.state import ROWS
from viewfold.store import Contents, Returns, Store, StrPath, check, lock
from viewfold.store.folder import (
    DRAFT,
    GENERATION,
    NAME,
    Bucket,
    Folder,
    Generation,
    Manifest,
    another_was_faster,
    clear,
    current_manifest,
    latest_manifest,
    manifest_numbers,
    new_folder,
    publish,
    read_manifest,
    understood,
)
from viewfold.store.tables import (
    CHANGED,
    COLUMNS,
    SAMPLES,
    SINGLE,
    SMALL,
    column_digests,
    no_samples,
    put,
    read_meta,
    samples_table,
    small_tables,
    to_state,
)

if TYPE_CHECKING:
    from viewfold.state.clusters import Clusters
    from viewfold.state.evidence import Directions
    from viewfold.state.state import State

T = TypeVar("T")
Kind = tuple[str, tuple[int, ...]]  # the type of the numbers in a row, and its shape

# What columns hold; those of rows are lists of one length of it.
TYPES: dict[str, list[pa.DataType]] = {
    name: [pa.string() if kind == "object" else pa.from_numpy_dtype(kind) for kind in kinds]
    for name, kinds in SAMPLES.items()
}


@dataclass
class FolderTurn:
    """The right to write a folder: the generation that was found, and the lock of this machine."""

    folder: Folder
    found: int
    turn: lock.Turn | None


class FolderStore(Store):
    """A path or address of a ``.vfd`` folder."""

    def __init__(self, path: StrPath) -> None:
        super().__init__(path)
        self.folder = Folder.at(path)

    def exists(self) -> bool:
        return bool(manifest_numbers(self.folder))

    def size(self) -> int:
        return sum(one.size for one in current_manifest(self.folder).states)

    def mark(self) -> tuple[int, ...]:
        return tuple(manifest_numbers(self.folder)[:1])

    def is_written(self) -> bool | None:
        return None if self.folder.remote else lock.is_held(self.folder.address)

    @contextmanager
    def reading(self) -> Iterator[FolderContents]:
        yield FolderContents(self.path, self.folder)

    @contextmanager
    def writing(self, wait: float = 60) -> Iterator[FolderTurn]:
        """Keep other writers of this machine away; elsewhere, the first one to finish wins."""
        folder = self.folder
        with contextlib.ExitStack() as stack:
            turn = None
            if folder.remote:
                stack.enter_context(lock.only_once(folder.address))
            else:
                turn = stack.enter_context(lock.writing(folder.address, wait))
            found = latest_manifest(folder)
            if not folder.remote:
                _check_ours(folder, found)
                clear(folder, found, alone=True)
            yield FolderTurn(folder, 0 if found is None else found.generation, turn)

    def write(self, turn: FolderTurn, state: State, returns: Returns) -> State:
        """Write a new generation.

        A state to return to that stays as it is needs no copy. If there is something that has to be
        gone, or nothing to return to, nothing is left of earlier generations.
        """
        folder = turn.folder
        if (manifest_numbers(folder) or [0])[0] != turn.found:
            raise another_was_faster(folder)
        number, made = turn.found + 1, list[str]()
        now = read_manifest(folder, turn.found).states if turn.found else ()
        n_buckets = now[0].n_buckets if now else None
        there = dict(zip(["main", *(one.folder for one in now[1:])], now, strict=False))
        try:
            folder.make()
            first, state = _put(folder, number, state, made, n_buckets)
            states = [first]

            def put_one(one: State | str) -> None:
                if isinstance(one, str):
                    states.append(there[one])
                else:
                    states.append(_put(folder, number, one, made, n_buckets)[0])

            returns.write(put_one)
            erases = returns.change is not None or not returns.states
            manifest = Manifest(number, returns.keep, tuple(states), erases)
            if turn.turn is not None:
                turn.turn.check()
            publish(folder, manifest)
        except BaseException:
            if _is_published(folder, number, made):  # Ctrl-C or a fault may come right after it was
                written.append(str(folder))
                raise
            for name in made:
                folder.remove(name)
            if not folder.remote:
                with contextlib.suppress(OSError):  # there are other things in it
                    os.rmdir(folder.address)
            raise
        written.append(str(folder))
        turn.found = number
        clear(folder, manifest, alone=turn.turn is not None)
        return state


class FolderContents(Contents):
    """A folder as it was opened; what was removed meanwhile is read of the state of now instead."""

    def __init__(self, path: StrPath, folder: Folder) -> None:
        self.path, self.folder = path, folder
        self._take(current_manifest(folder))

    def close(self) -> None:
        """Nothing is open between two questions."""

    def _take(self, manifest: Manifest) -> None:
        self.manifest, self.keep = manifest, manifest.keep
        self.schemas = tuple(one.folder for one in manifest.states[1:])
        self._tables: dict[tuple[str, str], pa.Table] = {}

    def _steadily(self, work: Callable[[], T]) -> T:
        """Return what is read; again, if another generation took the place of this one."""
        while True:
            try:
                return work()
            except DamagedFileError:
                if manifest_numbers(self.folder)[:1] == [self.manifest.generation]:
                    raise
                self._take(current_manifest(self.folder))

    def _state(self, schema: str) -> Generation:
        for one in self.manifest.states:
            if schema in ("main", one.folder):
                return one
        raise StateFileError(f"{self.folder.name} does not hold the state {schema} any more.")

    def size_of(self, schema: str) -> int:
        return self._state(schema).size

    def _table(self, one: Generation, name: str) -> pa.Table:
        """Return a small table, if its bytes are those that were written; each is read once."""
        if (one.folder, name) not in self._tables:
            file = f"{one.folder}/{name}.parquet"
            with understood(self.folder, file):
                data = self.folder.read(file)
                if hashlib.sha256(data).hexdigest() != one.tables[name]["sha256"]:
                    raise UnreadableError(CHANGED)
                self._tables[one.folder, name] = parquet.read_table(pa.BufferReader(data))
        return self._tables[one.folder, name]

    def _meta(self, one: Generation) -> dict[str, Any]:
        held = self._table(one, "meta")
        with understood(self.folder, f"{one.folder}/meta.parquet"):
            table = Table.of_arrow(held)
            for text in table["value"]:
                check.check_json(text)
            return read_meta(table)

    @contextmanager
    def query(
        self, columns: Sequence[str], small: Sequence[str], schema: str = "main"
    ) -> Iterator[tuple[duckdb.DuckDBPyConnection, dict[str, Any]]]:
        one, meta, tables = self._steadily(lambda: self._checked(columns, small, schema))
        with duckdb.connect(":memory:") as db:
            with understood(self.folder, one.folder):
                for name, table in tables.items():
                    db.register(name, table)
                self._register(db, one, ordered=meta.get("length") is not None)
                db.execute("SET enable_external_access = false")
            with understood(self.folder, one.folder, (duckdb.Error,)):
                yield db, meta

    def _checked(
        self, columns: Sequence[str], small: Sequence[str], schema: str
    ) -> tuple[Generation, dict[str, Any], dict[str, pa.Table]]:
        """Compare columns and tables with their digests."""
        one = self._state(schema)
        # What is asked about samples may be about all that is known of them.
        tables = {name: self._table(one, name) for name in (SMALL if columns else small)}
        meta = self._meta(one)
        for bucket in one.samples if columns else ():
            file = f"{one.folder}/{bucket.file}"
            with understood(self.folder, file):
                found = column_digests(columns_of(self.folder, file, bucket, columns))
                if not found.items() <= bucket.digests.items():
                    raise UnreadableError(CHANGED)
        return one, meta, tables

    def _register(self, db: duckdb.DuckDBPyConnection, one: Generation, *, ordered: bool) -> None:
        """Let a database see the samples of a state as the table ``samples``."""
        if not one.samples:
            put(db, "samples", no_samples())
            return
        from pyarrow import dataset

        files, fs = [f"{self.folder.address}/{one.folder}/{b.file}" for b in one.samples], None
        if self.folder.remote:
            fs = filesystem(files[0])[0]
            files = [filesystem(file)[1] for file in files]
        db.register("in_buckets", dataset.dataset(files, format="parquet", filesystem=fs))
        # Samples that are known by row number come in that order, wherever they are.
        order = "ORDER BY id" if ordered else ""
        db.execute(f"CREATE TEMP VIEW samples AS FROM in_buckets {order}")

    def read(
        self, schema: str = "main", engine: Engine | None = None, *, unpack: bool = False
    ) -> State:
        return self._steadily(lambda: self._read(self._state(schema), engine, unpack))

    def _read(self, one: Generation, engine: Engine | None, unpack: bool) -> State:
        """Read and check a state; its rows stay in their buckets, or go where the engine is."""
        folder, meta = self.folder, self._meta(one)
        held = {name: self._table(one, name) for name in SMALL}
        with understood(folder, one.folder):
            small = {name: Table.of_arrow(table) for name, table in held.items()}
            if meta.get("n_samples", 0) != one.n_samples:
                raise UnreadableError(
                    f"it has {one.n_samples} samples and should have {meta.get('n_samples', 0)}"
                )
            bare = to_state(meta, small, {name: np.empty((0, 0)) for name in COLUMNS}, {})
        if not bare.views:
            return bare
        workers = engine_for(engine, one.n_buckets)
        if workers.n_buckets != one.n_buckets:
            raise StateFileError(
                f"{folder.name} has {one.n_buckets} buckets and the engine has "
                f"{workers.n_buckets}. Give it an engine with {one.n_buckets}, or write it anew: "
                f"viewfold convert {folder.name} other.vfd --buckets {workers.n_buckets}"
            )
        state = _with_rows(folder, one, bare, workers, unpack)
        with understood(folder, one.folder):
            check.check_state(state)
        in_memory = engine is not None and not isinstance(engine, BucketEngine)
        return state.gathered() if in_memory else state


# -- reading


def engine_for(
    engine: Engine | None, n_buckets: int | None, *, exactly: bool = False
) -> BucketEngine:
    """Return an engine with buckets (`exactly` so many): the given one, that of now, or a disk."""
    for one in (engine, current_engine()):
        fits = not exactly or n_buckets in (None, getattr(one, "n_buckets", None))
        if isinstance(one, BucketEngine) and fits:
            return one
    return DiskEngine() if n_buckets is None else DiskEngine(n_buckets)


def _with_rows(
    folder: Folder, one: Generation, bare: State, engine: BucketEngine, unpack: bool
) -> State:
    """Return a state with its rows: those in the files, each of which is checked by a worker."""
    room, owner = engine.room() if unpack else (None, None)
    small = replace(one, tables={}, samples=())  # workers need no more of it
    task = partial(check_bucket, folder, small, check.Expected.of(bare), room)
    found = engine.each(task, one.samples)
    kinds = found[0][0]
    for bucket, (mine, _) in zip(one.samples, found, strict=True):
        if mine != kinds:
            with understood(folder, f"{one.folder}/{bucket.file}"):
                raise UnreadableError("its columns are of other types than those of other buckets")
    rows = as_rows(folder, one.folder, one.samples, kinds, engine)
    if unpack:
        parts = list(rows["embedding"].parts)
        for bucket, (_, left) in zip(one.samples, found, strict=True):
            parts[bucket.bucket] = left
        rows["embedding"] = replace(rows["embedding"], parts=tuple(parts), owner=owner)
    return _with_columns(bare, rows)


def _with_columns(state: State, columns: Mapping[str, RowSet]) -> State:
    rows: dict[str, Any] = {COLUMNS[name]: held for name, held in columns.items()}
    return replace(state, **rows)


# -- writing


def _check_ours(folder: Folder, found: Manifest | None) -> None:
    """Refuse to write into a folder that is somebody else's."""
    known = re.compile(rf"{GENERATION.pattern}|{NAME.pattern}|.*{re.escape(DRAFT)}", re.DOTALL)
    strange = [name for name in folder.names() if not known.fullmatch(name)]
    if found is None and strange:
        raise StateFileError(
            f"{folder} holds other things ({strange[0]!r}). Choose another name for the state."
        )


def _is_published(folder: Folder, number: int, made: list[str]) -> bool:
    try:
        return read_manifest(folder, number).states[0].folder in made
    except (StateFileError, OSError):
        return False


def _put(
    folder: Folder, number: int, state: State, made: list[str], n_buckets: int | None
) -> tuple[Generation, State]:
    """Write the files of a state; return what they are, and the state with its rows in them."""
    name = new_folder(number)
    made.append(name)
    folder.make(name)
    of_rows = state.ids.engine if isinstance(state.ids, BucketRows) else None
    engine = engine_for(of_rows, n_buckets)
    state = state.placed(engine)
    buckets: list[Bucket] = []
    if state.clusters is not None:
        rows = tuple(getattr(state, mine) for mine in COLUMNS.values())
        items = [item for item in engine._items(rows) if item[1][0].n]
        buckets = engine.each(
            partial(write_bucket, folder, name, state.clusters, state.directions), items
        )
        check_rows([one.rows for one in buckets], [parts[0].n for _, parts in items])
    tables = {}
    for table, content in small_tables(state, {}).items():
        sink = pa.BufferOutputStream()
        parquet.write_table(content.to_arrow(), sink, compression="zstd")
        data = sink.getvalue().to_pybytes()
        folder.write(f"{name}/{table}.parquet", data)
        tables[table] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    folder.settle(name)
    if state.views:
        kinds = {
            column: (getattr(state, mine).held.name, getattr(state, mine).tail)
            for column, mine in COLUMNS.items()
        }
        state = _with_columns(state, as_rows(folder, name, buckets, kinds, engine))
    return Generation(name, engine.n_buckets, tables, tuple(buckets)), state


def in_buckets_of(state: State, engine: BucketEngine) -> State:
    """Return a state whose rows are in the buckets of an engine."""
    if not state.views:
        return state
    if not isinstance(state.ids, BucketRows):
        return state.placed(engine)
    before: BucketEngine = state.ids.engine
    if before.n_buckets == engine.n_buckets:
        return state
    path, owner = engine.room()
    items = before._items(tuple(getattr(state, name) for name in ROWS))
    divided = before.each(partial(divide_bucket, path, engine.n_buckets), items)
    rows = [replace(one, cells=False) for one in combine_partitions(divided, engine, owner=owner)]
    check_rows([one.n for one in rows], [state.n_samples] * len(rows))
    named: dict[str, Any] = dict(zip(ROWS, rows, strict=True))
    return replace(state, **named)


# -- one bucket: tasks for the workers of an engine, and what their rows are made of


def write_bucket(
    folder: Folder,
    generation: str,
    clusters: Clusters,
    directions: Directions | None,
    item: tuple[int, tuple[Part, ...]],
) -> Bucket:
    number, parts = item
    rows = {name: whole(part.open()) for name, part in zip(COLUMNS, parts, strict=True)}
    table = samples_table(clusters, directions, rows)
    data = packed(table.to_arrow())
    made = Bucket(number, len(table), data.size, column_digests(table.columns))
    folder.write(f"{generation}/{made.file}", memoryview(data))
    return made


def check_bucket(
    folder: Folder, one: Generation, expected: check.Expected, room: str | None, bucket: Bucket
) -> tuple[dict[str, Kind], Stored | None]:
    """Read a bucket, check all of it, and say what its columns are.

    With `room`, its part of the embedding is left there as plain bytes: unpacking a list of numbers
    takes several times as long as reading it, and a fold reads the embedding several times.
    """
    file = f"{one.folder}/{bucket.file}"
    with understood(folder, file):
        every = columns_of(folder, file, bucket, list(TYPES))
        if column_digests(every) != bucket.digests:
            raise UnreadableError(CHANGED)
        for problem in check.row_problems(expected, every):
            raise UnreadableError(problem)
        if np.any(bucket_of(every["id"], one.n_buckets) != bucket.bucket):
            raise UnreadableError(f"it has samples of other buckets than {bucket.bucket}")
    left = None if room is None else store(f"{room}/{bucket.bucket}", every["embedding"])
    return {name: (every[name].dtype.name, every[name].shape[1:]) for name in COLUMNS}, left


def divide_bucket(path: str, n_buckets: int, item: tuple[int, tuple[Part, ...]]) -> PartitionFiles:
    """Put the samples of a bucket into others, of which there is another number."""
    number, parts = item
    ids, *rows = (whole(part.open()) for part in parts)
    return write_buckets(f"{path}/{number}", n_buckets, ids, *rows)


@dataclass(frozen=True)
class Column:
    """What a column holds of one bucket: rows that are read when they are needed."""

    folder: Folder
    file: str
    bucket: Bucket
    name: str

    @property
    def n(self) -> int:
        return self.bucket.rows

    def open(self) -> Array:
        with understood(self.folder, self.file):
            return columns_of(self.folder, self.file, self.bucket, [self.name])[self.name]


def as_rows(
    folder: Folder,
    generation: str,
    buckets: Sequence[Bucket],
    kinds: Mapping[str, Kind],
    engine: Any,
) -> dict[str, BucketRows]:
    """Return all columns that a state is made of, by their names in the file."""
    made = {}
    for name, (kind, tail) in kinds.items():
        held = np.dtype(kind)
        nothing = Stored("", "text" if held.kind == "O" else "dense", held.name, tail, 0, 0)
        parts: list[Part] = [nothing] * engine.n_buckets
        for one in buckets:
            parts[one.bucket] = Column(folder, f"{generation}/{one.file}", one, name)
        many = sum(one.rows for one in buckets) * int(np.prod(tail, dtype=np.int64))
        made[name] = BucketRows(tuple(parts), held, tuple(tail), engine, stored=many)
    return made


def packed(table: pa.Table) -> pa.Buffer:
    """Return a table as Parquet: a kind of compression that costs next to nothing to undo."""
    sink = pa.BufferOutputStream()
    small = [name for name in table.column_names if name in SINGLE]
    parquet.write_table(
        table, sink, compression="lz4", use_dictionary=False, write_statistics=small
    )
    return sink.getvalue()


def columns_of(folder: Folder, file: str, bucket: Bucket, names: Sequence[str]) -> dict[str, Array]:
    """Read some columns of a file of samples, if it has the rows that it should have."""
    with folder.open(file) as source:
        opened = parquet.ParquetFile(source, pre_buffer=False)
        n = opened.metadata.num_rows
        if n == bucket.rows:
            for name in names:
                _check_type(opened.schema_arrow, name)
            table = opened.read(columns=list(names), use_threads=False)
            table.validate(full=True)  # compiled code trusts offsets, and damage may give any
            n = len(table)
    if n != bucket.rows:
        raise UnreadableError(f"it has {n} rows and should have {bucket.rows}")
    return {name: as_array(table, name) for name in table.column_names}


def _check_type(schema: pa.Schema, name: str) -> None:
    if name not in schema.names:
        raise UnreadableError(f"it has no column {name!r}")
    kind = schema.field(name).type
    if name not in SINGLE and pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
    if kind not in TYPES[name]:
        raise UnreadableError(f"its column {name!r} does not have the documented type")


def as_array(table: pa.Table, name: str) -> Array:
    column = table[name].combine_chunks()
    width: tuple[int, ...] = ()
    if pa.types.is_fixed_size_list(column.type):
        width, column = (column.type.list_size,), column.flatten()
    if column.null_count:
        raise UnreadableError(f"samples have no {name!r}")
    found: Array = column.to_numpy(zero_copy_only=False).reshape(-1, *width)
    return found
