"""What every engine of other processes has to do, whoever schedules its tasks."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from viewfold import FCMVC, ViewFold
from viewfold._util.watch import watching
from viewfold.rows import LocalEngine, using
from viewfold.rows.bucket_files import BucketRows, bucket_of
from viewfold.rows.local import added

N = 160
KINDS = ("complete", "incomplete")
ESTIMATORS = (FCMVC, ViewFold)


def views(kind: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Two views; if incomplete, each lacks samples of the other, and all are shuffled texts."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=N)
    X = [5 * rng.normal(size=(3, d))[y] + rng.normal(size=(N, d)) for d in (6, 9)]
    if kind == "complete":
        return [(Z, np.arange(N)) for Z in X]
    names = np.array([f"patient {i}" for i in range(N)], object)
    here = [rng.permutation(N)[: int(share * N)] for share in (0.8, 0.7)]
    return [(Z[some], names[some]) for Z, some in zip(X, here, strict=True)]


def one_in_each(n_buckets: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return a view with one sample in each bucket."""
    buckets, first = np.unique(bucket_of(np.arange(1000), n_buckets), return_index=True)
    assert buckets.size == n_buckets
    X = (
        np.random.default_rng(0).normal(size=(n_buckets, 3))
        + 9 * (np.arange(n_buckets) % 2)[:, None]
    )
    return [(X, first)]


def folded(model: Any, deliveries: list[tuple[np.ndarray, np.ndarray]]) -> Any:
    for i, (X, ids) in enumerate(deliveries):
        model.partial_fit(X, ids=ids, view=f"view{i}")
    return model


def assert_same(engine: Any, estimator: type, deliveries: list[Any], n_clusters: int = 3) -> None:
    """Fold views with the engine and in memory: same samples, embedding and clusters."""
    how: dict[str, Any] = {"n_init": 2, "random_state": 0}
    if estimator is ViewFold:
        how["encoder"] = "linear"
    with using(LocalEngine()):
        expected = folded(estimator(n_clusters, **how), deliveries)
    with using(engine):
        state = folded(estimator(n_clusters, **how), deliveries)._state
    assert isinstance(state.embedding, BucketRows)
    at = pd.Index(engine.collect(state.ids)).get_indexer(expected.ids_)
    assert sorted(at) == list(range(len(expected.ids_)))
    mine = engine.collect(state.embedding)[at].astype(np.float64)
    theirs = np.asarray(expected.embedding_, np.float64)
    products, wanted = mine @ mine.T, theirs @ theirs.T
    assert np.abs(products - wanted).max() <= 1e-8 * np.abs(wanted).max()
    same = engine.collect(state.history)[at] == expected.history_.to_numpy()
    assert same.mean() >= 0.999


def once_deadly(task: Callable[[Any], Any], marker: Path) -> Callable[[Any], Any]:
    """Return a task that kills the process it runs in, the first time that anybody does it."""
    kill = signal.SIGKILL  # what is local is sent along: workers cannot import this module

    def deadly(item: Any) -> Any:
        result = task(item)  # files are written by then, and will be written again
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return result
        os.kill(os.getpid(), kill)
        return None

    return deadly


def assert_survives_a_killed_worker(engine: Any, marker: Path, monkeypatch: Any) -> None:
    """Kill a worker in the middle of a fold, with the result of a bucket in its hands."""
    run, number = engine.run, count()

    def run_and_die(task: Any, items: Any, combine: Any) -> Any:
        deadly = next(number) == 9
        return run(once_deadly(task, marker) if deadly else task, items, combine)

    monkeypatch.setattr(engine, "run", run_and_die)
    assert_same(engine, FCMVC, views("incomplete"))
    assert marker.exists()


def assert_runs_in_order(engine: Any) -> None:
    """Results of more items than are combined at once come in order, each of them once."""
    for n in (1, 2, 20):
        items = list(range(n))
        assert engine.run(lambda item: [item], items, lambda a, b: a + b) == items
    total = engine.run(lambda item: np.full(3, float(item)), list(range(20)), added)
    assert total.tolist() == [190.0] * 3


def assert_sends_what_is_large_once(engine: Any) -> None:
    """A large task goes into the folder, and nothing of it stays there."""
    table, before = np.arange(50_000), sorted(os.listdir(engine.folder))
    found = engine.run(lambda item: [int(table[item])], [7, 49_999], lambda a, b: a + b)
    assert found == [7, 49_999]
    assert sorted(os.listdir(engine.folder)) == before


def assert_tells_errors(engine: Any) -> None:
    """An error in the data is the same error here, and is not tried again."""

    def refuse(item: int) -> int:
        if item == 2:
            raise ValueError("View 'labs' has NaN in row 7.")
        return item

    with pytest.raises(ValueError, match=r"^View 'labs' has NaN in row 7\.$"):
        engine.each(refuse, [0, 1, 2, 3])
    assert engine.each(refuse, [0, 1, 3]) == [0, 1, 3]


def assert_repeats_after_trouble_with_a_disk(engine: Any, marker: Path) -> None:
    def stumble(item: int) -> int:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return item
        raise OSError("the disk is away")

    assert engine.each(stumble, [4, 5]) == [4, 5]
    assert marker.exists()


class Heard:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def begin(self, total: float, unit: str) -> None:
        self.told.append((total, unit))

    def done(self, part: float) -> None:
        self.told.append(part)


def assert_tells_how_far_it_is(engine: Any) -> None:
    heard = Heard()
    with watching(heard):
        engine.run(lambda item: item, list(range(12)), max)
    assert heard.told[0] == (12, "buckets")
    assert heard.told[-1] == 12
    assert heard.told[1:] == sorted(heard.told[1:])


def assert_works_at_an_address(make: Callable[[str], Any], parent: Path) -> None:
    """Rows at an address that fsspec knows; nothing is left there when the engine is closed."""
    with make(f"file://{parent}") as engine:
        ids, rows = engine.partition(np.arange(50), np.arange(100.0).reshape(50, 2))
        doubled = engine.map(lambda block: 2 * block, rows)
        at = np.argsort(engine.collect(ids))
        assert np.array_equal(engine.collect(doubled)[at], 2 * np.arange(100.0).reshape(50, 2))
        assert list(parent.iterdir())
    assert not list(parent.iterdir())
