"""IMG, MIC, AGC-IMC, UEAF and PVC: what all baselines promise, and that each is what was published.

The small references below are written with loops, stacked blocks and n × n diagonals, as the papers
and the authors' programs have them.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import baselines_contract as contract
import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from viewfold.baselines import AGCIMC, IMG, MIC, PVC, UEAF
from viewfold.baselines._nmf import Filled, nmf, squared_error, warm_sweeps
from viewfold.baselines.agc_imc import mixtures
from viewfold.baselines.pvc import coordinate_descent
from viewfold.metrics import accuracy
from viewfold.missing import by_paper_rule

METHODS = [
    IMG(3, random_state=0),
    MIC(3, n_init=3, max_iter=10, n_steps=50, random_state=0),
    AGCIMC(3, random_state=0),
    UEAF(3, random_state=0),
    PVC(3, random_state=0),
]
QUADRATIC = [model for model in METHODS if isinstance(model, IMG | AGCIMC | UEAF)]
every = pytest.mark.parametrize("model", METHODS, ids=lambda m: type(m).__name__)
quadratic = pytest.mark.parametrize("model", QUADRATIC, ids=lambda m: type(m).__name__)


def incomplete(
    n: int = 60,
    widths: tuple[int, ...] = (5, 7),
    ratio: float = 0.3,
    k: int = 3,
    apart: float = 6,
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Views with rows of NaN, who is present, and the clusters."""
    views, y = contract.blobs(n, widths, k, apart=apart)
    missing = by_paper_rule(n, len(widths), ratio, random_state=0)
    return contract.with_nan(views, missing), ~missing, y


def filled_with(value: float, views: list[np.ndarray]) -> list[np.ndarray]:
    return [np.where(np.isnan(X), value, X) for X in views]


# What all of them promise -------------------------------------------------------------------


def _not_applicable(model: Any) -> dict[str, str]:
    why = "it clusters features that are standardised, hence negative"
    return {"check_clustering": why} if model.nonnegative else {}


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(METHODS, expected_failed_checks=_not_applicable)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@every
def test_clusters_far_apart_are_found(model: Any) -> None:
    contract.recovers_clusters(model)


@every
def test_clusters_far_apart_are_found_with_samples_missing(model: Any) -> None:
    views, _, y = incomplete(150, (8, 12, 6))
    fitted = type(model)(**model.get_params()).fit(views)
    assert accuracy(y, fitted.labels_) >= 0.95


@every
def test_same_seed_same_result(model: Any) -> None:
    contract.is_deterministic(model)


@every
def test_ids_and_rows_of_nan_mean_the_same(model: Any) -> None:
    contract.ids_equal_nan_rows(model)


@every
def test_sparse_views_are_taken(model: Any) -> None:
    contract.takes_sparse_views(model)


@every
def test_parameters_and_grid_are_sound(model: Any) -> None:
    contract.has_sound_parameters(model)


@every
def test_the_docstring_says_it_all(model: Any) -> None:
    contract.has_documentation(model)


