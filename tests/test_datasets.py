"""Data sets: made to measure, read from files, fetched, and listed."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from viewfold import ViewFold
from viewfold.datasets import (
    load,
    load_digits_views,
    make_multiview,
)
from viewfold.metrics import accuracy

# ---- made to measure ----------------------------------------------------------------------------


def test_the_same_seed_makes_the_same_data_and_another_one_does_not() -> None:
    first, again, other = (make_multiview(50, [3, 4], 2, random_state=s) for s in (1, 1, 2))
    assert np.array_equal(first.target, again.target)
    for name in ("view0", "view1"):
        assert np.array_equal(first.views[name], again.views[name])
        assert not np.array_equal(first.views[name], other.views[name])


def test_made_data_are_what_the_bundled_data_are() -> None:
    bundled, made = load_digits_views(), make_multiview(100, random_state=0)
    assert set(bundled) <= set(made)
    assert type(made) is type(bundled)
    assert [X.shape for X in made.views.values()] == [(100, 20), (100, 30), (100, 10)]
    assert np.bincount(made.target).tolist() == [20] * 5


def test_missing_samples_are_rows_of_nan_by_the_papers_rule() -> None:
    data = make_multiview(200, [3, 4, 5], 4, missing=0.3, random_state=0)
    assert data.missing.sum(axis=0).tolist() == [60, 60, 60]
    assert not data.missing.all(axis=1).any()
    for v, X in enumerate(data.views.values()):
        assert np.array_equal(np.isnan(X), np.repeat(data.missing[:, [v]], X.shape[1], axis=1))
    model = ViewFold(4, random_state=0).fit(data.views)
    assert [record.n_samples for record in model.views_] == [140] * 3


def test_the_clusters_are_in_every_view_as_far_as_its_noise_lets_them() -> None:
    data = make_multiview(400, [15, 15, 15], 3, noise=[0.3, 0.8, 100], random_state=0)
    found = [
        accuracy(data.target, ViewFold(3, random_state=0).fit_predict([X]))
        for X in data.views.values()
    ]
    assert found[0] == 1
    assert found[1] > 0.95
    assert found[2] < 0.5


def test_noise_is_the_deviation_about_the_centres() -> None:
    data = make_multiview(70_000, [2], 3, noise=0.25, random_state=0)  # more than one block
    X = data.views["view0"]
    for cluster in range(3):
        assert X[data.target == cluster].std(axis=0) == pytest.approx([0.25, 0.25], rel=0.02)


def test_a_million_samples_are_made_in_seconds_and_in_single_precision() -> None:
    start = time.process_time()
    data = make_multiview(10**6, [8, 4], 10, missing=0.3, dtype="float32", random_state=0)
    assert time.process_time() - start < 5
    assert {X.dtype for X in data.views.values()} == {np.dtype("float32")}
    assert np.bincount(data.target).tolist() == [10**5] * 10


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_features": []}, "n_features must name one view or more"),
        ({"n_features": [3, 0]}, r"each with a feature, got \[3, 0\]"),
        ({"n_clusters": 11}, "from 1 to the 10 samples asked for, got 11"),
        ({"noise": [1, 2]}, "noise has 2 values, but n_features names 3 views"),
        ({"noise": -1}, "noise must be finite and not negative"),
        ({"dtype": int}, "dtype must be float32 or float64, got int64"),
        ({"missing": 1.5}, "ratio must be"),
    ],
)
def test_what_cannot_be_made_is_said(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_multiview(10, **wrong)  # type: ignore[arg-type]


# ---- files --------------------------------------------------------------------------------------


def test_files_give_dense_and_sparse_views_and_classes_from_zero(tmp_path: Path) -> None:
    words = sparse.random_array((6, 9), density=0.4, format="csr", rng=0)
    parts = {f"view_1_{name}": getattr(words, name) for name in ("data", "indices", "indptr")}
    path = tmp_path / "set.npz"
    np.savez(path, view_0=np.eye(6), **parts, view_1_shape=words.shape, y=[2, 1, 2, 5, 5, 1])
    data = load(path)
    dense, text = data.views.values()
    assert np.array_equal(dense, np.eye(6))
    assert sparse.issparse(text)
    assert np.array_equal(text.toarray(), words.toarray())
    assert data.target.tolist() == [1, 0, 1, 2, 2, 0]


def test_matlab_files_of_the_field_are_read_the_same_way(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    views = np.empty((1, 2), object)
    views[0, 0], views[0, 1] = rng.normal(size=(7, 3)), rng.normal(size=(7, 4))
    path = tmp_path / "set.mat"
    scipy.io.savemat(path, {"X": views, "Y": np.array([[1, 1, 2, 2, 3, 3, 3]]).T})
    data = load(path)
    for X, expected in zip(data.views.values(), views.ravel(), strict=True):
        assert np.array_equal(X, expected)
    assert data.target.tolist() == [0, 0, 1, 1, 2, 2, 2]


def test_views_that_do_not_fit_the_classes_are_an_error(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", view_0=np.eye(4), y=[0, 1, 0])
    with pytest.raises(ValueError, match=r"4 .*3"):
        load(tmp_path / "set.npz")


def test_a_file_without_classes_has_no_target(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", view_0=np.eye(4), view_1=np.ones((4, 2)))
    assert load(tmp_path / "set.npz").target is None
