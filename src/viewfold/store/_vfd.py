"""Write and read a ``.vfd`` folder: a state in buckets, for engines that hold a few at once.

Files are never changed. A new generation is written beside the others, bucket by bucket and by
whoever has the bucket, and its manifest makes it the state of now; see `viewfold.store.manifest`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import parquet

from viewfold._util.replace import written
from viewfold.errors import BusyError, StateFileError
from viewfold.store import _lock
from viewfold.store import manifest as _manifest
from viewfold.store._vfd_reading import (
    asked,
    engine_for,
    get_state,
    held,
    holding,
    known_to,
    listed,
    read,
)
from viewfold.store.folder import Folder
from viewfold.store.manifest import Bucket, Generation, Manifest
from viewfold.store.tables import COLUMNS, small_tables

if TYPE_CHECKING:
    from viewfold.state.state import State
    from viewfold.store._file import Change

__all__ = ["asked", "held", "known_to", "listed", "read"]

StrPath = str | os.PathLike[str]

_begun: dict[tuple[str, int], tuple[int, _lock.Turn | None]] = {}
"""For each folder and thread that writes: the generation that it found, and its turn."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begun.clear)


def exists(path: StrPath) -> bool:
    """Tell whether there is a state in such a folder."""
    return bool(_manifest.numbers(Folder.at(path)))


def size(path: StrPath) -> int:
    """Return how many bytes all its states take."""
    return sum(one.size for one in _manifest.current(Folder.at(path)).states)


def mark(path: StrPath) -> tuple[int, ...]:
    """Return the number of the manifest of now."""
    return tuple(_manifest.numbers(Folder.at(path))[:1])


def is_written(path: StrPath) -> bool | None:
    """Tell whether another program of this machine is writing it now."""
    folder = Folder.at(path)
    return None if folder.remote else _lock.is_held(folder.address)


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
        first, state = _put(folder, number, state, made, now)
        earlier = _put_kept(folder, number, kept[:keep], change, now, made)
        erases = change is not None or not kept
        manifest = Manifest(number, keep, (first, *earlier), erases)
        if turn is not None:
            turn.check()
        _manifest.publish(folder, manifest)
    except BaseException:
        if _is_published(folder, number, made):  # Ctrl-C or a fault may come right after it was
            written.append(str(folder))
        else:
            _take_back(folder, made)
        raise
    written.append(str(folder))
    _begun[me] = number, turn
    _manifest.clear(folder, manifest, alone=turn is not None)
    return state


def _is_published(folder: Folder, number: int, made: list[str]) -> bool:
    try:
        return _manifest.read(folder, number).states[0].folder in made
    except (StateFileError, OSError):
        return False


def _take_back(folder: Folder, made: list[str]) -> None:
    """Remove what was written, and the folder if there is nothing else."""
    for name in made:
        folder.remove(name)
    if not folder.remote:
        with contextlib.suppress(OSError):
            os.rmdir(folder.address)


def _put(
    folder: Folder, number: int, state: State, made: list[str], now: Manifest | None = None
) -> tuple[Generation, State]:
    """Write the files of a state; return what they are, and the state with its rows in them."""
    from viewfold.explain import distinguished
    from viewfold.rows.buckets import check_rows
    from viewfold.store._bucket import WriteBucket, as_rows

    name = _manifest.new_folder(number)
    made.append(name)
    folder.make(name)
    engine = engine_for(state, None, None if now is None else now.states[0].n_buckets)
    state = distinguished(state.placed(engine))
    buckets: list[Bucket] = []
    if state.views:
        assert state.clusters is not None
        rows = tuple(getattr(state, mine) for mine in COLUMNS.values())
        task = WriteBucket(folder, name, state.clusters)
        items = [item for item in engine._items(rows) if item[1][0].n]
        buckets = engine.each(task, items)
        check_rows([one.rows for one in buckets], [parts[0].n for _, parts in items])
    tables = {}
    for table, content in small_tables(state, {}).items():
        sink = pa.BufferOutputStream()
        parquet.write_table(content.to_arrow(), sink, compression="zstd")
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
        state = holding(state, as_rows(folder, name, buckets, kinds, engine))
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
                state = change(get_state(folder, there[one]))
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
            found.append(_put(folder, number, state, made, now)[0])
    return found


def kept_in(path: StrPath) -> tuple[int, tuple[str, ...]]:
    """Return how many states a folder may keep to return to, and the names of those it has."""
    if not exists(path):
        return 1, ()
    manifest = _manifest.current(Folder.at(path))
    return manifest.keep, tuple(one.folder for one in manifest.states[1:])
