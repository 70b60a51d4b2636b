"""A .vfd folder holds what a .vf file holds, in buckets: saved, changed, taken back, asked."""

import threading
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from vfd_models import (
    N,
    by_sample,
    files_of,
    labs_and_scan,
    write_folder,
)

import viewfold
from commands import runner
from viewfold import StateFileError, ViewFold
from viewfold.errors import BusyError
from viewfold.rows import BucketRows, DiskEngine, LocalEngine, using
from viewfold.store import queries, store_of
from viewfold.store.folder import Folder, Manifest, publish


@pytest.fixture
def memory(request: pytest.FixtureRequest) -> str:
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").store.clear()
    return f"memory://bucket/{request.node.name}.vfd"


def test_a_folder_is_loaded_in_its_buckets_and_goes_on_as_the_model(tmp_path: Path) -> None:
    views = labs_and_scan()
    with using(DiskEngine(3)):
        model = ViewFold(3, n_init=2, random_state=0).partial_fit(views["labs"], view="labs")
        model.save(tmp_path / "a.vfd")
    loaded = viewfold.load(tmp_path / "a.vfd")
    assert isinstance(loaded._state.embedding, BucketRows)
    assert loaded._state.embedding.engine.n_buckets == 3
    assert by_sample(loaded) == by_sample(model)
    both = [one.partial_fit(views["scan"], view="scan") for one in (loaded, model)]
    assert both[0].embedding_.tolist() == both[1].embedding_.tolist()
    assert both[0].to_frame().equals(both[1].to_frame())


def test_a_model_can_be_saved_over_what_its_rows_are_read_from(state_folder: Path) -> None:
    model = viewfold.load(state_folder)
    expected = by_sample(model)
    model.save(state_folder)
    assert by_sample(model) == expected


def test_a_folder_can_be_loaded_into_memory(state_folder: Path) -> None:
    in_memory = viewfold.load(state_folder, engine=LocalEngine())
    assert isinstance(in_memory._state.embedding, np.ndarray)
    assert by_sample(in_memory) == by_sample(viewfold.load(state_folder))


def test_a_model_in_memory_is_saved_to_buckets_and_one_in_buckets_to_a_file(tmp_path: Path) -> None:
    model = ViewFold(2, n_init=2).fit(np.eye(12))
    with using(DiskEngine(4)):
        model.save(tmp_path / "a.vfd")
    in_buckets = viewfold.load(tmp_path / "a.vfd")
    in_buckets.save(tmp_path / "b.vf")
    again = viewfold.load(tmp_path / "b.vf")
    assert again.ids_.tolist() == list(range(12))
    assert again.embedding_.tolist() == model.embedding_.tolist()
    assert again.to_frame().equals(model.to_frame())


def test_conversion_there_and_back_keeps_everything(state_folder: Path, tmp_path: Path) -> None:
    places = [
        state_folder,
        tmp_path / "a.vf",
        tmp_path / "b.vfd",
        tmp_path / "c.vfd",
        tmp_path / "d.vf",
    ]
    buckets = [None, None, 2, 5, None]
    for i in range(1, len(places)):
        viewfold.convert(places[i - 1], places[i], n_buckets=buckets[i])
    expected = by_sample(viewfold.load(state_folder))
    for place in places[1:]:
        assert by_sample(viewfold.load(place)) == expected
        assert viewfold.verify(place).whole
    assert viewfold.load(places[3])._state.ids.engine.n_buckets == 5
    with pytest.raises(ValueError, match="exists"):
        viewfold.convert(places[0], places[1])
    with pytest.raises(ValueError, match="has no buckets"):
        viewfold.convert(places[0], tmp_path / "e.vf", n_buckets=3)
    expected = by_sample(viewfold.undo(state_folder))
    for place in places[1:]:
        undone = by_sample(viewfold.undo(place))
        assert undone["embedding"] == expected["embedding"]
        assert len(undone["log"]) == 3


def test_changes_are_taken_back_and_states_returned_to(state_folder: Path) -> None:
    before = by_sample(viewfold.load(state_folder))
    with viewfold.edit(state_folder) as model:
        model.recluster(2)
    assert model.labels_.max() == 1  # its rows are those that were written
    with store_of(state_folder).reading() as contents:
        assert [one["entry"] for one in contents.list_kept()] == [2, 1]
    undone = by_sample(viewfold.undo(state_folder))
    assert {**undone, "log": 0} == {**before, "log": 0}
    assert viewfold.undo(state_folder, to=1)._state.names == ["labs"]
    assert viewfold.load(state_folder).log_["what"].tolist()[-2:] == ["undo", "restore"]
    assert viewfold.undo(state_folder)._state.names == ["labs", "scan"]
    with pytest.raises(StateFileError, match="does not hold the state after entry 9"):
        viewfold.undo(state_folder, to=9)
    assert viewfold.verify(state_folder).whole


def test_an_error_in_an_edit_leaves_the_folder_as_it_was(
    state_folder: Path, tmp_path: Path
) -> None:
    before = files_of(state_folder)
    with (
        pytest.raises(ValueError, match="more than there are"),
        viewfold.edit(state_folder) as model,
    ):
        model.recluster(2).recluster(1000)
    assert files_of(state_folder) == before
    with pytest.raises(KeyError), viewfold.edit(tmp_path / "new.vfd", new=ViewFold(2)):
        raise KeyError
    assert not (tmp_path / "new.vfd").exists()


