"""docs/architecture.md shows the imports of today's code and import-linter's layers."""

import re
import runpy
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"


def table() -> list[list[str]]:
    """The cells of the table of rooms."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("| ")]
    return [[cell.strip(" `") for cell in row] for row in rows[1:]]


def contract_layers() -> list[str]:
    """The rows of import-linter's contract, from the bottom."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = (c["layers"] for c in contracts if c["type"] == "layers")
    return layers[::-1]


def test_page_is_what_the_code_gives() -> None:
    page = runpy.run_path(str(ROOT / "docs" / "make_architecture.py"))["page"]
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "docs/architecture.md: run `make architecture`"
    )


def test_layers_of_the_page_are_those_of_import_linter() -> None:
    shown: dict[int, set[str]] = {}
    for layer, room, *_ in table():
        if layer != "outside":
            shown.setdefault(int(layer), set()).add(f"viewfold.{room}")
    kept = {n: set(re.findall(r"[\w.]+", row)) for n, row in enumerate(contract_layers(), start=1)}
    assert shown == kept


def test_every_room_is_on_the_page_with_a_description() -> None:
    folder = ROOT / "src" / "viewfold"
    rooms = {path.stem for path in folder.glob("*.py")} | {
        path.parent.name for path in folder.glob("*/__init__.py")
    }
    assert {room for _, room, *_ in table()} == rooms - {"__init__"}
    assert all(description for _, _, description, *_ in table())


def test_imports_on_the_page_go_down_or_outside() -> None:
    layer = {room: int(n) for n, room, *_ in table() if n != "outside"}
    beside = [set(re.findall(r"viewfold\.(\w+)", row)) for row in contract_layers() if ":" in row]
    for _, room, _, imported, _ in table():
        for other in re.findall(r"\w+", imported.replace("–", "")):
            together = any({room, other} <= rooms for rooms in beside)
            in_layers = room in layer and other in layer
            assert not in_layers or layer[other] < layer[room] or together, (room, other)