@quadratic
def test_memory_is_told_beforehand(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    contract.tells_memory_beforehand(model, monkeypatch)


@quadratic
def test_memory_told_is_memory_taken(model: Any) -> None:
    n = 400
    views, _, _ = incomplete(n, (6, 5), 0.3)
    few = model.get_params() | {"max_iter": 3}
    peak = _peak(type(model)(**few), views)
    told = model._bytes(n, [6, 5])
    assert 0.5 * told <= peak <= 1.1 * told


@pytest.mark.parametrize("model", [PVC(3, max_iter=2), MIC(3, n_init=2, max_iter=2, n_steps=3)])
def test_nothing_of_size_n_times_n(model: Any) -> None:
    n = 3000
    views, _, _ = incomplete(n, (6, 5), 0.3)
    assert _peak(model, views) < 0.5 * 8 * n**2


def _peak(model: Any, views: list[np.ndarray]) -> int:
    tracemalloc.start()
    try:
        model.fit(views)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# Objectives ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "rise"),
    [
        (PVC(3, random_state=0), 1e-9),
        (UEAF(3, random_state=0), 1e-9),
        (MIC(3, n_init=3, random_state=0), 2e-3),
        (MIC(3, n_init=3, beta=1e-7, random_state=0), 2e-3),
    ],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("ratio", [0, 0.4])
def test_the_objective_falls(model: Any, rise: float, ratio: float) -> None:
    views, _, _ = incomplete(90, (6, 8, 5), ratio)
    course = type(model)(**model.get_params()).fit(views).objective_
    assert len(course) > 2
    assert np.diff(course).max() <= rise * course[0]
    assert course[-1] < course[0]


@pytest.mark.parametrize(("anchor", "rise"), [("initial", 1e-3), ("current", 2e-2)])
def test_agc_objective_falls_but_for_small_rises(anchor: str, rise: float) -> None:
    views, _, _ = incomplete(90, (6, 8, 5))
    course = AGCIMC(3, anchor=anchor, random_state=0).fit(views).objective_
    assert course[-1] < 0.95 * course[0]
    assert (np.diff(course) / course[:-1]).max() < rise


def test_img_residual_vanishes() -> None:
    views, _, _ = incomplete(90, (6, 8, 5))
    model = IMG(3, random_state=0).fit(views)
    assert model.objective_[-1] < model.tol < model.objective_[0]
    assert model.n_iter_ < model.max_iter


# The two-view forms that were published -----------------------------------------------------


def _blocks(n: int) -> tuple[list[np.ndarray], slice, slice, slice]:
    """Views in the authors' order: samples in both, in the first only, in the second only."""
    (X, Y), _ = contract.blobs(n, (5, 7))
    both, first, second = slice(0, n // 2), slice(n // 2, 3 * n // 4), slice(3 * n // 4, n)
    X[second] = np.nan
    Y[first] = np.nan
    return [X, Y], both, first, second


def test_img_is_the_published_method_for_two_views() -> None:
    n, k, ridge, steps = 40, 3, 1e-2, 12
    views, both, first, second = _blocks(n)
    model = IMG(k, basis_from="paired", max_iter=steps, cluster_on="coefficients", random_state=0)
    model.fit(views)

    X, Y = (x / np.linalg.norm(x, axis=0) for x in filled_with(0, views))
    rng = np.random.RandomState(0)
    P = rng.uniform(size=(n, k))
    Q, dual, La, mu = P.copy(), np.zeros((n, k)), rng.uniform(size=(n, n)), 0.1
    for _ in range(steps):
        inner = np.linalg.inv(P[both].T @ P[both] + ridge * np.eye(k)) @ P[both].T
        U1, U2 = inner @ X[both], inner @ Y[both]
        G1, G2 = 2 * U1 @ U1.T, 2 * U2 @ U2.T
        P = 2 * X @ U1.T + 2 * Y @ U2.T - dual + mu * Q
        for rows, G in ((both, G1 + G2), (first, G1), (second, G2)):
            P[rows] = P[rows] @ np.linalg.inv(G + mu * np.eye(k))
        Q = np.linalg.pinv(La + La.T + mu * np.eye(n)) @ (dual + mu * P)
        A = np.empty((n, n))
        for i in range(n):
            D = ((Q[i] - Q) ** 2).sum(axis=1) / 400
            A[:, i] = (1 + D.sum()) / n - D
        assert A.min() >= 0  # or the authors' clipping would not be a projection
        A = (A + A.T) / 2
        La = np.diag(A.sum(axis=1)) - A
        dual, mu = dual + mu * (P - Q), mu * 1.1
    unit = P / np.linalg.norm(P, axis=1, keepdims=True)
    assert np.allclose(model.embedding_, unit, atol=1e-8)
    assert np.allclose(model.affinity_, A, atol=1e-10)


def test_pvc_is_the_published_method_for_two_views() -> None:
    n, k, rounds, sparsity = 40, 3, 4, 0.01
    views, both, first, second = _blocks(n)
    model = PVC(k, sparsity=sparsity, max_iter=rounds, max_sweeps=20_000, tol=1e-12)
    model.set_params(random_state=0).fit(views)

    X, Y = filled_with(0, views)
    rng = np.random.RandomState(0)
    Ux, Uy = rng.uniform(size=(5, k)).T, rng.uniform(size=(7, k)).T
    P = rng.uniform(size=(n, k))

    def lasso(rows: slice, data: np.ndarray, U: np.ndarray) -> None:
        penalty = sparsity * U.shape[1] / k
        for i in range(*rows.indices(n)):
            P[i] = _nonnegative(U @ U.T, U @ data[i] - penalty / 2)

    def basis(rows: list[slice], data: np.ndarray) -> np.ndarray:
        p = np.vstack([P[r] for r in rows])
        x = np.vstack([data[r] for r in rows])
        return np.array([_nonnegative(p.T @ p, p.T @ column) for column in x.T]).T

    for _ in range(rounds):
        Ux, Uy = basis([both], X), basis([both], Y)
        lasso(both, np.hstack([X, Y]), np.hstack([Ux, Uy]))
    for _ in range(rounds):
        lasso(first, X, Ux)
        lasso(second, Y, Uy)
        Ux, Uy = basis([both, first], X), basis([both, second], Y)
        lasso(both, np.hstack([X, Y]), np.hstack([Ux, Uy]))
    unit = P / np.linalg.norm(P, axis=1, keepdims=True)
    assert np.allclose(model.embedding_, unit, atol=1e-6)


def _nonnegative(G: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Minimise pᵀGp − 2qᵀp over p ≥ 0."""
    R = np.linalg.cholesky(G).T
    return nnls(R, np.linalg.solve(R.T, q), maxiter=1000)[0]


@pytest.mark.parametrize("kind", [IMG, PVC])
def test_pairs_of_two_views_are_the_mask_form(kind: Any) -> None:
    views, _, _ = incomplete()
    pairs, mask = (kind(3, mode=mode, random_state=0).fit(views) for mode in ("pairs", "mask"))
    assert np.array_equal(pairs.embedding_, mask.embedding_)


@pytest.mark.parametrize("kind", [IMG, PVC])
def test_pairs_of_three_views_are_joined(kind: Any) -> None:
    views, y = contract.blobs(90)
    views[0][:10] = views[1][:10] = np.nan
    model = kind(3, mode="pairs", random_state=0)
    if kind is IMG:
        model.set_params(cluster_on="coefficients")
    model.fit(views)
    assert model.embedding_.shape == (90, 3)
    assert accuracy(y, model.labels_) >= 0.95


# The others, beside their formulas ------------------------------------------------------------


@pytest.mark.parametrize("ratio", [0, 0.3])
def test_mic_is_the_model_with_diagonal_matrices(ratio: float) -> None:
    n, k, alpha, beta, steps = 40, 3, 0.05, 1e-5, 8
    views, present, _ = incomplete(n, (5, 7), ratio)
    model = MIC(k, alpha=alpha, beta=beta, n_init=2, max_iter=3, n_steps=steps, random_state=0)
    model.fit(views)

    X, C = [], []
    for x, here in zip(views, present.T, strict=True):
        X.append(np.where(here[:, None], x, np.nanmean(x, axis=0)) / np.nansum(x))
        C.append(np.diag(np.where(here, 1, here.mean())))
    B, U = warm_sweeps(X, k, np.random.RandomState(0), n_init=2, n_steps=steps)
    for _ in range(3):
        whole = sum(alpha * c @ c for c in C)
        centre = np.linalg.inv(whole) @ sum(alpha * c @ c @ u for c, u in zip(C, U, strict=True))
        value = sum(
            np.sum((c @ (x - u @ b.T)) ** 2)
            + alpha * np.sum((c @ (u - centre)) ** 2)
            + beta * np.linalg.norm(u, axis=1).sum()
            for x, c, u, b in zip(X, C, U, B, strict=True)
        )
        for v, (x, c) in enumerate(zip(X, C, strict=True)):
            u, b, c2 = U[v], B[v], c @ c
            for _ in range(steps):
                D = np.diag(1 / np.linalg.norm(u, axis=1))
                above = c2 @ x @ b + alpha * c2 @ centre
                u = u * np.sqrt(above / (c2 @ u @ b.T @ b + alpha * c2 @ u + beta / 2 * D @ u))
                b = b * np.sqrt((x.T @ c2 @ u) / (b @ u.T @ c2 @ u))
                u, b = u * b.sum(axis=0), b / b.sum(axis=0)
            U[v], B[v] = u, b
    assert np.allclose(model.embedding_, centre, rtol=1e-6, atol=1e-12)
    assert np.isclose(model.objective_[-1], value, rtol=1e-6)


@pytest.mark.parametrize("anchor", ["initial", "current"])
@pytest.mark.parametrize("ratio", [0, 0.3])
def test_agc_is_the_model_by_columns(anchor: str, ratio: float) -> None:
    n, k, l1, l3, steps = 24, 2, 2.0, 5.0, 3
    views, present, _ = incomplete(n, (4, 5, 3), ratio, k, apart=0.7)
    model = AGCIMC(k, completion=l1, smoothness=l3, n_neighbors=3, anchor=anchor, max_iter=steps)
    model.set_params(random_state=0).fit(views)

    S0 = [_binary_graph(x, here, 3) for x, here in zip(views, present.T, strict=True)]
    W = [np.outer(here, here).astype(float) for here in present.T]
    S, a, V = [s.copy() for s in S0], np.full(3, 1 / 3), range(3)

    def lap(s: np.ndarray) -> np.ndarray:
        s = (s + s.T) / 2
        return np.diag(s.sum(axis=1)) - s

    for _ in range(steps):
        U = np.linalg.eigh(sum(a[v] ** 2 * lap(S[v]) for v in V))[1][:, :k]
        b = mixtures(np.array([[np.sum(S[u] * S[v]) for v in V] for u in V])).T
        mixed = [sum(b[u, v] * S[u] for u in V if u != v) for v in V]

        def bracket(v: int) -> float:
            return (
                np.sum(((S[v] - S0[v]) * W[v]) ** 2)  # noqa: B023
                + l1 * np.sum((S[v] - sum(b[u, v] * S[u] for u in V if u != v)) ** 2)  # noqa: B023
                + l3 * np.trace(U.T @ lap(S[v]) @ U)  # noqa: B023
            )

        h = np.array([1 / bracket(v) for v in V])
        a = h / h.sum()
        Z = ((U[:, None] - U[None]) ** 2).sum(axis=2)
        new = []
        for v in V:
            held = S0[v] if anchor == "initial" else S[v]
            above = a[v] ** 2 * (held * W[v] + l1 * mixed[v] - l3 / 4 * Z)
            below = a[v] ** 2 * (W[v] + l1)
            for u in V:
                if u != v:
                    above = above + l1 * a[u] ** 2 * b[v, u] * (S[u] - mixed[u] + b[v, u] * S[v])
                    below = below + l1 * a[u] ** 2 * b[v, u] ** 2
            T, columns = above / below, np.zeros((n, n))
            for i in range(n):
                others = np.arange(n) != i
                columns[others, i] = _projected(T[others, i])
            new.append(columns)
        S = new
        value = sum(a[v] ** 2 * bracket(v) for v in V)
    assert np.isclose(model.objective_[-1], value, rtol=1e-8)
    unit = U / np.linalg.norm(U, axis=1, keepdims=True)
    assert np.allclose(model.embedding_ @ model.embedding_.T, unit @ unit.T, atol=1e-6)


def _binary_graph(X: np.ndarray, here: np.ndarray, q: int) -> np.ndarray:
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    graph, at = np.zeros((len(X), len(X))), np.flatnonzero(here)
    for i in at:
        distance = ((X[i] - X[at]) ** 2).sum(axis=1)
        near = at[np.argsort(distance)[1 : q + 1]]
        graph[i, near] = graph[near, i] = 1
    return graph


def _projected(a: np.ndarray) -> np.ndarray:
    """Project on the simplex by bisection."""
    low, high = a.min() - 1, a.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(a - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(a - low, 0)


@pytest.mark.parametrize("ratio", [0, 0.3])
def test_ueaf_is_the_model_with_inferred_columns(ratio: float) -> None:
    n, k, l1, l2, l3, steps = 30, 2, 0.1, 0.05, 1e-3, 4
    views, present, _ = incomplete(n, (4, 5), ratio, k, apart=1)
    model = UEAF(k, inference=l1, smoothness=l2, connection=l3, n_neighbors=2, max_iter=steps)
    model.set_params(tol=0, random_state=0).fit(views)

    rng, X, E, U, L, G = np.random.RandomState(0), [], [], [], [], []
    for x, here in zip(views, present.T, strict=True):
        unit = np.where(here[:, None], x / np.linalg.norm(x, axis=1, keepdims=True), 0).T
        d, lacking = len(unit), np.flatnonzero(~here)
        graph = np.zeros((d, d))
        for i in range(d):
            near = np.argsort(((unit[i] - unit) ** 2).sum(axis=1))[1:3]
            graph[i, near] = graph[near, i] = 1
        X.append(unit)
        L.append(np.diag(graph.sum(axis=1)) - graph)
        U.append(np.linalg.qr(rng.uniform(size=(d, k)))[0])
        E.append(rng.uniform(size=(len(lacking), d)).T)
        G.append(np.eye(n)[lacking])
    S = rng.uniform(size=(n, n))
    np.fill_diagonal(S, 0)

    def lap(s: np.ndarray) -> np.ndarray:
        s = (s + s.T) / 2
        return np.diag(s.sum(axis=1)) - s

    def squares(rows: np.ndarray) -> np.ndarray:
        return ((rows[:, None] - rows[None]) ** 2).sum(axis=2)

    F, a = np.linalg.eigh(lap(S))[1][:, :k], np.full(2, 0.5)
    for _ in range(steps):
        P = sum(a[v] ** 3 * U[v].T @ (X[v] + E[v] @ G[v]) for v in range(2))
        P = P @ np.linalg.inv(np.eye(n) + l2 * lap(S**2)) / np.sum(a**3)
        T = -l3 / (2 * l2) * squares(F) / np.maximum(squares(P.T), 1e-10) / np.sum(a**3)
        S = np.zeros((n, n))
        for i in range(n):
            others = np.arange(n) != i
            S[i, others] = _projected(T[i, others])
        F = np.linalg.eigh(lap(S))[1][:, :k]
        h = np.empty(2)
        for v in range(2):
            left, _, right = np.linalg.svd((X[v] + E[v] @ G[v]) @ P.T, full_matrices=False)
            U[v] = left @ right
            E[v] = np.linalg.inv(np.eye(len(L[v])) + l1 * L[v]) @ U[v] @ P @ G[v].T
            h[v] = np.sum((X[v] + E[v] @ G[v] - U[v] @ P) ** 2)
            h[v] += l1 * np.trace(E[v].T @ L[v] @ E[v]) + l2 / 2 * np.sum(squares(P.T) * S**2)
        a = h**-0.5 / np.sum(h**-0.5)
        value = a**3 @ h + l3 * np.trace(F.T @ lap(S) @ F)
    value /= sum(np.sum(x**2) for x in X)
    assert np.isclose(model.objective_[-1], value, rtol=1e-8)
    unit = P.T / np.linalg.norm(P.T, axis=1, keepdims=True)
    assert np.allclose(model.embedding_, unit, atol=1e-6)


# Pieces ---------------------------------------------------------------------------------------


def test_mic_refuses_negative_features_unless_it_scales_them() -> None:
    contract.refuses_negative_features(MIC(3, n_init=2, random_state=0))
    views, y = contract.blobs()
    views[1] -= 3
    model = MIC(3, n_init=3, max_iter=10, scale="minmax", random_state=0).fit(views)
    assert accuracy(y, model.labels_) >= 0.95
    assert (model.embedding_ >= 0).all()


def test_pvc_warns_when_sparsity_leaves_nothing() -> None:
    views, _ = contract.blobs()
    with pytest.warns(ConvergenceWarning, match=r"sparsity=1000\.0, all coefficients are zero"):
        PVC(3, sparsity=1e3, scale="unit", random_state=0).fit(views)


def test_pvc_takes_few_and_many_samples_of_a_pattern_alike() -> None:
    """One matrix for many columns, or one for each: the same coefficients."""
    rng = np.random.default_rng(0)
    A = rng.uniform(size=(6, 4))
    G, Q, P = A.T @ A, rng.normal(size=(4, 30)), rng.uniform(size=(4, 30))
    each = np.repeat(G[:, :, None], 30, axis=2)
    shared, single = (coordinate_descent(g, Q, 0.1, P, max_sweeps=9, tol=0) for g in (G, each))
    assert np.allclose(shared, single, atol=1e-12)


def test_filled_view_is_the_matrix_with_the_mean_filled_in() -> None:
    views, present, _ = incomplete()
    X, here = filled_with(0, views)[0], present[:, 0]
    plain = np.where(here[:, None], X, X[here].mean(axis=0)) / X.sum()
    view, rng = Filled.of(X, here), np.random.default_rng(0)
    U, V = rng.uniform(size=(5, 3)), rng.uniform(size=(60, 3))
    assert np.allclose(view @ U, plain @ U)
    assert np.allclose(view.T @ V, plain.T @ V)
    assert np.isclose(squared_error(view, U, V), np.sum((plain - V @ U.T) ** 2))


def test_nmf_finds_factors_that_exist() -> None:
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(30, 2)) @ rng.uniform(size=(2, 8))
    U, V = nmf(X, 2, rng, n_init=5, n_steps=2000)
    assert np.allclose(U.sum(axis=0), 1)
    assert squared_error(X, U, V) < 1e-4 * np.sum(X**2)


def test_mixtures_are_the_best_on_the_simplex() -> None:
    rng = np.random.default_rng(0)
    S = rng.uniform(size=(4, 50))
    B = mixtures(S @ S.T)
    assert np.allclose(B.sum(axis=1), 1)
    assert not B.diagonal().any()
    least = ((S - B @ S) ** 2).sum(axis=1)
    for _ in range(200):
        other = rng.dirichlet(np.ones(3))
        for v in range(4):
            others = np.delete(S, v, axis=0)
            assert least[v] <= ((S[v] - other @ others) ** 2).sum() + 1e-9
