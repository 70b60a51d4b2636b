"""MultiNMF and MIC are what was published, written with the matrices of the papers."""

from __future__ import annotations

import baselines_contract as contract
import numpy as np
import pytest
from baselines_incomplete import incomplete
from sklearn.base import clone

from viewfold.metrics import accuracy
from viewfold_research.baselines import MIC, MultiNMF
from viewfold_research.baselines._nmf import warm_sweeps

FACTORS = MultiNMF(3, n_init=2, max_iter=5, n_steps=40, random_state=0)


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
        "viewfold_research.baselines.multinmf.warm_sweeps", lambda *_, **__: (list(U), list(V))
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


def test_mic_refuses_negative_features_unless_it_scales_them() -> None:
    contract.refuses_negative_features(MIC(3, n_init=2, random_state=0))
    views, y = contract.blobs()
    views[1] -= 3
    model = MIC(3, n_init=3, max_iter=10, scale="minmax", random_state=0).fit(views)
    assert accuracy(y, model.labels_) >= 0.95
    assert (model.embedding_ >= 0).all()
