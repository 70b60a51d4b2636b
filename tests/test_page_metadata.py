# ruff: noqa: F811  (fixtures of other files)
"""A table about the samples: matched by id, colour_columns by category or number, nobody named."""

import numpy as np
import pandas as pd
import pytest
from report_models import few_draws, model  # noqa: F401

from viewfold import ViewFold
from viewfold.rows import LocalEngine
from viewfold.web.metadata import colour_columns, read_metadata

IDS = np.array([f"p{i}" for i in range(60)], object)


def shown(table: pd.DataFrame, known=IDS, *, name_ids: bool = False):
    columns, _ = colour_columns(LocalEngine(), known, known, table, name_ids=name_ids)
    return {one.facts["name"]: (one.facts, one.values) for one in columns}


def test_columns_are_matched_by_id_and_what_is_missing_is_told() -> None:
    rows = [*range(59, 9, -1), 70, 71]
    table = pd.DataFrame({"age": [float(i) + 0.5 for i in rows]}, index=[f"p{i}" for i in rows])
    with pytest.warns(UserWarning, match="metadata") as said:
        facts, values = shown(table)["age"]
    told = [str(one.message) for one in said]
    assert told == ["Of no sample: 2 rows of the metadata.", "Not in the metadata: 10 samples."]
    assert (values[:10] == 255).all()
    age = facts["low"] + values[10:] / 254 * (facts["high"] - facts["low"])
    np.testing.assert_allclose(age, np.arange(10, 60) + 0.5, atol=0.15)
    assert (facts["kind"], facts["low"], facts["high"]) == ("number", 10.5, 59.5)


def test_numbers_are_a_scale_and_texts_flags_and_few_whole_numbers_are_categories() -> None:
    table = pd.DataFrame(
        {
            "ward": pd.Series(["ICU", None, "ER"] * 20),
            "stage": [3, 1, 2] * 20,
            "flag": [True, False, True] * 20,
            "grade": pd.Categorical(["b", "a", "b"] * 20, ["c", "b", "a"]),
            "dose": [0.5, np.nan, 2.5] * 20,
            "count": range(60),
            "seen": pd.to_datetime(["2020-01-01", None, "2022-01-01"] * 20),
        }
    ).set_index(IDS)
    found = shown(table)
    kinds = {name: facts["kind"] for name, (facts, _) in found.items()}
    told = {"dose": "number", "count": "number", "seen": "date"}
    assert kinds == {name: told.get(name, "category") for name in kinds}
    levels = {name: facts.get("levels") for name, (facts, _) in found.items()}
    assert (levels["ward"], levels["stage"]) == (["ER", "ICU"], ["1", "2", "3"])
    assert (levels["flag"], levels["grade"]) == (["False", "True"], ["b", "a"])
    assert found["ward"][1][:3].tolist() == [1, 255, 0]
    assert found["stage"][1][:3].tolist() == [2, 0, 1]
    assert found["grade"][1][:3].tolist() == [0, 1, 0]
    assert found["dose"][1][:3].tolist() == [0, 255, 254]
    assert (found["seen"][0]["low"], found["seen"][0]["high"]) == ("2020-01-01", "2022-01-01")
    assert found["seen"][1][:3].tolist() == [0, 255, 254]
    assert [facts["column"] for facts, _ in found.values()] == [f"meta{i}" for i in range(7)]


def test_texts_that_could_tell_who_is_who_are_left_out_unless_ids_are_let_in() -> None:
    many = np.array([f"q{i}" for i in range(500)], object)
    table = pd.DataFrame({"name": [f"Ann {i % 50}" for i in range(60)], "ward": "ER"}, index=IDS)
    with pytest.warns(UserWarning, match="'name'.*could tell who is who. It is left out"):
        assert list(shown(table)) == ["ward"]
    assert list(shown(table, name_ids=True)) == ["name", "ward"]
    table = pd.DataFrame({"place": [f"town {i % 201}" for i in range(500)]}, index=many)
    with pytest.warns(UserWarning, match="'place'.*201 different values: a map can show 200"):
        assert not shown(table, many, name_ids=True)
    table = pd.DataFrame({"nothing": [np.nan] * 60, "void": pd.Series([None] * 60).values}, IDS)
    with pytest.warns(UserWarning, match="is empty"):
        assert not shown(table)


def test_rows_of_others_are_neither_named_nor_counted() -> None:
    others = [f"q{i}" for i in range(1000)]
    table = pd.DataFrame(
        {
            "ward": ["ICU", "ER"] * 30 + [f"ward {i % 150}" for i in range(1000)],
            "town": pd.Categorical(["Ulm", "Hof"] * 30 + [f"town {i}" for i in range(1000)]),
            "age": np.append(np.arange(60) / 2, [1e6] * 1000),
        },
        index=[*IDS, *others],
    )
    with pytest.warns(UserWarning, match="Of no sample: 1,000 rows"):
        found = shown(table)
    assert found["ward"][0]["levels"] == ["ER", "ICU"]
    assert found["town"][0]["levels"] == ["Hof", "Ulm"]
    assert (found["age"][0]["low"], found["age"][0]["high"]) == (0, 29.5)
    assert found["age"][1][[0, -1]].tolist() == [0, 254]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_numbers_of_any_size_are_a_scale() -> None:
    numbers = {
        "huge": [1e300, 2e300] * 30,
        "wide": [-1.7e308, 1.7e308, 0.5] * 20,
        "keys": np.array([2**64 - 1, 3] * 30, np.uint64),
        "endless": [np.inf, -np.inf, 1.5, 2.5] * 15,
    }
    found = shown(pd.DataFrame(numbers, IDS))
    assert {facts["kind"] for facts, _ in found.values()} == {"number"}
    assert found["huge"][1][:2].tolist() == [0, 254]
    assert found["wide"][1][:3].tolist() == [0, 254, 127]
    assert found["keys"][1][:2].tolist() == [254, 0]
    assert found["endless"][1][:4].tolist() == [255, 255, 0, 254]


