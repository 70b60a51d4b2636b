"""The small rooms: metrics, missing patterns, clustering, blocks, data, import, benchmark."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.covariance import oas
from sklearn.metrics import pair_confusion_matrix

from viewfold import metrics, missing
from viewfold.clustering import Clustering, cluster, match, shrunk
from viewfold.clustering.kmeans import inertia, lloyd
from viewfold.datasets import load_digits_views
from viewfold.engine import Rows, block_bytes, reduce

ROOT = Path(__file__).resolve().parents[1]
labellings = st.integers(2, 30).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 2)
)


@given(labellings)
def test_f_score_counts_pairs(both) -> None:
    (_, wrongly_together), (wrongly_apart, together) = pair_confusion_matrix(*both)
    expected = 2 * together / max(2 * together + wrongly_together + wrongly_apart, 1)
    if 2 * together + wrongly_together + wrongly_apart == 0:
        expected = 1.0
    assert metrics.f_score(*both) == pytest.approx(expected)


@given(labellings, st.permutations(range(5)))
def test_names_of_clusters_do_not_matter(both, names) -> None:
    y, labels = both
    renamed = [names[label] for label in labels]
    assert metrics.evaluate(y, labels) == pytest.approx(metrics.evaluate(y, renamed))
    assert metrics.accuracy(y, labels) <= metrics.purity(y, labels) + 1e-12
    perfect = list(metrics.evaluate(y, y).values())
    assert perfect == pytest.approx([1.0] * 4, abs=1e-14)
    assert max(perfect) == 1.0


def test_accuracy_matches_one_cluster_to_one_class() -> None:
    # Both clusters are mostly class 0: purity counts both, accuracy one of them.
    y, labels = [0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 1, 1]
    assert metrics.accuracy(y, labels) == pytest.approx(4 / 6)
    assert metrics.purity(y, labels) == pytest.approx(5 / 6)
    assert metrics.accuracy(["a", "b"], [5, 5]) == 0.5
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        metrics.evaluate([0, 1], [0])
    with pytest.raises(ValueError, match="nothing to compare"):
        metrics.accuracy([], [])


@given(
    n=st.integers(5, 60),
    views=st.integers(1, 5),
    ratio=st.floats(0, 0.9),
    seed=st.integers(0, 99),
    rule=st.sampled_from([missing.by_paper_rule, missing.at_random]),
)
def test_patterns_have_exact_counts_and_lose_nobody(n, views, ratio, seed, rule) -> None:
    try:
        gone = rule(n, views, ratio, seed)
    except ValueError as error:
        assert "ratio" in str(error)  # noqa: PT017
        assert round(ratio * n) > 0
        if rule is missing.at_random:
            assert round(ratio * n) * views > n * (views - 1)
        return
    assert gone.shape == (n, views)
    assert (gone.sum(axis=0) == round(ratio * n)).all()
    assert not gone.all(axis=1).any()
    assert np.array_equal(gone, rule(n, views, ratio, seed))


def test_masks_take_samples_out() -> None:
    X = np.arange(10.0).reshape(5, 2)
    gone = np.zeros((5, 2), bool)
    gone[1, 0] = gone[3:, 1] = True
    a, b = missing.by_mask([X, X], gone, ids=list("abcde"))
    assert list(a.ids) == list("acde")
    assert list(b.ids) == list("abc")
    assert np.array_equal(np.vstack([block for _, block in b.rows.blocks()]), X[:3])
    already = X.copy()
    already[0] = np.nan
    assert list(missing.by_mask({"x": already}, gone[:, :1])[0].ids) == [2, 3, 4]
    with pytest.raises(ValueError, match="missing has shape"):
        missing.by_mask([X], gone)
    with pytest.raises(ValueError, match="leaves no sample in view 'view0'"):
        missing.by_mask([X], np.ones((5, 1), bool))
    with pytest.raises(ValueError, match="ratio must be"):
        missing.at_random(5, 2, 1.0)


def test_labels_follow_the_majority() -> None:
    previous = np.array([0, 0, 0, 1, 1, 2, -1])
    assert list(match(previous, np.array([2, 2, 0, 0, 0, 1, 1]), 3)) == [1, 2, 0]


def test_an_earlier_clustering_is_one_of_the_starts() -> None:
    rng = np.random.default_rng(0)
    rows = np.repeat(np.eye(30), 9, axis=0) + 0.1 * rng.normal(size=(270, 30))
    truth = np.repeat(np.arange(30), 9)
    for seed in range(5):
        one_start = {"sample": np.arange(270), "n_init": 1, "seed": seed}
        assert metrics.accuracy(truth, cluster(rows, 30, **one_start).labels) < 1
        assert np.array_equal(cluster(rows, 30, **one_start, previous=truth).labels, truth)


def test_k_means_from_given_centres_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 5)) + 3 * rng.integers(0, 2, size=(400, 5))
    ours = lloyd(rows, rows[:20])
    theirs = KMeans(20, init=rows[:20], n_init=1).fit(rows)
    assert np.array_equal(ours.labels, theirs.labels_)
    assert np.allclose(ours.centers, theirs.cluster_centers_)
    assert inertia(rows, ours.labels, 20) == pytest.approx(theirs.inertia_)


def test_k_means_fills_empty_clusters_as_long_as_rows_differ() -> None:
    rows = np.repeat(np.eye(4), 5, axis=0)
    far_away = np.full((3, 4), 9.0)
    found = lloyd(rows, np.vstack([rows[:1], far_away]))
    assert inertia(rows, found.labels, 4) == 0
    assert np.array_equal(np.unique(found.labels), [0, 1, 2, 3])
    found = lloyd(rows[:5], rows[:3])  # one distinct row for three clusters
    assert inertia(rows[:5], found.labels, 3) == 0


def test_sharpened_clusters_may_be_longer_than_they_are_apart() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 600)
    along = 0.6 * rng.normal(size=600) + 0.3 * truth
    rows = np.column_stack([truth - 0.5, along, np.full(600, 9.0)])
    rows += 0.1 * rng.normal(size=rows.shape)
    found = {
        sharpen: cluster(rows, 2, sample=np.arange(600), start="ward", sharpen=sharpen).labels
        for sharpen in (False, True)
    }
    assert metrics.accuracy(truth, found[True]) > 0.99
    assert metrics.accuracy(truth, found[False]) < 0.95


def test_scatter_is_shrunk_as_scikit_learn_does() -> None:
    rng = np.random.default_rng(0)
    for n in (8, 50, 1000):
        X = rng.normal(size=(n, 5)) * [1, 2, 3, 4, 9]
        theirs = oas(X, assume_centered=True)[0]
        ours = shrunk(np.linalg.eigvalsh(X.T @ X / n), n)
        assert np.allclose(ours, np.linalg.eigvalsh(theirs))
    assert np.array_equal(shrunk(np.full(3, 2.0), 10), np.full(3, 2.0))


def test_confidence_is_low_between_clusters() -> None:
    found = Clustering(np.empty(0, int), np.eye(2), np.eye(2)[None])
    confidence = found.confidence(np.array([[2.0, 0.0], [1.0, 0.5], [1.0, 1.0]]))
    assert confidence[0] == 1
    assert 0 < confidence[1] < 1
    assert confidence[2] == pytest.approx(0)


def test_a_large_embedding_is_clustered_from_a_sample(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 3000)
    rows = np.eye(3)[truth] + 0.05 * rng.normal(size=(3000, 3))
    monkeypatch.setattr("viewfold.clustering.sample_size", lambda _: 400)
    found = cluster(rows, 3, sample=rng.permutation(3000)[:400], seed=0)
    assert metrics.accuracy(truth, found.labels) == 1


def test_blocks_hold_only_rows_that_are_there() -> None:
    X = np.arange(40.0).reshape(10, 4)
    present = np.array([1, 2, 5, 9])
    with block_bytes(64):
        rows = Rows(X, present)
        assert np.array_equal(np.vstack([block for _, block in rows.blocks()]), X[present])
        (total,) = reduce(rows, lambda where, block: (block.sum(axis=0),), threads=3)
    assert np.array_equal(total, X[present].sum(axis=0))


def test_an_error_in_a_block_is_the_error_of_the_walk() -> None:
    def fail(where: slice, block: np.ndarray) -> tuple[np.ndarray]:
        if where.start > 4:
            raise ValueError("row 5")
        return (block.sum(axis=0),)

    with block_bytes(8), pytest.raises(ValueError, match="row 5"):
        reduce(Rows(np.ones((50, 1))), fail, threads=2)


def test_digits_views_are_made_of_one_image_each() -> None:
    digits = load_digits_views()
    assert len(digits.views) >= 4
    for X in digits.views.values():
        assert X.shape[0] == digits.target.size == 1797
        assert np.isfinite(X).all()
    # A view of some images is part of the view of all images.
    from viewfold.datasets import _digits

    images = digits.views["pixels"].reshape(-1, 8, 8)
    for name in ("fourier", "profiles", "zones", "moments", "edges"):
        part = getattr(_digits, f"_{name}")(images[5:8])
        assert np.allclose(part, digits.views[name][5:8])


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_import_brings_in_no_heavy_and_no_optional_package() -> None:
    loaded = json.loads(
        run("import sys, json, viewfold; print(json.dumps([m.split('.')[0] for m in sys.modules]))")
    )
    assert not {"numpy", "scipy", "sklearn", "pandas", "narwhals"} & set(loaded)
    loaded = json.loads(
        run(
            "import sys, json; from viewfold import FCMVC; FCMVC(2).fit([[0., 1], [2, 3], [1, 5]]);"
            "print(json.dumps([m.split('.')[0] for m in sys.modules]))"
        )
    )
    assert not {"anndata", "mudata", "dask", "h5py", "polars", "matplotlib"} & set(loaded)


def test_public_names_exist_and_are_documented() -> None:
    import viewfold

    for name in viewfold.__all__:
        assert getattr(viewfold, name).__doc__, name
        assert name in dir(viewfold)
    with pytest.raises(AttributeError, match="no attribute 'Fold'"):
        viewfold.Fold  # noqa: B018


def test_the_benchmark_runs() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "fold.py", "--quick"],
        capture_output=True,
        text=True,
        check=True,
    )
    for part in "abcde":
        assert f"({part})" in done.stdout
    assert "|ΔZ|" in done.stdout
