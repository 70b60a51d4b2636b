"""An error names file, place and remedy; nothing else comes out of a bad file."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from io_files import (
    FRAME,
    MATRICES,
    TABLE,
    write_h5ad,
    write_parquet,
)

from viewfold import as_view
from viewfold.data import files as io

MARKET = b"%%MatrixMarket matrix coordinate real general\n"
BAD = {
    "no suffix": ("notes.doc", b"hello", None, "unknown format. Expected a file name that ends in"),
    "empty": ("a.csv", b"", None, "the file is empty"),
    "empty json": ("a.jsonl", b"\n\n", None, "the file is empty"),
    "empty npy": ("a.npy", b"", None, "cannot be read as a NumPy array"),
    "no rows": ("a.csv", b"id,x\n", "id", "there are columns, but no rows"),
    "no id column": ("a.csv", b"pid,x\nann,1\n", "id", "no column 'id'. Its columns: 'pid', 'x'"),
    "only ids": ("a.csv", b"id\nann\n", "id", "no column but the ids"),
    "text": ("a.csv", b"who,x\nann,1\nbob,2\n", None,
             "column 'who' looks like ids (texts that are all different). Say ids='who' if it "
             "holds them"),
    "nothing but text": ("a.csv", b"id,c\n1,Rome\n2,Bonn\n", "id", "no column is a feature"),
    "json text": ("a.jsonl", b'{"x":1,"who":"ann"}\n{"x":2,"who":"bob"}', None, "Say ids='who' if"),
    "list in json": ("a.jsonl", b'{"x":1,"who":["ann"]}', None, "column 'who' holds no numbers"),
    "bad cell": ("a.csv", b"id,x\nann,1\nbob,!\n", "id", "a.csv, line 3, column 'x': '!' is not a"),
    "empty cell": ("a.csv", b"id,x,y\nann,1,2\nbob,?,2\n", "id", "contains NaN in row 1"),
    "late cell": ("a.csv", b"x,y\n" + b"1,2\n" * 999 + b"1,oops\n", None,
                  "line 1001, column 'y': 'oops' is not a number"),
    "short row": ("a.csv", b"x,y\n1,2\n3\n", None, "line 3: 1 cells where the first line has 2"),
    "long row": ("a.csv", b"x,y\n1,2,3\n", None, "line 2: 3 cells where the first line has 2"),
    "open quote": ("a.csv", b'id,x\n"ann,1\n' + b"b,2\n" * 3_000_000, "id", "a quote is opened"),
    "same names": ("a.csv", b"x,x\n1,2\n", None, "2 columns are called 'x'"),
    "unnamed": ("a.csv", b",x\n0,2\n", None, "the first column has no name (pandas writes its"),
    "unnamed, ids known": ("a.csv", b",id,x\n0,a,2\n", "id", "so). Name it, or remove it."),
    "nameless": ("a.csv", b"id,x,\na,2,3\n", None, "the column after 'x' has no name. Name it, or"),
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
    "all NaN": ("a.csv", b"id,x,y\nann,,\n", "id", "none of its rows holds a value"),
    "neither": ("a.csv", b"id,gr\x81\xffe\n1,2\n", None, "Say how it is encoded"),
    "png": ("a.csv", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", None, "not text in UTF-8"),
    "png parquet": ("a.parquet", b"\x89PNG\r\n\x1a\n" * 9, None, "cannot be read as Parquet"),
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
        as_view(tmp_path / name, ids=ids, missing_cells="error")
    assert str(tmp_path / name) in str(error.value)


@pytest.mark.parametrize("row", ["1,oops", "1"])
def test_lines_are_counted_over_blocks(row: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("viewfold.data.text._BLOCK_CELLS", 1000)
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
    refused(path, "Say ids='id' if it holds them")
    refused(path, "no column 'who'", "who")
    path.write_bytes(path.read_bytes()[:-20])
    refused(path, "cannot be read as Parquet")
    pyarrow.parquet.write_table(TABLE[:0], path)
    refused(path, "no rows", "id")
    FRAME[["age"]].set_axis([4, 5, 6, 7]).to_parquet(path)
    refused(path, "is an index that pandas wrote. Say ids='__index_level_0__'")
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

    monkeypatch.setattr("viewfold.data.guard._unpacking", refuse)
    with pytest.raises(PermissionError, match="not yours"):
        as_view(tmp_path / "a.csv", ids="id")


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
