"""Engines whose buckets are in a scratch folder: worked on by threads, or by other processes."""

from __future__ import annotations

import os
import pickle
import platform
import re
import tempfile
import uuid
import weakref
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any

import numpy as np

from viewfold._util.replace import workshop
from viewfold._util.watch import Tally, counted
from viewfold.rows.bucket_files import Stored, is_remote, remove, store
from viewfold.rows.buckets import BucketEngine, Combine, Task
from viewfold.rows.local import blas_on_one_thread, in_order

SMALL = 2**15  # bytes of a task that are sent with every item; a larger one goes into the folder
GROUP = 8  # how many results are combined at once, so that nobody has to hold all of them
TURNS = 8  # how many tasks each worker gets at least, as long as there are buckets


class DiskEngine(BucketEngine):
    """Rows are in files of this machine; as many buckets are in memory as there are threads.

    Parameters
    ----------
    n_buckets : int, default=64
        How many buckets there are.
    folder : str, optional
        Where files are made that are needed for a while; the system's folder for such files if not
        given. They are removed when nobody needs them, and those of a program that was killed by
        the next engine there.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import ViewFold
    >>> from viewfold.rows import DiskEngine, using
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> with using(DiskEngine(n_buckets=4)):
    ...     model = ViewFold(2, random_state=0).fit(X)
    ...     frame = model.to_frame()
    >>> frame["cluster"].equals(ViewFold(2, random_state=0).fit(X).to_frame()["cluster"])
    True
    """

    def __init__(self, n_buckets: int = 64, folder: str | None = None) -> None:
        super().__init__(scratch_folder(folder, self), n_buckets)

    @property
    def n_workers(self) -> int:
        with blas_on_one_thread() as threads:
            return threads

    def run(self, task: Task, items: Sequence[Any], combine: Combine) -> Any:
        with blas_on_one_thread() as threads:
            results = in_order(task, items, threads)
            return reduce(combine, counted(results, len(items), 1, "buckets"))


# -- the folder ----------------------------------------------------------------------------------


def scratch_folder(parent: str | None, user: object) -> str:
    """Make a folder that is removed with its user, and remove those whose program was killed.

    The parent is a path, or an address that fsspec knows; the system's folder for temporary files
    if None. At an address, what a program that was killed has left is not removed.
    """
    parent = parent or tempfile.gettempdir()
    if is_remote(parent):
        path = f"{parent.rstrip('/')}/viewfold-{uuid.uuid4().hex}"
        weakref.finalize(user, remove, path)
        return path
    os.makedirs(parent, exist_ok=True)
    made = ExitStack()
    # On a disk that machines share, locks may hold for one machine only: each removes its own.
    name = "viewfold-" + re.sub(r"\W", "", platform.node())
    path = str(made.enter_context(workshop(Path(parent, name))))
    weakref.finalize(user, made.close)
    return path


# -- other processes -----------------------------------------------------------------------------
# Items and results travel as bytes: a scheduler may copy, keep or repeat them, and whoever combines
# results may overwrite its own.


Sent = bytes | Stored  # a task and how its results are combined, as bytes or in a file


@lru_cache(maxsize=2)  # a worker makes them once for all of its buckets
def _received(sent: Sent) -> tuple[Task, Combine]:
    task: tuple[Task, Combine] = pickle.loads(sent if isinstance(sent, bytes) else sent.open())
    return task


def do(sent: Sent, items: bytes) -> bytes:
    """Do a task for one item after the other, and combine the results."""
    task, combine = _received(sent)
    with blas_on_one_thread():
        return pickle.dumps(reduce(combine, map(task, pickle.loads(items))), protocol=5)


def fold(sent: Sent, *results: bytes) -> bytes:
    _, combine = _received(sent)
    return pickle.dumps(reduce(combine, map(pickle.loads, results)), protocol=5)


class SendingEngine(BucketEngine):
    """Buckets are worked on by other processes, which all see the same folder.

    `dumps` pickles functions by their code, as cloudpickle does.
    """

    piece = 2**25  # the driver may be a small machine

    def __init__(self, folder: str | None, n_buckets: int, dumps: Callable[[Any], bytes]) -> None:
        super().__init__(scratch_folder(folder, self), n_buckets)
        self._dumps = dumps

    def run(self, task: Task, items: Sequence[Any], combine: Combine) -> Any:
        data, owner = self._dumps((task, combine)), None
        sent: Sent = data
        if len(data) > SMALL:  # not by the scheduler: what it scatters is lost with its workers
            path, owner = self.room()
            sent = store(f"{path}/task", np.frombuffer(data, np.uint8))
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

    def check_sight(self, troubles: Sequence[str | None]) -> None:
        """Raise an error now, rather than in the middle of a fold, if a worker has trouble."""
        for why in filter(None, troubles):
            self.close()
            raise ValueError(
                f"Workers cannot read {self.folder} ({why}). Pass folder=: a path on a disk that "
                "all machines share, or an address such as s3://bucket/scratch."
            )


def trouble(probe: Stored) -> str | None:
    """Return what keeps this process from reading a file."""
    try:
        probe.open()
    except Exception as error:  # whatever it is, the user has to hear of it
        return f"{type(error).__name__}: {error}"
    return None
