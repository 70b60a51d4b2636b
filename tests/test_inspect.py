"""`inspect` tells what add would understand, and the command that it prints does what it says."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Data
from ugly_files import german, sheet_of, write_text, write_workbook

import viewfold
from commands import Run, runner

RNG = np.random.default_rng(3)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run a command in an empty folder; return its exit code, output and messages."""
    monkeypatch.chdir(tmp_path)

    return runner(monkeypatch, capsys)


def _table(n: int = 40, first: int = 0) -> pd.DataFrame:
    """Return a table with a column of every kind."""
    rng, at = np.random.default_rng(first), np.arange(first, first + n)
    return pd.DataFrame(
        {
            "patient": [f"p{i}" for i in at],
            "iron": rng.normal(size=n).round(3),
            "smoker": at % 2 == 0,
            "ward": np.array(["ER", "ICU", "GW"])[at % 3],
            "admitted": [f"2024-0{i % 7 + 1}-1{i % 5}" for i in at],
            "note": [f"some words about {i}" for i in at],
        }
    )


def _views(run: Run, line: str) -> list[dict[str, Any]]:
    code, out, said = run(f"inspect {line} --json")
    assert code == 0, said
    views: list[dict[str, Any]] = json.loads(out)["views"]
    return views


def test_columns_ids_and_missing_cells_are_told(run: Run) -> None:
    table = _table()
    table.loc[:3, "iron"] = None
    table.loc[5:6, "ward"] = "NA"
    table.to_csv("labs.csv", index=False)
    (labs,) = _views(run, "labs.csv")
    assert labs["rows"] == 40
    assert labs["ids"]["column"] == "patient"
    assert labs["ids"]["proposed"]
    assert labs["ids"]["candidates"] == ["patient"]  # notes are free text
    assert labs["columns"] == {
        "numbers": 1,
        "booleans": ["smoker"],
        "categories": {"ward": ["ER", "GW", "ICU"]},
        "dates": ["admitted"],
        "left_out": {"note": "texts that are all different"},
    }
    assert labs["missing"] == {"cells": 6, "share": 6 / 200, "worst": {"iron": 4, "ward": 2}}
    assert labs["written"] == {"encoding": "utf-8", "delimiter": ",", "decimal": "."}
    assert not _views(run, "labs.csv --id note")[0]["ids"]["proposed"]
    shown = run("inspect labs.csv")[1]
    for fact in ("40 rows", "'patient' (proposed)", "ward (ER, GW, ICU)", "iron 10 %", "next: "):
        assert fact in shown


def test_ids_that_repeat_are_told(run: Run) -> None:
    rows = [f"p{i % 20},{i},{i % 3}" for i in range(40)]
    write_text(Path("labs.csv"), ["patient,a,b", *rows])
    assert any(
        "'patient' is called like ids" in note for note in _views(run, "labs.csv")[0]["notes"]
    )


def _german(folder: Path) -> str:
    write_text(folder / "labs.csv", german(thousands="."), "cp1252")
    return "labs.csv"


def _unclear(folder: Path) -> str:
    rows = [f"p{i};{100 + i},{100 + 7 * i}" for i in range(30)]
    write_text(folder / "labs.csv", ["patient;count", *rows])
    return "labs.csv"


def _codes_among_numbers(folder: Path) -> str:
    rows = [f"p{i},{i},{'low' if i % 4 == 0 else i % 3}" for i in range(40)]
    write_text(folder / "my labs.csv", ["patient,a,grade", *rows])
    return "'my labs.csv'"


def _pandas_index(folder: Path) -> str:
    frame = pd.DataFrame(RNG.normal(size=(20, 3)), columns=list("abc"))
    frame.set_index(pd.Index([f"p{i}" for i in range(20)], name="who")).to_parquet(
        folder / "labs.parquet"
    )
    return "labs.parquet"


