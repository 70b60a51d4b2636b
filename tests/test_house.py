"""The code stays small: modules that are read in one sitting, functions that fit on a screen."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
MODULES = sorted(SOURCE.rglob("*.py"))
MOST_LINES = {"module": 450, "function": 60}


def too_long(text: str) -> list[str]:
    """Name what has more lines than it may, docstrings and decorators' functions included."""
    functions = [
        (node.name, (node.end_lineno or 0) - node.lineno + 1)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    found = [f"{name}: {n} lines" for name, n in functions if n > MOST_LINES["function"]]
    n_lines = len(text.splitlines())
    return found + ([f"module: {n_lines} lines"] if n_lines > MOST_LINES["module"] else [])


def test_there_is_something_to_measure() -> None:
    assert len(MODULES) > 100
    function = "def f():\n" + "    pass\n" * 60
    assert too_long(function) == ["f: 61 lines"]
    assert too_long("x = 1\n" * 451) == ["module: 451 lines"]
    assert not too_long("class A:\n    def f(self):\n" + "        pass\n" * 59)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_and_no_function_is_too_long(module: Path) -> None:
    assert not too_long(module.read_text(encoding="utf-8"))
