"""What engines of other processes share: a task that is sent once, and a folder that all can see.

Items and results travel as bytes: a scheduler may copy, keep or repeat them, and whoever combines
results may overwrite its own.
"""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from viewfold._util.watch import Tally
from viewfold.rows._tasks import Task
from viewfold.rows._threads import blas_on_one_thread
from viewfold.rows.buckets import BucketEngine
from viewfold.rows.disk import scratch_folder
from viewfold.rows.plain import Stored, store

SMALL = 2**15
"""Bytes of a task that are sent with every item; a larger one is put into the folder instead."""

GROUP = 8
"""How many results are combined at once, so that nobody has to hold all of them."""

TURNS = 8
"""How many tasks each worker gets at least, as long as there are buckets: some take longer."""

PIECE = 2**25
"""Bytes of a view in memory that are dealt at once: the driver may be a small machine."""

Combine = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Sent:
    """A task and how its results are combined, as bytes or in a file."""

    held: bytes | Stored

    def open(self) -> tuple[Task, Combine]:
        """Return both; a worker makes them once for all of its buckets."""
        return _opened(self)


@lru_cache(maxsize=2)
def _opened(sent: Sent) -> tuple[Task, Combine]:
    held = sent.held
    task: tuple[Task, Combine] = pickle.loads(held if isinstance(held, bytes) else held.open())
    return task


def do(sent: Sent, items: bytes) -> bytes:
    """Do a task for one item after the other, and combine the results."""
    task, combine = sent.open()
    with blas_on_one_thread():
        return pickle.dumps(reduce(combine, map(task, pickle.loads(items))), protocol=5)


def fold(sent: Sent, *results: bytes) -> bytes:
    """Combine results, in order."""
    _, combine = sent.open()
    return pickle.dumps(reduce(combine, map(pickle.loads, results)), protocol=5)


class SendingEngine(BucketEngine):
    """Buckets are worked on by other processes, which all see the same folder.

    Parameters
    ----------
    folder : str or None
        A path or an address in which a folder is made; the system's for temporary files if None.
    n_buckets : int
        How many buckets there are.
    dumps : callable
        Pickles functions by their code, as cloudpickle does.
    """

    piece = PIECE

    def __init__(self, folder: str | None, n_buckets: int, dumps: Callable[[Any], bytes]) -> None:
        super().__init__(scratch_folder(folder, self), n_buckets)
        self._dumps = dumps

    def run(self, task: Task, items: Sequence[Any], combine: Combine) -> Any:
        """Send a task for each item, and combine the results in order, a few at a time."""
        data = self._dumps((task, combine))
        sent, owner = Sent(data), None
        if len(data) > SMALL:  # not by the scheduler: what it scatters is lost with its workers
            path, owner = self.room()
            sent = Sent(store(f"{path}/task", np.frombuffer(data, np.uint8)))
        # A scheduler needs milliseconds for a task: where buckets are many, it gets a few of them.
        step = min(GROUP, max(1, len(items) // (TURNS * max(1, self.n_workers))))
        parts = [self._dumps(items[i : i + step]) for i in range(0, len(items), step)]
        tally = Tally(len(items), "buckets")
        found = self.spread(sent, parts, lambda done: tally.reach(min(done * step, len(items))))
        del owner  # until here, workers read the file
        return pickle.loads(found)

    @abstractmethod
    def spread(self, sent: Sent, parts: list[bytes], tell: Callable[[int], None]) -> bytes:
        """Return what `fold` makes of all that `do` makes of each part; tell how many are done."""

    def probe(self) -> Stored:
        """Return a file that every worker has to be able to read."""
        return store(f"{self.folder}/probe", np.zeros(1, np.int8))


def trouble(probe: Stored) -> str | None:
    """Return what keeps this process from reading a file."""
    try:
        probe.open()
    except Exception as error:  # whatever it is, the user has to hear of it
        return f"{type(error).__name__}: {error}"
    return None


def out_of_sight(folder: str, why: str) -> ValueError:
    """Return the error that workers do not see the folder."""
    return ValueError(
        f"Workers cannot read {folder} ({why}). Pass folder=: a path on a disk that all machines "
        "share, or an address such as s3://bucket/scratch."
    )
