"""Figures of results: one look for each method, and what ended early is marked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from bench_results import METHODS

from viewfold.bench import _figures, show

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@pytest.fixture(scope="module")
def drawn(results_folder: Path) -> dict[str, Figure]:
    return show.figures(results_folder)


def test_a_method_looks_the_same_in_all_figures_and_like_no_other(
    drawn: dict[str, Figure],
) -> None:
    looks: dict[str, set[tuple[str, ...]]] = {}
    for name in ("incomplete-Wiki", "incomplete-uci-digit", "scale"):
        for ax in drawn[name].axes:
            for curve in ax.get_lines():
                label = str(curve.get_label()).partition(":")[0]
                if not label.startswith("_"):
                    look = curve.get_color(), curve.get_marker(), curve.get_linestyle()
                    looks.setdefault(label, set()).add(look)
    assert set(looks) == set(METHODS)
    assert all(len(found) == 1 for found in looks.values())
    assert len(set.union(*looks.values())) == len(METHODS)


def test_slopes_are_in_the_legend_and_ends_are_marked(drawn: dict[str, Figure]) -> None:
    time, _ = drawn["scale"].axes
    labels = [text.get_text() for text in time.get_legend().get_texts()]
    slope = next(float(label.split()[-1]) for label in labels if label.startswith("ViewFold"))
    assert slope == pytest.approx(1, abs=0.1)
    assert [text.get_text() for text in time.texts] == ["out of memory"] * 2
    (bars,) = drawn["time"].axes
    assert [text.get_text() for text in bars.texts] == ["out of memory"]
    assert bars.get_yscale() == "log"


def test_a_ring_marks_where_the_objective_rose(drawn: dict[str, Figure]) -> None:
    rings = [
        curve.get_xdata().tolist()
        for ax in drawn["convergence-proteinFold"].axes
        for curve in ax.get_lines()
        if curve.get_label() == "objective rose"
    ]
    assert rings == [[14]]


def test_many_methods_still_have_looks_of_their_own() -> None:
    cells = pd.DataFrame({"method": [f"method {i}" for i in range(24)]})
    looks = _figures._looks(cells).values()
    assert len({(look["color"], look["marker"], look["linestyle"]) for look in looks}) == 24


def test_drawing_leaves_the_users_settings_alone(results_folder: Path) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    show.figures(results_folder)
    assert dict(matplotlib.rcParams) == before


def test_importing_the_renderer_imports_nothing_heavy() -> None:
    code = "import sys, viewfold.bench.show; print(*(m.split('.')[0] for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"matplotlib", "pandas", "duckdb", "jinja2", "sklearn"} & set(done.stdout.split())
