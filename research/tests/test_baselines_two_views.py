"""IMG and PVC are what was published for two views, and join pairs of more."""

from __future__ import annotations

from typing import Any

import baselines_contract as contract
import numpy as np
import pytest
from baselines_incomplete import filled_with, incomplete
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from viewfold.metrics import accuracy
from viewfold_research.baselines import IMG, PVC
from viewfold_research.baselines.pvc import coordinate_descent


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


@pytest.mark.parametrize(
    "model", [PVC(3, tol=0, random_state=0), IMG(3, cluster_on="coefficients", random_state=0)]
)
def test_without_missing_samples_it_is_one_factorisation_of_the_views_side_by_side(
    model: Any,
) -> None:
    """Bases of all views are one basis: what the mask adds is nothing when it hides nobody."""
    views, _ = contract.blobs(60)
    whole, joined = (clone(model).fit(X).embedding_ for X in (views, np.hstack(views)))
    assert np.allclose(whole, joined, atol=1e-8)
    views[0][:20] = np.nan
    assert not np.allclose(clone(model).fit(views).embedding_, joined, atol=1e-3)


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
