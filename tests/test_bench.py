"""The engine of ``viewfold bench``: protocol, methods, results that survive, and the commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_sets import cells
from conftest import SHARED, zscore
from typer.testing import CliRunner

from viewfold import FCMVC, ViewFold, metrics
from viewfold.baselines import NEMO
from viewfold.bench import methods
from viewfold.bench.cli import _numbers, app
from viewfold.bench.methods import BASELINES, takes_missing_samples
from viewfold.bench.plan import Options, plan, some_orders
from viewfold.bench.protocol import METRICS, Source, Task, compute, mask, paper_order, score
from viewfold.bench.results import Cell, Outcome, Results, slope
from viewfold.bench.run import run
from viewfold.missing import by_mask, by_paper_rule

QUICK = {"kmeans_runs": 3, "draws": 1, "ratios": (0.3,)}


# ---- protocol -----------------------------------------------------------------------------------


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
        return mask(Task(cell, Source("a")), 50, 3)

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
    task = Task(Cell("incomplete", "some", "m", 0.5, 1), Source("some"), (2, 0, 1), masks=str(path))
    assert np.array_equal(mask(task, 20, 3), given[1, 1][:, [2, 0, 1]])


def test_views_of_the_papers_sets_come_in_the_papers_order() -> None:
    def views(*widths: int) -> list[Any]:
        return [np.empty((1, width)) for width in widths]

    assert paper_order("uci-digit", views(216, 76, 64)) == (2, 1, 0)
    assert paper_order("uci-digit", views(64, 216, 76)) == (0, 2, 1)
    assert paper_order("uci-digit", views(64, 76, 216)) is None
    assert paper_order("uci-digit", views(5, 6)) is None
    assert paper_order("my own", views(216, 76, 64)) is None


def test_kmeans_runs_on_embeddings_only(folder: Path, tmp_path: Path) -> None:
    options = Options(folder, ("easy",), methods=("FCMVC-IV", "ViewFold"), **QUICK)
    run("incomplete", options, tmp_path / "out")
    with Results(tmp_path / "out") as results:
        runs = results.query(
            "SELECT method, metric, count(*) FROM cells JOIN scores USING (cell) GROUP BY ALL"
        )
    expected = {("FCMVC-IV", m, 3) for m in METRICS} | {("ViewFold", m, 1) for m in METRICS}
    assert set(runs) == expected


# ---- methods ------------------------------------------------------------------------------------


def incomplete(folder: Path) -> tuple[list[np.ndarray], np.ndarray]:
    with np.load(folder / "easy.npz") as file:
        return [file["view_0"], file["view_1"]], by_paper_rule(90, 2, 0.3, 1)


@pytest.mark.parametrize("z_step", ["paper", "exact"])
def test_fcmvc_iv_is_the_estimator_on_views_scaled_beforehand(folder: Path, z_step: str) -> None:
    views, gone = incomplete(folder)
    name = "FCMVC-IV" if z_step == "paper" else "FCMVC-IV exact"
    found = methods.find(name)(views, gone, 3, 0)
    model = FCMVC(3, scale=None, z_step=z_step, n_init=1)
    model.fit(by_mask([zscore(X) for X in views], gone))
    expected = model.embedding_[np.argsort(model.ids_)]
    assert np.allclose(found.embeddings[0], expected, atol=1e-12)
    assert [len(curve) for curve in found.curves] == [0, model.n_iter_]


def test_viewfold_gives_the_labels_that_its_users_get(folder: Path) -> None:
    views, gone = incomplete(folder)
    model = ViewFold(3, random_state=5).fit(by_mask(views, gone))
    found = methods.find("ViewFold")(views, gone, 3, 5)
    assert np.array_equal(found[model.ids_], model.labels_)


def test_filling_is_done_on_raw_features(folder: Path) -> None:
    views, gone = incomplete(folder)
    exact = {"atol": 1e-10}
    zero, mean, own = (
        methods.find(name)(views, gone, 3, 0).embeddings[0]
        for name in ("FCMVC+ZF", "FCMVC+AF", "FCMVC-IV")
    )
    by_hand = [np.where(gone[:, [v]], 0, X) for v, X in enumerate(views)]
    assert np.allclose(zero, FCMVC(3, n_init=1).fit(by_hand).embedding_, **exact)
    by_hand = [np.where(gone[:, [v]], X[~gone[:, v]].mean(axis=0), X) for v, X in enumerate(views)]
    assert np.allclose(mean, FCMVC(3, n_init=1).fit(by_hand).embedding_, **exact)
    assert not np.allclose(zero, own, atol=1e-3)  # features are far from zero here


ANY_VIEWS = [name for name in [*methods.BUILT_IN, *BASELINES] if takes_missing_samples(name)]


@pytest.mark.parametrize("name", ANY_VIEWS)
def test_methods_do_not_look_at_missing_rows(folder: Path, name: str) -> None:
    views, gone = incomplete(folder)
    if name.startswith("FCMVC-IV"):  # standardised over all rows, as in the paper
        views = [zscore(X) for X in views]
        other = views
    else:
        other = [np.where(gone[:, [v]], 1e3, X) for v, X in enumerate(views)]
    one, two = (
        methods.as_answer(methods.find(name)(which, gone, 3, 0), 90, name)
        for which in (views, other)
    )
    if one.labels is not None:
        assert np.array_equal(one.labels, two.labels)
    for a, b in zip(one.embeddings, two.embeddings, strict=True):
        assert np.allclose(a, b, atol=1e-10)


@pytest.mark.parametrize("name", list(methods.BUILT_IN))
def test_methods_take_sparse_views(folder: Path, name: str) -> None:
    from scipy import sparse

    views, gone = incomplete(folder)
    views = [np.maximum(X - 9, 0).round() for X in views]
    dense, thin = (
        methods.as_answer(methods.find(name)(which, gone, 3, 0), 90, name)
        for which in (views, [sparse.csr_array(X) for X in views])
    )
    for a, b in zip(dense.embeddings, thin.embeddings, strict=True):
        assert a.shape == b.shape
        if not name.startswith("FCMVC-IV"):  # scaled by the rows that are there
            assert np.allclose(a, b, atol=1e-8)


def test_baselines_are_what_their_users_get(folder: Path) -> None:
    views, gone = incomplete(folder)
    found = methods.find("NEMO")(views, gone, 3, 5)
    holes = [np.where(gone[:, [v]], np.nan, X) for v, X in enumerate(views)]
    model = NEMO(3, random_state=5).fit(holes)
    assert np.array_equal(found.embeddings[0], model.embedding_)
    assert found.curves == (tuple(model.objective_),)
    again = methods.find("NEMO")(holes, np.zeros_like(gone), 3, 5)
    assert np.array_equal(found.embeddings[0], again.embeddings[0])
    gone[4] = True
    with pytest.raises(ValueError, match="Sample 4 is in no view"):
        methods.find("NEMO")(views, gone, 3, 5)


def test_every_baseline_takes_part(folder: Path, tmp_path: Path) -> None:
    """Also methods for non-negative features, on others; labels count where a method has them."""
    run("complete", Options(folder, ("noisy",), tuple(BASELINES), kmeans_runs=2), tmp_path / "out")
    assert cells(tmp_path / "out") == [(name, "done") for name in sorted(BASELINES)]
    assert {"MNMF", "AGC-IMC", "FPMVS"} < set(methods.names())  # as in the paper's tables


def test_methods_for_complete_views_are_not_asked_about_others(folder: Path) -> None:
    both = {"methods": ("AMGL", "NEMO"), "ratios": (0.0, 0.3), "draws": 2}
    tasks = plan("incomplete", Options(folder, ("easy",), **both))
    assert Counter((t.cell.method, t.cell.ratio) for t in tasks) == {
        ("AMGL", 0.0): 1,
        ("NEMO", 0.0): 1,
        ("NEMO", 0.3): 2,
    }
    with pytest.raises(ValueError, match="AMGL is not for incomplete views"):
        plan("incomplete", Options(folder, ("easy",), ("AMGL",), ratios=(0.3,)))
    with np.load(folder / "easy.npz") as file:
        view = file["view_1"]
        view[:5] = np.nan
        np.savez(folder / "gaps.npz", view_0=file["view_0"], view_1=view, y=file["y"])
    with pytest.raises(ValueError, match="lack samples by themselves"):
        plan("complete", Options(folder, ("gaps",), ("AMGL",)))


def test_square_matrices_beyond_the_limit_are_out_of_memory(tmp_path: Path) -> None:
    options = Options(sizes=(10_000,), methods=("FMR",), ratios=(0.0,), memory_limit=3 * 10**9)
    run("scale", options, tmp_path)
    assert cells(tmp_path) == [("FMR", "out of memory")]


def test_best_single_view_is_that_view(folder: Path) -> None:
    source = Source("noisy", str(folder / "noisy.npz"))
    found = compute(Task(Cell("complete", "noisy", "best single view"), source, kmeans_runs=4))
    with np.load(folder / "noisy.npz") as file:
        np.savez(folder / "alone.npz", view_0=file["view_1"], y=file["y"])
    source = Source("alone", str(folder / "alone.npz"))
    alone = compute(Task(Cell("complete", "alone", "concatenated k-means"), source, kmeans_runs=4))
    assert found.scores == alone.scores


@pytest.mark.usefixtures("package")
def test_methods_of_other_packages_take_part(folder: Path, tmp_path: Path) -> None:
    assert "sums" in methods.names()
    options = Options(folder, ("easy",), methods=("sums",), **QUICK)
    run("incomplete", options, tmp_path / "out")
    assert cells(tmp_path / "out") == [("sums", "done")]


@pytest.mark.usefixtures("package")
def test_methods_that_return_nonsense_fail_with_a_reason(folder: Path, tmp_path: Path) -> None:
    run("complete", Options(folder, ("easy",), methods=("short",)), tmp_path / "out")
    ((_, status),) = cells(tmp_path / "out")
    assert status == "failed: ValueError: short returned 3 rows for 90 samples."


# ---- experiments --------------------------------------------------------------------------------


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


def test_methods_without_an_objective_say_so(folder: Path, tmp_path: Path) -> None:
    run("convergence", Options(folder, ("easy",), ("ViewFold",), ratios=(0.0,)), tmp_path)
    assert cells(tmp_path, "status") == [
        ("failed: ValueError: ViewFold has no objective to follow.",)
    ]


def test_orders_are_all_or_different_ones() -> None:
    assert len(set(some_orders(3, 10, seed=0))) == 6
    drawn = some_orders(5, 10, seed=0)
    assert len(set(drawn)) == 10
    assert all(sorted(one) == list(range(5)) for one in drawn)
    assert drawn == some_orders(5, 10, seed=0) != some_orders(5, 10, seed=1)


def test_order_is_part_of_a_cell(folder: Path, tmp_path: Path) -> None:
    options = Options(folder, ("noisy",), methods=("FCMVC-IV",), kmeans_runs=2)
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


@pytest.mark.parametrize(
    ("text", "ratios"), [("0.1..0.5", [0.1, 0.2, 0.3, 0.4, 0.5]), ("0.25,0.3", [0.25, 0.3])]
)
def test_ratios_are_a_list_or_a_range_in_tenths(text: str, ratios: list[float]) -> None:
    assert _numbers("--ratios", text) == ratios


def test_the_default_plan_is_the_papers_protocol(folder: Path) -> None:
    options = Options(folder, ("easy",), methods=("FCMVC-IV",))
    tasks = plan("incomplete", options)
    assert Counter(task.cell.ratio for task in tasks) == dict.fromkeys(
        (0.1, 0.2, 0.3, 0.4, 0.5), 10
    )
    assert {task.kmeans_runs for task in tasks} == {50}
    assert [task.cell.ratio for task in plan("complete", options)] == [0]


def test_scale_measures_time_and_memory_in_processes_of_their_own(tmp_path: Path) -> None:
    run("scale", Options(sizes=(1000, 20_000), methods=("FCMVC-IV",)), tmp_path)
    found = cells(tmp_path, "n_samples, setting, status, cpu_seconds > 0, peak_bytes > 0")
    assert [row[:3] for row in found] == [
        (1000, '{"n": 1000}', "done"),
        (20_000, '{"n": 20000}', "done"),
    ]
    assert found[1][3:] == (True, sys.platform == "linux" or None)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory by this means")
@pytest.mark.usefixtures("package")
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


# ---- results that survive -----------------------------------------------------------------------


def test_a_repeated_run_does_nothing(folder: Path, tmp_path: Path) -> None:
    options = Options(folder, methods=("FCMVC-IV",), **QUICK)
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
def test_another_problem_is_another_cell(folder: Path, tmp_path: Path, change: Any) -> None:
    options = {"data": folder, "datasets": ("easy",), "methods": ("FCMVC-IV",), **QUICK}
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


@pytest.mark.usefixtures("package")
def test_failed_cells_keep_their_reason_until_retried(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = Options(folder, ("easy",), methods=("fails", "FCMVC-IV"), kmeans_runs=1)
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


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("pool", [ProcessPoolExecutor, Late])
def test_a_process_that_dies_costs_only_its_own_cell(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: type[ProcessPoolExecutor]
) -> None:
    monkeypatch.setattr("viewfold.bench.run.ProcessPoolExecutor", pool)
    options = Options(folder, ("easy",), methods=("dies", "FCMVC-IV"), kmeans_runs=1)
    run("complete", options, tmp_path / "out", jobs=2)
    assert cells(tmp_path / "out") == [("FCMVC-IV", "done"), ("dies", "out of memory")]


def test_results_do_not_depend_on_the_number_of_processes(folder: Path, tmp_path: Path) -> None:
    found = []
    for jobs in (1, 2):
        out = tmp_path / str(jobs)
        run("incomplete", Options(folder, methods=("FCMVC-IV",), **QUICK), out, jobs=jobs)
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
from viewfold.bench.plan import Options
from viewfold.bench.run import run
options = Options(sys.argv[1], ("easy",), ("marks",), (0.1, 0.3), 30)
run("incomplete", options, sys.argv[2], jobs=2)
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_killed_run_loses_only_the_cells_in_progress(
    folder: Path, tmp_path: Path, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    path = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, "MARKS": str(marks)}
    command = [sys.executable, "-c", KILLED, str(folder), str(tmp_path / "out")]
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
    options = Options(folder, ("easy",), ("marks",), (0.1, 0.3), 30)
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


# ---- commands -----------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", [command.name or command.callback.__name__
                                  for command in app.registered_commands])  # fmt: skip
def test_help_shows_an_example(name: str) -> None:
    said = command(name, "--help").output
    assert f"viewfold bench {name}" in " ".join(said.split())


def test_commands_are_read_without_what_computes() -> None:
    code = (
        "import viewfold, sys; before = set(sys.modules); import viewfold.bench.cli;"
        "new = set(sys.modules) - before;"
        "print(*(m for m in ('numpy', 'sklearn', 'duckdb', 'pandas', 'matplotlib', "
        "'viewfold.bench.run') if m in new))"
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
        (["complete", "--order", "up"], "--order takes numbers"),
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
    folder: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    for name, dataset in (("MASKS", "hard"), ("EASY", "easy")):
        path = tmp_path / f"{name}.npz"
        np.savez(path, ratios=[0.7], missing=np.zeros((1, 10, 90, 2), bool), dataset=dataset)
    places = {"SETS": folder, "MASKS": tmp_path / "MASKS.npz", "EASY": tmp_path / "EASY.npz"}
    filled_in = [str(places.get(argument, argument)) for argument in arguments]
    if "--out" not in filled_in:
        filled_in += ["--out", str(tmp_path / "out")]
    found = command(*filled_in).exception
    assert isinstance(found, ValueError)
    assert said in str(found)
    assert "\n" not in str(found)
    assert not (tmp_path / "out").exists()


# ---- the paper's numbers ------------------------------------------------------------------------

PUBLISHED = {"proteinFold": (34.87, 43.48), "uci-digit": (85.30, 75.44), "Wiki": (57.75, 53.17)}


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data sets are not here")
@pytest.mark.parametrize("name", list(PUBLISHED))
def test_published_numbers_of_complete_views_are_met_within_two_points(
    tmp_path: Path, name: str
) -> None:
    run("complete", Options(SHARED / "data", (name,), ("FCMVC-IV",)), tmp_path)
    found = best_of_runs(tmp_path)
    assert np.abs(found - PUBLISHED[name]).max() <= 2, found


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data sets are not here")
def test_published_numbers_of_incomplete_views_are_met_with_the_authors_masks(
    tmp_path: Path,
) -> None:
    masks = SHARED / "golden" / "proteinFold-masks.npz"
    options = Options(SHARED / "data", ("proteinFold",), ("FCMVC-IV",), draws=1, masks=(masks,))
    run("incomplete", options, tmp_path)
    assert {json.loads(setting)["masks"] for (setting,) in cells(tmp_path, "setting")} == {
        masks.stem
    }
    found = best_of_runs(tmp_path)
    assert np.abs(found - (31.19, 38.26)).max() <= 2, found


def best_of_runs(out: Path) -> np.ndarray:
    """Mean over ratios and draws of the best run, ACC and NMI."""
    with Results(out) as results:
        rows = results.query(
            "SELECT metric, avg(best) FROM (SELECT metric, cell, max(value) AS best FROM scores "
            "GROUP BY ALL) WHERE metric IN ('ACC', 'NMI') GROUP BY metric ORDER BY metric"
        )
    return np.array([value for _, value in rows])
