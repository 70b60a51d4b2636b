"""docs/architecture.md shows the rooms and imports of today's code, on one screen."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
MOST_LINES = 50


@pytest.fixture(scope="module")
def script() -> dict:
    return runpy.run_path(str(ROOT / "docs" / "make_architecture.py"))


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_page_is_what_the_code_gives_and_fits_on_one_screen(script: dict, page: str) -> None:
    assert page == script["page"](), "docs/architecture.md: run `make architecture`"
    assert len(page.splitlines()) <= MOST_LINES


def test_every_room_is_on_the_page_and_eleven_say_what_they_are_for(
    script: dict, page: str
) -> None:
    folder = ROOT / "src" / "viewfold"
    rooms = {path.stem for path in folder.glob("*.py")} | {
        path.parent.name for path in folder.glob("*/__init__.py")
    }
    described = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.MULTILINE))
    assert described.keys() == rooms - {"__init__"} - script["BESIDE"]
    assert all(words.endswith(".") for words in described.values())
    assert len(described) == 11
    assert all(f"`{room}`" in page for room in script["BESIDE"])


def test_arrows_that_others_imply_are_left_out(script: dict) -> None:
    graph = {"cli": {"web", "app", "metrics"}, "web": {"app"}, "app": set(), "metrics": set()}
    assert script["arrows"](graph) == ["  cli --> web", "  web --> app"]


def test_the_picture_is_drawn_without_a_network(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    import layers

    site = layers.drawn(page)
    assert "mermaid" not in site
    assert site.count("<rect") == 11
    n_arrows = sum(line.count(" & ") + 1 for line in page.splitlines() if " --> " in line)
    assert site.count("<path") == n_arrows
    tops = {room: float(y) for y, room in re.findall(r'y="(\d+)">(\w+)</text>', site)}
    for room, others in re.findall(r"^  (\w+) --> (.+)$", page, re.MULTILINE):
        assert all(tops[room] < tops[other] for other in others.split(" & "))
    sys.modules.pop("layers")
