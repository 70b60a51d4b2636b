"""One step back, errors that leave the file as it was, readers and writers at once."""

import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from conftest import Data
from every_estimator import folded
from store_models import HERE, kept_states, learned

import viewfold
from viewfold import FCMVC, StateFileError, ViewFold, store
from viewfold.rows import DiskEngine


def test_undo_returns_to_the_state_before_the_last_fold(data: Data, tmp_path: Path) -> None:
    path, parts = tmp_path / "model.vf", data.parts()
    del parts["text"]
    for name, (X, ids) in parts.items():
        with viewfold.edit(path, new=ViewFold(4, n_init=1, random_state=0)) as model:
            before = None if name == "labs" else learned(model)
            model.partial_fit(X, ids=ids, view=name)
        undone = viewfold.undo(path)
        if before is None:
            assert not hasattr(undone, "labels_")
        else:
            assert learned(undone) == before == learned(viewfold.load(path))
        with pytest.raises(StateFileError, match="nothing to undo"):
            viewfold.undo(path)
        with viewfold.edit(path) as model:
            model.partial_fit(X, ids=ids, view=name)
    assert learned(viewfold.load(path)) == learned(
        folded(ViewFold(4, n_init=1, random_state=0), parts)
    )


def test_undo_returns_to_a_generator_as_it_was(data: Data, tmp_path: Path) -> None:
    path = tmp_path / "model.vf"
    FCMVC(4, n_init=1, random_state=np.random.RandomState(3)).fit(data.views).save(path)
    before = learned(viewfold.load(path))
    with viewfold.edit(path) as model:
        model.partial_fit(data.views["labs"], view="again")
    assert learned(model) != before
    assert learned(viewfold.undo(path)) == before


def test_undo_does_not_bring_back_the_forgotten(model_file: Path, data: Data) -> None:
    with viewfold.edit(model_file) as model:
        model.partial_fit(data.views["labs"], ids=[f"s{i}" for i in range(160)], view="more")
    with viewfold.edit(model_file) as model:
        model.forget(["s3", "s4"])
    undone = viewfold.undo(model_file, entry=4)
    assert [view.name for view in undone.views_] == list(data.views)
    assert undone.ids_.size == 158
    assert "s3" not in undone.ids_


def engine_of(name: str) -> DiskEngine | None:
    """Return few buckets for a new folder."""
    return DiskEngine(6) if name.endswith(".vfd") else None


def view_of(n: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, 4))


@pytest.mark.parametrize("name", ["p.vf", "p.vfd"])
def test_who_came_by_the_last_change_stays_when_another_is_forgotten(
    name: str, tmp_path: Path
) -> None:
    path, new = tmp_path / name, ViewFold(2, n_init=1, random_state=0)
    with viewfold.edit(path, new=new, keep=3, engine=engine_of(name)) as model:
        model.partial_fit(view_of(30), ids=range(30), view="labs")
    with viewfold.edit(path) as model:  # 30 … 39 came by entry 2, the last before the forget
        model.partial_fit(view_of(40), ids=range(40), view="scan")
    with viewfold.edit(path) as model:
        model.forget([3]).recluster(3)
    assert sorted(viewfold.undo(path).ids_) == [i for i in range(40) if i != 3]
    assert sorted(viewfold.undo(path, entry=2).ids_) == [i for i in range(30) if i != 3]


@pytest.mark.parametrize("name", ["p.vf", "p.vfd"])
def test_who_is_forgotten_and_comes_back_is_gone_from_all_earlier_states(
    name: str, tmp_path: Path
) -> None:
    path, new = tmp_path / name, ViewFold(2, n_init=1, random_state=0)
    with viewfold.edit(path, new=new, keep=3, engine=engine_of(name)) as model:
        model.partial_fit(view_of(30), ids=range(30), view="labs")
    with viewfold.edit(path) as model:  # the first change after the forget brings 3 again
        model.forget([3]).partial_fit(view_of(30), ids=range(30), view="scan")
    assert sorted(viewfold.load(path).ids_) == list(range(30))
    assert sorted(viewfold.undo(path, entry=3).ids_) == [i for i in range(30) if i != 3]


@pytest.mark.parametrize("name", ["p.vf", "p.vfd"])
def test_who_is_fitted_anew_is_not_forgotten(name: str, tmp_path: Path) -> None:
    path, new = tmp_path / name, ViewFold(2, n_init=1, random_state=0)
    with viewfold.edit(path, new=new, engine=engine_of(name)) as model:
        model.partial_fit(view_of(30), ids=range(30), view="labs")
    with viewfold.edit(path) as model:  # all of them came by the last entry now
        model.fit(view_of(30), ids=range(30))
    assert sorted(viewfold.undo(path).ids_) == list(range(30))


def test_who_is_forgotten_before_the_first_write_is_not_in_the_file(
    stored_model: Any, tmp_path: Path
) -> None:
    path = tmp_path / "new.vf"
    with viewfold.edit(path, new=stored_model) as model:
        model.forget(["s3"])
    assert "s3" not in viewfold.load(path).ids_
    assert not kept_states(path)
    with pytest.raises(StateFileError, match="cannot be taken back"):
        viewfold.undo(path)


def test_an_error_leaves_the_file_as_it_was(model_file: Path) -> None:
    content = model_file.read_bytes()
    with pytest.raises(ValueError, match="has 6 features"), viewfold.edit(model_file) as model:
        model.forget(["s3"]).partial_fit(np.eye(6), ids=list("abcdef"), view="labs")
    with viewfold.edit(model_file) as model:
        model.predict(np.ones((2, 7)), view="text")
    assert model_file.read_bytes() == content
    assert sorted(p.name for p in model_file.parent.iterdir()) == [".model.vf.lock", "model.vf"]


def test_a_writer_that_may_not_wait_says_so(model_file: Path) -> None:
    content = model_file.read_bytes()
    with store.writing(model_file):
        done = []

        def try_it() -> None:
            with pytest.raises(StateFileError, match="being written by another"):
                viewfold.load(model_file).save(model_file, wait=0.1)
            done.append(True)

        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
    assert done
    assert model_file.read_bytes() == content


def test_readers_are_not_kept_waiting_and_see_whole_states(model_file: Path) -> None:
    seen = set()
    with duckdb.connect(model_file, read_only=True) as reader:
        with viewfold.edit(model_file) as model:
            ids = [f"s{i}" for i in range(160)]
            model.partial_fit(np.random.default_rng(0).normal(size=(160, 4)), ids=ids)
            seen.add(
                len(viewfold.load(shutil.copy(model_file, model_file.with_name("copy.vf"))).views_)
            )
        assert reader.sql("SELECT count(*) FROM views").fetchall() == [(3,)]
    assert seen == {3}
    assert len(viewfold.load(model_file).views_) == 4


@pytest.mark.slow
def test_killed_and_simultaneous_writers_leave_a_whole_file() -> None:
    script = HERE / "crash.py"
    asked = ["--times", "7", "--pairs", "1", "--samples", "500"]
    done = subprocess.run([sys.executable, script, *asked], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 kills: " in done.stdout
    assert "1 folded both, 0 refused one, 0 wrong" in done.stdout
