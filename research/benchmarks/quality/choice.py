"""How the defaults hold: each constant moved by half, other switches, and one set left out.

Every variant differs from the defaults in one thing. The constants are those of the method's one
module, each with a docstring below it, which says what it does.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from quality.cells import Cell
from quality.runs import MEASURES
from quality.sets import RATIOS
from quality.study import Study, markdown, triple
from viewfold import ViewFold
from viewfold._util import constants as module

SWITCHES = {
    "encoder=linear": "principal directions only",
    "encoder=landmarks": "graph of landmarks only",
    "scale=zscore": "z-score for every view",
    "scale=l2": "unit rows for every view",
    "unconnected=separate": "clusters of unconnected groups are not paired",
    "PAIRED=0": "they are always paired",
    "SPECTRUM=1": "spectrum as it is (U S)",
    "SPECTRUM=0": "no spectrum (U)",
    "HALF_TRUST=1e-09": "all views are reliable",
    "FLOOR=1000": "views are not compared by what they explain of each other",
}
"""What is left if a part of the method is not used: parameters of ViewFold, and constants at an
end of their range. Those that a tree does not know are left out."""

SEEDS = ("random_state=1", "random_state=2")
"""No choice: how far averages move by chance."""

MOVES = 1.0
"""An average that moves by so many points has moved."""


@dataclass(frozen=True)
class Constant:
    """A number of the method, and what it does."""

    name: str
    value: float
    does: str

    @property
    def moves(self) -> list[str]:
        """The variants with half of it less and half of it more; whole numbers stay whole."""
        found = [0.5 * self.value, 1.5 * self.value]
        if isinstance(self.value, int):
            found = [round(value) for value in found]
        return [f"{self.name}={value:g}" for value in found]


def constants() -> list[Constant]:
    """Return the numbers in capital letters that have a comment above them, marked by ``#:``."""
    explained = re.findall(r"^((?:#: .*\n)+)([A-Z_]+) = ", inspect.getsource(module), re.MULTILINE)
    return [
        Constant(name, getattr(module, name), " ".join(text.replace("#: ", "").split()))
        for text, name in explained
    ]


def switches() -> list[str]:
    known = {*inspect.signature(ViewFold).parameters, *(c.name for c in constants())}
    return [switch for switch in SWITCHES if switch.partition("=")[0] in known]


def variants() -> list[str]:
    """Return all that a default could have been chosen from; the first are the defaults."""
    return ["", *(move for constant in constants() for move in constant.moves), *switches()]


def cells(study: Study) -> list[Cell]:
    return [c for one in [*variants(), *SEEDS] for c in study.everywhere("ViewFold", one)]


def known(study: Study) -> dict[str, np.ndarray]:
    """Return set × ratio × measure of each variant that did not fail; empty if some did not run."""
    if study.results.missing(cells(study)):
        return {}
    found = {variant: study.grid("ViewFold", variant) for variant in variants()}
    return {variant: grid for variant, grid in found.items() if not np.isnan(grid).any()}


def left_out(found: dict[str, np.ndarray], measure: int) -> tuple[np.ndarray, list[str]]:
    """Choose for each set what is best on the others, by the average over ratios of a measure.

    Returns
    -------
    ndarray of shape (ratios,)
        The average of the measure over the sets, each with what was chosen without it.
    list of str
        What was chosen for each set.
    """
    names, grids = list(found), np.array([grid[..., measure] for grid in found.values()])
    each = grids.mean(axis=2)
    others = each.sum(axis=1, keepdims=True) - each
    best = others.argmax(axis=0)
    chosen = grids[best, np.arange(grids.shape[1])]
    return chosen.mean(axis=0), [names[i] for i in best]


# ---- tables -------------------------------------------------------------------------------------


def show_constants(study: Study) -> None:
    """Show what each constant does, and the averages with half of it less and half of it more."""
    default = study.grid("ViewFold")
    rows = [["defaults", "", "", averages(default), "", ""]]
    for constant in constants():
        grids = [study.grid("ViewFold", move) for move in constant.moves]
        values = [move.partition("=")[2] for move in constant.moves]
        shown = [f"{v}: {averages(grid)}" for v, grid in zip(values, grids, strict=True)]
        rows.append([constant.name, constant.value, constant.does, *shown, moved(default, grids)])
    head = ["constant", "value", "what it does", "lower", "higher", "an average moves by a point"]
    markdown(head, rows)


def show_switches(study: Study) -> None:
    default = study.grid("ViewFold")
    rows = [["defaults", averages(default), ""]]
    for one in [*switches(), *SEEDS]:
        grid = study.grid("ViewFold", one)
        said = SWITCHES.get(one, "another seed")
        rows.append([f"{one} ({said})", averages(grid), moved(default, [grid])])
    markdown(["", "averages", "an average moves by a point"], rows)


def averages(grid: np.ndarray) -> str:
    """Return ACC/NMI/ARI at each ratio."""
    return " · ".join(triple(mean) for mean in grid.mean(axis=0))


def moved(default: np.ndarray, grids: list[np.ndarray]) -> str:
    """Say which averages move by a point, or that nothing changes at all."""
    if all(np.array_equal(default, grid) for grid in grids):
        return "no cell changes"
    said = []
    for grid, side in zip(grids, ("lower", "higher"), strict=False):
        change = (grid - default).mean(axis=0)
        parts = [
            f"{measure} {ratio:.0%} {change[j, i]:+.1f}"
            for j, ratio in enumerate(RATIOS)
            for i, measure in enumerate(MEASURES)
            if abs(change[j, i]) >= MOVES
        ]
        if parts:
            said.append((f"{side}: " if len(grids) > 1 else "") + ", ".join(parts))
    return "; ".join(said) or "no"


def losses(study: Study) -> dict[str, np.ndarray]:
    """Return, for each measure, what the left-out choice loses at each ratio."""
    found = known(study)
    if "" not in found:
        return {}
    return {
        measure: found[""][..., i].mean(axis=0) - left_out(found, i)[0]
        for i, measure in enumerate(MEASURES)
    }


def show_left_out(study: Study) -> None:
    found = known(study)
    if "" not in found:
        return print("The defaults did not run on all sets.")
    rows, said = [], []
    for i, measure in enumerate(MEASURES):
        default, (chosen, which) = found[""][..., i].mean(axis=0), left_out(found, i)
        cells = [" / ".join(f"{v:.1f}" for v in row) for row in (default, chosen, default - chosen)]
        rows.append([measure, *cells])
        counts = Counter(which).most_common()
        said.append(f"{measure}: " + ", ".join(f"{one or 'defaults'} ({n})" for one, n in counts))
    ratios = " / ".join(f"{ratio:.0%}" for ratio in RATIOS)
    markdown([ratios, "defaults", "chosen on the other sets", "lost"], rows)
    print(f"\nOf {len(found)} variants, chosen (for so many sets):")
    print("".join(f"\n- {line}" for line in said))
