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

from viewfold_research.bench.protocol import SetSource, Task, compute
from viewfold_research.bench.results import Cell, as_setting
from viewfold_research.bench.run import PATIENCE, Ends, _cpu_seconds, answered, compute_alone


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
        "import sys\n"
        "from viewfold_research.bench.plan import Options\n"
        "from viewfold_research.bench.run import run\n"
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


def test_what_ran_out_of_time_with_the_first_scaling_is_not_tried_with_the_others() -> None:
    def task(scale: str, ratio: float = 0.0, dataset: str = "a", **more: Any) -> Task:
        setting = as_setting(scale=scale)
        cell = Cell("leaderboard", dataset, "FMR", ratio, setting=setting)
        return Task(cell, SetSource(dataset), parameters=(("scale", scale),), **more)

    first, other = task("none"), task("zscore", first=False)
    ends = Ends()
    ends.note(other, "time")
    assert ends.of(first) is None
    assert ends.of(task("zscore", 0.5, first=False)) == "time"
    again = Ends([first, other], {first.cell: "time"})
    assert again.of(other) == again.of(task("unit", 0.3, first=False)) == "time"
    assert again.of(task("none", dataset="b")) is None
    large = Ends([first, other], {first.cell: "out of memory"})  # sparse views may take less
    assert large.of(task("none", 0.3)) == "out of memory"
    assert large.of(other) is None
    ends = Ends()
    ends.note(first, "failed: by chance")
    assert ends.of(other) is None


def test_the_limit_of_time_is_for_all_scalings_of_a_problem_together() -> None:
    def tasks(method: str, ratio: float = 0.3) -> list[Task]:
        scales = ("none", "zscore", "unit")
        cells = [Cell("leaderboard", "a", method, ratio, setting=s) for s in scales]
        return [Task(c, SetSource("a"), time_limit=60, first=c is cells[0]) for c in cells]

    slow, quick, elsewhere = tasks("slow"), tasks("quick"), tasks("slow", 0.5)
    everything = [*slow, *quick, *elsewhere]
    ends = Ends(everything)
    ends.note(quick[0], "done", 19)
    ends.note(slow[0], "done", 21)
    resumed = Ends(
        everything,
        {quick[0].cell: "done", slow[0].cell: "done", slow[1].cell: "not tried"},
        {quick[0].cell: 19, slow[0].cell: 21},
    )
    for each in (ends, resumed):
        assert [each.of(task) for task in slow] == [None, "not tried", "not tried"]
        assert {each.of(task) for task in [*quick, *elsewhere]} == {None}


@LINUX
def test_a_limit_that_was_not_reached_changes_nothing(bench_sets: Path) -> None:
    cell = Cell("complete", "easy", "FCMVC-IV")
    task = Task(cell, SetSource("easy", str(bench_sets / "easy.npz")), kmeans_runs=2, time_limit=60)
    alone = compute_alone(task)
    assert alone.status == "done"
    here = compute(Task(cell, task.source, kmeans_runs=2))
    assert alone.scores == here.scores


def test_a_process_that_gets_few_turns_is_waited_for_and_one_that_sleeps_is_not() -> None:
    slow = iter([0.5 * i for i in range(100)])
    assert answered(iter([False] * 99 + [True]).__next__, slow.__next__)
    looks = iter(range(100))
    assert not answered(lambda: next(looks) < 0, lambda: 2.0)
    assert next(looks) == PATIENCE + 1  # the first look sees that it has computed something
    assert not answered(lambda: False, lambda: None)


@LINUX
def test_the_cpu_time_of_another_process_is_known() -> None:
    code = "import time\nwhile time.process_time() < 0.5: pass\nprint(1, flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert 0.3 < (_cpu_seconds(other.pid) or 0) < 2
        other.kill()
    assert _cpu_seconds(other.pid) is None


KILLED = """
import sys
from viewfold_research.bench.plan import Options
from viewfold_research.bench.run import run
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
