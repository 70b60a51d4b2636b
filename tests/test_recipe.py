"""The container and the conda recipe say what pyproject.toml says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IN_CONDA = {"duckdb": "python-duckdb", "matplotlib": "matplotlib-base"}


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    found: dict[str, Any] = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
    return found


def in_conda(requirement: str) -> str:
    name, bound = re.fullmatch(
        r"([\w.-]+)(?:\[.*\])?(>=[\d.]+(?:,!=[\d.]+)*)", requirement
    ).groups()
    return f"{IN_CONDA.get(name, name)} {bound}"


def test_the_recipe_needs_what_the_package_needs(recipe: dict[str, Any]) -> None:
    python = f"python {PROJECT['requires-python']}"
    needed = recipe["requirements"]
    assert {*needed["run"]} == {python, *map(in_conda, PROJECT["dependencies"])}
    assert python in needed["host"]
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    (command,) = recipe["build"]["python"]["entry_points"]
    assert command == f"viewfold = {PROJECT['scripts']['viewfold']}"


def test_the_recipe_bounds_what_extras_bound(recipe: dict[str, Any]) -> None:
    extras = PROJECT["optional-dependencies"]
    every = {
        in_conda(one)
        for name in extras.keys() - {"all", "dev", "docs"}
        for one in extras[name]
        if name != "remote"
    }
    said = {*recipe["requirements"]["run_constraints"]}
    assert said <= every
    assert not [one for one in every - said if one.split()[0] not in ("dask", "python-multipart")]


def test_the_recipe_and_the_citation_have_the_version(recipe: dict[str, Any]) -> None:
    said = re.search(r'__version__ = "(.*)"', (ROOT / "src/viewfold/_util/version.py").read_text())[
        1
    ]
    assert recipe["context"]["version"] == said
    assert re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)[1] == said
    heads = re.findall(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert next(head for head in heads if head != "Unreleased") == said


def test_files_that_the_recipe_names_are_there(recipe: dict[str, Any]) -> None:
    named = [recipe["about"]["license_file"], *recipe["tests"][1]["files"]["source"]]
    assert all((ROOT / name).is_file() for name in named)


def test_the_image_is_built_of_what_is_sent_to_the_engine() -> None:
    text = (ROOT / "Dockerfile").read_text()
    sent = re.findall(r"^!(.*)$", (ROOT / ".dockerignore").read_text(), re.M)
    copied = [
        name
        for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.M)
        for name in line.split()[:-1]
    ]
    assert sorted(copied) == sorted(sent)
    assert all((ROOT / name).exists() for name in copied)
    extras = set(re.search(r"^ARG EXTRAS=(.*)$", text, re.M)[1].split(","))
    assert extras <= PROJECT["optional-dependencies"].keys()
    version = re.search(r"^ARG PYTHON=(.*)$", text, re.M)[1]
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_the_image_runs_as_a_user_without_rights() -> None:
    last = (ROOT / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    assert re.findall(r"^USER (.*)$", last, re.M) == ["${USER_ID}"]
    assert int(re.search(r"^ARG USER_ID=(.*)$", last, re.M)[1]) > 0
    assert last.index("\nUSER ") < last.index("\nENTRYPOINT ")
