"""What a run is asked for, and the means over draws that its tables are made of."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from quality import sets
from quality.cells import HERE, Cell, Results, compute, elsewhere
from quality.runs import MEASURES


@dataclass(frozen=True)
class Facts:
    """What tables need to know about a set."""

    n: int
    views: int
    complete: bool
    widest: int


@dataclass(frozen=True)
class Study:
    """Sets, masks and results of a run; `before` is another tree of viewfold to compare with."""

    data: Path
    names: tuple[str, ...]
    results: Results
    before: Path | None = None
    jobs: int = 1
    draws: int = sets.DRAWS
    imml: bool = False

    @classmethod
    def asked(cls, given: argparse.Namespace) -> Study:
        """Make a study of what `arguments` has parsed, or say what is not there."""
        names = tuple(given.sets or sets.SETS)
        absent = [name for name in names if not (given.data / f"{name}.npz").is_file()]
        if absent:
            raise SystemExit(f"{given.data} has no file {absent[0]}.npz: name others by --sets.")
        before = given.before.resolve() / "viewfold" if given.before else None
        if before and not before.is_dir():
            raise SystemExit(f"There is no folder {before}: --before is a source folder (src).")
        results = Results(given.results)
        return cls(given.data, names, results, before, given.jobs, given.draws, given.imml)

    @cached_property
    def facts(self) -> dict[str, Facts]:
        """What is known of each set."""
        found = {}
        for name in self.names:
            data = sets.load(self.data, name)
            widest = max(X.shape[1] for X in data.views)
            found[name] = Facts(len(data.y), len(data.views), data.complete, widest)
        return found

    @property
    def trees(self) -> list[Path]:
        """Return the trees whose ViewFold is measured: the other one, if there is one, and this."""
        return [self.before, HERE] if self.before else [HERE]

    def masks(self) -> Iterator[tuple[float, int]]:
        """Yield ratios and seeds; nothing is drawn if nothing is to be missing."""
        for ratio in sets.RATIOS:
            for draw in range(self.draws if ratio else 1):
                yield ratio, draw

    def everywhere(self, method: str, variant: str = "", names: Iterable[str] = ()) -> list[Cell]:
        """Return the cells of a method on all sets (or some) and masks."""
        chosen = list(names or self.names)
        return [Cell(method, s, r, d, variant) for s in chosen for r, d in self.masks()]

    def compute(self, cells: Iterable[Cell]) -> None:
        """Compute what is not there yet."""
        compute(cells, self.data, self.results, self.jobs)

    def compute_before(self, cells: Iterable[Cell]) -> None:
        """Do the same with the other tree, if there is one."""
        if self.before:
            elsewhere(self.before, cells, self.data, self.results, self.jobs)

    def mean(
        self, method: str, name: str, ratio: float, variant: str = "", tree: Path = HERE
    ) -> np.ndarray:
        """Return ACC, NMI and ARI, mean over the draws; NaN if a draw failed or is not there."""
        cells = [Cell(method, name, r, d, variant) for r, d in self.masks() if r == ratio]
        found = [self.results.of(cell, tree) for cell in cells]
        return np.mean([[one.get(m, np.nan) for m in MEASURES] for one in found], axis=0)

    def grid(self, method: str, variant: str = "", tree: Path = HERE) -> np.ndarray:
        """Return set × ratio × measure."""
        return np.array(
            [
                [self.mean(method, name, ratio, variant, tree) for ratio in sets.RATIOS]
                for name in self.names
            ]
        )

    def accs(self, name: str, variants: Iterable[str], tree: Path = HERE) -> np.ndarray:
        """Return ACC of variants of ViewFold on a set without further samples missing."""
        cells = [Cell("ViewFold", name, variant=variant) for variant in variants]
        return np.array([self.results.of(cell, tree).get("ACC", np.nan) for cell in cells])


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of what all studies are asked for."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=layout)
    parser.add_argument("--data", type=Path, required=True, help="folder of .npz files")
    parser.add_argument("--sets", nargs="+", help="data sets; all nineteen if not given")
    parser.add_argument("--results", type=Path, default=Path("accuracy.jsonl"), help="kept cells")
    parser.add_argument("--before", type=Path, help="source folder (src) to compare with")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--draws", type=int, default=sets.DRAWS, help="of missing samples")
    parser.add_argument("--imml", action="store_true", help="with the NEMO of iMML (an hour)")
    return parser


def markdown(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Print a table."""
    names = list(head)
    print("| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


def triple(values: np.ndarray) -> str:
    return "–" if np.isnan(values).any() else "/".join(f"{value:.1f}" for value in values)


def number(value: float, digits: int = 1) -> str:
    return "–" if np.isnan(value) else f"{value:.{digits}f}"
