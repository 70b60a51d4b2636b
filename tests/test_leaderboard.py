"""The leaderboard: what is tried and chosen, what runs out, how it ranks, and what is shown."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench_sets import cells
from scipy.stats import friedmanchisquare, rankdata
from typer.testing import CliRunner

from viewfold import datasets
from viewfold.bench import _agreement, _board, _ranks, _tables, methods, show
from viewfold.bench.cli import app
from viewfold.bench.plan import VARIANTS, Options, plan
from viewfold.bench.protocol import Problem, Source, Task, compute, load, mask, without_views
from viewfold.bench.results import Cell, Outcome, Results, as_setting
from viewfold.bench.run import Ends, compute_alone, run

TWO = ("ViewFold", "OPIMC")


def save(path: Path, *views: np.ndarray, y: np.ndarray, **more: Any) -> None:
    np.savez(path, **{f"view_{v}": X for v, X in enumerate(views)}, y=y, **more)


def views_of(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    with np.load(path) as file:
        return file["view_0"], file["view_1"], file["y"]


def compute_here(options: Options, out: Path) -> None:
    """Compute a leaderboard in this process, which takes less time than processes of their own."""
    with Results(out, write=True) as results:
        for task in plan("leaderboard", options):
            task = replace(task, judged=str(out / "single-views"), time_limit=None)
            results.add(task.cell, compute(task))


# ---- what is tried ------------------------------------------------------------------------------


def test_one_draw_of_all_sets_comes_first_and_small_sets_before_large_ones(folder: Path) -> None:
    first, second, y = views_of(folder / "easy.npz")
    save(
        folder / "a-large-one.npz", np.tile(first, (2, 1)), np.tile(second, (2, 1)), y=np.tile(y, 2)
    )
    save(folder / "zero.npz", first[:40], second[:40], y=y[:40])
    tasks = plan("leaderboard", Options(folder, methods=TWO, draws=2))
    turns = [(t.cell.draw, t.cell.dataset, t.cell.ratio) for t in tasks]
    assert list(dict.fromkeys(draw for draw, _, _ in turns)) == [0, 1]
    assert list(dict.fromkeys(name for draw, name, _ in turns if not draw)) == [
        "zero", "easy", "noisy", "a-large-one",
    ]  # fmt: skip
    assert list(dict.fromkeys(ratio for _, _, ratio in turns)) == [0.0, 0.3, 0.5]
    assert len({t.cell for t in tasks}) == len(tasks)


def test_every_method_is_tried_with_the_scalings_it_names_and_its_own_first(folder: Path) -> None:
    first, second, y = views_of(folder / "easy.npz")
    save(folder / "positive.npz", first + 100, second + 100, y=y)
    tasks = plan("leaderboard", Options(folder, ("positive",)))
    assert not {t.cell.method for t in tasks} & set(VARIANTS)
    for name, of in methods.BASELINES.items():
        mine = [t for t in tasks if t.cell.method == name]
        scalings = getattr(methods.baselines, of).scalings
        whole = [dict(t.parameters)["scale"] for t in mine if not t.cell.ratio]
        assert whole == list(scalings)
        assert {dict(t.parameters)["scale"] for t in mine if t.first} == {scalings[0]}
        asked = {t.cell.ratio for t in mine}
        assert asked == ({0.0, 0.3, 0.5} if methods.takes_missing_samples(name) else {0.0})
    assert all(t.first and not t.parameters for t in tasks if t.cell.method == "ViewFold")
    below_zero = plan("leaderboard", Options(folder, ("noisy",), ("MNMF", "MIC")))
    assert {dict(t.parameters)["scale"] for t in below_zero} == {"minmax"}
    assert all(t.first for t in below_zero)


def test_slow_methods_take_fewer_steps_on_large_sets_and_the_cell_says_so(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    wide = rng.random((1000, 250))
    save(tmp_path / "many.npz", wide, wide, y=np.arange(1000) % 2)
    save(tmp_path / "few.npz", rng.random((90, 2)), rng.random((90, 2)), y=np.arange(90) % 2)
    tasks = plan("leaderboard", Options(tmp_path, methods=("MNMF",), ratios=(0.0,)))
    found = {t.cell.dataset: json.loads(t.cell.setting) for t in tasks if t.first}
    assert found == {
        "few": {"scale": "none"},
        "many": {"scale": "none", "n_init": 5, "n_steps": 50},
    }
    for name, table in methods.LIGHTER.items():
        of = getattr(methods.baselines, methods.BASELINES[name])
        for *_, fewer in table:
            assert all(of(2).get_params()[p] > value for p, value in fewer.items())


def test_parameters_reach_the_method(folder: Path) -> None:
    views = [*views_of(folder / "easy.npz")[:2]]
    views[0] = views[0] * [1e3, 1, 1, 1, 1, 1]
    nothing = np.zeros((90, 2), bool)
    raw, scaled = (
        methods.tuned("CMVC", {"scale": scale})(views, nothing, 3, 0).embeddings[0]
        for scale in ("none", "zscore")
    )
    assert not np.allclose(raw, scaled, atol=1e-3)
    short = methods.tuned("MNMF", {"scale": "minmax", "n_init": 1, "n_steps": 1})
    assert len(short(views, nothing, 3, 0).curves[0]) > 0


# ---- data that lack samples by themselves -------------------------------------------------------


@pytest.fixture
def gaps(folder: Path) -> Path:
    """A set in which both views lack samples, and one sample is in none."""
    first, second, y = views_of(folder / "easy.npz")
    first[:20], second[15:30] = np.nan, np.nan
    second[0] = np.nan
    save(folder / "gaps.npz", first, second, y=y, mask_1=np.zeros((90, 2), bool))
    return folder


def test_masks_in_a_file_are_no_views(gaps: Path) -> None:
    assert list(datasets.load(gaps / "gaps.npz").views) == ["view_0", "view_1"]


def test_samples_that_a_file_lacks_are_missing_for_every_method(gaps: Path, tmp_path: Path) -> None:
    names = tuple(n for n in [*methods.BUILT_IN, "NEMO", "OPIMC"])
    options = Options(gaps, ("gaps",), names, ratios=(0.0, 0.5), draws=1)
    run("incomplete", options, tmp_path / "incomplete")
    compute_here(options, tmp_path / "leaderboard")
    for name in ("incomplete", "leaderboard"):
        found = cells(tmp_path / name, "DISTINCT status, n_samples")
        assert found == [("done", 84)]  # six samples are in no view
    assert not [t for t in plan("leaderboard", Options(gaps, ("gaps",))) if t.cell.method == "AMGL"]


def test_no_sample_is_drawn_out_of_its_last_view(gaps: Path) -> None:
    problem = load(Source("gaps", str(gaps / "gaps.npz")))
    task = Task(Cell("leaderboard", "gaps", "m", 0.5), Source("gaps"))
    drawn = mask(task, 84, 2)
    gone = without_views(drawn, problem.lacking)
    assert (drawn | problem.lacking).all(axis=1).any()
    assert not gone.all(axis=1).any()
    assert (gone >= problem.lacking).all()
    kept = ~(drawn | problem.lacking).all(axis=1)
    assert np.array_equal(gone[kept], (drawn | problem.lacking)[kept])


def test_negative_features_are_found_in_dense_and_sparse_views() -> None:
    from scipy import sparse

    y, empty = np.zeros(2, int), np.array([[np.nan, np.nan], [1, 2]])
    assert not Problem([empty, sparse.csr_array((2, 2))], y).negative
    assert Problem([sparse.csr_array([[0, -1.0], [0, 0]])], y).negative
    assert Problem([np.array([[np.nan, np.nan], [1, -2]])], y).negative


# ---- the choice without classes -----------------------------------------------------------------


def scaled_badly(folder: Path) -> None:
    """Make a feature of noise so large that a method without scaling sees nothing else."""
    first, second, y = views_of(folder / "easy.npz")
    noise = 1e3 * np.random.default_rng(5).normal(size=(90, 1))
    save(folder / "tilted.npz", np.hstack([first, noise]), np.hstack([second, -noise]), y=y)


def test_the_scaling_is_chosen_by_views_and_labels_not_by_classes(
    folder: Path, tmp_path: Path
) -> None:
    """Other classes for the same samples give other scores, and the same choice."""
    scaled_badly(folder)
    first, second, y = views_of(folder / "tilted.npz")
    (tmp_path / "other").mkdir()
    save(
        tmp_path / "other" / "tilted.npz", first, second, y=np.random.default_rng(1).permutation(y)
    )
    found = {}
    for place in (folder, tmp_path / "other"):
        out = tmp_path / f"out-{place.name}"
        options = Options(place, ("tilted",), ("AMGL", "CMVC", "OPIMC", "NEMO"), ratios=(0.0,))
        compute_here(options, out)
        found[place.name] = _ranks.tried(_tables.read(out))
    one, two = (frame.sort_values(["method", "scale"]) for frame in found.values())
    assert one["agreement"].tolist() == two["agreement"].tolist()
    assert one["counts"].tolist() == two["counts"].tolist()
    assert not np.allclose(one["ACC"], two["ACC"], atol=5)
    assert one.groupby("method")["counts"].sum().eq(1).all()


def test_the_choice_can_differ_from_a_methods_own_scaling_and_from_the_best(tmp_path: Path) -> None:
    with Results(tmp_path, write=True) as database:
        for scale, agreed, accuracy in (("none", 30.0, 90.0), ("zscore", 50.0, 70.0)):
            scores = {m: [accuracy] for m in _tables.METRICS} | {"agreement": [agreed]}
            cell = Cell("leaderboard", "a", "FMR", setting=as_setting(scale=scale))
            database.add(cell, Outcome(scores=scores, n_samples=9))
    made = show.tables(tmp_path)
    assert made["leaderboard"][["scale", "ACC"]].to_numpy().tolist() == [["zscore", 70.0]]
    (line,) = made["scalings"].to_dict("records")
    assert (line["own"], line["chosen"], line["best"], line["own_counts"]) == (90, 70, 90, 0)


def test_equal_agreement_leaves_a_method_its_own_scaling(tmp_path: Path) -> None:
    with Results(tmp_path, write=True) as database:
        for scale in ("unit", "none", "zscore"):  # in any order
            scores = {m: [50.0] for m in _tables.METRICS} | {"agreement": [40.0]}
            cell = Cell("leaderboard", "a", "LMVSC", setting=as_setting(scale=scale))
            database.add(cell, Outcome(scores=scores, n_samples=9))
    assert show.tables(tmp_path)["leaderboard"]["scale"].tolist() == ["zscore"]


def test_a_single_view_is_chosen_without_classes_too(folder: Path, tmp_path: Path) -> None:
    """Classes that are in the view of noise do not make the leaderboard choose that view."""
    first, second, _ = views_of(folder / "noisy.npz")
    third = second + 0.1 * np.random.default_rng(2).normal(size=second.shape)
    save(folder / "noisy.npz", first, second, third, y=np.digitize(first[:, 0], [-0.5, 0.5]))
    options = Options(folder, ("noisy",), ("best single view",), ratios=(0.0,))
    compute_here(options, tmp_path / "judged")
    run("complete", options, tmp_path / "oracle")
    scores = []
    for name in ("judged", "oracle"):
        with Results(tmp_path / name) as results:
            sql = "SELECT avg(value) FROM scores WHERE metric = 'ACC'"
            scores += [value for (value,) in results.query(sql)]
    assert scores[0] < scores[1] - 5


def test_agreement_looks_only_at_samples_that_a_view_has(folder: Path) -> None:
    first, second, y = views_of(folder / "easy.npz")
    gone = np.zeros((90, 2), bool)
    gone[:30, 0] = True
    found = _agreement.references([np.where(gone[:, [0]], np.nan, first), second], gone, 3, 0)
    assert found.shape == (2 * len(_agreement.SCALINGS), 90)
    assert ((found == _agreement.NOT_SEEN) == gone[:, [0] * 4 + [1] * 4].T).all()
    other = np.where(gone[:, 0], (y + 1) % 3, y)
    assert _agreement.agreement(y, found[:4]) == _agreement.agreement(other, found[:4]) > 50
    assert _agreement.agreement(y, found) > _agreement.agreement(other, found)


def test_single_views_are_clustered_once_for_a_problem(folder: Path, tmp_path: Path) -> None:
    options = Options(folder, ("easy",), ("OPIMC", "NEMO"), ratios=(0.0, 0.3), draws=2)
    compute_here(options, tmp_path)
    kept = list((tmp_path / "single-views").iterdir())
    assert len(kept) == 3  # complete, and two draws
    assert {path.suffix for path in kept} == {".npz"}


# ---- limits -------------------------------------------------------------------------------------


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "marks").mkdir()
    monkeypatch.setenv("MARKS", str(tmp_path / "marks"))
    return tmp_path / "marks"


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")


@LINUX
def test_a_method_out_of_time_is_told_so_and_not_asked_again_on_the_same_set(
    folder: Path, tmp_path: Path, package: Path, marks: Path
) -> None:
    # A new process, because the server of processes may run already without the other package.
    code = (
        "import sys\nfrom viewfold.bench.plan import Options\nfrom viewfold.bench.run import run\n"
        "methods = ('spins', 'ViewFold')\n"
        "options = Options(sys.argv[1], ('easy',), methods, (0, 0.3), 2, time_limit=1)\n"
        "run('leaderboard', options, sys.argv[2])\n"
    )
    path = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", code, folder, tmp_path / "out"], env=env, check=True)
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
        return Task(cell, Source(dataset), parameters=(("scale", scale),), **more)

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
def test_a_limit_that_was_not_reached_changes_nothing(folder: Path) -> None:
    cell = Cell("complete", "easy", "FCMVC-IV")
    task = Task(cell, Source("easy", str(folder / "easy.npz")), kmeans_runs=2, time_limit=60)
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
    folder: Path, tmp_path: Path, package: Path, marks: Path
) -> None:
    path = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-c", KILLED, str(folder), str(tmp_path / "out")]
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


# ---- ranks --------------------------------------------------------------------------------------

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


# ---- what is shown ------------------------------------------------------------------------------


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
    folder: Path, tmp_path: Path
) -> None:
    words = ["leaderboard", "--data", folder, "--methods", "ViewFold,OPIMC,FCMVC-IV"]
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
