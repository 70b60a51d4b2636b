"""Files become views, or an error that names file, place and remedy."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
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
import pytest
import scipy.io
from conftest import SHARED
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from viewfold import ViewFold, as_view, as_views, io
from viewfold.io import _mat5
from viewfold.view import View, own_name

X = np.array([[1.5, 2.0, -3.0], [0.0, 5.25, 6.0], [7.0, 8.0, 9e-3], [10.0, 0.0, 12.0]])
IDS = ["ann", "bob", "cleo", "dan"]
FRAME = pd.DataFrame(X, columns=["age", "iron", "zinc"]).assign(id=IDS)
TABLE = pa.Table.from_pandas(FRAME, preserve_index=False)


def dense(view: View) -> np.ndarray:
    blocks = [block for _, block in view.rows.blocks()]
    return np.vstack([b.toarray() if sparse.issparse(b) else b for b in blocks])


# ---- writers: one small valid file of each format ------------------------------------------------


def write_parquet(path: Path) -> None:
    pyarrow.parquet.write_table(TABLE, path)


def write_stream(path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)


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
    "labs.feather": lambda path: pyarrow.feather.write_feather(TABLE, str(path)),
    "labs.arrow": write_stream,
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


# ---- what is in a file comes out ----------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_a_view_called_like_its_file(name: str, tmp_path: Path) -> None:
    TABLES[name](tmp_path / name)
    view = as_view(str(tmp_path / name), ids="id")
    assert view.name == "labs"
    assert list(view.ids) == IDS
    assert view.features == ("age", "iron", "zinc")
    assert np.array_equal(dense(view), X)
    assert as_view(tmp_path / name, ids="id", name="other").name == "other"


@pytest.mark.parametrize("name", MATRICES)
def test_every_matrix_file_is_a_view(name: str, tmp_path: Path) -> None:
    MATRICES[name](tmp_path / name)
    (view,) = as_views(tmp_path / name)
    assert view.name == name.split(".")[0]
    assert np.allclose(dense(view), X)
    assert list(view.ids) == (IDS if name.endswith("h5ad") else [0, 1, 2, 3])


@pytest.mark.parametrize("name", SEVERAL)
def test_a_file_of_several_views_gives_them_all(name: str, tmp_path: Path) -> None:
    SEVERAL[name](tmp_path / name)
    views = as_views(tmp_path / name)
    assert len(views) == 2
    assert np.array_equal(dense(views[0]), X)
    assert as_view(tmp_path / name, name=views[1].name).shape == views[1].shape
    with pytest.raises(ValueError, match=r"holds 2 views\.") as error:
        as_view(tmp_path / name)
    assert name in str(error.value)


def test_names_within_a_file_are_kept(tmp_path: Path) -> None:
    for name in SEVERAL:
        SEVERAL[name](tmp_path / name)
    assert list(io.read(tmp_path / "set.npz")) == ["a", "b"]
    assert list(io.read(tmp_path / "set.mat")) == ["X1", "X2"]
    views = as_views(tmp_path / "set.h5mu")
    assert [(view.name, list(view.ids)) for view in views] == [("rna", IDS), ("adt", IDS[1:])]


def test_a_model_takes_paths_everywhere(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    frame.insert(0, "id", [f"p{i}" for i in range(40)])
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame[5:].to_parquet(tmp_path / "b.parquet", index=False)
    paths = [str(tmp_path / "a.csv"), tmp_path / "b.parquet"]
    model = ViewFold(3, random_state=0).fit(paths, ids="id")
    assert [view.name for view in model.views_] == ["a", "b"]
    assert [view.n_samples for view in model.views_] == [40, 35]
    one_by_one = ViewFold(3, random_state=0)
    for path in paths:
        one_by_one.partial_fit(path, ids="id", view=own_name(path))
    assert np.array_equal(model.embedding_, one_by_one.embedding_)
    held = ViewFold(3, random_state=0).fit([frame, frame[5:]], ids="id")
    assert np.allclose(model.embedding_, held.embedding_, atol=1e-12)
    np.savez(tmp_path / "new.npz", a=frame[list("abc")][:2], b=frame[list("abc")][:2])
    assert model.predict(tmp_path / "new.npz").shape == (2,)


def test_empty_cells_are_missing_and_empty_rows_are_absent_samples(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,x,y\nann,1,2\nbob,,\ncleo,NA,\ndan,3,4\n")
    (tmp_path / "a.jsonl").write_text(
        '{"id":"bob"}\n{"id":"ann","x":1,"y":2}\n{"id":"cleo","y":null}\n\n{"y":4,"x":3,"id":"dan"}\n'
    )
    for name in ("a.csv", "a.jsonl"):
        view = as_view(tmp_path / name, ids="id")
        assert list(view.ids) == ["ann", "dan"]
        assert np.array_equal(dense(view), [[1, 2], [3, 4]])
    (tmp_path / "one.csv").write_text("x\n1\n\n3\n")
    assert list(as_view(tmp_path / "one.csv").ids) == [0, 2]


def test_flags_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\nTrue,1\n,2\nFalse,3\n")
    with pytest.raises(ValueError, match="NaN in row 1"):
        as_view(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("x,y\nTrue,1\nFalse,3\n")
    assert np.array_equal(dense(as_view(tmp_path / "a.csv")), [[1, 1], [0, 3]])


def test_single_precision_stays_single(tmp_path: Path) -> None:
    pd.DataFrame(X.astype(np.float32), columns=list("abc")).to_parquet(tmp_path / "a.parquet")
    assert as_view(tmp_path / "a.parquet").rows.dtype == np.float32


# ---- ids ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        (["7", "-12", "0"], [7, -12, 0]),
        (["9007199254740993", "2", "3"], [9007199254740993, 2, 3]),
        (["007", "8", "9"], ["007", "8", "9"]),
        (["7", "8", "x"], ["7", "8", "x"]),
        (["+7", "8", "9"], ["+7", "8", "9"]),
        (["7.0", "8", "9"], ["7.0", "8", "9"]),
        (["-0", "8", "9"], ["-0", "8", "9"]),
        (["99999999999999999999", "8", "9"], ["99999999999999999999", "8", "9"]),
        (["no", "true", "ü\n2"], ["no", "true", "ü\n2"]),
    ],
)
def test_ids_are_ints_if_all_are_written_so(written, ids, tmp_path: Path) -> None:
    pd.DataFrame({"id": written, "x": 1.0}).to_csv(tmp_path / "a.csv", index=False)
    assert as_view(tmp_path / "a.csv", ids="id").ids.tolist() == ids
    lines = (json.dumps({"id": text, "x": 1.0}) for text in written)
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    assert as_view(tmp_path / "a.jsonl", ids="id").ids.tolist() == ids


def test_one_late_id_makes_all_of_them_text(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("viewfold.io._delimited._BLOCK", 1000)
    ids = [*map(str, range(2000)), "007"]
    pd.DataFrame({"id": ids, "x": 1.0}).to_csv(tmp_path / "a.csv", index=False)
    batches = [known for known, _ in io.read(tmp_path / "a.csv", ids="id")["a"].rows]
    assert batches[0].dtype == np.int64
    assert len(batches) > 3
    assert as_view(tmp_path / "a.csv", ids="id").ids.tolist() == ids


def test_lines_within_quotes_may_cross_blocks(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("viewfold.io._delimited._BLOCK", 1000)
    ids = [f"first line {i}\nsecond line" for i in range(500)]
    pd.DataFrame({"id": ids, "x": 1.0}).to_csv(tmp_path / "a.csv", index=False)
    assert as_view(tmp_path / "a.csv", ids="id").ids.tolist() == ids


def test_typed_ids_keep_their_type(tmp_path: Path) -> None:
    for ids in ([2**60 + 1, 2, 3, 4], ["1", "2", "3", "4"]):
        FRAME.assign(id=ids).to_parquet(tmp_path / "a.parquet", index=False)
        assert as_view(tmp_path / "a.parquet", ids="id").ids.tolist() == ids
    FRAME.astype({"id": "category"}).to_parquet(tmp_path / "a.parquet", index=False)
    assert as_view(tmp_path / "a.parquet", ids="id").ids.tolist() == IDS


def test_a_column_of_obs_can_hold_the_ids(tmp_path: Path) -> None:
    write_h5ad(tmp_path / "a.h5ad")
    assert as_view(tmp_path / "a.h5ad", ids="donor").ids.tolist() == [30, 10, 20, 40]
    assert as_view(anndata.read_h5ad(tmp_path / "a.h5ad"), ids="donor").ids.tolist()[0] == 30


def test_ids_can_be_given_for_a_file_without(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    assert as_view(tmp_path / "a.csv", ids=["u", "v"]).ids.tolist() == ["u", "v"]
    np.save(tmp_path / "a.npy", X)
    assert as_view(tmp_path / "a.npy", ids=IDS).ids.tolist() == IDS


# ---- CSV dialects -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "features", "rows"),
    [
        ("1,2\n3,4\n", None, [[1, 2], [3, 4]]),
        ("0,1,2\n3,4,5\n", ("0", "1", "2"), [[3, 4, 5]]),
        ("1\n2\n3\n", None, [[1], [2], [3]]),
        ("\ufeffa,b\r\n1,2\r\n", ("a", "b"), [[1, 2]]),
        ("a;b\n1,5;2\n", ("a", "b"), [[1.5, 2]]),
        ("a|b\n1|2", ("a", "b"), [[1, 2]]),
        ("\n\na\tb\n1\t2\n\n3\t4\n", ("a", "b"), [[1, 2], [3, 4]]),
        ('"a, b","c\nd"\n1,2\n', ("a, b", "c\nd"), [[1, 2]]),
        ("a, b\n 1, 2\n", ("a", "b"), [[1, 2]]),
        ("id,2019,2020\n5,1,2\n", ("id", "2019", "2020"), [[5, 1, 2]]),
        ("a,b\n1e3,-.5\n", ("a", "b"), [[1000, -0.5]]),
    ],
)
def test_dialects_are_told_from_the_first_rows(text, features, rows, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(text.encode())
    view = as_view(tmp_path / "a.csv")
    assert view.features == features
    assert np.array_equal(dense(view), rows)


def test_decimals_that_come_late_are_no_surprise(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n" + "1\n" * 50_000 + "1.5\n")
    assert dense(as_view(tmp_path / "a.csv"))[-1, 0] == 1.5


def test_row_groups_of_any_size_give_the_same_rows(tmp_path: Path, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1000, 7)), columns=list("abcdefg")).assign(id=range(1000))
    frame = frame.rename(columns={"b": "a.x"})  # dots mean something to Parquet
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=400, index=False)
    for size in (2**30, 5000, 1):
        monkeypatch.setattr("viewfold.io._columnar._SECTION_BYTES", size)
        monkeypatch.setattr("viewfold.io._tables.BATCH_BYTES", 64)
        view = as_view(tmp_path / "a.parquet", ids="id")
        assert view.features == ("a", "a.x", *"cdefg")
        assert np.array_equal(dense(view), frame.drop(columns="id"))
        assert np.array_equal(view.ids, np.arange(1000))


# ---- folders, patterns, awkward names -----------------------------------------------------------


def test_a_folder_and_a_pattern_are_one_table_in_natural_order(tmp_path: Path) -> None:
    folder = tmp_path / "labs"
    folder.mkdir()
    for part in range(12):
        FRAME.assign(id=[100 * part + i for i in range(4)]).to_parquet(
            folder / f"part.{part}.parquet", index=False
        )
    (folder / "_SUCCESS").touch()
    (folder / "._part.0.parquet").touch()
    for path in (folder, folder / "*.parquet", tmp_path / "**" / "part*.parquet"):
        view = as_view(path, ids="id")
        assert view.ids.tolist() == [100 * part + i for part in range(12) for i in range(4)]
    assert as_view(folder, ids="id").name == as_view(folder / "*.parquet", ids="id").name == "labs"


@pytest.mark.parametrize("stem", ["it's", 'a "b"', "a b", "ünï 数", "a[1]*?", "100%", "k=v", "-x"])
@pytest.mark.parametrize("name", ["labs.csv", "labs.parquet", "labs.feather", "labs.jsonl"])
def test_awkward_file_names_are_names(stem: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name.replace("labs", stem)
    TABLES[name](path)
    (tmp_path / name.replace("labs", "a1xy")).touch()  # what a pattern would find
    assert as_view(path, ids="id").shape == (4, 3)
    assert as_view(path, ids="id").name == stem


def test_names_of_views_are_names_of_files() -> None:
    assert own_name("x/labs.v2.csv.gz") == "labs.v2"
    assert own_name(Path("labs.MAT")) == "labs"
    assert own_name("labs/part-*.csv") == "part"
    assert own_name(X) is None


# ---- MATLAB and benchmark sets ------------------------------------------------------------------

A, B = np.arange(20.0).reshape(4, 5), np.arange(28.0).reshape(4, 7)
GT = np.array([[1], [2], [2], [3]])
LAYOUTS: dict[str, tuple[dict[str, Any], list[np.ndarray], bool]] = {
    "samples in rows": ({"X": [A, B], "Y": GT}, [A, B], True),
    "samples in columns": ({"data": [A.T, B.T], "truelabel": [GT]}, [A, B], True),
    "some of each": ({"X": [A.T, B], "gt": GT.T}, [A, B], True),
    "one matrix in columns": ({"fea": A.T, "gnd": GT}, [A], True),
    "a square one lies as the others": ({"X": [A.T, A[:, :4].T], "gt": GT}, [A, A[:, :4]], True),
    "without classes": ({"X": [A.T, B.T]}, [A, B], False),
    "equal shapes": ({"X": [A, A]}, [A, A], False),
    "separate matrices": ({"fourier": A, "pixel": B, "label": GT, "k": [[3.0]]}, [A, B], True),
    "sparse": ({"X": [sparse.csc_array(A.T), sparse.csc_array(B.T)], "truth": GT}, [A, B], True),
    "one-hot classes": ({"X": [A, B], "Y": np.eye(3)[GT.ravel() - 1]}, [A, B], True),
    "another cell array": ({"X": [A, B], "folds": [A, A], "Y": GT}, [A, B], True),
    "Y is a view": ({"X1": A, "Y": B}, [A, B], False),
}


@pytest.mark.parametrize("version", ["5", "7.3"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_matlab_files(layout: str, version: str, tmp_path: Path) -> None:
    variables, views, labelled = LAYOUTS[layout]
    path = tmp_path / "set.mat"
    if version == "5":
        as_cells = {
            k: cell(*v) if isinstance(v, list) and k != "k" else v for k, v in variables.items()
        }
        scipy.io.savemat(path, as_cells)
    else:
        write_mat73(path, **{k: np.array(v) if k == "k" else v for k, v in variables.items()})
    found, target = io.read_set(path)
    arrays = [f.toarray() if sparse.issparse(f) else f for f in found.values()]
    assert all(np.array_equal(a, b) for a, b in zip(arrays, views, strict=True))
    if labelled:
        start = 0 if layout == "one-hot classes" else 1
        assert target.tolist() == [start, start + 1, start + 1, start + 2]
        assert target.dtype.kind in "iu"
    else:
        assert target is None


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"X": cell(A, B), "Y": [[1], [2]]}, "and 2 classes: there is no number of samples"),
        ({"X": cell(A, A.T)}, "there is no number of samples that all agree on"),
        ({"u": cell(A, B), "v": cell(A, B)}, "several cell arrays could hold the views: 'u', 'v'"),
        ({"note": "hello", "n": 4.0}, "no matrix of numbers among"),
    ],
)
def test_matlab_files_that_say_too_little_are_refused(variables, message, tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "set.mat", variables)
    with pytest.raises(io.FileError, match=re.escape(message)) as error:
        io.read_set(tmp_path / "set.mat")
    assert "set.mat" in str(error.value)


def test_views_and_classes_of_npz(tmp_path: Path) -> None:
    S = sparse.csr_array(X)
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape}
    held = {f"view_10_{part}": value for part, value in parts.items()}
    np.savez(
        tmp_path / "a.npz",
        **held,
        view_9=X,
        y=[1, 0, 1, 0],
        n_views=2,
        note="x",
        split=[0, 0, 1, 1],
    )
    views, target = io.read_set(tmp_path / "a.npz")
    assert list(views) == ["view_9", "view_10"]
    assert np.array_equal(views["view_10"].toarray(), X)
    assert target.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
def test_matrix_market_is_read_as_scipy_reads_it(symmetry, field, tmp_path: Path) -> None:
    square = np.array([[0, 2, 3], [2, 0, 0], [3, 0, 0]])
    if symmetry == "skew-symmetric":
        square = np.tril(square) - np.tril(square).T
    path = tmp_path / "a.mtx"
    scipy.io.mmwrite(path, sparse.coo_array(square), symmetry=symmetry, field=field)
    assert np.array_equal(dense(as_view(path)), scipy.io.mmread(path).toarray())


def test_indices_of_sparse_matrices_are_looked_at(tmp_path: Path) -> None:
    wild = sparse.csr_array(X)
    wild.indices[0] = 10**6
    parts = {"data": wild.data, "indices": wild.indices, "indptr": wild.indptr, "shape": wild.shape}
    np.savez(tmp_path / "a.npz", **{f"view_0_{part}": value for part, value in parts.items()})
    sparse.save_npz(tmp_path / "b.npz", wild)
    write_mat73(tmp_path / "c.mat", X=[X, sparse.csc_array(X)])
    with h5py.File(tmp_path / "c.mat", "r+") as file:
        file["#refs#/X1/ir"][0] = 10**6
    for name in ("a.npz", "b.npz", "c.mat"):
        with pytest.raises(io.FileError, match=re.escape(name)):
            io.read(tmp_path / name)


def test_the_shared_sets_are_read() -> None:
    path = SHARED / "data" / "bbcsport.npz"
    if not path.exists():
        pytest.skip("the shared data sets are not here")
    views, target = io.read_set(path)
    assert [view.shape for view in views.values()] == [(544, 3183), (544, 3203)]
    assert np.unique(target).tolist() == [0, 1, 2, 3, 4]


# ---- errors -------------------------------------------------------------------------------------

MARKET = b"%%MatrixMarket matrix coordinate real general\n"
BAD = {
    "no suffix": ("notes.doc", b"hello", None, "unknown format. Expected a file name that ends in"),
    "empty": ("a.csv", b"", None, "the file is empty"),
    "empty json": ("a.jsonl", b"\n\n", None, "the file is empty"),
    "empty npy": ("a.npy", b"", None, "cannot be read as a NumPy array"),
    "no rows": ("a.csv", b"id,x\n", "id", "there are columns, but no rows"),
    "no id column": ("a.csv", b"pid,x\nann,1\n", "id", "no column 'id'. Its columns: 'pid', 'x'"),
    "only ids": ("a.csv", b"id\nann\n", "id", "no column but the ids"),
    "text": ("a.csv", b"who,x\nann,1\n", None,
             "column 'who' holds no numbers (line 2 holds 'ann'). Drop or encode it, or pass "
             "ids='who' (--id who) if it holds the ids"),
    "text besides ids": ("a.csv", b"id,x,c\n1,1,Rome\n", "id", "column 'c' holds no numbers"),
    "texts": ("a.csv", b"a,b,x\nu,v,1\n", None, "columns 'a', 'b' hold no numbers"),
    "json text": ("a.jsonl", b'{"x":1,"who":"ann"}', None, "pass ids='who' (--id who) if"),
    "bad cell": ("a.csv", b"id,x\nann,1\nbob,?\n", "id", "a.csv, line 3, column 'x': '?' is not a"),
    "late cell": ("a.csv", b"x,y\n" + b"1,2\n" * 999 + b"1,oops\n", None,
                  "line 1001, column 'y': 'oops' is not a number"),
    "short row": ("a.csv", b"x,y\n1,2\n3\n", None, "line 3: 1 cells where the first line has 2"),
    "long row": ("a.csv", b"x,y\n1,2,3\n", None, "line 2: 3 cells where the first line has 2"),
    "open quote": ("a.csv", b'id,x\n"ann,1\n' + b"b,2\n" * 3_000_000, "id", "a quote is opened"),
    "same names": ("a.csv", b"x,x\n1,2\n", None, "2 columns are called 'x'"),
    "unnamed": ("a.csv", b",x\n0,2\n", None, "column 0 has no name (pandas writes its index so)"),
    "missing id": ("a.csv", b"id,x\nann,1\n,2\n", "id", "line 3: there is no id"),
    "N/A": ("a.csv", b'\nid,x\n7,1\n\n"8\n9",1\nN/A,2\n', "id", "line 7: the id 'N/A' says"),
    "json null": ("a.jsonl", b'{"id":7,"x":1}\n{"id":" null","x":1}', "id",
                  "line 2: the id ' null' says"),
    "json id": ("a.jsonl", b'{"id":"a","x":1}\n{"x":2}', "id", "line 2: there is no id"),
    "float id": ("a.jsonl", b'{"id":1.5,"x":1}', "id", "line 1: the id 1.5 is a float"),
    "json": ("a.jsonl", b'{"x":1}\n{"x":\n', None, "line 2: not JSON"),
    "json list": ("a.jsonl", b"[1,2]", None, "line 1: a list, not an object"),
    "twice": ("a.csv", b"id,x\nann,1\nann,2\n", "id", "duplicate ids: 'ann' stands in rows 0, 1"),
    "NaN": ("a.csv", b"id,x,y\nann,1,\n", "id", "NaN in row 0 (id 'ann'), column 'y'"),
    "all NaN": ("a.csv", b"id,x,y\nann,,\n", "id", "all its rows are NaN"),
    "latin": ("a.csv", "id,größe\n".encode("latin-1"), None, "Save it as UTF-8"),
    "png": ("a.csv", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", None, "not text in UTF-8"),
    "png parquet": ("a.parquet", b"\x89PNG\r\n\x1a\n" * 9, None, "cannot be read as Parquet"),
    "png feather": ("a.feather", b"\x89PNG\r\n\x1a\n" * 9, None, "cannot be read as Arrow"),
    "feather 1": ("a.feather", b"FEA1" + bytes(99), None, "Feather version 1"),
    "png mat": ("a.mat", b"\x89PNG\r\n\x1a\n" * 99, None, "not a MATLAB file of version 5"),
    "png npz": ("a.npz", b"\x89PNG\r\n\x1a\n" * 9, None, "cannot be read as a NumPy archive"),
    "png h5ad": ("a.h5ad", b"\x89PNG\r\n\x1a\n" * 9, None, "cannot be read as AnnData"),
    "png mtx": ("a.mtx", b"\x89PNG\r\n\x1a\n" * 9, None, "cannot be read as a Matrix Market"),
    "short mtx": ("a.mtx", MARKET + b"3 3 2\n1 1 5\n", None, "1 entries where its size"),
    "mtx outside": ("a.mtx", MARKET + b"3 3 1\n4 1 5\n", None, "outside of the 3 × 3 matrix"),
    "NUL in mtx": ("a.mtx", MARKET + b"3 3 2\n1 1 5\x002 2 6\n3 1 1\n", None, "a.mtx"),
    "not gzip": ("a.csv.gz", b"id,x\n", None, "cannot be read as text"),
    "id of a matrix": ("a.mtx", b"%%MatrixMarket matrix array real general\n1 1\n1\n", "id",
                       "names a column, but there is none"),
    "huge mtx": ("a.mtx", MARKET + b"2000000000 3 1\n1 1 1\n",
                 None, "a sparse matrix of shape"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_named_with_place_and_remedy(case: str, tmp_path: Path) -> None:
    name, content, ids, message = BAD[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        as_view(tmp_path / name, ids=ids)
    assert str(tmp_path / name) in str(error.value)


@pytest.mark.parametrize("row", ["1,oops", "1"])
def test_lines_are_counted_over_blocks(row: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("viewfold.io._delimited._BLOCK", 1000)
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n" * 5000 + row + "\n")
    with pytest.raises(ValueError, match=re.escape("a.csv, line 5002")):
        as_view(tmp_path / "a.csv")


def test_bad_tables_of_other_kinds_are_named(tmp_path: Path) -> None:
    def refused(path: Path, message: str, ids: str | None = None) -> None:
        with pytest.raises(ValueError, match=re.escape(message)) as error:
            as_view(path, ids=ids)
        assert str(path) in str(error.value)

    path = tmp_path / "a.parquet"
    write_parquet(path)
    refused(path, "pass ids='id' (--id id) if it holds the ids")
    refused(path, "no column 'who'", "who")
    path.write_bytes(path.read_bytes()[:-20])
    refused(path, "cannot be read as Parquet")
    pyarrow.parquet.write_table(TABLE[:0], path)
    refused(path, "no rows", "id")
    FRAME[["age"]].set_axis([4, 5, 6, 7]).to_parquet(path)
    refused(path, "is the index of a pandas DataFrame. Pass ids='__index_level_0__'")
    pyarrow.parquet.write_table(TABLE.set_column(3, "id", pa.array(["a", None, "b", "c"])), path)
    refused(path, "row 1: there is no id", "id")
    np.savez(tmp_path / "a.npz", y=[1, 2], note="x")
    refused(tmp_path / "a.npz", "no 2-D array of numbers among 'y', 'note'")
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object))
    refused(tmp_path / "a.npy", "cannot be read as a NumPy array")
    write_h5ad(tmp_path / "a.h5ad")
    refused(tmp_path / "a.h5ad", "obs has no column 'who'. Its columns: 'donor'", "who")


def test_folders_that_are_no_table_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no table"):
        as_view(tmp_path)
    with pytest.raises(ValueError, match="there is no table"):
        as_view(tmp_path / "*.csv")
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    FRAME.drop(columns="age").to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(ValueError, match=re.escape("b.csv: other columns")):
        as_view(tmp_path, ids="id")
    write_parquet(tmp_path / "b.parquet")
    FRAME.astype({"age": "f4", "iron": "f4", "zinc": "f4"}).to_parquet(
        tmp_path / "a.parquet", index=False
    )
    with pytest.raises(ValueError, match=r"b\.parquet: other columns, or columns of other"):
        as_view(tmp_path / "*.parquet", ids="id")  # rounding the second part would go unnoticed
    with pytest.raises(ValueError, match=re.escape("different formats (.csv, .parquet)")):
        as_view(tmp_path, ids="id")


def test_a_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    for name in ("labs.csv", "labs.npy", "labs", "labs.mat", ""):
        with pytest.raises(FileNotFoundError, match="there is no such file"):
            as_view(str(tmp_path / name) if name else "")


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch) -> None:
    cases = [("v73.mat", "h5py", "hdf5"), ("scan.h5ad", "anndata", "bio")]
    for name, _, _ in cases:
        MATRICES[name](tmp_path / name)
    for name, module, extra in cases:
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=re.escape(f"pip install 'viewfold[{extra}]'")):
            as_view(tmp_path / name)
    with pytest.raises(ValueError, match=re.escape("expected an .npz or .mat file")):
        io.read_set(tmp_path / "scan.h5ad")


def test_rights_that_lack_are_told_as_such(tmp_path: Path, monkeypatch) -> None:
    FRAME.to_csv(tmp_path / "a.csv", index=False)

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError("not yours")

    monkeypatch.setattr("pyarrow.input_stream", refuse)
    with pytest.raises(PermissionError, match="not yours"):
        as_view(tmp_path / "a.csv", ids="id")


@pytest.mark.parametrize("packed", [False, True])
def test_matlab_5_is_read_as_scipy_reads_it(packed: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    cell = np.empty((3, 1), object)
    cell[:, 0] = [rng.normal(size=(5, d)) for d in (2, 3, 4)]
    held = {
        "double": rng.normal(size=(4, 7)),
        "single": rng.normal(size=(3, 5)).astype(np.float32),
        "tensor": rng.normal(size=(2, 3, 4)),
        "empty": np.empty((0, 3)),
        "scalar": 3.0,
        "logical": np.eye(3) > 0,
        "words": sparse.csc_array(rng.poisson(0.3, size=(9, 6)).astype(float)),
        **{kind: rng.integers(0, 99, (3, 2)).astype(kind) for kind in ("int8", "uint16", "int64")},
        "cell": cell,
    }
    others = {"text": "no view", "struct": {"a": 1.0}, "complex": np.ones((2, 2)) * 1j}
    scipy.io.savemat(tmp_path / "a.mat", held | others, do_compression=packed)
    expected, found = scipy.io.loadmat(tmp_path / "a.mat"), _mat5.read(str(tmp_path / "a.mat"))
    assert found.keys() == held.keys()
    for name, matrix in found.items():
        if name == "cell":
            assert all(map(np.array_equal, matrix, expected[name][:, 0]))
        elif name == "words":
            assert (matrix != expected[name]).nnz == 0
        else:
            assert matrix.dtype == expected[name].dtype
            np.testing.assert_array_equal(matrix, expected[name])


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "boom"),)

    np.save(tmp_path / "a.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", x=np.array([[Bomb()]], dtype=object))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match=re.escape(name)):
            as_view(tmp_path / name)
    assert not (tmp_path / "boom").exists()


def test_readers_are_imported_when_needed() -> None:
    code = "import viewfold.io, sys; print({'h5py', 'anndata', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# ---- memory -------------------------------------------------------------------------------------

MEMORY = r"""
import re, sys
from viewfold import as_view
from viewfold.io import _columnar, _delimited, _tables
_delimited._BLOCK, _tables.BATCH_BYTES, _columnar._SECTION_BYTES = 2**18, 2**20, 2**24
def peak():  # of this process; ru_maxrss begins with that of the parent
    return int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) / 1024
