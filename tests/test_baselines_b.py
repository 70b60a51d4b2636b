"""OPMC, FPMVS-CAG, CMVC, OPIMC and MultiNMF: what the linear methods promise."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import baselines_contract as contract
import numpy as np
import pytest
from conftest import load
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from viewfold.baselines import CMVC, FPMVS, OPIMC, OPMC, MultiNMF
from viewfold.baselines.cmvc import partition
from viewfold.bench import published
from viewfold.metrics import accuracy

ANOTHER_VIEW = "a second partial_fit folds another view, which has features of its own"
EXPECTED_TO_FAIL = {
    "CMVC": {
        "check_n_features_in_after_fitting": ANOTHER_VIEW,
        "check_estimators_partial_fit_n_features": ANOTHER_VIEW,
    },
    "MultiNMF": {"check_clustering": "its data have negative features, which are refused"},
}
FACTORS = MultiNMF(3, n_init=2, max_iter=5, n_steps=40, random_state=0)
METHODS = [
    OPMC(3, n_init=20, random_state=0),
    FPMVS(3, random_state=0),
    CMVC(3, random_state=0),
    OPIMC(3, random_state=0),
    FACTORS,
]
COMPLETE = [m for m in METHODS if not m.incomplete]


def named(model: Any) -> str:
    return type(model).__name__


every = pytest.mark.parametrize("model", METHODS, ids=named)
complete = pytest.mark.parametrize("model", COMPLETE, ids=named)


def expected(model: Any) -> dict[str, str]:
    return EXPECTED_TO_FAIL.get(named(model), {})


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(METHODS, expected_failed_checks=expected)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@every
def test_clusters_far_apart_are_found(model: Any) -> None:
    contract.recovers_clusters(model)


@every
def test_same_seed_same_result(model: Any) -> None:
    contract.is_deterministic(model)


@every
def test_sparse_views_are_taken(model: Any) -> None:
    contract.takes_sparse_views(model)


@every
def test_parameters_and_grid_are_sound(model: Any) -> None:
    contract.has_sound_parameters(model)


@every
def test_the_docstring_says_it_all(model: Any) -> None:
    contract.has_documentation(model)


@complete
def test_missing_samples_are_refused_by_methods_for_complete_views(model: Any) -> None:
    contract.refuses_missing_samples(model)


@pytest.mark.parametrize(
    ("model", "rising"),
    [
        (OPMC(5, n_init=3, tol=0, random_state=0), False),
        (FPMVS(5, tol=0, random_state=0), False),
        (FPMVS(7, tol=0, random_state=0), False),  # more clusters than the last view has features
        (CMVC(5, tol=0, max_iter=30, random_state=0), True),
        (CMVC(7, kernel="linear", tol=0, max_iter=30, random_state=0), True),
        (MultiNMF(4, n_init=2, n_steps=20, random_state=0), False),
        (OPIMC(3, batch_size=150, tol=0, random_state=0), False),
    ],
    ids=lambda x: str(x),
)
def test_the_objective_never_goes_the_wrong_way(model: Any, rising: bool) -> None:
    contract.has_monotone_objective(model, rising=rising)


def memory(model: Any, views: list[Any]) -> int:
    """Bytes at most during fit, besides the views."""
    tracemalloc.start()
    try:
        clone(model).fit(views)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "model",
    [
        OPMC(3, n_init=2, max_iter=5, random_state=0),
        FPMVS(3, max_iter=5, random_state=0),
        CMVC(3, kernel="linear", random_state=0),
        OPIMC(3, random_state=0),
        MultiNMF(3, n_init=2, max_iter=2, n_steps=5, random_state=0),
    ],
    ids=named,
)
def test_memory_grows_with_the_samples_not_with_their_square(model: Any) -> None:
    few, many = (contract.blobs(n)[0] for n in (3000, 6000))
    model.fit(few[:1])  # what is imported or cached once is not counted
    assert memory(model, many) < 2.3 * memory(model, few)
    assert model._bytes(70_000, [100]) == 0


def test_the_turning_of_a_partition_looks_at_samples_a_fixed_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    views, _ = contract.blobs(400, apart=1)
    seen: list[int] = []

    class Seen(np.ndarray):
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kw: Any) -> Any:
            if ufunc is np.matmul:
                seen.append(max(np.shape(x)[0] for x in inputs))
            plain = [np.asarray(x) for x in inputs]
            return getattr(ufunc, method)(*plain, **kw)

    monkeypatch.setattr(
        "viewfold.baselines.cmvc.partition",
        lambda X, k, gaussian: partition(X, k, gaussian=gaussian).view(Seen),
    )
    counts = []
    for steps in (2, 40):
        seen.clear()
        CMVC(3, max_iter=steps, tol=0, random_state=0).fit(views)
        counts.append(len([n for n in seen if n == 400]))
    assert counts[0] == counts[1] > 0


# OPMC


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
    monkeypatch.setattr("viewfold.baselines.opmc._SCORES", together * 6 * 120)
    views, _ = contract.blobs(120, k=6, apart=1.5)
    draw = np.random.RandomState(0).randint(6, size=(30, 120))
    rng = np.random.default_rng(0)
    least = min(as_published(views, start, 6, rng)[1][-1] for start in draw)
    model = OPMC(6, n_init=30, scale="none", random_state=0).fit(views)
    assert model.objective_[-1] == pytest.approx(least)


# FPMVS


def test_fpmvs_without_weights_in_the_step_for_z_nearly_takes_sides() -> None:
    views, _ = contract.blobs(apart=1.5)
    soft, hard = (FPMVS(3, weighted=w, random_state=0).fit(views).embedding_ for w in (True, False))

    def one_anchor(rows: np.ndarray) -> float:
        return float(np.mean(rows.max(axis=1) > 1 - 1e-9))

    assert one_anchor(hard) > 0.9
    assert one_anchor(soft) < 0.1


# CMVC


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
def test_linear_partitions_are_singular_vectors_of_the_centred_view(
    make: Callable[[np.ndarray], Any],
) -> None:
    X = np.random.default_rng(0).random((300, 80)) ** 3
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


# OPIMC


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


# MultiNMF


def test_multinmf_refuses_negative_features_unless_it_scales_them() -> None:
    contract.refuses_negative_features(FACTORS)
    views, y = contract.blobs()
    low = [X - 5 for X in views]
    assert accuracy(y, clone(FACTORS).set_params(scale="minmax").fit(low).labels_) >= 0.95


def test_multinmf_follows_the_published_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rounds with the matrices of the paper (features × samples), from the same factors."""
    views, _ = contract.blobs(40)
    data = [X.T / X.sum() for X in views]
    rng = np.random.default_rng(0)
    V = [rng.random((40, 3)) / 40 for _ in data]
    U = [(u := rng.random((len(X), 3))) / u.sum(axis=0) for X in data]
    monkeypatch.setattr(
        "viewfold.baselines.multinmf.warm_sweeps", lambda *_, **__: (list(U), list(V))
    )
    model = MultiNMF(3, weight=0.5, max_iter=2, n_steps=7, random_state=0).fit(views)

    U, V, common, course = list(U), list(V), V[0], []
    for _ in range(2):
        for v, X in enumerate(data):
            for _ in range(7):
                V[v] = V[v] * (X.T @ U[v] + 0.5 * common) / (V[v] @ U[v].T @ U[v] + 0.5 * V[v])
                s = (V[v] * common).sum(axis=0)
                r = (V[v] ** 2).sum(axis=0) * U[v].sum(axis=0)
                U[v] = U[v] * (X @ V[v] + 0.5 * s) / (U[v] @ V[v].T @ V[v] + 0.5 * r)
                Q = U[v].sum(axis=0)
                U[v], V[v] = U[v] / Q, V[v] * Q
        common = sum(V) / 3
        course.append(
            sum(((X - u @ w.T) ** 2).sum() for X, u, w in zip(data, U, V, strict=True))
            + 0.5 * sum(((w - common) ** 2).sum() for w in V)
        )
    assert np.allclose(model.objective_, course, rtol=1e-6)
    assert np.allclose(model.embedding_, common, rtol=1e-8)


def test_multinmf_stops_where_the_objective_would_rise(monkeypatch: pytest.MonkeyPatch) -> None:
    course = iter([3.0, 2.0, 2.5, 1.0])
    monkeypatch.setattr(MultiNMF, "_objective", lambda *_: next(course))
    model = clone(FACTORS).fit(contract.blobs(60)[0])
    assert list(model.objective_) == [3.0, 2.0]


# Data sets of the paper


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
