"""What must not matter: the order of views, views of noise, seeds, and the names of samples.

All on complete data (as complete as the set is), ACC of ViewFold.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from quality.cells import HERE, Cell
from quality.study import Study, markdown, number

MOST = 1.5
"""Standard deviations, and costs of noise, may be so many points of ACC."""

FEWEST = 300
"""Sets with fewer samples may jump between seeds."""

REPEATS = 10
NOISES = 3
PLACES = [f"{count}-{where}" for count in (1, 3) for where in ("first", "last")]


def orders(study: Study, name: str) -> list[str]:
    """All orders of up to three views, else ten random ones."""
    views = study.facts[name].views
    if views <= 3:
        found = list(itertools.permutations(range(views)))
    else:
        rng = np.random.default_rng(0)
        found = [tuple(rng.permutation(views)) for _ in range(REPEATS)]
    return ["order=" + "-".join(map(str, one)) for one in found]


def seeds(study: Study, name: str) -> list[str]:
    """Ten values of `random_state`."""
    return ["", *(f"random_state={seed}" for seed in range(1, REPEATS))]


def names(study: Study, name: str) -> list[str]:
    """Ten renamings of all samples: draws depend on ids."""
    return [f"names={seed}" for seed in range(REPEATS)]


def noises(place: str) -> list[str]:
    """Three draws of one or three views of 100 Gaussian features, before or after the others."""
    return [f"noise={place}-{seed}" for seed in range(NOISES)]


KINDS: dict[str, Callable[[Study, str], list[str]]] = {
    "order": orders,
    "seeds": seeds,
    "names": names,
}


def spread(study: Study, kind: str) -> dict[str, tuple[float, float]]:
    """Return mean and standard deviation of ACC on each set."""
    found = {name: study.accs(name, KINDS[kind](study, name)) for name in study.names}
    return {name: (accs.mean(), accs.std()) for name, accs in found.items()}


def restless(study: Study, kind: str) -> list[str]:
    """Say on which sets the standard deviation is larger than it may be."""
    return [
        f"{name} {deviation:.1f}"
        for name, (_, deviation) in spread(study, kind).items()
        if deviation > MOST and (kind == "order" or study.facts[name].n >= FEWEST)
    ]


def show_spread(study: Study, kind: str) -> None:
    variants = {name: KINDS[kind](study, name) for name in study.names}
    cells = [Cell("ViewFold", name, variant=v) for name in study.names for v in variants[name]]
    study.compute_before(cells)
    study.compute(cells)
    head, rows = ["data set", "samples", kind], []
    for tree in study.trees:
        title = "ViewFold" if tree == HERE else "before"
        head += [f"{title}: mean", "std"]
    for name in study.names:
        row = [name, study.facts[name].n, len(variants[name])]
        for tree in study.trees:
            accs = study.accs(name, variants[name], tree)
            row += [number(accs.mean()), number(accs.std(), 2)]
        rows.append(row)
    markdown(head, rows)
    whose = "all sets" if kind == "order" else f"sets of {FEWEST} samples or more"
    said = ", ".join(restless(study, kind)) or "none"
    print(f"\nStandard deviation above {MOST} ({whose}): {said}.")


def costs(study: Study) -> dict[str, dict[str, float]]:
    """Return what views of noise cost on each set, for each number and place of them."""
    found = {}
    for name in study.names:
        without = study.accs(name, [""])[0]
        found[name] = {place: without - study.accs(name, noises(place)).mean() for place in PLACES}
    return found


def costly(study: Study) -> list[str]:
    """Say where noise costs more than it may."""
    return [
        f"{name} {place.replace('-', ' ')} {cost:.1f}"
        for name, each in costs(study).items()
        for place, cost in each.items()
        if cost > MOST
    ]


def show_noise(study: Study) -> None:
    study.compute(
        Cell("ViewFold", name, variant=variant)
        for name in study.names
        for variant in ["", *(v for place in PLACES for v in noises(place))]
    )
    found = costs(study)
    rows = [
        [name, number(study.accs(name, [""])[0]), *(number(cost) for cost in found[name].values())]
        for name in study.names
    ]
    means = [np.mean([each[place] for each in found.values()]) for place in PLACES]
    rows.append(["average", "", *map(number, means)])
    markdown(
        ["data set", "without", *(f"cost of {place.replace('-', ' ')}" for place in PLACES)], rows
    )
    print(f"\nNoise costs more than {MOST}: {', '.join(costly(study)) or 'nowhere'}.")
