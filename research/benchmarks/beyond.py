"""Folds of views that are larger than memory, from Parquet files, as ratios.

The yardstick is a program that reads the same files twice and multiplies every block by a
64 × 30 matrix: what any method that looks at the data and embeds it has to do at least. Everything
is measured in one run, each in a process of its own:

    python research/benchmarks/beyond.py --n 3e7 --folder /where/there/is/room

``--quick`` shows in a minute that it works.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

D, K, MISSING = 64, 10, 0.3
PER_FILE, GROUP = 1_000_000, 131_072
LIMITS = {"fcmvc": 3.0, "linear": 3.0, "default": 12.0}
GB = 2**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--n", type=float, default=3e7, help="samples")
    parser.add_argument("--buckets", type=int, help="default: one for 200,000 samples")
    parser.add_argument("--methods", default="fcmvc,linear,default")
    parser.add_argument("--folder", help="where files are written, and removed again")
    parser.add_argument("--once", action="store_true", help="do not measure half of them, too")
    parser.add_argument("--quick", action="store_true", help="200,000 samples")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)  # a child process
    asked = parser.parse_args()
    if asked.measure:
        what, folder, *rest = asked.measure
        print(json.dumps(read(Path(folder)) if what == "read" else fold(what, folder, *rest)))
        return
    n = 200_000 if asked.quick else int(asked.n)
    room = Path(tempfile.mkdtemp(prefix="beyond-", dir=asked.folder))
    try:
        sizes = (n,) if asked.once else (n // 2, n)
        compare(sizes, asked.methods.split(","), asked.buckets, room)
    finally:
        shutil.rmtree(room)


def compare(sizes: tuple[int, ...], methods: list[str], buckets: int | None, room: Path) -> None:
    found: dict[tuple[str, int], dict[str, float]] = {}
    n = sizes[-1]
    for size in sizes:
        data = room / str(size)
        write(data, size)
        many = buckets or max(16, 2 ** int(np.ceil(np.log2(n / 200_000))))
        found["read", size] = child("read", data)
        for method in methods:
            found[method, size] = child(method, data, many, room)
        shutil.rmtree(data)
    base = found["read", n]["seconds"]
    print(f"{n:,} samples, {D} features in each of two views, {100 * MISSING:g} % missing")
    print(f"{'':10}{'seconds':>9}{'of reading':>12}{'target':>8}{'doubled':>9}{'peak GB':>9}")
    print(f"{'reading':10}{base:9.1f}{1:12.2f}{'':8}{'':9}{found['read', n]['peak'] / GB:9.2f}")
    for method in methods:
        now, half = found[method, n], found.get((method, n // 2))
        ratio = now["seconds"] / base
        doubled = now["seconds"] / half["seconds"] if half else float("nan")
        verdict = "met" if ratio <= LIMITS[method] and now["peak"] <= 4 * GB else "MISSED"
        print(
            f"{method:10}{now['seconds']:9.1f}{ratio:12.2f}{LIMITS[method]:8.1f}{doubled:9.2f}"
            f"{now['peak'] / GB:9.2f}  {verdict}",
            flush=True,
        )


def child(*what: object) -> dict[str, float]:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--measure", *map(str, what)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, float] = json.loads(answer.splitlines()[-1])
    print(*what[:1], {name: round(value, 1) for name, value in found.items()}, file=sys.stderr)
    return found


# ---- what is measured ---------------------------------------------------------------------------


def write(data: Path, n: int) -> None:
    """Write two views of the same clusters, in files of a million samples."""
    for view in range(2):
        (data / f"view{view}").mkdir(parents=True)
        random = np.random.default_rng(view)
        centers = 2 * random.normal(size=(K, D)).astype(np.float32)
        for i, start in enumerate(range(0, n, PER_FILE)):
            ids = np.arange(start, min(start + PER_FILE, n))
            ids = ids[random.random(ids.size) >= MISSING]
            # The cluster of a sample is the same in every view, and not in the order of the ids.
            own = (ids * 2654435761 >> 7) % K
            X = centers[own] + random.standard_normal((ids.size, D), np.float32)
            columns = {f"f{j}": np.ascontiguousarray(X[:, j]) for j in range(D)}
            table = pa.table({"id": ids, **columns})
            path = data / f"view{view}" / f"part-{i:04}.parquet"
            pq.write_table(table, path, row_group_size=GROUP, use_dictionary=["id"])


def read(data: Path) -> dict[str, float]:
    """Read all files twice and multiply each block by a matrix."""
    matrix = np.random.default_rng(0).normal(size=(D, 30)).astype(np.float32)
    start, total = time.perf_counter(), 0.0
    for view in sorted(data.iterdir()):
        for _ in range(2):
            for block in blocks(view):
                total += float((block @ matrix)[0, 0])
    return measured(start)


def blocks(view: Path) -> Iterator[np.ndarray]:
    for path in sorted(view.glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group)
                yield np.column_stack([table[f"f{j}"].to_numpy() for j in range(D)])


def fold(method: str, data: str, buckets: str, room: str) -> dict[str, float]:
    """Fold both views into a folder."""
    from viewfold import FCMVC, ViewFold, edit
    from viewfold.rows import DiskEngine

    new = {
        "fcmvc": FCMVC(K, random_state=0),
        "linear": ViewFold(K, random_state=0, encoder="linear"),
        "default": ViewFold(K, random_state=0),
    }[method]
    start = time.perf_counter()
    state = f"{room}/{method}.vfd"
    engine = DiskEngine(int(buckets), room)
    for view in sorted(os.listdir(data)):
        with edit(state, new=new, engine=engine) as model:
            model.partial_fit(f"{data}/{view}/*.parquet", ids="id", view=view)
    found = measured(start)
    shutil.rmtree(state)
    return found


def measured(start: float) -> dict[str, float]:
    with open("/proc/self/status") as file:  # getrusage tells the peak of the parent, too
        line = next(line for line in file if line.startswith("VmHWM"))
    return {"seconds": time.perf_counter() - start, "peak": 1024.0 * int(line.split()[1])}


if __name__ == "__main__":
    main()
