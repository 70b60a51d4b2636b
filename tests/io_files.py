"""One small valid file of every format that can be read."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anndata
import h5py
import mudata
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import scipy.io
from scipy import sparse

from viewfold.data import View

X = np.array([[1.5, 2.0, -3.0], [0.0, 5.25, 6.0], [7.0, 8.0, 9e-3], [10.0, 0.0, 12.0]])
IDS = ["ann", "bob", "cleo", "dan"]
FRAME = pd.DataFrame(X, columns=["age", "iron", "zinc"]).assign(id=IDS)
TABLE = pa.Table.from_pandas(FRAME, preserve_index=False)


def dense(view: View) -> np.ndarray:
    blocks = [block for _, block in view.rows.blocks()]
    return np.vstack([b.toarray() if sparse.issparse(b) else b for b in blocks])


def write_parquet(path: Path) -> None:
    pyarrow.parquet.write_table(TABLE, path)


def write_jsonl(path: Path) -> None:
    FRAME.to_json(path, orient="records", lines=True)


def write_zst(path: Path) -> None:
    with pa.CompressedOutputStream(str(path), "zstd") as sink:
        sink.write(FRAME.to_csv(index=False).encode())


TABLES: dict[str, Callable[[Path], Any]] = {
    "labs.csv": lambda path: FRAME.to_csv(path, index=False),
    "labs.tsv": lambda path: FRAME.to_csv(path, index=False, sep="\t"),
    "labs.csv.gz": lambda path: FRAME.to_csv(path, index=False),
    "labs.csv.zst": write_zst,
    "labs.parquet": write_parquet,
    "labs.pq": write_parquet,
    "labs.jsonl": write_jsonl,
    "labs.ndjson.gz": lambda path: FRAME.to_json(path, orient="records", lines=True),
}


def cell(*parts: Any) -> np.ndarray:
    out = np.empty((1, len(parts)), dtype=object)
    out[0, :] = parts
    return out


def write_h5ad(path: Path) -> None:
    cells = anndata.AnnData(pd.DataFrame(X, index=IDS, columns=["age", "iron", "zinc"]))
    cells.obs["donor"] = [30, 10, 20, 40]
    cells.write_h5ad(path)


def write_h5mu(path: Path) -> None:
    rna = anndata.AnnData(pd.DataFrame(X, index=IDS, columns=list("abc")))
    adt = anndata.AnnData(sparse.csr_matrix(X[1:]))
    adt.obs_names = IDS[1:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mudata.MuData({"rna": rna, "adt": adt}).write(path)


def write_mat73(path: Path, **variables: Any) -> None:
    """Write what MATLAB writes with -v7.3: transposed, cells as references."""
    with h5py.File(path, "w", userblock_size=512) as file:
        refs = file.create_group("#refs#")

        def put(where: Any, name: str, held: Any) -> Any:
            if isinstance(held, list):
                parts = [put(refs, f"{name}{i}", part).ref for i, part in enumerate(held)]
                node = where.create_dataset(
                    name, data=np.array(parts, dtype=h5py.ref_dtype).reshape(-1, 1)
                )
                node.attrs["MATLAB_class"] = np.bytes_("cell")
            elif sparse.issparse(held):
                node = where.create_group(name)
                held = sparse.csc_array(held)
                node.attrs["MATLAB_sparse"] = np.uint64(held.shape[0])
                node["jc"], node["ir"], node["data"] = held.indptr, held.indices, held.data
            else:
                node = where.create_dataset(name, data=np.asarray(held).T)
                node.attrs["MATLAB_class"] = np.bytes_("double")
            return node

        for name, held in variables.items():
            put(file, name, held)
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


def write_mtx_gz(path: Path) -> None:
    with gzip.open(path, "wb") as file:
        scipy.io.mmwrite(file, sparse.coo_array(X))


MATRICES: dict[str, Callable[[Path], Any]] = {
    "scan.npy": lambda path: np.save(path, X),
    "scan.npz": lambda path: np.savez(path, scan=X),
    "sparse.npz": lambda path: sparse.save_npz(path, sparse.csr_array(X)),
    "scan.mat": lambda path: scipy.io.savemat(path, {"fea": X, "gnd": [[1], [2], [1], [2]]}),
    "v73.mat": lambda path: write_mat73(path, X=[X], gt=np.array([[1, 2, 1, 2]])),
    "scan.mtx": lambda path: scipy.io.mmwrite(path, sparse.coo_array(X)),
    "scan.mtx.gz": write_mtx_gz,
    "dense.mtx": lambda path: scipy.io.mmwrite(path, X),
    "scan.h5ad": write_h5ad,
}
SEVERAL: dict[str, Callable[[Path], Any]] = {
    "set.npz": lambda path: np.savez(path, a=X, b=X[:, :2], y=[0, 1, 0, 1]),
    "set.mat": lambda path: scipy.io.savemat(
        path, {"X": cell(X, sparse.csc_array(X)), "Y": [0] * 4}
    ),
    "set73.mat": lambda path: write_mat73(path, X=[X, sparse.csc_array(X)], Y=np.zeros((4, 1))),
    "set.h5mu": write_h5mu,
}
ALL = TABLES | MATRICES | SEVERAL
