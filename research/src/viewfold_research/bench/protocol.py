"""One cell of an experiment, computed as in the paper: data, mask, method, k-means, scores.

Everything random follows from the cell's seed, so that all methods meet the same masks and the
same k-means seeds, in whichever process and order cells are computed.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import ceil
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from viewfold import metrics
from viewfold.datasets.missing import by_paper_rule
from viewfold_research._linalg import Array, Matrix, unit_rows
from viewfold_research.bench._agreement import References, agreement, kept, references
from viewfold_research.bench.methods import Answer, Mask, as_answer, lacking, tuned
from viewfold_research.bench.results import DONE, OUT_OF_MEMORY, Cell, Outcome

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

Curves = Sequence[Sequence[float]]
METRICS = ("ACC", "NMI", "purity", "F")
AGREEMENT = "agreement"
DIGITS = "digits"
SYNTHETIC = "synthetic"
FEATURES, CLUSTERS = (60, 40, 20), 10  # of synthetic data


@dataclass(frozen=True)
class SetSource:
    """Where a data set comes from.

    Attributes
    ----------
    name : str
        Its name; the paper's, if the paper has it.
    path : str or None
        Its file; None for the digits that come with scikit-learn, and for synthetic data.
    n_samples, seed : int
        The size of synthetic data, and the seed it is made from.
    """

    name: str
    path: str | None = None
    n_samples: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Problem:
    """A data set, ready for the methods.

    Attributes
    ----------
    views : list of arrays or CSR matrices
        Views of the same samples; a row of NaN is a sample that the view lacks.
    target : ndarray of int
        The classes, from 0.
    """

    views: list[Matrix]
    target: NDArray[np.intp]

    @property
    def n_clusters(self) -> int:
        """The number of classes, which the paper takes for known."""
        return int(self.target.max()) + 1

    @cached_property
    def lacking(self) -> Mask:
        """Which samples (rows) are not in which views (columns), whoever draws more of them."""
        return lacking(self.views)

    @cached_property
    def negative(self) -> bool:
        """Whether a feature is below zero somewhere."""
        values = [X.data if sparse.issparse(X) else X for X in self.views]
        return any(bool(np.nanmin(each, initial=0) < 0) for each in values)


@dataclass(frozen=True)
class Task:
    """A cell, and all it takes to compute it in another process.

    Attributes
    ----------
    cell : Cell
        Which cell.
    source : SetSource
        The data.
    order : tuple of int or None
        The order in which views arrive; None for the order of the file.
    masks : str or None
        A file of masks to take instead of drawing them.
    kmeans_runs : int
        How often k-means runs on an embedding; with 0, the course of the objective is wanted.
    timed : bool
        Whether time is what matters: then the method runs on a few samples first, so that the clock
        counts no imports, and the clock counts k-means, too, which it does not in the paper.
    memory_limit : int or None
        Bytes that the process may ask for.
    time_limit : int or None
        CPU seconds that the method may take, in a process of its own, which then ends.
    parameters : tuple of tuples of str and value
        What a baseline is to have instead of its defaults.
    first : bool
        Whether these are the first parameters that the method is tried with.
    judged : str or None
        A folder, if labels are to be compared with those of single views, which are kept there:
        for choices that must not look at classes. Of all runs of k-means, the one with the least
        inertia counts.
    """

    cell: Cell
    source: SetSource
    order: tuple[int, ...] | None = None
    masks: str | None = None
    kmeans_runs: int = 50
    timed: bool = False
    memory_limit: int | None = None
    time_limit: int | None = None
    parameters: tuple[tuple[str, Any], ...] = ()
    first: bool = True
    judged: str | None = None


def compute(task: Task) -> Outcome:
    """Compute a cell. Whatever goes wrong in a method is an outcome, too."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # views that share no sample, empty clusters
        try:
            return _compute(task)
        except MemoryError:
            return Outcome(OUT_OF_MEMORY, load=load_of_machine())
        except Exception as error:
            line = " ".join(f"{type(error).__name__}: {error}".split())
            return Outcome(f"failed: {line}", load=load_of_machine())


def _compute(task: Task) -> Outcome:
    problem, phases = load(task.source), Phases()
    order = task.order or range(len(problem.views))
    views = [problem.views[v] for v in order]
    absent = problem.lacking[:, list(order)]
    gone = without_views(mask(task, len(problem.target), len(views)), absent)
    judge = _judge(task, views, gone, problem.n_clusters)
    if task.timed and judge is None:
        few = load(SetSource(SYNTHETIC, n_samples=200))
        _solve(few, few.views, np.zeros((200, len(few.views)), bool), task, Phases(), Meter())
    if task.time_limit is not None:
        _limit_time(task.time_limit)
    meter = Meter()
    scores, curves = _solve(problem, views, gone, task, phases, meter, judge)
    return Outcome(
        DONE,
        scores,
        curves,
        meter.cpu_seconds,
        meter.wall_seconds,
        meter.peak_bytes,
        len(problem.target),
        problem.n_clusters,
        threads=1,
        load=load_of_machine(),
        phases=phases.seconds,
    )


