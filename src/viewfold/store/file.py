"""A ``.vf`` file: a DuckDB database of all a model has learned, no row of a view.

A file is never changed in place. A new one is written beside it and takes its place in one step, so
that readers see the state before or after, are never kept waiting, and a crash leaves no trace.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from viewfold._util.replace import replacing
from viewfold._util.table import Table
from viewfold.errors import (
    FULL,
    NO_LOCKS,
    BusyError,
    DamagedFileError,
    NoSpaceError,
    StateFileError,
    UnreadableError,
    ViewfoldError,
    without_locks,
)
from viewfold.store import Contents, Returns, Store, StrPath, check
from viewfold.store.lock import Identity, Turn, identity, is_held, writing
from viewfold.store.tables import (
    CHANGED,
    FORMAT,
    NOT_OURS,
    SAMPLES,
    SINGLE,
    SMALL,
    SQL,
    column_digests,
    put,
    read_meta,
    read_rows,
    small_table,
    table_digest,
    to_state,
    to_tables,
)

if TYPE_CHECKING:
    from viewfold.rows import Engine
    from viewfold.state.state import State

STORAGE = "v1.2.0"  # every DuckDB from this one on can open the files
MEMORY = 512 * 2**20, 8  # bytes DuckDB may take to read a file, and for each byte of it
UNPACKED = 256 * 2**20, 100  # the same for what its tables take in memory
LARGEST_META = 2**20  # bytes that the table ``meta`` may have
SECONDS = 60.0, 2e-7  # that reading may take, and for each byte of the file
THREADS = 2  # of DuckDB; more bring nothing for one table after the other
CONFIG: Any = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "pandas_analyze_sample": 2**31,  # all cells of a column tell what it is, not some
    "threads": THREADS,
}

# Whatever a file says, nothing else is read, written or set from here on: but for the folder, not
# there yet, in which the file may be written anew.
LOCK_DOWN = "SET enable_external_access = false; SET lock_configuration = true"

# What DuckDB leaves beside a file that was not closed, and would read along with it.
BESIDE = (".wal", ".wal.checkpoint", ".wal.recovery")

# The schemas of states to return to, the latest first.
KEPT = ("undo", *(f"undo{place}" for place in range(2, check.MOST_KEPT + 1)))

# SQL views that files bring along for their users. They are never executed here.
OWN_VIEWS = frozenset({"labels_history"})

# The tables of a file: columns, and patterns of their types; what admits the empty text may lack.
TABLES: dict[str, dict[str, str]] = {
    **{
        name: {column: re.escape(kind) for column, kind in columns.items()}
        for name, columns in SMALL.items()
    },
    "samples": {
        name: f"({'|'.join(map(SQL.__getitem__, kinds))})" + r"\[\d+\]" * (name not in SINGLE)
        for name, kinds in SAMPLES.items()
    }
    | {"id_is_int": "BOOLEAN|"},
}

# Who came by which entry of the log, and who moved; a sample that came by an extend is in the
# column of the step before.
HISTORY = """
SELECT id, entry, what, view, time,
       CASE WHEN entry > added THEN history[step - 1] END AS previous, history[step] AS label
FROM (SELECT l.*, s.step, s.entry AS written
      FROM {0}.log l ASOF JOIN {0}.steps s ON l.entry >= s.entry)
