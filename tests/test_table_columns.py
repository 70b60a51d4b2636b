"""Categories, booleans and dates of a table become features, the same from whatever holds it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from io_files import dense
from pandas.testing import assert_frame_equal
from test_cli import Run, run  # noqa: F401

import viewfold
from viewfold import FCMVC, ViewFold, as_view
from viewfold.rows import block_bytes
from viewfold.state.parts import StoredColumns
from viewfold.store.check import problems
from viewfold.store.models import state_of

N = 48
FEATURES = (
    "iron",
    "ward=ER",
    "ward=ICU",
    "ward=Üst",
    "smoker",
    "admitted.days",
    "admitted.month.sin",
    "admitted.month.cos",
    "admitted.weekday.sin",
    "admitted.weekday.cos",
)
IGNORE = pytest.mark.filterwarnings("ignore:.*columns that are no features")


def table(seed: int = 0) -> pd.DataFrame:
    """Patients: a number, a category with gaps, a flag, a date, and free text."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "iron": rng.normal(size=N).round(3),
            "ward": np.r_[["ICU", "ER", "Üst", None], rng.choice(["ICU", "ER", "Üst"], N - 4)],
            "smoker": rng.choice([True, False], N),
            "admitted": pd.date_range("2024-01-20", periods=N).strftime("%Y-%m-%d"),
            "note": [f"patient {i} says {seed}" for i in range(N)],
            "id": [f"p{i}" for i in range(N)],
        }
    )


def expected(frame: pd.DataFrame) -> np.ndarray:
    when = pd.to_datetime(frame["admitted"])
    wards = [
        (frame["ward"] == ward).astype(float).where(frame["ward"].notna())
        for ward in ("ER", "ICU", "Üst")
    ]
    days = (when - when.min()).dt.days
    parts = [frame["iron"], *wards, frame["smoker"], days]
    for part, period in ((when.dt.month - 1, 12), (when.dt.weekday, 7)):
        parts += [np.sin(2 * np.pi * part / period), np.cos(2 * np.pi * part / period)]
    return np.column_stack(parts).astype(float)


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    when = pd.to_datetime(frame["admitted"])
    return frame.astype({"ward": "category"}).assign(admitted=when)


HOLDERS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "pandas": lambda frame, _: frame,
    "pandas, typed": lambda frame, _: typed(frame),
    "pandas, nullable": lambda frame, _: frame.convert_dtypes(),
    "polars": lambda frame, _: pl.from_pandas(frame),
    "polars, typed": lambda frame, _: pl.from_pandas(frame).with_columns(
        pl.col("admitted").str.to_date(), pl.col("ward").cast(pl.Categorical)
    ),
    "Arrow": lambda frame, _: pa.Table.from_pandas(frame),
    "batches": lambda frame, _: iter([frame[:5], typed(frame[5:])]),
    "csv": lambda frame, path: _written(frame.to_csv, path / "labs.csv", index=False),
    "tsv": lambda frame, path: _written(frame.to_csv, path / "labs.tsv", sep="\t", index=False),
    "parquet": lambda frame, path: _written(frame.to_parquet, path / "labs.parquet", index=False),
    "parquet, typed": lambda frame, path: _written(
        typed(frame).to_parquet, path / "labs.pq", index=False, row_group_size=7
    ),
    "json lines": lambda frame, path: _written(
        frame.to_json, path / "labs.jsonl", orient="records", lines=True
    ),
    "folder": lambda frame, path: _parts(frame, path),
}


def _written(write: Callable[..., None], path: Path, **how: Any) -> Path:
    write(path, **how)
    return path


def _parts(frame: pd.DataFrame, folder: Path) -> Path:
    for i in range(0, N, 16):
        frame[i : i + 16].to_csv(folder / f"part{i}.csv", index=False)
    return folder


@IGNORE
@pytest.mark.parametrize("holder", HOLDERS)
def test_whatever_holds_a_table_its_features_are_the_same(holder: str, tmp_path: Path) -> None:
    with block_bytes(8 * 6 * 5):
        view = as_view(HOLDERS[holder](table(), tmp_path), ids="id")
    assert view.features == FEATURES
    assert np.allclose(view.rows.X, expected(table()), equal_nan=True)
    assert view.ids.tolist() == table()["id"].tolist()


