"""The code stays readable: one idea a file, read from top to bottom in one sitting."""

from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
MODULES = sorted(SOURCE.rglob("*.py"))
MOST_LINES = 900


def test_there_is_something_to_measure() -> None:
    assert len(MODULES) > 50


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_is_too_long(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= MOST_LINES
