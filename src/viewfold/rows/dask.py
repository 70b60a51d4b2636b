"""The engine of a Dask cluster: a task for each bucket, results combined as a tree.

Dask schedules, sends and repeats; rows never pass through it. They are in files that all see.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from viewfold._util.messages import lacking
from viewfold.rows.disk import GROUP, SendingEngine, Sent, do, fold, trouble

try:
    from cloudpickle import dumps
    from dask import config
    from distributed import Client, KilledWorker, LocalCluster, as_completed
except ImportError as error:
    raise lacking("DaskEngine", "dask", error) from error

TIMEOUT = "10s"
RETRIES = 2  # how often a task is repeated after an error of a disk or of the network


class DaskEngine(SendingEngine):
    """Rows are in files that all workers of a Dask cluster see; a bucket is a task.

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster. If neither it nor an address is given, the current client is used, and if there
        is none, a cluster is made on this machine: a process for each processor, until `close`.
    address : str, optional
        Of the scheduler, ``"tcp://10.0.0.7:8786"`` for instance.
    n_buckets, folder
        See `DiskEngine`. All workers have to see the folder, and each of their threads holds a
        bucket at a time.

    Examples
    --------
    A program that makes its own cluster has to be a file, and to start below
    ``if __name__ == "__main__":``, since every worker imports it.

    >>> from viewfold import ViewFold
    >>> from viewfold.rows import DaskEngine, using
    >>> with DaskEngine(address="tcp://10.0.0.7:8786", folder="/shared/scratch") as engine:
    ...     with using(engine):
    ...         model = ViewFold(5).partial_fit(X, ids=ids)  # doctest: +SKIP
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        address: str | None = None,
        n_buckets: int = 64,
        folder: str | None = None,
    ) -> None:
        self._mine = ExitStack()
        weakref.finalize(self, self._mine.close)
        self.client = client or _connected(address, self._mine)
        super().__init__(folder, n_buckets, dumps)
        found: dict[str, Any] = self.client.run(trouble, self.probe())
        self.check_sight([f"{worker}: {why}" for worker, why in found.items() if why is not None])

    @property
    def n_workers(self) -> int:
        return sum(self.client.nthreads().values())

    def close(self) -> None:
        super().close()
        self._mine.close()

    def spread(self, sent: Sent, parts: list[bytes], tell: Callable[[int], None]) -> bytes:
        how: dict[str, Any] = {"pure": False, "retries": RETRIES}
        level = leaves = self.client.map(do, [sent] * len(parts), parts, key="viewfold", **how)
        held = list(leaves)
        while len(level) > 1:
            groups = [level[i : i + GROUP] for i in range(0, len(level), GROUP)]
            level = [self.client.submit(fold, sent, *group, **how) for group in groups]
            held += level
        try:
            for done, _ in enumerate(as_completed(leaves, loop=self.client.loop), 1):
                tell(done)
            found: bytes = level[0].result()
            return found
        except KilledWorker as error:
            raise RuntimeError(
                f"Several workers died over one bucket, most likely for lack of memory ({error}). "
                f"Use more than {self.n_buckets} buckets, or workers with more memory."
            ) from None
        finally:  # the results of most are with others by now; an error leaves work to stop
            self.client.cancel(held)


def _connected(address: str | None, mine: ExitStack) -> Client:
    """Return a client; what had to be made for it is closed with `mine`."""
    if address is not None:
        try:
            return mine.enter_context(Client(address, timeout=TIMEOUT, set_as_default=False))
        except (OSError, ValueError) as error:
            raise ConnectionError(
                f"No Dask scheduler answers at {address} ({error}). Is it running, and is this its "
                "address? It says so when it starts: Scheduler at: tcp://…"
            ) from error
    try:
        return Client.current()
    except ValueError:  # there is none
        pass
    how: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with config.set({"distributed.worker.profile.enabled": False}):  # samples stacks all the time
        cluster = mine.enter_context(LocalCluster(n_workers=os.cpu_count(), **how))
    return mine.enter_context(Client(cluster, set_as_default=False))
