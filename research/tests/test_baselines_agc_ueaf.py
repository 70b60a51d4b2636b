"""AGC-IMC and UEAF are what was published, written with loops and n × n matrices."""

from __future__ import annotations

import numpy as np
import pytest
from baselines_incomplete import incomplete, projected

from viewfold_research.baselines import AGCIMC, UEAF
from viewfold_research.baselines.agc_imc import mixtures


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
                columns[others, i] = projected(T[others, i])
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
            S[i, others] = projected(T[i, others])
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
