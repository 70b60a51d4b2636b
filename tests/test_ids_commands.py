"""Ids on the command line: nothing is guessed, and errors name option and row."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from ids_rows import rows

import viewfold
from viewfold import cli


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)

    def command(line: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["viewfold", *line.split()])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return command


def write(path: str, ids: Any, **columns: Any) -> None:
    frame = pd.DataFrame(rows(len(ids)), columns=list("abc")).assign(**columns)
    frame.insert(0, "patient", ids)
    frame.to_csv(path, index=False)


def test_nothing_is_guessed_on_the_command_line(run: Callable[..., Any]) -> None:
    write("labs.csv", range(100, 130))
    code, _, said = run("add p.vf labs.csv --clusters 3")
    assert code == 0
    assert "the ids are those of column 'patient'" in said
    found = viewfold.load("p.vf").ids_.tolist()
    Path("p.vf").unlink()
    assert run("add p.vf labs.csv --id patient --clusters 3")[0] == 0
    assert viewfold.load("p.vf").ids_.tolist() == found == list(range(100, 130))
    assert run("add q.vf labs.csv --no-id --clusters 3")[0] == 0
    assert viewfold.load("q.vf").views_[0].n_features == 3
    write("strangers.csv", range(500, 530))  # none of them is known: it may be the wrong column
    code, _, said = run("add p.vf strangers.csv")
    assert code
    assert "column 'patient' looks like ids" in said
    assert "--id patient" in said
    assert "--no-id" in said
    assert run("predict q.vf labs.csv --no-id")[0] == 0
    assert "Choose one" in run("add q.vf labs.csv --no-id --id patient")[2]
    state = Path("p.vf").read_bytes()
    write("scan.csv", [*(f"{i:04}" for i in range(100, 129)), "129"])
    code, _, said = run("add p.vf scan.csv --id patient")
    assert code
    assert "'0100' in row 0 is almost 100" in said
    write("late.csv", [*range(100, 129), "N/A"])
    code, _, said = run("add p.vf late.csv --id patient")
    assert code
    assert "late.csv, line 31: the id 'N/A'" in said
    write("other.csv", range(125, 155))
    code, _, said = run("add p.vf other.csv --id patient --min-shared 50%")
    assert code
    assert "5 of its 30 samples are known, fewer than asked for (50 % of them)" in said
    assert "--min-shared 'half'" in run("add p.vf other.csv --id patient --min-shared half")[2]
    assert Path("p.vf").read_bytes() == state
    assert "0 of its 30" in run("add n.vf labs.csv --id patient --clusters 3 --min-shared 1")[2]
    assert not Path("n.vf").exists()
    assert run("add p.vf other.csv --id patient --min-shared 5")[0] == 0
    out = json.loads(run("add p.vf scan.csv --id patient --similar-ids match --json")[1])
    assert out["folds"][0]["new"] == 0


def test_add_only_new_takes_the_option_too(run: Callable[..., Any]) -> None:
    write("labs.csv", [f"p{i}" for i in range(30)])
    write("more.csv", ["P1", "q1"])
    run("add p.vf labs.csv --id patient --clusters 3")
    line = "add p.vf more.csv --id patient --only-new"
    assert "'P1' in row 0 is almost 'p1'" in run(line)[2]
    assert run(f"{line} --similar-ids new")[0] == 0
    assert viewfold.load("p.vf").ids_.size == 32
