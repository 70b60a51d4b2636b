"""Time that reading takes grows with the number of columns, not with its square.

Comparisons of names are counted, and patterns that are made; nothing is timed. The benchmark
``research/benchmarks/columns.py`` compares the time with that of pandas.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from viewfold import as_view, inspect_views
from viewfold._util.file import ReadOptions
from viewfold.data import files as io
from viewfold.data import numbers
from viewfold.data.arrays import Batches
from viewfold.data.columnar import same_columns
from viewfold.data.features import check_no_twins, expand
from viewfold.data.source import Table, without
from viewfold.data.view import Column, tell_columns

NONE: frozenset[str] = frozenset()


class Name(str):
    """A name that counts how often it is compared; sets and dicts compare equal ones only."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other


def names(d: int) -> list[str]:
    return [Name(f"c{j}") for j in range(d)]


def facts(features: list[str]) -> Table:
    return Table(Batches(iter), features=tuple(features), sizes=(5,), id_kind="texts")


def refuse_twins(d: int) -> None:
    with pytest.raises(ValueError, match="two features are called"):
        check_no_twins([*names(d), f"c{d - 1}"], "labs")


STEPS: dict[str, Callable[[int], Any]] = {
    "columns to take": lambda d: ReadOptions(columns=tuple(names(d))).wanted(names(d), "labs"),
    "columns to drop": lambda d: ReadOptions(drop=tuple(names(d)[1:])).wanted(names(d), "labs"),
    "columns of a known view": lambda d: tell_columns(
        dict.fromkeys(names(d), "number"), names(d), "labs"
    ),
    "columns that have new names": lambda d: ReadOptions(
        rename=dict(zip(names(d), (f"new {name}" for name in names(d)), strict=True))
    ).known_names([Name(f"new {name}") for name in names(d)], "labs"),
    "features of rows": lambda d: expand(
        np.ones((2, d)), names(d), {}, [Column(name, "number") for name in names(d)]
    ),
    "columns of two files": lambda d: same_columns(
        facts(names(d)[::-1]), facts(names(d)), "b.parquet", "a.parquet"
    ),
    "columns that are left out": lambda d: without(names(d), names(d)),
    "features that are twins": refuse_twins,
}


@pytest.mark.parametrize("step", STEPS)
def test_names_are_compared_a_few_times_each(step: str) -> None:
    Name.compared = 0
    STEPS[step](1000)
    assert Name.compared <= 12 * 1000


def test_patterns_are_made_once_for_a_file(tmp_path: Path, monkeypatch) -> None:
    frame = pd.DataFrame(np.arange(800.0).reshape(4, 200) + 0.5).add_prefix("c")
    frame.to_csv(tmp_path / "t.csv", index=False)
    made = []
    for name in ("compile", "escape"):
        own = getattr(re, name)
        monkeypatch.setattr(
            numbers.re, name, lambda *args, own=own: (made.append(1), own(*args))[1]
        )
    list(io.read(tmp_path / "t.csv")["t"].rows)
    monkeypatch.undo()
    assert len(made) <= 20


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "xlsx"])
def test_a_file_with_thousands_of_columns_is_read(ending: str, tmp_path: Path) -> None:
    d = 3000
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(12, d))).add_prefix("c")
    frame.insert(0, "id", [f"p{i}" for i in range(12)])
    frame["ward"] = ["ER", "ICU"] * 6
    path = tmp_path / f"t.{ending}"
    writers: dict[str, Callable[[], Any]] = {
        "csv": lambda: frame.to_csv(path, index=False),
        "tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
        "jsonl": lambda: frame.to_json(path, orient="records", lines=True, double_precision=15),
        "parquet": lambda: frame.to_parquet(path, index=False),
        "xlsx": lambda: frame.to_excel(path, index=False),
    }
    writers[ending]()
    view = as_view(path, ids="id", drop=[f"c{j}" for j in range(0, d, 2)])
    assert view.features == (*(f"c{j}" for j in range(1, d, 2)), "ward=ER", "ward=ICU")
    (found,) = inspect_views(path, ids="id")
    assert len(found.columns) == d + 1


def test_facts_of_files_with_other_columns_name_them() -> None:
    first = facts(["a", "b"])
    with pytest.raises(io.FileError, match=r"it has no 'b' and it has 'c'"):
        same_columns(replace(first, features=("a", "c")), first, "b.parquet", "a.parquet")
