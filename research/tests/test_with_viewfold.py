"""Where research and viewfold meet: the command, the data sets, and methods that others add."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import click
import numpy as np
import pytest
from conftest import SHARED

import fold
import viewfold
from viewfold.cli import app
from viewfold.datasets import load
from viewfold.metrics import accuracy
from viewfold_research.bench import cli, methods, published
from viewfold_research.catalogue import catalogue

HERE = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_command_of_viewfold_is_that_of_research() -> None:
    (point,) = entry_points(group="viewfold.commands", name="bench")
    assert point.value == PROJECT["entry-points"]["viewfold.commands"]["bench"]
    assert app.get_command(click.Context(app), "bench") is cli.app


def test_the_version_is_that_of_viewfold() -> None:
    assert PROJECT["version"] == viewfold.__version__
    major, minor, _ = PROJECT["version"].split(".")
    needed = f"viewfold[parquet,plots]>={major}.{minor},<{major}.{int(minor) + 1}"
    assert needed in PROJECT["dependencies"]


def test_a_shell_completes_the_commands() -> None:
    asked = {"COMP_WORDS": "viewfold bench lead", "COMP_CWORD": "2"}
    code = "import sys; sys.argv[0] = 'viewfold'; from viewfold.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **asked, "_VIEWFOLD_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["plain,leaderboard"], done.stderr


@pytest.mark.parametrize("words", [["--help"], ["bench", "--help"], ["bench", "time", "--help"]])
def test_help_imports_nothing_that_computes(words: list[str]) -> None:
    code = (
        f"import sys; sys.argv = {['viewfold', *words]}; from viewfold.cli import main\n"
        "try: main()\n"
        "except SystemExit: print(*(m for m in ('numpy', 'pandas', 'scipy', 'sklearn', 'duckdb', "
        "'matplotlib', 'tqdm') if m in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == ""
    assert "bench" in done.stdout


def test_every_command_takes_quiet_and_log() -> None:
    for name, command in cli.app.commands.items():
        assert {"--quiet", "--log"} <= {word for one in command.params for word in one.opts}, name


def test_the_catalogue_has_the_sizes_that_the_paper_prints() -> None:
    sizes = published.table("datasets").pivot(index="dataset", columns="metric", values="value")
    assert {entry.name for entry in catalogue()} == set(sizes.index)
    for entry in catalogue():
        row = sizes.loc[entry.name]
        assert (entry.samples, entry.views, entry.classes) == tuple(
            row[["samples", "views", "clusters"]]
        )


def test_the_catalogue_agrees_with_itself() -> None:
    for entry in catalogue():
        if entry.features is not None:
            assert len(entry.features) == entry.views
        if entry.order is not None:
            assert sorted(entry.order) == list(range(entry.views))


@pytest.mark.parametrize("name", ["uci-digit", "proteinFold", "Wiki"])
def test_the_catalogue_describes_the_files(name: str) -> None:
    path = next((p for p in SHARED.glob("data/*.npz") if p.stem.lower() == name.lower()), None)
    if path is None:
        pytest.skip("the shared data sets are not here")
    entry = next(entry for entry in catalogue() if entry.name == name)
    data = load(path)
    assert tuple(X.shape[1] for X in data.views.values()) == entry.features
    assert (data.target.size, data.target.max() + 1) == (entry.samples, entry.classes)


def test_an_estimator_of_another_package_takes_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (tmp_path / "mine.py").write_text("from viewfold import ViewFold\nclass Mine(ViewFold): ...\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[viewfold.estimators]\nMine = mine:Mine\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    methods.find.cache_clear()
    assert "Mine" in methods.names()
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    views = [4 * rng.normal(size=(3, 5))[y] + rng.normal(size=(120, 5)) for _ in range(2)]
    labels = methods.find("Mine")(views, np.zeros((120, 2), bool), n_clusters=3, seed=0)
    assert accuracy(y, labels) > 0.95
    methods.find.cache_clear()


@pytest.mark.filterwarnings("ignore:.*nothing but zeros")
def test_rows_of_zeros_of_counts_are_missing_for_every_method() -> None:
    X = np.random.default_rng(0).poisson(0.5, size=(60, 40)).astype(float)
    X[[3, 17, 42]] = 0
    gone = methods.lacking([X, X - 0.5])
    assert np.flatnonzero(gone[:, 0]).tolist() == [3, 17, 42]
    assert not gone[:, 1].any()


@pytest.mark.slow
def test_the_benchmark_of_the_fold_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["fold.py", "--quick"])
    fold.main()
    said = capsys.readouterr().out
    for part in "abcdef":
        assert f"({part})" in said
    assert float(said.partition("|ΔZ|=")[2].partition(" ")[0]) < 1e-9
