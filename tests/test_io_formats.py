"""What is in a file comes out, whatever its format."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from io_files import (
    IDS,
    SEVERAL,
    X,
    dense,
)

from viewfold import ViewFold, as_view, as_views
from viewfold.data import files as io
from viewfold.data.opening import own_name


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


@pytest.mark.filterwarnings("ignore:X does not have")
def test_of_several_views_one_can_be_taken_to_predict_from(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    views = {name: rng.normal(size=(60, 4)) + 4 * np.eye(3, 4)[y] for name in "abc"}
    model = ViewFold(3, random_state=0).fit({name: views[name] for name in "ab"})
    np.savez(tmp_path / "views.npz", **views)
    for held in (views, tmp_path / "views.npz"):
        for asked, name in (("b", "b"), (0, "a"), (-1, "b")):
            found = model.transform(held, view=asked)
            assert np.array_equal(found, model.transform(views[name], view=name))
        with pytest.raises(ValueError, match="no view 'c'; the model has folded"):
            model.predict(held, view="c")
    with pytest.raises(ValueError, match=r"no view 'a'; X holds \['b', 'c'\]"):
        model.predict({name: views[name] for name in "bc"}, view="a")


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
        as_view(tmp_path / "a.csv", missing_cells="error")
    (tmp_path / "a.csv").write_text("x,y\nTrue,1\nFalse,3\n")
    assert np.array_equal(dense(as_view(tmp_path / "a.csv")), [[1, 1], [0, 3]])


def test_single_precision_stays_single(tmp_path: Path) -> None:
    pd.DataFrame(X.astype(np.float32), columns=list("abc")).to_parquet(tmp_path / "a.parquet")
    assert as_view(tmp_path / "a.parquet").rows.dtype == np.float32


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
        monkeypatch.setattr("viewfold.data.columnar._SECTION_BYTES", size)
        monkeypatch.setattr("viewfold.data.source.BATCH_BYTES", 64)
        view = as_view(tmp_path / "a.parquet", ids="id")
        assert view.features == ("a", "a.x", *"cdefg")
        assert np.array_equal(dense(view), frame.drop(columns="id"))
        assert np.array_equal(view.ids, np.arange(1000))


def test_readers_are_imported_when_needed() -> None:
    code = "import viewfold.data, sys; print({'h5py', 'anndata', 'openpyxl'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


MEMORY = r"""
import re, sys
from viewfold import as_view
from viewfold.data import columnar, source
source.BATCH_BYTES, columnar._SECTION_BYTES = 2**20, 2**24
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
    n, d = 280_000, 50  # 112 MB
    rng = np.random.default_rng(0)
    columns = {f"f{j}": rng.integers(10, size=n) + 0.0 for j in range(d)}
    columns |= {"f0": rng.choice(["ICU", "ER"], n), "f1": [f"{i} is unique" for i in range(n)]}
    table = pa.table({"id": np.arange(n), **columns})
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
    assert grown < 56  # MB: half of the table; ids, buffers and allocators take 10 to 38
