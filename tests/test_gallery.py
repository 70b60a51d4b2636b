"""docs/gallery: every figure has an example, and examples run with what everybody has installed.

`make docs` runs them; here only what can be told without running.
"""

import ast
import inspect
import re
import sys
from pathlib import Path

import pytest

from viewfold import plot

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
EXAMPLES = sorted(GALLERY.rglob("*.py"))
CORE = {"matplotlib", "numpy", "pandas", "scipy", "sklearn", "viewfold"}


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_every_figure_has_an_example() -> None:
    figures = {name for name in plot.__all__ if inspect.isfunction(getattr(plot, name))}
    assert {"sample_map", "label_flow"} <= figures
    whole = "".join(map(text_of, EXAMPLES))
    assert {name for name in figures if f"plot.{name}(" not in whole} == set()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_title_and_needs_no_extra(path: Path) -> None:
    tree = ast.parse(text_of(path))
    assert re.match(r"\n(.+)\n(=+)\n\n\S", ast.get_docstring(tree, clean=False) or "")
    title, line = (ast.get_docstring(tree, clean=False) or "").strip().splitlines()[:2]
    assert len(title) == len(line)
    at_top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {getattr(node, "module", None) or node.names[0].name for node in at_top}
    used = {name.partition(".")[0] for name in names}
    assert used - CORE - sys.stdlib_module_names == set(), (
        "import it where find_spec says it is there"
    )


def test_examples_show_all_kinds_of_input() -> None:
    whole = "".join(map(text_of, EXAMPLES))
    for kind in ("csv", "parquet", "excel", "sparse", "polars", "AnnData", "MuData", "nan", "emb"):
        assert kind in whole, kind
