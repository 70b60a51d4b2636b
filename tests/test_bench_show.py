"""The published numbers, and the tables and figures that are made from a results database."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from conftest import SHARED

from viewfold.bench import _figures, _sheets, _tables, methods, published, show
from viewfold.bench.results import Cell, Outcome, Results, as_setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = {"ViewFold": 24, "FCMVC-IV": 0, "FCMVC-IV exact": 0.4, "FCMVC+ZF": -2, "IMG": -9}
METRICS = {"ACC": 60.0, "NMI": 50.0, "purity": 62.0, "F": 45.0}
SETS = {"uci-digit": 2000, "Wiki": 2866}


def scores(rng: np.random.Generator, height: float, runs: int = 50) -> dict[str, list[float]]:
    return {m: list(base + height + rng.normal(0, 2, runs)) for m, base in METRICS.items()}


def outcome(rng: np.random.Generator, method: str, n: int, height: float = 0) -> Outcome:
    if method == "IMG" and n > 2500:
        return Outcome("out of memory", load=1.0)
    return Outcome(
        scores=scores(rng, METHODS[method] + height, 1 if method == "ViewFold" else 50),
        cpu_seconds=1e-5 * n ** (2.6 if method == "IMG" else 1) * rng.uniform(0.9, 1.1),
        wall_seconds=1e-5 * n,
        peak_bytes=int(900 * n ** (2 if method == "IMG" else 1)),
        n_samples=n,
        n_clusters=10,
        load=0.7,
    )


def curve(rng: np.random.Generator, rises: bool) -> list[float]:
    fall = list(1000 * (0.8 + 0.2 * np.exp(-0.5 * np.arange(12))) + rng.normal(0, 0.01))
    fall.append(fall[-1] * (1 + 1e-13))  # round-off
    return [*fall, fall[-1] + 9, fall[-1] + 8.9] if rises else fall


def fill(database: Results) -> None:
    rng = np.random.default_rng(0)
    for method in METHODS:
        for name, n in SETS.items():
            found = outcome(rng, method, n)
            database.add(Cell("complete", name, method), found)
            database.add(Cell("time", name, method), found)
            for ratio in (0.1, 0.2, 0.3, 0.4, 0.5):
                for draw in range(3):
                    cell = Cell("incomplete", name, method, ratio, draw)
                    database.add(cell, outcome(rng, method, n, -40 * ratio))
        for n in (1000, 10_000, 100_000):
            cell = Cell("scale", "synthetic", method, setting=as_setting(n=n))
            database.add(cell, outcome(rng, method, n))
    for method in ("ViewFold", "FCMVC-IV"):
        for name in ("uci-digit", "Wiki"):
            for order in permutations(range(3)):
                shift = 0 if method == "ViewFold" else 9 * order[-1]
                cell = Cell("order", name, method, setting=as_setting(order=list(order)))
                database.add(cell, outcome(rng, method, 500, shift))
    for method, rises in (("FCMVC-IV", True), ("FCMVC-IV exact", False)):
        views = [[500.0], curve(rng, False), curve(rng, rises)]
        cell = Cell("convergence", "proteinFold", method, 0.3)
        database.add(cell, Outcome(curves=views, n_samples=694))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("results")
    with Results(path, write=True) as database:
        fill(database)
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Results that make one figure."""
    with Results(tmp_path, write=True) as database:
        for n in (100, 1000):
            cell = Cell("scale", "synthetic", "ViewFold", setting=as_setting(n=n))
            database.add(cell, Outcome(cpu_seconds=n / 100, peak_bytes=n, n_samples=n))
    return tmp_path


# ---- the paper's numbers ------------------------------------------------------------------------


