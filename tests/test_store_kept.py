# ruff: noqa: F811  (fixtures of other files)
"""Several states to return to: undo walks back, restore goes to one, and each is as safe as one."""

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from conftest import Data
from store_models import changed, kept_states, learned, taken_by_undo
from test_cli import Run, run  # noqa: F401

import viewfold
from viewfold import StateFileError, ViewFold
from viewfold.errors import DamagedFileError
from viewfold.store import file
from viewfold.store.models import save

NAMES = ["labs", "scan", "text", "labs2", "scan2"]


def fold(path: Path, data: Data, name: str, **options: Any) -> Any:
    """Fold a view in a transaction of its own; `text` brings a sample that no other view has."""
    X, ids = data.parts()[name.rstrip("2")]
    if name == "text":
        X, ids = np.vstack([X, X[:1]]), [*ids, "late"]
    new = ViewFold(4, encoder="linear", n_init=1, random_state=0)
    with viewfold.edit(path, new=new, **options) as model:
        model.partial_fit(X, ids=ids, view=name)
    return learned(model)


@pytest.fixture(scope="module")
def made(data: Data, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[Any]]:
    """A file of five folds that keeps three states, and what was learned after each fold."""
    path = tmp_path_factory.mktemp("kept") / "p.vf"
    states = [fold(path, data, name, keep=3) for name in NAMES]
    return path.read_bytes(), states


@pytest.fixture
def path(made: tuple[bytes, list[Any]], tmp_path: Path) -> Path:
    (tmp_path / "p.vf").write_bytes(made[0])
    return tmp_path / "p.vf"


def entries(path: Path) -> list[int | None]:
    return [state.entry for state in kept_states(path)]


def count(path: Path, sql: str, schema: str) -> int:
    with duckdb.connect(path, read_only=True) as db:
        return int(db.sql(f"SELECT count(*) FROM {schema}.{sql}").fetchall()[0][0])


def change(path: Path) -> None:
    """Change a parameter: the quickest change that there is."""
    with viewfold.edit(path) as model:
        model.set_params(n_init=model.n_init + 1)


def damage(path: Path, schema: str) -> None:
    changed(path, f"UPDATE {schema}.samples SET label = 3 - label")


# -- going back


def test_undo_again_and_again_takes_back_one_change_after_the_other(
    path: Path, made: tuple[bytes, list[Any]]
) -> None:
    for left, undoes in ((4, 5), (3, 4), (2, 3)):
        assert taken_by_undo(path) == [undoes]
        undone = viewfold.undo(path)
        assert learned(undone) == made[1][left - 1] == learned(viewfold.load(path))
        assert undone.log_["undoes"].tolist()[-1] == undoes
    with pytest.raises(StateFileError, match="nothing to undo"):
        viewfold.undo(path)
    assert undone.log_["what"].tolist() == ["fold"] * 5 + ["undo"] * 3


def test_a_restore_returns_to_an_entry_and_can_be_undone(
    path: Path, made: tuple[bytes, list[Any]]
) -> None:
    _, states = made
    assert entries(path) == [4, 3, 2]
    back = viewfold.undo(path, to=3)
    assert learned(back) == states[2] == learned(viewfold.load(path))
    assert back.log_[["what", "undoes"]].to_numpy().tolist()[-1] == ["restore", 4]
    assert back.log_["what"].tolist()[:5] == ["fold"] * 5
    assert entries(path) == [5, 4, 3]
    assert learned(viewfold.undo(path)) == states[4]
    assert learned(viewfold.undo(path)) == states[3]
    assert viewfold.load(path).log_["undoes"].tolist()[-2:] == [6, 5]


def test_folds_go_on_after_a_restore_as_if_the_later_ones_had_not_been(
    path: Path, data: Data, made: tuple[bytes, list[Any]]
) -> None:
    viewfold.undo(path, to=3)
    assert fold(path, data, "labs2") == made[1][3]
    assert entries(path) == [6, 5, 4]
    assert learned(viewfold.undo(path, to=5)) == made[1][4]  # forward works, too


def test_what_is_gone_is_refused_with_what_there_is(path: Path) -> None:
    content = path.read_bytes()
    with pytest.raises(StateFileError, match=r"after entry 1\..*entries 4, 3, 2"):
        viewfold.undo(path, to=1)
    with pytest.raises(StateFileError, match="after entry 5 already"):
        viewfold.undo(path, to=5)
    with pytest.raises(ValueError, match="from 0 to 100"), viewfold.edit(path, keep=101):
        pass
    assert path.read_bytes() == content