def _no_name(folder: Path) -> str:
    frame = pd.DataFrame(RNG.normal(size=(20, 3)), index=[f"p{i}" for i in range(20)])
    frame.add_prefix("x").to_csv(folder / "labs.csv")
    return "labs.csv"


def _spans(folder: Path) -> str:
    frame = pd.DataFrame({"id": np.arange(20) + 100, "a, b": RNG.normal(size=20)})
    spans = pd.Series(pd.to_timedelta(np.arange(20), "h"))
    frame.assign(**{"stay, h": spans}).to_parquet(folder / "labs.parquet")
    return "labs.parquet"


def _sheets(folder: Path) -> str:
    other = [["case", "u", "v"], *([f"c{i}", i % 3, i % 7] for i in range(20))]
    write_workbook(folder / "all.xlsx", labs=sheet_of(), other=other)
    return "all.xlsx"


def _matrices(folder: Path) -> str:
    np.savez(folder / "two.npz", one=RNG.normal(size=(20, 4)), two=RNG.normal(size=(20, 3)))
    return "two.npz"


def _clean(folder: Path) -> str:
    np.save(folder / "rows.npy", RNG.normal(size=(20, 4)))
    return "rows.npy"


UGLY = [
    _german,
    _unclear,
    _codes_among_numbers,
    _pandas_index,
    _no_name,
    _spans,
    _sheets,
    _matrices,
    _clean,
]


@pytest.mark.parametrize("make", UGLY, ids=lambda make: make.__name__.strip("_"))
def test_the_command_that_is_printed_folds_what_was_told(
    run: Run, tmp_path: Path, make: Callable[[Path], str]
) -> None:
    views = _views(run, make(tmp_path))
    assert not list(tmp_path.glob("*.vf"))
    for view in views:
        # What cannot be decided has several commands; each of them folds the file.
        several = view["choose"] or [view["command"]]
        assert len(several) == (2 if make is _unclear else 1)
        line = several[-1]
        assert line.startswith("viewfold add "), view
        code, out, said = run(f"{line.removeprefix('viewfold ')} --json")
        assert code == 0, said
        (fold,) = json.loads(out)["folds"]
        assert fold["view"] == view["view"]
        assert fold["samples"] == view["rows"]


def test_what_add_refuses_is_said_in_its_words(run: Run, tmp_path: Path) -> None:
    for make in (_unclear, _codes_among_numbers):
        file = make(tmp_path)
        refused = run(f"add s.vf {file} --clusters 2")
        assert refused[0] == 1
        (view,) = _views(run, file)
        asked = [*view["problems"], *(one["about"] for one in view["undecided"])]
        assert refused[2].removeprefix("viewfold: ").strip() in asked


def test_where_no_option_helps_it_says_why_and_prints_no_command(run: Run) -> None:
    write_text(Path("labs.csv"), ["patient,a", "p1,1", "p2,inf", "p3,2"])
    (labs,) = _views(run, "labs.csv")
    assert labs["rows"] == 3
    assert "contains inf in row 1" in labs["refused"]
    assert labs["command"] is None
    assert "no option helps" in run("inspect labs.csv")[1]
    write_text(Path("labs.csv"), [""])
    code, _, said = run("inspect labs.csv")
    assert code == 1
    assert "empty" in said


def test_a_delimiter_at_the_end_of_each_line_makes_no_column(run: Run) -> None:
    rows = [f"p{i};{i};{i % 3};" for i in range(3000)]
    write_text(Path("labs.csv"), ["id;a;b;", *rows])
    (labs,) = _views(run, "labs.csv")
    assert labs["columns"]["numbers"] == 2
    assert "left out column 4, which is empty" in labs["cleaned"]
    assert "the column after 'b' has no name" in run("inspect labs.csv --as-is")[2]
    write_text(Path("labs.csv"), ["id;a;b;", *rows, "p3000;1;2;7"])  # it is not lost
    assert "a column without a name holds values" in run("inspect labs.csv")[2]


