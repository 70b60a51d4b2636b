"""Seconds and megabytes of a report on a million samples: 5 views, 20 clusters, metadata.

    python research/benchmarks/report.py [--samples 1000000] [--ids] [-o report.html]

The model is fitted first: only the page is measured.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from viewfold import ViewFold, missing
from viewfold.datasets import make_multiview
from viewfold.web import report


def made(n: int, k: int = 20, n_views: int = 5) -> ViewFold:
    """Return a model of views that have six samples in ten each."""
    data = make_multiview(n, (9,) * n_views, k, dtype=np.float32, random_state=0)
    gone = missing.at_random(n, n_views, 0.4, np.random.default_rng(0))
    ids = np.array([f"sample-{i}" for i in range(n)], object)
    views = missing.by_mask(list(data.views.values()), gone, ids=ids)
    return ViewFold(k, encoder="linear", n_init=1, random_state=0).fit(views)


def metadata(n: int) -> pd.DataFrame:
    """Return a category and a number for nine samples out of ten."""
    rng = np.random.default_rng(1)
    some = np.flatnonzero(rng.random(n) < 0.9)
    wards = np.array(["ICU", "surgery", "ward 3", "<b>day clinic</b>"])
    columns = {"ward": wards[rng.integers(4, size=some.size)], "age": rng.normal(60, 15, some.size)}
    return pd.DataFrame(columns, index=[f"sample-{i}" for i in some])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=10**6)
    parser.add_argument("--ids", action="store_true", help="let ids into the page")
    parser.add_argument("-o", "--output", type=Path, help="keep the page here")
    asked = parser.parse_args()
    model, about = made(asked.samples), metadata(asked.samples)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        path = asked.output or Path(folder, "report.html")
        wall, cpu = time.perf_counter(), time.process_time()
        report.write(model, path, ids=asked.ids, metadata=about, since=2)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        size = path.stat().st_size / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    print(f"{asked.samples:,} samples: {wall:.1f} s, {cpu:.1f} s of processors, {peak:.0f} MB more")
    print(f"page: {size:.1f} MB")


if __name__ == "__main__":
    main()
