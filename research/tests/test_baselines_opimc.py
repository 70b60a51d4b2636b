"""OPIMC: k-means on the features that samples have, chunk by chunk."""

from __future__ import annotations

import baselines_contract as contract
import numpy as np
import pytest
from sklearn.base import clone

from viewfold.metrics import accuracy
from viewfold_research.baselines import OPIMC


def test_opimc_finds_clusters_with_samples_missing() -> None:
    contract.recovers_clusters(OPIMC(3, batch_size=50, random_state=0), share=0.3)


def test_opimc_names_and_rows_of_nan_are_the_same() -> None:
    contract.ids_equal_nan_rows(OPIMC(3, random_state=0))
    views, _ = contract.blobs(apart=1.5)
    missing = contract.holes(150, 3)
    rows = [np.flatnonzero(~missing[:, v]) for v in range(3)]
    model = OPIMC(3, batch_size=40, random_state=0)
    by_row = clone(model).fit(contract.with_nan(views, missing))
    by_id = clone(model).fit([X[at] for X, at in zip(views, rows, strict=True)], ids=rows)
    assert np.array_equal(by_row.labels_[by_id.ids_], by_id.labels_)


@pytest.mark.parametrize("share", [0, 0.3])
def test_opimc_without_penalty_is_k_means_on_the_features_that_samples_have(share: float) -> None:
    """With all samples, that is k-means on the views side by side."""
    views, _ = contract.blobs(apart=1.5)
    missing = contract.holes(150, 3, share)
    model = OPIMC(4, alpha=0, batch_size=150, max_iter=300, tol=0, scale="none", random_state=0)
    labels = model.fit(contract.with_nan(views, missing)).labels_
    assert len(set(labels)) == 4
    distance = np.zeros((150, 4))
    for X, here in zip(views, ~missing.T, strict=True):
        means = np.array([X[here & (labels == c)].mean(axis=0) for c in range(4)])
        distance += here[:, None] * ((X[:, None] - means) ** 2).sum(axis=2)
    assert np.array_equal(distance.argmin(axis=1), labels)
    assert model.objective_[-1] * 150 == pytest.approx(distance.min(axis=1).sum())


def test_opimc_draws_centres_to_the_origin_like_so_many_samples_there() -> None:
    views, _ = contract.blobs(60)
    model = OPIMC(1, alpha=20, batch_size=60, scale="none", random_state=0).fit(views)
    X = np.hstack(views)
    centre = X.sum(axis=0) / (60 + 20)
    expected = ((X - centre) ** 2).sum() + 20 * (centre**2).sum()
    assert model.objective_[-1] * 60 == pytest.approx(expected)


def test_opimc_chunk_by_chunk_is_the_same_as_all_samples_at_once() -> None:
    views, y = contract.blobs(600)
    missing = contract.holes(600, 3)
    missing[:, 0] = False  # with ids, samples come in the order in which views first name them
    views = contract.with_nan(views, missing)
    whole = OPIMC(3, batch_size=100, shuffle=False, random_state=0).fit(views)
    chunks, by_id = (OPIMC(3, batch_size=100, random_state=0) for _ in range(2))
    for start in range(0, 600, 200):
        part = [X[start : start + 200] for X in views]
        chunks.partial_fit(part)
        by_id.partial_fit(part, ids=[range(start, start + 200)] * 3)
    for model in (chunks, by_id):
        assert np.array_equal(whole.labels_, model.labels_)
        assert np.array_equal(whole.objective_, model.objective_)
        assert np.array_equal(model.ids_, np.arange(600))
    assert accuracy(y, chunks.labels_) > 0.95


def test_opimc_refuses_what_does_not_fit_and_stays_as_it_was() -> None:
    views, _ = contract.blobs(60)
    model = OPIMC(3, random_state=0).partial_fit(views, ids=[range(60)] * 3)
    before = model.labels_.copy()
    for X, ids, message in [
        (views, [range(55, 115)] * 3, "5 samples were clustered before, the first of them is 55"),
        (views[:2], None, "There are 2 views, but samples before had 3"),
        ([views[0], views[2], views[1]], None, "View 1: X has 6 features, but .* expecting 12"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X, ids=ids)
        assert np.array_equal(model.labels_, before)
    with pytest.raises(ValueError, match="'zscore' needs all samples"):
        OPIMC(3, scale="zscore").partial_fit(views)


def test_opimc_does_not_depend_on_the_order_of_rows() -> None:
    views, _ = contract.blobs(apart=1.5)
    order = np.random.default_rng(1).permutation(150)
    model = OPIMC(3, batch_size=40, random_state=0)
    plain = clone(model).fit(views).labels_
    other = clone(model).fit([X[order] for X in views], ids=[order] * 3)
    assert np.array_equal(plain[other.ids_], other.labels_)
