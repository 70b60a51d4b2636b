"""docs/tutorials/hospital.md: every command works as printed, and says what the page shows."""

import re
import shutil
from pathlib import Path

import pytest
from pages import answer, difference, python_differs, steps

import viewfold

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
PAGE = (TUTORIALS / "hospital.md").read_text(encoding="utf-8")


def test_differences_are_seen() -> None:
    assert not difference("fold (0.3 s)\n a   0.71", "fold (12.9 s) a 0.7123")
    assert not difference("p1,3,0.70", "p1,3,0.71")
    for shown, said in [
        ("12 new", "13 new"),
        ("12 new", "12 new, 3 shared"),
        ("0.3 of", "0.4 of"),
        ("p1,3,0.7", "p1,2,0.7"),
        ("p1,3,0.7", "p1,3,0.7,1"),
        ("2026-11-17 08:30 UTC", "UTC"),
    ]:
        assert difference(shown, said)
        assert difference(said, shown)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_pages")
def test_every_command_says_what_the_page_shows_and_python_does_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    shutil.copy(TUTORIALS / "make_hospital.py", tmp_path)
    state = Path("hospital.vf")
    for command, shown in steps(PAGE):
        before = state.read_bytes() if state.exists() else b""
        code, said = answer(command)
        assert not difference(shown, said), f"$ {command}: {difference(shown, said)}"
        refused = re.search(r"^viewfold: (?!note: )", said, re.MULTILINE)
        assert (code != 0) == bool(refused), command
        if refused or "nothing changed" in said or "--dry-run" in command:
            assert state.read_bytes() == before, command
    assert len(viewfold.load(state).views_) == 3
    assert Path("report.html").stat().st_size > 10_000

    examples, differs = python_differs(PAGE, "hospital.md")
    assert examples > 20
    assert not differs


def test_the_page_tells_of_all_that_happens_to_such_data() -> None:
    commands = [command for command, _ in steps(PAGE)]
    used = {command.split()[1] for command in commands if command.startswith("viewfold")}
    story = "inspect add suggest recluster rename forget undo history status labels report "
    story += "predict"
    assert used == set(story.split())
    added = [c for c in commands if c.startswith("viewfold add") and "--dry-run" not in c]
    assert len({command.split()[3] for command in added}) == 7  # six deliveries and a wrong one
