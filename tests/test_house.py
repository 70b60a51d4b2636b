"""The code stays small: modules that are read in one sitting, functions that fit on a screen."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
MODULES = sorted(SOURCE.rglob("*.py"))
MOST_LINES = {"module": 420, "function": 55}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def too_long(text: str) -> list[str]:
    """Name what has more lines of code than it may; docstrings may be as long as they need be."""
    nodes = list(ast.walk(ast.parse(text)))
    functions = [
        (node.name, (node.end_lineno or 0) - node.lineno + 1 - documented(node))
        for node in nodes
        if isinstance(node, FUNCTIONS)
    ]
    found = [f"{name}: {n} lines" for name, n in functions if n > MOST_LINES["function"]]
    n_lines = len(text.splitlines()) - sum(map(documented, nodes))
    return found + ([f"module: {n_lines} lines"] if n_lines > MOST_LINES["module"] else [])


def documented(node: ast.AST) -> int:
    """Return how many lines of a docstring a node has itself."""
    if not isinstance(node, FUNCTIONS | ast.ClassDef | ast.Module) or not ast.get_docstring(node):
        return 0
    return (node.body[0].end_lineno or 0) - node.body[0].lineno + 1


def test_there_is_something_to_measure() -> None:
    assert len(MODULES) > 100
    told = '    """Say it.\n\n    At length.\n    """\n'
    function = "def f():\n" + told + "    pass\n" * 55
    assert too_long(function) == ["f: 56 lines"]
    assert too_long(told.replace("    ", "") + "x = 1\n" * 421) == ["module: 421 lines"]
    assert not too_long("class A:\n    def f(self):\n" + "        pass\n" * 54)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_and_no_function_is_too_long(module: Path) -> None:
    assert not too_long(module.read_text(encoding="utf-8"))