def test_dates_of_any_time_have_days_at_their_ends() -> None:
    far = np.array(["9999-12-31", "0001-01-01", "NaT"] * 20, "datetime64[s]")
    days = pd.date_range("2020-02-01 23:30", periods=60, tz="Europe/Berlin")
    table = pd.DataFrame({"far": far, "day": days, "one": days[0], "never": pd.NaT}, IDS)
    with pytest.warns(UserWarning, match="'never' of the metadata is empty"):
        found = shown(table)
    assert (found["far"][0]["low"], found["far"][0]["high"]) == ("0001-01-01", "9999-12-31")
    assert found["far"][1][:3].tolist() == [254, 0, 255]
    assert (found["day"][0]["low"], found["day"][0]["high"]) == ("2020-02-01", "2020-03-31")
    assert set(found["one"][1].tolist()) == {0}


def test_columns_that_have_no_order_are_left_out() -> None:
    table = pd.DataFrame({"lists": [[1]] * 60, "waves": np.arange(60) * 1j, "ward": "ER"}, IDS)
    with pytest.warns(UserWarning, match="left out") as said:
        assert list(shown(table)) == ["ward"]
    assert len(said) == 2


def test_numbers_and_texts_that_are_written_alike_are_one_sample() -> None:
    table = pd.DataFrame({"x": np.arange(60) / 7}, index=[str(i) for i in range(60)])
    values = shown(table, np.arange(60))["x"][1]
    assert values[0] == 0
    assert values[-1] == 254


def test_metadata_that_cannot_be_meant_are_refused(model) -> None:
    for table, why in (
        ([[1]], "a pandas DataFrame with the sample ids in its index, got list"),
        (pd.DataFrame(index=IDS), "no column to colour by"),
        (pd.DataFrame({"x": [1.5]}, index=["nobody"]), "No id of the metadata is known"),
        (pd.DataFrame({"x": [1.5, 2]}, index=["p1", "p1"]), "duplicate ids: 'p1'"),
        (pd.DataFrame({"x": [1.5, 2]}, index=[1, "1"]), "'1' twice"),
    ):
        with pytest.raises((TypeError, ValueError), match=why):
            colour_columns(LocalEngine(), IDS, IDS, table, name_ids=False)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl", "xlsx"])
def test_tables_of_every_format_give_the_same_columns(ending, tmp_path) -> None:
    pytest.importorskip("openpyxl")
    table = pd.DataFrame({"who": IDS, "ward": ["ICU", "ER", None] * 20, "age": np.arange(60) / 3})
    path = tmp_path / f"wards.{ending}"
    if ending in ("csv", "tsv"):
        table.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    elif ending == "jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        getattr(table, {"parquet": "to_parquet", "xlsx": "to_excel"}[ending])(path, index=False)
    read = read_metadata(path, "who")
    assert read.index.tolist() == IDS.tolist()
    ward = read["ward"].astype(object)
    assert ward.where(ward.notna(), None).tolist() == table["ward"].tolist()
    np.testing.assert_allclose(read["age"], table["age"])
    assert list(read_metadata(path, "who", ["age"])) == ["age"]
    for how, why in (((None,), "which column holds the sample ids"), (("who", ["x"]), "no column")):
        with pytest.raises(ValueError, match=why):
            read_metadata(path, *how)


def test_dates_and_free_text_of_a_file_are_understood(tmp_path) -> None:
    path = tmp_path / "t.csv"
    days = pd.date_range("2020-01-01", periods=60).strftime("%Y-%m-%d")
    notes = [f"note {i} " + "x" * 300 for i in range(60)]
    pd.DataFrame({"who": IDS, "day": days, "note": notes}).to_csv(path, index=False)
    with pytest.warns(UserWarning, match="'note' has very many different texts, or long ones"):
        read = read_metadata(path, "who")
    assert read["day"].dt.strftime("%Y-%m-%d").tolist() == days.tolist()


def test_a_map_is_coloured_by_what_belongs_to_each_sample() -> None:
    from viewfold.web import page_data

    X = np.random.default_rng(0).normal(size=(60, 4))
    model = ViewFold(1).fit(pd.DataFrame(X, index=IDS, columns=list("abcd")))
    table = pd.DataFrame({"last": [one[-1] for one in IDS]}, index=IDS).iloc[::-1]
    data = page_data(model, ids=True, metadata=table)
    (facts,) = data.summary["metadata"]
    ids = data.columns["ids"].decode().split("\n")
    levels = [facts["levels"][value] for value in data.columns[facts["column"]]]
    assert levels == [one[-1] for one in ids]
    assert data.summary["columns"]["meta0"] == "uint8"
    unnamed = page_data(model, metadata=table)
    assert set(unnamed.columns) == set(data.columns) - {"ids"}
    assert "p17" not in str(unnamed.summary)
