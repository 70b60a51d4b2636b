# ruff: noqa: F811  (fixtures of other files)
"""What the log promises: an entry for every change, none lost, and a history that follows it."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from conftest import Data
from store_models import changed, taken_by_undo
from test_cli import Run, run  # noqa: F401

import viewfold
from viewfold import StateFileError, ViewFold
from viewfold.method.landmarks import Landmarks
from viewfold.store import queries

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def folded_twice(data: Data, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Two views folded in two changes."""
    path = tmp_path_factory.mktemp("folded") / "p.vf"
    for name in ("labs", "scan"):
        X, ids = data.parts()[name]
        with viewfold.edit(path, new=ViewFold(4, random_state=0)) as model:
            model.partial_fit(X, ids=ids, view=name)
    return path.read_bytes()


@pytest.fixture
def path(folded_twice: bytes, tmp_path: Path) -> Path:
    (tmp_path / "p.vf").write_bytes(folded_twice)
    return tmp_path / "p.vf"


def extended(path: Path, data: Data, *ids: str) -> Any:
    with viewfold.edit(path) as model:
        return model.extend(data.views["labs"][: len(ids)], ids=list(ids), view="labs")


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(path, read_only=True) as db:
        return db.sql(sql).fetchall()


def what(path: Path) -> list[str]:
    return [event.what for event in queries.log(path)]


def test_every_change_has_an_entry_with_time_version_and_counts(path: Path, data: Data) -> None:
    extended(path, data, "a", "b", "c")
    with viewfold.edit(path) as model:
        model.forget(["s0", "b"])
    with viewfold.edit(path) as model:
        model.set_params(n_init=5)
    viewfold.undo(path)
    with viewfold.edit(path) as model:
        X, ids = data.parts()["text"]
        model.partial_fit(X, ids=ids, view="text")
    columns = "what, view, n_samples, n_new, n_shared, n_forgotten, undoes"
    assert rows(path, f"SELECT {columns} FROM log ORDER BY entry") == [
        ("fold", "labs", 120, 120, 0, None, None),
        ("fold", "scan", 160, 40, 80, None, None),
        ("extend", "labs", 163, 3, None, None, None),
        ("forget", None, 161, None, None, 2, None),
        ("params", None, 161, None, None, None, None),
        ("undo", None, 161, None, None, None, 5),
        ("fold", "text", 162, 1, 119, None, None),  # s0 has come again
    ]
    assert rows(path, "SELECT list(entry ORDER BY entry) FROM log") == [(list(range(1, 8)),)]
    assert rows(path, "SELECT DISTINCT version FROM log") == [(viewfold.__version__,)]
    moved = len(model.movers("text"))
    assert rows(path, "SELECT n_moved FROM log WHERE entry = 7") == [(moved,)]


def test_times_have_a_zone_and_are_those_of_the_change(path: Path, data: Data) -> None:
    before = datetime.now(UTC)
    extended(path, data, "a")
    after = datetime.now(UTC)
    kinds = rows(path, "SELECT DISTINCT typeof(time) FROM log")
    assert kinds == [("TIMESTAMP WITH TIME ZONE",)]
    times = [event.time for event in queries.log(path)]
    assert times == sorted(times)
    assert before <= times[-1] <= after
    assert times[-2] < before


def test_a_model_in_memory_has_the_log_too_and_files_keep_it(data: Data, tmp_path: Path) -> None:
    model = ViewFold(4, random_state=0)
    for name, (X, ids) in data.parts().items():
        model.partial_fit(X, ids=ids, view=name)
    model.extend(data.views["labs"][:2], ids=["a", "b"], view="labs").forget(["s1"])
    assert model.log_["what"].tolist() == ["fold", "fold", "fold", "extend", "forget"]
    assert model.log_["n_samples"].tolist() == [120, 160, 160, 162, 161]
    model.save(tmp_path / "p.vf")
    pd.testing.assert_frame_equal(viewfold.load(tmp_path / "p.vf").log_, model.log_)
    assert model._state.added[model.ids_ == "a"] == [4]
    model.fit(data.views)
    assert model.log_["what"].tolist() == ["fold", "fold", "fold"]


