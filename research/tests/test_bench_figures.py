"""Figures of results: one look for each method, and what ended early is marked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from bench_results import METHODS, SETS

from viewfold_research.bench import _figures, methods, show
from viewfold_research.bench.results import Cell, Outcome, Results

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
    panels = drawn["time"].axes
    assert [panel.get_title() for panel in panels] == list(SETS)
    assert [[t.get_text() for t in panel.texts] for panel in panels] == [[], ["out of memory"]]
    assert {panel.get_xscale() for panel in panels} == {"log"}


def test_the_time_figure_names_all_methods_and_why_some_did_not_end(tmp_path: Path) -> None:
    every = methods.names()
    ends = {"FMR": "out of memory", "MNMF": "time", "PVC": "failed: no luck"}
    with Results(tmp_path, write=True) as database:
        for name in every:
            done = Outcome(cpu_seconds=2.0, wall_seconds=2.0, peak_bytes=9, n_samples=9)
            database.add(Cell("time", "a", name), Outcome(ends[name]) if name in ends else done)
        database.add(Cell("time", "b", "ViewFold"), Outcome(cpu_seconds=90.0, peak_bytes=9))
    first, second = show.figures(tmp_path)["time"].axes
    assert sorted(label.get_text() for label in first.get_yticklabels()) == sorted(every)
    assert sorted(t.get_text() for t in first.texts) == ["failed", "out of memory", "time"]
    assert [t.get_text() for t in second.texts] == ["–"] * (len(every) - 1)  # not asked
    assert first.get_xlim() == second.get_xlim()
    assert first.get_xlim()[1] > 90


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
    code = (
        "import sys, viewfold_research.bench.show; print(*(m.split('.')[0] for m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"matplotlib", "pandas", "duckdb", "jinja2", "sklearn"} & set(done.stdout.split())
