"""`add --dry-run` does all but write: it says what a fold would do, and touches no file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from commands import Run, runner
from viewfold import store


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run a command in a folder with two views of two groups of samples."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    for name, which in (("labs", slice(0, 40)), ("scan", slice(20, 60))):
        X = 6 * y[:, None] + rng.normal(size=(60, 5))
        frame = pd.DataFrame(X, index=pd.Index([f"p{i}" for i in range(60)], name="patient"))
        frame[which].add_prefix(name).to_csv(f"{name}.csv")

    return runner(monkeypatch, capsys)


def _folder(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def _answer(out: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(out)
    del answer["seconds"]
    return answer


def test_what_is_told_is_what_add_does_and_no_file_is_touched(run: Run, tmp_path: Path) -> None:
    for line in (
        "add s.vf labs.csv --id patient --clusters 2",
        "add s.vf scan.csv --id patient",
        "add s.vf scan.csv --id patient --view again --clusters 3 --private",
    ):
        before = _folder(tmp_path)
        code, out, _ = run(f"{line} --dry-run --json")
        assert code == 0
        assert _folder(tmp_path) == before
        told = _answer(out)
        assert told.pop("dry_run")
        done = _answer(run(f"{line} --json")[1])
        assert not done.pop("dry_run")
        assert told == done


def test_an_error_is_the_error_of_add(run: Run, tmp_path: Path) -> None:
    assert run("add s.vf labs.csv --id patient --clusters 2")[0] == 0
    before = _folder(tmp_path)
    for line in ("add t.vf scan.csv --id patient", "add s.vf scan.csv --id x"):
        refused = run(f"{line} --dry-run")
        assert refused[0] == 1
        assert refused == run(line)
    assert _folder(tmp_path) == before


def test_nobody_waits_for_another_writer(run: Run) -> None:
    assert run("add s.vf labs.csv --id patient --clusters 2")[0] == 0
    with store.writing("s.vf"):
        assert run("add s.vf scan.csv --id patient --dry-run --wait 0")[0] == 0


def test_a_person_is_told_that_nothing_was_written(run: Run) -> None:
    said = run("add s.vf labs.csv --id patient --clusters 2 --dry-run")[2]
    assert "labs: 40 samples" in said
    assert "dry run: s.vf is as it was" in said
