"""Texts that are numbers or dates in disguise are no categories, wherever a table comes from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from viewfold import as_view

N = 24


def of(*levels: Any) -> pd.DataFrame:
    """A number, and a column of a few texts."""
    column = [levels[i % len(levels)] for i in range(N)]
    return pd.DataFrame({"x": np.arange(N) / 2, "text": column}, index=[f"p{i}" for i in range(N)])


def parquet(frame: pd.DataFrame, folder: Path) -> Any:
    frame.reset_index(names="id").to_parquet(folder / "a.parquet", index=False)
    return folder / "a.parquet"


def csv(frame: pd.DataFrame, folder: Path) -> Any:
    frame.to_csv(folder / "a.csv", index_label="id")
    return folder / "a.csv"


def json_lines(frame: pd.DataFrame, folder: Path) -> Any:
    frame.reset_index(names="id").to_json(folder / "a.jsonl", orient="records", lines=True)
    return folder / "a.jsonl"


def pandas(frame: pd.DataFrame, _: Path) -> Any:
    return frame.reset_index(names="id")


HOLDERS = [pandas, csv, parquet, json_lines]
REFUSED = {
    "units": (["5 mg", "7.5 mg"], "numbers with 'mg'"),
    "units without a space": (["5mg", "10mg"], "numbers with 'mg'"),
    "large units": (["5 U/L", "10 U/L"], "numbers with 'U/L'"),
    "percent": (["10 %", "20 %"], "numbers with '%'"),
    "money": (["$5", "$10"], "numbers with '$'"),
    "dates": (["01.03.2024", "02.03.2024"], "Write them as 2024-12-31"),
    "dates with time": (["1/3/24 08:30", "2/3/24 09:30"], "Write them as 2024-12-31"),
    "dates of two kinds": (["2024-03-01", "01.03.2024"], "Write them as 2024-12-31"),
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("name", REFUSED)
def test_numbers_and_dates_in_disguise_are_refused(
    name: str, holder: Callable[..., Any], tmp_path: Path
) -> None:
    levels, message = REFUSED[name]
    # Files of text are cleaned: tests/test_cleaning.py.
    with pytest.raises(ValueError, match="column 'text' holds") as told:
        as_view(holder(of(*levels), tmp_path), ids="id", as_is=True)
    assert message in str(told.value)
    assert "categories='text'" in str(told.value)
    # The user may say what it is.
    view = as_view(holder(of(*levels), tmp_path), ids="id", categories="text")
    assert view.features == ("x", *sorted(f"text={level}" for level in levels))
    assert as_view(holder(of(*levels), tmp_path), ids="id", drop="text").features == ("x",)


@pytest.mark.parametrize(
    "levels",
    [
        ("1A", "2A", "3A"),
        ("Stage 1", "Stage 2"),
        ("T1", "T2"),
        ("1st", "2nd", "3rd"),
        ("20-29", "30-39"),
        ("<18", "18+"),
        ("ICU", "ER", "3a"),
        ("A/B", "10/B"),
        ("none", "5 mg", "ER"),
    ],
)
@pytest.mark.parametrize("holder", HOLDERS)
def test_words_with_digits_are_categories(
    levels: tuple[str, ...], holder: Callable[..., Any], tmp_path: Path
) -> None:
    view = as_view(holder(of(*levels), tmp_path), ids="id")
    missing = {"none"}  # stands for a missing cell
    assert view.features == (
        "x",
        *sorted(f"text={level}" for level in levels if level not in missing),
    )


@pytest.mark.parametrize("holder", HOLDERS)
def test_one_text_and_missing_cells_are_no_category(holder, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"'text' \(the same text in all rows that have one\)"):
        assert as_view(holder(of("none", "5 mg"), tmp_path), ids="id").features == ("x",)


@pytest.mark.parametrize("holder", [pandas, parquet])
def test_what_a_table_declares_a_category_is_one(
    holder: Callable[..., Any], tmp_path: Path
) -> None:
    frame = of("5 mg", "7 mg").astype({"text": "category"})
    view = as_view(holder(frame, tmp_path), ids="id")
    assert view.features == ("x", "text=5 mg", "text=7 mg")


def test_numbers_among_words_are_refused_in_every_table(tmp_path: Path) -> None:
    mixed = of(1, 2, "high")
    with pytest.raises(ValueError, match="numbers such as '1' and texts such as 'high'"):
        as_view(mixed.reset_index(names="id"), ids="id")
    with pytest.raises(ValueError, match="numbers such as '1' and texts such as 'high'"):
        as_view(parquet(mixed.astype({"text": str}), tmp_path), ids="id")
    with pytest.raises(ValueError, match="line 4, column 'text': 'high' is not a number"):
        as_view(csv(mixed, tmp_path), ids="id")
    absent = as_view(mixed.reset_index(names="id"), ids="id", categories=["text"])
    assert absent.features == ("x", "text=1", "text=2", "text=high")


def test_a_first_line_of_numbers_that_is_taken_for_names_is_told(tmp_path: Path) -> None:
    lines = [f"{'ward' if i % 2 else 'room'},{i}.5,{i % 5}" for i in range(1, N)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    with pytest.warns(UserWarning, match="first line holds the names of columns, such as '1.5'"):
        as_view(tmp_path / "a.csv", ids=False)


@pytest.mark.filterwarnings("error")
def test_columns_that_pandas_counted_are_no_surprise(tmp_path: Path) -> None:
    frame = pd.DataFrame(np.arange(3.0 * N).reshape(N, 3) / 7, index=[f"p{i}" for i in range(N)])
    frame.to_csv(tmp_path / "b.csv", index_label="id")
    assert as_view(tmp_path / "b.csv", ids="id").features == ("0", "1", "2")


@pytest.mark.filterwarnings("error")
def test_numbers_that_are_no_dates_are_no_surprise() -> None:
    codes = 20240100 + np.arange(N) * 3.0  # 20240100 is no day
    as_view(pd.DataFrame({"code": codes, "y": np.arange(N)}))
