"""What every engine promises: a class of tests for each kind; an engine adds one method, `make`.

Functions that are sent to workers are local ones, which travel with their code: workers cannot
import this module.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from viewfold import FCMVC, ViewFold
from viewfold._util.watch import watching
from viewfold.rows import LocalEngine, Rows, using
from viewfold.rows.bucket_files import BucketRows, bucket_of
from viewfold.rows.local import added

N = 160

Make = Callable[..., Any]  # make(folder, n_buckets) returns an engine


def views() -> list[tuple[np.ndarray, np.ndarray]]:
    """Two views; each lacks samples of the other, and all are shuffled texts."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=N)
    X = [5 * rng.normal(size=(3, d))[y] + rng.normal(size=(N, d)) for d in (6, 9)]
    names = np.array([f"patient {i}" for i in range(N)], object)
    here = [rng.permutation(N)[: int(share * N)] for share in (0.8, 0.7)]
    return [(Z[some], names[some]) for Z, some in zip(X, here, strict=True)]


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
    kill = signal.SIGKILL

    def deadly(item: Any) -> Any:
        result = task(item)  # files are written by then, and will be written again
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return result
        os.kill(os.getpid(), kill)
        return None

    return deadly


class Heard:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def begin(self, total: float, unit: str) -> None:
        self.told.append((total, unit))

    def done(self, part: float) -> None:
        self.told.append(part)


