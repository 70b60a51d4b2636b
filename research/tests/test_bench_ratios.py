"""Numbers on the command line: a range starts and ends where it says, or is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench_sets import cells
from click.testing import CliRunner

from viewfold_research.bench.cli import app


def ran(out: Path, sets: Path, ratios: str) -> list[float]:
    words = [
        "incomplete",
        "--data",
        sets,
        "--datasets",
        "easy",
        "--methods",
        "concatenated k-means",
    ]
    words += ["--draws", 1, "--kmeans-runs", 1, "--jobs", 1, "--ratios", ratios, "--out", out]
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return [ratio for (ratio,) in cells(out, "ratio")]


@pytest.mark.parametrize(
    ("text", "ratios"),
    [
        ("0.1..0.5", [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("0..0.3", [0, 0.1, 0.2, 0.3]),
        ("0.15..0.35", [0.15, 0.25, 0.35]),
        ("0.05..0.25", [0.05, 0.15, 0.25]),
        ("0.3..0.3", [0.3]),
        ("0.25,0.3", [0.25, 0.3]),
        ("0.15", [0.15]),
    ],
)
def test_a_range_goes_in_tenths_from_its_first_number_to_its_last(
    bench_sets: Path, tmp_path: Path, text: str, ratios: list[float]
) -> None:
    assert ran(tmp_path / "out", bench_sets, text) == ratios


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["incomplete", "--ratios", "0.1..0.35"], "0.35 is not a whole number of tenths above 0.1"),
        (["incomplete", "--ratios", "0.15..0.3"], "0.3 is not a whole number of tenths above 0.15"),
        (["incomplete", "--ratios", "0.5..0.1"], "0.1 is not a whole number of tenths above 0.5"),
        (["incomplete", "--ratios", "0.1..0.2..0.3"], "--ratios takes numbers"),
        (["incomplete", "--ratios", "0.1.."], "--ratios takes numbers"),
        (["incomplete", "--ratios", "nan..0.3"], "--ratios takes numbers"),
        (["incomplete", "--ratios", "0.1..inf"], "--ratios takes numbers"),
        (["incomplete", "--ratios", "nan"], "--ratios takes numbers"),
        (["incomplete", "--ratios", "0.1,inf"], "--ratios takes numbers"),
        (["complete", "--order", "0..2"], "--order takes whole numbers"),
        (["complete", "--order", "0.5,1"], "--order takes whole numbers"),
        (["scale", "--sizes", "1000.5"], "--sizes takes whole numbers"),
        (["scale", "--sizes", "1e3,inf"], "--sizes takes whole numbers"),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, list) else "",
)
def test_what_would_become_other_numbers_is_refused(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    words = [*arguments, "--methods", "concatenated k-means", "--out", str(tmp_path / "out")]
    if arguments[0] != "scale":
        words += ["--kmeans-runs", "1"]
    found: Any = CliRunner().invoke(app, words).exception
    assert isinstance(found, ValueError)
    assert said in str(found)
    assert not (tmp_path / "out").exists()