JOIN {0}.samples ON entry >= added
WHERE entry = added OR (entry = written AND history[step] <> history[step - 1])
"""


class FileStore(Store):
    """A path of a ``.vf`` file."""

    def exists(self) -> bool:
        return os.path.exists(self.path)

    def size(self) -> int:
        return os.stat(self.path).st_size

    def mark(self) -> Identity:
        return identity(self.path)

    def is_written(self) -> bool | None:
        return is_held(self.path)

    @contextmanager
    def reading(self) -> Iterator[FileContents]:
        with contextlib.ExitStack() as stack:
            db, workshop = stack.enter_context(connected(self.path))
            yield FileContents(self.path, db, workshop, stack.close)

    def writing(self, wait: float = 60) -> contextlib.AbstractContextManager[Turn]:
        return writing(self.path, wait)

    def write(self, turn: Turn, state: State, returns: Returns) -> State:
        target, contents = turn.target, returns.contents
        # Tables take whole blocks, so that small files get small ones.
        small = state.embedding.size * state.embedding.dtype.itemsize < 2**23
        layout = f"STORAGE_VERSION '{STORAGE}', BLOCK_SIZE {2**14 if small else 2**18}"
        with understood(target, None):
            if contents is None and target.exists():
                check_is_ours(target)
            workshop = None if contents is None else contents.workshop
            try:
                with replacing(target, ready=turn.check, folder=workshop) as draft:
                    with making(draft, target, layout) as db:
                        _put(db, "main", state, keep=returns.keep)
                        if contents is None:
                            _put_kept(db, returns)
                        db.execute("CHECKPOINT new")
                    if contents is not None:
                        _attach(contents.db, draft, "new")
                        _put_kept(contents.db, returns)
                        contents.db.execute("CHECKPOINT new; DETACH new")
                        contents.close()  # Windows replaces no file that is open
            except FileNotFoundError:
                turn.check()  # another writer that should not be there may have cleared the folder
                raise
            turn.note_written()
        return state


class FileContents(Contents):
    """A ``.vf`` file that is open as the database ``old``, after a look at its catalogue."""

    def __init__(
        self,
        path: StrPath,
        db: duckdb.DuckDBPyConnection,
        workshop: Path,
        close: Callable[[], None],
    ) -> None:
        self.path, self.db, self.workshop = path, db, workshop
        self._close = close
        self._size = os.stat(path).st_size
        with self.understood():
            self.columns, meta = read_catalogue(db)
            self.keep = meta.get("keep", 1)
            check.check_keep(self.keep)
        here = {schema for schema, _ in self.columns}
        self.schemas = tuple(schema for schema in KEPT if schema in here)

    def close(self) -> None:
        self._close()

    @contextmanager
    def understood(self, *possible: type[Exception]) -> Iterator[None]:
        """Whatever is raised while the file is read says what is wrong with it; stop in time."""
        late, done = threading.Event(), threading.Event()

        def watch() -> None:
            if done.wait(SECONDS[0] + SECONDS[1] * self._size):
                return
            late.set()
            # Again and again: an interrupt between two queries stops neither.
            while not done.wait(0.05):
                with contextlib.suppress(duckdb.Error):
                    self.db.interrupt()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            with understood(Path(self.path), late, possible or _POSSIBLE):
                yield
        finally:
            done.set()
            watcher.join()

    def read(
        self, schema: str = "main", engine: Engine | None = None, *, unpack: bool = False
    ) -> State:
        with self.understood():
            self.check_tables(schema)
            meta = read_meta(meta_table(self.db, schema))
            check.check_claims(self._table(schema, "arrays", data="octet_length(data)"))
            types, n_samples = self.columns[schema, "samples"] or {}, self._n_samples(schema)
            check.check_meta(meta, n_samples, types)
            small = {name: self._table(schema, name) for name in SMALL if name != "meta"}
            samples = read_rows(self.db, f"old.{schema}.samples", list(types), n_samples)
            state = to_state(meta, small, samples, column_digests(samples))
            check.check_state(state, samples)
        return state if engine is None else state.placed(engine)

    def _table(self, schema: str, name: str, **instead: str) -> Table:
        types = self.columns[schema, name] or {}
        return small_table(self.db, f"old.{schema}.{name}", types, **instead)

    def _n_samples(self, schema: str) -> int:
        found = self.db.execute(f"SELECT count(*) FROM old.{schema}.samples")
        return int(found.fetchall()[0][0])

    def check_tables(self, schema: str, sizes: Iterable[str] = tuple(TABLES)) -> None:
        """Refuse a state whose tables are not those of the format, or would take too much memory.

        A state to return to is checked when it is asked for: if only that is damaged, the state of
        now and the others can be used.
        """
        here = {t: found for (s, t), found in self.columns.items() if s == schema}
        if here.keys() != TABLES.keys():
            odd = sorted(here.keys() ^ TABLES.keys())
            raise UnreadableError(f"it does not have the tables of format {FORMAT} ({odd[0]!r})")
        for name, found in here.items():
            if not _fit(found, TABLES[name]):
                raise UnreadableError(f"its table {name!r} does not have the documented columns")
        check_sizes(self.db, schema, sizes, self._size)

    def size_of(self, schema: str) -> int:
        """Return what the blocks of the file take that hold a state."""
        every = " UNION ALL ".join(
            "SELECT unnest(list_append(additional_block_ids, block_id)) AS block "
            f"FROM pragma_storage_info('old.{schema}.{table}')"
            for table in TABLES
            if (schema, table) in self.columns
        )
        if not every:
            return 0
        with self.understood():
            found = self.db.execute(
                f"SELECT (SELECT count(DISTINCT block) FROM ({every}) WHERE block >= 0) "
                "* block_size FROM pragma_database_size() WHERE database_name = 'old'"
            )
            return int(found.fetchall()[0][0])

    @contextmanager
    def query(
        self, columns: Sequence[str], small: Sequence[str], schema: str = "main"
    ) -> Iterator[tuple[duckdb.DuckDBPyConnection, dict[str, Any]]]:
        with self.understood():
            self.check_tables(schema)
            meta = self._check(schema, columns, small)
            self.db.execute(f"USE old.{schema}")
        with self.understood(duckdb.Error):  # other errors are of the question
            yield self.db, meta

    def _check(self, schema: str, columns: Sequence[str], small: Sequence[str]) -> dict[str, Any]:
        """Compare tables with their digests; return what ``meta`` says."""
        meta = read_meta(meta_table(self.db, schema))
        for name in small:
            if meta["digests"][name] != table_digest(self._table(schema, name)):
                raise UnreadableError(CHANGED)
        if columns and "n_samples" in meta:
            more = ["id_is_int"] if "id" in columns and meta.get("ids") == "mixed" else []
            names, n = [*columns, *more], self._n_samples(schema)
            found = column_digests(read_rows(self.db, f"old.{schema}.samples", names, n))
            if not found or not found.items() <= meta["digests"]["samples"].items():
                raise UnreadableError(CHANGED)
        return meta


# -- writing


@contextmanager
def _filling(db: duckdb.DuckDBPyConnection, schema: str) -> Iterator[None]:
    """Make a schema, and the view of its tables, in one transaction.

    DuckDB writes its log to the disk once, not after every statement; nothing stays of a failure.
    """
    db.execute("BEGIN")
    try:
        db.execute(f"CREATE SCHEMA IF NOT EXISTS new.{schema}")
        yield
        db.execute(f"CREATE VIEW new.{schema}.labels_history AS {HISTORY.format(schema)}")
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(duckdb.Error):
            db.execute("ROLLBACK")
        raise


def _put(db: duckdb.DuckDBPyConnection, schema: str, state: State, **facts: int) -> None:
    tables = to_tables(state, **facts)
    with _filling(db, schema):
        for name, table in tables.items():
            put(db, f"new.{schema}.{name}", table)


def _put_kept(db: duckdb.DuckDBPyConnection, returns: Returns) -> None:
    """Write the states to return to, one after the other: one of them at a time is in memory."""
    names = list(reversed(KEPT))

    def put_one(one: State | str) -> None:
        if isinstance(one, str):
            _copy(returns.contents, one, names[-1])
        else:
            _put(db, names[-1], one)
        names.pop()  # it is filled

    returns.write(put_one)


def _copy(old: FileContents, source: str, schema: str) -> None:
    """Copy a state of the file to where it is in the new one, with its digests."""
    try:
        old.check_tables(source)
        with _filling(old.db, schema):
            for name in TABLES:
                old.db.execute(f"CREATE TABLE new.{schema}.{name} AS FROM old.{source}.{name}")
    except (duckdb.Error, UnreadableError):
        old.read(source)
        raise  # it is whole, so it is the new file that cannot be written


# -- open an untrusted file: a connection reaches nothing else, and has limits on memory and time


@contextmanager
def connected(path: StrPath) -> Iterator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """Attach a file as ``old``, to read only, and look at nothing in it.

    Also give the folder beside it, not there yet, that may be written to.
    """
    target = Path(os.path.realpath(path))
    with contextlib.ExitStack() as stack:
        with understood(target, threading.Event()):
            check_is_ours(target)
            size = target.stat().st_size
            workshop = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
            db = stack.enter_context(duckdb.connect(":memory:", config=CONFIG))
            _attach(db, target, "old", "READ_ONLY")
            db.execute(f"SET memory_limit = '{MEMORY[0] + MEMORY[1] * size}B'")
            db.execute("SET allowed_directories = $1", [[str(workshop)]])
            db.execute(LOCK_DOWN)
        yield db, workshop


@contextmanager
def making(draft: Path, target: Path, layout: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Attach a new file as ``new``."""
    with understood(target, None), duckdb.connect(":memory:", config=CONFIG) as db:
        _attach(db, draft, "new", layout)
        db.execute(LOCK_DOWN)
        yield db


