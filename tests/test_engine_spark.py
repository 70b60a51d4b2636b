"""On Spark the same comes out as in memory, also when a worker is killed."""

import os
import shutil

import engine_rounds as rounds
import pytest

from viewfold.rows import open_engine

pytest.importorskip("pyspark")
if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
    pytest.skip("there is no Java", allow_module_level=True)

from pyspark.sql import SparkSession

from viewfold.rows.spark import SparkEngine

pytestmark = pytest.mark.slow  # a session takes five seconds to start


@pytest.fixture(scope="module")
def session():
    with pytest.MonkeyPatch.context() as patch:
        quick = "--driver-java-options -XX:TieredStopAtLevel=1 pyspark-shell"  # to start, that is
        patch.setenv("PYSPARK_SUBMIT_ARGS", quick)
        with SparkEngine(master="local[2,4]") as engine:
            yield engine.spark


@pytest.fixture
def engine(session, tmp_path):
    with SparkEngine(session, n_buckets=3, folder=str(tmp_path / "scratch")) as engine:
        yield engine
    assert not os.listdir(tmp_path / "scratch")


@pytest.mark.parametrize(
    ("estimator", "kind"), [(rounds.FCMVC, "complete"), (rounds.ViewFold, "incomplete")]
)
def test_folds_are_those_in_memory(engine, estimator, kind) -> None:
    rounds.assert_same(engine, estimator, rounds.views(kind))


def test_buckets_may_have_one_sample_or_none(session) -> None:
    with SparkEngine(session, n_buckets=6) as engine:
        (X, ids), *_ = rounds.one_in_each(6)
        rounds.assert_same(engine, rounds.FCMVC, [(X, ids), (X[:3], ids[:3])], 2)


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

    with pytest.raises(
        RuntimeError, match=r"Spark gave up on a bucket: OSError: the disk is away$"
    ):
        engine.each(stay, [1])


def test_progress_counts_buckets(engine) -> None:
    rounds.assert_tells_how_far_it_is(engine)


def test_rows_may_be_at_an_address(session, tmp_path) -> None:
    rounds.assert_works_at_an_address(
        lambda folder: SparkEngine(session, n_buckets=3, folder=folder), tmp_path
    )


def test_a_folder_that_executors_do_not_see_is_refused(session) -> None:
    with pytest.raises(ValueError, match=r"Workers cannot read memory://here.*share"):
        SparkEngine(session, folder="memory://here")


def test_a_session_that_was_given_goes_on(session, tmp_path) -> None:
    SparkEngine(session, folder=str(tmp_path)).close()
    assert session.sparkContext.parallelize([1, 2], 2).sum() == 3
    with open_engine("spark", memory="1GB", n_bytes=10**10) as engine:  # the one that is active
        assert (engine.n_workers, engine.n_buckets) == (2, 128)


def test_another_master_than_that_of_the_session_is_refused(session) -> None:
    with pytest.raises(ValueError, match=r"A session of Spark at local\[2,4\] is active"):
        SparkEngine(master="local[1]")
    assert SparkEngine(master="local[2,4]").spark is session


def test_an_address_where_nobody_answers_is_told(monkeypatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(ConnectionError, match="No Spark master answers at spark://"):
        open_engine("spark", address="spark://127.0.0.1:9")
