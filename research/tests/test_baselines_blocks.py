"""The blocks that baselines share: alignment, scaling, eigenvectors, simplex, factors."""

from __future__ import annotations

import baselines_contract as contract
import numpy as np
import pytest
from baselines_incomplete import filled_with, incomplete

from viewfold_research.baselines._base import align, scaled
from viewfold_research.baselines._blocks import (
    laplacian,
    pkn_graph,
    simplex_quadratic,
    smallest_eigenvectors,
)
from viewfold_research.baselines._nmf import Filled, nmf, squared_error


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
