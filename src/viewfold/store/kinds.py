"""Which kind of state a path is: a ``.vf`` file, or a ``.vfd`` folder of buckets.

The one place that decides. Whatever is done with a state is done by the functions of its `Store`.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, cast

from viewfold._util.messages import needed
from viewfold.errors import StateFileError

if TYPE_CHECKING:
    import duckdb

    from viewfold.rows import Engine
    from viewfold.state.state import State
    from viewfold.store._file import Change
    from viewfold.store.kept import Held

StrPath = str | os.PathLike[str]

ENDING = ".vfd"


class Store(Protocol):
    """What can be done with a state, whatever its kind: the modules `_file` and `_vfd`."""

    def exists(self, path: StrPath) -> bool:
        """Tell whether there is such a state."""

    def size(self, path: StrPath) -> int:
        """Return how many bytes it takes."""

    def mark(self, path: StrPath) -> Hashable:
        """Return what tells a state from any that takes its place, without reading it."""

    def is_written(self, path: StrPath) -> bool | None:
        """Tell whether another program is writing it now; None if that is not known."""

    def writing(self, path: StrPath, wait: float = 60) -> AbstractContextManager[Any]:
        """Keep other writers away, or find out when one came first."""

    def read(
        self,
        path: StrPath,
        schema: str = "main",
        engine: Engine | None = None,
        *,
        unpack: bool = False,
    ) -> State | None:
        """Read and check a state: that of now, or one that can be returned to."""

    def write(
        self,
        path: StrPath,
        state: State,
        *,
        kept: Sequence[State | str] = (),
        change: Change | None = None,
        keep: int = 1,
    ) -> State:
        """Write a state in a single step; return it with its rows where they are now."""

    def kept_in(self, path: StrPath) -> tuple[int, tuple[str, ...]]:
        """Return how many states are kept to return to, and which there are."""

    def held(self, path: StrPath) -> Held:
        """Return what there is to return to, with the logs."""

    def listed(self, path: StrPath) -> list[dict[str, Any]]:
        """Return what there is to say about the states that can be returned to."""

    def known_to(self, path: StrPath, ids: Sequence[str]) -> dict[str, list[Any]]:
        """Return samples of any state, by how their ids are written."""

    def asked(
        self, path: StrPath, columns: Sequence[str], small: Sequence[str]
    ) -> AbstractContextManager[tuple[duckdb.DuckDBPyConnection, dict[str, Any]]]:
        """Open a state for questions in SQL to some columns and tables, which are checked."""


def is_folder(path: StrPath) -> bool:
    """Tell whether a path is that of a ``.vfd`` folder.

    Examples
    --------
    >>> from viewfold.store.kinds import is_folder
    >>> is_folder("patients.vfd"), is_folder("s3://bucket/patients.vfd/"), is_folder("patients.vf")
    (True, True, False)
    """
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
    name = "_vfd" if is_folder(path) else "_file"
    if name == "_vfd":
        needed("pyarrow", "parquet", f"{os.fspath(path)}: a state in buckets")
    return cast(Store, importlib.import_module(f"viewfold.store.{name}"))
