"""Saving and loading a model, against what DuckDB itself needs for the same table.

    python research/benchmarks/store.py

A model of 2 million samples with 20 numbers each is saved and loaded, and DuckDB writes and reads a
table with the same columns, in turns; the ratio of the best times is printed.

    python research/benchmarks/store.py --kept 0 1 5 --samples 100000

tells instead what it costs to keep so many earlier states: size, and time to write one change.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import viewfold


def model_of(n: int, width: int, text_ids: bool) -> viewfold.FCMVC:
    """Return a model of two views, each with seven of ten samples, and rows of `width` numbers."""
    rng = np.random.default_rng(0)
    ids = np.arange(n)
    if text_ids:
        ids = np.array([f"patient-{i}" for i in ids], dtype=object)
    y = rng.integers(width, size=n)
    model = viewfold.FCMVC(width, n_init=1, random_state=0)
    for name in ("labs", "scan"):
        here = rng.random(n) < 0.7
        X = 3 * rng.normal(size=(width, width))[y[here]] + rng.normal(size=(here.sum(), width))
        model.partial_fit(X, ids=ids[here], view=name)
    return model


def table_of(model: viewfold.FCMVC) -> pa.Table:
    """Return columns like those of the table `samples`."""
    n, views = model.seen_.shape
    rng = np.random.default_rng(0)

    def lists(rows: np.ndarray) -> pa.Array:
        return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])

    return pa.table(
        {
            "id": model.ids_,
            "label": model.labels_.astype(np.int32),
            "confidence": np.zeros(n, np.float32),
            "added": np.ones(n, np.int32),
            "fingerprints": lists(rng.integers(1, 2**31, size=(n, views)).astype(np.int32)),
            "views_seen": lists(model.seen_.to_numpy()),
            "history": lists(model.history_.to_numpy()),
            "embedding": lists(model.embedding_),
        }
    )


def duckdb_writes(table: pa.Table, path: Path) -> None:
    path.unlink(missing_ok=True)
    with duckdb.connect(path) as db:
        db.register("incoming", table)
        db.execute("CREATE TABLE samples AS FROM incoming")
        db.execute("CHECKPOINT")


def duckdb_reads(path: Path) -> None:
    with duckdb.connect(path, read_only=True) as db:
        db.sql("FROM samples").to_arrow_table()


def best(times: int, *jobs: Callable[[], object]) -> list[float]:
    """Run jobs in turns; return the best time of each."""
    taken: list[list[float]] = [[] for _ in jobs]
    for _ in range(times):
        for which, job in enumerate(jobs):
            started = time.perf_counter()
            job()
            taken[which].append(time.perf_counter() - started)
    return [min(each) for each in taken]


def show_kept(n: int, width: int, numbers: list[int]) -> None:
    """Print size and time of the last of as many changes as it takes to keep all states."""
    model = model_of(n, width, text_ids=True)
    for keep in numbers:
        with tempfile.TemporaryDirectory(prefix="viewfold-") as folder:
            path = Path(folder) / "model.vf"
            model.save(path)
            for change in range(keep + 1):
                with viewfold.edit(path, keep=keep) as edited:
                    edited.set_params(n_init=change + 1)
                    started = time.perf_counter()
                taken = time.perf_counter() - started
            print(f"--keep {keep}: {path.stat().st_size / 1e6:.0f} MB, {taken:.1f} s to write")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2_000_000)
    parser.add_argument("--width", type=int, default=20)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--kept", type=int, nargs="+", metavar="N")
    asked = parser.parse_args()
    if asked.kept:
        show_kept(asked.samples, asked.width, asked.kept)
        return
    print(f"{asked.samples:,} samples x {asked.width} numbers, best of {asked.times}, in turns")
    for text_ids in (False, True):
        model = model_of(asked.samples, asked.width, text_ids)
        table = table_of(model)
        with tempfile.TemporaryDirectory(prefix="viewfold-") as folder:
            ours, theirs = Path(folder) / "model.vf", Path(folder) / "table.duckdb"
            save, write = best(
                asked.times, partial(model.save, ours), partial(duckdb_writes, table, theirs)
            )
            load, read = best(
                asked.times, partial(viewfold.load, ours), partial(duckdb_reads, theirs)
            )
            size = ours.stat().st_size / theirs.stat().st_size
        kind = "text" if text_ids else "whole numbers"
        print(
            f"ids are {kind}: save {save / write:.2f} x DuckDB's time (at most 2), "
            f"load {load / read:.2f} x (at most 2), size {size:.2f} x"
        )


if __name__ == "__main__":
    main()
