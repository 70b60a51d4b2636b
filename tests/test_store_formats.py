"""Files of every earlier format can be changed and taken back, and damage in them is found."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from store_models import HERE, changed

import viewfold
from viewfold import StateFileError
from viewfold.store import kept as _kept
from viewfold.store import queries


@pytest.fixture
def format_1(tmp_path: Path) -> Path:
    return Path(shutil.copy(HERE / "formats" / "1.vf", tmp_path))


def test_a_file_of_format_1_can_be_changed_and_taken_back(format_1: Path) -> None:
    before = viewfold.load(format_1).to_frame()
    with viewfold.edit(format_1) as model:
        more = np.random.default_rng(0).normal(size=(len(model.ids_), 4))
        model.partial_fit(more, ids=model.ids_, view="more")
    assert viewfold.load(format_1).log_["view"].tolist()[2:] == ["more"]
    assert viewfold.verify(format_1).whole
    undone = viewfold.undo(format_1)
    assert undone.to_frame().equals(before)
    assert viewfold.load(format_1).log_["what"].tolist() == ["fold", "fold", "fold", "undo"]


def test_in_a_file_of_format_1_there_is_a_log_and_nothing_to_undo(format_1: Path) -> None:
    assert [event.what for event in queries.log(format_1)] == ["fold", "fold"]
    assert _kept.held(format_1).states == ()
    with pytest.raises(StateFileError, match="nothing to undo"):
        viewfold.undo(format_1)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE samples SET confidence = confidence / 2",
        "UPDATE views SET n_new = n_new + 1",
        "UPDATE arrays SET by_column = NOT by_column WHERE name = 'projection'",
    ],
)
def test_a_changed_file_of_format_1_is_refused(format_1: Path, statement: str) -> None:
    with pytest.raises(StateFileError, match="changed by another program"):
        viewfold.load(changed(format_1, statement))
