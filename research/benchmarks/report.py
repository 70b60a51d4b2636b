"""Seconds and megabytes of a report on a million samples: 5 views, 20 clusters, metadata.

    python research/benchmarks/report.py [--samples 1000000] [--ids] [-o report.html]

The model is made by hand, with rows around the centres of its clusters: only the page is measured.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from viewfold import ViewFold, report
from viewfold.state.clusters import Clusters
from viewfold.state.state import State, ViewRecord
from viewfold.web import page_data


def made(n: int, k: int = 20, n_views: int = 5) -> ViewFold:
    """Return a model of any size, at no cost."""
    rng = np.random.default_rng(0)
    labels, centers = rng.integers(k, size=n), rng.normal(size=(k, 16))
    embedding = (centers[labels] + 0.5 * rng.normal(size=(n, 16))).astype(np.float32)
    seen = rng.random((n, n_views)) < 0.6
    seen[:, -1] |= ~seen.any(axis=1)
    moved = rng.random((n, n_views)) < 0.1
    history = np.where(moved, rng.integers(k, size=(n, n_views)), labels[:, None])
    history[:, -1] = labels
    history[np.cumsum(seen, axis=1) == 0] = -1
    sizes = seen.sum(axis=0).tolist()
    state = State(
        ids=np.array([f"sample-{i}" for i in range(n)], object),
        embedding=embedding,
        seen=seen,
        history=history.astype(np.int32),
        added=np.ones(n, np.int32),
        fingerprints=np.zeros(seen.shape, np.int32),
        steps=tuple(range(1, n_views + 1)),
        views=tuple(
            ViewRecord(
                f"view {v}", m, 9, m, 0, 1, agreement=v / n_views if v else None, entry=v + 1
            )
            for v, m in enumerate(sizes)
        ),
        clusters=Clusters(np.eye(16), centers[None]),
    )
    return ViewFold(k)._keep(state)


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
    wall = time.perf_counter()
    data = page_data(model)
    print(f"data alone: {time.perf_counter() - wall:.1f} s")
    for name in data.columns:
        print(f"  {name}: {len(data.packed(name)) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
