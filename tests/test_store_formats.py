"""A state of an earlier format is refused: the error says who wrote it, and what to do."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from store_models import HERE

import viewfold
from viewfold import StateFileError
from viewfold.store import queries

ACTS: list[Any] = [viewfold.load, viewfold.undo, queries.labels, queries.log]


@pytest.mark.parametrize("name", ["1.vf", "3.vf", "folder-1.vfd"])
def test_a_state_of_an_earlier_format_says_how_to_go_on(name: str, tmp_path: Path) -> None:
    old, path = HERE / "formats" / name, tmp_path / name
    (shutil.copytree if old.is_dir() else shutil.copy)(old, path)
    said = r"has format [13], written by viewfold 0\.1.*reads format 4 only; make it anew"
    for act in ACTS:
        with pytest.raises(StateFileError, match=said):
            act(path)
    with pytest.raises(StateFileError, match=said), viewfold.edit(path):
        pass
    verdict = viewfold.verify(path)
    assert "make it anew from the data" in verdict.problems[0]
