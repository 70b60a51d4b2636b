"""Cells of the tables: computed once, kept in a file of JSON lines, computed by other trees too.

A result belongs to a cell and to the digest of the source that made it, so that a run goes on where
the last one ended, and rivals are not run again because ViewFold changed. Called as a program, it
computes the cells of its standard input with the viewfold that it finds: see `elsewhere`.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import viewfold
import viewfold_research

HERE = Path(viewfold.__file__).resolve().parent
RESEARCH = Path(viewfold_research.__file__).resolve().parent
BENCHMARKS = str(Path(__file__).resolve().parents[1])
NEMO_FILES = ("nemo.py", "_base.py", "_blocks.py", "_parameters.py")
"""In `viewfold_research.baselines`."""

SELECTION = "estimators/selection.py"  # no method but `suggest` runs it

# What may change without the labels of ViewFold changing: rooms, and files of other rooms.
NO_PART_OF_A_FOLD = {
    *("app", "cli", "datasets", "plot", "store", "web"),
    *("__main__.py", "metrics.py", "_util/replace.py", "_util/version.py"),
    SELECTION,
}


class Cell(NamedTuple):
    """What is measured: a method in a variant, on a set with samples missing."""

    method: str
    set: str
    ratio: float = 0.0
    draw: int = 0
    variant: str = ""


class Results:
    """A file of results, one JSON object in each line, and all that is in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[tuple[str, Cell], dict[str, Any]] = {}
        self.read()

    def read(self) -> None:
        """Read what is in the file by now."""
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                source, cell, value = json.loads(line)
                self.found[source, Cell(*cell)] = value

    def missing(self, cells: Iterable[Cell], tree: Path = HERE) -> list[Cell]:
        """Return the cells that the source of a tree has no result of, each once."""
        return [c for c in dict.fromkeys(cells) if (digest(tree, c.method), c) not in self.found]

    def of(self, cell: Cell, tree: Path = HERE) -> dict[str, Any]:
        """Return the result of a cell, by the source as it is in a tree; empty if not there."""
        return self.found.get((digest(tree, cell.method), cell), {})


@cache
def digest(tree: Path, method: str) -> str:
    """Return a digest of the code that a method's results depend on, in a tree of viewfold.

    Comments and docstrings are no part of it; how sets are read and masks are drawn is.
    """
    files = [Path(__file__).with_name("sets.py")]
    if method == "NEMO":
        files += [RESEARCH / "_linalg.py", *(RESEARCH / "baselines" / name for name in NEMO_FILES)]
    elif method not in ("k-means", "NEMO of iMML"):
        others = NO_PART_OF_A_FOLD - ({SELECTION} if method == "suggest" else set())
        for path in sorted(tree.rglob("*.py")):
            inside = path.relative_to(tree)
            files += [path] * (not others & {inside.parts[0], inside.as_posix()})
    return hashlib.sha256("\n".join(map(code, files)).encode()).hexdigest()[:12]


@cache
def code(path: Path) -> str:
    """Return what a module does, without comments, docstrings and layout."""

    class WithoutTexts(ast.NodeTransformer):
        def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
            text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            return None if text else node

    return ast.dump(WithoutTexts().visit(ast.parse(path.read_text(encoding="utf-8"))))


def compute(cells: Iterable[Cell], data: Path, results: Results, jobs: int = 1) -> None:
    """Compute the cells that are not there yet, those of large sets first."""
    todo = results.missing(cells)
    todo.sort(key=lambda cell: (-(data / f"{cell.set}.npz").stat().st_size, cell.set))
    one = partial(_one, data, results.path)
    if jobs > 1 and len(todo) > 1:
        with ProcessPoolExecutor(jobs) as pool:
            progress(pool.map(one, todo), len(todo))
    else:
        progress(map(one, todo), len(todo))
    if todo:
        results.read()


def progress(done: Iterable[None], total: int) -> None:
    """Say now and then how many cells are done."""
    for i, _ in enumerate(done, 1):
        if i % 100 == 0:
            print(f"{i} of {total} cells", file=sys.stderr, flush=True)


def _one(data: Path, path: Path, cell: Cell) -> None:
    """Compute a cell and add it to the file: a single short write, which others do not split."""
    from quality import runs, sets  # slow to import, and not needed to read results

    whole = sets.load(data, cell.set)
    value = runs.run(cell.method, cell.variant, whole, sets.mask(whole, cell.ratio, cell.draw))
    if "error" in value:
        print(f"{cell}: {value['error'][:300]}", file=sys.stderr, flush=True)
    with path.open("a") as file:
        file.write(json.dumps([digest(HERE, cell.method), cell, value]) + "\n")


def elsewhere(
    tree: Path, cells: Iterable[Cell], data: Path, results: Results, jobs: int = 1
) -> None:
    """Compute cells with the viewfold of another tree, in a process of its own."""
    todo = results.missing(cells, tree)
    if not todo:
        return
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    subprocess.run(
        [sys.executable, "-m", __name__, str(data), str(results.path), "--jobs", str(jobs)],
        input=json.dumps(todo),
        env={**os.environ, **one, "PYTHONPATH": os.pathsep.join([str(tree.parent), BENCHMARKS])},
        text=True,
        check=True,
    )
    results.read()
    if results.missing(todo, tree):
        raise SystemExit(f"Python did not take viewfold from {tree.parent}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    small = np.random.default_rng(0).normal(size=(300, 5))
    viewfold.ViewFold(3).fit([small, small])  # imports are no part of a fold
    cells = [Cell(*cell) for cell in json.load(sys.stdin)]
    compute(cells, asked.data, Results(asked.results), asked.jobs)


if __name__ == "__main__":
    main()
