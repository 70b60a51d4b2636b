"""Where rows live, and the three verbs for them: `reduce`, `map` and `join`; see `Engine`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from viewfold._util.arguments import size_in_bytes
from viewfold.rows.bucket_files import BucketRows
from viewfold.rows.buckets import BucketEngine
from viewfold.rows.disk import DiskEngine
from viewfold.rows.local import (
    Alignment,
    Engine,
    LocalEngine,
    Rows,
    RowSet,
    all_on_one_thread,
    blas_on_one_thread,
    block_bytes,
)

if TYPE_CHECKING:
    from viewfold.rows.dask import DaskEngine
    from viewfold.rows.spark import SparkEngine

__all__ = [
    "Alignment",
    "BucketEngine",
    "BucketRows",
    "DaskEngine",
    "DiskEngine",
    "Engine",
    "LocalEngine",
    "RowSet",
    "Rows",
    "SparkEngine",
    "all_on_one_thread",
    "blas_on_one_thread",
    "block_bytes",
    "buckets_for",
    "current_engine",
    "engine_of",
    "open_engine",
    "using",
]

_LAZY = {"DaskEngine": "viewfold.rows.dask", "SparkEngine": "viewfold.rows.spark"}


def __getattr__(name: str) -> Any:
    """Import the engines of Dask and Spark when somebody uses them: few people have them."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


_current: ContextVar[Engine | None] = ContextVar("engine", default=None)
_local = LocalEngine()


def current_engine() -> Engine:
    """Return the engine that estimators use: the local one, unless another was chosen."""
    return _current.get() or _local


def engine_of(rows: RowSet) -> Engine:
    """Return the engine that holds rows; for rows in memory, the one that was chosen."""
    return rows.engine if isinstance(rows, BucketRows) else current_engine()


@contextmanager
def using(engine: Engine) -> Iterator[Engine]:
    """Let estimators use another engine for a while; models stay with the one that has their rows.

    It holds in this thread. Threads that are started inside use the local engine: give the engine
    to `fit` or `partial_fit` there (``engine=engine``).

    Examples
    --------
    >>> from viewfold.rows import LocalEngine, current_engine, using
    >>> with using(LocalEngine()) as engine:
    ...     current_engine() is engine
    True
    """
    token = _current.set(engine)
    try:
        yield engine
    finally:
        _current.reset(token)


FEWEST, MOST = 16, 16384  # buckets
# How often a task holds the rows of its bucket: as read, sorted, as numbers, encoded and so on.
COPIES = 6


def buckets_for(n_bytes: int, memory: int, workers: int = 1) -> int:
    """Return how many buckets make the work on a view of so many bytes fit in `memory`.

    A power of two, from 16 to 16,384: workers × 6 × the bytes of a bucket are at most `memory`.

    Examples
    --------
    Ten million rows of 64 single-precision numbers, in 4 GB on two processors:

    >>> from viewfold.rows import buckets_for
    >>> buckets_for(10**7 * 64 * 4, 4 * 2**30, workers=2)
    16
    >>> buckets_for(10**9 * 64 * 4, 4 * 2**30, workers=2)
    1024
    """
    n_buckets = FEWEST
    while n_buckets < MOST and n_bytes * workers * COPIES > memory * n_buckets:
        n_buckets *= 2
    return n_buckets


def open_engine(
    name: str = "local",
    *,
    address: str | None = None,
    memory: str = "4GB",
    n_buckets: int | None = None,
    n_bytes: int | None = None,
    folder: str | None = None,
) -> BucketEngine:
    """Return an engine that holds rows in buckets, by its name; it is a context manager.

    Parameters
    ----------
    name : {"local", "dask", "spark"}
        Files on this machine, a Dask cluster, or a Spark cluster.
    address : str, optional
        Of Dask's scheduler, or the Spark master. Without one, a cluster is made on this machine.
    memory : str, default="4GB"
        What all workers together may take.
    n_buckets, n_bytes : int, optional
        How many buckets there are, or the bytes of the largest view, which with `memory` tell it.
    folder : str, optional
        Where files are made that are needed for a while; all workers have to see it.

    Examples
    --------
    >>> from viewfold.rows import open_engine
    >>> with open_engine("local", memory="1GB", n_bytes=10**10) as engine:
    ...     type(engine).__name__, engine.n_buckets >= 64
    ('DiskEngine', True)
    """
    if name not in ("local", "dask", "spark"):
        raise ValueError(f"There is no engine {name!r}. Choose one of local, dask, spark.")
    if name == "local" and address is not None:
        raise ValueError(
            f"The engine 'local' has no address. Leave address={address!r} away, or say "
            "engine='dask' or engine='spark'."
        )
    room = size_in_bytes(memory, f"{memory=}")
    engine: BucketEngine
    if name == "local":
        engine = DiskEngine(folder=folder)
    elif name == "dask":
        from viewfold.rows.dask import DaskEngine

        engine = DaskEngine(address=address, folder=folder)
    else:
        from viewfold.rows.spark import SparkEngine

        engine = SparkEngine(master=address, folder=folder)
    if n_buckets is None and n_bytes is not None:
        n_buckets = buckets_for(n_bytes, room, engine.n_workers)
    if n_buckets is not None:
        engine.n_buckets = n_buckets
    return engine
