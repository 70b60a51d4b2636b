"""Files of HDF5 that were made to do harm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anndata
import h5py
import numpy as np
import pandas as pd

MEGA = 2**20
MARKET = "%%MatrixMarket matrix {} real general\n"


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
