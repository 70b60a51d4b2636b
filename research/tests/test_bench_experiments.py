"""``viewfold bench``: convergence, order and scale measure what they say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from bench_sets import cells

from viewfold_research.bench.plan import Options
from viewfold_research.bench.results import Results, slope
from viewfold_research.bench.run import run


def test_convergence_shows_that_the_papers_objective_can_rise_and_the_exact_one_does_not(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(0)
    views = {f"view_{v}": rng.normal(size=(24, 3)) @ rng.normal(size=(3, 3)) for v in range(3)}
    np.savez(tmp_path / "small.npz", **views, y=np.arange(24) % 3)
    names = ("FCMVC-IV", "FCMVC-IV exact")
    options = Options(tmp_path, methods=names, ratios=(0.4,), draws=5)
    run("convergence", options, tmp_path / "out")
    with Results(tmp_path / "out") as results:
        curves = results.query(
            "SELECT method, draw, view, list(objective ORDER BY iteration), min(iteration) "
            "FROM curves JOIN cells USING (cell) GROUP BY ALL"
        )
    assert len(curves) == 2 * 5 * 2  # the first view needs no iterations
    assert {(view, first) for _, _, view, _, first in curves} == {(1, 1), (2, 1)}
    rises = dict.fromkeys(names, 0)
    for method, _, _, objective, _ in curves:
        rises[method] += int(np.diff(objective).max() > 1e-9 * abs(objective[0]))
    assert rises["FCMVC-IV"] > 0 == rises["FCMVC-IV exact"]


def test_methods_without_an_objective_say_so(bench_sets: Path, tmp_path: Path) -> None:
    run("convergence", Options(bench_sets, ("easy",), ("ViewFold",), ratios=(0.0,)), tmp_path)
    assert cells(tmp_path, "status") == [
        ("failed: ValueError: ViewFold has no objective to follow.",)
    ]


def test_order_is_part_of_a_cell(bench_sets: Path, tmp_path: Path) -> None:
    options = Options(bench_sets, ("noisy",), methods=("FCMVC-IV",), kmeans_runs=2)
    run("order", options, tmp_path)
    with Results(tmp_path) as results:
        found = dict(
            results.query(
                "SELECT setting, avg(value) FROM cells JOIN scores USING (cell) "
                "WHERE metric = 'ACC' GROUP BY ALL"
            )
        )
    scores = {tuple(json.loads(setting)["order"]): value for setting, value in found.items()}
    assert scores[0, 1] > scores[1, 0] + 20  # the last view decides: clear, or noise


def test_scale_measures_time_and_memory_in_processes_of_their_own(tmp_path: Path) -> None:
    run("scale", Options(sizes=(1000, 20_000), methods=("FCMVC-IV",)), tmp_path)
    found = cells(tmp_path, "n_samples, setting, status, cpu_seconds > 0, peak_bytes > 0")
    assert [row[:3] for row in found] == [
        (1000, '{"n": 1000}', "done"),
        (20_000, '{"n": 20000}', "done"),
    ]
    assert found[1][3:] == (True, sys.platform == "linux" or None)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory by this means")
@pytest.mark.usefixtures("other_package")
def test_memory_limit_gives_a_status(tmp_path: Path) -> None:
    options = Options(sizes=(1000,), methods=("greedy", "FCMVC-IV"), memory_limit=2 * 10**9)
    run("scale", options, tmp_path)
    assert cells(tmp_path, "method, status, n_samples") == [
        ("FCMVC-IV", "done", 1000),
        ("greedy", "out of memory", 1000),
    ]


def test_slope_is_the_exponent_of_a_power_law() -> None:
    sizes = [10, 100, 1000]
    assert slope(sizes, [7 * n**1.5 for n in sizes]) == pytest.approx(1.5)
    with pytest.raises(ValueError, match="two sizes"):
        slope([10, 10], [1, 2])
