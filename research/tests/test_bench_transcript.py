"""The numbers that the paper prints, with their place, as they stand in its source."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from bench_results import METRICS
from conftest import SHARED

from viewfold_research.bench import _tables, methods, published, show
from viewfold_research.bench.results import Cell, Outcome, Results


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
