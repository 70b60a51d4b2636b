"""docs/reference: every public name, command, option and error code is there."""

import importlib
import re
import sys
from operator import attrgetter
from pathlib import Path
from types import ModuleType

import pytest

import viewfold

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS / "_ext"))

import from_code  # noqa: E402

PAGES = {p.name: p.read_text(encoding="utf-8") for p in (DOCS / "reference").glob("*.md")}
WHOLE = [
    "_util.constants",
    "data",
    "datasets",
    "datasets.missing",
    "errors",
    "metrics",
    "plot",
    "rows",
    "state.registry",
    "web.report",
]
"""Modules of which every public name is documented."""


@pytest.fixture(scope="module")
def documented() -> set[str]:
    """Every name that a page of the reference documents."""
    made = "\n".join(from_code.filled(page) for page in PAGES.values())
    return set(re.findall(r"^\.\. auto(?:class|function|data):: (\S+)$", made, re.MULTILINE))


def test_every_public_name_is_in_the_reference(documented: set[str]) -> None:
    modules = {
        name: getattr(viewfold, name).__name__.removeprefix("viewfold.")
        for name in viewfold.__all__
        if isinstance(getattr(viewfold, name), ModuleType)
    }
    assert set(modules.values()) <= set(WHOLE), "add a page for the module, and its name to WHOLE"
    top = set(viewfold.__all__) - set(modules)
    names = {f"viewfold.{name}" for name in top}
    for module in WHOLE:
        public = set(from_code.public_names(f"viewfold.{module}")) - top
        names |= {f"viewfold.{module}.{name}" for name in public}
    assert names - documented == set()


def test_what_pages_import_is_in_the_reference(documented: set[str]) -> None:
    found = set()
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8") if "_build" not in page.parts else ""
        for module, names in re.findall(
            r"^(?:>>> )?from (viewfold[\w.]*) import ([\w, ]+)", text, re.M
        ):
            found |= {f"{module}.{name.strip()}" for name in names.split(",")}
    known = {name.rpartition(".")[2] for name in documented} | {*WHOLE, *viewfold.__all__}
    assert len(found) > 20
    assert {name for name in found if name.rpartition(".")[2] not in known} == set()


def test_every_documented_name_exists_and_says_what_it_is(documented: set[str]) -> None:
    assert len(documented) > 100
    for name in documented:
        module, _, short = name.rpartition(".")
        if short != "SparkEngine":
            thing = getattr(importlib.import_module(module), short)
            assert not callable(thing) or thing.__doc__, name


def test_members_of_other_packages_are_left_out() -> None:
    members = from_code.own_members(viewfold.ViewFold)
    assert {"fit", "partial_fit", "predict", "labels_", "explain"} <= set(members)
    assert not [name for name in members if name.startswith("set_") or "metadata" in name]


def test_every_command_and_option_is_in_the_reference() -> None:
    page = from_code.filled(PAGES["cli.md"])
    commands = dict(from_code.commands())
    assert {"add", "explain", "ui"} <= set(commands)
    sections = {part.partition("`")[0]: part for part in page.split("### `viewfold ")[1:]}
    assert set(sections) == set(commands)
    for name, command in commands.items():
        for option in command.params:
            if option.param_type_name == "option" and not option.hidden:
                where = page if option.opts[0] in ("--quiet", "--log", "--help") else sections[name]
                assert option.opts[0] in where, (name, option.opts)


def test_every_error_code_is_in_the_reference_and_explained() -> None:
    made = from_code.filled(PAGES["errors.md"])
    explained = (DOCS / "commands.md").read_text(encoding="utf-8").partition("## Errors")[2]
    codes = from_code.error_codes()
    assert codes["busy"] == (6, "viewfold.errors.BusyError")
    assert codes["not-found"] == (9, "FileNotFoundError")
    for code, (number, _) in codes.items():
        assert f"| {number} | `{code}` |" in made
        assert f"| {number} | `{code}` |" in explained
    assert len(re.findall(r"^\| \d+ \| `", explained, re.MULTILINE)) == len(codes)


def test_every_field_of_an_answer_is_explained() -> None:
    made = from_code.filled(PAGES["json.md"])
    rows = re.findall(r"^\| `([^`]+)` \| (.+?) \| (.*) \|$", made, re.MULTILINE)
    assert len(rows) > 150
    assert not [field for field, _, said in rows if not said]
    assert "<!-- made" not in made


def test_every_extra_says_what_it_is_for() -> None:
    rows = [row.split("|")[1:-1] for row in from_code.extras().splitlines()[2:]]
    assert "`parquet`" in [extra.strip() for extra, _, _ in rows]
    assert [extra for extra, what, _ in rows if not what.strip()] == []


def test_plot_shows_people_figures_and_no_helpers() -> None:
    from viewfold import plot

    functions = {name for name in plot.__all__ if callable(getattr(plot, name))}
    assert not {"counted", "short", "shorten", "sizes_of", "draw_confidence"} & functions


def test_what_people_call_first_says_what_else_there_is_and_what_it_costs() -> None:
    cost = ["ViewFold", "FCMVC", "edit", "suggest_n_clusters", "inspect_views"]
    cost += [f"ViewFold.{name}" for name in ("partial_fit", "predict", "forget", "recluster")]
    others = ["as_view", "as_views", "forget", "load", "undo"]
    methods = "extend transform predict_frame to_frame movers save features explain variance"
    others += [f"ViewFold.{name}" for name in methods.split()]
    said = {name: attrgetter(name)(viewfold).__doc__ for name in cost + others}
    assert [name for name, doc in said.items() if "See Also\n" not in doc] == []
    assert [name for name in cost if "Notes\n" not in said[name]] == []
