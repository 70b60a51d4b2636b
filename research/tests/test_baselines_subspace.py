"""FMR and PMSC are what was published, written with square matrices."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from viewfold_research.baselines import FMR, PMSC, fmr, pmsc


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
