"""Run an experiment: processes that compute its cells, and one that writes them.

A cell is written as soon as it is finished, so that an interrupted run loses only those in
progress; those that the database has are not computed again.
"""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from viewfold.cli import show_progress
from viewfold_research.bench.plan import EXPERIMENTS, Options, plan
from viewfold_research.bench.protocol import CLUSTERS, Task, compute, load, load_of_machine
from viewfold_research.bench.results import (
    DONE,
    NOT_TRIED,
    OUT_OF_MEMORY,
    OUT_OF_TIME,
    Cell,
    Outcome,
    Results,
)

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

PATIENCE = 5  # looks at a process that computes nothing before it is given up


@dataclass
class Report:
    """What a run did.

    Attributes
    ----------
    computed, known : int
        Cells that were computed, and cells that were there already.
    failed : list of tuples of Cell and str
        Cells that were not done, and their status.
    phases : dict
        CPU seconds by data set, method and kind of work.
    """

    computed: int = 0
    known: int = 0
    failed: list[tuple[Cell, str]] = field(default_factory=list)
    phases: dict[tuple[str, str, str], float] = field(default_factory=dict)

    def note(self, cell: Cell, outcome: Outcome) -> None:
        """Count a cell that was just computed."""
        self.computed += 1
        if outcome.status not in (DONE, NOT_TRIED):
            self.failed.append((cell, outcome.status))
        for kind, seconds in outcome.phases.items():
            key = (cell.dataset, cell.method, kind)
            self.phases[key] = self.phases.get(key, 0) + seconds


def run(
    experiment: str,
    options: Options,
    out: str | os.PathLike[str],
    *,
    jobs: int = 1,
    retry: bool = False,
) -> Report:
    """Compute the cells of an experiment that are not in the database yet.

    Parameters
    ----------
    experiment : str
        One of `EXPERIMENTS`.
    options : Options
        What to run it on.
    out : path
        Folder of the database; made if need be.
    jobs : int, default=1
        How many processes compute.
    retry : bool, default=False
        Whether cells that failed earlier are computed again.

    Returns
    -------
    Report

    Examples
    --------
    >>> import tempfile
    >>> from viewfold_research.bench.plan import Options
    >>> from viewfold_research.bench.run import run
    >>> folder = tempfile.mkdtemp()
    >>> options = Options(methods=("FCMVC-IV",), kmeans_runs=2)
    >>> run("complete", options, folder).computed, run("complete", options, folder).computed
    (1, 0)
    """
    if jobs < 1:
        raise ValueError(f"jobs must be 1 or more, got {jobs}.")
    tasks, kind = plan(experiment, options), EXPERIMENTS[experiment]
    if kind.judged:
        tasks = [replace(task, judged=str(Path(out) / "single-views")) for task in tasks]
    elif kind.alone:
        jobs = 1  # or they would measure each other
    if resource is None and any(task.memory_limit or task.time_limit for task in tasks):
        warnings.warn(
            "This system cannot limit the memory or the CPU time of a process: memory has no "
            "limit here, and a cell that takes too long is ended late.",
            stacklevel=2,
        )
    report = Report()
    with Results(out, write=True) as results:
        known = results.finished(retry=retry)
        todo = [task for task in tasks if task.cell not in known]
        report.known = len(tasks) - len(todo)
        ends = Ends(tasks, known, results.seconds()) if kind.judged else None
        with _progress(experiment, len(tasks), report.known) as advance:
            for task, outcome in execute(todo, jobs=jobs, alone=kind.alone, ends=ends):
                results.add(task.cell, _sized(task, outcome))
                report.note(task.cell, outcome)
                advance()
    return report


class Ends:
    """What methods are not asked on a set, after what they took there.

    What ran out of time or memory on a set stays so for its other draws and ratios. What ran out of
    time with the method's first scaling does so with its others; of memory it need not, because
    sparse views stay sparse under some scalings only. The limit of time is for all scalings of a
    problem together: at the pace of the first, all must end within it, or the first one is the
    only one.

    Parameters
    ----------
    tasks : iterable of Task
        All cells of the experiment.
    known : mapping of Cell to str
        The status of those that are in the database.
    seconds : mapping of Cell to float
        The CPU seconds that they took.
    """

    def __init__(
        self,
        tasks: Iterable[Task] = (),
        known: Mapping[Cell, str] | None = None,
        seconds: Mapping[Cell, float] | None = None,
    ) -> None:
        self._found: dict[tuple[str, str, Any], str] = {}
        self._pace: dict[Cell, float] = {}
        tasks, known, seconds = list(tasks), known or {}, seconds or {}
        self._scalings = Counter(_problem(task) for task in tasks)
        for task in tasks:
            self.note(task, known.get(task.cell, DONE), seconds.get(task.cell))

    def note(self, task: Task, status: str, seconds: float | None = None) -> None:
        """Take notice of how a cell ended."""
        if task.first and seconds is not None:
            self._pace[_problem(task)] = seconds
        if status in (OUT_OF_MEMORY, OUT_OF_TIME):
            where = (task.cell.dataset, task.cell.method)
            self._found.setdefault((*where, task.parameters), status)
            if task.first and status == OUT_OF_TIME:
                self._found.setdefault((*where, None), status)

    def of(self, task: Task) -> str | None:
        """Return how a cell would end, if that is known."""
        where, problem = (task.cell.dataset, task.cell.method), _problem(task)
        if found := self._found.get((*where, task.parameters)) or self._found.get((*where, None)):
            return found
        needed = self._scalings[problem] * self._pace.get(problem, 0)
        late = task.time_limit is not None and needed > task.time_limit
        return NOT_TRIED if late and not task.first else None


