"""OPMC, FPMVS-CAG and CMVC are what was published, and come near its numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import baselines_contract as contract
import numpy as np
import pytest
from baselines_incomplete import named
from conftest import load
from scipy import sparse

from viewfold.metrics import accuracy
from viewfold_research.baselines import CMVC, FPMVS, OPMC
from viewfold_research.baselines.cmvc import partition
from viewfold_research.bench import published


def as_published(
    views: list[np.ndarray], labels: np.ndarray, k: int, rng: np.random.Generator
) -> tuple[np.ndarray, list[float]]:
    """Run the three steps of the paper, with all its matrices, from given labels."""
    C = [rng.random((k, k)) for _ in views]
    course: list[float] = []
    while len(course) < 3 or course[-2] - course[-1] > 1e-5 * course[-1]:
        Y = np.eye(k)[labels]
        centres = []
        for v, X in enumerate(views):
            left, _, right = np.linalg.svd(C[v].T @ Y.T @ X, full_matrices=False)
            W = left @ right
            C[v] = np.linalg.solve(Y.T @ Y + 1e-12 * np.eye(k), Y.T @ X @ W.T)
            centres.append(C[v] @ W)
        cost = sum(
            ((X[:, None] - centre) ** 2).sum(axis=2)
            for X, centre in zip(views, centres, strict=True)
        )
        labels = np.argmin(cost, axis=1)
        course.append(float(cost.min(axis=1).sum()) / len(views))
    return labels, course


@pytest.mark.parametrize("k", [4, 9])
def test_opmc_is_the_published_iteration(k: int) -> None:
    views, _ = contract.blobs(120, apart=1.5)
    start = np.random.RandomState(0).randint(k, size=(1, 120))[0]
    labels, course = as_published(views, start, k, np.random.default_rng(0))
    model = OPMC(k, n_init=1, scale="none", random_state=0).fit(views)
    assert np.array_equal(model.labels_, labels)
    assert np.allclose(model.objective_, course)


@pytest.mark.parametrize("together", [1, 7, 30])
def test_opmc_keeps_the_best_of_all_starts_however_they_are_grouped(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viewfold_research.baselines.opmc._SCORES", together * 6 * 120)
    views, _ = contract.blobs(120, k=6, apart=1.5)
    draw = np.random.RandomState(0).randint(6, size=(30, 120))
    rng = np.random.default_rng(0)
    least = min(as_published(views, start, 6, rng)[1][-1] for start in draw)
    model = OPMC(6, n_init=30, scale="none", random_state=0).fit(views)
    assert model.objective_[-1] == pytest.approx(least)


def test_fpmvs_without_weights_in_the_step_for_z_nearly_takes_sides() -> None:
    views, _ = contract.blobs(apart=1.5)
    soft, hard = (FPMVS(3, weighted=w, random_state=0).fit(views).embedding_ for w in (True, False))

    def one_anchor(rows: np.ndarray) -> float:
        return float(np.mean(rows.max(axis=1) > 1 - 1e-9))

    assert one_anchor(hard) > 0.9
    assert one_anchor(soft) < 0.1


@pytest.mark.parametrize("kernel", ["gaussian", "linear"])
def test_cmvc_view_by_view_is_the_same_as_all_views_at_once(kernel: str) -> None:
    views, _ = contract.blobs(apart=1.5)
    whole = CMVC(3, kernel=kernel, random_state=0).fit(views)
    ids = [f"s{i}" for i in range(150)]
    piece, by_id = (CMVC(3, kernel=kernel, random_state=0) for _ in range(2))
    order = np.random.default_rng(0).permutation(150)
    by_id.partial_fit(views[0], ids=ids)
    for X in views[1:]:
        by_id.partial_fit(X[order], ids=[ids[i] for i in order])
    for X in views:
        piece.partial_fit(X.tolist())
    assert np.array_equal(whole.embedding_, piece.embedding_)
    assert np.array_equal(whole.labels_, piece.labels_)
    assert np.allclose(whole.embedding_, by_id.embedding_, atol=1e-8)
    assert list(by_id.ids_) == ids
    assert (piece.n_views_, whole.fit(views[:2]).n_views_) == (3, 2)


def test_cmvc_refuses_other_samples_and_stays_as_it_was() -> None:
    views, _ = contract.blobs(60)
    model = CMVC(3, random_state=0).partial_fit(views[0])
    before = model.embedding_.copy()
    short, holey = views[1][:55], views[1].copy()
    holey[:2] = np.nan
    for X, ids, message in [
        (short, None, "lacks 5 of the 60 known samples and has 0 others"),
        (holey, None, "lacks 2 of the 60 known samples and has 0 others"),
        (views[1], range(1, 61), "lacks 1 of the 60 known samples and has 1 others"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X, ids=ids)
        assert np.array_equal(model.embedding_, before)
        assert model.n_views_ == 1
    model.partial_fit(views[1])
    assert model.n_views_ == 2


def test_cmvc_follows_the_published_steps() -> None:
    """The k × k algebra gives what the paper's n × k iteration gives."""
    views, _ = contract.blobs(apart=1.5)

    def polar(A: np.ndarray) -> np.ndarray:
        left, _, right = np.linalg.svd(A, full_matrices=False)
        return left @ right

    total, course = np.zeros((150, 3)), []
    for t, X in enumerate(views):
        base, mean = partition(X, 3, gaussian=True), total / max(t, 1)
        W, course = polar(2 * base.T @ mean), []
        while len(course) < 3 or abs(course[-1] - course[-2]) > 1e-6 * course[-1]:
            H = polar(base @ W + 2 * mean)
            course.append(float(np.sum(H * (base @ W + 2 * mean))))
            W = polar(base.T @ H)
        total += base @ W
    model = CMVC(3, weight=2.0, random_state=0).fit(views)
    assert np.allclose(model.objective_, course)
    rows = total / np.linalg.norm(total, axis=1, keepdims=True)
    assert np.allclose(model.embedding_ @ model.embedding_.T, rows @ rows.T, atol=1e-4)


