"""On Dask workers the same comes out as in memory, also when one of them is killed."""

import os
from pathlib import Path

import engine_rounds as rounds
import pytest

from viewfold.rows import open_engine

distributed = pytest.importorskip("distributed")

from viewfold.rows import dask as module  # noqa: E402
from viewfold.rows.dask import DaskEngine  # noqa: E402


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def engine(client, tmp_path):
    with DaskEngine(client, n_buckets=5, folder=str(tmp_path / "scratch")) as engine:
        yield engine
    assert not os.listdir(tmp_path / "scratch")


@pytest.mark.slow
@pytest.mark.parametrize("estimator", rounds.ESTIMATORS)
@pytest.mark.parametrize("kind", rounds.KINDS)
def test_folds_are_those_in_memory(engine, estimator, kind) -> None:
    rounds.assert_same(engine, estimator, rounds.views(kind))


@pytest.mark.slow
def test_buckets_may_have_one_sample_or_none(client) -> None:
    with DaskEngine(client, n_buckets=12) as engine:
        (X, ids), *_ = rounds.one_in_each(12)
        rounds.assert_same(engine, rounds.FCMVC, [(X, ids), (X[:6], ids[:6])], 2)


@pytest.mark.slow
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

    with pytest.raises(OSError, match="the disk is away"):
        engine.each(stay, [1, 2, 3])


def test_progress_counts_buckets(engine) -> None:
    rounds.assert_tells_how_far_it_is(engine)


def test_rows_may_be_at_an_address(client, tmp_path) -> None:
    rounds.assert_works_at_an_address(
        lambda folder: DaskEngine(client, n_buckets=3, folder=folder), tmp_path
    )


def test_a_folder_that_workers_do_not_see_is_refused(client) -> None:
    with pytest.raises(ValueError, match=r"Workers cannot read memory://here.*share"):
        DaskEngine(client, folder="memory://here")


def test_a_client_that_was_given_stays_open(client, tmp_path) -> None:
    DaskEngine(client, folder=str(tmp_path)).close()
    assert client.status == "running"
    assert not os.listdir(tmp_path)


def test_an_address_where_nobody_answers_is_told(monkeypatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT", "0.3s")
    with pytest.raises(ConnectionError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        open_engine("dask", address="tcp://127.0.0.1:9")
    with pytest.raises(ConnectionError, match="No Dask scheduler answers at nowhere://x"):
        open_engine("dask", address="nowhere://x")


def test_the_command_line_opens_it_by_its_address(client, tmp_path: Path) -> None:
    address = client.scheduler.address
    with open_engine(
        "dask", address=address, folder=str(tmp_path), memory="1GB", n_bytes=10**10
    ) as engine:
        assert (engine.n_workers, engine.n_buckets) == (2, 128)
        assert engine.run(lambda item: item, [3, 4], max) == 4
