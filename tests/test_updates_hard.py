"""More rows of a known view, in the ways that go wrong: few rows, other orders, other readings."""

import pickle
from pathlib import Path
from typing import Any

import anndata
import duckdb
import numpy as np
import pandas as pd
import pytest
from conftest import Data
from every_estimator import every_estimator, snapshot
from scipy.spatial.distance import pdist
from sklearn.base import clone

import viewfold
from viewfold import ViewFold, as_view, metrics

IDS = np.array([f"s{i}" for i in range(160)], dtype=object)


def counts(model: Any) -> tuple[int, int, int, int]:
    found = model.delivery_
    return found.n_new, found.n_late, found.n_corrected, found.n_same


def wards(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"iron": rng.normal(size=n), "ward": ["ER", "ICU"] * (n // 2)})
    return frame.set_index(pd.Index([f"p{i}" for i in range(n)]))


def test_samples_known_by_row_number_are_delivered_again_without_ids(data: Data) -> None:
    labs, scan = data.views["labs"], data.views["scan"].copy()
    scan[100:] = np.nan
    model = ViewFold(4, random_state=0).fit({"labs": labs, "scan": scan})
    model.partial_fit(data.views["scan"], view="scan")
    assert counts(model) == (0, 60, 0, 100)
    model.partial_fit(labs, view="labs")
    assert counts(model) == (0, 0, 0, 160)
    with pytest.raises(ValueError, match="159 rows and no ids, but earlier views had 160"):
        model.partial_fit(labs[:159], view="labs")


@every_estimator
def test_a_view_that_comes_by_a_few_rows_is_never_closed(estimator: Any, data: Data) -> None:
    labs, scan = data.views["labs"], data.views["scan"]
    model = clone(estimator).partial_fit(scan, ids=IDS, view="scan")
    for start, end in ((0, 5), (5, 10), (10, 15), (15, 40), (40, 45)):
        model.partial_fit(labs[start:end], ids=IDS[start:end], view="labs")
        assert counts(model) == (0, end - start, 0, 0)
    assert model.views_[1].n_samples == 45
    assert model.predict(labs, view="labs").shape == (160,)


def test_a_first_delivery_of_a_few_rows_does_not_cripple_a_view(data: Data) -> None:
    """Rows that are known connect the others with what these were placed by."""
    X = data.views["labs"]
    model = ViewFold(4, random_state=0).partial_fit(X[:6], ids=IDS[:6], view="labs")
    model.partial_fit(X, ids=IDS, view="labs")
    assert counts(model) == (154, 0, 0, 6)
    usual = [pd.Series(model.labels_[data.y == c]).mode()[0] for c in range(4)]
    assert model.labels_[:6].tolist() == [usual[c] for c in data.y[:6]]
    assert metrics.accuracy(data.y, model.labels_) > 0.95


def test_one_row_that_nothing_could_place_is_refused(data: Data) -> None:
    X = data.views["labs"]
    model = ViewFold(4, random_state=0).partial_fit(X[:6], ids=IDS[:6], view="labs")
    before = snapshot(model)
    with pytest.raises(ValueError, match=r"'labs' .*fewer than ten samples.*together with others"):
        model.partial_fit(X[6:7], ids=IDS[6:7], view="labs")
    assert snapshot(model) == before


def test_columns_in_another_order_after_a_few_rows_can_be_saved(tmp_path: Path) -> None:
    frame = wards(60)
    model = ViewFold(2, random_state=0).partial_fit(frame[:6], view="labs")
    model.partial_fit(frame[["ward", "iron"]][6:], view="labs")
    model.save(tmp_path / "s.vf")
    again = viewfold.load(tmp_path / "s.vf")
    assert [column.name for column in again.views_[0].columns] == ["iron", "ward"]
    again.partial_fit(frame[["ward", "iron"]][6:], view="labs")
    assert counts(again) == (0, 0, 0, 54)


def test_the_layer_is_remembered_once_a_few_rows_have_become_many(data: Data) -> None:
    cells = anndata.AnnData(np.zeros((160, 30)), layers={"counts": data.views["scan"]})
    cells.obs_names = IDS
    model = ViewFold(4, random_state=0).partial_fit(cells[:6], view="rna", layer="counts")
    model.partial_fit(cells, view="rna", layer="counts")
    assert model.views_[0].source.layer == "counts"
    model.partial_fit(cells, view="rna")
    assert counts(model) == (0, 0, 0, 160)


def test_another_layer_than_the_view_has_is_refused(data: Data) -> None:
    X = data.views["scan"]
    cells = anndata.AnnData(X, layers={"scaled": 2 * X})
    cells.obs_names = IDS
    model = ViewFold(4, random_state=0).partial_fit(cells, view="rna")
    with pytest.raises(ValueError, match=r"another part than layer='scaled'.*name of its own"):
        model.partial_fit(cells, view="rna", layer="scaled")


def test_a_view_object_is_put_in_order_with_its_missing_cells(data: Data) -> None:
    rng = np.random.default_rng(0)
    X = data.views["labs"] + 100 * np.arange(data.views["labs"].shape[1])
    X[rng.random(X.shape) < 0.2] = np.nan
    frame = pd.DataFrame(X, IDS, [f"c{j}" for j in range(X.shape[1])])
    one = ViewFold(4, random_state=0).partial_fit(frame[:80], view="labs")
    two = pickle.loads(pickle.dumps(one))
    backwards = frame[frame.columns[::-1]][80:]
    one.partial_fit(backwards, view="labs")
    two.partial_fit(as_view(backwards, name="labs"))
    np.testing.assert_array_equal(one.embedding_, two.embedding_)


def test_a_view_object_whose_days_count_from_another_first_is_refused() -> None:
    frame = wards(60).assign(came=pd.date_range("2024-01-01", periods=60))
    model = ViewFold(2, random_state=0).partial_fit(frame, view="labs")
    with pytest.raises(ValueError, match=r"'came'.*Pass the table itself"):
        model.partial_fit(as_view(frame[31:], name="labs"))
    with pytest.raises(ValueError, match=r"'came'.*Pass the table itself"):
        model.predict(as_view(frame[31:], name="labs"))
    model.partial_fit(as_view(frame, name="labs"))
    assert counts(model) == (0, 0, 0, 60)


@every_estimator
@pytest.mark.parametrize("end", [80, 83, 160])
def test_another_number_of_clusters_is_found_by_the_next_delivery(
    estimator: Any, data: Data, end: int
) -> None:
    X = data.views["labs"]
    model = clone(estimator).partial_fit(X[:80], ids=IDS[:80], view="labs")
    model.set_params(n_clusters=6).partial_fit(X[:end], ids=IDS[:end], view="labs")
    assert set(model.labels_) == set(range(6))
    before = snapshot(model)
    model.partial_fit(X[:end], ids=IDS[:end], view="labs")
    assert snapshot(model) == before
    with pytest.raises(ValueError, match="1000 is more than there are samples"):
        model.set_params(n_clusters=1000).partial_fit(X[:5] + 1, ids=IDS[:5], view="labs")
    assert counts(model) == (0, 0, 0, end)


def test_missing_cells_of_corrected_rows_are_not_counted_twice(data: Data) -> None:
    X = data.views["scan"].copy()
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    model = ViewFold(4, random_state=0).partial_fit(X[:150], ids=IDS[:150], view="scan")
    model.partial_fit(X + 1, ids=IDS, view="scan")
    assert counts(model) == (10, 0, 150, 0)
    assert model.views_[0].n_missing == np.isnan(X).sum()


def test_rows_of_zeros_that_are_left_out_are_told(data: Data) -> None:
    X = np.random.default_rng(0).poisson(3, size=(160, 40)).astype(float)
    model = ViewFold(4, random_state=0).partial_fit(X[:100], ids=IDS[:100], view="words")
    X[120:130] = 0
    with pytest.warns(UserWarning, match="10 of 160 rows hold nothing but zeros"):
        model.partial_fit(X, ids=IDS, view="words")
    assert counts(model) == (50, 0, 0, 100)


def prints_in(path: Path, where: str = "true") -> set[int]:
    """Return the fingerprints in all states of a file."""
    with duckdb.connect(path, read_only=True) as db:
        tables = "SELECT schema_name FROM duckdb_tables() WHERE table_name = 'samples'"
        states = [state for (state,) in db.sql(tables).fetchall()]
        assert len(states) > 1
        every = (
            f"SELECT unnest(fingerprints) FROM {state}.samples WHERE {where}" for state in states
        )
        return {found for (found,) in db.sql(" UNION ALL ".join(every)).fetchall()}


def test_no_fingerprint_of_a_forgotten_sample_is_left_in_a_file(data: Data, tmp_path: Path) -> None:
    path, X = tmp_path / "s.vf", data.views["labs"]
    for rows in (X[:100], X[:100] + 1, X):
        with viewfold.edit(path, new=ViewFold(4, random_state=0), keep=2) as model:
            model.partial_fit(rows, ids=IDS[: len(rows)], view="labs")
    before = prints_in(path, "id = 's7'")
    others = prints_in(path, "id <> 's7'")  # one in a few hundred runs shares a print of 16 bits
    assert len(before) == 2
    viewfold.forget(path, ["s7"])
    assert len(prints_in(path)) > 100
    assert prints_in(path) <= others
    with viewfold.edit(path) as model:
        model.set_params(keep_encoders=False).partial_fit(data.views["scan"], ids=IDS, view="scan")
    assert prints_in(path) == {0}


def customers(n: int) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Return a table with two categories that mean nothing, clicks, and four groups.

    The table cannot tell the first group from the last.
    """
    rng = np.random.default_rng(0)
    y, ids = rng.integers(4, size=n), [f"c{i}" for i in range(n)]
    centres = np.array([[0, 0], [4, 0], [0, 4], [0, 0]])
    table = pd.DataFrame(centres[y] + rng.normal(size=(n, 2)), ids, ["age", "orders"])
    table["plan"] = np.where(rng.random(n) < 0.4, "basic", "family")
    table["colour"] = rng.choice(["red", "green"], n)
    clicks = 1.2 * rng.normal(size=(4, 8))[y] + rng.normal(size=(n, 8))
    return table, pd.DataFrame(clicks, ids).add_prefix("page"), y


def test_a_view_gains_no_weight_by_late_rows() -> None:
    """What is learned from many rows once gave their view more weight for everybody else."""
    table, clicks, y = customers(400)
    whole = ViewFold(4, random_state=0).partial_fit(table, view="table")
    whole.partial_fit(clicks, view="clicks")
    model = ViewFold(4, random_state=0).partial_fit(table[:340], view="table")
    model.partial_fit(clicks, view="clicks")
    before = pdist(model.embedding_[:340])
    model.partial_fit(table[340:], view="table")
    after = pdist(model.embedding_[:340])
    assert np.corrcoef(before, after)[0, 1] > 0.999
    assert metrics.accuracy(y, model.labels_) > metrics.accuracy(y, whole.labels_) - 0.05