def test_cmvc_tells_the_memory_of_its_kernel_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    contract.tells_memory_beforehand(CMVC(3, random_state=0), monkeypatch)
    assert CMVC()._bytes(5000, [1]) > 0 == CMVC()._bytes(5001, [1])
    assert CMVC(kernel="gaussian")._bytes(5001, [1]) > 0 == CMVC(kernel="linear")._bytes(10, [1])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("shape", [(300, 80), (80, 300)], ids=["tall", "wide"])
def test_linear_partitions_are_singular_vectors_of_the_centred_view(
    make: Callable[[np.ndarray], Any], shape: tuple[int, int]
) -> None:
    X = np.random.default_rng(0).random(shape) ** 3
    left, _, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    H = partition(make(X), 4, gaussian=False)
    assert np.allclose(np.abs(H.T @ left[:, :4]), np.eye(4), atol=1e-6)


def test_gaussian_partitions_of_many_samples_are_those_of_the_whole_decomposition() -> None:
    X = contract.blobs(600)[0][0]
    distance = ((X[:, None] - X) ** 2).sum(axis=2)
    K = np.exp(-distance / (2 * distance.mean()))
    centring = np.eye(600) - 1 / 600
    K = centring @ K @ centring
    K /= np.sqrt(np.outer(K.diagonal(), K.diagonal()))
    top = np.linalg.eigh(K)[1][:, :-4:-1]
    assert np.allclose(np.abs(partition(X, 3, gaussian=True).T @ top), np.eye(3), atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [OPMC(10, random_state=0), FPMVS(10, random_state=0), CMVC(10, random_state=0)],
    ids=named,
)
def test_wiki_is_clustered_as_well_as_the_paper_says_within_five_points(model: Any) -> None:
    views, y = load("wiki")
    printed = published.table("complete").query("dataset == 'Wiki' and metric == 'ACC'")
    value = printed.set_index("method")["value"][named(model)]
    assert abs(100 * accuracy(y, model.fit(views).labels_) - value) < 5
