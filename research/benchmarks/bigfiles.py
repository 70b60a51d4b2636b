"""Fold files that are larger than the memory they are allowed.

Writes files of the given size to a temporary folder, folds each with ViewFold in a process of its
own, and prints that process's peak memory as a ratio to 1.5 GB: a ratio above 1 breaks the promise.
The files are a CSV file (csv), a folder of Parquet files (parquet), and a CSV file with missing
cells and categories (gaps), which goes through ``viewfold add``, and then a second time: all of its
rows are known then.

    python research/benchmarks/bigfiles.py --gb 5 --case csv --case parquet --case gaps
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
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


def with_gaps(batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Leave out a tenth of the cells, and add two columns of categories."""
    rng = np.random.default_rng(1)
    wards = np.array(["ICU", "surgery", "cardiology", "children's ward", "day clinic"])
    for table in batches:
        n = table.num_rows
        columns = {"id": table["id"]}
        for name, levels in (("ward", wards), ("sex", np.array(["f", "m"]))):
            columns[name] = pa.array(levels[rng.integers(levels.size, size=n)], mask=_some(rng, n))
        for name in table.column_names[1:]:
            columns[name] = pa.array(table[name].to_numpy(), mask=_some(rng, n))
        yield pa.table(columns)


def _some(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.random(n) < 0.1


def write_csv(path: Path, size: float, features: int) -> None:
    _write_csv(path, size, tables(features))


def write_gaps(path: Path, size: float, features: int) -> None:
    _write_csv(path, size, with_gaps(tables(features)))


def _write_csv(path: Path, size: float, batches: Iterator[pa.Table]) -> None:
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


def add(path: str) -> None:
    """Add one file to a state file as the command line does, and print the same (in a child)."""
    from viewfold.cli import main as command

    state = str(Path(path).with_name("big.vf"))
    sys.argv = ["viewfold", "add", state, path, "--id", "id", "-k", str(CLUSTERS), "--json"]
    begin, said = time.perf_counter(), io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(said):
        command()
    (fold,) = json.loads(said.getvalue())["folds"]
    print(fold["samples"], fold["same"], peak(), time.perf_counter() - begin)


def peak() -> int:
    """Return the most memory this process had, in bytes (Linux)."""
    # getrusage would begin with the peak of the parent, which held what it wrote.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


CASES = {
    "csv": ("big.csv", write_csv, ["--fold"]),
    "parquet": ("parts", write_parquet, ["--fold"]),
    "gaps": ("gaps.csv", write_gaps, ["--add", "--add"]),
}


def measure(case: str, size: float, features: int) -> None:
    """Write one file, fold it in processes of their own, and print what they took."""
    name, write, runs = CASES[case]
    with tempfile.TemporaryDirectory(prefix="viewfold-bigfiles-") as folder:
        path = Path(folder, name)
        write(path, size, features)
        size = sum(f.stat().st_size for f in [path, *path.rglob("*")] if f.is_file())
        for run in runs:
            command = [sys.executable, __file__, run, str(path)]
            said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            n, of_run, most, seconds = (float(word) for word in said.split())
            first = f"peak {of_run / ALLOWED:.2f} read, " if run == "--fold" else ""
            known = f", {of_run:.0f} known" if run == "--add" else ""
            print(
                f"{name:8} {size / 1e9:5.2f} GB, {n:8.0f} × {features}{known}: "
                f"{first or 'peak '}{most / ALLOWED:.2f} folded, "
                f"of {ALLOWED / 1e9:g} GB; {seconds:.0f} s",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description="Peak memory of folding large files.")
    parser.add_argument("--gb", type=float, default=5.0, help="size of each file (default: 5)")
    # The fewer features, the more samples: each of them has a row in the state.
    parser.add_argument("--features", type=int, default=2000, help="numbers per sample")
    parser.add_argument("--case", action="append", choices=CASES, help="which files (default: all)")
    parser.add_argument("--fold", help=argparse.SUPPRESS)
    parser.add_argument("--add", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.fold or asked.add:
        (fold if asked.fold else add)(asked.fold or asked.add)
        return
    for case in asked.case or CASES:
        measure(case, asked.gb * 1e9, asked.features)


if __name__ == "__main__":
    main()
