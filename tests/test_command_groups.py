"""Commands in groups, `add --only-new` and `undo --to`."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

import viewfold
from commands import Run, runner, typed, write_patients
from viewfold import cli
from viewfold.cli import command as _command


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a state of two views, new rows and known ones."""
    made = tmp_path_factory.mktemp("groups")
    write_patients(made)["labs"][59:].to_csv(made / "labs-mixed.csv")
    with contextlib.chdir(made):
        typed("viewfold add s.vf labs.csv --id patient --clusters 3 --keep 5")
        typed("viewfold add s.vf scan.csv --id patient")
    return made


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    folder: Path,
) -> Run:
    """Run a command in a copy of the folder."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


def files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path().iterdir()}


def sections(text: str) -> dict[str, list[str]]:
    """Return the headings of a help page, each with the names that are listed below it."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if re.fullmatch(r"[A-Z][^:]*:", line):
            found[line[:-1]] = []
        elif found and (listed := re.match(r"  (?:-\w, )?(\S+)", line)):
            found[list(found)[-1]].append(listed[1])
    return found


# -- groups


def test_help_lists_every_command_once_under_a_heading(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_command, "entry_points", lambda **_: [])
    code, told, _ = run("--help")
    found = sections(told)
    assert code == 0
    assert list(found) == ["Options", "Start", "Look", "Change", "Large data"]
    listed = [name for title in list(found)[1:] for name in found[title] if name != "Begin"]
    assert sorted(listed) == sorted(cli.app.commands)
    assert found["Start"][:3] == ["demo", "inspect", "add"]
    assert {"status", "labels", "explain", "report", "ui", "history", "diff"} <= {*found["Look"]}
    assert {"recluster", "rename", "undo", "forget"} <= {*found["Change"]}
    assert "convert" in found["Large data"]