def test_history_of_an_added_sample_begins_with_its_extend(
    path: Path, data: Data, run: Run
) -> None:
    extended(path, data, "a")
    model = viewfold.load(path)
    times = model.log_["time"]
    asked = "SELECT entry, what, view, previous, label FROM labels_history WHERE id = 'a'"
    label = int(model.to_frame()["cluster"]["a"])
    assert rows(path, asked) == [(3, "extend", "labs", None, label)]
    (step,) = json.loads(run(f"history {path} --id a --json")[1])
    assert (step["entry"], step["what"], step["view"]) == (3, "extend", "labs")
    assert (step["in_view"], step["cluster"]) == (True, label)
    assert datetime.fromisoformat(step["time"]) == times[3] > times[2]


def test_forget_and_undo_leave_a_trace_without_ids(path: Path, data: Data, run: Run) -> None:
    extended(path, data, "marked-sample", "b")
    with viewfold.edit(path) as model:
        model.forget(["marked-sample"])
    viewfold.undo(path, entry=3)
    assert what(path) == ["fold", "fold", "extend", "forget", "undo"]
    assert b"marked-sample" not in path.read_bytes()
    shown = json.loads(run(f"history {path} --json")[1])
    assert [(e["what"], e["forgotten"], e["undoes"]) for e in shown[3:]] == [
        ("forget", 1, None),
        ("undo", None, 3),
    ]
    assert [e["samples"] for e in shown] == [120, 160, 162, 161, 160]


def test_history_is_what_happened(data: Data, tmp_path: Path) -> None:
    """Any order of changes, against a record that is kept beside them."""
    path = tmp_path / "p.vf"
    record: dict[str, list[tuple[int, Any, int]]] = {}
    kept: dict[str, Any] = {}
    undone: tuple[Any, Any] = {}, {}
    rng = np.random.default_rng(3)
    for step, do in enumerate(["fold", "extend", "fold", "forget", "extend", "undo", "fold"]):
        before = {**kept}
        earlier = {name: list(way) for name, way in record.items()}
        if do == "undo":
            viewfold.undo(path)
            record, kept = undone
            assert viewfold.load(path).to_frame()["cluster"].to_dict() == kept
            continue
        with viewfold.edit(path, new=ViewFold(4, random_state=0)) as model:
            if do == "fold":
                chosen = rng.permutation(160)[:120]
                X = rng.normal(size=(120, 6)) + data.views["labs"][chosen, :6]
                model.partial_fit(X, ids=[f"s{i}" for i in chosen], view=f"view {step}")
            elif do == "extend":
                X = data.views["labs"][:5, :6]
                model.extend(X, ids=[f"new {step} {i}" for i in range(5)], view="view 0")
            else:
                model.forget(model.ids_[:7])
        kept = model.to_frame()["cluster"].to_dict()
        undone = earlier, before
        record = {name: record.get(name, []) for name in kept}
        for name, label in kept.items():
            if before.get(name) != label:
                record[name].append((len(model.log_), before.get(name), label))
    found: dict[str, list[tuple[int, Any, int]]] = {name: [] for name in kept}
    asked = "SELECT id, entry, previous, label FROM labels_history ORDER BY id, entry"
    for name, *entry in rows(path, asked):
        found[name].append(tuple(entry))
    assert found == record
    assert len({entry for way in found.values() for entry, *_ in way}) == 4


# -- undo


