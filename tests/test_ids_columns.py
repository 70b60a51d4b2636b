"""What is no id, and a column of ids that nobody named: neither is guessed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from conftest import SHARED
from ids_rows import TEXTS, N, folded, rows
from sklearn import datasets

from viewfold import FCMVC, as_view, as_views
from viewfold.data.id_columns import is_called_id


@pytest.mark.parametrize("word", ["", " ", "N/A", "NA", "nan", "NaN", "null", "None", "<NA>"])
def test_words_for_nothing_are_no_ids(word: str, tmp_path: Path) -> None:
    ids = ["7", word, "9"]
    with pytest.raises(ValueError, match=f"row 1: the id {word!r} says that there is none"):
        as_view(rows(3), ids=ids)
    frame = pd.DataFrame(rows(3), columns=list("abc")).assign(id=ids)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    for name, place in (("a.csv", "line 3"), ("a.parquet", "row 1"), ("a.jsonl", "line 2")):
        with pytest.raises(ValueError, match=f"{name}, {place}: (there is no id|the id .* says)"):
            as_view(tmp_path / name, ids="id")


def test_numbers_beyond_64_bits_do_not_wrap(tmp_path: Path) -> None:
    large = np.array([1, 2**63, 2**64 - 1], np.uint64)
    for ids in (large, pd.Index(large), [1, 2**70, 3], pl.Series(large)):
        with pytest.raises(ValueError, match=r"row 1: the id \d+ has more than 64 bits"):
            as_view(rows(3), ids=ids)
    pyarrow.parquet.write_table(pa.table({"id": large, "x": [1.0, 2, 3]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a.parquet: the id 18446744073709551615 has more than"):
        as_view(tmp_path / "a.parquet", ids="id")
    assert as_view(rows(3), ids=np.array([1, 2, 3], np.uint64)).ids.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "name",
    ["id", "ID", "patient_id", "PatientID", "sampleId", "id_patient", "index", "Unnamed: 0", "pid"],
)
def test_a_column_of_ids_is_no_feature(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(rows(), columns=list("abc"))
    frame[name] = np.arange(1000, 1000 + N)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    message = f"column {name!r} looks like ids (whole numbers that are all different). Say ids="
    for held in (frame, pl.from_pandas(frame), tmp_path / "a.csv", tmp_path / "a.parquet"):
        for take in (as_view, as_views, FCMVC(2).fit, FCMVC(2).partial_fit):
            with pytest.raises(ValueError, match=re.escape(message)):
                take(held)
        # In a file as people export it, whole numbers that name rows are no measurement.
        is_export = isinstance(held, Path) and held.suffix == ".csv"
        assert as_view(held, ids=False).shape == (N, 3 if is_export else 4)
        assert as_view(held, ids=False, columns=[*"abc", name]).shape == (N, 4)
        assert as_view(held, ids=False).ids.tolist() == list(range(N))
        assert as_view(held, ids=name).shape == (N, 3)


def test_who_it_is_tells_in_the_first_column() -> None:
    frame = pd.DataFrame({"patient": np.arange(5, 5 + N), "iron": rows()[:, 0]})
    with pytest.raises(ValueError, match="column 'patient' looks like ids"):
        as_view(frame)
    assert as_view(frame[["iron", "patient"]]).shape == (N, 2)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"id": [1, 1, 2, 2, 3, 3], "x": 1.0}),  # not different
        pd.DataFrame({"id": [0.5, 1.5, 2.5], "x": 1.0}),  # not whole
        pd.DataFrame({"acid": [1, 2, 3], "grid": [4, 5, 6], "paid": [7, 8, 9]}),  # not called so
        pd.DataFrame({"time": [1, 2, 3], "day": [1, 2, 3], "patients": [10, 20, 30]}),
        pd.DataFrame({"id": [1, 2, 3], "x": 1.0}, index=["a", "b", "c"]),  # ids are given
        pd.DataFrame(rows().round()),
    ],
)
def test_ordinary_columns_raise_no_alarm(frame: pd.DataFrame) -> None:
    assert as_view(frame).shape == frame.shape


@pytest.mark.parametrize(
    "name", ["iris", "wine", "breast_cancer", "diabetes", "digits", "linnerud"]
)
def test_no_alarm_on_tables_of_scikit_learn(name: str) -> None:
    frame = getattr(datasets, f"load_{name}")(as_frame=True)
    assert as_view(frame.data).shape == frame.data.shape
    assert not any(is_called_id(column, first=False) for column in frame.data)


def test_no_alarm_on_the_shared_sets() -> None:
    paths = sorted((SHARED / "data").glob("*.npz"))
    if not paths:
        pytest.skip("the shared data sets are not here")
    for path in paths:
        with pytest.warns(UserWarning, match="left out"):
            assert as_views(path)


def test_an_index_can_be_said_to_be_no_ids() -> None:
    frame = pd.DataFrame(rows(), index=TEXTS)
    assert as_view(frame, ids=False).length == N
    assert as_views([frame, frame], ids=False)[1].length == N


def test_a_column_that_holds_known_ids_is_named() -> None:
    model = folded(np.arange(100, 100 + N))
    frame = pd.DataFrame({"age": rows()[:, 0], "nr": np.arange(100, 100 + N)})
    with pytest.raises(ValueError, match="Column 'nr' holds ids that are known: ids='nr'"):
        model.partial_fit(frame)
