"""On Spark the same comes out as in memory, also when a worker is killed; needs pyspark and Java."""

import os
import shutil

import engine_rounds as rounds
import pytest

from viewfold.engine import open_engine

pytest.importorskip("pyspark")
if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
    pytest.skip("there is no Java", allow_module_level=True)

from viewfold.engine.spark import SparkEngine  # noqa: E402

pytestmark = pytest.mark.slow  # a session takes five seconds to start


@pytest.fixture(scope="module")
def session():
    with SparkEngine(master="local[2,4]", n_buckets=5) as engine:
        yield engine.spark


@pytest.fixture
def engine(session, tmp_path):
    with SparkEngine(session, n_buckets=5, folder=str(tmp_path / "scratch")) as engine:
        yield engine
    assert not os.listdir(tmp_path / "scratch")


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [(rounds.FCMVC, "complete"), (rounds.FCMVC, "incomplete"), (rounds.ViewFold, "incomplete")],
)
def test_folds_are_those_in_memory(engine, estimator, kind) -> None:
    rounds.assert_same(engine, estimator, rounds.views(kind))


def test_buckets_may_have_one_sample_or_none(session, engine) -> None:
    with SparkEngine(session, n_buckets=12) as many:
        rounds.assert_same(many, rounds.FCMVC, rounds.one_in_each(12), 2)
    few = [(X[:3], ids[:3]) for X, ids in rounds.one_in_each(12)]
    rounds.assert_same(engine, rounds.FCMVC, few, 2)


def test_a_killed_worker_changes_nothing(engine, tmp_path, monkeypatch) -> None:
    rounds.assert_survives_a_killed_worker(engine, tmp_path / "killed", monkeypatch)


def test_results_come_in_order(engine) -> None:
    rounds.assert_runs_in_order(engine)


def test_a_large_task_is_sent_once(engine) -> None:
    rounds.assert_sends_what_is_large_once(engine)


def test_errors_in_data_arrive_as_they_are(engine) -> None:
    rounds.assert_tells_errors(engine)


def test_trouble_with_a_disk_is_repeated(engine, tmp_path) -> None:
    rounds.assert_repeats_after_trouble_with_a_disk(engine, tmp_path / "away")


def test_trouble_that_stays_is_told(engine) -> None:
    def stay(item: int) -> int:
        raise OSError("the disk is away")

    with pytest.raises(RuntimeError, match="Spark gave up on a bucket: OSError: the disk is away$"):
        engine.each(stay, [1])


def test_progress_counts_buckets(engine) -> None:
    rounds.assert_tells_how_far_it_is(engine)


def test_rows_may_be_at_an_address(session, tmp_path) -> None:
    rounds.assert_works_at_an_address(
        lambda folder: SparkEngine(session, n_buckets=3, folder=folder), tmp_path
    )


def test_a_folder_that_executors_do_not_see_is_refused(session) -> None:
    with pytest.raises(ValueError, match="Workers cannot read memory://here.*share"):
        SparkEngine(session, folder="memory://here")


def test_a_session_that_was_given_goes_on(session, tmp_path) -> None:
    SparkEngine(session, folder=str(tmp_path)).close()
    assert session.sparkContext.parallelize([1, 2], 2).sum() == 3
    with open_engine("spark", memory="1GB", n_bytes=10**10) as engine:  # the one that is active
        assert (engine.n_workers, engine.n_buckets) == (2, 128)


def test_an_address_where_nobody_answers_is_told() -> None:
    with pytest.raises(ConnectionError, match="No Spark master answers at spark://127.0.0.1:9"):
        open_engine("spark", address="spark://127.0.0.1:9")