def _attach(db: duckdb.DuckDBPyConnection, path: Path, name: str, *options: str) -> None:
    quoted = str(path).replace("'", "''")
    db.execute(f"ATTACH '{quoted}' AS {name} ({', '.join(['TYPE duckdb', *options])})")


def check_is_ours(path: Path) -> None:
    """Refuse what is not a DuckDB file, before DuckDB sees it."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if path.is_dir():
        raise StateFileError(f"{path} is a folder, not a .vf file.")
    if not path.is_file():
        raise StateFileError(f"{path} is not a file on a disk.")
    with path.open("rb") as file:
        if file.read(12)[8:] != b"DUCK":
            raise StateFileError(
                f"{path.name} was not written by viewfold. Choose another name, or make a file "
                "with model.save(…)."
            )
    for suffix in BESIDE:
        if os.path.lexists(f"{path}{suffix}"):
            raise BusyError(
                f"{path.name} is being changed by another program, or was when that ended: there "
                f"is a {path.name}{suffix} beside it. Open the file once with DuckDB and close it."
            )


_POSSIBLE = (
    duckdb.Error,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


@contextmanager
def understood(
    path: Path, late: threading.Event | None, possible: tuple[type[Exception], ...] = _POSSIBLE
) -> Iterator[None]:
    """Convert every exception about a file into one of viewfold's errors, which names the file.

    `late` tells whether the time for reading was up; it is None if the file is written.
    """
    try:
        yield
    except ViewfoldError:
        raise
    except UnreadableError as error:
        raise error.kind(f"Cannot read {path.name}: {error}.") from None
    except possible as error:
        raise _explained(path, error, late) from None


def _explained(path: Path, error: Exception, late: threading.Event | None) -> BaseException:
    said = (str(error).splitlines() or [""])[0] or type(error).__name__
    if late is not None and late.is_set():
        return DamagedFileError(
            f"{path.name} takes too long to read for a file of its size. It is damaged, or made to "
            "do so."
        )
    if isinstance(error, duckdb.InterruptException) or said == "Query interrupted":
        return KeyboardInterrupt()
    full = getattr(error, "errno", None) in FULL
    if full or (isinstance(error, duckdb.Error) and any(os.strerror(no) in said for no in FULL)):
        return NoSpaceError(f"No space is left to write {path.name}: {said}")
    if isinstance(error, OSError) and (error.errno is not None or type(error) is not OSError):
        return error  # of the system, which says itself what is wrong
    if isinstance(error, duckdb.IOException) and "Could not set lock on file" in said:
        if any(os.strerror(no) in said for no in NO_LOCKS):
            return without_locks(path.name)
        return BusyError(f"{path.name} is open for writing in another program. Close it there.")
    if late is None:  # what is written comes from memory: nothing about the file is damaged
        of_duckdb = isinstance(error, duckdb.Error)
        return OSError(f"Cannot write {path.name}: {said}") if of_duckdb else error
    if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
        said = "it needs more memory than there is for a file of its size"
    return DamagedFileError(f"{path.name} is damaged ({said}). Use a copy of it.")


# -- the catalogue. A view, macro, default or generated column would run whatever its author wrote,
# so it is looked at first, then how much the tables would take, and only then are rows read.

Columns = Mapping[tuple[str, str], Mapping[str, str] | None]  # by schema and table; None: more

_OLD = "WHERE database_name = 'old'"
_TABLES = f"SELECT schema_name, table_name, sql FROM duckdb_tables() {_OLD} ORDER BY table_oid"
_OTHERS = f"""
    SELECT 'schema', schema_name, schema_name FROM duckdb_schemas() {_OLD}
    UNION ALL SELECT 'table', schema_name, table_name FROM duckdb_tables() {_OLD}
    UNION ALL SELECT 'view', schema_name, view_name FROM duckdb_views() {_OLD} AND NOT internal
    UNION ALL SELECT 'macro', schema_name, function_name FROM duckdb_functions() {_OLD}
    UNION ALL SELECT 'sequence', schema_name, sequence_name FROM duckdb_sequences() {_OLD}
    UNION ALL SELECT 'index', schema_name, index_name FROM duckdb_indexes() {_OLD}
    UNION ALL SELECT 'type', schema_name, type_name FROM duckdb_types() {_OLD} AND NOT internal