def test_samples_are_compared_with_those_of_a_state(run: Run) -> None:
    known = _table()
    known.to_csv("labs.csv", index=False)
    assert run("add s.vf labs.csv --id patient --clusters 3")[0] == 0
    came = _table(first=30)
    came.loc[0, "patient"] = "P30 "
    came.drop(columns="ward").assign(zinc=RNG.normal(size=40)).to_csv("scan.csv", index=False)
    before = Path("s.vf").read_bytes(), Path("s.vf").stat().st_mtime_ns
    (scan,) = _views(run, "scan.csv --state s.vf")
    samples = {"known": 9, "new": 31, "nearly_known": 1, "examples": [["P30 ", "p30"]]}
    assert scan["samples"] == {**samples, "in_view": 0, "fits": []}
    assert scan["command"] == "viewfold add s.vf scan.csv --id patient --similar-ids match"
    assert (Path("s.vf").read_bytes(), Path("s.vf").stat().st_mtime_ns) == before
    assert run(scan["command"].removeprefix("viewfold "))[0] == 0


def test_ids_are_found_by_what_a_state_knows(run: Run) -> None:
    frame = pd.DataFrame({"number": np.arange(30) + 500, "a": RNG.normal(size=30)})
    frame.to_csv("labs.csv", index=False)
    assert run("add s.vf labs.csv --id number --clusters 2")[0] == 0
    frame.rename(columns={"number": "n", "a": "b"}).to_csv("scan.csv", index=False)
    (scan,) = _views(run, "scan.csv --state s.vf")
    assert scan["ids"]["column"] == "n"
    assert scan["samples"]["known"] == 30


def test_a_view_that_is_known_is_recognised_by_its_columns(run: Run) -> None:
    _table().to_csv("labs.csv", index=False)
    assert run("add s.vf labs.csv --id patient --clusters 3")[0] == 0
    _table(first=35).to_csv("week2.csv", index=False)
    (found,) = _views(run, "week2.csv --state s.vf")
    assert found["samples"]["fits"] == ["labs"]
    assert found["command"].endswith("--id patient --view labs")
    (again,) = _views(run, "week2.csv --state s.vf --view labs")
    assert again["samples"]["in_view"] == 5
    assert again["command"] == found["command"]
    code, _, said = run(found["command"].removeprefix("viewfold "))
    assert code == 0, said
    assert viewfold.load("s.vf").ids_.size == 75
    _table().drop(columns="iron").to_csv("labs.csv", index=False)
    (other,) = _views(run, "labs.csv --state s.vf --id patient")
    assert other["refused"] is None
    assert any("('iron')" in note for note in other["notes"])


def test_a_file_with_the_columns_of_a_known_view_is_asked_about(run: Run) -> None:
    _table().to_csv("labs.csv", index=False)
    _table(first=35).to_csv("week2.csv", index=False)
    assert run("add s.vf labs.csv --id patient --clusters 3")[0] == 0
    question = "week2 has the columns of labs, and counts as another view."
    way_out = "add it with --view labs, once it is taken back (viewfold undo s.vf) if it was folded"
    for dry in ("--dry-run", ""):
        code, _, said = run(f"add s.vf week2.csv --id patient {dry}")
        assert code == 0
        assert f"{question} If it is more rows or corrections of labs, {way_out}." in said
    assert run("undo s.vf --yes")[0] == 0
    code, _, said = run("add s.vf week2.csv --id patient --view labs")
    assert code == 0
    assert "has the columns of" not in said
    _table().rename(columns={"iron": "zinc"}).to_csv("other.csv", index=False)
    assert "has the columns of" not in run("add s.vf other.csv --id patient")[2]


