"""The tables of research/docs/baselines.md are those of the cells that are kept."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_page_has_the_tables_that_the_cells_give(tmp_path: Path) -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make_leaderboard.py"))
    made["unpack"](tmp_path)
    page = (ROOT / "docs" / "baselines.md").read_text(encoding="utf-8")
    assert page == made["page"](tmp_path), "docs/baselines.md: run docs/make_leaderboard.py"
    assert len(made["MARK"].findall(page)) == len(made["boards"](tmp_path))