def test_a_file_remembers_how_many_it_keeps_and_fewer_drops_the_oldest(
    path: Path, tmp_path: Path
) -> None:
    size = path.stat().st_size
    with viewfold.edit(path, keep=2) as model:
        pass
    assert entries(path) == [4, 3]
    assert path.stat().st_size < size
    assert model.log_.equals(viewfold.load(path).log_)
    change(path)
    assert entries(path) == [5, 4]
    for keep in (0, None):
        with viewfold.edit(path, keep=keep) as model:
            model.set_params(n_init=model.n_init + 1)
        assert entries(path) == []
    model.save(tmp_path / "new.vf")
    change(tmp_path / "new.vf")
    change(tmp_path / "new.vf")
    assert entries(tmp_path / "new.vf") == [8]  # one, where nothing was said


# -- what undo guarantees holds for each


def test_the_forgotten_are_in_no_state_of_the_file(path: Path) -> None:
    for schema in ("main", "undo", "undo2", "undo3"):
        assert count(path, "samples WHERE id = 's45'", schema) == 1
    with viewfold.edit(path) as model:
        model.forget(["s45"])
    for schema in ("main", "undo", "undo2", "undo3"):
        assert count(path, "samples WHERE id = 's45'", schema) == 0
    assert viewfold.verify(path).whole
    assert "s45" not in viewfold.undo(path, to=2).ids_


def test_who_is_only_in_a_state_to_return_to_can_be_forgotten(path: Path) -> None:
    viewfold.undo(path, to=2)
    with pytest.raises(ValueError, match="Unknown"), viewfold.edit(path) as model:
        model.forget(["late"])
    model = viewfold.forget(path, ["late", "s45"])
    assert "s45" not in model.ids_
    assert model.log_[["what", "n_forgotten"]].to_numpy().tolist()[-1] == ["forget", 2]
    for schema in ("main", "undo", "undo2", "undo3"):
        assert count(path, "samples WHERE id IN ('late', 's45')", schema) == 0
    with pytest.raises(ValueError, match="Unknown samples: 'late'"):
        viewfold.forget(path, ["late"])
    assert viewfold.verify(path).whole


def test_encoders_that_are_not_kept_are_in_no_state(path: Path, data: Data) -> None:
    X, ids = data.parts()["labs"]
    with viewfold.edit(path) as model:
        model.set_params(keep_encoders=False).partial_fit(X, ids=ids, view="more")
    for schema in ("main", "undo", "undo2", "undo3"):
        assert count(path, "arrays WHERE name LIKE 'encoder%'", schema) == 0
    assert not viewfold.undo(path, to=4).keep_encoders


def test_a_damaged_state_hinders_neither_the_others_nor_a_change(
    path: Path, made: tuple[bytes, list[Any]]
) -> None:
    changed(path, "DROP VIEW undo.labels_history", "DROP TABLE undo.log")
    assert entries(path) == [None, 3, 2]
    with pytest.raises(DamagedFileError, match=r"tables of format.*undo p\.vf --to 3"):
        viewfold.undo(path)
    with pytest.warns(UserWarning, match="damaged and was left out"):
        change(path)
    assert entries(path) == [5, 3]
    assert learned(viewfold.undo(path, to=3)) == made[1][2]


