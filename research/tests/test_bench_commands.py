"""``viewfold bench``: the commands, their help and what they answer to bad input."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from viewfold_research.bench.cli import app
from viewfold_research.bench.protocol import METRICS


def command(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_commands_print_a_table_and_nothing_else(tmp_path: Path) -> None:
    done = command("complete", "--methods", "FCMVC-IV,ViewFold", "--kmeans-runs", 2, "--jobs", 1,
                   "--out", tmp_path)  # fmt: skip
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert len(lines) == 1 + 2 * len(METRICS)
    assert all("digits" in line for line in lines[1:])
    assert "2 cells computed" in done.stderr


@pytest.mark.parametrize("name", app.commands)
def test_help_shows_an_example(name: str) -> None:
    said = command(name, "--help").output
    assert f"viewfold bench {name}" in " ".join(said.split())


def test_commands_are_read_without_what_computes() -> None:
    code = (
        "import viewfold, sys; before = set(sys.modules); import viewfold_research.bench.cli;"
        "new = set(sys.modules) - before;"
        "print(*(m for m in ('numpy', 'sklearn', 'duckdb', 'pandas', 'matplotlib', "
        "'viewfold_research.bench.run') if m in new))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["complete", "--methods", "magic"], "no method 'magic'. Known are: FCMVC-IV,"),
        (["complete", "--datasets", "wiki"], "Where is 'wiki'?"),
        (["complete", "--data", "nowhere"], "nowhere does not exist"),
        (
            ["complete", "--data", "SETS", "--datasets", "hard"],
            "no data set 'hard', only easy, noi",
        ),
        (["complete", "--order", "up"], "--order takes whole numbers"),
        (["complete", "--order", "0,1"], "has 6 views: an order names each of 0 to 5 once"),
        (["complete", "--data", "SETS", "--order", "1,0"], "suits one data set, but there are 2"),
        (["incomplete", "--ratios", "none"], "--ratios takes numbers"),
        (["incomplete", "--ratios", "1.5"], "below 1, got 1.5"),
        (["incomplete", "--masks", "none.npz"], "no file of masks none.npz"),
        (["incomplete", "--masks", "MASKS"], "is for 'hard', which is not among"),
        (["incomplete", "--data", "SETS", "--masks", "EASY"], "no masks for ratio 0.1, only [0.7]"),
        (["scale", "--sizes", "10"], "100 samples or more"),
        (["show", "--out", "nowhere"], "nowhere"),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, list) else "",
)
def test_bad_input_is_answered_in_one_line(
    bench_sets: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    for name, dataset in (("MASKS", "hard"), ("EASY", "easy")):
        path = tmp_path / f"{name}.npz"
        np.savez(path, ratios=[0.7], missing=np.zeros((1, 10, 90, 2), bool), dataset=dataset)
    places = {"SETS": bench_sets, "MASKS": tmp_path / "MASKS.npz", "EASY": tmp_path / "EASY.npz"}
    filled_in = [str(places.get(argument, argument)) for argument in arguments]
    if "--out" not in filled_in:
        filled_in += ["--out", str(tmp_path / "out")]
    found = command(*filled_in).exception
    assert isinstance(found, ValueError)
    assert said in str(found)
    assert "\n" not in str(found)
    assert not (tmp_path / "out").exists()
