"""The README: a newcomer's commands run as they stand there, on two files of the newcomer's own."""

from pathlib import Path

import pages
import pytest

from viewfold.datasets import make_patients

README = Path(__file__).parents[1] / "README.md"
FIRST_SCREEN = 40  # lines

pytestmark = pytest.mark.skipif(not README.exists(), reason="not in a clone")


@pytest.fixture
def commands() -> list[str]:
    first = "\n".join(README.read_text(encoding="utf-8").splitlines()[:FIRST_SCREEN])
    return [command for command, _ in pages.steps(first)]


@pytest.mark.usefixtures("quick_pages")
def test_newcomers_come_from_two_tables_to_a_report_in_ten_commands(
    commands, tmp_path, monkeypatch
) -> None:
    assert len(commands) <= 10
    installing = ["git clone", "python3 -m venv", ". ", "pip install ./viewfold"]
    for command, beginning in zip(commands, installing, strict=False):
        assert command.startswith(beginning)  # `make package` does these
    monkeypatch.chdir(tmp_path)
    for name, view in make_patients().views.items():
        view.to_csv(f"{name}.csv")
    for command in commands[len(installing) :]:
        code, said = pages.answer(command)
        assert code == 0, said
        if command.startswith("viewfold inspect"):
            assert "--id patient" in said
    assert sorted(path.name for path in tmp_path.glob("*.html")) == ["report.html"]
    assert "short of iron" not in Path("report.html").read_text(encoding="utf-8")
