"""Exports are cleaned as a person would, told, remembered, and left as they are if one asks."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cli import Run, run  # noqa: F401
from ugly_exports import judge, write_exports

import viewfold
from viewfold import ViewFold, as_view, inspect_views
from viewfold._util.file import ReadOptions
from viewfold.data import File
from viewfold.data.cleaning import Form, Totals, find_forms, find_table, joined_names

N = 40
RNG = np.random.default_rng(0)


def form_of(cells: list[str], **said: Any) -> str | None:
    found = find_forms({"x": cells}, ReadOptions.of(**said)).forms
    return str(found["x"]) if found else None


def write(path: Path, names: str, *columns: list[Any], sep: str = ";") -> Path:
    rows = zip(*columns, strict=True)
    path.write_text("\n".join([names, *(sep.join(map(str, row)) for row in rows)]) + "\n")
    return path


IDS = [f"p{i}" for i in range(N)]
VALUES = RNG.lognormal(7, 1, N).round(2)


def german(value: float) -> str:
    return f"{value:,.2f}".translate({44: ".", 46: ","})


def test_fifty_exports_are_understood(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    with warnings.catch_warnings(action="ignore"):
        verdicts = [judge(export) for export in write_exports(tmp_path)]
    told = [f"{v.export.number}: {v.why} {v.wrong}" for v in verdicts if not v.right]
    assert len(verdicts) == 50
    assert all(v.ids_right for v in verdicts), told
    assert not any(v.wrong for v in verdicts), told
    assert sum(v.right for v in verdicts) >= 45, told


@pytest.mark.parametrize(
    ("cells", "form", "values"),
    [
        (["1.234,50 €", "12,00 €"], "number:,.", ["1234.50", "12.00"]),
        (["$1,107", "$61.80"], "number:.,", ["1107", "61.80"]),
        (["1,107", "61.8%", "7%"], "number:.,", ["1107", "61.8", "7"]),
        (["1'234.5", "(7.5)"], "number:.'", ["1234.5", "-7.5"]),
        (["1\u202f234,5", "7-"], "number:, ", ["1234.5", "-7"]),
        (["\u22121.5", "2.5"], "number:.", ["-1.5", "2.5"]),
        (["0,5", "k.A."], None, None),  # one cell decides nothing
        (["0,5", "2,5", "k.A."], "number:,", ["0.5", "2.5", ""]),
        (["31.01.2024", "02.03.2024"], "date:dmy", ["2024-01-31", "2024-03-02"]),
        (["01/31/2024", "02/03/2024 9:05"], "date:mdy", ["2024-01-31", "2024-02-03 09:05"]),
        (["31/01/2024", "01/31/2024"], None, None),  # neither order
        (["1:20:53", "20:53"], "duration:", ["4853", "1253"]),
        (["1h 30m", "2 min 5 s"], "duration:", ["5400", "125"]),
        (["Ja", "nein"], "flag:ja/nein", ["1", "0"]),
        (["00123", "4567"], "code:", ["00123", "4567"]),
        (["5 mg", "3 kg"], None, None),  # two units
        (["5.1 mg", "3", "4", "5"], None, None),  # a unit in a few cells
        (["1.5", "2"], None, None),
        (["2024-01-31", "2024-02-01"], None, None),
        (["1A", "2A"], None, None),
        (["ICU 1", "ICU 2"], None, None),  # three letters are no currency
        (["EUR 1,50", "EUR 2,25"], "number:,", ["1.50", "2.25"]),
    ],
)
def test_all_cells_of_a_column_tell_how_it_is_written(
    cells: list[str], form: str | None, values: list[str] | None
) -> None:
    assert form_of(cells) == form
    if form is not None:
        assert [Form.of(form).rewrite(cell) for cell in cells] == values
    assert form_of(cells, as_is=True) is None


def test_another_column_decides_what_one_leaves_open(tmp_path: Path) -> None:
    open_, share = ["1,107", "2,310"] * 20, ["61.8%", "7.25%"] * 20
    path = write(tmp_path / "a.csv", "id\tvisits\tshare", IDS, open_, share, sep="\t")
    with pytest.warns(UserWarning, match="separates thousands|cleaned"):
        assert as_view(path, ids="id").rows.X[0].tolist() == [1107, 61.8]
    share = [cell.replace(".", ",") for cell in share]
    path = write(tmp_path / "a.csv", "id\tvisits\tshare", IDS, open_, share, sep="\t")
    with pytest.warns(UserWarning, match="commas are decimal signs"):
        assert as_view(path, ids="id").rows.X[0].tolist() == [1.107, 61.8]
    # Where nothing decides, there are two commands.
    path = write(tmp_path / "a.csv", "id\tvisits", IDS, open_, sep="\t")
    (found,) = inspect_views(path)
    ((said, choices),) = found.undecided
    assert "'1,107' is 1.107 (decimal=',') or 1107 (thousands=',')" in said
    assert choices == ({"decimal": ","}, {"thousands": ","})
    with pytest.raises(ValueError, match="line 2, column 'visits'"):
        as_view(path, ids="id")


def test_dates_that_may_be_either_are_asked_about(tmp_path: Path, run: Run) -> None:  # noqa: F811
    days = [f"{i % 12 + 1:02}/{i % 9 + 1:02}/2024" for i in range(N)]
    write(Path("a.csv"), "id,x,seen", IDS, VALUES.tolist(), days, sep=",")
    out = run("inspect a.csv")[1]
    assert "undecided" in out
    assert "either viewfold add a.vf a.csv --id id --day-first" in out
    assert "or     viewfold add a.vf a.csv --id id --month-first" in out
    assert run("add a.vf a.csv --id id --clusters 2")[0] == 1
    assert run("add a.vf a.csv --month-first --id id --clusters 2")[0] == 0


def test_a_cleaning_is_told_remembered_and_undone(tmp_path: Path, run: Run) -> None:  # noqa: F811
    names = "Kundennummer;Umsatz;Art"
    ids = [str(1000 + i) for i in range(N)]
    kinds = ["a", "b"] * (N // 2)
    write(Path("shop.csv"), names, ids, [f"{german(v)} €" for v in VALUES], kinds)
    assert "'Umsatz'" in run("inspect shop.csv")[1].partition("cleaned")[2]
    code, _, said = run("add s.vf shop.csv --clusters 2")
    assert code == 0
    assert "€' is " in said
    record = viewfold.load("s.vf").views_[0]
    assert record.source.cleaning["Umsatz"] == "number:,."
    # These rows alone would not tell: the state does.
    write(Path("shop.csv"), names, ids[:12], ["1.234 €", "2.345 €"] * 6, kinds[:12])
    assert "'Umsatz': '1.234 €' is 1234" in run("inspect shop.csv --state s.vf")[1]
    assert "'Umsatz': '1.234 €' is 1234" in run("add s.vf shop.csv")[2]
    assert "undecided" in run("inspect shop.csv")[1]
    code, _, said = run("add t.vf shop.csv --as-is --id Kundennummer --clusters 2")
    assert code == 1
    assert "numbers with '€'" in said


def test_as_is_reads_numbers_as_python_does(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id;x", IDS, [german(v) for v in VALUES / 1e4])
    with pytest.raises(ValueError, match=r"is not a number. If it is one, say decimal=','"):
        as_view(path, ids="id", as_is=True)
    view = as_view(File(path, decimal=","), ids="id", as_is=True)
    assert np.allclose(view.rows.X[:, 0], (VALUES / 1e4).round(2))


def test_a_sheet_is_read_as_a_text_of_its_cells_is(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    rows = [["id", "x", None, "seen"], ["p1", 1.5, None, "01.02.2024"], ["p2", "2,5", None, None]]
    rows += [[f"q{i}", f"{i},25", None, "13.02.2024"] for i in range(9)]

    def sheet(name: str) -> Path:
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(tmp_path / name)
        return tmp_path / name

    with pytest.warns(UserWarning, match="left out column 3, which is empty"):
        view = as_view(sheet("a.xlsx"), ids="id")
    assert view.rows.X[:3, 0].tolist() == [1.5, 2.5, 0.25]
    assert view.features == ("x", "seen.days", "seen.weekday.sin", "seen.weekday.cos")
    rows[1][1] = True
    with pytest.raises(ValueError, match="'Sheet', row 2, column 'x': 'True' is not a number"):
        as_view(sheet("b.xlsx"), ids="id")


def test_later_cells_have_to_fit(tmp_path: Path) -> None:
    cells = [f"{german(v)} €" for v in np.tile(VALUES, 60)]
    ids = [f"p{i}" for i in range(len(cells))]
    path = write(tmp_path / "a.csv", "id;x", ids, [*cells[:-1], "12.5 $ or so"])
    with pytest.raises(ValueError, match=f"line {len(cells) + 1}, column 'x': '12.5"):
        as_view(path, ids="id")


def test_titles_names_and_units_are_found() -> None:
    body = [["p1", "1.5", "x", "7"], ["p2", "2.5", "y", "8"], ["p3", "", "z", "9"]]
    assert find_table([["id", "a", "b", "c"], *body]).told == []
    rows = [["Report"], [], ["", "Sales", "", "Web"], ["id", "a", "b", "c"], *body, *body]
    place = find_table(rows)
    assert (place.skip, place.header) == (2, 2)
    assert joined_names(rows[2:4]) == ["id", "Sales a", "Sales b", "Web c"]
    assert joined_names([["id", "a", "b"], ["", "kg", ""]]) == ["id", "a kg", "b"]


def test_a_row_of_sums_is_told_by_its_values(tmp_path: Path) -> None:
    totals = Totals(2)
    totals.add(np.array([[1.0, 10], [2, 20], [3, np.nan]]))
    nothing = np.zeros(0)
    assert totals.are_in(np.array([6.0, np.nan]), lambda j: nothing)
    assert totals.are_in(np.array([6.0, 15.0]), lambda j: nothing)  # a sum and a mean
    assert not totals.are_in(np.array([6.0, 16.0]), lambda j: nothing)
    assert not totals.are_in(np.array([2.0, 15.0]), lambda j: nothing)  # no sum
    ids, values = ["Whatever", *IDS], [VALUES.sum().round(2), *VALUES]
    path = write(tmp_path / "a.csv", "id;x;y", ids[::-1], values[::-1], values[::-1])
    with pytest.warns(UserWarning, match=f"line {N + 2} holds totals"):
        assert as_view(path, ids="id").shape == (N, 2)
    assert as_view(path, ids="id", as_is=True).shape == (N + 1, 2)


def test_identical_rows_count_once_and_others_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id;x", [*IDS, "p3"], [*VALUES, VALUES[3]])
    with pytest.warns(UserWarning, match="1 rows are there twice"):
        assert as_view(path, ids="id").shape == (N, 1)
    for cells, as_is in (([*VALUES, 1.5], False), ([*VALUES, VALUES[3]], True)):
        path = write(tmp_path / "a.csv", "id;x", [*IDS, "p3"], cells)
        with pytest.raises(ValueError, match="duplicate ids"):
            as_view(path, ids="id", as_is=as_is)


def test_whole_numbers_that_name_things_are_no_features(tmp_path: Path) -> None:
    bills, zips = [str(50000 + 7 * i) for i in range(N)], [f"0{100 + i % 3}" for i in range(N)]
    path = write(tmp_path / "a.csv", "id;x;paid;zip", IDS, VALUES.tolist(), bills, zips)
    with warnings.catch_warnings(record=True, action="always") as told:
        view = as_view(path, ids="id")
    assert view.features == ("x", "zip=0100", "zip=0101", "zip=0102")
    assert any("'paid'" in str(one.message) for one in told)
    assert "paid" in (as_view(path, ids="id", columns=["x", "paid"]).features or ())


def test_zeros_that_a_spreadsheet_dropped_are_put_back(tmp_path: Path) -> None:
    model = ViewFold(2, random_state=0)
    X = RNG.normal(size=(N, 3))
    model.partial_fit(X, ids=[f"{i:05}" for i in range(N)], view="a")
    with pytest.warns(UserWarning, match="ids such as 2 are taken for 00002"):
        model.partial_fit(X[:, :2], ids=range(2, N + 2), view="b")
    assert set(model.ids_) == {f"{i:05}" for i in range(N + 2)}
    plain = ViewFold(2, random_state=0).partial_fit(X, ids=IDS, view="a")
    with pytest.raises(ValueError, match="whole numbers"):
        plain.partial_fit(X[:, :2], ids=range(2, N + 2), view="b")


def test_ids_may_be_in_two_columns(tmp_path: Path, run: Run) -> None:  # noqa: F811
    first, last = ["Ann", "Bob"] * (N // 2), [f"Lee{i // 2}" for i in range(N)]
    write(Path("a.csv"), "first,last,x", first, last, VALUES.tolist(), sep=",")
    assert "--id first,last" in run("inspect a.csv")[1]
    assert run("add a.vf a.csv --id first,last --clusters 2")[0] == 0
    assert viewfold.load("a.vf").ids_[0] == "Ann/Lee0"
    assert viewfold.load("a.vf").views_[0].features == ("x",)


def test_ids_are_asked_about_where_two_columns_may_hold_them(run: Run) -> None:  # noqa: F811
    others = [f"q{i}" for i in range(N)]
    write(Path("a.csv"), "case_id,sample_id,x", IDS, others, VALUES.tolist(), sep=",")
    out = run("inspect a.csv")[1]
    assert "--id case_id" in out.partition("either")[2]
    assert "--id sample_id" in out.partition("either")[2]
    assert run("add a.vf a.csv --clusters 2")[0] == 1
    # The samples of a state tell.
    assert run("add a.vf a.csv --id sample_id --clusters 2")[0] == 0
    write(Path("b.csv"), "case_id,sample_id,y", IDS, others, VALUES.tolist(), sep=",")
    assert "--id sample_id" in run("inspect b.csv --state a.vf")[1].partition("next:")[2]
