"""How many threads linear algebra may use: one, while an engine spreads row blocks over threads."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _blas(per_thread: bool) -> list[Any]:
    """Return the BLAS libraries whose limit is each thread's own, or those with one for all."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library for library in found if (_layer(library) == "openmp") == per_thread]


def _layer(library: Any) -> str | None:
    return library.threading_layer if library.internal_api == "openblas" else None


@contextmanager
def _limited(libraries: list[Any]) -> Iterator[int]:
    """Keep libraries on one thread and tell how many they would have used."""
    # From 3.8 on, threadpoolctl obeys the thread only that was the first to set a limit.
    setters = [getattr(lib, "_real_set_num_threads", lib.set_num_threads) for lib in libraries]
    before = [library.num_threads for library in libraries]
    try:
        for limit in setters:
            limit(1)
        yield max(before, default=1)
    finally:
        for limit, threads in zip(setters, before, strict=True):
            limit(threads)


class _ForAll:
    """The limit of the whole process, which threads share.

    A thread that saved and restored it alone would restore the limit of another thread. So users
    are counted: the first one sets the limit, the last one restores what was before.
    """

    def __init__(self) -> None:
        self.lock, self.users, self.threads = Lock(), 0, 1
        self.limit = ExitStack()

    @contextmanager
    def held(self) -> Iterator[int]:
        with self.lock:
            if not self.users:
                self.threads = self.limit.enter_context(_limited(_blas(per_thread=False)))
            self.users += 1
        try:
            yield self.threads
        finally:
            with self.lock:
                self.users -= 1
                if not self.users:
                    self.limit.close()


_for_all = _ForAll()


@contextmanager
def blas_on_one_thread() -> Iterator[int]:
    """Keep BLAS on one thread and tell how many threads it would have used.

    Blocks are spread over that many Python threads instead. Small matrices are faster so, cores
    that are busy with something else cost nothing, and sums are taken in the order of the rows,
    so that the number of threads does not change a single bit of the result. Uses may be nested,
    and may overlap in several threads.
    """
    with _for_all.held() as shared, _limited(_blas(per_thread=True)) as own:
        yield 1 if _alone.get() else max(shared, own)


_alone: ContextVar[bool] = ContextVar("alone", default=False)


@contextmanager
def one_block_at_a_time() -> Iterator[None]:
    """Spread no blocks over threads: somebody else has spread the work already."""
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


@contextmanager
def all_on_one_thread() -> Iterator[None]:
    """Keep OpenMP on one thread, too: for scikit-learn, on small data and where bits count."""
    # Each thread has a limit of its own for OpenMP: nobody restores what another thread had set.
    # Looked for every time, since scikit-learn may have been imported in the meantime.
    openmp = ThreadpoolController().select(user_api="openmp").lib_controllers
    with blas_on_one_thread(), _limited(openmp):
        yield


def in_order(work: Callable[[Any], Any], items: Iterable[Any], threads: int) -> Iterator[Any]:
    """Yield what `work` makes of every item, in order; a few items are worked on at a time."""
    left = iter(items)
    first = list(itertools.islice(left, 2))
    if threads == 1 or len(first) < 2:
        yield from map(work, itertools.chain(first, left))
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[Any]] = deque()
        for item in itertools.chain(first, left):
            pending.append(pool.submit(work, item))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
