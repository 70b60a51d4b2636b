"""Views that arrive in parts, alternately, against views that arrive whole, in one order.

Parts are random; three draws of them. ACC/NMI/ARI of ViewFold, and of what else could be done.
"""

from __future__ import annotations

import numpy as np

from quality.cells import Cell
from quality.study import Study, markdown, number, triple

DRAWS = 3
KINDS = {
    "halves": "parts=2-{}",
    "halves as new views": "as=new parts=2-{}",
    "tenths": "parts=10-{}",
}
LARGE, MOST = 500, 3.0
"""No set of so many samples may lose more than so many points of ACC by halves."""


def show(study: Study) -> None:
    whole = [Cell("ViewFold", name) for name in study.names]
    parts = {
        (kind, name): [Cell("deliveries", name, variant=words.format(i)) for i in range(DRAWS)]
        for kind, words in KINDS.items()
        for name in study.names
    }
    study.compute([*whole, *(cell for cells in parts.values() for cell in cells)])

    def mean(cells: list[Cell]) -> np.ndarray:
        found = [study.results.of(cell) for cell in cells]
        return np.mean([[one.get(m, np.nan) for m in ("ACC", "NMI", "ARI")] for one in found], 0)

    rows, table = [], []
    for cell in whole:
        found = [mean([cell]), *(mean(parts[kind, cell.set]) for kind in KINDS)]
        table.append(found)
        rows.append([cell.set, study.facts[cell.set].n, *map(triple, found)])
    means = np.mean(table, axis=0)
    markdown(["data set", "samples", "whole", *KINDS], [*rows, ["mean", "", *map(triple, means)]])
    lost = {
        name: found[0][0] - found[1][0]
        for name, found in zip(study.names, table, strict=True)
        if study.facts[name].n >= LARGE and found[0][0] - found[1][0] > MOST
    }
    said = ", ".join(f"{name} {number(points)}" for name, points in lost.items()) or "none"
    print(f"\nSets of {LARGE} or more samples that lose more than {MOST:g} by halves: {said}")