class EngineContract:
    """Every engine: the three verbs, and whatever else a method asks of rows."""

    @pytest.fixture
    def make(self) -> Make:
        """Return a function that opens the engine, with files in a folder; each engine has it."""
        raise NotImplementedError

    @pytest.fixture
    def engine(self, make: Make, tmp_path: Path) -> Iterator[Any]:
        with make(str(tmp_path / "scratch"), 5) as engine:
            yield engine
        assert not (tmp_path / "scratch").exists() or not os.listdir(tmp_path / "scratch")

    @pytest.fixture(params=["whole numbers", "texts"])
    def held(self, request: Any, engine: Any) -> tuple[Any, Any, np.ndarray]:
        """Return ids, rows of a view, and the number by which each sample is known here."""
        number = np.random.default_rng(0).permutation(40)
        names = np.array([f"p{i}" for i in range(40)], object)
        X = np.column_stack([number, 10.0 * number, -1.0 * number])
        given = number if request.param == "whole numbers" else names[number]
        ids, rows = engine.partition(given, Rows(X))
        text = [str(name).removeprefix("p") for name in engine.collect(ids).tolist()]
        return ids, rows, np.array(text, int)

    def test_rows_and_ids_stay_together(self, engine: Any, held: Any) -> None:
        ids, rows, number = held
        assert (ids.shape, rows.shape) == ((40,), (40, 3))
        assert sorted(number) == list(range(40))
        assert np.array_equal(engine.collect(rows)[:, 1], 10.0 * number)
        again = engine.partition(ids, rows)
        assert np.array_equal(engine.collect(again[1]), engine.collect(rows))

    def test_reduce_sums_or_combines(self, engine: Any, held: Any) -> None:
        _, rows, number = held
        total, many = engine.reduce(lambda block: (block.sum(axis=0), len(block)), rows)
        assert total.tolist() == [780, 7800, -780]
        assert many == 40
        most = engine.reduce(lambda b: b[:, 0].max(initial=-1), rows, combine=max)
        assert most == number.max()

    def test_map_returns_a_row_for_each_row(self, engine: Any, held: Any) -> None:
        _, rows, number = held
        made = engine.map(lambda block: 2 * block, rows)
        assert np.array_equal(engine.collect(made)[:, 0], 2 * number)
        (first, thin), total = engine.map(
            lambda b: ((b[:, 0], sparse.csr_array(b)), b.sum(axis=0)), rows, sums=True
        )
        assert np.array_equal(engine.collect(first), number)
        assert np.array_equal(engine.collect(thin).toarray()[:, 2], -number)
        assert total.tolist() == [780, 7800, -780]
        wide = engine.map(lambda block: np.repeat(block, 4, axis=1), rows, width=12)
        assert engine.collect(wide).shape == (40, 12)
        later = engine.map(lambda block: block + 1, made, reuse=True)
        assert np.array_equal(engine.collect(later)[:, 0], 2 * number + 1)

    def test_map_takes_rows_of_the_same_samples_together(self, engine: Any, held: Any) -> None:
        _, rows, number = held
        labels = engine.map(lambda block: block[:, 0].astype(int) % 3, rows)
        both = engine.map(lambda block, label: block[:, 0] + 100 * label, rows, labels)
        assert np.array_equal(engine.collect(both), number + 100 * (number % 3))

    @pytest.mark.parametrize("ordered", [False, True])
    def test_join_aligns_by_id(self, engine: Any, ordered: bool) -> None:
        known, of_known = engine.partition(np.arange(0, 30), Rows(np.arange(0.0, 30)[:, None]))
        view, of_view = engine.partition(np.arange(20, 45), Rows(np.arange(20.0, 45)[:, None]))
        alignment = engine.join(known, view, ordered=ordered)
        numbers = alignment.n_samples, alignment.n_shared, alignment.n_new, alignment.n_before
        assert numbers == (45, 10, 15, 30)
        union = engine.collect(alignment.ids)
        assert sorted(union) == list(range(45))
        here = engine.collect(view)
        assert np.array_equal(engine.collect(alignment.known), here < 30)
        partners = engine.collect(alignment.partners(engine.map(lambda b: b, of_known), fill=-1))
        assert np.array_equal(partners.ravel(), np.where(here < 30, here, -1))
        label = engine.map(lambda block: block[:, 0].astype(int), of_known)
        lacking = engine.collect(alignment.absent(label))
        assert sorted(lacking) == list(range(20))
        carried = engine.collect(alignment.carry(label, -1))
        assert np.array_equal(carried, np.where(union < 30, union, -1))
        merged = alignment.merge(
            (lambda block: 100 * block[:, 0].astype(int), of_view),
            (lambda label: label, alignment.absent(label)),
        )
        assert np.array_equal(engine.collect(merged), np.where(union < 20, union, 100 * union))

    def test_the_first_view_joins_nobody(self, engine: Any) -> None:
        view, _ = engine.partition(np.arange(7), Rows(np.ones((7, 2))))
        alignment = engine.join(np.arange(0), view)
        assert (alignment.n_samples, alignment.n_shared, alignment.n_new) == (7, 0, 7)
        assert not engine.collect(alignment.known).any()

    def test_rows_are_selected_by_number_and_kept_by_mask(self, engine: Any, held: Any) -> None:
        _, rows, number = held
        numbers = engine.collect(engine.numbers(rows))
        assert sorted(numbers) == list(range(40))
        chosen = np.array([17, 3, 30, 4])
        some = engine.collect(engine.select(rows, chosen))
        assert np.array_equal(some[:, 0], number[chosen])
        even = engine.map(lambda block: block[:, 0] % 2 == 0, rows)
        kept = engine.collect(engine.keep(rows, even))
        assert np.array_equal(kept[:, 0], number[number % 2 == 0])

    def test_leading_columns_and_a_few_rows(self, engine: Any, held: Any) -> None:
        _, rows, number = held
        assert engine.leading(rows, 2).shape == (40, 2)
        assert np.array_equal(engine.collect(engine.leading(rows, 2))[:, 1], 10.0 * number)
        few = engine.head(rows, 2)
        assert few.shape == (2, 3)
        assert set(few[:, 0]) <= set(range(40))
        assert engine.head(rows, 0).shape == (0, 3)

    def test_cells_are_filled_once(self, engine: Any) -> None:
        X = np.where(np.arange(20)[:, None] % 4, 1.0, np.nan) * np.ones((1, 3))

        def fill(block: Any) -> Any:
            return np.nan_to_num(block, nan=9.0)

        _, rows = engine.partition(np.arange(20), Rows(X, fill=fill))
        whole = engine.materialize(rows)
        assert whole.fill is None
        assert engine.reduce(lambda block: block.sum(), whole) == 15 * 3 + 5 * 27

    def test_ids_that_are_almost_the_same_are_matched(self, engine: Any) -> None:
        (mine,) = engine.partition(np.array(["P7", "p8", "p9"], object))
        (known,) = engine.partition(np.array(["p7 ", "p8", "x"], object))

        def alike(some: Any, others: Any) -> Any:
            names = {name.strip().lower() for name in others}
            return np.array([name.lower() in names for name in some], bool)

        found = engine.collect(engine.match(alike, mine, known))
        assert dict(zip(engine.collect(mine).tolist(), found.tolist(), strict=True)) == {
            "P7": True,
            "p8": True,
            "p9": False,
        }

    @pytest.mark.slow
    def test_folds_are_those_in_memory(self, engine: Any) -> None:
        """For one estimator: test_engine.py has all of them on an engine with buckets."""
        assert_same(engine, ViewFold, views())


