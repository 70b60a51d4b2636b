"""benchmarks/moves.py counts the samples that a new view moves, and nobody else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import moves


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    y = np.arange(60) % 3
    rng = np.random.default_rng(0)
    clear = {f"view_{i}": 5 * np.eye(3)[y] + rng.normal(size=(60, 3)) for i in range(3)}
    np.savez(tmp_path / "clear.npz", **clear, y=y)
    np.savez(tmp_path / "noise.npz", y=y, **{k: rng.normal(size=(60, 3)) for k in clear})
    return tmp_path


def test_moves_are_of_known_samples(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "found.json"
    words = ["--data", str(folder), "--sets", "clear", "noise", "--draws", "1"]
    moves.main([*words, "--json", str(out)])
    rows = json.loads(out.read_text())
    assert len(rows) == 2 * 2 * 2, "sets, masks, views but the first"
    assert [row["last"] for row in rows] == [False, True] * 4
    by_set = {name: [row for row in rows if row["set"] == name] for name in ("clear", "noise")}
    assert max(row["moved"] for row in by_set["clear"]) < 20 < by_set["noise"][0]["moved"]
    assert min(row["ACC"] for row in by_set["clear"]) > 90
    said = capsys.readouterr().out
    moved = np.mean([row["moved"] for row in rows])
    end = np.mean([row["ACC"] for row in rows if row["last"]])
    line = next(line for line in said.splitlines() if line.startswith("| mean |")).split(" | ")
    assert float(line[1]) == pytest.approx(moved, abs=0.06)
    assert float(line[3]) == pytest.approx(end, abs=0.06)
