"""``viewfold bench``: scores, masks, orders and plans are those of the paper's protocol."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_sets import QUICK

from viewfold import metrics
from viewfold.datasets.missing import by_paper_rule
from viewfold_research.bench.plan import Options, plan, some_orders
from viewfold_research.bench.protocol import METRICS, SetSource, Task, mask, paper_order, score
from viewfold_research.bench.results import Cell, Results
from viewfold_research.bench.run import run


@pytest.mark.parametrize("clusters", [1, 3, 7])
def test_scores_are_those_of_metrics(clusters: int) -> None:
    rng = np.random.default_rng(clusters)
    for classes in (1, 2, 5):
        y = np.r_[np.arange(classes), rng.integers(classes, size=40)]
        labels = 10 * rng.integers(clusters, size=len(y))
        expected = [100 * value for value in metrics.evaluate(y, labels).values()]
        assert score(y, labels) == pytest.approx(expected, abs=1e-9)


def test_masks_follow_the_papers_rule_and_the_seed() -> None:
    def drawn(**parts: Any) -> np.ndarray:
        cell = Cell(**{"experiment": "incomplete", "dataset": "a", "method": "m", **parts})
        return mask(Task(cell, SetSource("a")), 50, 3)

    first = drawn(ratio=0.3)
    assert first.sum(axis=0).tolist() == [15, 15, 15]
    assert not first.all(axis=1).any()
    assert np.array_equal(first, drawn(ratio=0.3, method="another", experiment="time"))
    for other in ({"draw": 1}, {"seed": 1}, {"dataset": "b"}):
        assert not np.array_equal(first, drawn(ratio=0.3, **other))
    assert not drawn(ratio=0.0).any()


def test_given_masks_are_taken_and_follow_the_order_of_views(tmp_path: Path) -> None:
    given = np.stack([[by_paper_rule(20, 3, r, d) for d in range(2)] for r in (0.1, 0.5)])
    path = tmp_path / "some-masks.npz"
    np.savez(path, ratios=[0.1, 0.5], missing=given)
    task = Task(
        Cell("incomplete", "some", "m", 0.5, 1), SetSource("some"), (2, 0, 1), masks=str(path)
    )
    assert np.array_equal(mask(task, 20, 3), given[1, 1][:, [2, 0, 1]])


def test_views_of_the_papers_sets_come_in_the_papers_order() -> None:
    def views(*widths: int) -> list[Any]:
        return [np.empty((1, width)) for width in widths]

    assert paper_order("uci-digit", views(216, 76, 64)) == (2, 1, 0)
    assert paper_order("uci-digit", views(64, 216, 76)) == (0, 2, 1)
    assert paper_order("uci-digit", views(64, 76, 216)) is None
    assert paper_order("uci-digit", views(5, 6)) is None
    assert paper_order("my own", views(216, 76, 64)) is None


def test_kmeans_runs_on_embeddings_only(bench_sets: Path, tmp_path: Path) -> None:
    options = Options(bench_sets, ("easy",), methods=("FCMVC-IV", "ViewFold"), **QUICK)
    run("incomplete", options, tmp_path / "out")
    with Results(tmp_path / "out") as results:
        runs = results.query(
            "SELECT method, metric, count(*) FROM cells JOIN scores USING (cell) GROUP BY ALL"
        )
    expected = {("FCMVC-IV", m, 3) for m in METRICS} | {("ViewFold", m, 1) for m in METRICS}
    assert set(runs) == expected


def test_orders_are_all_or_different_ones() -> None:
    assert len(set(some_orders(3, 10, seed=0))) == 6
    drawn = some_orders(5, 10, seed=0)
    assert len(set(drawn)) == 10
    assert all(sorted(one) == list(range(5)) for one in drawn)
    assert drawn == some_orders(5, 10, seed=0) != some_orders(5, 10, seed=1)


def test_the_default_plan_is_the_papers_protocol(bench_sets: Path) -> None:
    options = Options(bench_sets, ("easy",), methods=("FCMVC-IV",))
    tasks = plan("incomplete", options)
    assert Counter(task.cell.ratio for task in tasks) == dict.fromkeys(
        (0.1, 0.2, 0.3, 0.4, 0.5), 10
    )
    assert {task.kmeans_runs for task in tasks} == {50}
    assert [task.cell.ratio for task in plan("complete", options)] == [0]
