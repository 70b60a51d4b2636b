"""Compare the folds of two source trees: CPU time and peak memory, as ratios from one run.

    python research/benchmarks/compare.py ../before/src src

Each measurement is a process of its own; the two trees take turns, so that whatever else the
machine does falls on both. The median of the ratios counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

MEASURE = """
import json, sys, time
import numpy as np
from viewfold import FCMVC, ViewFold

kind, n = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
y = rng.integers(10, size=n)
views = []
for d in (64, 32):
    X = rng.normal(size=(10, d))[y].astype(np.float32)
    X += rng.standard_normal(X.shape, dtype=np.float32)
    here = rng.permutation(n)[: round(0.7 * n)]
    views.append((X[here], here))
del X
models = {
    "fcmvc": FCMVC(10, n_init=1, random_state=0),
    "linear": ViewFold(10, encoder="linear", random_state=0),
    "viewfold": ViewFold(10, random_state=0),
}
small = rng.normal(size=(300, 5))
type(models[kind])(3, n_init=1).fit([small, small])  # imports are no part of a fold

def resident(which):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(which))

with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")
before, start = resident("VmRSS"), time.process_time()
for X, ids in views:
    models[kind].partial_fit(X, ids=ids)
print(json.dumps([time.process_time() - start, resident("VmHWM") - before]))
"""


def measured(tree: str, kind: str, n: int) -> tuple[float, float]:
    """Return CPU seconds and kilobytes beyond the input."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, kind, str(n)],
        env={**os.environ, **one, "PYTHONPATH": str(Path(tree).resolve())},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, memory = json.loads(done.stdout)
    return seconds, memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("before", help="source folder (src) of the one tree")
    parser.add_argument("after", help="source folder of the other")
    parser.add_argument("--samples", type=int, default=300_000)
    parser.add_argument("--times", type=int, default=5)
    asked = parser.parse_args()
    for kind in ("fcmvc", "linear", "viewfold"):
        pairs = [
            [measured(tree, kind, asked.samples) for tree in (asked.before, asked.after)]
            for _ in range(asked.times)
        ]
        time, memory = (
            statistics.median(after[i] / before[i] for before, after in pairs) for i in (0, 1)
        )
        print(f"{kind:9} after / before: CPU time {time:.2f}, peak memory {memory:.2f}", flush=True)


if __name__ == "__main__":
    main()
