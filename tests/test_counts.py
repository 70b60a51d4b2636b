"""Clusters of counts do not follow depth: how much was counted says nothing about a sample."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

import viewfold
from viewfold import ViewFold
from viewfold.method.scaling import Counts, scale_of
from viewfold.metrics import accuracy

K, N = 4, 600
Y = np.arange(N) % K


def cells(d: int = 150, seed: int = 0, per_column: float = 1.0) -> np.ndarray:
    """Counts of cells of four types, whose depth does not depend on the type."""
    rng = np.random.default_rng(seed)
    level = rng.lognormal(0, 0.7, d)
    rate = level * np.exp(rng.normal(0, 1.5, (K, d)) * (rng.random((K, d)) < 0.2))
    rate /= rate.sum(axis=1, keepdims=True)
    depth = d * per_column * rng.lognormal(0, 0.8, (N, 1))
    return rng.poisson(rate[Y] * depth).astype(float)


def scaled_by(model: ViewFold) -> object:
    return model.views_[0].encoder.encode.project.text


GENES, PROTEINS = cells(), cells(60, per_column=20)


@pytest.mark.parametrize("held", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("X", "ratio"), [(GENES, False), (PROTEINS, True)])
def test_clusters_of_counts_are_types_and_not_depths(held, X: np.ndarray, ratio: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ViewFold(K, random_state=0).fit(held(X))
    assert isinstance(found := scaled_by(model), Counts)
    assert found.ratio == ratio
    assert accuracy(Y, model.labels_) > 0.95
    with pytest.warns(UserWarning, match="follow the depth"):
        raw = ViewFold(K, scale="tfidf", random_state=0).fit(held(unrelated(X)))
    assert accuracy(Y, raw.labels_) < 0.5


def unrelated(X: np.ndarray) -> np.ndarray:
    """Counts of the same depths, in which there is nothing but depth."""
    share = X.sum(axis=1, keepdims=True) * X.mean(axis=0) / X.sum(axis=1).mean()
    return np.random.default_rng(1).poisson(0.1 * share).astype(float)


def test_dense_and_sparse_counts_are_scaled_alike() -> None:
    for scale in (Counts(30.0, False), Counts(0.5, True)):
        dense = scale(GENES)
        held = scale(sparse.csr_array(GENES))
        assert sparse.issparse(held)
        assert np.allclose(held.toarray(), dense)
        assert np.array_equal(dense == 0, GENES == 0)


def test_rows_of_another_depth_are_placed_alike() -> None:
    model = ViewFold(K, random_state=0).fit(PROTEINS)
    deep = 5 * PROTEINS
    assert np.mean(model.predict(deep) == model.labels_) > 0.97
    few = deep[:3]  # by the depth that was learned, not by their own
    assert np.allclose(model.transform(few), model.transform(deep)[:3])


def test_the_scale_is_saved(tmp_path: Path) -> None:
    model = ViewFold(K, random_state=0).fit(GENES)
    model.save(tmp_path / "m.vf")
    found = viewfold.load(tmp_path / "m.vf")
    assert repr(scaled_by(found)) == repr(scaled_by(model))
    assert np.array_equal(found.transform(GENES), model.transform(GENES))


def test_what_is_not_counted_keeps_its_scale() -> None:
    rng = np.random.default_rng(0)
    bright = rng.uniform(0.1, 1, (500, 1))
    severe = rng.normal(size=(500, 1))
    views = {
        "pixels": load_digits().data,
        "photographs": np.minimum(np.round(400 * bright * rng.random((500, 64))), 255),
        "questionnaire": np.clip(np.round(1.5 + severe + rng.normal(size=(500, 30))), 0, 4),
        "histogram": rng.multinomial(500, np.full(40, 1 / 40), size=500).astype(float),
        "few columns": PROTEINS[:, :19],
        "weights": PROTEINS + 0.5,
    }
    assert {name: scale_of(X) for name, X in views.items()} == dict.fromkeys(views, "zscore")
    assert scale_of(PROTEINS[:, :20]) == "counts"


def test_the_log_tells_that_a_view_is_counts_and_levels_of_a_category_have_no_depth() -> None:
    frame = pd.DataFrame(PROTEINS, columns=[f"p{i}" for i in range(60)])
    assert "depth" in ViewFold(K, random_state=0).fit(frame).log_["note"].iloc[-1]
    (found,) = viewfold.inspect_views(frame)
    assert found.scale == "counts"
    (found,) = viewfold.inspect_views(frame.assign(ward=np.where(Y < 2, "ER", "ICU")))
    assert found.scale == "table"


def test_words_stay_words() -> None:
    assert scale_of(cells(400, per_column=0.05)) == "tfidf"


def test_missing_cells_of_counts_are_predicted() -> None:
    rng = np.random.default_rng(0)
    few = rng.random(PROTEINS.shape) < 0.005
    gaps = np.where(few, np.nan, PROTEINS)
    model = ViewFold(K, random_state=0).fit(gaps)
    assert isinstance(scaled_by(model), Counts)
    assert accuracy(Y, model.labels_) > 0.95
    whole = ViewFold(K, random_state=0).fit(PROTEINS)
    at = few.any(axis=1)
    assert np.mean(whole.predict(gaps[at]) == whole.labels_[at]) > 0.95
    usual = whole.views_[0].encoder.fill(np.full((1, 60), np.nan))[0]
    assert np.corrcoef(np.log(usual), np.log(PROTEINS.mean(axis=0)))[0, 1] > 0.9
    assert 0.3 < np.median(usual / np.median(PROTEINS, axis=0)) < 3


def test_negative_numbers_are_no_counts() -> None:
    with pytest.raises(ValueError, match=r"negative numbers.*scale='counts'"):
        ViewFold(K, scale="counts").fit(PROTEINS - 1)


def test_new_kinds_of_cells_are_novel_whatever_their_depth() -> None:
    model = ViewFold(K, random_state=0).fit(PROTEINS)
    surprise = model.views_[0].encoder.surprise
    assert np.median(surprise(PROTEINS[:, ::-1])) > 2 > np.median(surprise(100 * PROTEINS))
