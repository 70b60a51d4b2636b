"""docs/tutorials: the pages on real data and on customers say what happens, wherever data are."""

import os
import re
import shutil
from pathlib import Path

import pytest
from conftest import SHARED
from pages import answer, difference, python_differs, steps

from viewfold import datasets, plot

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
SETS = {"tumours": "tcga-breast", "news": "3sources", "embryos": "bdgp", "cells": "mouse-cortex"}
CASES = [*SETS, "customers"]


def page(name: str) -> str:
    return (TUTORIALS / f"{name}.md").read_text(encoding="utf-8")


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of real data: the one that the environment names, or the shared one."""
    folder = Path(os.environ.get("VIEWFOLD_DATA") or SHARED / "data")
    monkeypatch.setenv("VIEWFOLD_DATA", str(folder))
    return folder


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "cells" else n for n in SETS]
)
@pytest.mark.filterwarnings("ignore:.*nothing but zeros")
def test_pages_on_real_data_print_what_they_show(name: str, data: Path) -> None:
    if not (data / f"{SETS[name]}.npz").exists():
        pytest.skip("the shared data sets are not here")
    if name == "cells":
        pytest.importorskip("mudata")
    examples, differs = python_differs(page(name), f"{name}.md")
    assert examples > 10
    assert not differs


@pytest.mark.slow
def test_every_command_on_customers_says_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    shutil.copy(TUTORIALS / "make_customers.py", tmp_path)
    for command, shown in steps(page("customers")):
        code, said = answer(command)
        assert code == 0, command
        assert not difference(shown, said), f"$ {command}: {difference(shown, said)}"
    assert Path("report.html").stat().st_size > 10_000
    examples, differs = python_differs(page("customers"), "customers.md")
    assert examples > 8
    assert not differs


@pytest.mark.parametrize("name", CASES)
def test_every_case_ends_with_a_decision_and_its_limits(name: str) -> None:
    text = page(name)
    assert len(re.findall(r"^# ", re.sub(r"```.*?```", "", text, flags=re.S), re.M)) == 1
    assert "\n## The decision\n" in text
    assert "What the result does not say:" in text.partition("## The decision")[2]
    for target in re.findall(r"\]\((?!https?:)([^)#]*)[^)]*\)", text):
        assert not target or (TUTORIALS / target).is_file(), target


@pytest.mark.parametrize(("name", "held"), SETS.items())
def test_pages_fetch_sets_that_can_be_fetched(name: str, held: str) -> None:
    assert f'datasets.fetch("{held}")' in page(name)
    assert held in {source.name for source in datasets.sources()}


def test_the_picture_of_the_tumours_is_small_and_in_the_colours_of_all_figures() -> None:
    picture = TUTORIALS.parent / "figures" / "tumours.svg"
    assert picture.stat().st_size <= 150_000
    text = picture.read_text(encoding="utf-8")
    assert all(colour in text for colour in (plot.COLOURS[0], plot.COLOURS[1], plot.COLOURS[5]))
    assert "../figures/tumours.svg" in page("tumours")
