"""A file is called damaged for what is wrong with it, never for a question that went wrong."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import viewfold
from commands import Run, runner
from viewfold import ViewFold
from viewfold.rows import DiskEngine, using
from viewfold.store import queries


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(monkeypatch, capsys)


@pytest.fixture(scope="module", params=["n.vf", "n.vfd"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state that nobody changes."""
    path = Path(tmp_path_factory.mktemp("made") / request.param)
    model = ViewFold(2, random_state=0).fit(np.random.default_rng(0).normal(size=(30, 3)))
    with using(DiskEngine(6)):
        model.save(path)
    return path


@pytest.fixture
def state(made: Path, tmp_path: Path) -> Path:
    (shutil.copytree if made.is_dir() else shutil.copy)(made, tmp_path / made.name)
    return tmp_path / made.name


@pytest.mark.parametrize("wrong", ["--5", "-", "5-", "²", "99"])
def test_an_id_that_is_none_is_unknown_and_the_file_is_whole(
    state: Path, wrong: str, run: Run
) -> None:
    code, _, said = run(f"history {state} --id={wrong}")
    assert code == 1, said
    assert "damaged" not in said
    with pytest.raises(ValueError, match="Unknown samples"):
        viewfold.forget(state, [wrong])
    code, _, said = run(f"explain {state} --id={wrong}")
    assert "damaged" not in said
    assert "defect" not in said


def test_numbers_with_a_sign_and_zeros_are_found(state: Path, run: Run) -> None:
    assert run(f"history {state} --id=005")[0] == 0
    assert viewfold.forget(state, ["005"]).ids_.size == 29


@pytest.mark.parametrize("kind", [ValueError, KeyError, TypeError, RuntimeError, OverflowError])
def test_errors_of_a_question_stay_what_they_are(made: Path, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="mine") as error, queries.opened(made, "id"):
        raise kind("mine")
    assert type(error.value) is kind


def test_errors_of_the_file_are_still_its_damage(tmp_path: Path) -> None:
    path = tmp_path / "n.vf"
    ViewFold(2, random_state=0).fit(np.random.default_rng(0).normal(size=(30, 3))).save(path)
    with pytest.raises(viewfold.StateFileError), queries.opened(path, "id") as (db, _):
        db.sql("FROM nothing_of_this_name").fetchall()
