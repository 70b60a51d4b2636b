"""A model and its state file, every bit of a model, and files that are changed with SQL."""

from collections.abc import Iterator
from copy import copy
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from conftest import Data
from every_estimator import folded

import viewfold
from viewfold import ViewFold
from viewfold.state.log import Event
from viewfold.state.state import State
from viewfold.store import Kept, file, store_of
from viewfold.store.models import plan_undo

HERE = Path(__file__).parent
EVERYTHING, CHECK_SIZES = file._OTHERS, file.check_sizes
NO_FUNCTIONS = "".join(
    line for line in EVERYTHING.splitlines(True) if "duckdb_functions()" not in line
)


@pytest.fixture(scope="session", autouse=True)
def _files_are_our_own() -> Iterator[None]:
    """Spare half of each opening: DuckDB goes through its own 3,000 functions to find a macro, and
    through every column to tell how large a table is.

    Tests of crafted files ask for `every_check`.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "_OTHERS", NO_FUNCTIONS)
        patch.setattr(file, "check_sizes", lambda *_: None)
        yield


@pytest.fixture
def every_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "_OTHERS", EVERYTHING)
    monkeypatch.setattr(file, "check_sizes", CHECK_SIZES)


@pytest.fixture(scope="session")
def folded_once(data: Data) -> Any:
    return folded(ViewFold(4, n_init=3, random_state=0), data.parts())


@pytest.fixture
def stored_model(folded_once: Any) -> Any:
    """A model of three views. Its state is shared: whatever is called puts another in its place."""
    return copy(folded_once)


@pytest.fixture(scope="session")
def saved_once(folded_once: Any, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("saved") / "model.vf"
    copy(folded_once).save(path)
    return path.read_bytes()


@pytest.fixture
def model_file(saved_once: bytes, tmp_path: Path) -> Path:
    (tmp_path / "model.vf").write_bytes(saved_once)
    return tmp_path / "model.vf"


def bits(thing: Any) -> Any:
    """Everything about a model or a part of it, down to the layout of its arrays."""
    if isinstance(thing, viewfold.estimators.FoldingEstimator):
        return bits(getattr(thing, "_state", None)), bits(thing.get_params())
    if isinstance(thing, Event):  # two models that do the same do it at different times
        return replace(thing, time=None)
    if isinstance(thing, State):  # the key of fingerprints is drawn for each
        thing = replace(thing, key=0, fingerprints=None)
    if is_dataclass(thing):
        return type(thing), {f.name: bits(getattr(thing, f.name)) for f in fields(thing)}
    if isinstance(thing, np.random.RandomState):
        return bits(thing.get_state()[1])
    if isinstance(thing, np.ndarray):
        values = thing.tolist() if thing.dtype == object else thing.tobytes()
        layout = thing.strides if thing.size else None
        return thing.dtype, thing.shape, layout, thing.flags.writeable, values
    if isinstance(thing, dict):
        return {name: bits(value) for name, value in thing.items()}
    return [bits(item) for item in thing] if isinstance(thing, tuple) else thing


def learned(model: Any) -> Any:
    """The bits of a model, but for its log and the numbers of entries."""
    state = model._state
    views = tuple(replace(view, entry=0) for view in state.views)
    plain = replace(state, views=views, added=None, steps=(), log=(), method="", params={})
    return bits(plain), bits(model.get_params())


def read_state(path: Path, schema: str = "main") -> State:
    """Read a state of a file: that of now, or one that it can be returned to."""
    with store_of(path).reading() as contents:
        return contents.read(schema)


def kept_states(path: Path) -> tuple[Kept, ...]:
    """The states that a file can be returned to, the latest first."""
    with store_of(path).reading() as contents:
        return contents.kept()


def taken_by_undo(path: Path) -> list[int]:
    """The entries of the log that undo would take back."""
    with store_of(path).reading() as contents:
        return [event.entry for event in plan_undo(contents)[1]]


def changed(path: Path, *statements: str) -> Path:
    """Change a file with SQL."""
    with duckdb.connect(path) as db:
        for statement in statements:
            db.execute(statement)
    return path