def test_blocks_that_cannot_be_read_are_left_out_when_states_are_copied(
    path: Path,
) -> None:
    with duckdb.connect(path, read_only=True) as db:
        used = {}
        for schema in ("main", "undo", "undo2", "undo3"):
            rows = db.sql(f"SELECT block_id FROM pragma_storage_info('{schema}.samples')")
            used[schema] = {block for (block,) in rows.fetchall() if block >= 0}
        size = db.sql("SELECT block_size FROM pragma_database_size()").fetchall()[0][0]
    alone = used["undo2"] - used["main"] - used["undo"] - used["undo3"]
    with path.open("r+b") as file:
        file.seek(3 * 4096 + max(alone) * size + size // 2)
        file.write(b"damage!!" * 8)
    with pytest.warns(UserWarning, match="damaged and was left out"):
        change(path)
    assert entries(path) == [5, 4]
    assert viewfold.verify(path).whole


def test_a_file_that_cannot_be_written_is_not_taken_for_a_damaged_state(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise duckdb.IOException("Could not write file: Input/output error")

    content = path.read_bytes()
    monkeypatch.setattr(file, "_copy", fail)
    with pytest.raises(OSError, match="Cannot write"):
        change(path)
    assert path.read_bytes() == content


def test_verify_looks_over_every_state(path: Path) -> None:
    damage(path, "undo3")
    found = viewfold.verify(path)
    assert [line.partition(":")[0] for line in found.problems] == [
        "What undo returns to later (undo3)"
    ]
    damage(path, "main")
    ways = " ".join(viewfold.verify(path).rescue)
    assert "viewfold undo" in ways
    assert "--to 3" in ways
    assert "--to 2" not in ways


# -- cost


def test_states_that_stay_the_same_are_copied_not_made_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    convert = file.to_tables
    monkeypatch.setattr(file, "to_tables", lambda *a, **k: made.append(1) or convert(*a, **k))
    change(path)
    viewfold.undo(path)
    viewfold.undo(path, to=3)
    assert len(made) == 3


def test_one_kept_state_at_a_time_is_in_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[Any] = []
    most: list[int] = []
    read = file.FileContents.read

    def counted(*args: Any, **_: Any) -> Any:
        gc.collect()
        most.append(sum(one() is not None for one in alive))
        state = read(*args)
        alive.append(weakref.ref(state))
        return state

    monkeypatch.setattr(file.FileContents, "read", counted)
    viewfold.forget(path, ["s45"])
    assert len(most) == 4
    assert max(most) == 1  # the state of now


# -- what a file may hold


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE SCHEMA undo101",
        "CREATE SCHEMA undo02",
        "CREATE SCHEMA undo1",
        "CREATE MACRO undo2.helper(x) AS x",
        "CREATE VIEW undo2.helper AS SELECT 1",
    ],
)
def test_a_schema_is_one_of_ours_or_the_file_is_refused(
    path: Path, statement: str, every_check: None
) -> None:
    changed(path, statement)
    with pytest.raises(StateFileError, match="viewfold did not put there"):
        viewfold.load(path)


@pytest.mark.parametrize("keep", ["-1", "1000000000", "true", '"3"', "2.5"])
def test_a_number_of_states_that_no_file_has_is_refused(
    path: Path, keep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crafted_files import forge

    changed(path, f"UPDATE meta SET value = '{keep}' WHERE key = 'keep'")
    forge(monkeypatch)
    with pytest.raises(DamagedFileError, match="states to return to"):
        viewfold.undo(path)


def test_nothing_of_a_kept_state_is_run_or_unpacked_when_it_is_copied(
    path: Path,
) -> None:
    changed(
        path,
        "DROP VIEW undo2.labels_history",
        "DROP TABLE undo2.meta",
        "CREATE TABLE undo2.meta (key VARCHAR, value VARCHAR DEFAULT random()::VARCHAR)",
    )
    with pytest.warns(UserWarning, match="documented columns"):
        change(path)
    assert entries(path) == [5, 4]
    assert len(kept_states(path)) == 2


# -- on the command line


def test_commands_keep_list_and_restore(run: Run, data: Data) -> None:
    X, ids = data.parts()["text"]
    pd.DataFrame(X, index=ids).add_prefix("x").to_csv("text.csv", index_label="id")
    save(viewfold.ViewFold(4, random_state=0), "p.vf", keep=4)
    assert run("add p.vf text.csv --id id")[0] == 0
    change(Path("p.vf"))
    states = json.loads(run("status p.vf --json")[1])["states"]
    assert [state["entry"] for state in states] == [1, 0]
    assert [state["view"] for state in states] == ["text", None]
    assert all(state["bytes"] > 0 for state in states)
    assert sum(state["bytes"] for state in states) < Path("p.vf").stat().st_size
    assert "undo can return to: entry 1" in run("status p.vf")[1]
    code, _, said = run("undo p.vf --to 0")
    assert (code, "entry 1" in said, "entry 2" in said, "--yes" in said) == (1, True, True, True)
    answer = json.loads(run("undo p.vf --to 0 --yes --json")[1])
    assert (answer["entry"], answer["undone"], answer["views"]) == (0, [1, 2], [])
    assert "restore to entry 0" in run("undo p.vf --yes")[2]
    assert [view.name for view in viewfold.load("p.vf").views_] == ["text"]
    assert run("undo p.vf --to 9 --yes")[0] == 3
