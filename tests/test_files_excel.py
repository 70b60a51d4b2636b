"""Sheets of Excel workbooks are views; what could do harm, or could be misread, is refused."""

from __future__ import annotations

import re
import sys
import zipfile
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from io_files import IDS, X, dense
from ugly_files import add_to_archive, sheet_of, write_workbook

from viewfold import as_view, as_views
from viewfold.data import guard
from viewfold.data.files import File

pytest.importorskip("openpyxl")


def test_the_only_sheet_is_a_view_called_like_the_file(tmp_path: Path) -> None:
    view = as_view(write_workbook(tmp_path / "labs.xlsx", Sheet1=sheet_of(), Sheet2=[]), ids="id")
    assert (view.name, view.features) == ("labs", ("age", "iron", "zinc"))
    assert list(view.ids) == IDS
    assert np.array_equal(dense(view), X)


def test_sheets_are_views_and_can_be_chosen(tmp_path: Path) -> None:
    rows = sheet_of()
    path = write_workbook(tmp_path / "all.xlsx", labs=rows, scan=rows[:3], notes=[["to do"], ["a"]])
    with pytest.raises(ValueError, match=r"sheet 'notes': .*choose other sheets with sheet=…"):
        as_views(path, ids="id")
    views = as_views(File(path, sheet=["labs", "scan"]), ids="id")
    assert [(view.name, view.shape) for view in views] == [("labs", (4, 3)), ("scan", (2, 3))]
    assert as_view(File(path, sheet="scan"), ids="id").name == "scan"
    with pytest.raises(ValueError, match=r"no sheet 'mri'\. It has 'labs', 'scan', 'notes'"):
        as_view(File(path, sheet="mri"))


def test_cells_are_read_as_people_leave_them(tmp_path: Path) -> None:
    rows = [
        ["id", "x", "flag"],
        [7, 1, True],
        [],
        ["007", "#N/A", None],
        [8.0, -2.5, False],
        [None],
    ]
    view = as_view(write_workbook(tmp_path / "a.xlsx", a=rows), ids="id")
    assert list(view.ids) == ["7", "8"]  # 007 has no value at all
    assert dense(view).tolist() == [[1, 1], [-2.5, 0]]


