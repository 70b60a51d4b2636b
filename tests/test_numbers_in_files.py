"""Every reader gives the numbers of a file bit by bit, and refuses what float64 cannot hold."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.io
from scipy import sparse

from viewfold import as_view
from viewfold.data import files as io
from viewfold.data.files import File

Writer = Callable[[Path, list[list[str]]], Any]
ARRAY = "%%MatrixMarket matrix array real general\n% a comment\n"
COORDINATE = "%%MatrixMarket matrix coordinate real general\n"
TOO_LARGE = ["1e400", "-1e400", "1e3000000000", "-1e4294967297", "1" + "0" * 400, "1" + "0" * 5000]


def delimited(sign: str, decimal: str = ".") -> Writer:
    def write(path: Path, rows: list[list[str]]) -> None:
        lines = ["a" + sign + "b", *(sign.join(row).replace(".", decimal) for row in rows)]
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "wt") as file:
            file.write("\n".join(lines))

    return write


def json_lines(path: Path, rows: list[list[str]]) -> None:
    path.write_text("\n".join(f'{{"a": {a}, "b": {b}}}' for a, b in rows))


def market(path: Path, rows: list[list[str]]) -> None:
    columns = "\n".join(row[j] for j in range(2) for row in rows)
    text = f"{ARRAY}{len(rows)} 2\n{columns}\n".encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def coordinates(path: Path, rows: list[list[str]]) -> None:
    entries = [f"{i} {j} {rows[i - 1][j - 1]}" for j in (1, 2) for i in range(1, len(rows) + 1)]
    path.write_text(f"{COORDINATE}{len(rows)} 2 {len(entries)}\n" + "\n".join(entries))


def excel(path: Path, rows: list[list[str]]) -> None:
    """Write a workbook, and put the numbers in as texts: openpyxl would round them."""
    pd.DataFrame({"a": range(len(rows)), "b": range(len(rows))}).to_excel(path, index=False)
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    numbers = iter([cell for row in rows for cell in row])
    head, body = parts[sheet].split(b"</row>", 1)
    body = re.sub(rb"<v>\d+</v>", lambda _: f"<v>{next(numbers)}</v>".encode(), body)
    parts[sheet] = head + b"</row>" + body
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, content in parts.items():
            book.writestr(name, content)


TEXT: dict[str, tuple[str, Writer]] = {
    "CSV": ("t.csv", delimited(",")),
    "CSV, packed": ("t.csv.gz", delimited(",")),
    "CSV with decimal commas": ("t.csv", delimited(";", ",")),
    "CSV with thousands": ("t.csv", delimited(",")),
    "TSV": ("t.tsv", delimited("\t")),
    "JSON lines": ("t.jsonl", json_lines),
    "Matrix Market": ("t.mtx", market),
    "Matrix Market, packed": ("t.mtx.gz", market),
    "Matrix Market, coordinates": ("t.mtx", coordinates),
    "Excel": ("t.xlsx", excel),
}
BINARY: dict[str, tuple[str, Callable[[Path, np.ndarray], Any]]] = {
    "NumPy": ("t.npy", np.save),
    "NumPy archive": ("t.npz", lambda path, X: np.savez(path, X=X)),
    "MATLAB": ("t.mat", lambda path, X: scipy.io.savemat(path, {"X": X})),
    "Parquet": ("t.parquet", lambda path, X: frame(X).to_parquet(path, index=False)),
}


def frame(X: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X, columns=["a", "b"])


def doubles(n: int) -> np.ndarray:
    """Return numbers of all sizes, small ones that need all digits among them."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**63 - 2**53, n).view(np.float64)  # no infinity, no NaN
    ends = [5e-324, 2.2250738585072014e-308, sys.float_info.max, -sys.float_info.max, 0.1, 1 / 3]
    return np.concatenate([rng.normal(size=n), rng.lognormal(size=n) * 1e9, bits, ends])


