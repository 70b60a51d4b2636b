"""Models in several threads: the bits of one after the other, and BLAS as it was before."""

import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from viewfold import FCMVC, ViewFold
from viewfold import rows as engine
from viewfold.estimators.selection import suggest_n_clusters
from viewfold.rows import all_on_one_thread, blas_on_one_thread, block_bytes


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
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits
from viewfold.rows import all_on_one_thread, blas_on_one_thread

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
    model = kind(4, n_init=2, random_state=seed).fit(X)
    return [model.embedding_, model.labels_, model.transform(X[0], view=0), model._n_features_out]


@block_bytes(20_000)
def test_models_in_two_threads_give_the_bits_of_one_after_the_other() -> None:
    alone = [fold(seed) for seed in range(4)]
    for _ in range(3):
        with ThreadPoolExecutor(2) as pool:
            together = list(pool.map(fold, range(4)))
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


# ---- one model in several threads ---------------------------------------------------------------


def in_threads(*work: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(work)) as pool:
        return [future.result() for future in [pool.submit(one) for one in work]]


def test_deliveries_of_several_threads_all_arrive() -> None:
    X = np.random.default_rng(0).normal(size=(208, 4))
    model = ViewFold(2, random_state=0).partial_fit(X[:40], ids=np.arange(40), view="labs")

    def deliver(first: int) -> None:
        for at in range(first, 208, 56):
            ids = np.arange(at, at + 8)
            model.partial_fit(X[ids], ids=ids, view="labs")

    in_threads(*(partial(deliver, 40 + 8 * i) for i in range(7)))
    assert sorted(model.ids_) == list(range(208))
    assert len(model.log_) == 1 + 21


@pytest.mark.parametrize("change", ["extend", "forget", "rename", "recluster", "save"])
def test_every_change_waits_for_others(change: str, tmp_path: Any) -> None:
    model = ViewFold(2, random_state=0).fit({"labs": np.eye(20)})
    calls = {
        "extend": lambda: model.extend(np.eye(20)[:2], ids=[20, 21]),
        "forget": lambda: model.forget([3]),
        "rename": lambda: model.rename(0, "first"),
        "recluster": lambda: model.recluster(3),
        "save": lambda: model.save(tmp_path / "a.vf"),
    }
    with ThreadPoolExecutor(1) as pool:
        with model._lock:
            waiting = pool.submit(calls[change])
            with pytest.raises(TimeoutError):
                waiting.result(0.2)
        waiting.result(60)


def test_questions_wait_for_no_change() -> None:
    model = ViewFold(2, random_state=0).fit({"labs": np.eye(20)})
    with model._lock:
        frame, labels = in_threads(model.to_frame, lambda: model.labels_)
    assert np.array_equal(frame["cluster"], labels)


class Changing(ViewFold):
    """A model that gets new samples, as from another thread, whenever its state is looked at."""

    live: Any = None

    @property
    def _fitted(self) -> Any:
        live, state = Changing.live, super()._fitted
        if live is not None:
            Changing.live = None
            n = live.n_samples_
            live.extend(np.eye(20)[:3], ids=range(n, n + 3))
            Changing.live = live
        return state


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "to_frame": lambda model: len(model.to_frame()),
    "polars": lambda model: len(model.to_frame("polars")),
    "history_": lambda model: len(model.history_),
    "seen_": lambda model: len(model.seen_),
    "labels_": lambda model: len(model.labels_),
    "embedding_": lambda model: len(model.embedding_),
    "movers": lambda model: 20 + len(model.movers()),
    "uncertain": lambda model: len(model.uncertain(1000)),
    "stability": lambda model: model.stability()["size"].sum(),
    "predict_frame": lambda model: len(model.predict_frame(np.eye(20))),
    "suggest": lambda model: len(suggest_n_clusters(model, [2, 3]).scores) + 18,
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_sees_one_state(question: str) -> None:
    model = Changing(2, random_state=0).fit({"labs": np.eye(20)})
    Changing.live = model
    try:
        assert QUESTIONS[question](model) == 20
    finally:
        Changing.live = None
    assert model.n_samples_ > 20


