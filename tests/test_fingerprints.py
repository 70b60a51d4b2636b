"""Fingerprints tell rows apart that are alike in a way that data are alike."""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy import sparse

from viewfold.rows import LocalEngine, Rows
from viewfold.state.hashes import fingerprints, hasher

BITS = np.array(list(product([0.0, 1.0], repeat=14)))


def edits() -> np.ndarray:
    """Return rows of small whole numbers with two cells swapped, negated, or moved by one."""
    base, rows = np.random.default_rng(0).integers(0, 4, size=(60, 10)).astype(float), []
    for i, j in combinations(range(10), 2):
        swapped, negated, moved = base.copy(), base.copy(), base.copy()
        swapped[:, [i, j]] = base[:, [j, i]]
        negated[:, [i, j]] *= -1
        moved[:, i] += 1
        moved[:, j] -= 1
        rows += [swapped, negated, moved]
    return np.vstack(rows)


FAMILIES = {
    "yes and no": BITS,
    "signs": 2 * BITS - 1,
    "missing or one": np.where(BITS[:4096] > 0, np.nan, 1.0),
    "missing or zero": np.where(BITS[:4096] > 0, np.nan, 0.0),
    "one of many levels": np.eye(1000),
    "the same values in another order": np.array(list(permutations(range(7))), float),
    "whole numbers": np.arange(-9000.0, 9000)[:, None],
    "powers of two": 2.0 ** np.arange(-1070, 1020)[:, None],
    "the smallest numbers": 5e-324 * np.array(list(product(range(120), repeat=2))),
    "numbers next to one": 1 + 2.0**-52 * np.arange(16000.0)[:, None],
    "two cells edited": edits(),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_rows_that_are_alike_collide_no_more_than_by_chance(name: str) -> None:
    X = np.unique(FAMILIES[name] + 0.0, axis=0)
    found, short, n_values = 0, 0, 2**16 - 1
    for key in range(8):
        hashes = hasher(X.shape[1], key)(X)
        prints = np.asarray(fingerprints(LocalEngine(), Rows(X), key))
        assert prints.all()  # zero is for rows that are not known
        found += len(X) - np.unique(hashes).size
        short += len(X) - np.unique(prints).size
    # By chance 2⁻³² for each pair: up to 0.3 of these rows; five would be one in a thousand.
    assert found < 5
    expected = 8 * (len(X) - n_values * (1 - (1 - 1 / n_values) ** len(X)))
    assert short < 1.1 * expected + 5 * expected**0.5 + 5


def test_a_fingerprint_has_sixteen_bits() -> None:
    X = np.random.default_rng(0).normal(size=(10_000, 3))
    prints = np.asarray(fingerprints(LocalEngine(), Rows(X), 7))
    assert prints.dtype == np.int32
    assert prints.min() > 0
    assert 2**15 < prints.max() < 2**16


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint8, bool])
def test_a_row_has_one_fingerprint_whatever_holds_it(dtype: type) -> None:
    X = np.random.default_rng(0).integers(0, 2, size=(50, 9)).astype(dtype)
    engine, wanted = LocalEngine(), fingerprints(LocalEngine(), Rows(X.astype(float)), 5)
    assert np.array_equal(fingerprints(engine, Rows(X), 5), wanted)
    assert np.array_equal(fingerprints(engine, Rows(np.asfortranarray(X)), 5), wanted)
    assert np.array_equal(fingerprints(engine, Rows(sparse.csr_array(X)), 5), wanted)
    stored = sparse.csr_array(X.astype(float))
    stored.data[:3] = 0  # zeros that are stored
    there = fingerprints(engine, Rows(stored.toarray()), 5)
    assert np.array_equal(fingerprints(engine, Rows(stored), 5), there)
