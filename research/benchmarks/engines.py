"""What a fold costs on two Dask workers and on Spark, against files on this machine.

Two views of n samples, the second without 30 % of the first's and with as many others, in mapped
files. Each engine runs in a process of its own; seconds are without the start of a cluster. On a
machine that is busy with other things, the seconds of its processors tell more than the clock.

    python research/benchmarks/engines.py                    # 10⁶ × 64, minutes
    python research/benchmarks/engines.py --quick            # 20,000 × 16
    python research/benchmarks/engines.py --n 10000000 --engines dask
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

ENGINES = ("disk", "dask", "spark")
METHODS = ("FCMVC", "ViewFold linear", "ViewFold")
N_BUCKETS = 64


def write_views(folder: Path, n: int, d: int) -> None:
    """Write clusters of single-precision numbers and ids, a block at a time."""
    rng = np.random.default_rng(0)
    centers = 2 * rng.normal(size=(10, d))
    for view, first in enumerate((0, int(0.3 * n))):
        X = np.lib.format.open_memmap(folder / f"{view}.npy", "w+", np.float32, (n, d))
        for start in range(0, n, 100_000):
            stop = min(start + 100_000, n)
            y = np.arange(first + start, first + stop) * 7919 % 10
            X[start:stop] = centers[y] + rng.normal(size=(stop - start, d))
        X.flush()
        np.save(folder / f"{view}-ids.npy", np.arange(first, first + n))


def peak() -> float:
    """Return the most memory that this process has held, in MB."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1000


def of_workers(engine: Any) -> float:
    """Return the largest peak of all worker processes."""
    look, items = peak, list(range(4 * engine.n_workers))
    return float(engine.run(lambda _: look(), items, max))


def cpu_seconds() -> float:
    """Return what this process and all that it has started have computed so far."""
    spent: dict[int, tuple[int, int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            spent[int(name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    mine = {os.getpid()}
    for _ in range(5):  # children, their children, …
        mine |= {pid for pid, (parent, _) in spent.items() if parent in mine}
    return sum(spent[pid][1] for pid in mine) / os.sysconf("SC_CLK_TCK")


def opened(name: str, folder: str) -> Any:
    from viewfold import rows as engine

    if name == "disk":
        return engine.DiskEngine(N_BUCKETS, folder)
    if name == "spark":
        return engine.SparkEngine(master="local[2,4]", n_buckets=N_BUCKETS, folder=folder)
    return engine.DaskEngine(n_buckets=N_BUCKETS, folder=folder)


def folded(method: str, data: Path) -> Any:
    """Fold both views."""
    from viewfold import FCMVC, ViewFold

    how = {"encoder": "linear"} if method.endswith("linear") else {}
    model = FCMVC(10, random_state=0) if method == "FCMVC" else ViewFold(10, random_state=0, **how)
    for view in (0, 1):
        X, ids = np.load(data / f"{view}.npy", mmap_mode="r"), np.load(data / f"{view}-ids.npy")
        model.partial_fit(X, ids=ids, view=f"view{view}")
    return model


def measure(name: str, method: str, data: Path) -> dict[str, Any]:
    from viewfold.rows import using

    started = time.perf_counter()
    with opened(name, str(data / "scratch")) as engine, using(engine):
        start = time.perf_counter() - started
        engine.run(abs, list(range(4 * engine.n_workers)), max)  # workers import what they need
        started, computed = time.perf_counter(), cpu_seconds()
        model = folded(method, data)
        seconds, cpu = time.perf_counter() - started, cpu_seconds() - computed
        workers, driver = 0.0 if name == "disk" else of_workers(engine), peak()
        counts = np.bincount(model.labels_, minlength=10)  # collects labels: after the peak is read
    found = {"start": start, "seconds": seconds, "cpu": cpu, "driver": driver, "workers": workers}
    return {**found, "n": sorted(counts.tolist())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=10**6)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES)
    parser.add_argument("--methods", nargs="+", default=METHODS[:2], choices=METHODS)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        name, method, data = args.measure
        print(json.dumps(measure(name, method, Path(data))))
        return
    n, d = (20_000, 16) if args.quick else (args.n, 64)
    print(f"two views of {n:,} × {d}, {N_BUCKETS} buckets, {os.cpu_count()} processors")
    print(
        f"{'method':17} engine  start s   fold s  × first    CPU s  × first  driver MB  worker MB"
    )
    with tempfile.TemporaryDirectory() as folder:
        write_views(Path(folder), n, d)
        for method in args.methods:
            first: dict[str, Any] | None = None
            for name in args.engines:
                command = [sys.executable, __file__, "--measure", name, method, folder]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                found = json.loads(done.stdout.splitlines()[-1])
                first = first or found
                agreed = "" if found["n"] == first["n"] else "  other clusters!"
                print(
                    f"{method:17} {name:7}{found['start']:8.1f} {found['seconds']:8.1f} "
                    f"{found['seconds'] / first['seconds']:8.2f} {found['cpu']:8.1f} "
                    f"{found['cpu'] / first['cpu']:8.2f} {found['driver']:10.0f} "
                    f"{found['workers']:10.0f}{agreed}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