BAD = {
    "text": ([["id", "x"], ["a", 1], ["b", "high"]], "row 3, column 'x': 'high' is not a number"),
    "late text": ([["id", "x"], *[[f"p{i}", 1] for i in range(200)], ["z", "1,5"]],
                  "row 202, column 'x': '1,5' is not a number"),
    "no id": ([["id", "x"], ["a", 1], [None, 2]], "row 3: there is no id"),
    "date as id": ([["id", "x"], [date(2020, 1, 2), 1]], "row 2: the id '2020-01-02 00:00:00' is"),
    "half as id": ([["id", "x"], [1.5, 1]], "row 2: the id 1.5 is a float. Ids are whole numbers"),
    "unnamed": ([["id", "x"], ["a", 1, 5]], "row 2: 3 cells where the first row has 2"),
    "no rows": ([["id", "x"]], "there are columns, but no rows"),
    "same names": ([["id", "x", "x"], ["a", 1, 2]], "2 columns are called 'x'"),
    "formula": ([["id", "x"], ["a", "=1+1"]], "row 2, column 2: a formula without a result"),
    "empty": ([], "every sheet is empty"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_sheets_are_named_with_row_and_column(case: str, tmp_path: Path) -> None:
    rows, message = BAD[case]
    path = write_workbook(tmp_path / "a.xlsx", labs=rows)
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        as_view(path, ids="id")
    assert str(path) in str(error.value)


def test_a_formula_counts_as_its_result(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "a.xlsx", labs=[["id", "x"], ["a", "=1+1"], ["b", 5]])
    name = "xl/worksheets/sheet1.xml"
    text = zipfile.ZipFile(path).read(name)
    result, many = re.subn(rb"</f><v ?/?>(</v>)?", b"</f><v>2</v>", text)
    assert many == 1
    add_to_archive(path, name, result)
    assert dense(as_view(path, ids="id")).tolist() == [[2], [5]]


HOSTILE = {
    "macros": ("xl/vbaProject.bin", b"\xd0\xcf", "it holds macros"),
    "entities": (
        "xl/sharedStrings.xml",
        b" " * (2**20 - 3) + b'<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>',
        "xl/sharedStrings.xml is not as spreadsheet programs write it",
    ),
    "entities in UTF-16": (
        "xl/styles.xml", "<!DOCTYPE x>".encode("utf-16"), "xl/styles.xml is not as spreadsheet",
    ),
    "bomb": ("xl/worksheets/sheet1.xml", b"<worksheet>" + b" " * (30 * 2**20), "MB of text, but"),
    "texts": ("xl/sharedStrings.xml", b" " * (5 * 2**20), "would take 42.1 MB of memory, but"),
    "texts under another name": ("xl/sheets.bin", b" " * (5 * 2**20), "xl/sheets.bin would take"),
    "entities under another name": ("xl/a.bin", b" <!DOCTYPE x>", "xl/a.bin is not as spreadsheet"),
    "a far row": (
        "xl/worksheets/sheet1.xml",
        b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        b'<row r="1"><c r="A1" t="inlineStr"><is><t>x</t></is></c></row>'
        b'<row r="2000000000"><c r="A2000000000"><v>1</v></c></row></sheetData></worksheet>',
        "more rows or columns than Excel has",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_workbooks_made_to_do_harm_are_refused(case: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(guard, "HARMLESS", 10 * 2**20)
    name, content, message = HOSTILE[case]
    path = write_workbook(tmp_path / "a.xlsx", labs=sheet_of())
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        as_view(add_to_archive(path, name, content))
    assert str(path) in str(error.value)


def test_texts_that_call_themselves_a_sheet_count_as_texts(tmp_path: Path, monkeypatch) -> None:
    """Sheets are read row by row, shared texts at once: a part must not be both."""
    path = write_workbook(tmp_path / "a.xlsx", labs=sheet_of())
    types = zipfile.ZipFile(path).read("[Content_Types].xml")
    for kind in ("sharedStrings", "worksheet"):  # instead of a sheet, and besides being one
        part = f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}+xml"/>'
        forged = types.replace(b"</Types>", part.encode() + b"</Types>")
        add_to_archive(path, "[Content_Types].xml", forged)
        add_to_archive(path, "xl/worksheets/sheet1.xml", b" " * 2**20)
        monkeypatch.setattr(guard, "HARMLESS", 1000)
        with pytest.raises(ValueError, match=r"sheet1\.xml would take .* of memory"):
            as_view(path, ids="id")


def test_what_is_no_workbook_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"\x89PNG\r\n")
    with pytest.raises(ValueError, match="cannot be read as an Excel workbook"):
        as_view(tmp_path / "a.xlsx")


def test_rows_that_do_not_fit_the_disk_are_refused(tmp_path: Path, monkeypatch) -> None:
    path = write_workbook(tmp_path / "a.xlsx", a=[["x"], *[[i] for i in range(3000)]])
    monkeypatch.setattr(guard, "HARMLESS", 16)
    monkeypatch.setattr(guard, "free_disk", lambda: 20_000)
    with pytest.raises(ValueError, match=r"24 KB of disk, but 20 KB are free"):
        as_view(path)


def test_the_extra_is_named_where_it_is_missing(tmp_path: Path, monkeypatch) -> None:
    path = write_workbook(tmp_path / "a.xlsx", labs=sheet_of())
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'viewfold[excel]'")):
        as_view(path)


def test_categories_and_dates_of_sheets_are_understood_as_elsewhere(tmp_path: Path) -> None:
    days = [date(2020, 1, 1), date(2020, 1, 3), None, date(2020, 2, 1)]
    wards = ["ICU", "ER", "n/a", "ICU"]
    rows = [["id", "x", "ward", "day"], *zip(IDS, [1, 2, 3, 4], wards, days, strict=True)]
    frame = pd.DataFrame(rows[1:], columns=rows[0]).astype({"day": "datetime64[us]"})
    frame.to_parquet(tmp_path / "b.parquet", index=False)
    path = write_workbook(tmp_path / "a.xlsx", a=rows)
    for asked in ({"drop": ["ward", "day"]}, {"columns": ["x"]}):
        view = as_view(path, ids="id", **asked)
        assert (view.features, view.shape) == (("x",), (4, 1))
    full = [row for row in rows if row[0] != IDS[2]]
    here = as_view(write_workbook(tmp_path / "c.xlsx", a=full), ids="id")
    frame.drop(index=2).to_parquet(tmp_path / "c.parquet", index=False)
    there = as_view(tmp_path / "c.parquet", ids="id")
    assert here.features == there.features
    assert {"ward=ICU", "ward=ER"} <= set(here.features)
    assert np.array_equal(dense(here), dense(there))


def test_numbers_in_another_notation_are_no_categories(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id;x\n" + "".join(f"{who};{i}.250,5\n" for i, who in enumerate(IDS, 1)))
    with pytest.raises(ValueError, match=r"'1\.250,5' is not a number.*thousands='\.'"):
        as_view(path, ids="id", as_is=True)
    with pytest.warns(UserWarning, match="'.' separates thousands"):
        assert as_view(path, ids="id").rows.X.ravel().tolist() == [1250.5, 2250.5, 3250.5, 4250.5]
    assert as_view(path, ids="id", categories=["x"]).shape == (4, 4)
