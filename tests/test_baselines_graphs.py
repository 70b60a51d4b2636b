"""AMGL, LMVSC, FMCNOF and NEMO are what was published."""

from __future__ import annotations

import baselines_contract as contract
import numpy as np
import pytest
from scipy import linalg

from viewfold.baselines import AMGL, FMCNOF, LMVSC, NEMO


def test_amgl_with_the_sparse_eigensolver_is_amgl_with_the_dense_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    views, _ = contract.blobs(1050, (5, 7), 4, apart=1)
    found = AMGL(4, max_iter=3, random_state=0).fit(views)
    monkeypatch.setattr(
        "viewfold.baselines.amgl.smallest_eigenvectors",
        lambda L, k, rng, guess: linalg.eigh(L.toarray(), subset_by_index=(0, k - 1)),
    )
    expected = AMGL(4, max_iter=3, random_state=0).fit(views)
    assert np.allclose(found.objective_, expected.objective_, rtol=1e-8)
    one, two = found.embedding_, expected.embedding_
    assert np.linalg.norm(one @ (one.T @ two) - two) < 1e-4


def test_lmvsc_embedding_is_orthonormal_and_its_objective_least() -> None:
    views, _ = contract.blobs(apart=1.5)
    model = LMVSC(3, n_anchors=8, random_state=0).fit(views)
    U = model.embedding_
    assert np.allclose(U.T @ U, np.eye(3))
    assert len(model.objective_) == 3
    looser = LMVSC(3, n_anchors=8, alpha=0.01, random_state=0).fit(views)
    assert np.all(looser.objective_ < model.objective_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_lmvsc_leaves_out_directions_that_do_not_exist() -> None:
    X = np.repeat([[0.0, 1.0], [5.0, 2.0]], 10, axis=0)
    assert LMVSC(3, random_state=0).fit([X, X]).embedding_.shape == (20, 2)


def test_fmcnof_indicator_has_one_cluster_a_sample() -> None:
    views, _ = contract.blobs()
    F = FMCNOF(3, factor="indicator", random_state=0).fit(views).embedding_
    assert np.array_equal(np.sort(F, axis=1)[:, :-1], np.zeros((150, 2)))
    assert np.array_equal(F.max(axis=1), np.ones(150))


def nemo_by_the_book(views: list[np.ndarray], missing: np.ndarray, k: int) -> np.ndarray:
    """The affinity as the paper has it, sample by sample."""
    n = len(missing)
    total, seen = np.zeros((n, n)), np.zeros((n, n))
    for v, X in enumerate(views):
        here = np.flatnonzero(~missing[:, v])
        D = np.sum((X[here, None] - X[None, here]) ** 2, axis=2)
        q = len(here) // k
        near = np.argsort(D + np.diag(np.full(len(here), np.inf)), axis=1)[:, :q]
        mean = np.take_along_axis(D, near, axis=1).mean(axis=1)
        s = (mean[:, None] + mean[None, :] + D) / 3
        S = np.exp(-D / (2 * s)) / np.sqrt(2 * np.pi * s)
        for a, i in enumerate(here):
            for b in near[a]:
                part = S[a, b] / S[a, near[a]].sum()
                total[i, here[b]] += part
                total[here[b], i] += part
        seen[np.ix_(here, here)] += 1
    return np.divide(total, seen, out=np.zeros((n, n)), where=seen > 0)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_nemo_is_what_its_paper_says_complete_or_not(share: float) -> None:
    views, _ = contract.blobs(60, apart=2)
    missing = contract.holes(60, 3, share)
    found = NEMO(3, scale="none", random_state=0).fit(contract.with_nan(views, missing))
    expected = nemo_by_the_book(views, missing, 3)
    assert np.allclose(found.affinity_.toarray(), expected)


def test_nemo_takes_missing_samples_as_nan_or_by_id() -> None:
    contract.recovers_clusters(NEMO(3, random_state=0), share=0.4)
    contract.ids_equal_nan_rows(NEMO(3, random_state=0))
