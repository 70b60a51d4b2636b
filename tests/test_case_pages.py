"""docs/tutorials: the page on customers says what happens, and every case ends with a decision.

research/tests/test_case_pages.py runs the pages on real data.
"""

import re
import shutil
from pathlib import Path

import pytest
from pages import answer, difference, python_differs, steps

from viewfold import plot

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
CASES = ["tumours", "news", "embryos", "cells", "customers"]


def page(name: str) -> str:
    return (TUTORIALS / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("quick_pages")
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


def test_the_picture_of_the_tumours_is_small_and_in_the_colours_of_all_figures() -> None:
    picture = TUTORIALS.parent / "figures" / "tumours.svg"
    assert picture.stat().st_size <= 150_000
    text = picture.read_text(encoding="utf-8")
    assert all(colour in text for colour in (plot.COLOURS[0], plot.COLOURS[1], plot.COLOURS[5]))
    assert "../figures/tumours.svg" in page("tumours")
