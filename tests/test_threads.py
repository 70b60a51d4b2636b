"""Models in several threads: the bits of one after the other, and BLAS as it was before."""

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from viewfold import FCMVC, ViewFold, engine
from viewfold.engine import all_on_one_thread, blas_on_one_thread, block_bytes
from viewfold.selection import suggest_n_clusters


def limits() -> list[int]:
    return [library["num_threads"] for library in threadpool_info()]


def blas() -> set[int]:
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


@pytest.fixture(autouse=True)
def three_threads():
    """Let BLAS have more than one thread, on whatever machine this is."""
    with threadpool_limits(3):
        yield
        assert blas() == {3}


class Elsewhere:
    """A thread that enters a context and leaves it when told."""

    def __init__(self, context: Callable[[], Any]) -> None:
        self.context, self.told = context, None
        self.entered, self.leave = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        assert self.entered.wait(10)

    def run(self) -> None:
        with self.context() as self.told:
            self.entered.set()
            self.leave.wait(10)

    def end(self) -> None:
        self.leave.set()
        self.thread.join(10)


@pytest.mark.parametrize("context", [blas_on_one_thread, all_on_one_thread])
@pytest.mark.parametrize("first_out", [0, 1])
def test_limits_of_overlapping_threads_are_back_afterwards(context, first_out: int) -> None:
    others = [Elsewhere(context), Elsewhere(context)]
    assert blas() == {1}
    if context is blas_on_one_thread:
        assert [other.told for other in others] == [3, 3]
    others[first_out].end()
    assert blas() == {1}
    others[1 - first_out].end()
    assert blas() == {3}


NESTED = """
from sklearn.cluster import KMeans  # brings OpenMP
from threadpoolctl import threadpool_info, threadpool_limits
from viewfold.engine import all_on_one_thread, blas_on_one_thread

def limits(api):
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == api}

def nested(context):
    with context() as outer, context() as inner:
        assert outer == inner
        assert limits("blas") == {1}
        assert limits("openmp") == ({1} if context is all_on_one_thread else {3})
        raise KeyError(outer)

with threadpool_limits(3):
    for context, told in ((blas_on_one_thread, 3), (all_on_one_thread, None)):
        try:
            nested(context)
        except KeyError as error:
            assert error.args == (told,)
        assert limits("blas") == limits("openmp") == {3}
print("restored")
"""


def test_uses_may_be_nested_and_an_error_restores_the_limits() -> None:
    """In a process of its own: other libraries bring other pools of threads."""
    done = subprocess.run([sys.executable, "-c", NESTED], capture_output=True, text=True)
    assert done.stdout == "restored\n", done.stderr


def fold(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(400, d)) + 3 * np.eye(d)[np.arange(400) % 4] for d in (20, 30)]
    kind = (ViewFold, FCMVC)[seed % 2]
    with block_bytes(20_000):
        model = kind(4, random_state=seed).fit(X)
    return [model.embedding_, model.labels_, model.transform(X[0], view=0), model._n_features_out]


def test_models_in_two_threads_give_the_bits_of_one_after_the_other() -> None:
    alone = [fold(seed) for seed in range(6)]
    for _ in range(3):
        with ThreadPoolExecutor(2) as pool:
            together = list(pool.map(fold, range(6)))
        for one, other in zip(alone, together, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert blas() == {3}


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_all_of_a_fold_and_a_prediction_sees_one_thread(monkeypatch, kind) -> None:
    """A product outside of the limit would have the bits of as many threads as others leave."""
    seen = set()

    def watched(call: Any) -> Any:
        def spy(*given: Any, **more: Any) -> Any:
            seen.add(frozenset(blas()))
            return call(*given, **more)

        return spy

    for where, name in ((np.linalg, "eigh"), (np.linalg, "svd"), (engine.Rows, "read")):
        monkeypatch.setattr(where, name, watched(getattr(where, name)))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    model = kind(3, random_state=0)
    with pytest.warns(UserWarning, match="shares no sample|share fewer than 10"):
        model.partial_fit(X[:90], ids=range(90)).partial_fit(X[90:], ids=range(90, 200))
    model.predict(X, view=0)
    model.predict_frame(X, view=0)
    assert seen == {frozenset({1})}


def test_a_fold_that_fails_and_a_suggestion_leave_the_limits_alone() -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    before = limits()
    for kind in (ViewFold, FCMVC):
        with pytest.raises(ValueError, match=r"no feature that varies|Constant"):
            kind(2).fit([np.ones((60, 4))])
    suggest_n_clusters([X], [2, 3])
    assert limits() == before
