"""Tables of results: means, maxima and deviations as the paper forms them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bench_results import line, scores

from viewfold_research.bench import show
from viewfold_research.bench.results import Cell, Outcome, Results, as_setting


def raw(folder: Path, experiment: str, dataset: str, method: str, metric: str) -> np.ndarray:
    """Runs of all cells: ratios × draws × runs."""
    with Results(folder) as database:
        rows = database.query(
            "SELECT list(value ORDER BY run) FROM cells JOIN scores USING (cell) WHERE "
            "(experiment, dataset, method, metric) = (?, ?, ?, ?) GROUP BY ratio, draw "
            "ORDER BY ratio, draw",
            [experiment, dataset, method, metric],
        )
    return np.array([row[0] for row in rows]).reshape(len(rows) // 3 or 1, -1, len(rows[0][0]))


def test_complete_table_has_mean_and_max_and_is_compared_by_its_max(results_folder: Path) -> None:
    runs = raw(results_folder, "complete", "uci-digit", "FCMVC-IV", "ACC")
    row = line(show.tables(results_folder)["complete"], "uci-digit", "FCMVC-IV")
    assert row["mean"] == pytest.approx(runs.mean())
    assert row["std"] == pytest.approx(runs.std(ddof=1))
    assert row["max"] == pytest.approx(runs.max())
    assert (row["runs"], row["published"]) == (50, 85.30)
    assert row["difference"] == pytest.approx(runs.max() - 85.30)
    assert row["source"] == "comlete_result: ACC, uci-digit; FCMVC"


def test_incomplete_table_aggregates_over_ratios_as_the_paper_does(results_folder: Path) -> None:
    runs = raw(results_folder, "incomplete", "Wiki", "FCMVC+ZF", "NMI")
    assert runs.shape == (5, 3, 50)
    row = line(show.tables(results_folder)["incomplete"], "Wiki", "FCMVC+ZF", "NMI")
    for name, draws in (("mean", runs.mean(axis=2)), ("max", runs.max(axis=2))):
        ratios = draws.mean(axis=1)
        std = {"mean": "std", "max": "max_std"}[name]
        assert row[name] == pytest.approx(ratios.mean())
        assert row[std] == pytest.approx(ratios.std(ddof=1))
    assert row["ratios"] == "0.1, 0.2, 0.3, 0.4, 0.5"
    assert (row["published"], row["published_std"]) == (34.32, 6.73)
    assert row["difference"] == pytest.approx(row["max"] - 34.32)


def test_an_average_over_other_ratios_is_not_compared_with_the_papers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with Results(tmp_path, write=True) as database:
        for ratio in (0.1, 0.3, 0.5):
            cell = Cell("incomplete", "Wiki", "FCMVC-IV", ratio)
            database.add(cell, Outcome(scores=scores(rng, 0, 5), n_samples=9))
    row = line(show.tables(tmp_path)["incomplete"], "Wiki", "FCMVC-IV")
    assert (row["ratios"], row["published"]) == ("0.1, 0.3, 0.5", 45.38)
    assert np.isnan(row["difference"])


def test_bands_over_ratios_are_deviations_over_draws(results_folder: Path) -> None:
    runs = raw(results_folder, "incomplete", "Wiki", "FCMVC-IV", "F")
    table = show.tables(results_folder)["ratios"]
    row = line(table[table["ratio"] == 0.3], "Wiki", "FCMVC-IV", "F")
    assert row["mean"] == pytest.approx(runs[2].mean())
    assert row["std"] == pytest.approx(runs[2].mean(axis=1).std(ddof=1))
    assert row["draws"] == 3


def test_a_method_that_ran_out_of_memory_has_a_row_that_says_so(results_folder: Path) -> None:
    tables = show.tables(results_folder)
    for name in ("complete", "incomplete"):
        row = line(tables[name], "Wiki", "IMG")
        assert np.isnan(row["mean"])
        assert row["note"] == "out of memory"
    assert line(tables["incomplete"], "Wiki", "IMG")["published_note"] == "out of memory"
    assert tables["failures"]["cells"].sum() == 1 + 1 + 15 + 2
    big = tables["scale"].query("method == 'IMG' and n_samples == 100_000").iloc[0]
    assert big["note"] == "out of memory"  # although the cell itself could not say its size


def test_time_is_relative_to_fcmvc(results_folder: Path) -> None:
    table = show.tables(results_folder)["time"].set_index(["dataset", "method"])
    assert table.loc[("uci-digit", "FCMVC-IV"), "relative"] == 1
    seconds = table.loc["uci-digit", "cpu_seconds"]
    assert table.loc[("uci-digit", "IMG"), "relative"] == pytest.approx(
        seconds["IMG"] / seconds["FCMVC-IV"]
    )


def test_order_table_has_the_spread_over_orders(results_folder: Path) -> None:
    with Results(results_folder) as database:
        means = [
            row[0]
            for row in database.query(
                "SELECT avg(value) FROM cells JOIN scores USING (cell) WHERE experiment = 'order' "
                "AND dataset = 'uci-digit' AND method = 'FCMVC-IV' AND metric = 'ACC' GROUP BY cell"
            )
        ]
    row = line(show.tables(results_folder)["order"], "uci-digit", "FCMVC-IV")
    assert row["orders"] == len(means) == 6
    assert row["lowest"] == pytest.approx(min(means))
    assert row["spread"] == pytest.approx(max(means) - min(means))


def test_a_rise_of_the_objective_is_counted_and_round_off_is_not(results_folder: Path) -> None:
    table = show.tables(results_folder)["convergence"].set_index(["method", "view"])
    assert table["rose"].to_dict() == {
        ("FCMVC-IV", 0): 0,
        ("FCMVC-IV", 1): 0,
        ("FCMVC-IV", 2): 1,
        ("FCMVC-IV exact", 0): 0,
        ("FCMVC-IV exact", 1): 0,
        ("FCMVC-IV exact", 2): 0,
    }
    assert table.loc[("FCMVC-IV", 2), "iterations"] == 15
    assert table.loc[("FCMVC-IV exact", 2), "change"] == pytest.approx(-20, abs=0.1)


def test_results_in_another_order_of_views_are_kept_apart(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with Results(tmp_path, write=True) as database:
        for setting in ("{}", as_setting(order=[1, 0])):
            for seed in (0, 1):
                cell = Cell("complete", "Wiki", "FCMVC-IV", setting=setting, seed=seed)
                database.add(cell, Outcome(scores=scores(rng, 0, 5), n_samples=9))
    table = show.tables(tmp_path)["complete"]
    assert set(table["dataset"]) == {"Wiki (order of the file)", "Wiki (order [1, 0])"}
    assert set(table["runs"]) == {10}  # another seed is more of the same
    assert set(table[table["metric"] == "ACC"]["published"]) == {57.75}


def test_a_folder_without_results_is_an_error_and_an_empty_one_is_not(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not exist"):
        show.tables(tmp_path)
    with Results(tmp_path, write=True):
        pass
    assert show.tables(tmp_path) == {}
    assert show.figures(tmp_path) == {}
    (page,) = show.write(tmp_path, ["html"])
    assert "none yet" in page.read_text(encoding="utf-8")
