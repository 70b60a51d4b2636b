"""Research uses documented names of viewfold only, so that it measures what users get."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import viewfold

HERE = Path(__file__).resolve().parents[1]
DOCS = HERE.parent / "docs"
sys.path.insert(0, str(DOCS / "_ext"))

import from_code  # noqa: E402

FOLDERS = ("src/**", "benchmarks/**", "docs", "nights", ".")
FILES = [path for folder in FOLDERS for path in HERE.glob(f"{folder}/*.py")]
PRIVATE = re.compile(r"\._(state|keep|now|fitted|engine|method)\b")
EXCEPT = {
    "benchmarks/explain.py": "leaves one step of a fold out, to measure what it costs",
    "benchmarks/report.py": "makes a state of a million samples by hand, to measure the page alone",
    "benchmarks/confidence.py": "computes what `confidence` was in an earlier version",
}
"""Scripts that look inside viewfold, and why."""


@pytest.fixture(scope="module")
def documented() -> set[str]:
    """Every name that a page of viewfold's reference documents."""
    pages = [page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md")]
    made = "\n".join(map(from_code.filled, pages))
    found = set(re.findall(r"^\.\. auto(?:class|function|data):: (\S+)$", made, re.MULTILINE))
    modules = set(re.findall(r"^\.\. automodule:: (\S+)$", made, re.MULTILINE))
    return found | modules | {"viewfold.__file__"}


def used(path: Path) -> Iterator[str]:
    """Yield the names of viewfold that a file imports, as `module.name`."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "viewfold":
            yield from (f"{node.module}.{name.name}" for name in node.names)
        if isinstance(node, ast.Import):
            yield from (n.name for n in node.names if n.name.startswith("viewfold."))
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "viewfold":
            yield f"viewfold.{node.attr}"
    for call in PRIVATE.findall(text):
        if f"self._{call}" not in text and f"super()._{call}" not in text:
            yield f"._{call}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HERE)))
def test_it_uses_documented_names_only(path: Path, documented: set[str]) -> None:
    names = {f"viewfold.{name}" for name in viewfold.__all__}
    other = {name for name in used(path) if name not in documented | names}
    # `viewfold.estimators.FCMVC` is `viewfold.FCMVC`.
    other = {name for name in other if f"viewfold.{name.rpartition('.')[2]}" not in names}
    assert bool(other) == (str(path.relative_to(HERE)) in EXCEPT), other


def test_private_names_are_found(tmp_path: Path, documented: set[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import viewfold\nfrom viewfold._util.types import Array\nimport viewfold.rows.linalg\n"
        "from viewfold.state.transitions import fold\nviewfold.ViewFold()._state\n"
    )
    found = set(used(script))
    wrong = {
        "viewfold._util.types.Array",
        "viewfold.rows.linalg",
        "viewfold.state.transitions.fold",
    }
    assert found - documented == {*wrong, "._state"}
