"""Tables of pandas, polars and pyarrow whose columns, rows or ids are unusual: read, or refused."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from io_files import dense

from viewfold import ViewFold, as_view, as_views, inspect_views

WARD = ["ER", "ICU", "ER", "ICU"]
COLUMNS: dict[str, Any] = {
    "text": WARD,
    "category": pd.Categorical(WARD),
    "date": pd.date_range("2024-01-01", periods=4),
    "flags as objects": np.array([True, None, False, True], object),
    "numbers as text": ["1", "2", "3", "5"],
}
LIBRARIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("names", [(0, 1), (5, "iron"), (0.5, 1.5), (("a", 1), ("a", 2))])
def test_columns_called_by_anything_are_as_if_called_by_texts(names, kind: str) -> None:
    cells, numbers = COLUMNS[kind], [1.0, 2.0, 4.0, 8.0]
    table = pd.DataFrame({0: cells, 1: numbers})
    table.columns = pd.Index(names, tupleize_cols=False)
    found = as_view(table, name="labs")
    other = as_view(pd.DataFrame({str(names[0]): cells, str(names[1]): numbers}), name="labs")
    assert found.features == other.features
    np.testing.assert_array_equal(dense(found), dense(other))
    assert list(table.columns) == list(names)  # the table stays as it is


def test_columns_called_by_numbers_can_be_named() -> None:
    table = pd.DataFrame({0: ["p", "q", "r", "s"], 1: WARD, 2: [1.0, 2.0, 4.0, 8.0]})
    view = as_view(table, ids="0", drop=["1"], name="labs")
    assert (view.ids.tolist(), view.features) == (["p", "q", "r", "s"], ("2",))
    assert as_view(table[[2]], name="labs").features is None  # as before: numbers are no names


def test_rows_that_come_later_may_have_columns_called_by_numbers() -> None:
    rng = np.random.default_rng(0)
    ids = [f"p{i}" for i in range(40)]
    table = pd.DataFrame({0: rng.choice(WARD, 40), 1: rng.normal(size=40)}, index=ids)
    model = ViewFold(n_clusters=2, random_state=0).partial_fit(table, view="labs")
    assert len(model.predict(table.iloc[:5], view="labs")) == 5


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("columns", [["ward", "iron"], ["ward"], ["iron"]])
def test_a_table_without_rows_is_empty(library: str, columns: list[str]) -> None:
    table = LIBRARIES[library]({"ward": WARD, "iron": [1.0, 2.0, 4.0, 8.0]})
    table = table[columns] if library == "pandas" else table.select(columns)
    table = {"pandas": lambda: table.iloc[:0], "polars": lambda: table.head(0)}.get(
        library, lambda: table.slice(0, 0)
    )()
    said = r"^View 'labs' is empty: found array with 0 sample\(s\)"
    with warnings.catch_warnings(action="error"), pytest.raises(ValueError, match=said):
        as_view(table, name="labs")


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_table_without_columns_is_empty(library: str) -> None:
    with pytest.raises(ValueError, match=r"View 'labs' is empty: .* 0 feature\(s\)"):
        as_view(LIBRARIES[library]({}), name="labs")


TWICE = {
    "pandas": pd.DataFrame([[1.0, 2.0], [3.0, 5.0]], columns=["x", "x"]),
    "pandas with text": pd.DataFrame([["a", 2.0], ["b", 5.0]], columns=["x", "x"]),
    "pandas with numbers": pd.DataFrame([[1.0, 2.0], [3.0, 5.0]], columns=[7, 7]),
    "a number and its text": pd.DataFrame([["a", 2.0], ["b", 5.0]], columns=[7, "7"]),
    "pyarrow": pa.Table.from_arrays([pa.array([1.0, 2.0]), pa.array([3.0, 5.0])], ["x", "x"]),
}


@pytest.mark.parametrize("case", TWICE)
@pytest.mark.parametrize("read", ["as_view", "as_views", "inspect_views", "partial_fit"])
def test_columns_of_one_name_are_refused_with_the_view(case: str, read: str) -> None:
    table = TWICE[case]
    ways: dict[str, Callable[[], Any]] = {
        "as_view": lambda: as_view(table, name="labs"),
        "as_views": lambda: as_views({"labs": table}),
        "inspect_views": lambda: inspect_views({"labs": table}),
        "partial_fit": lambda: ViewFold(n_clusters=2).partial_fit(table, view="labs"),
    }
    with pytest.raises(ValueError, match=r"View 'labs': two columns are called '[x7]'. Give each"):
        ways[read]()


HALF = "p\ud800"


@pytest.mark.parametrize("known", [[HALF, "q"], ["p" * 20 + HALF, "q"], [7, HALF]])
def test_ids_with_half_a_character_are_refused_with_the_view(known: list[Any]) -> None:
    wrong = next(one for one in known if isinstance(one, str) and "\ud800" in one)
    said = "^" + re.escape(f"View 'labs': the id {wrong!r} holds half a character")
    for given in (known, pd.Index(known, dtype=object)):
        with pytest.raises(ValueError, match=said):
            as_view(np.eye(2), ids=given, name="labs")
    table = pd.DataFrame({"id": known, "x": [1.0, 2.0]})
    for X, ids in ((table, "id"), (table.set_index("id"), None)):
        with pytest.raises(ValueError, match=said):
            as_view(X, ids=ids, name="labs")


def test_names_with_half_a_character_are_refused_with_the_view() -> None:
    column = pd.DataFrame({HALF: [1.0, 2.0], "y": [3.0, 5.0]})
    level = pd.DataFrame({"w": [HALF, "b"] * 2, "y": [3.0, 5.0, 7.0, 9.0]})
    for table in (column, level):
        with pytest.raises(ValueError, match=r"View 'labs': the column '.*\\ud800' holds half a"):
            as_view(table, name="labs")
    with pytest.raises(ValueError, match=r"The name of a view 'p\\ud800' holds half a"):
        as_view(np.eye(2), name=HALF)


@pytest.mark.parametrize("known", ["Ω", "😀", "é" * 30])
def test_other_characters_are_fine(known: str) -> None:
    assert as_view(np.eye(2), ids=[known, "q"]).ids.tolist() == [known, "q"]


def test_one_view_of_a_dict_keeps_its_name_when_it_is_inspected() -> None:
    assert inspect_views({"labs": np.eye(3)})[0].name == "labs"


def test_a_column_may_have_the_name_of_an_attribute() -> None:
    table = pd.DataFrame({"column_names": WARD, "columns": [1.0, 2.0, 4.0, 8.0]})
    assert as_view(table).features == ("column_names=ER", "column_names=ICU", "columns")
