"""What a service pays for predictions of an exported encoder: time to load, memory, time of a row.

    python research/benchmarks/serve.py [--samples 4000] [--rows 2000] [--repeats 5]

Each number is that of a fresh process, on Linux: the least time of some runs, the most memory.
Seconds of the processor are shown beside those of the clock, which count what other programs do.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from viewfold import ViewFold

SERVICE = r"""
import time
wall, cpu = time.perf_counter(), time.process_time()
import viewfold
encoder = viewfold.load_encoder(PATH)
loaded = time.perf_counter() - wall, time.process_time() - cpu
import json, re, sys
import numpy as np

def megabytes():
    return int(re.search(r"VmHWM:\s*(\d+)", open("/proc/self/status").read())[1]) / 1024

def timed(row):
    wall, cpu = time.perf_counter(), time.process_time()
    encoder.predict(row, view="scan")
    return time.perf_counter() - wall, time.process_time() - cpu

small, X = megabytes(), np.random.default_rng(1).normal(size=(ROWS, 50))
first = timed(X[:1])
each = np.array([timed(X[i : i + 1]) for i in range(ROWS)]) * 1000
heavy = [name for name in ("pandas", "sklearn", "duckdb", "pyarrow") if name in sys.modules]
print(json.dumps({
    "load": loaded, "first": first, "MB loaded": small, "MB at the end": megabytes(),
    "median ms": np.median(each, axis=0).tolist(),
    "p99 ms": np.percentile(each, 99, axis=0).tolist(), "heavy": heavy,
}))
"""


def fitted(n: int) -> ViewFold:
    rng, group = np.random.default_rng(0), np.arange(n) % 8
    model = ViewFold(8, random_state=0)
    for name, d in (("labs", 30), ("scan", 50)):
        model.partial_fit(rng.normal(size=(n, d)) + 3 * np.eye(d)[group], view=name)
    return model


def _run(code: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.vfe")
        fitted(asked.samples).export_encoder(path)
        code = SERVICE.replace("PATH", repr(str(path))).replace("ROWS", str(asked.rows))
        runs = [_run(code) for _ in range(asked.repeats)]
        size = path.stat().st_size / 1e6
    print(f"file {size:.2f} MB; heavy packages that were imported: {runs[0]['heavy'] or 'none'}")
    print("| | clock | processor |\n|---|---|---|")
    for key, unit in (("load", "s"), ("first", "s"), ("median ms", "ms"), ("p99 ms", "ms")):
        wall, cpu = np.min([run[key] for run in runs], axis=0)
        print(f"| {key.removesuffix(' ms')} | {wall:.2f} {unit} | {cpu:.2f} {unit} |")
    for key in ("MB loaded", "MB at the end"):
        print(f"{key}: {max(run[key] for run in runs):.0f}")


if __name__ == "__main__":
    main()
