"""The files that people install: what is in them, what they say, and that they work elsewhere.

``make package`` tests what it has built; else both are built here, with nothing downloaded.
"""

from __future__ import annotations

import email
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OURS = {"docs", "page", "recipe", "src", "tests"}
"""Folders of the sdist; page/ is there once the page has sources of its own."""

BESIDE = {"README.md", "LICENSE", "pyproject.toml", "PKG-INFO", "Makefile", "constraints.txt"}
BESIDE |= {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md", "conftest.py"}
BESIDE |= {"Dockerfile", ".dockerignore", ".gitignore"}
NOT_OURS = ("node_modules", "__pycache__", ".venv", "_build", ".pytest_cache", ".mypy_cache")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.environ.get("DIST"):
        return Path(os.environ["DIST"])
    pytest.importorskip("hatchling")
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def files_of(folder: str) -> set[str]:
    """Return the files of a folder of the repository, as git knows them where there is git."""
    listed = subprocess.run(
        ["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\n")
    if any(listed):
        return {name for name in listed if name and (ROOT / name).exists()}
    found = (path for path in (ROOT / folder).rglob("*") if path.is_file())
    return {str(path.relative_to(ROOT)) for path in found if "__pycache__" not in path.parts}


def test_the_wheel_is_the_package_and_nothing_else(dist: Path) -> None:
    with zipfile.ZipFile(only(dist, "*.whl")) as wheel:
        inside = {name for name in wheel.namelist() if not name.endswith("/")}
    ours = {name.removeprefix("src/") for name in files_of("src/viewfold")}
    assert {name for name in inside if ".dist-info/" not in name} == ours
    assert "viewfold/py.typed" in inside
    assert any(name.endswith("licenses/LICENSE") for name in inside)


def test_the_sdist_has_all_to_build_and_test_it_again(dist: Path) -> None:
    with tarfile.open(only(dist, "*.tar.gz")) as packed:
        names = [one.name.partition("/")[2] for one in packed.getmembers() if one.isfile()]
    assert {name.partition("/")[0] for name in names} <= OURS | BESIDE
    assert not [name for name in names if any(part in name.split("/") for part in NOT_OURS)]
    for folder in OURS:
        assert files_of(folder) <= set(names), folder


def test_what_an_index_shows_of_it(dist: Path) -> None:
    with zipfile.ZipFile(only(dist, "*.whl")) as wheel:
        (held,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        said = email.message_from_bytes(wheel.read(held))
    assert said["License-Expression"] == "BSD-3-Clause"
    assert said["Requires-Python"] == ">=3.11"
    assert set(said.get_all("Provides-Extra")) == PROJECT["optional-dependencies"].keys()
    known = pytest.importorskip("trove_classifiers")
    assert set(said.get_all("Classifier")) <= known.classifiers
    assert not [one for one in said.get_all("Classifier") if one.startswith("License ::")]
    core = [one for one in said.get_all("Requires-Dist") if "extra ==" not in one]
    assert len(core) == len(PROJECT["dependencies"])


def test_the_wheel_works_where_there_is_no_clone(dist: Path, tmp_path: Path) -> None:
    """In an environment of its own; what it depends on is lent by this one."""
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    run = [str(python), "-I", "-c", ask]
    site = Path(subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip())
    with zipfile.ZipFile(only(dist, "*.whl")) as wheel:
        wheel.extractall(site)
    # A path in a .pth file is searched last, and .pth files there (an editable viewfold) count not.
    (site / "lent.pth").write_text(sysconfig.get_path("purelib"))
    tour = (tmp_path / "tour.py", ROOT / "tests/core_tour.py")
    tour[0].write_text(tour[1].read_text())
    done = subprocess.run(
        [str(python), "-I", str(tour[0]), "--refuse", "--no-report"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == {"extras": []}
    where = subprocess.run(
        [str(python), "-I", "-c", "import viewfold; print(viewfold.__file__)"],
        capture_output=True,
        text=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(site)
