"""docs/tutorials: the pages on real data say what happens, wherever data are."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from conftest import SHARED

from viewfold_research import datasets

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))

from pages import python_differs  # noqa: E402

SETS = {"tumours": "tcga-breast", "news": "3sources", "embryos": "bdgp", "cells": "mouse-cortex"}


def page(name: str) -> str:
    return (ROOT / "docs" / "tutorials" / f"{name}.md").read_text(encoding="utf-8")


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of real data: the one that the environment names, or the shared one."""
    folder = Path(os.environ.get("VIEWFOLD_DATA") or SHARED / "data")
    monkeypatch.setenv("VIEWFOLD_DATA", str(folder))
    return folder


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "cells" else n for n in SETS]
)
@pytest.mark.filterwarnings("ignore:.*nothing but zeros")
def test_pages_on_real_data_print_what_they_show(name: str, data: Path) -> None:
    if not (data / f"{SETS[name]}.npz").exists():
        pytest.skip("the shared data sets are not here")
    if name == "cells":
        pytest.importorskip("mudata")
    examples, differs = python_differs(page(name), f"{name}.md")
    assert examples > 10
    assert not differs


@pytest.mark.parametrize(("name", "held"), SETS.items())
def test_pages_fetch_sets_that_can_be_fetched(name: str, held: str) -> None:
    assert f'datasets.fetch("{held}")' in page(name)
    assert held in {source.name for source in datasets.sources()}
