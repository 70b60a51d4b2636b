"""The leaderboard: what is tried in which order, and sets that lack samples by themselves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from bench_sets import cells
from leaderboard_runs import TWO, compute_here, save, views_of

from viewfold import datasets
from viewfold_research.bench import methods
from viewfold_research.bench.plan import VARIANTS, Options, plan
from viewfold_research.bench.protocol import Problem, SetSource, Task, load, mask, without_views
from viewfold_research.bench.results import Cell
from viewfold_research.bench.run import run


def test_one_draw_of_all_sets_comes_first_and_small_sets_before_large_ones(
    bench_sets: Path,
) -> None:
    first, second, y = views_of(bench_sets / "easy.npz")
    save(
        bench_sets / "a-large-one.npz",
        np.tile(first, (2, 1)),
        np.tile(second, (2, 1)),
        y=np.tile(y, 2),
    )
    save(bench_sets / "zero.npz", first[:40], second[:40], y=y[:40])
    tasks = plan("leaderboard", Options(bench_sets, methods=TWO, draws=2))
    turns = [(t.cell.draw, t.cell.dataset, t.cell.ratio) for t in tasks]
    assert list(dict.fromkeys(draw for draw, _, _ in turns)) == [0, 1]
    assert list(dict.fromkeys(name for draw, name, _ in turns if not draw)) == [
        "zero", "easy", "noisy", "a-large-one",
    ]  # fmt: skip
    assert list(dict.fromkeys(ratio for _, _, ratio in turns)) == [0.0, 0.3, 0.5]
    assert len({t.cell for t in tasks}) == len(tasks)


def test_every_method_is_tried_with_the_scalings_it_names_and_its_own_first(
    bench_sets: Path,
) -> None:
    first, second, y = views_of(bench_sets / "easy.npz")
    save(bench_sets / "positive.npz", first + 100, second + 100, y=y)
    tasks = plan("leaderboard", Options(bench_sets, ("positive",)))
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
    below_zero = plan("leaderboard", Options(bench_sets, ("noisy",), ("MNMF", "MIC")))
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


def test_parameters_reach_the_method(bench_sets: Path) -> None:
    views = [*views_of(bench_sets / "easy.npz")[:2]]
    views[0] = views[0] * [1e3, 1, 1, 1, 1, 1]
    nothing = np.zeros((90, 2), bool)
    raw, scaled = (
        methods.tuned("CMVC", {"scale": scale})(views, nothing, 3, 0).embeddings[0]
        for scale in ("none", "zscore")
    )
    assert not np.allclose(raw, scaled, atol=1e-3)
    short = methods.tuned("MNMF", {"scale": "minmax", "n_init": 1, "n_steps": 1})
    assert len(short(views, nothing, 3, 0).curves[0]) > 0


@pytest.fixture
def gaps(bench_sets: Path) -> Path:
    """A set in which both views lack samples, and one sample is in none."""
    first, second, y = views_of(bench_sets / "easy.npz")
    first[:20], second[15:30] = np.nan, np.nan
    second[0] = np.nan
    save(bench_sets / "gaps.npz", first, second, y=y, mask_1=np.zeros((90, 2), bool))
    return bench_sets


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
    problem = load(SetSource("gaps", str(gaps / "gaps.npz")))
    task = Task(Cell("leaderboard", "gaps", "m", 0.5), SetSource("gaps"))
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
