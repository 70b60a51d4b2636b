"""AMGL, LMVSC, FMCNOF and NEMO are what was published."""

from __future__ import annotations

import baselines_contract as contract
import numpy as np
import pytest
from scipy import linalg, stats

from viewfold.metrics import accuracy
from viewfold_research.baselines import AMGL, FMCNOF, LMVSC, NEMO
from viewfold_research.baselines._base import align
from viewfold_research.baselines.nemo import filled


def test_amgl_with_the_sparse_eigensolver_is_amgl_with_the_dense_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    views, _ = contract.blobs(1050, (5, 7), 4, apart=1)
    found = AMGL(4, max_iter=3, random_state=0).fit(views)
    monkeypatch.setattr(
        "viewfold_research.baselines.amgl.smallest_eigenvectors",
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


def nemo_by_the_book(
    views: list[np.ndarray], missing: np.ndarray, k: int, kernel: str
) -> np.ndarray:
    """The affinity as published, sample by sample; NaN for samples that share no view."""
    n = len(missing)
    total, seen = np.zeros((n, n)), np.zeros((n, n))
    for v, X in enumerate(views):
        here = np.flatnonzero(~missing[:, v])
        D = np.sum((X[here, None] - X[None, here]) ** 2, axis=2)
        q = len(here) // k
        near = np.argsort(D + np.diag(np.full(len(here), np.inf)), axis=1)[:, :q]
        mean = np.take_along_axis(D, near, axis=1).mean(axis=1)
        s = (mean[:, None] + mean[None, :] + D) / 3
        at, spread = (np.sqrt(D), np.sqrt(s)) if kernel == "paper" else (D, s / 2)
        S = stats.norm.pdf(at, scale=spread)
        for a, i in enumerate(here):
            for b in near[a]:
                part = S[a, b] / S[a, near[a]].sum()
                total[i, here[b]] += part
                total[here[b], i] += part
        seen[np.ix_(here, here)] += 1
    return np.divide(total, seen, out=np.full((n, n), np.nan), where=seen > 0)


@pytest.mark.parametrize("share", [0.0, 0.6])
@pytest.mark.parametrize("kernel", ["paper", "program"])
@pytest.mark.parametrize("unshared", ["mean", "zero"])
def test_nemo_is_what_was_published_complete_or_not(
    share: float, kernel: str, unshared: str
) -> None:
    views, _ = contract.blobs(60, apart=2)
    missing = contract.holes(60, 3, share)
    model = NEMO(3, kernel=kernel, unshared=unshared, scale="none", random_state=0)
    model.fit(contract.with_nan(views, missing))
    W = nemo_by_the_book(views, missing, 3, kernel)
    apart = np.isnan(W)
    assert apart.any() == (share > 0)
    assert np.allclose(model.affinity_.toarray(), np.where(apart, 0, W))
    others = W[~apart & ~np.eye(60, dtype=bool)]
    W[apart] = others.mean() if unshared == "mean" else 0
    d = W.sum(axis=1)
    cut = linalg.eigvalsh(np.eye(60) - W / np.sqrt(np.outer(d, d)))[:3].sum()
    assert np.isclose(model.objective_[0], cut)


@pytest.mark.parametrize("kernel", ["paper", "program"])
@pytest.mark.parametrize("seed", range(3))
def test_nemo_finds_clusters_where_few_samples_share_a_view(kernel: str, seed: int) -> None:
    """They must not follow the gaps: who is in one view, who in the other, who in both."""
    views, y = contract.blobs(150, (8, 12), apart=1, seed=seed)
    missing = contract.holes(150, 2, 0.65, seed)
    model = NEMO(3, kernel=kernel, random_state=0).fit(contract.with_nan(views, missing))
    assert accuracy(y, model.labels_) > 0.9


def test_nemo_has_many_samples_without_a_common_view_as_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The eigensolver for large graphs, which sees products only, and the dense one agree."""
    views, _ = contract.blobs(1050, (5, 7), 4, apart=1)
    data = align(contract.with_nan(views, contract.holes(1050, 2, 0.5)))
    model = NEMO(4, n_neighbors=20, random_state=0)
    by_products = model.solve(data).objective
    monkeypatch.setattr(
        "viewfold_research.baselines.nemo.filled",
        lambda *given: np.asarray(filled(*given) @ np.eye(1050)),
    )
    assert np.allclose(by_products, model.solve(data).objective, rtol=1e-5)


@pytest.mark.parametrize("kernel", ["paper", "program"])
def test_nemo_takes_samples_that_are_equal(kernel: str) -> None:
    X = np.repeat([[0.0, 1.0], [5.0, 2.0]], 10, axis=0)
    model = NEMO(2, n_neighbors=5, kernel=kernel, random_state=0).fit(X)
    assert np.isfinite(model.affinity_.data).all()
    assert accuracy(np.repeat([0, 1], 10), model.labels_) == 1


def test_nemo_has_no_order_among_samples_that_are_equally_far() -> None:
    """Documents of few words: most have none in common."""
    X = (np.random.default_rng(0).random((80, 40)) < 0.04).astype(float) + 1e-3 * np.eye(80, 40)
    order = np.random.default_rng(1).permutation(80)
    model = NEMO(2, scale="unit", random_state=0)
    W, turned = (model.fit(rows).affinity_.toarray() for rows in (X, X[order]))
    assert np.allclose(W[np.ix_(order, order)], turned)


def test_nemo_takes_missing_samples_as_nan_or_by_id() -> None:
    contract.recovers_clusters(NEMO(3, random_state=0), share=0.4)
    contract.ids_equal_nan_rows(NEMO(3, random_state=0))
