"""Out of core: results do not depend on buckets, rows never vanish, and nothing is left behind."""

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from engine_contract import Make, SmallBucketsContract

from viewfold import FCMVC, ViewFold
from viewfold.rows import DiskEngine, using
from viewfold.rows.bucket_files import bucket_of, store


class TestDiskEngine(SmallBucketsContract):
    @pytest.fixture
    def make(self) -> Make:
        return lambda folder, n_buckets: DiskEngine(n_buckets, folder)


def tables(n: int = 60, texts: bool = True) -> list[pd.DataFrame]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    ids = [f"p{i}" for i in range(n)] if texts else range(n)
    made = [pd.DataFrame(6 * np.eye(3, d)[y] + rng.normal(size=(n, d)), index=ids) for d in (4, 6)]
    return [made[0][: n - n // 5], made[1][n // 6 :].sample(frac=1, random_state=0)]


def frame_of(engine: DiskEngine | None, estimator=None, **kind) -> pd.DataFrame:
    model = estimator or ViewFold(3, n_init=2, random_state=0)
    for i, table in enumerate(tables(**kind)):
        if engine is None:
            model.partial_fit(table, view=f"view{i}")
        else:
            with using(engine):
                model.partial_fit(table, view=f"view{i}")
    return model.to_frame().sort_index()


@pytest.mark.parametrize(
    ("estimator", "texts", "n_buckets"),
    [  # every two of the three choices meet
        (ViewFold, True, 1),
        (ViewFold, False, 3),
        (ViewFold, True, 90),
        (FCMVC, False, 1),
        (FCMVC, True, 3),
        (FCMVC, False, 90),
    ],
)
def test_results_do_not_depend_on_buckets_even_with_one_sample_in_each(
    estimator, texts: bool, n_buckets: int
) -> None:
    found = frame_of(
        DiskEngine(n_buckets), estimator(3, n_init=2, random_state=0), n=30, texts=texts
    )
    expected = frame_of(None, estimator(3, n_init=2, random_state=0), n=30, texts=texts)
    assert found["cluster"].equals(expected["cluster"])
    assert found["views_seen"].equals(expected["views_seen"])
    assert np.allclose(found["confidence"], expected["confidence"], atol=1e-6)


def test_the_number_of_threads_does_not_change_a_bit(monkeypatch) -> None:
    from contextlib import contextmanager

    from viewfold.rows import disk

    found = []
    for n in (1, 4):

        @contextmanager
        def threads(n=n):
            yield n

        monkeypatch.setattr(disk, "blas_on_one_thread", threads)
        with using(DiskEngine(7)):
            found.append(ViewFold(3, n_init=2, random_state=0).fit(tables()).embedding_.tobytes())
    assert len(set(found)) == 1


def test_samples_known_by_row_number_come_back_in_the_order_of_the_rows() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3)) + 9 * np.eye(3)[np.arange(50) % 3]
    with using(DiskEngine(4)):
        model = ViewFold(3, n_init=2, random_state=0).fit(X)
        labels = ViewFold(3, n_init=2, random_state=0).fit_predict(X)
    expected = ViewFold(3, n_init=2, random_state=0).fit(X)
    assert model.ids_.tolist() == list(range(50))
    assert model.labels_.tolist() == expected.labels_.tolist() == labels.tolist()
    assert np.allclose(np.abs(model.embedding_), np.abs(expected.embedding_))


def test_a_model_in_memory_goes_on_in_buckets() -> None:
    first, second = tables()
    model = ViewFold(3, n_init=2, random_state=0).partial_fit(first, view="a")
    with using(DiskEngine(4)):
        model.partial_fit(second, view="b")
    expected = ViewFold(3, n_init=2, random_state=0).fit({"a": first, "b": second}).to_frame()
    found = model.to_frame().loc[expected.index]
    assert found["cluster"].tolist() == expected["cluster"].tolist()
    assert model.predict(first.iloc[:5], view="a").tolist() == found["cluster"][:5].tolist()