@pytest.mark.parametrize(
    "copied", [copy, deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_a_copy_has_the_state_and_a_lock_of_its_own(copied: Callable[[Any], Any]) -> None:
    model = ViewFold(2, random_state=0).fit(np.eye(20))
    with model._lock:  # in use
        other = copied(model)
    assert other.to_frame().equals(model.to_frame())
    assert other._lock is not model._lock
    other.partial_fit(np.eye(20)[::-1])
    assert (len(other.views_), len(model.views_)) == (2, 1)
    assert not hasattr(clone(model), "labels_")


# ---- engines ------------------------------------------------------------------------------------


def test_an_engine_that_is_given_holds_in_any_thread() -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    expected = ViewFold(2, random_state=0).fit(X).partial_fit(X[:, :3])
    disk = engine.DiskEngine(n_buckets=2)
    for method in ("fit", "partial_fit", "fit_predict", "fit_transform"):
        model = ViewFold(2, random_state=0)
        in_threads(partial(getattr(model, method), X, engine=disk))
        assert model._engine is disk
        in_threads(partial(model.partial_fit, X[:, :3]))  # stays with the engine of its rows
        assert model._engine is disk
        assert np.array_equal(model.labels_, expected.labels_)
    with pytest.raises(ValueError, match=r"are held by another engine \(DiskEngine\)"):
        model.partial_fit(X, engine=engine.DiskEngine(n_buckets=2))
    assert len(model.partial_fit(X, engine=disk).views_) == 3


def test_an_engine_that_is_chosen_holds_in_its_own_thread() -> None:
    with engine.using(engine.DiskEngine(n_buckets=2)) as chosen:
        assert engine.current_engine() is chosen
        (other,) = in_threads(engine.current_engine)
    assert isinstance(other, engine.LocalEngine)


def test_every_answer_is_that_of_one_of_the_states() -> None:
    """Threads ask without pause while deliveries are folded: no answer is of half a state."""
    rng = np.random.default_rng(0)
    asked = rng.normal(size=(7, 6)) + 3 * np.eye(6)[np.arange(7) % 3]
    shapes = 3 * np.eye(6)[np.arange(40) % 3]
    rows = [rng.normal(size=(40, 6)) + shapes + i for i in range(6)]  # they drift: all teach

    def answers(model: Any) -> tuple[bytes, bytes]:
        return model.transform(asked, view="labs").tobytes(), (
            model.predict_frame(asked, view="labs").to_numpy().tobytes()
        )

    def deliver(model: Any, i: int) -> None:
        model.partial_fit(rows[i], ids=range(40 * i, 40 * i + 40), view="labs")

    alone, expected = ViewFold(3, random_state=0), []
    for i in range(len(rows)):
        deliver(alone, i)
        expected.append(answers(alone))
    assert len(set(expected)) == len(rows)
    model, done = ViewFold(3, random_state=0), threading.Event()
    deliver(model, 0)

    def ask() -> list[tuple[bytes, bytes]]:
        found = []
        while not done.is_set():
            found.append(answers(model))
        return [*found, answers(model)]

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        try:
            for i in range(1, len(rows)):
                deliver(model, i)
        finally:
            done.set()
        seen = [one.result() for one in asking]
    transformed, framed = (set(each) for each in zip(*expected, strict=True))
    for found in seen:
        assert {one for one, _ in found} <= transformed
        assert {one for _, one in found} <= framed
        assert found[-1] == expected[-1]


LATER = """
import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits
from viewfold.rows import blas_on_one_thread

with blas_on_one_thread():  # before SciPy brings a BLAS of its own
    pass
import scipy.linalg

with threadpool_limits(3), blas_on_one_thread():
    print({one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"})
"""


def test_a_blas_that_is_loaded_later_is_limited_too() -> None:
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True)
    assert done.stdout == "{1}\n", done.stderr
