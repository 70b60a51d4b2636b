"""docs/explain.md has many examples, which test_pages.py runs, and every way to ask is on it."""

import inspect
from pathlib import Path

from pages import blocks, steps

from viewfold.cli.look import explain

PAGE = (Path(__file__).parents[1] / "docs" / "explain.md").read_text(encoding="utf-8")


def test_the_page_has_examples_in_python_and_of_the_command() -> None:
    examples = [block.text.count(">>>") for block in blocks(PAGE) if block.kind == "python"]
    assert sum(examples) > 15
    assert len(steps(PAGE)) == 4
    assert not any(block.why for block in blocks(PAGE))


def test_every_option_is_on_the_page() -> None:
    words = {"cluster": "--cluster", "sample": "--id", "view": "--view", "top": "--top"}
    asked = set(inspect.signature(explain).parameters) - {"state", "as_json"}
    assert asked == set(words)
    assert all(f"{word} " in PAGE for word in words.values())
