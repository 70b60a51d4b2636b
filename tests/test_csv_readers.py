"""Arrow reads a CSV file fast, Python reads it without Arrow: rows and errors are the same."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

from viewfold.data import _csv_rows
from viewfold.data import files as io
from viewfold.data.codes import Cells, Codes

READ = {
    "numbers": "id,a,b\np1,1,2.5\np2,-3e2,.5\np3,+4,nan\n",
    "numbers in space": "id,a\np1, 1\np2,2 \n",
    "missing cells": "id,a,b\np1,,NA\np2,2,?\np3,-,3\n",
    "categories": "id,ward,a\np1,ICU,1\np2,ER,2\np3,,3\np4,ICU,4\n",
    "dates": "id,when,a\np1,2024-01-05,1\np2,2024-02-29,2\np3,,3\np4,2023-12-31,4\n",
    "times": "id,when\np1,2024-01-05T10:00:00\np2,2024-01-06 11:30\np3,2024-01-05T10:00:00\n",
    "zones": "id,when\np1,2024-01-05T10:00:00Z\np2,2024-01-06T11:30:00+02:00\n",
    "flags": "id,a\np1,true\np2,False\np3,\n",
    "quotes": 'id,"a ""b""",c\n"p,1",1,"2"\n"p\n2",3,4\n',
    "blank lines": "id,a,b\n\np1,1,2\n\n\np2,3,4\n\n",
    "lines of Windows": "id,a\r\np1,1\r\np2,2\r\n",
    "whole numbers as ids": "id,a\n7,1\n-12,2\n",
    "numbers with zeros as ids": "id,a\n007,1\n7,2\n",
    "decimal commas": "id;a;b\np1;1,5;2\np2;-3,25;4\n",
    "no end of line": "id,a\np1,1\np2,2",
    "a single column": "a\n1\n\n3\n",
    "no header": "1,2\n3,4\n",
    "infinite": "id,a\np1,inf\np2,-Infinity\n",
    "a mark at the start": "\ufeffid,a\np1,1\n",
}
REFUSED = {
    "a word": "id,a\n" + "".join(f"p{i},1\n" for i in range(200)) + "q,high\n",
    "a word among flags": "id,a\n" + "".join(f"p{i},true\n" for i in range(200)) + "q,maybe\n",
    "a cell too many": "id,a\np1,1\np2,2,3\n",
    "a cell too few": "id,a,b\np1,1,2\np2,2\n",
    "no id": "id,a\np1,1\nNA,2\n",
    "a mark in an id": "id,a\np1,1\n\ufeffp2,2\n",
    "a space that is none": "id,a\n" + "p,1\n".replace("p", "p0") + "p1,1\u00a0\n",
    "another decimal sign": "id;a\np0;1,5\n"
    + "".join(f"p{i};2,5\n" for i in range(1, 200))
    + "q;1.5\n",
}


def read(path: Path, text: str) -> tuple[list, list, dict]:
    path.write_text(text, encoding="utf-8", newline="")
    first = text.lstrip("\ufeff").split("\n")[0].strip()
    view = io.read(path, ids="id" if first.startswith("id") else None)["a"]
    batches = list(view.rows)
    ids = [one for known, _ in batches if known is not None for one in known.tolist()]
    told = {name: (codes.kind, codes.levels, codes.days) for name, codes in view.codes.items()}
    return ids, [rows.tolist() for _, rows in batches], told


@pytest.mark.parametrize("name", READ)
@pytest.mark.filterwarnings("ignore:.*decimal signs")
def test_both_readers_read_the_same(name: str, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("pyarrow")
    ids, rows, told = read(tmp_path / "a.csv", READ[name])
    monkeypatch.setattr(_csv_rows, "_arrow", lambda: None)
    again, same, told_again = read(tmp_path / "a.csv", READ[name])
    assert ids == again
    np.testing.assert_array_equal(np.vstack(rows), np.vstack(same))
    assert told == told_again


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore:.*decimal signs")
def test_both_readers_refuse_the_same(name: str, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(io.FileError) as first:
        read(tmp_path / "a.csv", REFUSED[name])
    monkeypatch.setattr(_csv_rows, "_arrow", lambda: None)
    with pytest.raises(io.FileError) as second:
        read(tmp_path / "a.csv", REFUSED[name])
    assert str(first.value) == str(second.value)


def test_a_line_is_the_line_of_an_editor(tmp_path: Path, monkeypatch) -> None:
    """Rows of several lines and blank ones count, where Python reads."""
    monkeypatch.setattr(_csv_rows, "_arrow", lambda: None)
    rows = "".join(f"p{i},1\n" for i in range(150))
    with pytest.raises(io.FileError, match=r"line 155, column 'a': 'high' is not a number"):
        read(tmp_path / "a.csv", f'id,a\n"a\nb",1\n\n{rows}q,high\n')


def test_a_quote_that_is_not_closed_is_told(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(_csv_rows, "_arrow", lambda: None)
    rows = "".join(f"p{i},1\n" for i in range(150))
    with pytest.raises(io.FileError, match=re.escape("a quote is opened and not closed")):
        read(tmp_path / "a.csv", f'id,a\n{rows}q,"1\n')


def test_blocks_of_rows_are_one_table(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(_csv_rows, "_arrow", lambda: None)
    monkeypatch.setattr(_csv_rows, "_BLOCK_CELLS", 1)
    text = "id,a,ward\n" + "".join(f"p{i},{i},{'xyz'[i % 3]}\n" for i in range(200))
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write(text)
    view = io.read(tmp_path / "a.csv.gz", ids="id")["a"]
    batches = list(view.rows)
    assert [len(rows) for _, rows in batches] == [64, 64, 64, 8]
    whole = np.vstack([rows for _, rows in batches])
    assert whole[:, 0].tolist() == list(range(200))
    assert whole[:, 1].tolist() == [i % 3 for i in range(200)]


def test_cells_count_what_is_there_and_what_is_not() -> None:
    codes = Codes("ward", "labs.csv", frozenset(["NA", ""]))
    found = codes(Cells.of([" ICU ", "NA", None, "ICU", 7.0, "7"]))
    np.testing.assert_array_equal(found, [0, np.nan, np.nan, 0, 1, 1])
    assert (codes.kind, codes.n_cells, codes.n_missing, codes.repeats) == ("category", 4, 2, True)
