"""Read tables with many columns: the time is told as a ratio to that of ``pandas.read_csv``.

Writes a CSV file of twelve samples to a temporary folder, reads it with pandas and with `as_view`
and the same table from memory. A ratio above 3 at 20,000 columns breaks
the promise, and so does one that grows with the number of columns.

    python research/benchmarks/columns.py --columns 5000 --columns 20000
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from viewfold import as_view


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, action="append", help="default: 5000 and 20000")
    parser.add_argument("--times", type=int, default=3, help="the fastest of so many counts")
    given = parser.parse_args()
    with warnings.catch_warnings(action="ignore"):
        as_view(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), ids="b")  # imports are no reading
        for d in given.columns or [5000, 20_000]:
            print(json.dumps({"columns": d, **ratios(d, given.times)}), flush=True)


def ratios(d: int, times: int) -> dict[str, float]:
    """Return the seconds of pandas for so many columns, and what others take compared with it."""
    rows = np.random.default_rng(0).normal(size=(12, d))
    frame = pd.DataFrame(rows, columns=[f"cg{j:08d}" for j in range(d)])
    frame.insert(0, "id", [f"p{i}" for i in range(len(rows))])
    with_text = frame.assign(ward=["ER", "ICU"] * 6)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        frame.to_csv(path, index=False)
        ways: dict[str, Callable[[], Any]] = {
            "csv": lambda: as_view(path, ids="id"),
            "csv_half_dropped": lambda: as_view(path, ids="id", drop=list(frame.columns[1::2])),
            "memory": lambda: as_view(frame, ids="id"),
            "memory_with_text": lambda: as_view(with_text, ids="id"),
        }
        base = seconds(lambda: pd.read_csv(path), times)
        found = {name: round(seconds(way, times) / base, 2) for name, way in ways.items()}
    return {"pandas_seconds": round(base, 3), **found}


def seconds(run: Callable[[], Any], times: int) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return min(taken)


if __name__ == "__main__":
    main()
