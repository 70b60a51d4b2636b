"""Small helpers that many rooms share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from viewfold._util.arguments import check_arguments, is_whole_number, size_in_bytes, which_view
from viewfold._util.messages import (
    format_names,
    lacking,
    no_formula,
    short_repr,
    visible,
    visible_json,
)
from viewfold._util.table import Table
from viewfold._util.watch import counted, watching
from viewfold.app.output import replacing
from viewfold.cli.options import parse_share


def test_an_unknown_argument_is_refused_with_a_suggestion() -> None:
    with pytest.raises(TypeError, match=r"load\(\) has no argument 'engin'.*'engine'\?"):
        check_arguments("load", ["path", "engine"], {"engin": None})


def test_numbers_sizes_and_shares() -> None:
    assert [is_whole_number(n) for n in (1, np.int64(1), True, 1.0)] == [True, True, False, False]
    assert (size_in_bytes("4GB", "--memory"), size_in_bytes("500 m", "")) == (2**32, 500 * 2**20)
    with pytest.raises(ValueError, match="--memory lots is no size"):
        size_in_bytes("lots", "--memory lots")
    assert (parse_share("100", ""), parse_share("5%", ""), parse_share("0.05", "")) == (
        100,
        0.05,
        0.05,
    )
    with pytest.raises(ValueError, match="--max-moved '101%' is not a number"):
        parse_share("101%", "--max-moved")


def test_a_view_is_chosen_by_name_by_number_or_because_it_is_the_only_one() -> None:
    names = ["labs", "scan"]
    assert [which_view(names, one, "it has") for one in ("scan", 0, -1)] == [1, 0, 1]
    assert which_view(["labs"], None, "it has") == 0
    for wrong in ("mri", 2, -3, True):
        with pytest.raises(ValueError, match=f"There is no view {wrong!r}; it has"):
            which_view(names, wrong, "it has")


def test_text_of_others_is_shown_safely() -> None:
    assert visible("\x1b[31mred\N{RIGHT-TO-LEFT OVERRIDE} é") == "\\x1b[31mred\\u202e é"
    assert visible_json('"\x9b31m"') == '"\\u009b31m"'
    cells = {"=1+1": "'=1+1", "'=1+1": "''=1+1", "-5.5": "-5.5", "p7": "p7", "'p7": "'p7"}
    assert {text: no_formula(text) for text in cells} == cells
    assert format_names("abc", 2) == "'a', 'b', … (3 in all)"


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    said = str(lacking("s3://a/b.csv", "remote", ImportError("Install s3fs to access S3")))
    assert said == (
        "s3://a/b.csv: Install s3fs to access S3. Install what it needs with: "
        "pip install 'viewfold[remote]'"
    )


def test_a_record_shows_shapes_and_no_defaults() -> None:
    @dataclass(frozen=True, eq=False)
    class Map:
        weights: np.ndarray
        name: str = "map"
        __repr__ = short_repr

    assert repr(Map(np.zeros((40, 3)))) == "Map(weights=<float64 (40, 3)>)"
    assert repr(Map(np.zeros(2), "m")) == "Map(weights=<float64 (2,)>, name='m')"


def test_a_table_has_rows_as_python_has_them() -> None:
    table = Table({"id": np.array(["ann", "bob"], object), "cluster": np.array([1, 0])})
    assert (len(table), table.column_names) == (2, ["id", "cluster"])
    assert table.rows()[1] == {"id": "bob", "cluster": 0}


def test_blocks_are_counted_for_who_watches(capsys: pytest.CaptureFixture[str]) -> None:
    class Printer:
        def begin(self, total: float, unit: str) -> None:
            print(total, unit)

        def done(self, part: float) -> None:
            print(part)

    with watching(Printer()):
        assert list(counted(iter("ab"), 5, 3)) == ["a", "b"]
    assert capsys.readouterr().out == "5 rows\n3\n5\n"


def test_output_takes_the_place_of_a_file_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("old")
    with pytest.raises(TypeError), replacing(path, [".csv"]) as draft:
        draft.write_text(0)
    assert path.read_text() == "old"
    with replacing(path, [".csv"]) as draft:
        draft.write_text("id,cluster")
    assert path.read_text() == "id,cluster"
