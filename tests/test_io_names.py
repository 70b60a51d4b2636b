"""Ids, names of views, folders and patterns: who and what a file is about."""

from __future__ import annotations

import json
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from io_files import (
    FRAME,
    IDS,
    TABLES,
    X,
    write_h5ad,
)

from viewfold import as_view
from viewfold.data import files as io
from viewfold.data.opening import own_name


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
    monkeypatch.setattr("viewfold.data.text._BLOCK_CELLS", 1000)
    ids = [*map(str, range(2000)), "007"]
    pd.DataFrame({"id": ids, "x": 1.0}).to_csv(tmp_path / "a.csv", index=False)
    batches = [known for known, _ in io.read(tmp_path / "a.csv", ids="id")["a"].rows]
    assert batches[0].dtype == np.int64
    assert len(batches) > 3
    assert as_view(tmp_path / "a.csv", ids="id").ids.tolist() == ids


def test_lines_within_quotes_may_cross_blocks(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("viewfold.data.text._BLOCK_CELLS", 1000)
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
@pytest.mark.parametrize("name", ["labs.csv", "labs.parquet", "labs.jsonl"])
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