def test_published_numbers_come_with_their_place() -> None:
    complete, incomplete = published.table("complete"), published.table("incomplete")
    assert (len(complete), len(incomplete)) == (4 * 8 * 10, 4 * 8 * 8)
    assert set(complete["metric"]) == set(incomplete["metric"]) == set(METRICS)
    assert set(published.table("parameters")["method"]) >= {"FMR", "FCMVC", "IMG", "FCMVC-IV"}
    for table in (complete, incomplete):
        assert (table["value"].isna() == (table["note"] == "out of memory")).all()
        assert not table.duplicated(["dataset", "method", "metric"]).any()
        assert table["source"].is_unique
    row = incomplete.query("dataset == 'proteinFold' and method == 'PVC' and metric == 'F'").iloc[0]
    assert (row["value"], row["std"]) == (9.79, 1.87)  # the source has a blank inside the number
    assert row["source"] == "incomlete_result: F, proteinFold; PVC"


@pytest.mark.parametrize("experiment", ["complete", "incomplete"])
def test_every_method_of_the_paper_has_its_numbers_beside_what_is_found(
    experiment: str, tmp_path: Path
) -> None:
    theirs = published.table(experiment)
    ours = {_tables.key(name): name for name in methods.names()}
    with Results(tmp_path, write=True) as database:
        for name in theirs["method"].unique():
            for ratio in (0.1, 0.2, 0.3, 0.4, 0.5) if experiment == "incomplete" else (0.0,):
                cell = Cell(experiment, "Wiki", ours[_tables.key(name)], ratio)
                database.add(cell, Outcome(scores={m: [1.0, 3.0] for m in METRICS}))
    found = show.tables(tmp_path)[experiment]
    assert len(found) == len(METRICS) * theirs["method"].nunique()
    assert (found["mean"] == 2).all()
    assert (found["max"] == 3).all()
    assert (found["published"].notna() | (found["published_note"] != "")).all()
    expected = theirs[theirs["dataset"] == "Wiki"]["value"].dropna()
    assert sorted(found["published"].dropna()) == sorted(expected)
    assert np.allclose((3 - found["published"] - found["difference"]).dropna(), 0)


def test_what_the_paper_shows_only_as_a_picture_is_an_error() -> None:
    with pytest.raises(ValueError, match="no numbers for 'time'"):
        published.table("time")


def tex() -> str:
    path = SHARED / "paper" / "fcmvc-iv.tex"
    if not path.exists():
        pytest.skip("the source of the paper is not here")
    return path.read_text(encoding="utf-8")


def test_published_numbers_are_those_of_the_source() -> None:
    """Find the numbers again in another way: by lines and patterns, not by cells."""
    found: dict[str, list[str]] = {"complete": [], "incomplete": []}
    for line in tex().splitlines():
        name = re.match(r"\\multicolumn\{1\}\{c\}\{(\w[\w-]*)\}\s*&", line)
        if name is None:
            continue
        numbers = re.findall(r"\d+\. ?\d\d|[{\s]-[}\s]", line)
        cells = [n.replace(" ", "").strip("{}") for n in numbers]
        kind = "incomplete" if "±" in line else "complete"
        if kind == "incomplete":  # pairs; a dash stands for both
            cells = re.findall(r"-|[\d.]+", " ".join(cells))
        found[kind].append(f"{name[1]} {' '.join(cells)}")
    for kind, lines in found.items():
        table = published.table(kind)
        rows = []
        for (_, dataset), part in table.groupby(["metric", "dataset"], sort=False):
            pairs = part[["value", "std"]].to_numpy() if kind == "incomplete" else part[["value"]]
            texts = [
                "-" if np.isnan(pair[0]) else " ".join(f"{x:.2f}" for x in pair)
                for pair in np.asarray(pairs)
            ]
            rows.append(f"{dataset} {' '.join(texts)}")
        assert rows == lines


def test_the_transcript_can_be_made_again() -> None:
    made = published.transcribe(tex())
    for experiment in published.EXPERIMENTS:
        stored = published.table(experiment)
        again = made[made["experiment"] == experiment].drop(columns="experiment")
        for name in stored:
            expected = again[name].to_numpy()
            if name in ("value", "std"):
                assert np.array_equal(stored[name], expected.astype(float), equal_nan=True)
            else:
                assert stored[name].tolist() == ["" if x != x else x for x in expected]


# ---- tables -------------------------------------------------------------------------------------


