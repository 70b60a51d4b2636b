"""Plain tables: what the study is given is what it says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from viewfold_research.tables import PLANTED, REAL, planted_tables, tables

spec = importlib.util.spec_from_file_location(
    "study_of_tables", Path(__file__).parents[1] / "tables.py"
)
assert spec is not None
assert spec.loader is not None
study = importlib.util.module_from_spec(spec)
spec.loader.exec_module(study)


def test_planted_tables_hide_the_classes_and_are_the_same_each_time():
    first, again = list(planted_tables(0)), list(planted_tables(0))
    assert [t.name for t in first] == list(PLANTED)
    for table, same in zip(first, again, strict=True):
        assert table.frame.equals(same.frame)
        assert len(np.unique(table.y)) == table.k == PLANTED[table.name].k
        assert len(table.frame) == len(table.y) <= 2000


def test_tables_of_packages_that_are_not_installed_are_named():
    missing: list[str] = []
    found = [t.name for t in tables(planted=False, missing=missing)]
    assert {*found, *(m.rsplit(" (", 1)[0] for m in missing)} == set(REAL)
    assert {"iris", "wine", "breast cancer", "digits"} <= set(found)


def test_every_row_keeps_one_of_the_views_it_is_dealt_into():
    table = next(t for t in planted_tables() if t.name == "ten numbers")
    views = study.deal_views(table, 0)
    assert set().union(*(v.index for v in views.values())) == set(table.frame.index)
    assert sorted(c for v in views.values() for c in v) == sorted(table.frame.columns)
    assert all(0.65 < len(v) / len(table.frame) < 0.8 for v in views.values())


def test_the_study_prints_every_method(capsys: pytest.CaptureFixture[str]):
    study.main(["--only", "two groups", "--planted", "--seeds", "1"])
    out = capsys.readouterr().out
    for name in ("ViewFold", "k-means", "k-prototypes", "mixture", "dealt ViewFold", "worst"):
        assert name in out
