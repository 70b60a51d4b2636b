"""The table of all sets and ratios: ViewFold, its rivals, and what stands against its promises.

NEMO and k-means of single views count with the scaling, and the view, that has the best mean ACC of
each set and ratio: a choice by the classes, in their favour.
"""

from __future__ import annotations

import numpy as np

from quality.cells import Cell
from quality.sets import OLD, RATIOS
from quality.study import Study, markdown, triple

TOLERATED = 3.0
"""ViewFold may be so many points of ACC behind a rival, on any set and ratio."""

EVEN = 2.0
"""Differences up to so many points of ACC are no win and no loss."""

WIDEST = 10_000
"""A view with more features is not standardised: it would not stay sparse."""

SINGLE = "best single view"


def scalings(study: Study, name: str) -> list[str]:
    return ["zscore", "unit", "none"] if study.facts[name].widest <= WIDEST else ["unit", "none"]


def nemos(study: Study) -> dict[str, list[str]]:
    """Return the implementations of NEMO that take part, and the scalings of each."""
    own = {"NEMO": ["zscore", "unit", "none"]}
    return own | {"NEMO of iMML": ["standard", "unit", "none"]} if study.imml else own


def single_views(study: Study, name: str) -> list[Cell]:
    """Return the cells of single views, if the set is complete."""
    if not study.facts[name].complete:
        return []
    kinds = [("k-means", f" scale={scale}") for scale in scalings(study, name) if scale != "none"]
    return [
        Cell(method, name, variant=f"view={v}{scale}")
        for v in range(study.facts[name].views)
        for method, scale in [("ViewFold", ""), *kinds]
    ]


def compute(study: Study) -> None:
    own = study.everywhere("ViewFold")
    study.compute_before(own)
    cells = own + study.everywhere("FCMVC") + study.everywhere("k-means")
    for name in study.names:
        fits = scalings(study, name)
        for method, each in nemos(study).items():
            for scale in each[-len(fits) :]:
                cells += study.everywhere(method, f"scale={scale}", [name])
        cells += single_views(study, name)
    study.compute(cells)


def columns(study: Study) -> dict[str, np.ndarray]:
    """Return the columns of the table: set × ratio × measure each."""
    found = {"before": study.grid("ViewFold", tree=study.before)} if study.before else {}
    found["ViewFold"] = study.grid("ViewFold")
    found["FCMVC"] = study.grid("FCMVC")
    for method, each in nemos(study).items():
        found[method] = best(np.array([study.grid(method, f"scale={scale}") for scale in each]))
    found["k-means of all views"] = study.grid("k-means")
    for method in ("k-means", "ViewFold"):
        found[f"{SINGLE}, {method}"] = alone = np.full_like(found["ViewFold"], np.nan)
        for i, name in enumerate(study.names):
            cells = [cell for cell in single_views(study, name) if cell.method == method]
            if cells:
                each = [study.mean(method, name, 0.0, cell.variant) for cell in cells]
                alone[i, 0] = best(np.array(each))
    return found


def best(grids: np.ndarray) -> np.ndarray:
    """Return, of several results for each cell, the one with the best ACC."""
    first = np.nan_to_num(grids[..., 0], nan=-np.inf).argmax(axis=0)
    return np.take_along_axis(grids, first[None, ..., None], axis=0)[0]


def averages(study: Study, found: dict[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Return the averages of each column over all sets, and over the old ones, if there are any."""
    old = np.isin(study.names, OLD)
    groups = {f"average of {len(study.names)}": np.ones_like(old)}
    if old.any() and not old.all():
        groups[f"average of the {old.sum()} old"] = old
    return {
        group: {name: column[which].mean(axis=0) for name, column in found.items()}
        for group, which in groups.items()
    }


def behind(study: Study, found: dict[str, np.ndarray]) -> list[str]:
    """Say where ViewFold is further behind a rival than it may be."""
    said = []
    for rival, column in found.items():
        if rival in ("ViewFold", "before"):
            continue
        for i, name in enumerate(study.names):
            for j, ratio in enumerate(RATIOS):
                ours, theirs = found["ViewFold"][i, j, 0], column[i, j, 0]
                if theirs - ours > TOLERATED:
                    said.append(f"{name} {ratio:.0%}: {ours:.1f} against {theirs:.1f} ({rival})")
    return said


def against(found: dict[str, np.ndarray], rival: str) -> tuple[int, int, int]:
    """Return in how many cells ViewFold wins, is even, and loses."""
    lead = (found["ViewFold"] - found[rival])[..., 0]
    return int((lead > EVEN).sum()), int((abs(lead) <= EVEN).sum()), int((lead < -EVEN).sum())


def show(study: Study) -> None:
    compute(study)
    found = columns(study)
    markdown(
        ["data set", "missing", *found],
        [
            [name, f"{ratio:.0%}", *(triple(column[i, j]) for column in found.values())]
            for i, name in enumerate(study.names)
            for j, ratio in enumerate(RATIOS)
        ]
        + [
            [group, f"{ratio:.0%}", *(triple(mean[j]) for mean in means.values())]
            for group, means in averages(study, found).items()
            for j, ratio in enumerate(RATIOS)
        ],
    )
    said = behind(study, found)
    print(f"\nBehind a rival by more than {TOLERATED:.0f} points of ACC: {len(said)} cells")
    print("".join(f"\n- {line}" for line in said))
    for rival in [*nemos(study), *(["before"] if study.before else [])]:
        won, even, lost = against(found, rival)
        print(f"\nAgainst {rival}: {won} cells won, {even} even (±{EVEN:.0f}), {lost} lost.")