def raw(folder: Path, experiment: str, dataset: str, method: str, metric: str) -> np.ndarray:
    """Runs of all cells: ratios × draws × runs."""
    with Results(folder) as database:
        rows = database.query(
            "SELECT list(value ORDER BY run) FROM cells JOIN scores USING (cell) WHERE "
            "(experiment, dataset, method, metric) = (?, ?, ?, ?) GROUP BY ratio, draw "
            "ORDER BY ratio, draw",
            [experiment, dataset, method, metric],
        )
    return np.array([row[0] for row in rows]).reshape(len(rows) // 3 or 1, -1, len(rows[0][0]))


def line(table: pd.DataFrame, dataset: str, method: str, metric: str = "ACC") -> pd.Series:
    chosen = (table[["dataset", "method", "metric"]] == (dataset, method, metric)).all(axis=1)
    assert chosen.sum() == 1
    return table[chosen].iloc[0]


def test_complete_table_has_mean_and_max_and_is_compared_by_its_max(folder: Path) -> None:
    runs = raw(folder, "complete", "uci-digit", "FCMVC-IV", "ACC")
    row = line(show.tables(folder)["complete"], "uci-digit", "FCMVC-IV")
    assert row["mean"] == pytest.approx(runs.mean())
    assert row["std"] == pytest.approx(runs.std(ddof=1))
    assert row["max"] == pytest.approx(runs.max())
    assert (row["runs"], row["published"]) == (50, 85.30)
    assert row["difference"] == pytest.approx(runs.max() - 85.30)
    assert row["source"] == "comlete_result: ACC, uci-digit; FCMVC"


def test_incomplete_table_aggregates_over_ratios_as_the_paper_does(folder: Path) -> None:
    runs = raw(folder, "incomplete", "Wiki", "FCMVC+ZF", "NMI")
    assert runs.shape == (5, 3, 50)
    row = line(show.tables(folder)["incomplete"], "Wiki", "FCMVC+ZF", "NMI")
    for name, draws in (("mean", runs.mean(axis=2)), ("max", runs.max(axis=2))):
        ratios = draws.mean(axis=1)
        std = {"mean": "std", "max": "max_std"}[name]
        assert row[name] == pytest.approx(ratios.mean())
        assert row[std] == pytest.approx(ratios.std(ddof=1))
    assert row["ratios"] == "0.1, 0.2, 0.3, 0.4, 0.5"
    assert (row["published"], row["published_std"]) == (34.32, 6.73)
    assert row["difference"] == pytest.approx(row["max"] - 34.32)


def test_an_average_over_other_ratios_is_not_compared_with_the_papers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with Results(tmp_path, write=True) as database:
        for ratio in (0.1, 0.3, 0.5):
            cell = Cell("incomplete", "Wiki", "FCMVC-IV", ratio)
            database.add(cell, Outcome(scores=scores(rng, 0, 5), n_samples=9))
    row = line(show.tables(tmp_path)["incomplete"], "Wiki", "FCMVC-IV")
    assert (row["ratios"], row["published"]) == ("0.1, 0.3, 0.5", 45.38)
    assert np.isnan(row["difference"])


def test_bands_over_ratios_are_deviations_over_draws(folder: Path) -> None:
    runs = raw(folder, "incomplete", "Wiki", "FCMVC-IV", "F")
    table = show.tables(folder)["ratios"]
    row = line(table[table["ratio"] == 0.3], "Wiki", "FCMVC-IV", "F")
    assert row["mean"] == pytest.approx(runs[2].mean())
    assert row["std"] == pytest.approx(runs[2].mean(axis=1).std(ddof=1))
    assert row["draws"] == 3


def test_a_method_that_ran_out_of_memory_has_a_row_that_says_so(folder: Path) -> None:
    tables = show.tables(folder)
    for name in ("complete", "incomplete"):
        row = line(tables[name], "Wiki", "IMG")
        assert np.isnan(row["mean"])
        assert row["note"] == "out of memory"
    assert line(tables["incomplete"], "Wiki", "IMG")["published_note"] == "out of memory"
    assert tables["failures"]["cells"].sum() == 1 + 1 + 15 + 2
    big = tables["scale"].query("method == 'IMG' and n_samples == 100_000").iloc[0]
    assert big["note"] == "out of memory"  # although the cell itself could not say its size


def test_time_is_relative_to_fcmvc(folder: Path) -> None:
    table = show.tables(folder)["time"].set_index(["dataset", "method"])
    assert table.loc[("uci-digit", "FCMVC-IV"), "relative"] == 1
    seconds = table.loc["uci-digit", "cpu_seconds"]
    assert table.loc[("uci-digit", "IMG"), "relative"] == pytest.approx(
        seconds["IMG"] / seconds["FCMVC-IV"]
    )


def test_order_table_has_the_spread_over_orders(folder: Path) -> None:
    with Results(folder) as database:
        means = [
            row[0]
            for row in database.query(
                "SELECT avg(value) FROM cells JOIN scores USING (cell) WHERE experiment = 'order' "
                "AND dataset = 'uci-digit' AND method = 'FCMVC-IV' AND metric = 'ACC' GROUP BY cell"
            )
        ]
    row = line(show.tables(folder)["order"], "uci-digit", "FCMVC-IV")
    assert row["orders"] == len(means) == 6
    assert row["lowest"] == pytest.approx(min(means))
    assert row["spread"] == pytest.approx(max(means) - min(means))


def test_a_rise_of_the_objective_is_counted_and_round_off_is_not(folder: Path) -> None:
    table = show.tables(folder)["convergence"].set_index(["method", "view"])
    assert table["rose"].to_dict() == {
        ("FCMVC-IV", 0): 0,
        ("FCMVC-IV", 1): 0,
        ("FCMVC-IV", 2): 1,
        ("FCMVC-IV exact", 0): 0,
        ("FCMVC-IV exact", 1): 0,
        ("FCMVC-IV exact", 2): 0,
    }
    assert table.loc[("FCMVC-IV", 2), "iterations"] == 15
    assert table.loc[("FCMVC-IV exact", 2), "change"] == pytest.approx(-20, abs=0.1)


def test_results_in_another_order_of_views_are_kept_apart(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with Results(tmp_path, write=True) as database:
        for setting in ("{}", as_setting(order=[1, 0])):
            for seed in (0, 1):
                cell = Cell("complete", "Wiki", "FCMVC-IV", setting=setting, seed=seed)
                database.add(cell, Outcome(scores=scores(rng, 0, 5), n_samples=9))
    table = show.tables(tmp_path)["complete"]
    assert set(table["dataset"]) == {"Wiki (order of the file)", "Wiki (order [1, 0])"}
    assert set(table["runs"]) == {10}  # another seed is more of the same
    assert set(table[table["metric"] == "ACC"]["published"]) == {57.75}


def test_a_folder_without_results_is_an_error_and_an_empty_one_is_not(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not exist"):
        show.tables(tmp_path)
    with Results(tmp_path, write=True):
        pass
    assert show.tables(tmp_path) == {}
    assert show.figures(tmp_path) == {}
    (page,) = show.write(tmp_path, ["html"])
    assert "none yet" in page.read_text(encoding="utf-8")


# ---- files --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(folder: Path) -> dict[str, str]:
    paths = show.write(folder, ["html", "md", "csv", "tex"])
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


def test_the_page_is_whole_and_needs_nothing_from_outside(written: dict[str, str]) -> None:
    page = written["results.html"]
    assert not re.findall(r'(?:src|href)="(?!#)[^"]*"|@import|<script|<link|url\((?!#)', page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)) > 100
    used = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page)
    assert {a or b for a, b in used} <= set(ids)
    figures = ["incomplete-Wiki", "time", "order", "convergence-proteinFold", "scale"]
    for name in figures:
        assert f'<figure aria-label="{name}"><svg role="img"' in page
    for text in ("mean ± std", "published (difference)", "out of memory", "each missing ratio"):
        assert text in page


def test_the_same_results_give_the_same_page(small: Path) -> None:
    first, again = (show.write(small, ["html"])[0].read_text(encoding="utf-8") for _ in range(2))
    assert "<svg" in first
    assert first == again


def test_markdown_has_labelled_means_and_maxima_and_the_published_number(
    folder: Path, written: dict[str, str]
) -> None:
    section = written["results.md"].split("## Incomplete views, all")[0]
    head, _, *rows = [text for text in section.splitlines() if text.startswith("|")]
    assert "| ACC mean ± std | ACC max | ACC published (difference) | NMI mean ± std |" in head
    row = line(show.tables(folder)["complete"], "uci-digit", "FCMVC-IV")
    expected = (
        f"| FCMVC-IV | {row['mean']:.2f} ± {row['std']:.2f} | {row['max']:.2f} | 85.30 "
        f"(−{-row['difference']:.2f}) |"
    )
    assert any(expected in text for text in rows)
    best = [text for text in rows if "**" in text]
    assert len(best) == len(SETS)
    assert all("ViewFold" in text for text in best)


def test_csv_holds_the_numbers_in_full(folder: Path, written: dict[str, str]) -> None:
    again = pd.read_csv(folder / "complete.csv")
    table = show.tables(folder)["complete"]
    assert again.columns.tolist() == table.columns.tolist()
    assert np.allclose(again["mean"], table["mean"], rtol=1e-14, equal_nan=True)


def test_latex_is_balanced_and_escaped(written: dict[str, str]) -> None:
    for name, text in written.items():
        if not name.endswith(".tex"):
            continue
        assert text.count(r"\begin{") == text.count(r"\end{") == 2
        assert not re.search(r"(?<!\\)(%(?!\n)|[_#])|[±−–…]", text)
        widths = {re.sub(r"\\multicolumn\{(\d+)\}", lambda m: "&" * (int(m[1]) - 1), row).count("&")
                  for row in text.splitlines() if row.endswith(r"\\")}  # fmt: skip
        assert len(widths) == 1
    assert r"$\pm$" in written["complete.tex"]
    assert "30 \\%" in written["ratios.tex"]


def test_what_stands_in_the_database_cannot_break_the_page(tmp_path: Path) -> None:
    with Results(tmp_path, write=True) as database:
        cell = Cell("complete", "a<b>&", "x_y%|z")
        database.add(cell, Outcome("failed: <script>alert(1)</script> #1"))
    texts = {p.name: p.read_text(encoding="utf-8") for p in show.write(tmp_path)}
    assert "<script" not in texts["results.html"]
    assert "a&lt;b&gt;&amp;" in texts["results.html"]
    assert r"x\_y\%|z" in texts["complete.tex"]
    assert "x_y%/z" in texts["results.md"]


def test_names_that_begin_with_a_digit_are_not_set_like_numbers() -> None:
    numbers = ["3", "78.1 ± 2.0", "85.30 (−2.59)", "2 of 20", "61.2–70.1", "30 %", "–", "1,000"]
    assert all(_sheets.Cell(text).numeric for text in numbers)
    assert not any(_sheets.Cell(text).numeric for text in ["3sources", "100leaves", "time"])


def test_an_unknown_format_is_an_error(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"no format 'docx'. Known are: html, md"):
        show.write(folder, ["html", "docx"])


# ---- figures ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn(folder: Path) -> dict[str, Figure]:
    return show.figures(folder)


def test_figures_are_saved_one_by_one(small: Path) -> None:
    paths = show.write(small, ["svg", "png"])
    assert [path.name for path in paths] == ["scale.svg", "scale.png"]
    assert paths[1].read_bytes().startswith(b"\x89PNG")


def test_a_file_is_complete_or_as_it_was(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("svg", "csv", "html"):
        show.write(small, [kind])
        before = {path.name: path.read_bytes() for path in small.iterdir()}
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("full")))
            patch.setattr(show, "_inline", lambda *_: "another page")
            with pytest.raises(OSError, match="full"):
                show.write(small, [kind])
        assert {path.name: path.read_bytes() for path in small.iterdir()} == before


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


def test_drawing_leaves_the_users_settings_alone(folder: Path) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    show.figures(folder)
    assert dict(matplotlib.rcParams) == before


def test_importing_the_renderer_imports_nothing_heavy() -> None:
    code = "import sys, viewfold.bench.show; print(*(m.split('.')[0] for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"matplotlib", "pandas", "duckdb", "jinja2", "sklearn"} & set(done.stdout.split())
