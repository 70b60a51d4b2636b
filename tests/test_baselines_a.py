"""FMR, PMSC, AMGL, LMVSC, FMCNOF and NEMO, and the blocks that all baselines share."""

from __future__ import annotations

import resource
import tracemalloc
from typing import Any

import baselines_contract as contract
import numpy as np
import pytest
from scipy import linalg
from sklearn.utils.estimator_checks import parametrize_with_checks

from viewfold.baselines import AMGL, FMCNOF, FMR, LMVSC, NEMO, PMSC, fmr, pmsc
from viewfold.baselines._base import align, memory_limit, scaled
from viewfold.baselines._blocks import (
    laplacian,
    pkn_graph,
    simplex_quadratic,
    smallest_eigenvectors,
)

METHODS = [
    FMR(3, n_components=20, random_state=0),
    PMSC(3, random_state=0),
    AMGL(3, random_state=0),
    LMVSC(3, random_state=0),
    # The authors' default, the farthest anchors, does not always find clusters that are far apart.
    FMCNOF(3, keep="nearest", random_state=0),
    NEMO(3, random_state=0),
]


def named(model: Any) -> str:
    return type(model).__name__


every = pytest.mark.parametrize("model", METHODS, ids=named)


TWO_FEATURES = "samples are standardised over their features: of two, one bit is left"
NOT_APPLICABLE = {
    "FMCNOF": {"check_clustering": TWO_FEATURES},
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    METHODS, expected_failed_checks=lambda model: NOT_APPLICABLE.get(named(model), {})
)
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


@pytest.mark.parametrize("model", [m for m in METHODS if not m.incomplete], ids=named)
def test_missing_samples_are_refused_by_methods_for_complete_views(model: Any) -> None:
    contract.refuses_missing_samples(model)


@pytest.mark.parametrize("model", [FMR(3), PMSC(3), NEMO(3, n_neighbors=59)], ids=named)
def test_memory_is_told_beforehand(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(model, NEMO):  # n neighbours of n samples: as many bytes as n × n
        monkeypatch.setattr(NEMO, "_neighbours", lambda self, n: n)
    contract.tells_memory_beforehand(model, monkeypatch)


@pytest.mark.parametrize("model", [AMGL(3), LMVSC(3), FMCNOF(3)], ids=named)
def test_linear_methods_ask_for_no_square_matrices(model: Any) -> None:
    assert model._bytes(10**6, [100]) == 0


@pytest.mark.parametrize(
    "model",
    [AMGL(3, max_iter=1), LMVSC(3), FMCNOF(3), NEMO(3, n_neighbors=10)],
    ids=named,
)
def test_memory_of_sparse_and_linear_methods_doubles_with_the_samples(model: Any) -> None:
    peaks = []
    for n in (1200, 2400):
        data = align(contract.blobs(n, (6, 4), apart=1)[0])
        tracemalloc.start()
        model.set_params(random_state=0).solve(data)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2.5 * peaks[0]
    assert peaks[1] < 8 * 2400**2 / 2


@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_the_limit_is_what_the_system_allows(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    free = {"RLIMIT_AS": resource.RLIM_INFINITY, "RLIMIT_DATA": resource.RLIM_INFINITY}
    limits = {getattr(resource, name): soft for name, soft in (free | {kind: 10**6}).items()}
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limits[which], None))
    assert memory_limit() == 10**6


# ---- what is common -----------------------------------------------------------------------------


def test_views_by_id_are_aligned_as_rows_of_nan_are() -> None:
    views, _ = contract.blobs(40)
    missing = contract.holes(40, 3)
    by_row = align(contract.with_nan(views, missing))
    rows = [np.flatnonzero(~missing[:, v])[::-1] for v in range(3)]
    by_id = align([X[at] for X, at in zip(views, rows, strict=True)], ids=rows)
    place = np.argsort(by_id.ids)
    assert np.array_equal(by_id.ids[place], by_row.ids)
    assert np.array_equal(by_id.present[place], by_row.present)
    assert np.array_equal(by_row.present, ~missing)
    for one, two in zip(by_row.views, by_id.views, strict=True):
        assert np.array_equal(one, two[place])


@pytest.mark.parametrize("how", ["zscore", "unit", "minmax"])
def test_scalings_look_at_samples_that_are_there(how: str) -> None:
    views, _ = contract.blobs(40)
    missing = contract.holes(40, 3)
    data = scaled(align(contract.with_nan(views, missing)), how)
    for v, X in enumerate(data.views):
        here = X[~missing[:, v]]
        assert not X[missing[:, v]].any()
        if how == "zscore":
            assert np.allclose([here.mean(axis=0), here.std(axis=0, ddof=1) - 1], 0)
        if how == "unit":
            assert np.allclose(np.linalg.norm(here, axis=1), 1)
        if how == "minmax":
            assert np.allclose([here.min(axis=0), here.max(axis=0) - 1], 0)


def test_equal_eigenvalues_are_all_found() -> None:
    """A graph of twelve parts has the eigenvalue 0 twelve times, which Lanczos does not see."""
    rng = np.random.RandomState(0)
    where = rng.randint(12, size=1500)
    X = 30 * rng.standard_normal((12, 4))[where] + rng.standard_normal((1500, 4))
    L = laplacian(pkn_graph(X))
    values, vectors = smallest_eigenvectors(L, 10, rng)
    assert np.abs(values).max() < 1e-8
    assert np.allclose(vectors.T @ vectors, np.eye(10), atol=1e-8)
    guessed, _ = smallest_eigenvectors(L.toarray(), 10, rng, guess=vectors)
    assert np.abs(guessed).max() < 1e-8


