"""Where rows live, and the three verbs for them: `reduce`, `map` and `join`; see `base.Engine`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from viewfold.rows._rows import Rows, block_bytes
from viewfold.rows._threads import all_on_one_thread, blas_on_one_thread
from viewfold.rows.base import Alignment, Engine, RowSet
from viewfold.rows.bucketed import BucketRows
from viewfold.rows.buckets import BucketEngine
from viewfold.rows.disk import DiskEngine
from viewfold.rows.local import LocalEngine
from viewfold.rows.opening import buckets_for, open_engine

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
    """Import engines of other people's clusters when they are asked for: few have them."""
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
