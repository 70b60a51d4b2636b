"""The leaderboard: ranks, comparisons and differences, and the page that shows them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.stats import friedmanchisquare, rankdata

from viewfold_research.bench import _board, _ranks, _tables, show
from viewfold_research.bench.cli import app
from viewfold_research.bench.results import Cell, Outcome, Results

TABLE = {  # accuracy by data set at 0 %; None: out of time
    "one": {"ViewFold": 90, "A": 80, "B": 80, "C": None},
    "two": {"ViewFold": 70, "A": 80, "B": 69.5, "C": None},
    "three": {"ViewFold": 60, "A": 50, "B": 61, "C": 99},
    "four": {"ViewFold": None, "A": 50, "B": 40, "C": None},
}


def fill(folder: Path, table: dict[str, Any], ratio: float = 0.0, draws: int = 1) -> None:
    with Results(folder, write=True) as database:
        for dataset, row in table.items():
            for method, value in row.items():
                for draw in range(draws):
                    scores = {m: [value] for m in _tables.METRICS} | {"agreement": [1.0]}
                    done = Outcome(scores=scores, cpu_seconds=2.0, peak_bytes=10**6, n_samples=50)
                    outcome = Outcome("time", n_samples=50) if value is None else done
                    database.add(Cell("leaderboard", dataset, method, ratio, draw), outcome)


def test_ranks_are_those_of_scipy_and_what_did_not_end_is_last(tmp_path: Path) -> None:
    fill(tmp_path, TABLE)
    found = show.tables(tmp_path)["ranks"].set_index("method")
    values = np.array(
        [[np.nan if v is None else v for v in row.values()] for row in TABLE.values()]
    )
    expected = rankdata(-np.nan_to_num(values, nan=-1), axis=1)
    assert expected.tolist() == [[1, 2.5, 2.5, 4], [2, 1, 3, 4], [3, 4, 2, 1], [3.5, 1, 2, 3.5]]
    for method, rank in zip(TABLE["one"], expected.mean(axis=0), strict=True):
        assert found.loc[method, "rank"] == pytest.approx(rank)
    assert found["p_equal"].iloc[0] == pytest.approx(friedmanchisquare(*expected.T).pvalue)
    assert found.loc["ViewFold", ["finished", "sets"]].tolist() == [3, 4]
    assert found["rank"].is_monotonic_increasing


def test_comparisons_of_two_count_an_end_as_better_than_none(tmp_path: Path) -> None:
    fill(tmp_path, TABLE)
    found = show.tables(tmp_path)["ranks"].set_index("method")[["better", "even", "worse"]]
    assert found.loc[["A", "B", "C"]].to_numpy().tolist() == [[2, 0, 2], [1, 2, 1], [2, 1, 1]]
    assert found.loc["ViewFold"].isna().all()


def test_a_point_of_accuracy_is_no_difference_and_more_is_one(tmp_path: Path) -> None:
    others = {"A": 61, "B": 59, "C": 61.125, "D": 58.875}
    fill(tmp_path, {"one": {"ViewFold": 60, **others}})
    found = show.tables(tmp_path)["ranks"].set_index("method")[["better", "even", "worse"]]
    assert found.loc[["A", "B"]].to_numpy().tolist() == [[0, 1, 0], [0, 1, 0]]
    assert found.loc[["C", "D"]].to_numpy().tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    ("methods_", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)], ids=str
)
def test_critical_differences_are_those_of_the_published_table(methods_: int, q: float) -> None:
    """The values of q at 5 % in Demsar's table (JMLR 7, 2006)."""
    expected = q * np.sqrt(methods_ * (methods_ + 1) / (6 * 30))
    assert _ranks.critical_difference(methods_, 30) == pytest.approx(expected, rel=1e-3)


