"""The engine of a Spark cluster: a task for each bucket, results combined as a tree.

Spark schedules, sends and repeats; rows never pass through it. They are in files that all see.
"""

from __future__ import annotations

import gc
import os
import re
import socket
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from functools import cache, partial
from itertools import takewhile
from typing import Any

from viewfold._util.messages import lacking
from viewfold.rows.disk import GROUP, SendingEngine, Sent, do, fold, trouble

try:
    from py4j.protocol import Py4JJavaError
    from pyspark import Accumulator
    from pyspark.cloudpickle import dumps
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
except ImportError as error:
    raise lacking("SparkEngine", "spark", error) from error

ATTEMPTS = 4  # of a task on this machine; on a cluster, spark.task.maxFailures says how many
TIMEOUT = 10  # seconds in which a master has to answer

Numbered = tuple[int, bytes]


class SparkEngine(SendingEngine):
    """Rows are in files that all executors of a Spark cluster see; a bucket is a task.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession, optional
        The cluster. If neither it nor a master is given, the active session is used, and if there
        is none, one is made on this machine, with a task for each processor, until `close`.
    master : str, optional
        Address of a cluster for which a session is made: ``"spark://10.0.0.7:7077"``, ``"yarn"``.
        Its Python has to have viewfold (`PYSPARK_PYTHON`, or ``spark-submit --archives``).
    n_buckets, folder
        See `DiskEngine`. All executors have to see the folder, and each task holds a bucket.

    Examples
    --------
    >>> from viewfold import ViewFold
    >>> from viewfold.rows import SparkEngine, using
    >>> with SparkEngine(master="yarn", folder="s3://bucket/scratch") as engine, using(engine):
    ...     model = ViewFold(5).partial_fit(X, ids=ids)  # doctest: +SKIP
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        master: str | None = None,
        n_buckets: int = 64,
        folder: str | None = None,
    ) -> None:
        self._mine = ExitStack()
        weakref.finalize(self, self._mine.close)
        self.spark = spark or _session(master, self._mine)
        self.context: Any = _context(self.spark)
        self._done: Accumulator[int] = self.context.accumulator(0)
        super().__init__(folder, n_buckets, dumps)
        probes = self.context.parallelize(range(self.n_workers), self.n_workers)
        look, probe = trouble, self.probe()
        self.check_sight(self._collected(probes.map(lambda _: look(probe)), lambda: None))

    @property
    def n_workers(self) -> int:
        return int(self.context.defaultParallelism)

    def close(self) -> None:
        super().close()
        self._mine.close()

    def spread(self, sent: Sent, parts: list[bytes], tell: Callable[[int], None]) -> bytes:
        rdd, n = self.context.parallelize(list(enumerate(parts)), len(parts)), len(parts)
        rdd = rdd.map(partial(_do, sent, self._done))
        while n > GROUP:
            n = -(-n // GROUP)
            rdd = rdd.map(_grouped).groupByKey(n).map(partial(_fold, sent))
        before = self._done.value
        found: list[Numbered] = self._collected(
            rdd, lambda: tell(min(self._done.value - before, len(parts)))
        )
        tell(len(parts))
        return fold(sent, *(result for _, result in sorted(found)))

    def _collected(self, rdd: Any, meanwhile: Callable[[], None]) -> list[Any]:
        """Return the results of a job, and do something a few times per second until then."""
        with ThreadPoolExecutor(1) as pool:
            job = pool.submit(rdd.collect)
            while wait([job], timeout=0.2).not_done:
                meanwhile()
        try:
            found: list[Any] = job.result()
            return found
        except (Py4JJavaError, PySparkException) as error:
            raise RuntimeError(f"Spark gave up on a bucket: {_cause(error)}") from error


def _do(sent: Sent, done: Accumulator[int], numbered: Numbered) -> Numbered:
    number, item = numbered
    result = do(sent, item)
    done.add(1)
    _settle()
    return number, result


@cache
def _settle() -> None:
    """Let the collector skip what is imported: Spark calls it after each task."""
    gc.freeze()


def _grouped(numbered: Numbered) -> tuple[int, Numbered]:
    return numbered[0] // GROUP, numbered


def _fold(sent: Sent, group: tuple[int, Any]) -> Numbered:
    number, results = group
    return number, fold(sent, *(result for _, result in sorted(results)))


def _cause(error: Exception) -> str:
    """Return the last line of what a worker said before it failed, without Java's part."""
    java = ("\tat ", " SQLSTATE", "Driver stacktrace")
    said = takewhile(lambda line: not line.startswith(java), str(error).splitlines())
    return [line for line in said if line and not line[0].isspace()][-1]


def _session(master: str | None, mine: ExitStack) -> SparkSession:
    """Return a session; one that had to be made is stopped with `mine`."""
    active = SparkSession.getActiveSession()
    if active is not None:
        there = active.sparkContext.master
        if master not in (None, there):
            raise ValueError(f"A session of Spark at {there} is active. Stop it, or use it.")
        return active
    _check_answer(master or "")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("viewfold")
    for switch in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(switch, "false")
    made = builder.master(master or f"local[{os.cpu_count()},{ATTEMPTS}]").getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    mine.callback(made.stop)
    return made


def _check_answer(master: str) -> None:
    """Say within seconds if nobody is there: Spark itself tries for a minute, and then hangs."""
    found = re.fullmatch(r"spark://([^,]+):(\d+)", master)
    if found is None:
        return
    try:
        socket.create_connection((found[1], int(found[2])), TIMEOUT).close()
    except OSError as error:
        raise ConnectionError(
            f"No Spark master answers at {master} ({error}). Is it running, and is this its "
            "address? It says so when it starts: Starting Spark master at spark://…"
        ) from error


def _context(spark: Any) -> Any:
    """Return what runs tasks. A session of Spark Connect has none."""
    try:
        return spark.sparkContext
    except Exception as error:
        raise ValueError(
            "SparkEngine needs a session with a SparkContext; Spark Connect (sc://…) has none. "
            "Start the program with spark-submit, or make the session with a master."
        ) from error
