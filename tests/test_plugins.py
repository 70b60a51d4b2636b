"""Commands of other packages: found by entry point, imported when needed, and never in the way."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import Run, runner
from viewfold.cli import command as _command

PACKAGE = """
import click
from viewfold.cli import Group, say

print("imported others")

@click.group("others", cls=Group, help="Commands of another package.")
def app(): pass

@app.command()
def hello():
    "Say hello."
    say("hello")
    print("done")

@click.command()
def add():
    "Another command of the same name."
    print("not viewfold's")
"""
POINTS = """[viewfold.commands]
others = others:app
add = others:add
broken = others_gone:app
nothing = others:PACKAGE
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with a package that adds commands, as if it were installed."""
    info = tmp_path / "others-1.0.dist-info"
    info.mkdir()
    (tmp_path / "others.py").write_text(PACKAGE + "PACKAGE = 3\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    return tmp_path


def viewfold(site: Path, line: str) -> tuple[int, str, str]:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-m", "viewfold", *line.split()],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_command_of_another_package_runs_like_one_of_viewfold(site: Path) -> None:
    assert viewfold(site, "others hello") == (0, "imported others\ndone\n", "hello\n")
    assert viewfold(site, "others hello --quiet") == (0, "imported others\ndone\n", "")
    code, told, _ = viewfold(site, "others hello --help")
    assert code == 0
    assert "--log FILE" in told


def test_help_lists_them_and_says_of_a_broken_one_why(site: Path) -> None:
    code, told, _ = viewfold(site, "--help")
    told = " ".join(told.split())
    assert code == 0
    assert "others Commands of another package." in told
    assert "broken The command 'broken' of others_gone cannot be loaded: ModuleNotFound" in told
    assert "nothing The command 'nothing' of others is not a click command" in told
    assert told.index(" demo ") < told.index(" others Commands")


def test_other_commands_do_not_import_them(site: Path) -> None:
    for line in ("add --help", "--version", "verify --help"):
        code, told, said = viewfold(site, line)
        assert code == 0, said
        assert "imported others" not in told


def test_they_cannot_replace_a_command_of_viewfold(site: Path) -> None:
    assert "another command" not in viewfold(site, "add --help")[1].lower()
    assert viewfold(site, "--help")[1].count("\n  add ") == 1


@pytest.mark.parametrize("name", ["broken", "nothing"])
def test_a_broken_one_is_told_in_one_line(site: Path, name: str) -> None:
    code, _, said = viewfold(site, f"{name} x")
    assert code == 8
    assert said.startswith(f"viewfold: The command '{name}' of others")
    assert said.count("\n") == 1


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(monkeypatch, capsys)


@pytest.mark.parametrize("line", ["bench", "bench complete --data sets", "bench --help"])
def test_without_research_bench_says_how_to_get_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setattr(_command, "entry_points", lambda **_: [])
    code, out, said = run(line)
    assert (code, out) == (8, "")
    assert said == (
        "viewfold: 'viewfold bench' needs the package viewfold-research. "
        "Install it with: pip install viewfold-research\n"
    )


def test_without_research_help_does_not_list_bench(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_command, "entry_points", lambda **_: [])
    code, told, _ = run("--help")
    assert code == 0
    assert "\n  bench " not in told
    assert run("benc")[0] == 2


def test_with_it_bench_is_what_the_package_says(
    run: Run, monkeypatch: pytest.MonkeyPatch, site: Path
) -> None:
    import click

    class Point:
        name, value = "bench", "elsewhere:app"

        def load(self) -> Any:
            return click.Command("bench", callback=lambda: click.echo("benched"))

    monkeypatch.setattr(_command, "entry_points", lambda **_: [Point()])
    assert run("bench")[:2] == (0, "benched\n")
