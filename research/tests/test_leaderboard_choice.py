"""The leaderboard: scalings and views are chosen without classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from leaderboard_runs import compute_here, save, views_of

from viewfold_research.bench import _agreement, _ranks, _tables, show
from viewfold_research.bench.plan import Options
from viewfold_research.bench.results import Cell, Outcome, Results, as_setting
from viewfold_research.bench.run import run


def scaled_badly(folder: Path) -> None:
    """Make a feature of noise so large that a method without scaling sees nothing else."""
    first, second, y = views_of(folder / "easy.npz")
    noise = 1e3 * np.random.default_rng(5).normal(size=(90, 1))
    save(folder / "tilted.npz", np.hstack([first, noise]), np.hstack([second, -noise]), y=y)


def test_the_scaling_is_chosen_by_views_and_labels_not_by_classes(
    bench_sets: Path, tmp_path: Path
) -> None:
    """Other classes for the same samples give other scores, and the same choice."""
    scaled_badly(bench_sets)
    first, second, y = views_of(bench_sets / "tilted.npz")
    (tmp_path / "other").mkdir()
    save(
        tmp_path / "other" / "tilted.npz", first, second, y=np.random.default_rng(1).permutation(y)
    )
    found = {}
    for place in (bench_sets, tmp_path / "other"):
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


def test_a_single_view_is_chosen_without_classes_too(bench_sets: Path, tmp_path: Path) -> None:
    """Classes that are in the view of noise do not make the leaderboard choose that view."""
    first, second, _ = views_of(bench_sets / "noisy.npz")
    third = second + 0.1 * np.random.default_rng(2).normal(size=second.shape)
    save(bench_sets / "noisy.npz", first, second, third, y=np.digitize(first[:, 0], [-0.5, 0.5]))
    options = Options(bench_sets, ("noisy",), ("best single view",), ratios=(0.0,))
    compute_here(options, tmp_path / "judged")
    run("complete", options, tmp_path / "oracle")
    scores = []
    for name in ("judged", "oracle"):
        with Results(tmp_path / name) as results:
            sql = "SELECT avg(value) FROM scores WHERE metric = 'ACC'"
            scores += [value for (value,) in results.query(sql)]
    assert scores[0] < scores[1] - 5


def test_agreement_looks_only_at_samples_that_a_view_has(bench_sets: Path) -> None:
    first, second, y = views_of(bench_sets / "easy.npz")
    gone = np.zeros((90, 2), bool)
    gone[:30, 0] = True
    found = _agreement.references([np.where(gone[:, [0]], np.nan, first), second], gone, 3, 0)
    assert found.shape == (2 * len(_agreement.SCALINGS), 90)
    assert ((found == _agreement.NOT_SEEN) == gone[:, [0] * 4 + [1] * 4].T).all()
    other = np.where(gone[:, 0], (y + 1) % 3, y)
    assert _agreement.agreement(y, found[:4]) == _agreement.agreement(other, found[:4]) > 50
    assert _agreement.agreement(y, found) > _agreement.agreement(other, found)


def test_single_views_are_clustered_once_for_a_problem(bench_sets: Path, tmp_path: Path) -> None:
    options = Options(bench_sets, ("easy",), ("OPIMC", "NEMO"), ratios=(0.0, 0.3), draws=2)
    compute_here(options, tmp_path)
    kept = list((tmp_path / "single-views").iterdir())
    assert len(kept) == 3  # complete, and two draws
    assert {path.suffix for path in kept} == {".npz"}