def test_undo_names_what_it_takes_back_and_asks(
    path: Path, data: Data, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    extended(path, data, "a", "b")
    content = path.read_bytes()
    code, _, said = run(f"undo {path}")  # standard input is no terminal
    assert code == 1
    assert "entry 3 (extend of labs, 2 samples" in said
    assert "--yes" in said
    asked = []

    def answer(question: str, **_: Any) -> bool:
        asked.append(question)
        return len(asked) > 1

    monkeypatch.setattr("click.confirm", answer)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert run(f"undo {path}")[0] == 1
    assert path.read_bytes() == content
    assert run(f"undo {path}")[0] == 0
    assert "entry 3 (extend of labs, 2 samples" in asked[0]
    assert what(path)[-1] == "undo"
    assert viewfold.load(path).ids_.size == 160


def test_undo_after_a_forget_takes_nothing_else_back_unasked(path: Path, run: Run) -> None:
    with viewfold.edit(path) as model:
        model.forget(["s3"])
    content = path.read_bytes()
    with pytest.raises(StateFileError, match=r"entry 3 \(forget, 1 sample.*entry 2 \(fold of scan"):
        viewfold.undo(path)
    code, _, said = run(f"undo {path} --yes")
    assert code == StateFileError.exit_code
    assert "--entry 2" in said
    with pytest.raises(StateFileError, match=r"Entry 1 .* cannot"):
        viewfold.undo(path, entry=1)
    assert path.read_bytes() == content
    assert run(f"undo {path} --entry 2 --yes")[0] == 0
    assert [view.name for view in viewfold.load(path).views_] == ["labs"]


def test_undo_takes_back_the_change_that_was_named_or_none(path: Path, data: Data) -> None:
    assert taken_by_undo(path) == [2]
    extended(path, data, "a")  # by somebody else, in the meantime
    with pytest.raises(StateFileError, match=r"Entry 2 .* cannot be taken back"):
        viewfold.undo(path, entry=2)
    assert what(path) == ["fold", "fold", "extend"]


def test_a_change_of_several_folds_is_taken_back_as_one(path: Path, data: Data) -> None:
    with viewfold.edit(path) as model:
        for name in ("more", "most"):
            X, ids = data.parts()["text"]
            model.partial_fit(X, ids=ids, view=name)
    assert taken_by_undo(path) == [3, 4]
    model = viewfold.undo(path, entry=3)
    assert len(model.views_) == 2
    assert model.log_["undoes"].tolist()[-1] == 3


def test_the_log_outlives_an_undo_of_everything(data: Data, tmp_path: Path) -> None:
    path, (X, ids) = tmp_path / "p.vf", data.parts()["labs"]
    with viewfold.edit(path, new=ViewFold(4)) as model:
        model.partial_fit(X, ids=ids, view="labs")
    empty = viewfold.undo(path)
    assert not hasattr(empty, "labels_")
    assert empty.log_["what"].tolist() == ["fold", "undo"]
    model = viewfold.load(path).partial_fit(X, ids=ids, view="labs")
    model.save(path)
    assert what(path) == ["fold", "undo", "fold"]
    assert (model._state.added == 3).all()


def test_fit_in_a_file_goes_on_with_its_log(path: Path, data: Data) -> None:
    with viewfold.edit(path) as model:
        model.fit(data.views)
    assert what(path) == ["fold"] * 5
    assert [view.entry for view in viewfold.load(path).views_] == [3, 4, 5]
    assert rows(path, "SELECT DISTINCT added FROM samples") == [(3,)]
    assert viewfold.verify(path).whole


# -- forget


@pytest.mark.parametrize(
    "damage",
    ["UPDATE undo.samples SET label = 1 - label", "DELETE FROM undo.meta", "DROP TABLE undo.log"],
)
def test_forget_works_when_only_the_undo_part_is_damaged(path: Path, damage: str) -> None:
    changed(path, "DROP VIEW undo.labels_history", damage)
    with (
        pytest.warns(UserWarning, match=r"undo returns to is damaged and was left out"),
        viewfold.edit(path) as model,
    ):
        model.forget(["s3"])
    assert viewfold.verify(path).whole
    assert "s3" not in viewfold.load(path).ids_
    with pytest.raises(StateFileError, match="nothing to undo"):
        viewfold.undo(path)


def test_forgotten_and_come_again_is_not_in_what_undo_returns_to(path: Path, data: Data) -> None:
    with viewfold.edit(path) as model:
        model.forget(["s3"])
        model.extend(data.views["labs"][:1], ids=["s3"], view="labs")
    assert rows(path, "SELECT added FROM samples WHERE id = 's3'") == [(4,)]
    assert rows(path, "FROM undo.samples WHERE id = 's3'") == []


# -- files of other versions


def test_a_class_may_be_renamed(path: Path) -> None:
    model = viewfold.load(path)
    name = Landmarks.__name__
    try:
        Landmarks.__name__ = "Places"
        assert viewfold.load(path).views_[0].encoder is not None
        model.save(path)
    finally:
        Landmarks.__name__ = name
    assert viewfold.load(path).views_[0].encoder is not None
    tags = {tag for (tag,) in rows(path, "SELECT DISTINCT type FROM arrays")}
    assert tags == {
        "array",
        "directions",
        "encoder",
        "filled",
        "filling",
        "known",
        "landmarks",
        "moments",
        "profile",
        "projection",
    }
