"""Names and ids that others wrote: terminals show them as text, spreadsheets run none of them."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_cli import run  # noqa: F401

import viewfold
from commands import Run
from viewfold import ViewFold
from viewfold._util.messages import no_formula, visible

EVIL = "\x1b[31mred\x9b0m\u202egnp\x07"
FORMULA = "=cmd|' /C calc'!A0"
UNSEEN = ("\x1b", "\x9b", "\u202e", "\x07")


def bad(text: str) -> list[str]:
    """Return the characters in a text that a terminal would obey."""
    return [c for c in UNSEEN if c in text]


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """Make a state whose names are as bad as data can make them, and its table."""
    rng, n = np.random.default_rng(0), 60
    y = np.arange(n) % 2
    ward = [EVIL if i % 2 else "ER" for i in range(n)]
    table = pd.DataFrame({f"iron{EVIL}": rng.normal(size=n) + 9 * y, "ward": ward})
    ids = [FORMULA, f"id{EVIL}", "-7", "+49 x", "@home", "plain", "'=x"]
    table.index = pd.Index([*ids, *(f"p{i}" for i in range(n - len(ids)))], name="id")
    path = tmp_path / "e.vf"
    model = ViewFold(2, random_state=0).partial_fit(table, view=f"labs{EVIL}")
    model.rename(0, "named")
    model.save(path)
    table.to_csv(tmp_path / "e.csv")
    return path


@pytest.mark.parametrize(
    "command",
    [
        "explain e.vf",
        "explain e.vf --id p7",
        "status e.vf",
        "history e.vf",
        "history e.vf --json",
        "explain e.vf --json",
        "status e.vf --json",
        "inspect e.csv --id id",
        "inspect e.csv --id id --json",
        "add e.vf e.csv --id id",
        "explain e.vf --view nosuch",
        "explain e.vf --view nosuch --json",
        "predict e.vf e.csv --id id --view nosuch",
    ],
)
def test_no_command_passes_control_characters_on(run: Run, evil: Path, command: str) -> None:  # noqa: F811
    _, out, err = run(command)
    assert not bad(out)
    assert not bad(err)
    if command.endswith("--json"):
        assert json.loads(out)


def test_json_says_what_there_was(run: Run, evil: Path) -> None:  # noqa: F811
    _, out, _ = run("status e.vf --json")
    assert not bad(out)
    assert json.loads(out)["views"][0]["view"] == f"labs{EVIL}"


def test_a_log_passes_none_on(run: Run, evil: Path, tmp_path: Path) -> None:  # noqa: F811
    run("explain e.vf --view nosuch --log run.log")
    text = (tmp_path / "run.log").read_text()
    assert "red" in text
    assert not bad(text)


def test_labels_on_a_terminal_are_visible_and_in_a_pipe_are_as_they_are(evil: Path) -> None:
    command = [sys.executable, "-m", "viewfold", "labels", str(evil)]
    piped = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert f"id{EVIL}" in piped
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL):
        os.close(theirs)
        found = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            found += part
    os.close(ours)
    assert "red" in found.decode()
    assert not bad(found.decode())


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("command", ["labels", "export"])
def test_text_that_spreadsheets_run_begins_with_an_apostrophe(
    run: Run,  # noqa: F811
    evil: Path,
    ending: str,
    command: str,
) -> None:
    _, _, err = run(f"{command} e.vf -o out.{ending}")
    assert "4 cells would be run as formulas" in err
    assert "--raw" in err
    sep = "\t" if ending == "tsv" else ","
    ids = pd.read_csv(evil.parent / f"out.{ending}", sep=sep, dtype=str)["id"].tolist()
    assert f"'{FORMULA}" in ids
    assert {"'+49 x", "'@home", "''=x", "-7", "plain"} <= set(ids)  # a number stays one
    assert not [one for one in ids if one[0] in "=+@"]
    _, _, err = run(f"{command} e.vf -o raw.{ending} --raw")
    assert "formulas" not in err
    ids = pd.read_csv(evil.parent / f"raw.{ending}", sep=sep, dtype=str)["id"].tolist()
    assert set(ids) == set(viewfold.load(evil).ids_)


def test_labels_on_standard_output_follow_the_same_rule(run: Run, evil: Path) -> None:  # noqa: F811
    _, out, err = run("labels e.vf")
    assert f"\n'{FORMULA}," in out
    assert "formulas" in err
    _, out, err = run("labels e.vf --raw")
    assert f"\n{FORMULA}," in out
    assert "formulas" not in err
    _, out, _ = run("labels e.vf --json")
    assert FORMULA in {row["id"] for row in json.loads(out)}


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "arrow"])
def test_other_formats_are_as_they_are(run: Run, evil: Path, ending: str) -> None:  # noqa: F811
    path = evil.parent / f"out.{ending}"
    _, _, err = run(f"labels e.vf -o {path.name}")
    assert "formulas" not in err
    if ending == "jsonl":
        ids = [json.loads(line)["id"] for line in path.read_text().splitlines()]
    else:
        ids = (pd.read_parquet if ending == "parquet" else pd.read_feather)(path)["id"].tolist()
    assert FORMULA in ids


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("é 漢 👩\u200d🔬 می\u200cخواهم a\xa0b", "é 漢 👩\u200d🔬 می\u200cخواهم a\xa0b"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x7f\x80\x9f\xa0", "\\x7f\\x80\\x9f\xa0"),
        ("\u2066\u2069\u200e\u061c\ud800", "\\u2066\\u2069\\u200e\\u061c\\ud800"),
    ],
)
def test_what_is_shown_as_it_is(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", ["", "'", "a=1", "1e5", "-1e5", "+3", "-inf", " =1", "'p", "#"])
def test_what_is_no_formula_stays(text: str) -> None:
    assert no_formula(text) == text


@pytest.mark.parametrize("text", ["=", "+", "-", "@", "\tx", "\rx", "-1+1", "'=1", "''=1", "--5"])
def test_what_may_be_one_is_text_and_can_be_taken_back(text: str) -> None:
    assert no_formula(text) == f"'{text}"
