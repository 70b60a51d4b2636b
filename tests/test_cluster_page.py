"""docs/cluster.md: every command works as printed, and so does its Python."""

import shutil
from pathlib import Path

import pytest
from pages import answer, blocks, difference, steps

import viewfold

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "cluster.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("quick_pages")
def test_every_command_says_what_the_page_shows_and_python_does_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(DOCS / "make_parts.py", tmp_path)
    for command, shown in steps(PAGE):
        code, said = answer(command)
        assert code == 0, said
        assert not difference(shown, said), f"$ {command}: {difference(shown, said)}"
    (code,) = [b.text for b in blocks(PAGE) if b.kind == "python" and not b.why]
    exec(compile(code, "cluster.md", "exec"), {})
    made = [viewfold.load(path).to_frame()["cluster"] for path in ("python.vfd", "patients.vfd")]
    again = viewfold.load("again.vfd").to_frame()["cluster"]
    assert made[0].sort_index().tolist() == made[1].sort_index().tolist()
    assert again.sort_index().tolist() == made[1].sort_index().tolist()