@IGNORE
def test_row_order_and_batches_do_not_matter(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    turned = table().iloc[::-1]
    monkeypatch.setattr("viewfold.data.source.BATCH_BYTES", 0)
    monkeypatch.setattr("viewfold.data.text._BLOCK_CELLS", 200)
    monkeypatch.setattr("viewfold.data.columnar._SECTION_BYTES", 300)
    for name in ("csv", "parquet", "json lines"):
        view = as_view(HOLDERS[name](turned, tmp_path), ids="id")
        assert view.features == FEATURES
        assert np.allclose(view.rows.X, expected(table())[::-1], equal_nan=True)


@pytest.mark.parametrize("holder", ["pandas", "csv", "parquet", "json lines"])
def test_free_text_is_left_out_with_a_note_or_refused(holder: str, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"'note' \(texts that are all different\).*left out"):
        as_view(HOLDERS[holder](table(), tmp_path), ids="id")
    with pytest.raises(ValueError, match=r"'note'.*drop=\['note'\]"):
        as_view(HOLDERS[holder](table(), tmp_path), ids="id", strict=True)
    view = as_view(HOLDERS[holder](table(), tmp_path), ids="id", strict=True, drop=["note"])
    assert view.features == FEATURES


@pytest.mark.parametrize("holder", ["pandas", "csv", "parquet", "json lines"])
def test_columns_are_chosen_by_name(holder: str, tmp_path: Path) -> None:
    def held() -> Any:
        return HOLDERS[holder](table().assign(bed=np.arange(N) % 3 + 7), tmp_path)

    view = as_view(held(), ids="id", columns=["ward", "iron"])
    assert view.features == FEATURES[:4]
    view = as_view(
        held(), ids="id", columns=["bed", "ward"], categories={"bed": None, "ward": ["ICU"]}
    )
    assert set(view.features) == {"bed=7", "bed=8", "bed=9", "ward=ICU"}
    with pytest.raises(ValueError, match=r"no column 'wards', which columns=… names"):
        as_view(held(), ids="id", columns=["wards"])


def test_levels_that_are_not_given_are_missing_and_counted() -> None:
    frame = table().drop(columns="note")
    given = frame["ward"].isin(["ICU", "ER"])
    others = (~given).sum() - frame["ward"].isna().sum()
    with pytest.warns(UserWarning, match=f"{others} of 'ward'"):
        view = as_view(frame, ids="id", categories={"ward": ["ICU", "ER"]})
    expected = np.where(given, frame["ward"] == "ICU", np.nan)
    assert np.array_equal(view.rows.X[:, 1], expected, equal_nan=True)


def test_what_could_be_the_ids_is_never_left_out_silently(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'note' looks like ids.*ids='note'"):
        as_view(table())
    with pytest.raises(ValueError, match=r"'id' looks like ids.*ids='id'"):  # the likeliest
        as_view(HOLDERS["csv"](table(), tmp_path))
    repeated = table()[["iron", "id"]].assign(id="p1")
    with pytest.raises(ValueError, match=r"'id' looks like ids \(its name\)"):
        as_view(repeated)


@pytest.mark.parametrize("column", [["1.5", "NA", "2", "?"] * 3, ["True", "-", "false", "."] * 3])
def test_texts_that_are_numbers_are_numbers_and_markers_missing_cells(column: list[str]) -> None:
    frame = pd.DataFrame({"x": column, "y": ["a", "b", "c"] * 4})
    with pytest.raises(ValueError, match=r"contains NaN in row 1 .*column 'x'"):
        as_view(frame, ids=False, missing_cells="error")


def test_markers_of_missing_cells_can_be_set(tmp_path: Path) -> None:
    path = tmp_path / "labs.csv"
    path.write_text("x,y,ward\n1,2,ER\n3,n/a,ICU\n4,5,ER\n-,-,\n.,?, \nnone,NA,N/A\n")
    with pytest.raises(ValueError, match=r"contains NaN in row 1 .*column 'y'"):
        as_view(path, ids=False, missing_cells="error")
    path.write_text("x,y,ward\n1,2,ER\n3,3,ICU\n4,5,ER\n-,-,\n.,?, \nnone,NA,N/A\n")
    assert as_view(path, ids=False).ids.tolist() == [0, 1, 2]
    path.write_text("x,ward\n1,ER\n3,none\n4,ER\n5,none\n,*\n")
    view = as_view(path, ids=False, empty_markers=["*"])
    assert view.features == ("x", "ward=ER", "ward=none")
    assert view.ids.tolist() == [0, 1, 2, 3]
    path.write_text("x,y\n1,2\n*,3\n")
    with pytest.raises(ValueError, match=r"'\*' is not a number.*empty_markers=…"):
        as_view(path, ids=False)


def test_a_column_does_not_change_its_kind_half_way(tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=9).strftime("%Y-%m-%d").tolist()
    frame = pd.DataFrame({"x": range(12), "when": [*days, "soon", "soon", "later"]})
    with pytest.raises(ValueError, match=r"column 'when': 'soon' is not a date.*categories"):
        as_view(iter([frame[:9], frame[9:]]), ids=False)
    with pytest.raises(ValueError, match="column 'x' holds numbers in the first batch"):
        as_view(iter([frame[["x"]], frame[["x"]].astype(str)]), ids=False)


def models(frame: pd.DataFrame) -> Iterator[Any]:
    for kind in (ViewFold, FCMVC):
        yield kind(3, random_state=0).partial_fit(frame, ids="id", view="labs")


@IGNORE
def test_rows_that_come_later_get_the_same_features(tmp_path: Path) -> None:
    new = table(1).assign(id=[f"q{i}" for i in range(N)])
    for model in models(table()):
        model.save(tmp_path / "s.vf")
        loaded = viewfold.load(tmp_path / "s.vf")
        assert loaded.views_[0].columns == model.views_[0].columns
        assert loaded.views_[0].features == FEATURES
        first = model.predict_frame(new, ids="id")
        for holder in ("pandas", "polars, typed", "csv", "parquet, typed", "json lines"):
            with np.errstate(all="raise"):
                again = loaded.predict_frame(HOLDERS[holder](new, tmp_path), ids="id")
            assert first.equals(again)
        one = new[["note", "ward", "admitted", "smoker", "iron", "id"]].iloc[[3]]  # any order
        assert_frame_equal(loaded.predict_frame(one, ids="id"), first.iloc[[3]])
        assert loaded.extend(new.drop(columns="note"), ids="id").ids_.size == 2 * N
        assert loaded.predict(HOLDERS["csv"](new.drop(columns="id"), tmp_path)).size == N


@IGNORE
def test_unknown_levels_are_missing_and_counted() -> None:
    new = table(1).assign(ward=["Lab", *table(1)["ward"][1:]])
    for model in models(table()):
        with pytest.warns(UserWarning, match="'labs': cells with a level.*1 of 'ward'"):
            found = model.predict_frame(new, ids="id")
        with pytest.warns(UserWarning, match="1 of 'ward'"):
            other = model.predict_frame(new.assign(ward=["Gym", *new["ward"][1:]]), ids="id")
        assert found.equals(other)
        gap = model.predict_frame(new.assign(ward=[None, *new["ward"][1:]]), ids="id")
        assert gap.equals(found)


@IGNORE
def test_without_encoders_levels_are_not_kept_apart() -> None:
    model = ViewFold(3, random_state=0, keep_encoders=False)
    model.partial_fit(table(), ids="id", view="labs")
    assert model.views_[0].columns is None


def test_commands_choose_columns_and_tell_what_is_left_out(
    run: Run,  # noqa: F811
    tmp_path: Path,
) -> None:
    table().to_csv(tmp_path / "labs.csv", index=False)
    code, _, told = run("add s.vf labs.csv --id id -k 3")
    assert code == 0
    assert "48 samples × 10 features" in told
    assert "'note' (texts that are all different)" in told
    code, out, _ = run("predict s.vf labs.csv --id id")
    assert code == 0
    assert len(out.splitlines()) == N + 1
    _, _, told = run("add t.vf labs.csv --id id -k 3 --drop note,iron --columns ward,iron,note")
    assert "47 samples × 3 features" in told  # one has no ward
    code, _, told = run("add u.vf labs.csv --id id -k 3 --strict")
    assert code != 0
    assert "--drop" in told
    _, _, told = run("add v.vf labs.csv --id id -k 3 --columns iron,smoker --categories smoker")
    assert "48 samples × 3 features" in told


@IGNORE
def test_columns_of_a_file_that_do_not_give_the_features_are_damage() -> None:
    model = next(models(table()))
    assert not list(problems(state_of(model)))
    record = model.views_[0]
    for wrong in (record.columns[1:], (*record.columns, record.columns[0])):
        state = replace(state_of(model), views=(replace(record, columns=wrong),))
        assert "the columns of view 'labs' do not give its features" in problems(state)
    stored = StoredColumns.of(record.columns)
    for name in ("kinds", "widths", "first", "lengths", "letters"):
        with pytest.raises((ValueError, IndexError)):
            replace(stored, **{name: getattr(stored, name)[:-1]}).columns()


def test_a_whole_number_is_one_level_with_a_point_or_without(tmp_path: Path) -> None:
    numbers = {"bed": [7.0, 8.0, np.nan, 7.0], "x": [1.0, 2, 3, 4]}
    frame = pd.DataFrame(numbers)
    frame.to_csv(tmp_path / "a.csv", index=False)
    pl.DataFrame({"bed": [7, 8, None, 7], "x": [1.0, 2, 3, 4]}).write_parquet(
        tmp_path / "a.parquet"
    )
    for held in (frame, tmp_path / "a.csv", tmp_path / "a.parquet"):
        view = as_view(held, ids=False, categories="bed")
        assert view.features == ("bed=7", "bed=8", "x")
        beds = [[1, 0], [0, 1], [np.nan, np.nan], [1, 0]]
        np.testing.assert_array_equal(view.rows.X[:, :2], beds)
    with pytest.raises(ValueError, match="two features are called 'bed=7'"):
        as_view(frame.assign(**{"bed=7": 1}), ids=False, categories="bed")


@pytest.mark.parametrize("value", [-999, 9999, -99])
def test_a_value_that_may_mark_missing_cells_is_suggested_and_not_guessed(value: int) -> None:
    X = np.random.default_rng(0).normal(10, 3, size=(N, 4))
    X[::9, 2] = value
    frame = pd.DataFrame(X, columns=list("abcd"))
    with pytest.warns(UserWarning, match=rf"{value} stands in several cells.*of 'c'\. Does"):
        view = as_view(frame)
    assert np.array_equal(view.rows.X, X)


@pytest.mark.filterwarnings("error")
def test_values_that_are_only_large_are_not_suspected() -> None:
    rng = np.random.default_rng(0)
    as_view(rng.integers(-999, 1000, size=(5000, 3)).astype(float))
    as_view(np.r_[rng.normal(size=(N, 3)), [[999.0, 0, -99]]])
    as_view(rng.uniform(size=(N, 3)))


def test_months_and_weekdays_go_round() -> None:
    days = pd.to_datetime(["2023-12-31", "2024-01-01", "2024-06-15", "2024-11-30"])
    view = as_view(pd.DataFrame({"seen": days, "x": [1.0, 2.0, 3.0, 5.0]}), ids=False)
    where = dict(zip(view.features, dense(view).T, strict=True))
    month = np.column_stack([where["seen.month.sin"], where["seen.month.cos"]])
    weekday = np.column_stack([where["seen.weekday.sin"], where["seen.weekday.cos"]])
    away = np.linalg.norm(month - month[0], axis=1)
    assert away[1] == pytest.approx(away[3])  # January and November are beside December
    assert away[2] == pytest.approx(2)  # June is opposite
    assert np.linalg.norm(weekday[0] - weekday[1]) == pytest.approx(2 * np.sin(np.pi / 7))
    np.testing.assert_allclose(np.linalg.norm(weekday, axis=1), 1)


def test_a_row_that_comes_later_is_encoded_as_it_was() -> None:
    frame = table().drop(columns="note")
    model = ViewFold(n_clusters=2, random_state=0).partial_fit(frame, ids="id", view="labs")
    assert model.views_[0].features == FEATURES
    again = model.predict(frame.iloc[:7], ids="id", view="labs")
    alone = [model.predict(frame.iloc[[i]], ids="id", view="labs")[0] for i in range(7)]
    assert list(again) == alone


def test_a_missing_category_is_a_missing_cell_of_all_its_indicators() -> None:
    frame = pd.DataFrame({"ward": ["ER", "ICU", None, "ER"], "x": [1.0, 2.0, 3.0, 5.0]})
    view = as_view(frame, ids=False)
    assert view.n_missing == 2
    with pytest.raises(ValueError, match="contains NaN in row 2"):
        as_view(frame, ids=False, missing_cells="error")
    one = frame.assign(sign=["yes", None, "yes", None])
    with pytest.warns(UserWarning, match=r"'sign' \(the same text in all rows that have one\)"):
        assert as_view(one, ids=False).features == ("ward=ER", "ward=ICU", "x")


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["x" * 201, "x" * 201, "y", "y"], "texts of more than 200 characters"),
        (["x" * 201] * 4, "texts of more than 200 characters"),
        (["x" * 200] * 4, "the same text in all rows"),
    ],
)
def test_why_long_texts_are_left_out_is_said_as_it_is(texts: list[str], reason: str) -> None:
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0, 5.0], "note": texts})
    with pytest.warns(UserWarning, match=rf"'note' \({reason}\)"):
        as_view(table, ids=False)
    if len(texts[0]) > 200:
        with pytest.warns(UserWarning, match=rf"'note' \({reason}\)"):
            as_view(table, ids=False, categories=["note"])
