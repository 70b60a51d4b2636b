"""Files that were made to do harm, and a process that reads them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import anndata
import h5py
import numpy as np
import pandas as pd

MEGA = 2**20
MARKET = "%%MatrixMarket matrix {} real general\n"
ATTACK = r"""
import json, os, re, resource, sys, warnings
import anndata, h5py, openpyxl, pyarrow.parquet
from viewfold import as_views
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))
linux = os.path.exists("/proc/self/clear_refs")
def peak():
    if linux:
        return int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # bytes, on macOS
for path, ids in json.loads(sys.argv[1]):
    if linux:
        open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
    before = peak()
    try:
        said = "a view: " + str(as_views(path, ids=ids))
    except Exception as error:
        said = type(error).__name__ + ": " + str(error)
    print(json.dumps([path, said, peak() - before]), flush=True)
"""


def attack(files: Iterable[tuple[Path, str | None]]) -> dict[Path, tuple[str, float]]:
    """Let one process read files, by the name of the ids; return what it says and took, in MB."""
    asked = json.dumps([(str(path), ids) for path, ids in files])
    command = [sys.executable, "-c", ATTACK, asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(json.loads(asked)), done.stderr
    return {Path(path): (said, grown) for path, said, grown in lines}


def mat73(path: Path, fill: Callable[[h5py.File], Any]) -> None:
    with h5py.File(path, "w") as file:
        fill(file)


def h5ad(path: Path, change: Callable[[h5py.File], Any]) -> None:
    anndata.AnnData(pd.DataFrame(np.eye(3), index=list("abc"))).write_h5ad(path)
    with h5py.File(path, "r+") as file:
        del file["X"]
        change(file)
        for name, value in (("encoding-type", "array"), ("encoding-version", "0.2.0")):
            if file.get("X", getlink=True).__class__ is h5py.HardLink:
                file["X"].attrs[name] = value
