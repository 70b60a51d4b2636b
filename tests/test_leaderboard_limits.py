"""The leaderboard: limits of time, and a killed run goes on where it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from bench_sets import cells

from viewfold.bench.protocol import SetSource, Task, compute
from viewfold.bench.results import Cell, as_setting
from viewfold.bench.run import Ends, compute_alone


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "marks").mkdir()
    monkeypatch.setenv("MARKS", str(tmp_path / "marks"))
    return tmp_path / "marks"


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")


@LINUX
def test_a_method_out_of_time_is_told_so_and_not_asked_again_on_the_same_set(
    bench_sets: Path, tmp_path: Path, other_package: Path, marks: Path
) -> None:
    # A new process, because the server of processes may run already without the other package.
    code = (
        "import sys\nfrom viewfold.bench.plan import Options\nfrom viewfold.bench.run import run\n"
        "methods = ('spins', 'ViewFold')\n"
        "options = Options(sys.argv[1], ('easy',), methods, (0, 0.3), 2, time_limit=1)\n"
        "run('leaderboard', options, sys.argv[2])\n"
    )
    path = os.pathsep.join([str(other_package), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", code, bench_sets, tmp_path / "out"], env=env, check=True)
    found = Counter(cells(tmp_path / "out", "dataset, method, status"))
    assert found == {
        ("easy", "spins", "time"): 3,  # complete, and two draws
        ("easy", "ViewFold", "done"): 3,
    }
    assert len(list(marks.iterdir())) == 1


def test_what_ran_out_with_the_first_scaling_is_not_tried_with_the_others() -> None:
    def task(scale: str, ratio: float = 0.0, dataset: str = "a", **more: Any) -> Task:
        setting = as_setting(scale=scale)
        cell = Cell("leaderboard", dataset, "FMR", ratio, setting=setting)
        return Task(cell, SetSource(dataset), parameters=(("scale", scale),), **more)

    first, other = task("none"), task("zscore", first=False)
    ends = Ends((), {})
    ends.note(other, "time")
    assert ends.of(first) is None
    assert ends.of(task("zscore", 0.5, first=False)) == "time"
    again = Ends([first, other], {first.cell: "out of memory"})
    assert again.of(other) == again.of(task("unit", 0.3, first=False)) == "out of memory"
    assert again.of(task("none", dataset="b")) is None
    ends = Ends((), {})
    ends.note(first, "failed: by chance")
    assert ends.of(other) is None


@LINUX
def test_a_limit_that_was_not_reached_changes_nothing(bench_sets: Path) -> None:
    cell = Cell("complete", "easy", "FCMVC-IV")
    task = Task(cell, SetSource("easy", str(bench_sets / "easy.npz")), kmeans_runs=2, time_limit=60)
    alone = compute_alone(task)
    assert alone.status == "done"
    here = compute(Task(cell, task.source, kmeans_runs=2))
    assert alone.scores == here.scores


KILLED = """
import sys
from viewfold.bench.plan import Options
from viewfold.bench.run import run
options = Options(sys.argv[1], ("easy",), ("marks",), (0.3, 0.5), 5)
run("leaderboard", options, sys.argv[2], jobs=2)
"""


@LINUX
def test_a_killed_leaderboard_goes_on_where_it_was(
    bench_sets: Path, tmp_path: Path, other_package: Path, marks: Path
) -> None:
    path = os.pathsep.join([str(other_package), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-c", KILLED, str(bench_sets), str(tmp_path / "out")]
    first = subprocess.Popen(command, env=env)
    while len(list(marks.iterdir())) < 4:
        assert first.poll() is None, "the run ended before it could be killed"
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = set(cells(tmp_path / "out", "ratio, draw, finished"))
    assert 0 < len(before) < 10
    asked = len(list(marks.iterdir()))
    subprocess.run(command, env=env, check=True)
    after = set(cells(tmp_path / "out", "ratio, draw, finished"))
    assert before < after
    assert len({row[:2] for row in after}) == len(after) == 10
    assert len(list(marks.iterdir())) - asked <= 10 - len(before) + 2  # those that were under way
