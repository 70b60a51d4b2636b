"""Fold very wide and very long CSV files: time and memory as ratios to ``pandas.read_csv``.

Writes a file of 500 rows and many columns (wide: methylation, genotypes) and one of 30 mixed
columns and many rows (long: an export of customers), and folds each by ``viewfold add`` in a
process of its own. Ratios are of CPU seconds and of peak memory; they should not
grow with the size.

    python research/benchmarks/shapes.py --columns 50000 --columns 100000
    python research/benchmarks/shapes.py --rows 100000 --rows 200000
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv

READ = "import sys, pandas; pandas.read_csv(sys.argv[1])"
ADD = "import sys; from viewfold.cli import main; main()"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--columns", type=int, action="append", default=[])
    parser.add_argument("--rows", type=int, action="append", default=[])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        for shape, sizes in (("columns", given.columns), ("rows", given.rows)):
            for size in sizes:
                # In a process of its own: Linux counts the peak of a parent as a child's, too.
                write = write_wide if shape == "columns" else write_long
                writer = get_context("spawn").Process(target=write, args=(path, size))
                writer.start()
                writer.join()
                told = {shape: size, "file_mb": round(path.stat().st_size / 1e6), **ratios(path)}
                print(json.dumps(told), flush=True)


def write_wide(path: Path, d: int, n: int = 500) -> None:
    rng = np.random.default_rng(0)
    means = rng.normal(size=(5, d))
    rows = np.round(means[np.arange(n) % 5] + rng.normal(size=(n, d)), 4)
    columns = {f"cg{j:08d}": rows[:, j] for j in range(d)}
    pa.csv.write_csv(pa.table({"id": [f"p{i}" for i in range(n)], **columns}), path)


def write_long(path: Path, n: int, block: int = 50_000) -> None:
    rng = np.random.default_rng(0)
    means = 2 * rng.normal(size=(6, 20))
    path.unlink(missing_ok=True)
    for start in range(0, n, block):
        m = min(block, n - start)
        y = rng.integers(6, size=m)
        numbers = np.round(means[y] + rng.normal(size=(m, 20)), 4)
        numbers[rng.random(numbers.shape) < 0.02] = np.nan
        frame = pd.DataFrame(numbers, columns=[f"number {j}" for j in range(20)])
        frame["income"] = np.round(np.exp(rng.normal(size=m) + y / 3), 2)
        for j in range(6):
            level = (y + j) * (rng.random(m) < 0.7) % 6
            frame[f"kind {j}"] = np.char.add("level ", level.astype(str))
        frame["since"] = (np.datetime64("2020-01-01") + rng.integers(2000, size=m)).astype(str)
        frame["active"] = np.where(rng.random(m) < 0.5, "yes", "no")
        frame["sex"] = np.where(rng.random(m) < 0.5, "f", "m")
        frame.insert(0, "id", [f"customer-{i:08d}" for i in range(start, start + m)])
        frame.to_csv(path, index=False, mode="a", header=not start)


def ratios(path: Path) -> dict[str, float]:
    state = path.with_suffix(".vf")
    base = measured([READ, str(path)])
    options = ["--id", "id", "--clusters", "6", "--seed", "0"]
    added = measured([ADD, "add", str(state), str(path), *options])
    state.unlink()
    return {
        "pandas_seconds": round(base[0], 2),
        "time": round(added[0] / base[0], 2),
        "memory": round(added[1] / base[1], 2),
        "memory_mb": round(added[1] / 1e6),
    }


def measured(arguments: list[str]) -> tuple[float, float]:
    """Return CPU seconds and peak memory of a process."""
    child = subprocess.Popen([sys.executable, "-c", *arguments], stderr=subprocess.PIPE)
    assert child.stderr is not None
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(said.decode())
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


if __name__ == "__main__":
    main()
