"""Every command, and every request of the page, opens each file of data and each state once."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from opened import opened
from ui_pages import Page, csv

from commands import typed, write_patients
from viewfold import cli

pytest.importorskip("starlette")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux tells who opens a file")

# Before DuckDB sees a state file, viewfold reads twelve bytes of it: a file that is no database,
# a pipe or a device must not reach DuckDB, which takes a path and nothing that is open already.
FIRST_BYTES = 1

# A lock is made with the rights of the state, and then locked by filelock, which takes a path.
RIGHTS = 1

# Rows of a folder need not fit into memory: every pass over them opens the buckets again.
BUCKETS = re.compile(r"\.vfd/.*/samples-\d+\.parquet$")

# DuckDB opens a Parquet file for each question, and to read columns twice: what programs noted,
# columns, number of rows, row groups; how long texts are (2); rows (2). Each is asked once.
PARQUET = 8

COMMANDS = (
    "status s.vf",
    "labels s.vf",
    "labels s.vf --least-certain 5",
    "labels s.vf -o labels.csv",
    "explain s.vf",
    "explain s.vf --id p1",
    "report s.vf -o report.html",
    "history s.vf",
    "history s.vf --id p1",
    "diff o.vf s.vf",
    "suggest s.vf",
    "export s.vf -o all.csv",
    "verify s.vf",
    "inspect scan.csv",
    "inspect scan.csv --state s.vf",
    "inspect scan.parquet",
    "inspect scan.xlsx",
    "predict s.vf labs-new.csv --id patient",
    "add new.vf labs.csv --id patient --clusters 3",
    "add s.vf scan.csv --id patient",
    "add s.vf scan.csv --id patient --dry-run",
    "add s.vf scan.parquet --id patient",
    "add s.vf scan.xlsx --id patient",
    "add s.vf labs-new.csv --id patient --only-new",
    "add s.vf labs-new.csv --id patient",
    "refresh s.vf labs.csv --id patient",
    "refresh b.vfd labs.csv --id patient",
    "recluster s.vf --clusters 2",
    "rename s.vf 1 high",
    "undo s.vf --yes",
    "undo s.vf --to 1 --yes",
    "forget s.vf p1 p2",
    "convert s.vf new.vfd --buckets 2",
    "convert b.vfd new.vf",
    "status b.vfd",
    "labels b.vfd",
    "add b.vfd scan.csv --id patient",
    "forget b.vfd p1",
)
JOBS = ("inspect", "fold", "recluster", "suggest")
PAGE = (
    "status",
    "summary",
    "changes",
    "explain",
    "export",
    "inspect",
    "fold",
    "recluster",
    "suggest",
    "rename",
    "undo",
    "forget",
)


def allowed(name: str) -> int:
    if name.endswith(".parquet") and "/" not in name:
        return PARQUET
    return 1 + FIRST_BYTES * name.endswith(".vf") + RIGHTS * name.endswith(".lock")


def opened_too_often(found: Counter[str]) -> dict[str, int]:
    return {
        name: times
        for name, times in found.items()
        if times > allowed(name) and not BUCKETS.search(name)
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a state of one view and two changes, as file and as buckets, and more data."""
    folder = tmp_path_factory.mktemp("opened")
    scan = write_patients(folder)["scan"][:60]
    scan.to_parquet(folder / "scan.parquet")
    scan.to_excel(folder / "scan.xlsx")
    with contextlib.chdir(folder):
        typed("viewfold add o.vf labs.csv --id patient --clusters 3 --keep 5")
        shutil.copy("o.vf", "s.vf")
        typed("viewfold rename s.vf 0 low")
        typed("viewfold rename s.vf 0 lower")
        typed("viewfold convert s.vf b.vfd --buckets 2")
    return folder


@pytest.mark.usefixtures("quick_pages")
@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_opens_every_file_once(
    line: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [word for word in line.split() if (files / word).exists()]:
        (shutil.copytree if (files / name).is_dir() else shutil.copy)(files / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    with opened(tmp_path) as found:
        typed(f"viewfold {line}")
    assert found, "it reads something"
    assert opened_too_often(found) == {}


def ask(page: Page, what: str, **said: Any) -> None:
    """Do what the page does when a user asks for something."""
    if what in ("status", "summary", "changes", "explain", "export"):
        page.client.get(f"/api/{what}", params=said).raise_for_status()
    elif what in JOBS:
        done = page.job(what, **said)
        assert done["state"] == "done", done
    else:
        page.client.post(f"/api/{what}", json=said).raise_for_status()


@pytest.mark.usefixtures("quick_pages")
@pytest.mark.parametrize("what", PAGE)
def test_a_request_of_the_page_opens_every_file_once(what: str, ui_folded: Page) -> None:
    folder = ui_folded.session.state.parent
    said: dict[str, Any] = {
        "changes": {"entry": 1},
        "explain": {"id": "p1"},
        "export": {"format": "csv"},
        "recluster": {"clusters": 2},
        "rename": {"cluster": 1, "name": "high"},
        "undo": {"entry": 2},
        "forget": {"ids": ["p1"]},
    }.get(what, {})
    if what in ("inspect", "fold"):
        key = ui_folded.upload("scan.csv", csv("scan", range(60, 150)))
        said = {"upload": key, "id_column": "patient"}
    if what == "undo":
        ask(ui_folded, "rename", cluster=1, name="high")
    ui_folded.get("status")  # what the page does when it is opened
    with opened(folder) as found:
        ask(ui_folded, what, **said)
    assert opened_too_often(found) == {}


def test_every_command_that_takes_a_file_is_tried() -> None:
    tried = {line.split()[0] for line in COMMANDS}
    assert tried == {*cli.app.commands} - {"bench", "demo", "ui"}  # ui: the page


def test_opens_are_counted_whoever_opens(tmp_path: Path) -> None:
    for name in ("one", "two", "in/three"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    with opened(tmp_path) as found:
        for name in ("one", "two", "two", "in/three"):
            (tmp_path / name).read_text()
        os.system(f"cat {tmp_path}/one > /dev/null")
        list(tmp_path.iterdir())
    assert found == {"one": 2, "two": 2, "in/three": 1}