as_view(sys.argv[1], ids="id")  # imports and buffers
before = peak()
view = as_view(sys.argv[2], ids="id")
print(view.shape[0], peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured on Linux")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_large_tables_are_never_held_in_memory(kind: str, tmp_path: Path) -> None:
    n, d = 160_000, 50  # 64 MB
    rng = np.random.default_rng(0)
    table = pa.table(
        {"id": np.arange(n), **{f"f{j}": rng.normal(size=n).round(3) for j in range(d)}}
    )
    small, large = tmp_path / f"small.{kind}", tmp_path / f"large.{kind}"
    for path, held in ((small, table[:40_000]), (large, table)):
        if kind == "csv":
            pyarrow.csv.write_csv(held, path)
        else:
            pyarrow.parquet.write_table(held, path, row_group_size=n, use_dictionary=False)
    command = [sys.executable, "-c", MEMORY, str(small), str(large)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows, grown = map(float, done.stdout.split())
    assert rows == n
    assert grown < 32  # MB: half of the table; ids, buffers and allocators take 10 to 26


# ---- damaged files ------------------------------------------------------------------------------


@st.composite
def damages(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """Flip bytes, cut pieces out, repeat pieces, or throw everything away."""
    places = st.floats(0, 1, exclude_max=True)
    changes = draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=8))
    cut = draw(st.none() | st.tuples(places, places))
    again = draw(st.none() | st.tuples(places, places))
    fresh = draw(st.none() | st.none() | st.none() | st.binary(max_size=300))

    def damage(content: bytes) -> bytes:
        if fresh is not None:
            return fresh
        out = bytearray(content)
        for place, value in changes:
            out[int(place * len(out))] = value
        for spot, keep in ((cut, False), (again, True)):
            if spot is not None:
                low, high = sorted(int(place * len(out)) for place in spot)
                out[low:high] = out[low:high] * 2 if keep else b""
        return bytes(out)

    return damage


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ALL)
def test_damaged_files_raise_nothing_but_clear_errors(name: str, tmp_path: Path) -> None:
    ALL[name](tmp_path / name)
    content = (tmp_path / name).read_bytes()
    path = tmp_path / f"damaged-{name}"

    @settings(
        max_examples=int(os.environ.get("VIEWFOLD_FUZZ", 40)),
        deadline=None,
        derandomize="VIEWFOLD_FUZZ" not in os.environ,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(damages(), st.sampled_from(["id", None]))
    def check(damage: Callable[[bytes], bytes], ids: str | None) -> None:
        path.write_bytes(damage(content))
        try:
            as_views(path, ids=ids if name in TABLES else None)
        except (ValueError, FileNotFoundError) as error:
            assert path.name in str(error)  # noqa: PT017

    check()


def test_text_of_any_kind_is_a_view_or_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    pieces = st.sampled_from(
        ["id", "x", "1", "2.5", ",", ";", "\n", "\r\n", '"', " ", "é", "\0", "NA"]
    )

    @settings(max_examples=200, deadline=None, derandomize=True, database=None)
    @given(st.lists(pieces, max_size=30), st.sampled_from(["id", None]))
    def check(parts: list[str], ids: str | None) -> None:
        path.write_bytes("".join(parts).encode())
        try:
            as_view(path, ids=ids)
        except ValueError as error:
            assert "a.csv" in str(error)  # noqa: PT017

    check()


def test_gzip_that_ends_too_early_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    whole = gzip.compress(FRAME.to_csv(index=False).encode() * 1000)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=re.escape("a.csv.gz")):
        as_view(path, ids="id")
