"""Missing cells: ViewFold as it is, against filling them before, on the dense sets."""

from __future__ import annotations

import numpy as np

from quality.cells import Cell
from quality.runs import FILLS
from quality.study import Study, markdown, number

TEXT = {"bbcsport", "3sources", "webkb", "bbc-4view", "acm", "movies", "mouse-cortex"}
"""Sets with views of words, in which a cell that is not there is a zero."""

SHARES = (10, 30, 50)
LEAD = (0.0, 4.0, 8.0)
"""Points of ACC above filling by the mean, on average, for each share."""

LOSS_OF_TEN, LOSS_ON_A_SET, TIMES = 1.5, 2.0, 3.0
CALLED = {"none": "ViewFold", "mean": "mean", "knn": "KNNImputer", "iterative": "IterativeImputer"}
KEYS = ("ACC", "NMI", "cpu")


def cells(study: Study, name: str, share: int, fill: str) -> list[Cell]:
    """Return the cells of a set, one for each draw."""
    draws = range(study.draws if share else 1)
    return [Cell("gaps", name, variant=f"cells={share}-{i} fill={fill}") for i in draws]


def found(study: Study, names: list[str], share: int, fill: str) -> np.ndarray:
    """Return ACC, NMI and CPU time of each set, mean over the draws."""
    return np.array(
        [
            np.mean(
                [
                    [study.results.of(cell).get(key, np.nan) for key in KEYS]
                    for cell in cells(study, name, share, fill)
                ],
                axis=0,
            )
            for name in names
        ]
    )


def show(study: Study) -> None:
    """ACC/NMI with 10, 30 and 50 % of all cells missing at random, and what was promised."""
    names = [name for name in study.names if name not in TEXT]
    asked = [(0, "none"), *((share, fill) for share in SHARES for fill in FILLS)]
    study.compute(c for name in names for one in asked for c in cells(study, name, *one))
    grids = {one: found(study, names, *one) for one in asked}
    complete = grids[0, "none"]
    rows = []
    for i, name in enumerate([*names, f"average of {len(names)}"]):

        def pair(grid: np.ndarray, i: int = i) -> str:
            of = grid[i] if i < len(grid) else grid.mean(axis=0)
            return f"{number(of[0])}/{number(of[1])}"

        rows += [
            [name, f"{share} %", pair(complete), *(pair(grids[share, fill]) for fill in FILLS)]
            for share in SHARES
        ]
    markdown(["data set", "missing", "complete", *(CALLED[fill] for fill in FILLS)], rows)
    print()
    markdown(["promise", "found", ""], promises(names, complete, grids))


def promises(
    names: list[str], complete: np.ndarray, grids: dict[tuple[int, str], np.ndarray]
) -> list[list[str]]:
    """Return what was promised, what was found, and whether it is kept."""
    lines = []
    for share, lead in zip(SHARES, LEAD, strict=True):
        own, mean = grids[share, "none"], grids[share, "mean"]
        gain = own[:, 0] - mean[:, 0]
        worst = int(gain.argmin())
        for said, value, least in (
            (f"{share} %: ACC above mean filling", gain.mean(), lead),
            (f"{share} %: the same, on {names[worst]} (the worst)", gain[worst], -LOSS_ON_A_SET),
            *(
                (f"{share} %: ACC above {CALLED[rival]}", (own - other)[:, 0].mean(), 0.0)
                for rival in ("knn", "iterative")
                for other in [grids[share, rival]]
            ),
        ):
            lines.append([said, f"{value:+.1f}", "kept" if value >= least else "**missed**"])
        times = own[:, 2] / complete[:, 2]
        slowest = names[int(times.argmax())]
        said = f"{share} %: CPU time, times that of complete cells (most: {slowest})"
        kept = "kept" if times.max() <= TIMES else "**missed**"
        lines.append([said, f"{np.median(times):.1f} ({times.max():.1f})", kept])
    loss = (complete - grids[SHARES[0], "none"])[:, 0].mean()
    kept = "kept" if loss <= LOSS_OF_TEN else "**missed**"
    return [*lines, [f"{SHARES[0]} %: ACC below complete cells", f"{loss:.1f}", kept]]
