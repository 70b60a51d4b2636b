"""Small files that hold few different values, many times: neither memory nor minutes are taken."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from children import start
from hostile_files import attack

from viewfold import as_view
from viewfold.data import files as io

LONG = pa.array(["x" * 1_000_000])


def repeated(n: int) -> pa.DictionaryArray:
    """Return one text of a megabyte in many rows, which a file holds once."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), LONG)


def texts(path: Path, name: str = "ward", n: int = 1000) -> None:
    table = pa.table({name: repeated(n), "x": np.arange(n) + 0.5})
    pyarrow.parquet.write_table(table, path, compression="zstd", store_schema=False)


def prefixes(path: Path) -> None:
    table = pa.table({"ward": ["x" * 1_000_000] * 400, "x": np.arange(400) + 0.5})
    encodings = {"ward": "DELTA_BYTE_ARRAY", "x": "PLAIN"}
    pyarrow.parquet.write_table(
        table, path, compression="zstd", use_dictionary=False, column_encoding=encodings
    )


def lists(path: Path) -> None:
    starts = pa.array(np.arange(0, 41_000_000, 1_000_000, dtype=np.int32))
    table = pa.table({"x": pa.ListArray.from_arrays(starts, pa.array(np.zeros(40_000_000)))})
    pyarrow.parquet.write_table(table, path, compression="zstd")


def book(path: Path, extra: bytes, prefix: bytes = b"") -> None:
    made = openpyxl.Workbook()
    for row in (["a", "b"], [1.5, 2.5], [3.5, 5.5]):
        made.active.append(row)
    made.save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    parts[sheet] = parts[sheet].replace(b"</sheetData>", extra + b"</sheetData>")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


BOMBS: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "texts of Parquet": ("a.parquet", texts, "the texts of column 'ward'"),
    "ids of Parquet": ("a.parquet", lambda path: texts(path, "id"), "the texts of column 'id'"),
    "prefixes of Parquet": ("a.parquet", prefixes, "its texts would take more than"),
    "lists of Parquet": ("a.parquet", lists, "40,000,000 numbers would take"),
    "rows of Excel": (
        "a.xlsx",
        lambda path: book(path, b'<row r="3"/>' * 3_000_000),
        "more rows or columns than Excel has",
    ),
    "rows of Excel with a prefix": (
        "a.xlsx",
        lambda path: book(path, b'<a-long-prefix:row r="3"/>' * 3_000_000),
        "more rows or columns than Excel has",
    ),
    "cells of Excel": (
        "a.xlsx",
        lambda path: book(path, b'<row r="3">' + b"<c/>" * 3_000_000 + b"</row>"),
        "more rows or columns than Excel has",
    ),
}


def dictionary(path: Path) -> None:
    table = pa.table({"ward": repeated(2000), "x": np.arange(2000) + 0.5})
    pyarrow.parquet.write_table(table, path, compression="zstd")


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, float]]:
    """What a process said to each file, and how much memory it took, in MB."""
    folder = tmp_path_factory.mktemp("sizes")
    cases = {**BOMBS, "dictionary": ("a.parquet", dictionary, "")}
    files = {case: folder / case / name for case, (name, *_) in cases.items()}
    for case, path in files.items():
        path.parent.mkdir()
        cases[case][1](path)
        assert case == "dictionary" or os.path.getsize(path) < 1_100_000
    found = attack((path, "id" if "ids" in case else None) for case, path in files.items())
    return {path.parent.name: told for path, told in found.items()}


@pytest.mark.parametrize("case", BOMBS)
def test_repeated_values_take_no_memory(case: str, attacked) -> None:
    said, grown = attacked[case]
    name, _, message = BOMBS[case]
    assert said.startswith("FileError: ")
    assert message in said
    assert name in said
    assert grown < 250  # MB


def test_a_text_of_a_dictionary_is_not_written_out(attacked) -> None:
    assert attacked["dictionary"][1] < 250


def test_files_with_long_texts_and_lists_are_read(tmp_path: Path) -> None:
    n, rng = 300, np.random.default_rng(0)
    table = pa.table(
        {
            "note": ["n" * int(size) for size in rng.integers(1, 5000, n)],
            'a "quoted" ward': rng.choice(["ER", "ICU"], n),
            "v": [row.tolist() for row in rng.normal(size=(n, 50))],
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match="'note'"):
        view = as_view(tmp_path / "a.parquet", ids=False)
    assert view.shape == (n, 52)


def test_a_sheet_may_have_many_rows_and_columns(tmp_path: Path) -> None:
    cells = b"".join(b"<c><v>%d</v></c>" % j for j in range(2))
    book(
        tmp_path / "a.xlsx", b"".join(b'<row r="%d">%s</row>' % (i, cells) for i in range(4, 9000))
    )
    assert as_view(tmp_path / "a.xlsx", ids=False).shape == (8998, 2)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["<f8", ">f4", "<i2", "?"])
def test_an_array_is_read_as_it_is(order, kind: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("viewfold.data.matrices.BATCH_BYTES", 100)
    X = np.asarray(np.random.default_rng(0).normal(size=(37, 5)) * 10, dtype=kind, order=order)
    np.save(tmp_path / "a.npy", X)
    found = io.read(tmp_path / "a.npy")["a"].rows
    assert found.dtype == X.dtype
    np.testing.assert_array_equal(found, X)


def test_an_array_that_becomes_shorter_does_not_end_the_process(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.random.default_rng(0).normal(size=(2000, 50)))
    script = (
        "import os, sys\nimport numpy as np\nimport viewfold\n"
        "view = viewfold.as_view(sys.argv[1])\nos.truncate(sys.argv[1], 200)\n"
        "print(sum(block.sum() for _, block in view.rows.blocks()))\n"
    )
    assert start(script, path).wait() == 0