def _judge(task: Task, views: list[Matrix], gone: Mask, n_clusters: int) -> References | None:
    """Return what labels are judged by, the same for all methods and parameters."""
    if task.judged is None:
        return None
    cell = task.cell
    problem = (task.source, cell.ratio, cell.draw, cell.seed, task.order, task.masks, n_clusters)
    path = Path(task.judged) / f"{crc32(repr(problem).encode()):08x}.npz"
    return kept(path, lambda: references(views, gone, n_clusters, cell.seed))


def _limit_time(seconds: int) -> None:
    """Let this process end when it has taken so much more CPU time."""
    if resource is None:
        return  # `run` has said so, and ends what takes far too long
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (ceil(time.process_time()) + seconds, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _solve(
    problem: Problem,
    views: list[Matrix],
    gone: Mask,
    task: Task,
    phases: Phases,
    meter: Meter,
    judge: References | None = None,
) -> tuple[dict[str, list[float]], Curves]:
    """Run the method, then k-means; return the scores, or the course of the objective."""
    k, n, cell = problem.n_clusters, len(problem.target), task.cell
    method = tuned(cell.method, dict(task.parameters))
    seeds = kmeans_seeds(cell.seed, task.kmeans_runs)
    candidates = []
    with meter:
        with phases("method"):
            answer = as_answer(method(views, gone, k, cell.seed), n, cell.method)
        if task.timed:
            with phases("k-means"):
                candidates = _labels(answer, k, seeds, best=judge is not None)
    if not seeds:
        if not any(answer.curves):
            raise ValueError(f"{cell.method} has no objective to follow.")
        return {}, answer.curves
    with phases("k-means"):
        candidates = candidates or _labels(answer, k, seeds)
    with phases("scores"):
        if judge is not None:
            values = [agreement(labels, judge) for (labels,) in candidates]
            at = int(np.argmax(values))
            return {**_scores(problem, candidates[at]), AGREEMENT: [values[at]]}, ()
        found = [_scores(problem, runs) for runs in candidates]
    return max(found, key=lambda scores: np.mean(scores["ACC"])), ()


def _scores(problem: Problem, runs: list[Array]) -> dict[str, list[float]]:
    each = [score(problem.target, labels) for labels in runs]
    return {metric: [run[i] for run in each] for i, metric in enumerate(METRICS)}


def _labels(
    answer: Answer, n_clusters: int, seeds: list[int], *, best: bool = False
) -> list[list[Array]]:
    """Return the labels of each run, or of the best one, for each embedding to choose from."""
    if answer.labels is not None:
        return [[answer.labels]]
    embeddings = [unit_rows(E) if answer.unit_rows else E for E in answer.embeddings]
    if best:
        several = KMeans(n_clusters, n_init=len(seeds), random_state=seeds[0])
        return [[several.fit(rows).labels_] for rows in embeddings]
    return [kmeans(rows, n_clusters, seeds) for rows in embeddings]


def kmeans_seeds(seed: int, runs: int) -> list[int]:
    """Return the seeds of so many runs of k-means."""
    return [int(s) for s in np.random.SeedSequence(seed).generate_state(runs)]


def kmeans(rows: Array, n_clusters: int, seeds: list[int]) -> list[Array]:
    """Run k-means once for each seed, from one k-means++ start, as the paper's program does."""
    # A batched Lloyd (all runs in one product) was measured, too: it is not faster.
    return [KMeans(n_clusters, n_init=1, random_state=s).fit(rows).labels_ for s in seeds]


def score(target: NDArray[np.intp], labels: Array) -> tuple[float, float, float, float]:
    """Return ACC, NMI, purity and F in percent.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research.bench.protocol import score
    >>> score(np.array([0, 0, 1, 1]), np.array([5, 5, 3, 3]))
    (100.0, 100.0, 100.0, 100.0)
    """
    right, shared, pure, f = metrics.evaluate(target, labels).values()
    return 100 * right, 100 * shared, 100 * pure, 100 * f


# ---- data and masks -----------------------------------------------------------------------------


@lru_cache(maxsize=2)
def load(source: SetSource) -> Problem:
    """Read or make a data set; samples that are in none of its views are left out."""
    from viewfold import datasets

    if source.n_samples:
        data = datasets.make_multiview(
            source.n_samples, FEATURES, CLUSTERS, dtype=np.float32, random_state=source.seed
        )
    elif source.path is None:
        data = datasets.load_digits_views()
    else:
        data = datasets.load(source.path)
    if data.target is None:
        raise ValueError(f"{source.path} has no classes (y): there is nothing to compare with.")
    views = list(data.views.values())
    seen = ~lacking(views).all(axis=1)
    if not seen.all():
        views = [X[seen] for X in views]
    return Problem(views, np.unique(data.target[seen], return_inverse=True)[1])


def paper_order(name: str, views: list[Matrix]) -> tuple[int, ...] | None:
    """Return the order in which the paper's numbers need the views, None if it is the file's."""
    from viewfold_research.catalogue import catalogue

    features = tuple(X.shape[1] for X in views)
    for entry in catalogue():
        if entry.name != name or entry.order is None or entry.features is None:
            continue
        wanted = [entry.features[v] for v in entry.order]
        if list(features) == wanted or sorted(features) != sorted(wanted):
            return None
        if len(set(wanted)) < len(wanted):  # views of the same width can only be told by position
            return entry.order if features == entry.features else None
        return tuple(features.index(d) for d in wanted)
    return None


def mask(task: Task, n_samples: int, n_views: int) -> Mask:
    """Return who is missing, views in the order in which they arrive."""
    cell = task.cell
    if cell.ratio == 0:
        return np.zeros((n_samples, n_views), bool)
    if task.masks is None:
        key = [cell.seed, crc32(cell.dataset.encode()), round(1e6 * cell.ratio), cell.draw]
        return by_paper_rule(n_samples, n_views, cell.ratio, np.random.default_rng(key))
    gone = given_mask(task.masks, cell.ratio, cell.draw)
    if gone.shape != (n_samples, n_views):
        raise ValueError(
            f"{task.masks} has masks of {gone.shape}, but {cell.dataset} has {n_samples} samples "
            f"in {n_views} views."
        )
    if gone.all(axis=1).any():
        lost = int(np.flatnonzero(gone.all(axis=1))[0])
        raise ValueError(f"{task.masks} takes sample {lost} out of every view.")
    return gone if task.order is None else gone[:, list(task.order)]


def without_views(drawn: Mask, absent: Mask) -> Mask:
    """Return who is missing: who was drawn, and who is not in the file.

    A sample that would then be in no view keeps all that the file has of it.
    """
    gone = drawn | absent
    lost = gone.all(axis=1)
    gone[lost] = absent[lost]
    return gone


def given_mask(path: str, ratio: float, draw: int) -> Mask:
    """Read a mask from a file: ``ratios`` and ``missing`` (ratios × draws × samples × views)."""
    with np.load(path) as file:
        absent = {"ratios", "missing"} - set(file)
        if absent:
            raise ValueError(
                f"{path} has no {' and no '.join(sorted(absent))}; a file of masks holds ratios "
                "and missing (ratios × draws × samples × views)."
            )
        ratios, missing = file["ratios"], file["missing"]
    at = np.flatnonzero(np.isclose(ratios, ratio))
    if not at.size:
        raise ValueError(f"{path} has no masks for ratio {ratio:g}, only {ratios.tolist()}.")
    if draw >= missing.shape[1]:
        raise ValueError(f"{path} has {missing.shape[1]} draws of each ratio, not {draw + 1}.")
    return np.asarray(missing[at[0], draw], dtype=bool)


# ---- clocks -------------------------------------------------------------------------------------


def load_of_machine() -> float | None:
    """Return how busy the machine is, where it tells."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


@dataclass
class Phases:
    """CPU seconds by kind of work."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, kind: str) -> Iterator[None]:
        """Count what happens inside."""
        start = time.process_time()
        yield
        self.seconds[kind] = self.seconds.get(kind, 0) + time.process_time() - start


class Meter:
    """Time and memory of what happens inside: CPU time of all threads and finished children."""

    cpu_seconds = wall_seconds = 0.0
    peak_bytes: int | None = None

    def __enter__(self) -> Meter:
        # Linux lets a process forget its peak; elsewhere only new peaks can be seen.
        self._memory = _memory("VmRSS") if _forget_peak() else _memory("VmHWM")
        self._wall, self._cpu = time.perf_counter(), _cpu_seconds()
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu_seconds = _cpu_seconds() - self._cpu
        self.wall_seconds = time.perf_counter() - self._wall
        peak = _memory("VmHWM")
        if peak is not None and self._memory is not None:
            self.peak_bytes = max(peak - self._memory, 0)


def _cpu_seconds() -> float:
    now = os.times()
    return time.process_time() + now.children_user + now.children_system


def _forget_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _memory(kind: str) -> int | None:
    """Return resident memory in bytes: now (VmRSS) or at its peak (VmHWM)."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(kind)), None)
