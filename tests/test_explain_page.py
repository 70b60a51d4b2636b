"""docs/explain.md: every example gives what the page shows, and every way to ask is on it."""

import doctest
import inspect
from pathlib import Path

import pytest
from pages import answer, difference, steps

from viewfold.cli._explain import explain

PAGE = (Path(__file__).parents[1] / "docs" / "explain.md").read_text(encoding="utf-8")


class Checker(doctest.OutputChecker):
    """Compare as answers of commands are compared."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return not difference(want, got)


def test_every_example_gives_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(PAGE, {}, "explain.md", None, 0)
    results: list[str] = []
    outcome = doctest.DocTestRunner(Checker()).run(test, out=results.append)
    assert outcome.attempted > 15
    assert not outcome.failed, "".join(results)
    assert len(steps(PAGE)) == 3
    for command, shown in steps(PAGE):
        code, said = answer(command)
        assert code == 0
        assert not difference(shown, said), f"$ {command}: {difference(shown, said)}"


def test_every_option_is_on_the_page() -> None:
    words = {"cluster": "--cluster", "sample": "--id", "view": "--view", "top": "--top"}
    asked = set(inspect.signature(explain).parameters) - {"state", "as_json"}
    assert asked == set(words)
    assert all(f"{word} " in PAGE for word in words.values())
