"""On Spark the same comes out as in memory, also when a worker is killed."""

import os
import shutil

import pytest
from engine_contract import Make, SendingContract

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


class TestSparkEngine(SendingContract):
    @pytest.fixture
    def make(self, session) -> Make:
        return lambda folder, n_buckets: SparkEngine(session, folder=folder, n_buckets=n_buckets)

    def test_trouble_that_stays_is_told(self, engine) -> None:
        def stay(item: int) -> int:
            raise OSError("the disk is away")

        with pytest.raises(
            RuntimeError, match=r"Spark gave up on a bucket: OSError: the disk is away$"
        ):
            engine.each(stay, [1])


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