def test_a_column_that_nobody_left_out_is_proposed_to_be(run: Run) -> None:
    rows = [f"p{i},{i % 7},{i % 5},{i % 28 + 1:02}.03.2024" for i in range(40)]
    write_text(Path("labs.csv"), ["patient,a,b,seen", *rows])
    (labs,) = _views(run, "labs.csv")
    assert labs["columns"]["dates"] == ["seen"]
    assert "'seen': '01.03.2024' is 2024-03-01" in labs["cleaned"]
    (labs,) = _views(run, "labs.csv --as-is")
    assert labs["columns"]["left_out"] == {"seen": "proposed"}
    assert "Write them as 2024-12-31" in labs["undecided"][0]["about"]
    (labs,) = _views(run, "labs.csv --drop seen,b")
    assert labs["columns"]["left_out"] == {"seen": "as asked", "b": "as asked"}


def test_zeros_suspects_and_scaling_are_told(run: Run, data: Data) -> None:
    counts = RNG.poisson(0.4, size=(60, 40)) * (RNG.random((60, 40)) < 0.6) + np.eye(60, 40)
    counts[:, :12] += 1
    counts[:5] = 0
    np.save("words.npy", counts)
    (words,) = _views(run, "words.npy")
    with pytest.warns(UserWarning, match="hold nothing but zeros"):
        view = viewfold.as_view("words.npy")
    assert words["zero_rows"] == words["empty"] == view.n_empty == 5
    scores = np.random.default_rng(0).normal(size=(500, 20)) * np.arange(20, 0, -1)
    np.save("scores.npy", scores)
    assert _views(run, "scores.npy")[0]["scale"] == "center"
    np.save("labs.npy", data.views["labs"])
    assert _views(run, "labs.npy")[0]["scale"] == "zscore"
    marked = data.views["labs"][:, :3].copy()
    marked[::9, 1] = -999
    np.save("marked.npy", marked)
    assert _views(run, "marked.npy")[0]["suspects"] == {"-999": ["1"]}


@pytest.mark.parametrize(("cells", "told"), [(2, {}), (3, {"-999": ["1"]})])
def test_a_number_marks_missing_cells_if_three_hold_it(
    run: Run, data: Data, cells: int, told: dict[str, Any]
) -> None:
    marked = data.views["labs"][:, :3].copy()
    marked[:cells, 1] = -999
    np.save("marked.npy", marked)
    assert _views(run, "marked.npy")[0]["suspects"] == told


def test_python_gets_what_to_pass(tmp_path: Path) -> None:
    _codes_among_numbers(tmp_path)
    (found,) = viewfold.inspect_views(tmp_path / "my labs.csv")
    assert found.options == {"ids": "patient", "categories": ["grade"]}
    model = viewfold.ViewFold(2, random_state=0).partial_fit(found.source, **found.options)
    assert model.ids_.size == found.n_rows
    (known,) = viewfold.inspect_views(
        pd.DataFrame(np.eye(12)), model=model, ids=list("abcdefghijkl")
    )
    assert known.samples is not None
    assert (known.samples.n_known, known.samples.n_new) == (0, 12)


def test_objects_in_memory_are_looked_at_too(data: Data) -> None:
    labs, scan = viewfold.inspect_views({"labs": data.views["labs"], "scan": data.views["scan"]})
    assert [(one.name, one.n_rows, len(one.columns)) for one in (labs, scan)] == [
        ("labs", 160, 12),
        ("scan", 160, 30),
    ]
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(data.views["labs"], layers={"twice": 2 * data.views["labs"]})
    cells.obs_names = [f"c{i}" for i in range(160)]
    (found,) = viewfold.inspect_views(cells, layer="twice")
    assert found.has_ids
    assert found.options == {"layer": "twice"}
    with pytest.raises(TypeError, match="gives its batches once"):
        viewfold.inspect_views(iter([data.views["labs"]]))


def test_standard_input_is_read_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _table().to_csv("labs.csv", index=False)
    with open("labs.csv") as piped:
        monkeypatch.setattr(sys, "stdin", piped)
        (found,) = _views(run, "- --view labs")
    assert found["command"] == "viewfold add labs.vf - --id patient --view labs --clusters auto"
