"""viewfold with nothing but what it installs itself: no Parquet, no figures, no spreadsheets."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import core_tour
import pytest

from viewfold._util.messages import needed
from viewfold.errors import MissingExtraError, code_of

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IMPORTS = {"pillow": "PIL", "python-multipart": "python_multipart"}


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=;! ]", requirement)[0].lower()


def run_tour(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, core_tour.__file__, "--refuse", *options]
    return subprocess.run(command, capture_output=True, text=True)


def test_two_csv_files_need_no_extra_and_what_does_names_it() -> None:
    """The whole tour, with every package of an extra out of reach."""
    done = run_tour()
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == {"extras": []}


def test_packages_of_extras_are_refused_by_the_tour() -> None:
    core = {name_of(one) for one in PROJECT["dependencies"]}
    for extra, packages in PROJECT["optional-dependencies"].items():
        if extra in ("all", "dev", "docs"):
            continue
        for package in map(name_of, packages):
            assert IMPORTS.get(package, package) in core_tour.EXTRAS, (extra, package)
            assert package not in core


def test_all_is_every_extra_of_users_but_spark() -> None:
    extras = PROJECT["optional-dependencies"]
    (said,) = extras["all"]
    named = set(re.fullmatch(r"viewfold\[(.*)\]", said)[1].split(","))
    assert named == extras.keys() - {"all", "dev", "docs", "spark"}


def test_every_extra_that_a_message_names_is_there() -> None:
    extras = PROJECT["optional-dependencies"].keys()
    called = r"(?:needed|optional|lacking)\(\s*[^,()]+,\s*\"(\w+)\""
    for file in (ROOT / "src").rglob("*.py"):
        text = file.read_text()
        found = [*re.findall(called, text), *re.findall(r"viewfold\[(\w+)\]", text)]
        assert set(found) <= extras, file


def test_a_package_that_is_not_there_is_an_error_with_a_code() -> None:
    with pytest.raises(MissingExtraError, match="A plot needs no_such") as caught:
        needed("no_such.part", "plots", "A plot")
    assert isinstance(caught.value, ImportError)
    assert code_of(caught.value) == ("missing-extra", 8)
