"""Text is read as it was written, or refused with the option to say: none is silently misread."""

from __future__ import annotations

import gc
import io as streams
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from io_files import FRAME, IDS, TABLES, X, dense
from ugly_files import NAMES, german, write_text

from viewfold import as_view
from viewfold.data.files import File

quiet = pytest.mark.filterwarnings("ignore:.*decimal signs", "ignore:.*text in")


@quiet
@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"]
)
def test_encodings_are_detected(encoding: str, tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.csv", german(), encoding)
    for file in (path, File(path, encoding=encoding)):
        view = as_view(file, ids="id")
        assert view.features == NAMES
        assert list(view.ids) == IDS
        assert np.allclose(dense(view), 1000 * X)


def test_what_was_guessed_is_told_and_what_was_said_is_not(tmp_path: Path, recwarn) -> None:
    path = write_text(tmp_path / "a.csv", german(), "cp1252")
    as_view(path, ids="id")
    (told,) = [str(one.message) for one in recwarn]
    assert f"{path}: text in cp1252 (encoding=…" in told
    assert "commas are decimal signs" in told
    recwarn.clear()
    as_view(File(path, encoding="cp1252", decimal=","), ids="id")
    assert not len(recwarn)


@quiet
def test_late_letters_in_another_encoding_are_an_error_with_the_option(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("viewfold.data.text._SAMPLE", 1000)
    lines = ["id,x", *[f"p{i:06},1" for i in range(5000)], "Jörg,2"]
    path = write_text(tmp_path / "a.csv", lines, "cp1252")
    with pytest.raises(ValueError, match=r"a\.csv.*encoding='cp1252'"):
        as_view(path, ids="id")
    assert as_view(File(path, encoding="cp1252"), ids="id").ids[-1] == "Jörg"


AMBIGUOUS = {
    "comma": ["id;x", "a;115,499", "b;2,125"],
    "whole numbers beside it": ["id;x", "a;7", "b;115,499"],
    "point where commas are usual": ["id;x", "a;115.499", "b;2.125"],
    "tabs": ["id\tx", "a\t115,499"],
    "quoted": ["id,x", 'a,"115,499"'],
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_ambiguous_numbers_are_an_error_that_names_cell_and_options(
    case: str, tmp_path: Path
) -> None:
    path = write_text(tmp_path / "a.csv", AMBIGUOUS[case])
    sign = "." if "115.499" in "".join(AMBIGUOUS[case]) else ","
    line = 3 if "7" in AMBIGUOUS[case][1] else 2
    said = (
        f"a.csv, line {line}, column 'x': '115{sign}499' is 115.499 (decimal='{sign}') or "
        f"115499 (thousands='{sign}'). Say which."
    )
    with pytest.raises(ValueError, match=re.escape(said)):
        as_view(path, ids="id")
    at = line - 2
    assert dense(as_view(File(path, decimal=sign), ids="id"))[at, 0] == 115.499
    assert dense(as_view(File(path, thousands=sign), ids="id"))[at, 0] == 115499


@pytest.mark.parametrize(
    ("late", "said"), [("1.250", "(thousands='.')"), ("1,250", "(decimal=',')")]
)
def test_ambiguous_numbers_that_come_late_are_an_error(
    late: str, said: str, tmp_path: Path
) -> None:
    path = write_text(tmp_path / "a.csv", ["id;x", *["a;7"] * 150, f"b;{late}"])
    place = f"a.csv, line 152, column 'x': '{late}' is 1.250"
    with pytest.raises(ValueError, match=re.escape(place)) as error:
        as_view(path, ids="id")
    assert said in str(error.value)
    write_text(path, ["id;x", *[f"{i};7" for i in range(150)], "b;12.5"])
    assert dense(as_view(path, ids="id"))[-1, 0] == 12.5


@quiet
def test_one_clear_cell_tells_how_the_others_are_meant(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.csv", ["id;x;y", "a;115,499;7", "b;2,125;0,25"])
    assert dense(as_view(path, ids="id")).tolist() == [[115.499, 7], [2.125, 0.25]]


@quiet
def test_numbers_with_decimal_commas_are_no_header(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.csv", ["1,5;2,5", "3,5;4,5"])
    assert dense(as_view(path)).tolist() == [[1.5, 2.5], [3.5, 4.5]]


@pytest.mark.parametrize("thousands", [".", " ", "\u202f", "'", "_"])
def test_thousands_are_found_told_and_may_be_said(thousands: str, tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.csv", german(thousands=thousands))
    with pytest.raises(ValueError, match=r"""1.*500,0['"] is not a number. If it is one, say"""):
        as_view(path, ids="id", as_is=True)
    with pytest.warns(UserWarning, match="separates thousands|cleaned"):
        view = as_view(path, ids="id")
    assert np.allclose(dense(view), 1000 * X)
    asked = " " if thousands == "\u202f" else thousands
    view = as_view(File(path, decimal=",", thousands=asked), ids="id")
    assert np.allclose(dense(view), 1000 * X)


def test_what_is_no_thousands_is_not_glued_together(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.csv", ["id;x", *["a;1,234"] * 150, "b;1,5"])
    said = "a.csv, line 152, column 'x': '1,5' is not a number. If it is one, say decimal=','"
    with pytest.raises(ValueError, match=re.escape(said)):
        as_view(File(path, thousands=","), ids="id")
    path = write_text(tmp_path / "b.csv", ["id;x;y", "a;1,234;", "b;NA;1,000,000"])
    with pytest.raises(ValueError, match="NaN in row 0"):
        as_view(File(path, thousands=","), ids="id", missing_cells="error")


def test_options_are_checked_before_the_file_is_read(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.csv", german())
    for wrong, said in (
        ({"encoding": "klingon"}, "encoding='klingon': there is no such encoding"),
        ({"encoding": "rot13"}, "there is no such encoding"),
        ({"decimal": "x"}, "decimal='x': expected"),
        ({"thousands": "5"}, "thousands='5': expected"),
        ({"thousands": ",", "decimal": ","}, "are the same sign"),
        ({"layer": "a", "use_rep": "b"}, "Choose one"),
    ):
        with pytest.raises(ValueError, match=re.escape(said)):
            File(path, **wrong)
    with pytest.raises(ValueError, match=re.escape("layer='counts' says nothing about .csv files")):
        as_view(File(path, layer="counts"))


# ---- standard input -----------------------------------------------------------------------------


def pipe(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", streams.TextIOWrapper(streams.BytesIO(content)))


@pytest.mark.parametrize("name", TABLES)
def test_standard_input_is_told_by_its_first_bytes(name: str, tmp_path: Path, monkeypatch) -> None:
    TABLES[name](tmp_path / name)
    pipe(monkeypatch, (tmp_path / name).read_bytes())
    view = as_view("-", ids="id")
    assert view.name == "stdin"
    assert list(view.ids) == IDS
    assert np.array_equal(dense(view), X)


def test_errors_call_standard_input_so_and_nothing_is_left(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pipe(monkeypatch, b"id,x\nann,1\nbob,?!\n")
    with pytest.raises(ValueError, match=r"^standard input, line 3, column 'x': '\?!'"):
        as_view("-", ids="id")
    pipe(monkeypatch, FRAME.to_csv(index=False).encode())
    assert as_view("-", ids="id").shape == (4, 3)
    gc.collect()  # the first error held on to what it was about
    assert not list(tmp_path.iterdir())
    pipe(monkeypatch, b"")
    with pytest.raises(ValueError, match="standard input: the file is empty"):
        as_view("-")


def test_a_copy_that_does_not_fit_the_disk_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("viewfold.data.fetch.free_disk", lambda: 1000)
    pipe(monkeypatch, b"id,x\n" + b"ann,1\n" * 200)
    with pytest.raises(ValueError, match=r"copy would take 1\.\d+ KB of disk or more.*TMPDIR"):
        as_view("-", ids="id")
    gc.collect()
    assert not list(tmp_path.iterdir())


# ---- the command line ---------------------------------------------------------------------------


def run(monkeypatch: Any, capsys: Any, *words: Any) -> tuple[int, str, str]:
    from viewfold import cli

    monkeypatch.setattr(sys, "argv", ["viewfold", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def test_commands_take_the_options_and_speak_of_them(tmp_path: Path, monkeypatch, capsys) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)).round(3) + 2, columns=list(NAMES))
    frame.insert(0, "id", [f"Jörg {i}" for i in range(40)])
    text = frame.to_csv(index=False, sep=";", decimal=",", float_format="%.3f")
    path = tmp_path / "labs.csv"
    path.write_bytes(text.replace("-", "").replace("0,", "1,").encode("cp1252"))
    state = tmp_path / "s.vf"
    call = [monkeypatch, capsys, "add", state, path, "--id", "id", "--clusters", 3]
    code, _, said = run(*call)
    assert code == 1
    assert re.search(r"labs\.csv, line 2, .* \(--decimal ,\) or \d+ \(--thousands ,\)", said)
    assert "decimal=" not in said
    code, out, said = run(*call, "--decimal", ",", "--json")
    assert code == 0, said
    (note,) = json.loads(out)["notes"]
    assert "text in cp1252 (--encoding … if" in note
    words = ["predict", state, path, "--id", "id", "--encoding", "cp1252", "--decimal", ","]
    code, out, said = run(*call[:2], *words)
    assert code == 0, said
    assert "Jörg 0," in out
    assert not said
    pipe(monkeypatch, path.read_bytes())
    words = ["predict", state, "-", "--id", "id", "--view", "labs", "--decimal", ","]
    assert run(*call[:2], *words)[1] == out