class BucketContract(EngineContract):
    """Every engine with buckets: tasks in order, errors as they are, nothing left behind."""

    def test_rows_are_in_buckets(self, engine: Any, held: Any) -> None:
        assert all(isinstance(one, BucketRows) for one in held[:2])
        with pytest.raises(TypeError, match="no array"):
            np.asarray(held[1])

    def test_results_come_in_order(self, engine: Any) -> None:
        """More items than are combined at once: each of them once."""
        for n in (1, 2, 20):
            items = list(range(n))
            assert engine.run(lambda item: [item], items, lambda a, b: a + b) == items
        total = engine.run(lambda item: np.full(3, float(item)), list(range(20)), added)
        assert total.tolist() == [190.0] * 3

    def test_errors_in_data_arrive_as_they_are(self, engine: Any) -> None:
        """And are not tried again."""

        def refuse(item: int) -> int:
            if item == 2:
                raise ValueError("View 'labs' has NaN in row 7.")
            return item

        with pytest.raises(ValueError, match=r"^View 'labs' has NaN in row 7\.$"):
            engine.each(refuse, [0, 1, 2, 3])
        assert engine.each(refuse, [0, 1, 3]) == [0, 1, 3]

    def test_progress_counts_buckets(self, engine: Any) -> None:
        heard = Heard()
        with watching(heard):
            engine.run(lambda item: item, list(range(12)), max)
        assert heard.told[0] == (12, "buckets")
        assert heard.told[-1] == 12
        assert heard.told[1:] == sorted(heard.told[1:])

    def test_rows_may_be_at_an_address(self, make: Make, tmp_path: Path) -> None:
        """At one that fsspec knows; nothing is left there when the engine is closed."""
        with make(f"file://{tmp_path}", 3) as engine:
            ids, rows = engine.partition(np.arange(50), np.arange(100.0).reshape(50, 2))
            doubled = engine.map(lambda block: 2 * block, rows)
            at = np.argsort(engine.collect(ids))
            assert np.array_equal(engine.collect(doubled)[at], 2 * np.arange(100.0).reshape(50, 2))
            assert list(tmp_path.iterdir())
        assert not list(tmp_path.iterdir())


class SmallBucketsContract(BucketContract):
    """Also where every bucket has one sample, or none: of how rows travel nothing depends on it."""

    def test_buckets_may_have_one_sample_or_none(self, make: Make, tmp_path: Path) -> None:
        buckets, ids = np.unique(bucket_of(np.arange(1000), 12), return_index=True)
        assert buckets.size == 12
        X = np.random.default_rng(0).normal(size=(12, 3)) + 9 * (np.arange(12) % 2)[:, None]
        with make(str(tmp_path), 12) as engine:
            assert_same(engine, FCMVC, [(X, ids), (X[:6], ids[:6])], 2)


class SendingContract(BucketContract):
    """Every engine of other processes: these may die, and the folder is all that they share."""

    @pytest.mark.slow
    def test_a_killed_worker_changes_nothing(
        self, engine: Any, tmp_path: Path, monkeypatch: Any
    ) -> None:
        """Kill a worker in the middle of a fold, with the result of a bucket in its hands."""
        marker, run, number = tmp_path / "killed", engine.run, count()

        def run_and_die(task: Any, items: Any, combine: Any) -> Any:
            deadly = next(number) == 9
            return run(once_deadly(task, marker) if deadly else task, items, combine)

        monkeypatch.setattr(engine, "run", run_and_die)
        assert_same(engine, FCMVC, views())
        assert marker.exists()

    def test_a_large_task_is_sent_once(self, engine: Any) -> None:
        """It goes into the folder, and nothing of it stays there."""
        table, before = np.arange(50_000), sorted(os.listdir(engine.folder))
        found = engine.run(lambda item: [int(table[item])], [7, 49_999], lambda a, b: a + b)
        assert found == [7, 49_999]
        assert sorted(os.listdir(engine.folder)) == before

    def test_trouble_with_a_disk_is_repeated(self, engine: Any, tmp_path: Path) -> None:
        marker = tmp_path / "away"

        def stumble(item: int) -> int:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return item
            raise OSError("the disk is away")

        assert engine.each(stumble, [4, 5]) == [4, 5]
        assert marker.exists()

    def test_a_folder_that_workers_do_not_see_is_refused(self, make: Make) -> None:
        with pytest.raises(ValueError, match=r"Workers cannot read memory://here.*share"):
            make("memory://here", 3)
