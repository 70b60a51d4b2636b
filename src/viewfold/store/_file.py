"""Write and read a ``.vf`` file: a DuckDB database of all a model has learned, no row of a view.

A file is never changed in place. A new one is written beside it and takes its place in one step, so
that readers see the state before or after, are never kept waiting, and a crash leaves no trace.
"""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pyarrow as pa

from viewfold.errors import StateFileError, UnreadableError
from viewfold.store import _catalogue, _check
from viewfold.store._database import STORAGE, check_is_ours, making, reading, understood
from viewfold.store._lock import own_turn, writing
from viewfold.store._replace import replacing
from viewfold.tables import FORMAT, Saved, from_tables, read_meta, to_tables


def write(path: str | os.PathLike[str], saved: Saved, *, before: Saved | None = None) -> None:
    """Write a file, or replace one, in a single step.

    Parameters
    ----------
    path : path
        Where to. Only the owner may read a new file; a file that is replaced keeps its mode.
    saved : Saved
        What to write.
    before : Saved, optional
        The state that `undo` returns to.
    """
    target = Path(os.path.realpath(path))
    with own_turn(target) as turn, understood(target, None):
        if target.exists():
            check_is_ours(target)
        try:
            with (
                replacing(target, ready=turn.check) as draft,
                making(draft, target, _layout(saved)) as db,
            ):
                _put(db, "main", saved)
                if before is not None:
                    db.execute("CREATE SCHEMA new.undo")
                    _put(db, "undo", before)
                db.execute("CHECKPOINT new")
        except FileNotFoundError:
            turn.check()  # another writer that should not be there may have cleared the folder
            raise
        turn.written()


def read(path: str | os.PathLike[str], *, before: bool = False) -> Saved | None:
    """Read a file.

    Parameters
    ----------
    path : path
        The file.
    before : bool, default=False
        Whether to read the state that `undo` returns to instead.

    Returns
    -------
    Saved or None
        None if there is no state to return to.

    Raises
    ------
    StateFileError
        If the file is damaged, foreign or of a newer version.
    """
    target = Path(os.path.realpath(path))
    with reading(target) as db:
        catalogue, schema = _catalogue.check(db, FORMAT), "undo" if before else "main"
        if before and not catalogue.has_undo:
            return None
        tables = _catalogue.FORMATS[catalogue.version]
        _catalogue.check_sizes(db, schema, tables, target.stat().st_size)
        return _get(db, catalogue, schema)


def undo(path: str | os.PathLike[str], *, wait: float = 60) -> Saved:
    """Return a file to the state before the last fold.

    Parameters
    ----------
    path : path
        The file.
    wait : float, default=60
        Seconds to wait for another writer.

    Returns
    -------
    Saved
        What the file holds now.
    """
    with writing(path, wait):
        saved = read(path, before=True)
        if saved is None:
            raise StateFileError(
                f"There is nothing to undo in {Path(path).name}: it holds no state before the last "
                "fold. One step can be undone."
            )
        write(path, saved)
    return saved


HISTORY = """
SELECT id, fold, name AS view,
       CASE WHEN fold > 1 AND history[fold - 1] >= 0 THEN history[fold - 1] END AS previous,
       history[fold] AS label, folded
FROM {0}.samples, {0}.views
WHERE history[fold] >= 0 AND (fold = 1 OR history[fold] <> history[fold - 1])
"""


def _layout(saved: Saved) -> str:
    """Return how to lay a file out; tables take whole blocks, so small files get small ones."""
    small = saved.state is None or saved.state.consensus.embedding.nbytes < 2**23
    return f"STORAGE_VERSION '{STORAGE}', BLOCK_SIZE {2**14 if small else 2**18}"


def _put(db: duckdb.DuckDBPyConnection, schema: str, saved: Saved) -> None:
    for name, table in to_tables(saved).items():
        db.register("incoming", table)
        db.execute(f"CREATE TABLE new.{schema}.{name} AS FROM incoming")
        db.unregister("incoming")
    db.execute(f"CREATE VIEW new.{schema}.labels_history AS {HISTORY.format(schema)}")


def _get(db: duckdb.DuckDBPyConnection, catalogue: _catalogue.Catalogue, schema: str) -> Saved:
    """Read the tables of a database whose catalogue was checked."""

    def table(name: str, **instead: str) -> duckdb.DuckDBPyRelation:
        columns = catalogue.columns[schema, name]
        chosen = ", ".join(instead.get(column, f'"{column}"') for column in columns)
        return db.sql(f"SELECT {chosen} FROM old.{schema}.{name}")

    meta = read_meta(_catalogue.meta_table(db, schema))
    if meta["version"] != catalogue.version:
        raise UnreadableError("the state to return to has another format")
    empty = "n_samples" not in meta
    views = table("views").to_arrow_table()
    _check.check_views(views, empty=empty)
    _check.check_claims(table("arrays", data="octet_length(data) AS bytes").to_arrow_table())
    arrays = table("arrays").to_arrow_table()
    (n_samples,) = db.sql(f"SELECT count(*) FROM old.{schema}.samples").fetchall()[0]
    _check.check_meta(meta, n_samples, catalogue.columns[schema, "samples"])
    samples = _check.checked(pa.RecordBatchReader.from_stream(table("samples")), len(views))
    saved = from_tables(meta, views, arrays, samples)
    _check.check_saved(saved)
    return saved
