"""``viewfold bench``: what was computed once survives failures, kills and other runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from bench_sets import QUICK, cells

from viewfold_research.bench.plan import Options
from viewfold_research.bench.results import Cell, Outcome, Results
from viewfold_research.bench.run import run


def test_a_repeated_run_does_nothing(bench_sets: Path, tmp_path: Path) -> None:
    options = Options(bench_sets, methods=("FCMVC-IV",), **QUICK)
    assert run("incomplete", options, tmp_path).computed == 2
    before = cells(tmp_path, "cell, finished")
    again = run("incomplete", options, tmp_path)
    assert (again.computed, again.known) == (0, 2)
    assert cells(tmp_path, "cell, finished") == before


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"kmeans_runs": 4}, {"ratios": (0.2,)}, {"draws": 2}, {"order": (1, 0)}],
    ids=lambda change: next(iter(change)),
)
def test_another_problem_is_another_cell(bench_sets: Path, tmp_path: Path, change: Any) -> None:
    options = {"data": bench_sets, "datasets": ("easy",), "methods": ("FCMVC-IV",), **QUICK}
    run("incomplete", Options(**options), tmp_path)
    assert run("incomplete", Options(**{**options, **change}), tmp_path).computed == 1
    assert len(cells(tmp_path)) == 2


def test_a_cell_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Results, table: str, number: int, columns: Any) -> None:
        if table == "curves":
            raise KeyboardInterrupt
        original(self, table, number, columns)

    original = Results._fill
    monkeypatch.setattr(Results, "_fill", broken)
    with Results(tmp_path, write=True) as results, pytest.raises(KeyboardInterrupt):
        results.add(Cell("complete", "a", "m"), Outcome(scores={"ACC": [1.0]}))
    with Results(tmp_path) as results:
        assert results.query("SELECT count(*) FROM cells") == [(0,)]
        assert results.query("SELECT count(*) FROM scores") == [(0,)]


def test_a_database_in_use_is_named_in_one_line(tmp_path: Path) -> None:
    with Results(tmp_path, write=True), pytest.raises(ValueError, match="another run") as caught:
        Results(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("other_package")
def test_failed_cells_keep_their_reason_until_retried(
    bench_sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = Options(bench_sets, ("easy",), methods=("fails", "FCMVC-IV"), kmeans_runs=1)
    report = run("complete", options, tmp_path)
    assert [status for _, status in report.failed] == ["failed: RuntimeError: no luck"]
    monkeypatch.setenv("LUCK", "again")
    assert run("complete", options, tmp_path).computed == 0
    assert run("complete", options, tmp_path, retry=True).computed == 1
    assert cells(tmp_path) == [("FCMVC-IV", "done"), ("fails", "failed: RuntimeError: again")]


class Late(ProcessPoolExecutor):
    """A pool whose first process is dead by the time that the second task comes."""

    begun = False

    def submit(self, *work: Any) -> Any:
        while self.begun and not self._broken:
            time.sleep(0.01)
        self.begun = True
        return super().submit(*work)


@pytest.mark.usefixtures("other_package")
@pytest.mark.parametrize("pool", [ProcessPoolExecutor, Late])
def test_a_process_that_dies_costs_only_its_own_cell(
    bench_sets: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pool: type[ProcessPoolExecutor],
) -> None:
    monkeypatch.setattr("viewfold_research.bench.run.ProcessPoolExecutor", pool)
    options = Options(bench_sets, ("easy",), methods=("dies", "FCMVC-IV"), kmeans_runs=1)
    run("complete", options, tmp_path / "out", jobs=2)
    assert cells(tmp_path / "out") == [("FCMVC-IV", "done"), ("dies", "out of memory")]


def test_results_do_not_depend_on_the_number_of_processes(bench_sets: Path, tmp_path: Path) -> None:
    found = []
    for jobs in (1, 2):
        out = tmp_path / str(jobs)
        run("incomplete", Options(bench_sets, methods=("FCMVC-IV",), **QUICK), out, jobs=jobs)
        with Results(out) as results:
            found.append(
                results.query(
                    "SELECT dataset, metric, run, value FROM cells JOIN scores USING (cell) "
                    "ORDER BY ALL"
                )
            )
    assert found[0] == found[1]


KILLED = """
import sys
from viewfold_research.bench.plan import Options
from viewfold_research.bench.run import run
options = Options(sys.argv[1], ("easy",), ("marks",), (0.1, 0.3), 30)
run("incomplete", options, sys.argv[2], jobs=2)
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_killed_run_loses_only_the_cells_in_progress(
    bench_sets: Path, tmp_path: Path, other_package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    path = os.pathsep.join([str(other_package), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, "MARKS": str(marks)}
    command = [sys.executable, "-c", KILLED, str(bench_sets), str(tmp_path / "out")]
    first = subprocess.Popen(command, env=env)
    while len(names := list(marks.iterdir())) < 12:
        assert first.poll() is None, "the run ended before it could be killed"
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    _wait_until_gone({int(name.suffix[1:]) for name in names})
    written = len(cells(tmp_path / "out"))
    assert len(names) - 3 <= written < 60  # two at work, one waiting
    monkeypatch.setenv("MARKS", str(marks))
    options = Options(bench_sets, ("easy",), ("marks",), (0.1, 0.3), 30)
    assert run("incomplete", options, tmp_path / "out").computed == 60 - written
    assert len(cells(tmp_path / "out", "DISTINCT ratio, draw")) == 60
    with Results(tmp_path / "out") as results:
        assert results.query("SELECT count(*), count(DISTINCT cell) FROM scores") == [(240, 60)]


def _wait_until_gone(pids: set[int]) -> None:
    """Wait for processes that compute to notice that nobody listens any more."""
    for _ in range(1000):
        if not any(_alive(pid) for pid in pids):
            return
        time.sleep(0.02)
    raise AssertionError("processes outlive the run that started them")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
