"""What a CSV file may look like: ids, rows and levels that are read, and errors with their line."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

from viewfold.data import files as io
from viewfold.data.codes import Cells, Codes

NAN, INF = float("nan"), float("inf")
READ = {
    "numbers": (
        "id,a,b\np1,1,2.5\np2,-3e2,.5\np3,+4,nan\n",
        (["p1", "p2", "p3"], [[1.0, 2.5], [-300.0, 0.5], [4.0, NAN]], {}),
    ),
    "numbers in space": ("id,a\np1, 1\np2,2 \n", (["p1", "p2"], [[1.0], [2.0]], {})),
    "missing cells": (
        "id,a,b\np1,,NA\np2,2,?\np3,-,3\n",
        (["p1", "p2", "p3"], [[NAN, NAN], [2.0, NAN], [NAN, 3.0]], {}),
    ),
    "categories": (
        "id,ward,a\np1,ICU,1\np2,ER,2\np3,,3\np4,ICU,4\n",
        (
            ["p1", "p2", "p3", "p4"],
            [[0.0, 1.0], [1.0, 2.0], [NAN, 3.0], [0.0, 4.0]],
            {"ward": ("category", {"ICU": 0, "ER": 1}, set())},
        ),
    ),
    "dates": (
        "id,when,a\np1,2024-01-05,1\np2,2024-02-29,2\np3,,3\np4,2023-12-31,4\n",
        (
            ["p1", "p2", "p3", "p4"],
            [[19727.0, 1.0], [19782.0, 2.0], [NAN, 3.0], [19722.0, 4.0]],
            {"when": ("date", {}, {19722, 19782, 19727})},
        ),
    ),
    "times": (
        "id,when\np1,2024-01-05T10:00:00\np2,2024-01-06 11:30\np3,2024-01-05T10:00:00\n",
        (
            ["p1", "p2", "p3"],
            [[19727.416666666668], [19728.479166666668], [19727.416666666668]],
            {"when": ("date", {}, {19728, 19727})},
        ),
    ),
    "zones": (
        "id,when\np1,2024-01-05T10:00:00Z\np2,2024-01-06T11:30:00+02:00\n",
        (
            ["p1", "p2"],
            [[19727.416666666668], [19728.395833333332]],
            {"when": ("date", {}, {19728, 19727})},
        ),
    ),
    "flags": ("id,a\np1,true\np2,False\np3,\n", (["p1", "p2", "p3"], [[1.0], [0.0], [NAN]], {})),
    "quotes": (
        'id,"a ""b""",c\n"p,1",1,"2"\n"p\n2",3,4\n',
        (["p,1", "p\n2"], [[1.0, 2.0], [3.0, 4.0]], {}),
    ),
    "blank lines": (
        "id,a,b\n\np1,1,2\n\n\np2,3,4\n\n",
        (["p1", "p2"], [[1.0, 2.0], [3.0, 4.0]], {}),
    ),
    "lines of Windows": ("id,a\r\np1,1\r\np2,2\r\n", (["p1", "p2"], [[1.0], [2.0]], {})),
    "whole numbers as ids": ("id,a\n7,1\n-12,2\n", ([7, -12], [[1.0], [2.0]], {})),
    "numbers with zeros as ids": ("id,a\n007,1\n7,2\n", (["007", "7"], [[1.0], [2.0]], {})),
    "decimal commas": (
        "id;a;b\np1;1,5;2\np2;-3,25;4\n",
        (["p1", "p2"], [[1.5, 2.0], [-3.25, 4.0]], {}),
    ),
    "no end of line": ("id,a\np1,1\np2,2", (["p1", "p2"], [[1.0], [2.0]], {})),
    "a single column": ("a\n1\n\n3\n", ([], [[1.0], [NAN], [3.0]], {})),
    "no header": ("1,2\n3,4\n", ([], [[1.0, 2.0], [3.0, 4.0]], {})),
    "infinite": ("id,a\np1,inf\np2,-Infinity\n", (["p1", "p2"], [[INF], [-INF]], {})),
    "a mark at the start": ("\ufeffid,a\np1,1\n", (["p1"], [[1.0]], {})),
}
WHY = {
    "a word": "line 202, column 'a': 'high' is not a number",
    "a word among flags": "line 202, column 'a': 'maybe' is not a number",
    "a cell too many": "line 3: 3 cells where the first line has 2",
    "a cell too few": "line 3: 2 cells where the first line has 3",
    "no id": "line 3: the id 'NA' says that there is none",
    "a mark in an id": "line 3: the id '\\ufeffp2' holds an invisible mark",
    "a space that is none": "There is space around it, or what looks like it",
    "another decimal sign": "line 202, column 'a': '1.5' is not a number. Other cells have ','",
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
    return ids, [row for _, rows in batches for row in rows.tolist()], told


@pytest.mark.parametrize("name", READ)
@pytest.mark.filterwarnings("ignore:.*decimal signs")
def test_what_people_write_is_read(name: str, tmp_path: Path) -> None:
    text, (ids, rows, told) = READ[name]
    found, numbers, told_of = read(tmp_path / "a.csv", text)
    assert found == ids
    np.testing.assert_array_equal(numbers, rows)
    assert told_of == told


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore:.*decimal signs")
def test_what_cannot_be_read_is_told_with_its_line(name: str, tmp_path: Path) -> None:
    with pytest.raises(io.FileError, match=re.escape(WHY[name])):
        read(tmp_path / "a.csv", REFUSED[name])


def test_a_line_is_the_line_of_an_editor(tmp_path: Path) -> None:
    """Rows of several lines and blank ones count."""
    rows = "".join(f"p{i},1\n" for i in range(150))
    with pytest.raises(io.FileError, match=r"line 155, column 'a': 'high' is not a number"):
        read(tmp_path / "a.csv", f'id,a\n"a\nb",1\n\n{rows}q,high\n')


def test_a_quote_that_is_not_closed_is_told(tmp_path: Path) -> None:
    rows = "".join(f"p{i},1\n" for i in range(150))
    with pytest.raises(io.FileError, match=re.escape("a quote is opened and not closed")):
        read(tmp_path / "a.csv", f'id,a\n{rows}q,"1\n')


def test_blocks_of_rows_are_one_table(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("viewfold.data.text._BLOCK_CELLS", 1)
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