def written(values: np.ndarray) -> list[str]:
    """Write each number in one of three ways; the digits of some end just beside a halfway."""
    ways = (repr, "{:.17e}".format, "{:.30e}".format)
    return [ways[i % 3](value) for i, value in enumerate(values.tolist())]


def rows_of(path: Path, case: str) -> np.ndarray:
    given = File(path, thousands="'") if "thousands" in case else path
    (view,) = io.read(given).values()
    if sparse.issparse(view.rows):
        return view.rows.toarray()
    held = view.rows if hasattr(view.rows, "shape") else np.vstack([x for _, x in view.rows])
    return np.asarray(held)


@pytest.mark.filterwarnings("ignore:.*commas are decimal signs")
@pytest.mark.parametrize("case", TEXT)
def test_numbers_are_those_that_python_reads(case: str, tmp_path: Path) -> None:
    name, write = TEXT[case]
    texts = written(doubles(400))
    table = [texts[i : i + 2] for i in range(0, len(texts), 2)]
    write(tmp_path / name, table)
    found = rows_of(tmp_path / name, case)
    expected = np.array([[float(cell) for cell in row] for row in table])
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("case", BINARY)
def test_numbers_of_other_files_are_theirs(case: str, tmp_path: Path) -> None:
    name, write = BINARY[case]
    values = doubles(400).reshape(-1, 2)
    write(tmp_path / name, values)
    assert rows_of(tmp_path / name, case).tobytes() == values.tobytes()


@pytest.mark.filterwarnings("ignore:.*commas are decimal signs")
@pytest.mark.parametrize("cell", TOO_LARGE, ids=lambda cell: cell[:12])
@pytest.mark.parametrize("case", TEXT)
def test_what_float64_cannot_hold_is_refused(case, cell, tmp_path: Path) -> None:
    name, write = TEXT[case]
    write(tmp_path / name, [["1.5", "2.5"], ["3.5", "4.5"], [cell, "6.5"], ["7.5", "8.5"]])
    with pytest.raises(io.FileError) as error:
        rows_of(tmp_path / name, case)
    said = str(error.value)
    line = {"t.jsonl": 3, "t.mtx": 6, "t.mtx.gz": 6}.get(name, 4)
    line = 5 if "coordinates" in case else line
    assert f"{name}, line {line}" in said or f"{name}, sheet 'Sheet1', row {line}" in said
    assert "is too large for a 64-bit" in said or "4300 digits" in said
    assert "Correct it" in said
    if "4300 digits" not in said:
        empty = {"t.jsonl": "write null", "t.mtx": "write nan", "t.mtx.gz": "write nan"}
        assert f"or {empty.get(name, 'leave the cell empty')} if it marks" in said


@pytest.mark.parametrize("case", ["CSV", "Matrix Market", "JSON lines"])
def test_infinity_is_no_number_that_is_too_large(case: str, tmp_path: Path) -> None:
    name, write = TEXT[case]
    infinity = "Infinity" if case == "JSON lines" else "inf"
    write(tmp_path / name, [["1.5", "2.5"], [infinity, "4.5"]])
    assert np.isinf(rows_of(tmp_path / name, case)[1, 0])
    with pytest.raises(ValueError, match=r"contains inf in row 1"):
        as_view(tmp_path / name)


def test_texts_in_memory_that_float64_cannot_hold_are_refused() -> None:
    table = pd.DataFrame({"a": ["1.5", "2.5", "1e400"], "b": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"View 'labs', column 'a': 1e400 is too large"):
        as_view(table, name="labs")


def test_an_exponent_does_not_end_the_process(tmp_path: Path) -> None:
    path = tmp_path / "t.mtx"
    path.write_text(f"{ARRAY}1 2\n1e3000000000\n2\n")
    assert path.stat().st_size < 100
    script = f"from viewfold.data import read\ntry: read({str(path)!r})\nexcept ValueError: pass"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
