"""Results as files: the page is whole, and what is written is escaped and complete."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bench_results import SETS, line

from viewfold_research.bench import _sheets, show
from viewfold_research.bench.results import Cell, Outcome, Results


@pytest.fixture(scope="module")
def written(results_folder: Path) -> dict[str, str]:
    paths = show.write(results_folder, ["html", "md", "csv", "tex"])
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


def test_the_same_results_give_the_same_page(small_results: Path) -> None:
    first, again = (
        show.write(small_results, ["html"])[0].read_text(encoding="utf-8") for _ in range(2)
    )
    assert "<svg" in first
    assert first == again


def test_markdown_has_labelled_means_and_maxima_and_the_published_number(
    results_folder: Path, written: dict[str, str]
) -> None:
    section = written["results.md"].split("## Incomplete views, all")[0]
    head, _, *rows = [text for text in section.splitlines() if text.startswith("|")]
    assert "| ACC mean ± std | ACC max | ACC published (difference) | NMI mean ± std |" in head
    row = line(show.tables(results_folder)["complete"], "uci-digit", "FCMVC-IV")
    expected = (
        f"| FCMVC-IV | {row['mean']:.2f} ± {row['std']:.2f} | {row['max']:.2f} | 85.30 "
        f"(−{-row['difference']:.2f}) |"
    )
    assert any(expected in text for text in rows)
    best = [text for text in rows if "**" in text]
    assert len(best) == len(SETS)
    assert all("ViewFold" in text for text in best)


def test_csv_holds_the_numbers_in_full(results_folder: Path, written: dict[str, str]) -> None:
    again = pd.read_csv(results_folder / "complete.csv")
    table = show.tables(results_folder)["complete"]
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


def test_an_unknown_format_is_an_error(results_folder: Path) -> None:
    with pytest.raises(ValueError, match=r"no format 'docx'. Known are: html, md"):
        show.write(results_folder, ["html", "docx"])


def test_figures_are_saved_one_by_one(small_results: Path) -> None:
    paths = show.write(small_results, ["svg", "png"])
    assert [path.name for path in paths] == ["scale.svg", "scale.png"]
    assert paths[1].read_bytes().startswith(b"\x89PNG")


def test_a_file_is_complete_or_as_it_was(
    small_results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("svg", "csv", "html"):
        show.write(small_results, [kind])
        before = {path.name: path.read_bytes() for path in small_results.iterdir()}
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("full")))
            patch.setattr(show, "_inline", lambda *_: "another page")
            with pytest.raises(OSError, match="full"):
                show.write(small_results, [kind])
        assert {path.name: path.read_bytes() for path in small_results.iterdir()} == before


def test_names_that_begin_with_a_digit_are_not_set_like_numbers() -> None:
    numbers = ["3", "78.1 ± 2.0", "85.30 (−2.59)", "2 of 20", "61.2–70.1", "30 %", "–", "1,000"]
    assert all(_sheets.Cell(text).numeric for text in numbers)
    assert not any(_sheets.Cell(text).numeric for text in ["3sources", "100leaves", "time"])