def test_a_set_counts_where_every_method_was_asked(tmp_path: Path) -> None:
    """Sets that lack samples, and sets that the run has not come to, are shown and not ranked."""
    part = {name: value for name, value in TABLE["one"].items() if name != "C"}
    fill(tmp_path, {**TABLE, "lacks samples": part})
    fill(tmp_path, {"one": part, "two": part}, ratio=0.3)
    made = show.tables(tmp_path)
    counted = made["ranks"].groupby("ratio")[["sets", "finished"]].max()
    assert counted["sets"].to_dict() == {0.0: 4, 0.3: 2}
    assert "lacks samples" in set(made["leaderboard"]["dataset"])
    assert "C" not in set(made["ranks"].query("ratio == 0.3")["method"])


def test_a_draw_that_did_not_end_leaves_no_score(tmp_path: Path) -> None:
    fill(tmp_path, {"one": {"ViewFold": 90, "A": 80, "B": 30}}, ratio=0.3, draws=2)
    with Results(tmp_path, write=True) as database:
        database.add(Cell("leaderboard", "one", "A", 0.3, 1), Outcome("time", n_samples=50))
    lines = show.tables(tmp_path)["leaderboard"].set_index("method")
    assert lines["ACC"].isna().to_dict() == {"ViewFold": False, "A": True, "B": False}
    assert lines["note"].to_dict() == {"ViewFold": "", "A": "time", "B": ""}
    assert lines.loc["ViewFold", "draws"] == 2


def test_groups_are_the_longest_runs_within_the_difference() -> None:
    ranks = [1.0, 1.4, 2.0, 2.1, 5.0]
    assert _board.groups(ranks, 1.0) == [(0, 2), (1, 3)]
    assert _board.groups(ranks, 0.05) == []
    assert _board.groups(ranks, 9.0) == [(0, 4)]


def test_the_page_needs_nothing_from_outside_and_names_cannot_break_it(tmp_path: Path) -> None:
    hostile = "<img src=x onerror=alert(1)>&"
    table = {
        f"{name}{hostile}": {("A<b>" if m == "A" else m): v for m, v in row.items()}
        for name, row in TABLE.items()
    }
    fill(tmp_path, table)
    fill(tmp_path, table, ratio=0.5)
    (path,) = show.write(tmp_path, ["html"])
    page = path.read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="(?!#)[^"]*"|@import|<script|<link|url\((?!#)', page)
    assert "<img" not in page
    assert "A<b>" not in page
    assert "A&lt;b&gt;" in page
    for name in ("leaderboard-0", "leaderboard-50"):
        assert f'<figure aria-label="{name}"><svg role="img"' in page
    for text in ("mean rank", "ViewFold is", "CPU s", "memory, MB", "time", "Choice of scaling"):
        assert (text in page) == (text != "Choice of scaling")  # no method had several here


def test_the_diagram_names_every_method_and_the_difference(tmp_path: Path) -> None:
    fill(tmp_path, TABLE)
    (figure,) = show.figures(tmp_path).values()
    texts = [text.get_text() for text in figure.axes[0].texts]
    for name in TABLE["one"]:
        assert any(name in text.split() for text in texts)
    difference = _ranks.critical_difference(4, 4)
    assert f"critical difference {difference:.2f}, 4 data sets" in texts


def test_the_command_writes_a_page_and_csv_and_repeats_nothing(
    bench_sets: Path, tmp_path: Path
) -> None:
    words = ["leaderboard", "--data", bench_sets, "--methods", "ViewFold,OPIMC,FCMVC-IV"]
    words += ["--datasets", "easy", "--ratios", "0", "--jobs", "1", "--out", str(tmp_path)]
    first, again = (CliRunner().invoke(app, list(map(str, words))) for _ in range(2))
    assert first.exit_code == again.exit_code == 0
    assert "0 cells computed" in again.stderr
    assert "rank" in first.stdout
    assert str(tmp_path / "results.html") in first.stdout
    table = pd.read_csv(tmp_path / "leaderboard.csv")
    assert table["method"].tolist() == ["ViewFold", "FCMVC-IV", "OPIMC"]
    assert {"ACC", "NMI", "cpu_seconds", "peak_bytes", "scale", "note"} <= set(table)
    assert table["ACC"].notna().all()
    assert (tmp_path / "ranks.csv").exists()
