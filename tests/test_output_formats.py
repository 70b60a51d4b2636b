"""Labels come back in the format that people work with, and no text becomes a formula."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest
from pandas.testing import assert_frame_equal
from test_cli import Run, run  # noqa: F401

from viewfold import ViewFold
from viewfold._util.table import Table
from viewfold.app import output as _output

IDS = ["=1+1", "#REF!", "007", "Jörg", *(f"p{i}" for i in range(36))]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ViewFold:
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(40, 3))
    held = ViewFold(3, random_state=0).fit(X, ids=IDS)
    held.save("s.vf")
    return held


READERS = {
    "csv": lambda path: pd.read_csv(path, dtype={"id": str}),
    "parquet": pd.read_parquet,
    "arrow": lambda path: pa.ipc.open_file(pa.memory_map(str(path))).read_all().to_pandas(),
    "xlsx": lambda path: pd.read_excel(path, dtype={"id": str}),
}


@pytest.mark.parametrize("ending", READERS)
def test_labels_are_written_in_every_format(ending: str, model: ViewFold, run: Run) -> None:  # noqa: F811
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
    raw = " --raw" if ending == "csv" else ""  # only there is a text not told from a formula
    code, _, said = run(f"labels s.vf -o x.{ending}{raw}")
    assert code == 0, said
    found, told = READERS[ending](Path(f"x.{ending}")), model.to_frame()
    assert_frame_equal(found.set_index("id"), told, check_dtype=False, check_index_type=False)
    assert found["id"].tolist() == IDS  # a text that looks like a formula, too
    for words in ("export", "history", "history --moved view0"):
        assert run(f"{words} -o y.{ending}".replace(" ", " s.vf ", 1))[0] == 0


def test_what_excel_would_change_is_kept_or_refused(tmp_path: Path, monkeypatch) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "a.xlsx"
    table = Table(
        {
            "id": [2**62, 7],
            "x": [float("nan"), float("inf")],
            "when": [datetime.fromtimestamp(second, UTC) for second in (0, 1)],
            "views": [["a", "b"], []],
        }
    )
    _output.write_table(table, path)
    rows = list(openpyxl.load_workbook(path).active.iter_rows(values_only=True))
    assert rows[0] == ("id", "x", "when", "views")
    assert rows[1][:2] == (str(2**62), None)  # as a number it would be rounded
    assert rows[2][:2] == (7, "inf")
    assert rows[2][2].isoformat() == "1970-01-01T00:00:01"
    assert rows[1][3] == "a, b"
    for text in ("\x07", "a" * 32_768):
        with pytest.raises(ValueError, match="does not fit a cell of Excel"):
            _output.write_table(Table({"id": [text]}), path)
    with pytest.raises(ValueError, match="more than an Excel sheet has"):
        _output.write_table(Table({"id": np.arange(1_048_576)}), path)
    assert openpyxl.load_workbook(path).active["A1"].value == "id"  # what was there before
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'viewfold[excel]'")):
        _output.check(path, _output.TABLES)


def test_frames_of_polars(model: ViewFold) -> None:
    frame = model.to_frame(backend="polars")
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == ["id", "cluster", "confidence", "novelty", "hangs_on", "views_seen"]
    assert frame["id"].to_list() == IDS
    assert np.array_equal(frame["confidence"], model.to_frame()["confidence"])
    with pytest.raises(ValueError, match="backend='arrow': expected 'pandas' or 'polars'"):
        model.to_frame(backend="arrow")
    X = np.random.default_rng(0).normal(size=(4, 2))
    numbers = ViewFold(2, random_state=0).fit(X, ids=[7, 3, 9, 1]).to_frame(backend="polars")
    assert numbers["id"].to_list() == [7, 3, 9, 1]
    mixed = ViewFold(2, random_state=0).fit(X, ids=[7, "a", 9, "b"]).to_frame(backend="polars")
    assert mixed["id"].to_list() == ["7", "a", "9", "b"]