"""


def read_catalogue(db: duckdb.DuckDBPyConnection) -> tuple[Columns, dict[str, Any]]:
    """Return the columns of all tables, and what ``meta`` says; refuse all but our tables."""
    found = {(s, t): _columns(s, t, sql) for s, t, sql in db.execute(_TABLES).fetchall()}
    if not _fit(found.get(("main", "meta")), TABLES["meta"]):
        raise UnreadableError(NOT_OURS, StateFileError)
    check_sizes(db, "main", ["meta"], 0)
    meta = read_meta(meta_table(db, "main"))
    for kind, schema, name in db.execute(_OTHERS).fetchall():
        ours = kind in ("schema", "table") or (kind == "view" and name in OWN_VIEWS)
        if not (ours and schema in ("main", *KEPT)):
            raise UnreadableError(f"it holds a {kind} that viewfold did not put there: {name!r}")
    return found, meta


def _columns(schema: str, table: str, sql: str) -> dict[str, str] | None:
    """Return the columns of a table and their types; None if it is more than that.

    DuckDB writes a table out as the statement that makes it, with every default, collation,
    constraint and generated column.
    """
    plain = sql.replace('"', "")
    inner = re.fullmatch(rf"CREATE TABLE (?:{schema}\.)?{re.escape(table)}\((.*)\);", plain)
    if inner is None:
        return None
    pairs = [column.partition(" ")[::2] for column in inner[1].split(", ")]
    columns = dict(pairs)
    return columns if len(columns) == len(pairs) else None


def _fit(columns: Mapping[str, str] | None, wanted: Mapping[str, str]) -> bool:
    if columns is None or not columns.keys() <= wanted.keys():
        return False
    return all(re.fullmatch(kind, columns.get(name, "")) for name, kind in wanted.items())


def check_sizes(
    db: duckdb.DuckDBPyConnection, schema: str, tables: Iterable[str], size: int
) -> None:
    """Refuse tables that grow out of proportion when they are unpacked, to a file of this size.

    What each segment of a column holds is known without unpacking it.
    """
    longest = r"regexp_extract(CAST(stats AS VARCHAR), '(?i)max.string.length\W+(\d+)', 1)"
    # Arrays differ so much in length that the longest tells nothing about the others; how long
    # each should be is checked when its shape is known.
    bytes_of = """
        SELECT '{1}', sum(CASE WHEN column_name = 'data' THEN width ELSE many * width END)
        FROM (SELECT column_name, CAST(count AS HUGEINT) AS many,
                     greatest(8, coalesce(TRY_CAST({2} AS HUGEINT), 0)) AS width
              FROM pragma_storage_info('old.{0}.{1}') WHERE segment_type <> 'VALIDITY')
    """
    every = " UNION ALL ".join(bytes_of.format(schema, table, longest) for table in tables)
    for name, total in db.execute(every).fetchall():
        allowed = LARGEST_META if name == "meta" else UNPACKED[0] + UNPACKED[1] * size
        if (total or 0) > allowed:
            raise UnreadableError(
                f"its table {name!r} would take {total:,} bytes of memory, more than a file of "
                f"{size:,} bytes should"
            )


def meta_table(db: duckdb.DuckDBPyConnection, schema: str) -> Table:
    """Return the table ``meta`` of a checked database, if its JSON is harmless."""
    rows = db.execute(f"SELECT key, value FROM old.{schema}.meta").fetchall()
    keys = [key for key, _ in rows]
    if len(set(keys)) != len(keys) or None in keys:
        raise UnreadableError("its table 'meta' says something twice")
    for _, text in rows:
        check.check_json(text)
    return Table({"key": keys, "value": [text for _, text in rows]})
