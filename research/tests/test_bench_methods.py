"""``viewfold bench``: every method gives what its users get, and looks at present rows only."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from bench_sets import QUICK, cells, incomplete
from conftest import zscore

from viewfold import FCMVC, ViewFold
from viewfold.datasets.missing import by_mask
from viewfold_research.baselines import NEMO
from viewfold_research.bench import methods
from viewfold_research.bench.methods import BASELINES, takes_missing_samples
from viewfold_research.bench.plan import Options, plan
from viewfold_research.bench.protocol import SetSource, Task, compute
from viewfold_research.bench.results import Cell
from viewfold_research.bench.run import run


@pytest.mark.parametrize("z_step", ["paper", "exact"])
def test_fcmvc_iv_is_the_estimator_on_views_scaled_beforehand(
    bench_sets: Path, z_step: str
) -> None:
    views, gone = incomplete(bench_sets)
    name = "FCMVC-IV" if z_step == "paper" else "FCMVC-IV exact"
    found = methods.find(name)(views, gone, 3, 0)
    model = FCMVC(3, scale=None, z_step=z_step, n_init=1)
    model.fit(by_mask([zscore(X) for X in views], gone))
    expected = model.embedding_[np.argsort(model.ids_)]
    assert np.allclose(found.embeddings[0], expected, atol=1e-12)
    assert [len(curve) for curve in found.curves] == [0, model.n_iter_]


def test_viewfold_gives_the_labels_that_its_users_get(bench_sets: Path) -> None:
    views, gone = incomplete(bench_sets)
    model = ViewFold(3, random_state=5).fit(by_mask(views, gone))
    found = methods.find("ViewFold")(views, gone, 3, 5)
    assert np.array_equal(found[model.ids_], model.labels_)


def test_filling_is_done_on_raw_features(bench_sets: Path) -> None:
    views, gone = incomplete(bench_sets)
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
def test_methods_do_not_look_at_missing_rows(bench_sets: Path, name: str) -> None:
    views, gone = incomplete(bench_sets)
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
def test_methods_take_sparse_views(bench_sets: Path, name: str) -> None:
    from scipy import sparse

    views, gone = incomplete(bench_sets)
    views = [np.maximum(X - 9, 0).round() for X in views]
    dense, thin = (
        methods.as_answer(methods.find(name)(which, gone, 3, 0), 90, name)
        for which in (views, [sparse.csr_array(X) for X in views])
    )
    for a, b in zip(dense.embeddings, thin.embeddings, strict=True):
        assert a.shape == b.shape
        if not name.startswith("FCMVC-IV"):  # scaled by the rows that are there
            assert np.allclose(a, b, atol=1e-8)


def test_baselines_are_what_their_users_get(bench_sets: Path) -> None:
    views, gone = incomplete(bench_sets)
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


def test_every_baseline_takes_part(bench_sets: Path, tmp_path: Path) -> None:
    """Also methods for non-negative features, on others; labels count where a method has them."""
    run(
        "complete",
        Options(bench_sets, ("noisy",), tuple(BASELINES), kmeans_runs=2),
        tmp_path / "out",
    )
    assert cells(tmp_path / "out") == [(name, "done") for name in sorted(BASELINES)]
    assert {"MNMF", "AGC-IMC", "FPMVS"} < set(methods.names())  # as in the paper's tables


def test_methods_for_complete_views_are_not_asked_about_others(bench_sets: Path) -> None:
    both = {"methods": ("AMGL", "NEMO"), "ratios": (0.0, 0.3), "draws": 2}
    tasks = plan("incomplete", Options(bench_sets, ("easy",), **both))
    assert Counter((t.cell.method, t.cell.ratio) for t in tasks) == {
        ("AMGL", 0.0): 1,
        ("NEMO", 0.0): 1,
        ("NEMO", 0.3): 2,
    }
    with pytest.raises(ValueError, match="AMGL is not for incomplete views"):
        plan("incomplete", Options(bench_sets, ("easy",), ("AMGL",), ratios=(0.3,)))
    with np.load(bench_sets / "easy.npz") as file:
        view = file["view_1"]
        view[:5] = np.nan
        np.savez(bench_sets / "gaps.npz", view_0=file["view_0"], view_1=view, y=file["y"])
    with pytest.raises(ValueError, match="lack samples by themselves"):
        plan("complete", Options(bench_sets, ("gaps",), ("AMGL",)))


def test_square_matrices_beyond_the_limit_are_out_of_memory(tmp_path: Path) -> None:
    options = Options(sizes=(10_000,), methods=("FMR",), ratios=(0.0,), memory_limit=3 * 10**9)
    run("scale", options, tmp_path)
    assert cells(tmp_path) == [("FMR", "out of memory")]


def test_best_single_view_is_that_view(bench_sets: Path) -> None:
    source = SetSource("noisy", str(bench_sets / "noisy.npz"))
    found = compute(Task(Cell("complete", "noisy", "best single view"), source, kmeans_runs=4))
    with np.load(bench_sets / "noisy.npz") as file:
        np.savez(bench_sets / "alone.npz", view_0=file["view_1"], y=file["y"])
    source = SetSource("alone", str(bench_sets / "alone.npz"))
    alone = compute(Task(Cell("complete", "alone", "concatenated k-means"), source, kmeans_runs=4))
    assert found.scores == alone.scores


@pytest.mark.usefixtures("other_package")
def test_methods_of_other_packages_take_part(bench_sets: Path, tmp_path: Path) -> None:
    assert "sums" in methods.names()
    options = Options(bench_sets, ("easy",), methods=("sums",), **QUICK)
    run("incomplete", options, tmp_path / "out")
    assert cells(tmp_path / "out") == [("sums", "done")]


@pytest.mark.usefixtures("other_package")
def test_methods_that_return_nonsense_fail_with_a_reason(bench_sets: Path, tmp_path: Path) -> None:
    run("complete", Options(bench_sets, ("easy",), methods=("short",)), tmp_path / "out")
    ((_, status),) = cells(tmp_path / "out")
    assert status == "failed: ValueError: short returned 3 rows for 90 samples."