def _problem(task: Task) -> Cell:
    """Return what a method's scalings have in common."""
    return replace(task.cell, setting="")


def _sized(task: Task, outcome: Outcome) -> Outcome:
    """Add the size of the problem to an outcome that came without it."""
    if outcome.n_samples is not None:
        return outcome
    if task.source.n_samples:
        return replace(outcome, n_samples=task.source.n_samples, n_clusters=CLUSTERS)
    problem = load(task.source)
    return replace(outcome, n_samples=len(problem.target), n_clusters=problem.n_clusters)


# ---- who computes it ----------------------------------------------------------------------------


def execute(
    tasks: Iterable[Task], *, jobs: int = 1, alone: bool = False, ends: Ends | None = None
) -> Iterator[tuple[Task, Outcome]]:
    """Compute tasks, and return each with its outcome as it comes.

    Parameters
    ----------
    tasks : sequence of Task
        What to compute.
    jobs : int
        How many processes compute; with 1, this one does.
    alone : bool
        Whether every task gets a process of its own.
    ends : Ends, optional
        What need not be computed, if all run alone.
    """
    if alone:
        yield from _each_alone(tasks, jobs, ends or Ends())
    elif jobs == 1:
        yield from ((task, compute(task)) for task in tasks)
    else:
        waiting = deque(tasks)
        while waiting:
            # A process that dies takes the pool with it, and one of these tasks is why.
            for task in (yield from _until_broken(waiting, jobs)):
                yield task, compute_alone(task)


def _each_alone(tasks: Iterable[Task], jobs: int, ends: Ends) -> Iterator[tuple[Task, Outcome]]:
    """Compute each task in a process of its own, some at the same time."""
    running: dict[Future[Outcome], Task] = {}

    def ended() -> Iterator[tuple[Task, Outcome]]:
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            task, outcome = running.pop(future), future.result()
            ends.note(task, outcome.status, outcome.cpu_seconds)
            yield task, outcome

    with ThreadPoolExecutor(jobs) as pool:  # its threads only wait
        for task in tasks:
            if status := ends.of(task):
                yield task, Outcome(status, load=load_of_machine())
                continue
            running[pool.submit(compute_alone, task)] = task
            if len(running) >= jobs:
                yield from ended()
        while running:
            yield from ended()


def _until_broken(
    waiting: deque[Task], jobs: int
) -> Generator[tuple[Task, Outcome], None, list[Task]]:
    """Compute tasks in a pool; return those that were under way when one of its processes died."""
    running: dict[Future[Outcome], Task] = {}
    with ProcessPoolExecutor(jobs, _context(), _begin) as pool:
        while waiting or running:
            while waiting and len(running) <= jobs:  # one more, so that nobody waits for work
                try:
                    running[pool.submit(compute, waiting[0])] = waiting[0]
                except BrokenProcessPool:
                    return list(running.values())
                waiting.popleft()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                if isinstance(future.exception(), BrokenProcessPool):
                    return list(running.values())
                yield running.pop(future), future.result()
    return []


@cache
def _context() -> Any:
    """Return how processes are started: as copies of one that has imported what it takes."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(["viewfold_research.bench.protocol", "viewfold.datasets"])
    return context


def compute_alone(task: Task) -> Outcome:
    """Compute a task in a new process, which may die of it."""
    context = _context()
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, task))
    process.start()
    sender.close()  # or the end of the child would not be seen
    late = task.time_limit is not None and not answered(
        partial(receiver.poll, 60 + task.time_limit), partial(_cpu_seconds, process.pid)
    )
    if late:
        process.kill()
    try:
        outcome: Outcome = receiver.recv()
    except EOFError:
        outcome = Outcome("")
    process.join()
    if outcome.status:
        return outcome
    # The kernel kills (9) who takes too much memory, and ends who takes too much time.
    code = process.exitcode
    status = OUT_OF_MEMORY if code == -9 else f"failed: its process ended with {code}"
    if late or code == -getattr(signal, "SIGXCPU", 0) < 0:
        status = OUT_OF_TIME
    return Outcome(status, load=load_of_machine())


def answered(poll: Callable[[], bool], spent: Callable[[], float | None]) -> bool:
    """Wait for a process as long as it computes.

    A method that waits takes no CPU time, and would never reach its limit; one that hardly gets a
    turn, on a machine that others use, is not late.

    Parameters
    ----------
    poll : callable
        Waits for some time, and tells whether there is an answer.
    spent : callable
        Returns the CPU seconds of the process, None where the system does not tell.

    Examples
    --------
    >>> from viewfold_research.bench.run import answered
    >>> answered(iter([False] * 9 + [True]).__next__, iter(range(9)).__next__)
    True
    >>> answered(lambda: False, lambda: 3.0)
    False
    """
    before, idle = 0.0, 0
    while not poll():
        now = spent()
        idle = idle + 1 if now is None or now - before < 0.1 else 0
        before = before if now is None else now
        if idle == PATIENCE:
            return False
    return True


def _cpu_seconds(pid: int) -> float | None:
    try:
        user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return None
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _child(sender: Connection, task: Task) -> None:
    _begin()
    if task.memory_limit is not None and resource is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (task.memory_limit, task.memory_limit))
    sender.send(compute(task))


def _begin() -> None:
    """Let a process that computes end with the one that writes, and without noise."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _progress(experiment: str, total: int, known: int) -> Iterator[Callable[[], None]]:
    """Show how many cells are done and the time left, if somebody is looking."""
    with show_progress(experiment, total, known) as line:

        def advance(cells: int = 1) -> None:
            if line is not None:
                line.done(line.n + cells)
                line.desc = f"{experiment}, {line.n} of {total} cells"

        advance(0)
        yield advance
