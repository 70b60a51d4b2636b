"""Deliveries whose columns changed: missing, new, renamed, in another order, of other levels."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from test_cli import Run, run  # noqa: F401

import viewfold
from viewfold import FCMVC, DeliveryWarning, ViewFold, as_view
from viewfold.rows import DiskEngine, using

N = 60
NAMES = ["age", "iron", "zinc", "salt"]


def table(seed: int = 0, prefix: str = "p", rows: int = N) -> pd.DataFrame:
    """Four numbers of three groups, a ward and a day; the index holds ids."""
    rng, group = np.random.default_rng(seed), np.arange(rows) % 3
    frame = pd.DataFrame(rng.normal(size=(rows, 4)) + 4 * np.eye(4)[group], columns=NAMES)
    frame["ward"] = np.array(["ER", "ICU", "Lab"])[group]
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(rows) % 50, "D")
    return frame.set_axis([f"{prefix}{i}" for i in range(rows)])


def numbers(seed: int = 0, prefix: str = "p", rows: int = N) -> pd.DataFrame:
    return table(seed, prefix, rows)[NAMES]


def folded(frame: pd.DataFrame, kind: Any = ViewFold) -> Any:
    return kind(3, random_state=0).partial_fit(frame, view="labs")


def same(one: Any, other: Any) -> bool:
    """Compare to round-off: a sparse matrix is summed in another order."""
    return np.allclose(one, other, rtol=1e-9, atol=1e-9)


def told(call: Any) -> tuple[Any, list[str]]:
    """Return the answer of a call, and what was told meanwhile."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        answer = call()
    # Folders that other tests left may be cleaned up meanwhile, which is told, too.
    return answer, [str(one.message) for one in found if one.category is not ResourceWarning]


