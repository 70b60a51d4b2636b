"""Which cells an experiment has: data sets, methods, ratios, draws, orders and sizes.

What can be wrong with a request is found here, before anything is computed.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np

from viewfold_research.bench import methods
from viewfold_research.bench.protocol import (
    DIGITS,
    SYNTHETIC,
    SetSource,
    Task,
    given_mask,
    load,
    paper_order,
)
from viewfold_research.bench.results import Cell, as_setting

KMEANS_RUNS = 50
PAPER_RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5)
SUFFIXES = (".npz", ".mat")


@dataclass(frozen=True)
class Options:
    """What to run an experiment on, and how. The defaults are the paper's protocol.

    Attributes
    ----------
    data : path or None
        Folder of the data sets, ``.npz`` or ``.mat``; None for the digits of scikit-learn.
    datasets : tuple of str
        Names of files in it, without their ending; all of them if empty.
    methods : tuple of str
        Names of methods; all that suit the experiment if empty.
    ratios : tuple of float or None
        Shares of missing samples; None for those of the experiment.
    draws : int or None
        Draws of missing samples for each ratio; None for as many as the experiment takes.
    kmeans_runs : int
        Runs of k-means on each embedding.
    orders : int
        How many orders of views the experiment on orders tries, at most.
    sizes : tuple of int
        Numbers of samples of the experiment on scale.
    masks : tuple of paths
        Files of masks to take instead of drawing them, for the data sets that they name.
    order : str or tuple of int
        "paper" (the order that the paper's numbers need, where it is known), "file", or positions.
    seed : int
        What everything random follows from.
    memory_limit : int or None
        Bytes that a cell may ask for, where cells run alone: on time and scale and on the
        leaderboard.
    time_limit : int or None
        CPU seconds that it may take there; None for the limit of the experiment.
    """

    data: str | os.PathLike[str] | None = None
    datasets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    ratios: tuple[float, ...] | None = None
    draws: int | None = None
    kmeans_runs: int = KMEANS_RUNS
    orders: int = 10
    sizes: tuple[int, ...] = (10_000, 31_623, 100_000, 316_228, 1_000_000)
    masks: tuple[str | os.PathLike[str], ...] = ()
    order: str | tuple[int, ...] = "paper"
    seed: int = 0
    memory_limit: int | None = None
    time_limit: int | None = None


@dataclass(frozen=True)
class Experiment:
    """What is particular about an experiment.

    Attributes
    ----------
    ratios, draws
        Its defaults.
    methods : tuple of str
        The methods that it is about; all if empty.
    without : tuple of str
        Methods that take part only if they are asked for.
    alone : bool
        Whether cells run each in a new process: where time and memory are the point.
    runs : int or None
        Runs of k-means, where the experiment does not leave the number to the user.
    judged : bool
        Whether methods are tried with all their scalings, of which one is to be chosen without
        classes. The cells come by draw and from small sets to large ones, so that a run that is
        not finished has whole draws on some sets.
    time_limit : int or None
        CPU seconds that a cell may take.
    """

    ratios: tuple[float, ...]
    draws: int
    methods: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    alone: bool = False
    runs: int | None = None
    judged: bool = False
    time_limit: int | None = None


ITERATIVE = ("FCMVC-IV", "FCMVC-IV exact", "FCMVC+ZF", "FCMVC+AF")
VARIANTS = (*ITERATIVE[1:], "best single view")  # near copies, and one that chooses by classes
EXPERIMENTS = {
    "complete": Experiment((0.0,), 1),
    "incomplete": Experiment(PAPER_RATIOS, 10),
    "time": Experiment((0.0, *PAPER_RATIOS), 1, alone=True, runs=1),
    "order": Experiment((0.0,), 1, ("FCMVC-IV", "FCMVC-IV exact", "ViewFold")),
    "convergence": Experiment((0.0, 0.1, 0.3, 0.5), 1, ITERATIVE, runs=0),
    "scale": Experiment(
        (0.3,), 1, ("FCMVC-IV", "ViewFold", "concatenated k-means"), alone=True, runs=1
    ),
    "leaderboard": Experiment(
        (0.0, 0.3, 0.5), 1, without=VARIANTS, alone=True, runs=10, judged=True, time_limit=60
    ),
}


@dataclass(frozen=True)
class Place:
    """A data set in one order of views, where methods can be tried.

    Attributes
    ----------
    source : SetSource
        The data set.
    order : tuple of int or None
        The order in which views arrive; None for that of the file.
    masks : str or None
        The file that has its masks, if there is one.
    """

    source: SetSource
    order: tuple[int, ...] | None = None
    masks: str | None = None


def plan(experiment: str, options: Options) -> list[Task]:
    """List the cells of an experiment, and complain about what cannot be run."""
    if experiment not in EXPERIMENTS:
        raise ValueError(f"There is no experiment {experiment!r}, only {', '.join(EXPERIMENTS)}.")
    kind = EXPERIMENTS[experiment]
    everyone = [name for name in methods.names() if name not in kind.without]
    chosen = options.methods or kind.methods or tuple(everyone)
    for name in chosen:
        methods.find(name)
    _check(options)
    ratios, draws = options.ratios or kind.ratios, options.draws or kind.draws
    tasks = [
        task
        for place in _places(experiment, options, ratios, draws)
        for ratio, draw in itertools.product(ratios, range(draws))
        for name in chosen
        if ratio or not draw  # there is one way to be complete
        if methods.takes_missing_samples(name) or _is_complete(place.source, ratio)
        for task in _tasks(experiment, options, place, name, ratio, draw)
    ]
    for name in set(options.methods) - {task.cell.method for task in tasks}:
        raise ValueError(
            f"{name} is not for incomplete views, and there are no others: every ratio is above 0, "
            "or the data sets lack samples by themselves."
        )
    return sorted(tasks, key=_turn) if kind.judged else tasks


def _is_complete(source: SetSource, ratio: float) -> bool:
    return not ratio and (bool(source.n_samples) or not load(source).lacking.any())


@cache
def _size(source: SetSource) -> int:
    return len(load(source).target)


def _turn(task: Task) -> tuple[int, int, str, float, bool]:
    """Say when it is a task's turn; a method's first scaling comes before the others of all."""
    cell = task.cell
    return cell.draw, _size(task.source), cell.dataset, cell.ratio, not task.first


def _tasks(
    experiment: str, options: Options, place: Place, name: str, ratio: float, draw: int
) -> Iterator[Task]:
    """List a method's cells on one problem: one, or one for each scaling."""
    tried: list[dict[str, Any]] = [{}]
    if EXPERIMENTS[experiment].judged:
        problem = load(place.source)
        width = sum(X.shape[1] for X in problem.views)
        tried = methods.ways(name, _size(place.source), width, problem.negative)
    for parameters in tried:
        task = _task(experiment, options, place, name, ratio, draw, parameters)
        yield replace(task, parameters=tuple(parameters.items()), first=parameters is tried[0])


def _task(
    experiment: str,
    options: Options,
    place: Place,
    name: str,
    ratio: float,
    draw: int,
    parameters: dict[str, Any],
) -> Task:
    kind, source = EXPERIMENTS[experiment], place.source
    masks = place.masks if ratio else None
    runs = options.kmeans_runs if kind.runs is None else kind.runs
    setting = as_setting(
        n=source.n_samples or None,
        order=place.order,
        masks=masks and Path(masks).stem,
        kmeans_runs=None if runs in (kind.runs, KMEANS_RUNS) else runs,
        **parameters,
    )
    return Task(
        Cell(experiment, source.name, name, ratio, draw, setting, options.seed),
        source,
        place.order,
        masks,
        kmeans_runs=runs,
        timed=kind.alone,
        memory_limit=options.memory_limit if kind.alone else None,
        time_limit=(options.time_limit or kind.time_limit) if kind.alone else None,
    )


def _check(options: Options) -> None:
    least_of = {"draws": 1, "kmeans_runs": 1, "orders": 1, "seed": 0, "time_limit": 1}
    for name, least in least_of.items():
        value = getattr(options, name)
        if value is not None and value < least:
            raise ValueError(f"{name.replace('_', '-')} must be {least} or more, got {value}.")
    for ratio in options.ratios or ():
        if not 0 <= ratio < 1:
            raise ValueError(f"A ratio must be at least 0 and below 1, got {ratio:g}.")
    if not options.sizes or min(options.sizes) < 100:
        raise ValueError(f"sizes must be 100 samples or more, got {list(options.sizes)}.")


def _places(
    experiment: str, options: Options, ratios: tuple[float, ...], draws: int
) -> list[Place]:
    if experiment == "scale":
        return [Place(SetSource(SYNTHETIC, n_samples=n, seed=options.seed)) for n in options.sizes]
    found = sources(options)
    if isinstance(options.order, tuple) and len(found) > 1:
        raise ValueError(
            f"An order of views suits one data set, but there are {len(found)}: choose with "
            "--datasets, or use --order paper."
        )
    masks = _masks(options, found, [ratio for ratio in ratios if ratio], draws)
    return [
        Place(source, order, masks.get(source.name))
        for source in found
        for order in _orders(experiment, options, source)
    ]


def _orders(experiment: str, options: Options, source: SetSource) -> list[tuple[int, ...] | None]:
    views = load(source).views
    if experiment == "order":
        return list(some_orders(len(views), options.orders, options.seed))
    if options.order == "file":
        return [None]
    if options.order == "paper":
        return [paper_order(source.name, views)]
    if sorted(options.order) != list(range(len(views))):
        raise ValueError(
            f"{source.name} has {len(views)} views: an order names each of 0 to {len(views) - 1} "
            f"once, got {options.order!r}. Or say 'paper' or 'file'."
        )
    return [tuple(map(int, options.order))]


def some_orders(n_views: int, most: int, seed: int) -> list[tuple[int, ...]]:
    """Return all orders of some views, or so many different ones drawn at random.

    Examples
    --------
    >>> from viewfold_research.bench.plan import some_orders
    >>> some_orders(2, 10, seed=0), len(some_orders(12, 10, seed=0))
    ([(0, 1), (1, 0)], 10)
    """
    if factorial(n_views) <= most:
        return list(itertools.permutations(range(n_views)))
    rng, found = np.random.default_rng(seed), dict[tuple[int, ...], None]()
    while len(found) < most:
        found[tuple(map(int, rng.permutation(n_views)))] = None
    return list(found)


def sources(options: Options) -> list[SetSource]:
    """Return the data sets that were asked for, under the names that the paper has for them."""
    if options.data is None:
        others = set(options.datasets) - {DIGITS}
        if others:
            raise ValueError(
                f"Where is {sorted(others)[0]!r}? Name its folder with --data; only {DIGITS!r} "
                "comes with viewfold."
            )
        return [SetSource(DIGITS)]
    folder = Path(options.data)
    if not folder.exists():
        raise ValueError(f"{folder} does not exist. --data names a folder of .npz or .mat files.")
    files = [folder] if folder.is_file() else sorted(folder.iterdir())
    known = {file.stem.casefold(): file for file in files if file.suffix.lower() in SUFFIXES}
    if not known:
        raise ValueError(f"{folder} has no data sets: no .npz or .mat file.")
    for name in options.datasets:
        if name.casefold() not in known:
            there = ", ".join(file.stem for file in known.values())
            raise ValueError(f"{folder} has no data set {name!r}, only {there}.")
    wanted = [name.casefold() for name in options.datasets] or list(known)
    return [SetSource(_paper_name(known[name].stem), str(known[name])) for name in wanted]


def _paper_name(stem: str) -> str:
    from viewfold_research.catalogue import catalogue

    return next((e.name for e in catalogue() if e.name.casefold() == stem.casefold()), stem)


def _masks(
    options: Options, found: list[SetSource], ratios: list[float], draws: int
) -> dict[str, str]:
    """Return the files of masks by data set, after a look at whether they have what is needed."""
    names = {source.name.casefold(): source.name for source in found}
    masks = {}
    for path in map(Path, options.masks):
        if not path.is_file():
            raise ValueError(f"There is no file of masks {path}.")
        with np.load(path) as file:
            meant = str(file["dataset"]) if "dataset" in file else path.stem.removesuffix("-masks")
        if meant.casefold() not in names:
            raise ValueError(
                f"{path} is for {meant!r}, which is not among the data sets: "
                f"{', '.join(names.values())}."
            )
        for ratio in ratios:
            given_mask(str(path), ratio, draws - 1)
        masks[names[meant.casefold()]] = str(path)
    return masks
