"""What works with the packages that viewfold itself installs, and what is said about the others.

``python tests/core_tour.py`` runs in any environment that has viewfold, from two CSV files to a
report. With ``--refuse``, packages of extras cannot be imported, as if they were not installed.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

EXTRAS = [
    "adlfs",
    "anndata",
    "anywidget",
    "dask",
    "distributed",
    "fsspec",
    "h5py",
    "jinja2",
    "matplotlib",
    "mudata",
    "multipart",
    "openpyxl",
    "PIL",
    "polars",
    "py4j",
    "pyarrow",
    "pyspark",
    "python_multipart",
    "s3fs",
    "starlette",
    "uvicorn",
    "zarr",
]
"""What comes with an extra, or with something that an extra brings along."""


class Refusing:
    """A finder of modules that finds none of some packages."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def command(line: str) -> tuple[int, str, str]:
    """Run a command; return its exit code, what it printed, and what it said."""
    from viewfold.cli import main

    out, said = io.StringIO(), io.StringIO()
    sys.argv = ["viewfold", *line.split()]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0), out.getvalue(), said.getvalue()
    return 0, out.getvalue(), said.getvalue()


def done(line: str) -> str:
    code, out, said = command(line)
    assert code == 0, f"viewfold {line}: {said}"
    return out


def write_views() -> None:
    """Write two views of ninety samples in three clusters, with a category and missing cells."""
    draw = random.Random(0)
    for name, first, last in (("labs", 0, 80), ("scan", 20, 90)):
        with open(f"{name}.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["patient", *(f"{name}{j}" for j in range(4)), "ward"])
            for i in range(first, last):
                cells = [round(draw.gauss(6 * (j == i % 3), 1), 3) for j in range(4)]
                gap = "" if i % 20 == 7 else cells[0]
                rows.writerow([f"p{i}", gap, *cells[1:], "abc"[i % 3]])


def tour(report: bool) -> None:
    """Go from two files to all that commands tell about them."""
    write_views()
    done("inspect labs.csv --id patient")
    done("add s.vf labs.csv --id patient --clusters 3")
    done("add s.vf scan.csv --id patient --keep 2")
    rows = list(csv.DictReader(io.StringIO(done("labels s.vf"))))
    assert len(rows) == 90
    found = {row["id"]: row["cluster"] for row in rows}
    assert all(found[f"p{i}"] == found[f"p{i % 3}"] for i in range(90)), found
    for table in ("l.csv", "l.tsv", "l.jsonl"):
        done(f"labels s.vf -o {table}")
    assert "scan" in done("explain s.vf --cluster 1")
    assert len(json.loads(done("history s.vf --json"))) == 2
    done("export s.vf -o all.csv")
    done("predict s.vf labs.csv --id patient")
    assert "clusters" in done("suggest s.vf --range 2-5 --json")
    done("verify s.vf")
    done("rename s.vf 1 early")
    done("forget s.vf p3")
    if report:
        done("report s.vf -o report.html")
        assert Path("report.html").stat().st_size > 10_000
    done("undo s.vf --yes --entry 3")
    assert json.loads(done("status s.vf --json"))["samples"] == 89


def other_files() -> None:
    """Fold views that are no CSV."""
    import duckdb
    import numpy as np
    from scipy import io as scipy_io
    from scipy import sparse

    from viewfold import ViewFold

    X = np.random.default_rng(0).random((30, 5))
    Path("a.jsonl").write_text(
        "\n".join(json.dumps({"id": i, "x": x}) for i, x in enumerate(X[:, 0]))
    )
    np.savez("b.npz", one=X, two=X + 1)
    scipy_io.savemat("c.mat", {"one": X})
    scipy_io.mmwrite("d.mtx", sparse.csr_array(X))
    duckdb.sql("COPY (SELECT i AS id, sin(i) AS x FROM range(30) t(i)) TO 'e.parquet'")
    for name in ("a.jsonl", "b.npz", "c.mat", "d.mtx", "e.parquet"):
        ids = "id" if name in ("a.jsonl", "e.parquet") else None
        assert ViewFold(2, random_state=0).fit(name, ids=ids).ids_.size == 30


def missing(extra: str, work: Callable[[], Any]) -> None:
    """Check that something is refused, and says how to install what it needs."""
    try:
        answer = work()
    except ImportError as error:
        from viewfold.errors import code_of

        answer = code_of(error)[1], "", str(error)
    assert answer[0] == 8, (work, answer)
    assert f"pip install 'viewfold[{extra}]'" in answer[2], (work, answer)


def messages() -> None:
    """Ask for what is not installed."""
    import viewfold
    from viewfold import rows as engine

    for name in ("x.h5ad", "x.csv.zst"):
        Path(name).write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    lines = {
        "labels s.vf -o l.parquet": "parquet",
        "labels s.vf -o l.arrow": "parquet",
        "inspect x.csv.zst": "parquet",
        "add s.vfd labs.csv --id patient --clusters 3": "parquet",
        "labels s.vf -o l.xlsx": "excel",
        "inspect x.h5ad": "bio",
        "inspect s3://bucket/labs.csv": "remote",
        "add s.vfd labs.csv --id patient --clusters 3 --engine dask": "parquet",
    }
    for line, extra in lines.items():
        missing(extra, partial(command, line))
    model = viewfold.load("s.vf")
    missing("plots", lambda: viewfold.plot.cluster_sizes(model))
    missing("dask", lambda: engine.DaskEngine)
    missing("spark", lambda: engine.SparkEngine)
    assert not Path("s.vfd").exists()


def main() -> None:
    """Do all of it in a folder of its own."""
    asked = sys.argv[1:]
    if "--refuse" in asked:
        sys.meta_path.insert(0, Refusing())  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        tour(report="--no-report" not in asked)
        other_files()
        if {"--refuse", "--messages"} & {*asked}:
            messages()
        os.chdir("/")
    there = sorted(set(EXTRAS) & {name.partition(".")[0] for name in sys.modules})
    print(json.dumps({"extras": there}))


if __name__ == "__main__":
    main()
