"""What is wrong with one partition is told with its name, and nothing is left of the attempt."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from partitions import frame, left_in, on_disk, written

from viewfold import ViewFold, as_view
from viewfold.rows import LocalEngine, using

Change = Callable[[pd.DataFrame], pd.DataFrame]


def other(change: Change) -> Callable[[Path], None]:
    """Return what changes the third partition."""

    def apply(file: Path) -> None:
        change(pd.read_parquet(file)).to_parquet(file, index=False)

    return apply


def with_cell(name: str, value: object) -> Callable[[Path], None]:
    def change(table: pd.DataFrame) -> pd.DataFrame:
        table = table.astype({name: object}) if isinstance(value, str) else table
        table.loc[7, name] = value
        return table

    return other(change)


BOTH = {
    "no column": (other(lambda t: t.drop(columns="f3")), "it has no 'f3'"),
    "another column": (other(lambda t: t.assign(age=1.0)), "it has 'age'"),
    "other numbers": (
        other(lambda t: t.astype({f"f{j}": "float32" for j in range(12)})),
        "its numbers are float32, those there are float64",
    ),
    "other cells": (
        other(lambda t: t.assign(f3="low")),
        "column 'f3' holds texts or dates, that of the other numbers",
    ),
    "other ids": (
        other(lambda t: t.assign(id=range(len(t)))),
        "its ids are whole numbers, those there are texts",
    ),
    "no id": (with_cell("id", None), ", row 7: there is no id"),
    "a word for no id": (with_cell("id", "n/a"), "row 7: the id 'n/a' says that there is none"),
    "damaged": (lambda file: file.write_bytes(file.read_bytes()[:-9]), "cannot be read as"),
}


@pytest.mark.parametrize("wrong", BOTH.values(), ids=list(BOTH))
def test_a_partition_that_does_not_fit_is_named(wrong, tmp_path: Path) -> None:
    spoil, said = wrong
    folder = written(tmp_path / "labs", frame())
    spoil(folder / "part.2.parquet")
    told = []
    for engine in (using(LocalEngine()), on_disk()):
        with engine as used:
            model = ViewFold(4, n_init=2, random_state=0).partial_fit(frame(seed=1), view="scan")
            before, held = model._state, left_in(used) if hasattr(used, "folder") else []
            with pytest.raises(ValueError, match=re.escape(said)) as error:
                model.partial_fit(folder, ids="id")
            assert "part.2.parquet" in str(error.value)
            told.append(str(error.value))
            assert model._state is before
            assert not hasattr(used, "folder") or left_in(used) == held
    assert told[0] == told[1]


def test_an_id_in_two_partitions_is_named_with_both(tmp_path: Path) -> None:
    table = frame()
    table.index = [*table.index[:-1], table.index[70]]
    table.index.name = "id"
    folder = written(tmp_path / "labs", table)
    with on_disk() as engine:
        with pytest.raises(ValueError, match="duplicate ids") as error:
            as_view(folder, ids="id")
        assert not left_in(engine)
    said = str(error.value)
    assert f"{table.index[70]!r} stands in row 10 of {folder}/part.1.parquet and row 59" in said
    assert f"of {folder}/part.3.parquet" in said


@pytest.mark.parametrize(("value", "shown"), [(np.inf, "inf"), (1e200, "1e+200")])
def test_a_cell_that_cannot_be_computed_with_is_named(value, shown, tmp_path: Path) -> None:
    folder = written(tmp_path / "labs", frame())
    with_cell("f3", value)(folder / "part.2.parquet")
    with on_disk() as engine:
        with pytest.raises(
            ValueError, match=re.escape(f"contains {shown} in row 7 (id '")
        ) as error:
            as_view(folder, ids="id")
        assert "part.2.parquet" in str(error.value)
        assert "column 'f3'" in str(error.value)
        with_cell("f3", np.nan)(folder / "part.2.parquet")
        with pytest.raises(ValueError, match=r"part\.2\.parquet\) contains NaN in row 7"):
            as_view(folder, ids="id", missing_cells="error")
        assert not left_in(engine)


def test_files_that_are_gone_or_closed_are_named(tmp_path: Path) -> None:
    folder = written(tmp_path / "labs", frame())
    files = sorted(folder.iterdir())
    closed = folder / "part.2.parquet"
    with on_disk() as engine:
        with pytest.raises(FileNotFoundError, match=re.escape("part.9.parquet: there is no such")):
            as_view([*files, folder / "part.9.parquet"], ids="id")
        with pytest.raises(ValueError, match="nosuch://views: cannot be fetched"):
            as_view("nosuch://views", ids="id")
        closed.unlink()
        closed.symlink_to(folder / "nowhere.parquet")
        with pytest.raises(FileNotFoundError, match=re.escape("part.2.parquet")):
            as_view([str(file) for file in files], ids="id")
        assert not left_in(engine)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    folder = written(tmp_path / "labs", frame())
    (folder / "part.2.parquet").chmod(0)
    with on_disk(), pytest.raises(PermissionError, match=re.escape("part.2.parquet")):
        as_view(folder, ids="id")


def test_a_file_that_changes_while_it_is_read_is_named(tmp_path: Path, monkeypatch) -> None:
    from viewfold.data import partitions as reading

    folder = written(tmp_path / "labs", frame())
    cut = reading.runs_of

    def changed(*given):
        other(lambda table: table[:50])(folder / "part.2.parquet")
        return cut(*given)

    monkeypatch.setattr(reading, "runs_of", changed)
    with on_disk() as engine:
        with pytest.raises(ValueError, match=r"part\.2\.parquet: 50 rows where it had 60"):
            as_view(folder, ids="id")
        assert not left_in(engine)


def test_columns_of_another_kind_in_one_partition_are_named(tmp_path: Path) -> None:
    table = frame()
    table["day"] = "2024-01-30"
    table.iloc[100, -1] = "2024-02-01"
    folder = written(tmp_path / "labs", table)
    other(lambda t: t.assign(day="Monday"))(folder / "part.2.parquet")
    with on_disk() as engine:
        with pytest.raises(ValueError, match=r"part\.2\.parquet, column 'day': its cells") as error:
            as_view(folder, ids="id")
        assert "are read as category, those of" in str(error.value)
        assert not left_in(engine)


def test_ids_that_nobody_named_are_asked_for(tmp_path: Path) -> None:
    folder = written(tmp_path / "labs", frame("numbers"))
    texts = written(tmp_path / "texts", frame())
    with on_disk() as engine:
        for path in (folder, texts):
            with pytest.raises(ValueError, match=r"column 'id' looks like ids.*Say ids='id'"):
                as_view(path)
        assert as_view(folder, ids=False).length == 240
        with pytest.raises(ValueError, match="there is no column 'patient'"):
            as_view(folder, ids="patient")
        with pytest.raises(ValueError, match="240 rows but 5 ids"):
            as_view(folder, ids=list("abcde"), columns=["f1"])
        assert not left_in(engine)


def test_rows_that_cannot_be_placed_are_named(tmp_path: Path) -> None:
    table = frame()
    table.iloc[130] = np.nan
    folder = written(tmp_path / "labs", table)
    with on_disk():
        model = ViewFold(4, n_init=2, random_state=0).partial_fit(folder, ids="id")
        with pytest.raises(ValueError, match=r"NaN in all of row 10 of .*part\.2\.parquet"):
            model.predict(folder, ids="id")
        with pytest.raises(ValueError, match="are known already"):
            model.extend([folder / "part.0.parquet"], ids="id", view="labs")