def test_quadratic_on_the_simplex_meets_its_optimality_conditions() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(12, 5)) + 20  # a mean that would make steps tiny
    H, B = A @ A.T + 0.1 * np.eye(12), (rng.normal(size=(50, 5)) + 20) @ A.T
    Z = simplex_quadratic(H, B, tol=1e-10, max_iter=20_000)
    assert np.allclose(Z.sum(axis=1), 1)
    assert Z.min() >= 0
    slope = Z @ H - B
    least = slope.min(axis=1, keepdims=True)
    assert np.all((Z < 1e-6) | (slope - least < 1e-4))
    assert 1 < np.count_nonzero(Z > 1e-6, axis=1).mean() < 12


# ---- FMR ----------------------------------------------------------------------------------------


def small_problem() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 6))
    return rng.uniform(size=(8, 25)), X - X.mean(axis=0)


def test_fmr_latent_is_what_gradient_steps_give() -> None:
    H, X = small_problem()
    K, n, a, mu = X @ X.T, 25, 10.0, fmr.MU
    found, steps = fmr.latent(H, X, hsic=5e3, step=a)
    t = 0
    while True:
        f = -np.trace(H @ K @ H.T) / (n - 1) ** 2 + mu / 2 * np.linalg.norm(H)
        if f < -5e3:
            break
        H, t = H - a * (-2 * H @ K / (n - 1) ** 2 + mu * H), t + 1
    assert 0 < steps == t
    assert np.allclose(found, H, rtol=1e-8)


def test_fmr_in_the_span_of_the_latent_is_fmr_with_square_matrices() -> None:
    H, X = small_problem()
    H, _ = fmr.latent(H, X, 5e3, 10.0)
    _, s, Wt = linalg.svd(H, full_matrices=False)
    model = FMR(lambda1=1e-3, lambda2=1e-4, max_iter=60)
    A, residuals = model._represent(s, Wt)
    n, mu = 25, fmr.MU
    Z, E, Y1, Y2 = np.zeros((n, n)), np.zeros_like(H), np.zeros_like(H), np.zeros((n, n))
    for _ in residuals:
        U, values, Vt = linalg.svd(Z + Y2 / mu)
        J = (U * np.maximum(values - model.lambda1 / mu, 0)) @ Vt
        Z = linalg.solve(H.T @ H + np.eye(n), J + H.T @ (H - E) + (H.T @ Y1 - Y2) / mu)
        G = H - H @ Z + Y1 / mu
        E = G * np.maximum(1 - model.lambda2 / mu / np.linalg.norm(G, axis=0), 0)
        Y1, Y2, mu = Y1 + mu * (H - H @ Z - E), Y2 + mu * (Z - J), mu * fmr.RHO
    assert np.allclose(Wt.T @ A, Z, atol=1e-8 * np.abs(Z).max())


def test_fmr_residual_reaches_its_tolerance() -> None:
    views, _ = contract.blobs()
    model = FMR(3, n_components=20, random_state=0).fit(views)
    assert model.objective_[-1] < model.tol < model.objective_[0]
    assert model.n_iter_ < model.max_iter


# ---- PMSC ---------------------------------------------------------------------------------------


def test_pmsc_graph_is_its_formula() -> None:
    rng = np.random.default_rng(0)
    F = linalg.qr(rng.normal(size=(20, 3)), mode="economic")[0]
    for d in (4, 30):  # by either side of X
        X = rng.normal(size=(20, d))
        K, D = X @ X.T, np.sum((F[:, None] - F) ** 2, axis=2)
        model = PMSC(3, alpha=0.7, beta=2.0)
        Z = np.maximum(linalg.solve(K + 0.7 * np.eye(20), K - 2.0 / 4 * D), 0)
        assert np.allclose(model._graph(pmsc.projector(X, 0.7), F), (Z + Z.T) / 2)


def test_pmsc_consensus_is_the_smallest_eigenvectors() -> None:
    rng = np.random.default_rng(0)
    F = [linalg.qr(rng.normal(size=(20, 3)), mode="economic")[0] for _ in range(4)]
    w = [1.0, 2.0, 0.5, 0.1]
    M = sum(a * (np.eye(20) - 2 * f @ f.T) for a, f in zip(w, F, strict=True))
    expected = linalg.eigh(M)[1][:, :3]
    Y = pmsc.consensus(F, w, 3)
    assert np.allclose(Y @ Y.T, expected @ expected.T)
    assert np.isclose(pmsc.distance(Y, F[0]), np.linalg.norm(Y @ Y.T - F[0] @ F[0].T))


def test_pmsc_objective_hardly_ever_rises() -> None:
    contract.has_monotone_objective(PMSC(3, random_state=0), slack=1e-6)


# ---- AMGL ---------------------------------------------------------------------------------------


def test_amgl_objective_never_rises() -> None:
    contract.has_monotone_objective(AMGL(3, random_state=0))


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


# ---- LMVSC --------------------------------------------------------------------------------------


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


# ---- FMCNOF -------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", ["nearest", "farthest"])
@pytest.mark.parametrize("sigma", [1000, None])
def test_fmcnof_objective_never_rises(keep: Any, sigma: float | None) -> None:
    contract.has_monotone_objective(FMCNOF(3, keep=keep, sigma=sigma, random_state=0))


def test_fmcnof_indicator_has_one_cluster_a_sample() -> None:
    views, _ = contract.blobs()
    F = FMCNOF(3, factor="indicator", random_state=0).fit(views).embedding_
    assert np.array_equal(np.sort(F, axis=1)[:, :-1], np.zeros((150, 2)))
    assert np.array_equal(F.max(axis=1), np.ones(150))


# ---- NEMO ---------------------------------------------------------------------------------------


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