def test_questions_are_answered_as_of_a_file(state_folder: Path, tmp_path: Path) -> None:
    viewfold.convert(state_folder, tmp_path / "a.vf")

    def rows(table) -> list[dict]:
        return sorted(table.rows(), key=lambda row: row["id"])

    for question in (queries.status, queries.log, queries.names):
        assert question(state_folder) == question(tmp_path / "a.vf")
    for question in (queries.labels, queries.everything, queries.embedded):
        assert rows(question(state_folder)) == rows(question(tmp_path / "a.vf"))
    assert rows(queries.movers(state_folder, "scan")) == rows(
        queries.movers(tmp_path / "a.vf", "scan")
    )
    one = "patient-030"
    assert queries.way(state_folder, one) == queries.way(tmp_path / "a.vf", one) != []


def test_samples_known_by_row_number_come_in_order(tmp_path: Path) -> None:
    with viewfold.edit(
        tmp_path / "a.vfd", new=ViewFold(2, n_init=2), engine=DiskEngine(3)
    ) as model:
        model.partial_fit(np.eye(12), view="labs")
    assert queries.labels(tmp_path / "a.vfd")["id"].tolist() == list(range(12))


def test_duckdb_reads_it_with_one_read_parquet(state_folder: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "format.md").read_text()
    block = page.partition("```sql\nSET VARIABLE")[2].partition("```")[0]
    with duckdb.connect() as db:
        lines = f"SET VARIABLE{block}".replace("patients.vfd", str(state_folder)).split(";\n")
        *_, last = (db.sql(line) for line in lines if line.strip())
        found = last.fetchall()
    frame = viewfold.load(state_folder).to_frame()
    assert dict(found) == frame["cluster"].value_counts().to_dict()


def test_a_folder_of_this_format_still_loads(tmp_path: Path) -> None:
    import json
    import shutil

    formats = Path(__file__).parent / "formats"
    expected = json.loads((formats / "folder-4.json").read_text())
    path = shutil.copytree(formats / "folder-4.vfd", tmp_path / "a.vfd")
    model = viewfold.load(path)
    assert model.to_frame()["cluster"].to_dict() == expected["labels"]
    assert [event.what for event in model._state.log] == expected["log"]
    rows = pd.DataFrame(expected["rows"], columns=["lab0", "lab1", "lab2"])
    assert model.predict(rows, view="labs").tolist() == expected["predicted"]
    assert viewfold.verify(path).whole
    assert viewfold.undo(path)._state.n_samples == expected["before"]


# -- where there are no locks


def test_a_folder_can_be_anywhere(memory: str) -> None:
    write_folder(memory)
    with viewfold.edit(memory) as model:
        model.recluster(2)
    assert viewfold.verify(memory).whole
    assert queries.status(memory)["clusters"] == 2
    assert viewfold.undo(memory).n_clusters == 3
    left = viewfold.forget(memory, ["patient-050"])
    assert left.ids_.size == N - 1
    viewfold.convert(memory, f"{memory[:-4]}-2.vfd", n_buckets=2)
    assert by_sample(viewfold.load(f"{memory[:-4]}-2.vfd")) == by_sample(left)


def test_of_two_writers_the_first_to_finish_wins_and_the_other_leaves_nothing(memory: str) -> None:
    write_folder(memory)
    begun, done = threading.Event(), threading.Event()
    refused = []

    def slow() -> None:
        try:
            with viewfold.edit(memory) as model:
                model.recluster(5)
                begun.set()
                done.wait(60)
        except BusyError as error:
            refused.append(str(error))

    other = threading.Thread(target=slow)
    other.start()
    begun.wait(60)
    with viewfold.edit(memory) as model:
        model.recluster(2)
    here = sorted(Folder.at(memory).names())
    done.set()
    other.join()
    assert "was changed by another program since it was read" in refused[0]
    assert sorted(Folder.at(memory).names()) == here
    assert viewfold.load(memory).n_clusters == 2


def test_a_number_is_never_used_twice(memory: str, tmp_path: Path) -> None:
    for place in (memory, tmp_path / "a.vfd"):
        folder = Folder.at(place)
        folder.make()
        manifest = Manifest(4, 1, ())
        publish(folder, manifest)
        with pytest.raises(BusyError):
            publish(folder, manifest)
        with pytest.raises(BusyError):  # it was used, and cleared away
            publish(folder, Manifest(2, 1, ()))
        assert folder.names() == ["manifest-000004.json"]


def test_commands_take_a_folder(
    state_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    run = runner(monkeypatch, capsys)
    more = pd.DataFrame(np.random.default_rng(1).normal(size=(N, 3)), columns=list("abc"))
    more.insert(0, "id", [f"patient-{i:03d}" for i in range(N)])
    more.to_csv(tmp_path / "more.csv", index=False)
    for line in (
        f"inspect {tmp_path}/more.csv --id id --state {state_folder}",
        f"add {state_folder} {tmp_path}/more.csv --id id",
        f"status {state_folder}",
        f"labels {state_folder} -o {tmp_path}/labels.csv",
        f"undo {state_folder} --yes",
        f"convert {state_folder} {tmp_path}/a.vf",
    ):
        code, _, said = run(line)
        assert code == 0, said
    assert (tmp_path / "labels.csv").stat().st_mode & 0o777 == 0o600
    viewfold.ViewFold(3).save(tmp_path / "e.vfd")
    assert run(f"labels {tmp_path}/e.vfd")[0] == 1
    code, _, said = run(f"labels {state_folder} -o {state_folder}/labels.csv")
    assert (code, "is a state file" in said) == (1, True)
