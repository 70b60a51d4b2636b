"""Fold files that are larger than the memory they are allowed.

Writes a CSV file and a folder of Parquet files of the given size to a temporary folder, folds each
with ViewFold in a process of its own, and prints that process's peak memory as a ratio to 1.5 GB:
a ratio above 1 breaks the promise.

    python benchmarks/bigfiles.py --gb 5
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

ALLOWED = 1.5e9
CLUSTERS = 10


def tables(features: int) -> Iterator[pa.Table]:
    """Yield batches of samples around ten centres, without end."""
    rng = np.random.default_rng(0)
    centers = 3 * rng.normal(size=(CLUSTERS, features))
    start = 0
    while True:
        near = rng.integers(CLUSTERS, size=2000)
        rows = np.round(centers[near] + rng.normal(size=(near.size, features)), 6)
        columns = {f"f{j}": rows[:, j] for j in range(features)}
        ids = [f"patient-{i:09d}" for i in range(start, start + near.size)]
        yield pa.table({"id": ids, **columns})
        start += near.size


def write_csv(path: Path, size: float, features: int) -> None:
    batches = tables(features)
    first = next(batches)
    with pyarrow.csv.CSVWriter(path, first.schema) as writer:
        writer.write_table(first)
        while path.stat().st_size < size:
            writer.write_table(next(batches))


def write_parquet(folder: Path, size: float, features: int) -> None:
    """Write five files, each of them one row group: the hardest case for memory."""
    folder.mkdir()
    batches, part, written = tables(features), 0, 0
    while written < size:
        held, path = [next(batches)], folder / f"part-{part}.parquet"
        while sum(table.nbytes for table in held) < size / 5:
            held.append(next(batches))
        whole = pa.concat_tables(held)
        # Random numbers do not repeat; dictionaries would only cost time.
        pyarrow.parquet.write_table(
            whole, path, row_group_size=whole.num_rows, use_dictionary=False
        )
        written, part = written + path.stat().st_size, part + 1


def fold(path: str) -> None:
    """Fold one file and print samples, peaks and seconds of this process (run in a child)."""
    from viewfold import ViewFold, as_view

    begin = time.perf_counter()
    view = as_view(path, ids="id")
    read = peak()
    model = ViewFold(CLUSTERS, random_state=0).partial_fit(view)
    print(model.ids_.size, read, peak(), time.perf_counter() - begin)


def peak() -> int:
    """Return the most memory this process had, in bytes (Linux)."""
    # getrusage would begin with the peak of the parent, which held what it wrote.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description="Peak memory of folding large files.")
    parser.add_argument("--gb", type=float, default=5.0, help="size of each file (default: 5)")
    # The fewer features, the more samples: each of them has a row in the state.
    parser.add_argument("--features", type=int, default=2000, help="numbers per sample")
    parser.add_argument("--fold", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.fold:
        fold(asked.fold)
        return
    for name, write in (("big.csv", write_csv), ("parts", write_parquet)):
        with tempfile.TemporaryDirectory(prefix="viewfold-bigfiles-") as folder:
            path = Path(folder, name)
            write(path, asked.gb * 1e9, asked.features)
            size = sum(f.stat().st_size for f in [path, *path.rglob("*")] if f.is_file())
            command = [sys.executable, __file__, "--fold", str(path)]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            n, read, folded, seconds = (float(word) for word in said.split())
            print(
                f"{name:8} {size / 1e9:5.2f} GB, {n:8.0f} × {asked.features}: "
                f"peak {read / ALLOWED:.2f} read, {folded / ALLOWED:.2f} folded, "
                f"of {ALLOWED / 1e9:g} GB; {seconds:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