def as_csv(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    path = folder / "labs.csv"
    frame.rename_axis("id").to_csv(path)
    return {"X": path, "ids": "id"}


def as_parquet(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    path = folder / "labs.parquet"
    frame.rename_axis("id").reset_index().to_parquet(path)
    return {"X": path, "ids": "id"}


def as_anndata(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    anndata = pytest.importorskip("anndata")
    X = sparse.csr_matrix(frame.to_numpy())
    obs, var = pd.DataFrame(index=frame.index), pd.DataFrame(index=frame.columns)
    return {"X": anndata.AnnData(X, obs, var)}


HOLDERS = {
    "frame": lambda frame, folder: {"X": frame},
    "view": lambda frame, folder: {"X": as_view(frame)},
    "csv": as_csv,
    "parquet": as_parquet,
    "anndata": as_anndata,
}


# -- numbers


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_a_missing_column_is_missing_cells(holder: str, kind: Any, tmp_path: Path) -> None:
    model, new = folded(numbers(), kind), numbers(1)
    held = HOLDERS[holder](new.drop(columns="zinc"), tmp_path)
    found, said = told(lambda: model.transform(**held, view="labs"))
    gaps = HOLDERS[holder](new.assign(zinc=np.nan), tmp_path)
    assert same(found, model.transform(**gaps, view="labs"))
    assert len(said) == 1
    assert "Missing are 1 of 4 columns ('zinc')" in said[0]
    held = HOLDERS[holder](new.drop(columns="zinc"), tmp_path)
    with (
        warnings.catch_warnings(action="error", category=DeliveryWarning),
        pytest.raises(DeliveryWarning, match="'zinc'"),
    ):
        model.transform(**held, view="labs")
    assert "right table" not in said[0]


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_new_column_is_ignored_and_told_whatever_it_holds(holder: str, tmp_path: Path) -> None:
    model, new = folded(numbers()), numbers(1)
    more = new.assign(dose=1.0) if holder == "anndata" else new.assign(note="a 5.1 mg", dose=1.0)
    held = HOLDERS[holder](more[list(more)[::-1]], tmp_path)
    found, said = told(lambda: model.transform(**held, view="labs"))
    assert same(found, model.transform(new))
    (line,) = [one for one in said if "does not know" in one]
    assert "'dose'" in line
    assert "until the view is refreshed" in line
    assert "issing" not in line


@pytest.mark.parametrize("holder", HOLDERS)
def test_another_order_is_not_worth_a_word(holder: str, tmp_path: Path) -> None:
    model, new = folded(numbers()), numbers(1)
    held = HOLDERS[holder](new[["salt", "age", "zinc", "iron"]], tmp_path)
    found, said = told(lambda: model.transform(**held, view="labs"))
    assert same(found, model.transform(new))
    assert not said


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_renamed_column_is_the_column(holder: str, tmp_path: Path) -> None:
    model, new = folded(numbers()), numbers(1)
    held = HOLDERS[holder](new.rename(columns={"iron": "Fe"}), tmp_path)
    found, said = told(lambda: model.transform(**held, view="labs", rename={"iron": "Fe"}))
    assert same(found, model.transform(new))
    assert not said


def test_whole_numbers_may_lack_a_column_too() -> None:
    model, new = folded(numbers().round()), numbers(1).round()
    found, _ = told(lambda: model.transform(new.astype(int).drop(columns="age")))
    assert same(found, model.transform(new.assign(age=np.nan)))


def test_arrays_have_to_have_the_width_of_the_view() -> None:
    model = folded(numbers())
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert model.predict(numbers(1).to_numpy()).size == N
    for X in (numbers(1).to_numpy()[:, :3], sparse.csr_array(numbers(1).to_numpy()[:, :3])):
        with (
            pytest.warns(UserWarning, match="does not have valid feature names"),
            pytest.raises(ValueError, match="X has 3 features, but ViewFold is expecting 4"),
        ):
            model.predict(X)


# -- what is refused, and what is suspected


def test_a_table_without_any_column_of_the_view_is_refused() -> None:
    model = folded(table())
    before = model.to_frame()
    other = numbers(1, "q").set_axis(list("abcd"), axis=1)
    for call in (model.predict, model.extend, model.partial_fit):
        with pytest.raises(ValueError, match="no column of this view") as caught:
            call(other, view="labs")
        assert "'age'" in str(caught.value)
        assert "'d'" in str(caught.value)
        assert "wrong view" in str(caught.value)
        assert "should match" not in str(caught.value)
    pd.testing.assert_frame_equal(model.to_frame(), before)
    assert told(lambda: model.predict(other.assign(age=1.0)))[0].size == N
    model.partial_fit(numbers(1).set_axis(list("abcd"), axis=1), view="scan")
    with pytest.raises(ValueError, match="These columns are those of view 'scan'"):
        model.partial_fit(other, view="labs")


def test_most_columns_missing_is_told_with_a_question() -> None:
    model = folded(numbers())
    half, fewer = numbers(1)[["age", "iron"]], numbers(1)[["age"]]
    assert "right table" not in told(lambda: model.predict(half))[1][0]
    assert "right table?" in told(lambda: model.predict(fewer))[1][0]


@pytest.mark.parametrize(
    ("new", "proposed"),
    [
        ({"iron": "Iron"}, "rename={'iron': 'Iron'}"),
        ({"iron": "iron_mg"}, "rename={'iron': 'iron_mg'}"),
        ({"iron": "copper"}, None),
        ({"iron": "Iron", "zinc": "Zinc"}, None),
    ],
)
def test_one_missing_and_one_similar_column_may_be_the_same(
    new: dict[str, str], proposed: str | None
) -> None:
    (said,) = told(lambda: folded(numbers()).predict(numbers(1).rename(columns=new)))[1]
    assert (re.findall(r"rename=\{.*?\}", said) or [None])[0] == proposed


def test_strict_refuses_other_columns_and_nothing_is_changed() -> None:
    for frame in (numbers(), table()):
        model = folded(frame)
        before, new = model.to_frame(), frame.set_axis([f"q{i}" for i in range(N)])
        for other in (new.drop(columns="zinc"), new.assign(dose=1.0)):
            with pytest.raises(DeliveryWarning, match=r"'zinc'|'dose'"):
                model.partial_fit(other, view="labs", strict=True)
        with pytest.raises(DeliveryWarning, match="'iron'") as caught:
            model.partial_fit(new.rename(columns={"iron": "Iron"}), view="labs", strict=True)
        assert caught.value.options == {"rename": {"iron": "Iron"}}
        pd.testing.assert_frame_equal(model.to_frame(), before)
        model.partial_fit(new[list(new)[::-1]], view="labs", strict=True)
        assert model.n_samples_ == 2 * N


def test_new_names_that_make_no_sense_are_refused() -> None:
    model, new = folded(numbers()), numbers(1)
    with pytest.raises(ValueError, match=re.escape("comes first: rename={'iron': 'Fe'}")):
        model.predict(new, rename={"Fe": "iron"})
    with pytest.raises(ValueError, match=r"'labs' has no column 'lead'\. It has"):
        model.predict(new, rename={"lead": "Pb"})
    with pytest.raises(TypeError, match="takes names of columns"):
        model.predict(new, rename={"iron": 3})
    with pytest.raises(ValueError, match="columns 'iron' and 'Fe'"):
        model.predict(new.assign(Fe=1.0), rename={"iron": "Fe"})
    with pytest.raises(ValueError, match="this is a new one"):
        model.partial_fit(new, view="other", rename={"iron": "Fe"})
    assert model.predict(new, rename={"iron": "Fe"}).size == N  # the known name stays valid


def test_a_new_column_that_is_called_like_ids_is_asked_about() -> None:
    model, new = folded(numbers()), numbers(1, "q").rename_axis("patient").reset_index()
    for call in (model.predict, model.partial_fit):
        with pytest.raises(ValueError, match="'patient' looks like ids") as caught:
            call(new, view="labs")
        assert caught.value.options == {"ids": "patient"}
    assert told(lambda: model.predict(new, ids=False, view="labs"))[0].size == N
    assert model.partial_fit(new, ids="patient", view="labs").n_samples_ == 2 * N


# -- categories and dates


@pytest.mark.parametrize("holder", ["frame", "csv", "parquet"])
def test_columns_of_a_mixed_table_may_be_missing_new_or_renamed(
    holder: str, tmp_path: Path
) -> None:
    model, new = folded(table()), table(1)
    columns = list(model.views_[0].features)
    expected = as_view(new).rows.X.copy()
    away = [j for j, name in enumerate(columns) if name.startswith(("ward", "day"))]
    expected[:, away] = np.nan
    with pytest.warns(UserWarning, match="does not have valid"):
        expected = model.transform(expected)
    held = HOLDERS[holder](new.drop(columns=["ward", "day"]).assign(note="x"), tmp_path)
    found, said = told(lambda: model.transform(**held, view="labs"))
    assert same(found, expected)
    assert "2 of 6 columns ('ward', 'day')" in said[0]
    assert "'note'" in said[0]
    rename = {"ward": "Station", "day": "Tag"}
    held = HOLDERS[holder](new.rename(columns=rename), tmp_path)
    found, said = told(lambda: model.transform(**held, view="labs", rename=rename))
    assert same(found, model.transform(new))
    assert not said


@pytest.mark.parametrize("holder", ["frame", "csv", "parquet"])
def test_an_unknown_level_is_a_missing_cell_and_counted(holder: str, tmp_path: Path) -> None:
    model, new = folded(table()), table(1)
    new["ward"] = ["Gym", "Gym", *new["ward"][2:]]
    found, said = told(lambda: model.transform(**HOLDERS[holder](new, tmp_path), view="labs"))
    new["ward"] = [None, None, *new["ward"][2:]]
    assert same(found, model.transform(new))
    assert ["2 of 'ward'" in one for one in said] == [True]


# -- deliveries


@pytest.mark.parametrize("ending", [".vf", ".vfd"])
def test_a_new_name_is_remembered_by_the_model_and_its_file(ending: str, tmp_path: Path) -> None:
    rename = {"iron": "Fe", "ward": "Station"}
    for way in ("partial_fit", "extend"):
        model, new = folded(table()), table(1, "q").rename(columns=rename)
        assert not told(lambda m=model, w=way, X=new: getattr(m, w)(X, view="labs", rename=rename))[
            1
        ]
        with using(DiskEngine(3)):
            model.save(tmp_path / f"{way}{ending}")
        loaded = viewfold.load(tmp_path / f"{way}{ending}")
        for one in (model, loaded):
            found, said = told(lambda m=one: m.predict(table(2).rename(columns=rename)))
            assert found.tolist() == one.predict(table(2)).tolist()
            assert not said
            assert not told(lambda m=one: m.partial_fit(table(3, "r")[::-1], view="labs"))[1]
        # Another name later takes the place of the first.
        model.partial_fit(
            table(4, "s").rename(columns={"iron": "Ferrum"}), view="labs", rename={"iron": "Ferrum"}
        )
        assert model.views_[0].source.rename == {"iron": "Ferrum", "ward": "Station"}


def test_a_prediction_remembers_nothing() -> None:
    model, new = folded(numbers()), numbers(1).rename(columns={"iron": "Fe"})
    model.predict(new, rename={"iron": "Fe"})
    assert "'iron'" in told(lambda: model.predict(new))[1][0]


@pytest.mark.parametrize("rows", [5, 40])
def test_deliveries_with_other_columns_are_those_with_missing_cells(rows: int) -> None:
    """A few rows are placed, many are learned from."""
    new = table(1, "q", rows).sample(frac=1, random_state=0)
    one, two = folded(table()), folded(table())
    told(lambda: one.partial_fit(new.drop(columns=["zinc", "ward"]).assign(dose=1.0), view="labs"))
    gaps = new.assign(zinc=np.nan, ward=pd.Series(None, new.index, dtype=object))
    told(lambda: two.partial_fit(gaps, view="labs"))
    assert (one.delivery_.n_new, one.delivery_.n_moved) == (rows, two.delivery_.n_moved)
    assert same(one.embedding_, two.embedding_)
    assert one.views_[0].n_missing == two.views_[0].n_missing > 0
    assert one.views_[0].features == two.views_[0].features
    assert {"ward=ER", "zinc"} <= set(one.features(top=None)["feature"])


def test_rows_of_a_view_that_had_few_samples_may_have_other_columns() -> None:
    """Fewer than ten samples leave no encoder, and nothing of how they were read."""
    model = ViewFold(2, random_state=0).partial_fit(numbers(rows=5), view="labs")
    new = numbers(1, "q").rename(columns={"iron": "Fe"}).drop(columns="salt")
    (said,) = told(lambda: model.partial_fit(new, view="labs", rename={"iron": "Fe"}))[1]
    assert "1 of 4 columns ('salt')" in said
    assert model.views_[0].n_features == 4


@pytest.mark.parametrize("make", [numbers, table])
def test_files_that_an_engine_reads_in_partitions(make: Any, tmp_path: Path) -> None:
    folder = tmp_path / "labs"
    folder.mkdir()
    rename = {"iron": "Fe"}
    new = make(1).rename(columns=rename).drop(columns="zinc").assign(dose=1.0)
    for i, part in enumerate((new[:40], new[40:])):
        part.rename_axis("id").reset_index().to_parquet(folder / f"{i}.parquet")
    expected = folded(make()).transform(make(1).assign(zinc=np.nan))
    with using(DiskEngine(4, str(tmp_path))):
        model = folded(make())
        found, said = told(lambda: model.transform(folder, ids="id", view="labs", rename=rename))
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-6)
    assert len(said) == 1
    assert "('zinc')" in said[0]
    assert "'dose'" in said[0]


# -- the command line


def test_add_and_predict_take_new_names(run: Run) -> None:  # noqa: F811
    table().rename_axis("id").to_csv("labs.csv")
    assert run("add s.vf labs.csv --id id --clusters 3")[0] == 0
    new = table(1, "q").rename(columns={"iron": "Iron"})
    new.drop(columns="zinc").rename_axis("id").to_csv("new.csv")
    code, out, said = run("predict s.vf new.csv --id id --view labs --json")
    assert code == 0, said
    assert len(json.loads(out)) == N
    assert "2 of 6 columns ('iron', 'zinc')" in " ".join(said.split())
    new.rename_axis("id").to_csv("new.csv")
    code, _, said = run("add s.vf new.csv --id id --view labs --dry-run")
    assert code == 0, said
    assert "say --rename iron=Iron." in " ".join(said.split())
    code, _, said = run("add s.vf new.csv --id id --view labs --strict")
    assert code == DeliveryWarning.exit_code
    assert "--rename iron=Iron" in " ".join(said.split())
    code, _, said = run("add s.vf new.csv --id id --view labs --rename iron")
    assert code == 2
    assert "OLD=NEW" in said
    code, out, said = run("inspect new.csv --state s.vf --id id --view labs --rename iron=Iron")
    assert code == 0, said
    assert "--rename iron=Iron" in out
    assert "issing are" not in out
    code, out, said = run("add s.vf new.csv --id id --view labs --rename iron=Iron --json")
    assert code == 0, said
    assert json.loads(out)["folds"][0]["new"] == N
    assert "columns" not in said
    code, _, said = run("predict s.vf new.csv --id id --view labs")
    assert code == 0, said
    assert "columns" not in said  # it is remembered
    code, _, said = run("add s.vf new.csv --id id --view other --rename iron=Iron")
    assert code == 1
    assert "this is a new one" in said
