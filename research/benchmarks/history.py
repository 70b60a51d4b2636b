"""How long a fold takes, commit after commit: `make history` runs this and keeps the result.

Seconds of two machines cannot be compared, so every run also times the floor, one Gram matrix of
the same view: divide by it. Only public names are used, so that older commits can be measured too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from viewfold import FCMVC, ViewFold

N, D, K = 20_000, 64, 10
METHODS = {"FCMVC": FCMVC(K, random_state=0), "ViewFold": ViewFold(K, random_state=0)}
each = pytest.mark.parametrize("method", METHODS)
rounds = {"rounds": 3, "warmup_rounds": 1}


def views() -> list[tuple[np.ndarray, np.ndarray]]:
    """Return matrix and ids of two views of the same clusters, each without a tenth of samples."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, N)
    found = []
    for _ in range(2):
        ids = np.sort(rng.choice(N, 9 * N // 10, replace=False))
        centres = rng.standard_normal((K, D))
        found.append((centres[y[ids]] + 2 * rng.standard_normal((ids.size, D)), ids))
    return found


@pytest.fixture(scope="module")
def two() -> list[tuple[np.ndarray, np.ndarray]]:
    return views()


def folded(method: str, *parts: tuple[np.ndarray, np.ndarray]) -> Any:
    model = clone(METHODS[method])
    for name, (X, ids) in zip("ab", parts, strict=False):
        model.partial_fit(X, ids=ids, view=name)
    return model


def test_floor(benchmark: Any, two: Any) -> None:
    X = two[1][0]
    benchmark.pedantic(lambda: X.T @ X, iterations=20, **rounds)


@each
def test_first_view(benchmark: Any, method: str, two: Any) -> None:
    benchmark.pedantic(folded, args=(method, two[0]), **rounds)


@each
def test_later_view(benchmark: Any, method: str, two: Any) -> None:
    def before() -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (folded(method, two[0]),), {}

    def later(model: Any) -> None:
        model.partial_fit(two[1][0], ids=two[1][1], view="b")

    benchmark.pedantic(later, setup=before, **rounds)


@each
def test_predict(benchmark: Any, method: str, two: Any) -> None:
    model = folded(method, *two)
    benchmark.pedantic(model.predict, args=(two[1][0],), kwargs={"view": "b"}, **rounds)
