"""States on disk: a ``.vf`` file, or a ``.vfd`` folder of buckets; docs/format.md describes them.

`store_of` decides which of the two a path is; whatever is done with a state goes through a `Store`.
Other names are imported when they are first used: a lock needs neither DuckDB nor scikit-learn.
"""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from viewfold._util.arguments import warn_user
from viewfold.errors import StateFileError

if TYPE_CHECKING:
    import duckdb

    from viewfold.rows import Engine
    from viewfold.state.log import Log
    from viewfold.state.state import State
    from viewfold.store.lock import writing
    from viewfold.store.models import convert, edit, forget, load, undo, verify

StrPath = str | os.PathLike[str]
Change = Callable[["State"], "State | None"]

ENDING = ".vfd"

_home = dict.fromkeys(
    ("convert", "edit", "forget", "load", "undo", "verify"), "viewfold.store.models"
)
_home["writing"] = "viewfold.store.lock"

__all__ = [
    "StateFileError",
    "convert",
    "edit",
    "forget",
    "is_folder",
    "load",
    "store_of",
    "undo",
    "verify",
    "writing",
]


def __getattr__(name: str) -> Any:
    if name in _home:
        return getattr(importlib.import_module(_home[name]), name)
    raise AttributeError(f"module 'viewfold.store' has no attribute {name!r}")


def is_folder(path: StrPath) -> bool:
    """Tell whether a path is that of a ``.vfd`` folder."""
    name = os.fspath(path)
    if name.rstrip("/\\").lower().endswith(ENDING):
        return True
    if name.startswith("file:///"):
        path = name.removeprefix("file://")
        raise StateFileError(
            f"{name}: Give the path of a file on this machine, not its address: {path}"
        )
    if "://" in name:
        raise StateFileError(
            f"{name}: a state that is not on this machine is a folder, whose name ends with "
            f"{ENDING}."
        )
    return False


def store_of(path: StrPath) -> Store:
    """Return what can be done with a state."""
    if not is_folder(path):
        from viewfold.store.file import FileStore

        return FileStore(path)
    from viewfold._util.messages import needed

    needed("pyarrow", "parquet", f"{os.fspath(path)}: a state in buckets")
    from viewfold.store.buckets import FolderStore

    return FolderStore(path)


@dataclass(frozen=True)
class Kept:
    """A state to return to: where it is, its log, and what is wrong if that cannot be read."""

    schema: str
    log: Log | None = None
    wrong: str = ""

    @property
    def entry(self) -> int | None:
        """The entry after which the file was so; 0 before the first, None if that is not known."""
        return None if self.log is None else self.log[-1].entry if self.log else 0


class Contents(ABC):
    """What a state on disk holds, open for reading: the state of now and those to return to.

    `keep` is how many states to return to there may be, `schemas` are the names of those there are,
    the latest first. Each is a whole state with a log of its own, which is the beginning of the log
    of now; damage in one hinders neither the others nor the state of now.
    """

    path: StrPath
    keep: int
    schemas: tuple[str, ...]

    @abstractmethod
    def close(self) -> None:
        """Let go of it before the end of the block that opened it."""

    @abstractmethod
    def read(
        self, schema: str = "main", engine: Engine | None = None, *, unpack: bool = False
    ) -> State:
        """Read and check a state: that of now, or one that can be returned to.

        Its rows are where the engine has them; with `unpack`, where they can be read many times.
        """

    @abstractmethod
    def size_of(self, schema: str) -> int:
        """Return how many bytes a state takes."""

    @abstractmethod
    def query(
        self, columns: Sequence[str], small: Sequence[str], schema: str = "main"
    ) -> AbstractContextManager[tuple[duckdb.DuckDBPyConnection, dict[str, Any]]]:
        """Answer SQL about a state; check these columns of samples and small tables.

        Also give what ``meta`` says.
        """

    def log(self, schema: str = "main") -> Log:
        """Return the log of a state."""
        from viewfold.store.tables import SMALL, events_of, small_table

        with self.query((), ("log",), schema) as (db, _):
            return events_of(small_table(db, "log ORDER BY entry", SMALL["log"]))

    def find_ids(self, texts: Sequence[str]) -> dict[str, list[Any]]:
        """Return samples of any state, by how their ids are written; pass damaged states over."""
        found: dict[str, list[Any]] = {}
        for schema in ("main", *self.schemas):
            with suppress(StateFileError), self.query((), (), schema) as (db, meta):
                is_int = "id_is_int" if meta.get("ids") == "mixed" else "false"
                rows = db.execute(
                    f"SELECT id::VARCHAR, {is_int}, id FROM samples "
                    "WHERE id::VARCHAR IN (SELECT unnest($1))",
                    [list(texts)],
                ).fetchall()
                for text, number, value in rows:
                    found.setdefault(text, []).append(int(text) if number else value)
        return found

    def kept(self) -> tuple[Kept, ...]:
        """Return the states to return to, with their logs."""
        found = []
        for schema in self.schemas:
            try:
                found.append(Kept(schema, self.log(schema)))
            except StateFileError as error:
                found.append(Kept(schema, wrong=str(error)))
        return tuple(found)

    def list_kept(self) -> list[dict[str, Any]]:
        """Return what there is to say about the states that can be returned to."""
        facts = []
        for state in self.kept():
            last = state.log[-1] if state.log else None
            said = {name: getattr(last, name, None) for name in ("what", "view", "time")}
            facts.append({"entry": state.entry, **said, "bytes": self.size_of(state.schema)})
        return facts


class Store(ABC):
    """A place on disk for a state, whether there is one yet or not."""

    def __init__(self, path: StrPath) -> None:
        self.path = path

    @abstractmethod
    def exists(self) -> bool:
        """Tell whether there is such a state."""

    @abstractmethod
    def size(self) -> int:
        """Return how many bytes it takes."""

    @abstractmethod
    def mark(self) -> Hashable:
        """Return what tells a state from any that takes its place, without reading it."""

    @abstractmethod
    def is_written(self) -> bool | None:
        """Tell whether another program is writing it now; None if that is not known."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Contents]:
        """Open it for reading."""

    @abstractmethod
    def writing(self, wait: float = 60) -> AbstractContextManager[Any]:
        """Keep other writers away, or find out when one came first; give the turn to `write`."""

    @abstractmethod
    def write(self, turn: Any, state: State, returns: Returns) -> State:
        """Write a state in a single step; return it with its rows where they are now."""


@dataclass(frozen=True)
class Returns:
    """What a state that is written can be returned to.

    `states` are states, or the schemas that hold them in what is replaced, which is open as
    `contents`, the latest first; `keep` is how many there may be. `change` is what becomes of those
    on disk, None to leave one out.
    """

    states: Sequence[State | str] = ()
    keep: int = 1
    change: Change | None = None
    contents: Any = None

    def write(self, put: Callable[[State | str], None]) -> None:
        """Have every state put where it goes; leave one out that is damaged, with a warning."""
        for one in self.states[: self.keep]:
            try:
                new: State | str | None = one
                if isinstance(one, str) and self.change is not None:
                    new = self.change(self.contents.read(one))
                if new is not None:
                    put(new)
            except StateFileError as error:
                warn_user(f"A state that undo returns to is damaged and was left out: {error}")
