"""Other things that are measured: numbers of clusters, a large set, time, groups, confidence."""

from __future__ import annotations

import inspect
import statistics
from pathlib import Path

import numpy as np

from quality import table
from quality.cells import HERE, Cell, elsewhere
from quality.sets import LARGE, RATIOS
from quality.study import Study, markdown, number
from viewfold import ViewFold

WITHIN = 0.2
"""A number of clusters is right if it is within a fifth of the number of classes."""

TIMED = ("uci-digit", "100leaves", "bbcsport", "proteinFold")
RIVAL_ON = "uci-digit"
TIMES = 5
HALVES = 20


def suggested(study: Study) -> dict[str, tuple[int, int]]:
    """Return the classes of each set and how many clusters were suggested, if that is known."""
    found = {name: study.results.of(Cell("suggest", name)) for name in study.names}
    return {
        name: (one["classes"], one["suggested"]) for name, one in found.items() if "classes" in one
    }


def right(found: dict[str, tuple[int, int]]) -> int:
    return sum(abs(number - classes) <= WITHIN * classes for classes, number in found.values())


def show_suggest(study: Study) -> None:
    """Suggest a number of clusters, from half to twice the classes."""
    study.compute(Cell("suggest", name) for name in study.names)
    found = suggested(study)
    markdown(["data set", "classes", "suggested"], [[name, *pair] for name, pair in found.items()])
    print(f"\nWithin a fifth: {right(found)} of {len(found)}.")


def show_mnist(study: Study) -> None:
    """70,000 samples in four views, against one start of k-means on all z-scores side by side."""
    if not (study.data / f"{LARGE}.npz").is_file():
        return print(f"{LARGE}.npz is not there.")
    cells = {
        "ViewFold": Cell("ViewFold", LARGE),
        "FCMVC, pixels last": Cell("FCMVC", LARGE, variant="order=1-2-3-0"),  # refuses them first
        "k-means, all views side by side": Cell("k-means", LARGE),
    }
    for cell in cells.values():  # each in a process of its own: peak memory counts
        elsewhere(HERE, [cell], study.data, study.results)
    found = {name: study.results.of(cell) for name, cell in cells.items()}
    keys = ("ACC", "NMI", "ARI", "cpu", "memory")
    rows = [[m, *(number(one.get(key, np.nan)) for key in keys)] for m, one in found.items()]
    markdown(["", "ACC", "NMI", "ARI", "CPU seconds", "MB beyond the data"], rows)


# ---- time ---------------------------------------------------------------------------------------


def timed(name: str) -> list[Cell]:
    return [Cell("ViewFold", name, variant=f"time={i}") for i in range(TIMES)]


def ratios(study: Study) -> dict[str, float]:
    """Return CPU time after / before, the median of the pairs that ran side by side."""
    found = {}
    for name in set(TIMED) & set(study.names):
        pairs = [[study.results.of(cell, tree) for tree in study.trees] for cell in timed(name)]
        if len(study.trees) == 2 and all("cpu" in one for pair in pairs for one in pair):
            found[name] = statistics.median(b["cpu"] / a["cpu"] for a, b in pairs)
    return found


def rival_times(study: Study) -> dict[str, float]:
    """Return the least CPU time of each NEMO on 2000 samples over ViewFold's."""

    def least(cells: list[Cell]) -> float:
        return min(study.results.of(cell).get("cpu", np.nan) for cell in cells)

    return {rival: least(cells) / least(timed(RIVAL_ON)) for rival, cells in rivals(study).items()}


def rivals(study: Study) -> dict[str, list[Cell]]:
    return {
        rival: [Cell(rival, RIVAL_ON, variant=f"scale={scales[0]} time={i}") for i in range(3)]
        for rival, scales in table.nemos(study).items()
    }


def show_time(study: Study) -> None:
    """CPU time of all folds with labels, one thread; trees take turns, each in a new process.

    Times are kept as all results are: to measure them again, name another file.
    """
    for i in range(TIMES):
        for tree in study.trees:
            cells = [timed(name)[i] for name in TIMED if name in study.names]
            elsewhere(tree, cells, study.data, study.results)
    if RIVAL_ON in study.names:
        for cells in rivals(study).values():
            elsewhere(HERE, cells, study.data, study.results)
        for rival, ratio in rival_times(study).items():
            print(f"CPU time on {RIVAL_ON} (2000 samples), {rival} / ViewFold: {ratio:.0f}\n")
    if study.before:
        rows = [[name, f"{ratio:.2f}"] for name, ratio in ratios(study).items()]
        markdown(["data set", "CPU time after / before"], rows)


def lines(tree: Path) -> int:
    """Count the lines of a tree's room method, and of the constants."""
    files = [*(tree / "method").rglob("*.py"), *(tree / "_util").glob("constants.py")]
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


# ---- groups, confidence, agreement --------------------------------------------------------------


def show_groups(study: Study) -> None:
    """Two views of each complete set without a common sample: what pairing by size brings."""
    if "unconnected" not in inspect.signature(ViewFold).parameters:
        return print("This ViewFold has no parameter `unconnected`.")
    kinds = ("pair", "separate")
    names = [n for n in study.names if study.facts[n].complete and study.facts[n].views > 1]
    variants = {kind: [f"halves={i} unconnected={kind}" for i in range(HALVES)] for kind in kinds}
    study.compute(
        Cell("ViewFold", name, variant=one)
        for name in names
        for kind in kinds
        for one in variants[kind]
    )
    rows = []
    for name in names:
        pair, separate = (study.accs(name, variants[kind]) for kind in kinds)
        differ = int((pair != separate).sum())
        rows.append([name, f"{differ} of {HALVES}", number(pair.mean()), number(separate.mean())])
    markdown(["data set", "paired by size", 'ACC, "pair"', '"separate"'], rows)


def show_confidence(study: Study) -> None:
    """Share of samples in the right cluster, by fifths of confidence, at 30 % missing."""
    cells = [Cell("confidence", name, 0.3) for name in study.names]
    study.compute(cells)
    rows = [
        [cell.set, *(f"{share:.0f}" for share in study.results.of(cell).get("fifths", []))]
        for cell in cells
    ]
    markdown(["data set", "lowest fifth", "2", "3", "4", "highest fifth"], rows)


def show_agreement(study: Study) -> None:
    """Least agreement of a set's views, and that of a view of noise (100 features) after them."""
    study.compute(Cell("agreement", name, ratio) for name in study.names for ratio in RATIOS)
    rows = []
    for name in study.names:
        found = [study.results.of(Cell("agreement", name, ratio)) for ratio in RATIOS]
        shares = [one.get(key) for one in found for key in ("views", "noise")]
        rows.append([name, *("–" if share is None else f"{share:.3f}" for share in shares)])
    markdown(["data set", *(f"{r:.0%}: {key}" for r in RATIOS for key in ("views", "noise"))], rows)