def test_commands_of_other_packages_have_a_heading_of_their_own(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import click

    class Point:
        name, value = "bench", "elsewhere:app"

        def load(self) -> click.Command:
            return click.Command("bench", help="Repeat experiments.")

    monkeypatch.setattr(_command, "entry_points", lambda **_: [Point()])
    found = sections(run("--help")[1])
    assert list(found)[-1] == "Research"
    assert found["Research"][0] == "bench"


def test_the_options_of_add_begin_with_those_that_everybody_needs(run: Run) -> None:
    found = sections(run("add --help")[1])
    options = cli.app.commands["add"].params
    names = {max(one.opts, key=len) for one in options if one.param_type_name == "option"}
    listed = [name for title in list(found)[1:] for name in found[title] if name[:2] == "--"]
    assert sorted(listed) == sorted([*names, "--help"])
    assert list(found) == [
        "Arguments",
        "Options",
        "How the file is read",
        "Ids",
        "Clusters",
        "State file",
        "Large data",
    ]
    assert found["Options"][:3] == ["--id", "--view", "--clusters"]
    assert {"--only-new", "--private", "--dry-run"} <= {*found["Options"]}
    assert "--engine" in found["Large data"]


@pytest.mark.parametrize("name", ["predict", "inspect", "forget", "recluster", "ui", "suggest"])
def test_engines_come_last_and_reading_has_its_heading(run: Run, name: str) -> None:
    found = sections(run(f"{name} --help")[1])
    options = {word for one in cli.app.commands[name].params for word in one.opts}
    assert ("Large data" in found) == ("--engine" in options)
    assert ("How the file is read" in found) == ("--sheet" in options)
    assert "Large data" not in list(found)[:-1]


# -- add --only-new


@pytest.mark.parametrize(
    ("file", "known"),
    [
        ("labs.csv", "Samples 'p0' and 59 more are known already"),
        ("labs-mixed.csv", "Sample 'p59' is known already"),
    ],
)
def test_only_new_refuses_known_samples_and_changes_nothing(
    run: Run, file: str, known: str
) -> None:
    before = files()
    code, out, said = run(f"add s.vf {file} --id patient --view labs --only-new")
    assert (code, out) == (1, "")
    assert known in said
    assert "--only-new" in said
    assert files() == before


def test_only_new_adds_new_samples_and_nobody_else_moves(run: Run) -> None:
    was = viewfold.load("s.vf").to_frame()
    line = "add s.vf labs-new.csv --id patient --view labs --only-new --json"
    before = files()
    tried = json.loads(run(f"{line} --dry-run")[1])
    assert files() == before
    answer = json.loads(run(line)[1])
    (fold,) = answer["folds"]
    assert (fold["view"], fold["new"], fold["samples"], fold["features"]) == ("labs", 6, 6, 5)
    assert (fold["shared"], fold["corrected"], fold["same"], fold["moved"]) == (0, 0, 0, 0)
    assert (fold["update"], fold["unseen"]) == (True, 0)
    assert tried["folds"] == answer["folds"]
    model = viewfold.load("s.vf")
    pd.testing.assert_frame_equal(model.to_frame().loc[was.index], was)
    assert model.n_samples_ == 66
    assert model.log_["what"].tolist()[-1] == "extend"
    assert run(line)[0] == 1  # now they are known


def test_only_new_does_what_extend_does_in_python(run: Run) -> None:
    model = viewfold.load("s.vf").extend("scan-new.csv", ids="patient", view="scan")
    assert run("add s.vf scan-new.csv --id patient --view scan --only-new")[0] == 0
    pd.testing.assert_frame_equal(viewfold.load("s.vf").to_frame(), model.to_frame())


@pytest.mark.parametrize(
    "option",
    [
        "--clusters 4",
        "--private",
        "--min-shared 1",
        "--unconnected pair",
        "--method fcmvc",
        "--seed 1",
    ],
)
def test_only_new_says_which_option_does_not_go_with_it(run: Run, option: str) -> None:
    before = files()
    code, _, said = run(f"add s.vf labs-new.csv --id patient --view labs --only-new {option}")
    assert code == 2
    assert f"{option.split()[0]} and --only-new" in said
    assert files() == before


def test_only_new_needs_a_state_and_a_known_view(run: Run) -> None:
    assert run("add none.vf labs-new.csv --id patient --only-new")[0] == 9
    assert not Path("none.vf").exists()
    code, _, said = run("add s.vf labs-new.csv --id patient --only-new")
    assert (code, "--view" in said) == (1, True)
    viewfold.ViewFold(3).save("empty.vf")
    code, _, said = run("add empty.vf labs-new.csv --id patient --only-new")
    assert (code, "empty.vf is empty" in said) == (1, True)


# -- undo --to


def test_undo_to_an_entry_returns_there_and_undo_takes_that_back(run: Run) -> None:
    assert run("recluster s.vf --clusters 4")[0] == 0
    code, _, said = run("undo s.vf --to 1")
    assert (code, "--yes" in said, "entry 2" in said, "entry 3" in said) == (1, True, True, True)
    answer = json.loads(run("undo s.vf --to 1 --yes --json")[1])
    assert (answer["undone"], answer["entry"], answer["views"]) == ([2, 3], 1, ["labs"])
    assert run("undo s.vf --yes")[0] == 0
    model = viewfold.load("s.vf")
    assert ([view.name for view in model.views_], model.n_clusters) == (["labs", "scan"], 4)


@pytest.mark.parametrize(
    ("entry", "code", "message"),
    [
        ("2", 3, "is in the state after entry 2 already"),
        ("3", 3, "viewfold undo s.vf --to 1"),
        ("-1", 2, "--to"),
    ],
)
def test_undo_to_what_is_not_there_changes_nothing(
    run: Run, entry: str, code: int, message: str
) -> None:
    before = files()
    found, _, said = run(f"undo s.vf --to {entry} --yes")
    assert found == code
    assert message in said
    assert files() == before


def test_undo_takes_one_of_to_and_entry(run: Run) -> None:
    before = files()
    code, _, said = run("undo s.vf --to 1 --entry 2 --yes")
    assert (code, "Choose one" in said) == (1, True)
    assert files() == before
