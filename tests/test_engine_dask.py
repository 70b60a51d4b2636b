"""On Dask workers the same comes out as in memory, also when one of them is killed."""

import os
from pathlib import Path

import pytest
from engine_contract import Make, SendingContract

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


class TestDaskEngine(SendingContract):
    @pytest.fixture
    def make(self, client) -> Make:
        return lambda folder, n_buckets: DaskEngine(client, folder=folder, n_buckets=n_buckets)

    def test_trouble_that_stays_is_told(self, engine) -> None:
        def stay(item: int) -> int:
            raise OSError("the disk is away")

        with pytest.raises(OSError, match="the disk is away"):
            engine.each(stay, [1, 2, 3])


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