def test_updates_and_other_numbers_of_clusters_are_the_same_in_buckets() -> None:
    first, second = tables()
    late = first.iloc[:30] + 0.1

    def steps(model: ViewFold) -> pd.DataFrame:
        model.partial_fit(first.iloc[:40], view="a").partial_fit(second, view="b")
        model.partial_fit(pd.concat([first.iloc[40:], late.iloc[:5]]), view="a")
        model.partial_fit(late, view="a").recluster(2)
        model.extend(pd.DataFrame(late.to_numpy()[:2], index=["new", "newer"]), view="a")
        return model.history_.sort_index()

    with using(DiskEngine(4)):
        found = steps(ViewFold(3, n_init=2, random_state=0))
    expected = steps(ViewFold(3, n_init=2, random_state=0))
    assert found.equals(expected)


def test_ids_that_are_almost_the_same_meet_in_one_bucket_and_are_refused() -> None:
    _, second = tables()
    second = second.rename(index={"p50": " P50", "p55": "p055"})
    with using(DiskEngine(64)):
        model = ViewFold(3, n_init=2, random_state=0).partial_fit(second, view="b")
        before = model.labels_
        with pytest.raises(ValueError, match=r"'p50' is almost ' P50'"):
            model.partial_fit(pd.DataFrame(np.ones((2, 3)), index=["p50", "p1"]), view="a")
        assert np.array_equal(model.labels_, before)
    ids = np.array(["p7", "P7 ", "q007", "Q007"], object)
    assert len(set(bucket_of(ids, 10**6).tolist())) == 2


def test_rows_that_vanish_are_an_error_and_not_a_smaller_result(tmp_path: Path) -> None:
    engine = DiskEngine(3, str(tmp_path))
    ids, rows = engine.partition(np.arange(30), np.ones((30, 2)))
    for path in tmp_path.rglob("*-1.rows"):
        path.write_bytes(path.read_bytes()[:-16])
    with pytest.raises(OSError, match="shorter"):
        engine.map(lambda block: block, rows)
    with pytest.raises(RuntimeError, match=r"Bucket . has . rows and should have"):
        engine.match(lambda some, _: some[:1], ids, ids)


def test_an_error_in_what_a_task_was_given_is_raised_as_it_is() -> None:
    def refuse(block: np.ndarray) -> np.ndarray:
        raise ValueError("row 7 is no number")

    engine = DiskEngine(3)
    (ids,) = engine.partition(np.arange(30))
    with pytest.raises(ValueError, match=r"^row 7 is no number$"):
        engine.reduce(refuse, ids)


def test_the_files_of_a_program_that_was_killed_are_removed_by_the_next(tmp_path: Path) -> None:
    code = (
        "import numpy as np, os, signal\n"
        "from viewfold.rows import DiskEngine\n"
        f"engine = DiskEngine(3, {str(tmp_path)!r})\n"
        "kept = engine.partition(np.arange(30))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    living = DiskEngine(3, str(tmp_path))
    assert not left.exists()
    other = DiskEngine(3, str(tmp_path))  # one that is in use stays
    assert {os.path.basename(e.folder) for e in (living, other)} == set(os.listdir(tmp_path))
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.iterdir())
    del living, other
    assert not os.listdir(tmp_path)


def test_rows_in_buckets_are_not_pickled() -> None:
    with using(DiskEngine(3)):
        model = ViewFold(2, n_init=2, random_state=0).fit(np.eye(12))
    with pytest.raises(TypeError, match=r"\.vfd"):
        pickle.dumps(model)


@pytest.mark.parametrize(
    "rows",
    [
        np.arange(12.0).reshape(6, 2),
        np.arange(6),
        np.array([True, False] * 3),
        np.array(["ann", "", "bøb", "x" * 50, "naïve", "日本"], object),
        np.empty((0, 3)),
    ],
    ids=lambda rows: str(rows.dtype),
)
def test_a_slice_of_a_file_is_the_slice_of_the_rows(rows: np.ndarray, tmp_path: Path) -> None:
    for path in (str(tmp_path / "x"), f"memory://{tmp_path}/x"):
        stored = store(path, rows)
        for a, b in ((0, len(rows)), (1, 4), (2, 2)):
            a, b = min(a, len(rows)), min(b, len(rows))
            read = stored.part(a, b).open()
            assert read.dtype == rows.dtype
            assert read.tolist() == rows[a:b].tolist()
