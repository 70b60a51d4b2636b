"""Everything users hold becomes a view, or a clear error."""

import os
import re
from pathlib import Path

import anndata
import mudata
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from viewfold import FCMVC, View, ViewFold, as_view, as_views, suggest_n_clusters

X = np.arange(12.0).reshape(4, 3)
IDS = ["ann", "bob", "cleo", "dan"]


def dense(view: View) -> np.ndarray:
    blocks = [block for _, block in view.rows.blocks()]
    return np.vstack([b.toarray() if sparse.issparse(b) else b for b in blocks])


@pytest.mark.parametrize(
    "held",
    [
        X,
        X.tolist(),
        X.astype(np.float32),
        X.astype(np.float16),
        X.astype(np.int8),
        X.astype(object),
        np.asfortranarray(X),
        sparse.csr_array(X),
        sparse.coo_matrix(X),
        sparse.dok_array(X),
        pd.DataFrame(X),
        pd.DataFrame(X, columns=list("abc")).convert_dtypes(),
        pd.DataFrame(X, columns=list("abc")).astype({"a": bool, "b": "int8"}).assign(a=X[:, 0]),
        pl.DataFrame(X, schema=["a", "b", "c"]),
        anndata.AnnData(X),
        anndata.AnnData(sparse.csr_matrix(X)),
    ],
    ids=lambda held: f"{type(held).__module__.split('.')[0]}.{type(held).__name__}",
)
def test_everything_that_holds_rows_becomes_a_view(held) -> None:
    view = as_view(held, ids=IDS, name="labs")
    assert list(view.ids) == IDS
    assert view.name == "labs"
    assert np.array_equal(dense(view), X)


def test_a_dataframe_brings_its_ids_and_column_names() -> None:
    frame = pd.DataFrame(X, index=IDS, columns=list("abc"))
    assert list(as_view(frame).ids) == IDS
    assert as_view(frame).features == ("a", "b", "c")
    assert as_view(frame).length is None
    assert as_view(frame.reset_index(), ids="index").features == ("a", "b", "c")
    assert list(as_view(pl.from_pandas(frame.reset_index()), ids="index").ids) == IDS
    assert list(as_view(frame.set_axis([3, 1, 7, 5])).ids) == [3, 1, 7, 5]


def test_an_index_that_nobody_set_is_no_ids() -> None:
    assert as_view(pd.DataFrame(X)).length == 4
    assert as_view(pd.DataFrame(X).iloc[1:]).length is None


def test_single_precision_frames_stay_single() -> None:
    frame = pd.DataFrame(X.astype(np.float32))
    assert as_view(frame).rows.dtype == np.float32
    assert as_view(frame.assign(more=1)).rows.dtype == np.float64


def test_ids_of_different_type_are_different_samples() -> None:
    assert list(as_view(X, ids=[1, "1", 2, "2"]).ids) == [1, "1", 2, "2"]


def test_missing_values_of_nullable_columns_are_nan() -> None:
    frame = pd.DataFrame({"a": [1, None, 3], "b": [4, None, 6]}, dtype="Int64")
    assert list(as_view(frame).ids) == [0, 2]
    assert list(as_view(pl.DataFrame({"a": [1, None, 3]})).ids) == [0, 2]


def test_a_memmap_is_never_read_as_a_whole(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    for held in (tmp_path / "x.npy", str(tmp_path / "x.npy"), np.load(tmp_path / "x.npy", "r")):
        view = as_view(held)
        assert view.rows.on_disk
        assert np.array_equal(dense(view), X)
    part = np.load(tmp_path / "x.npy", "r")[1:3]
    assert np.array_equal(dense(as_view(part)), X[1:3])
    changed = np.load(tmp_path / "x.npy", "c")
    changed[0, 0] = 99.0
    assert dense(as_view(changed))[0, 0] == 99.0
    assert changed[0, 0] == 99.0


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, pd.DataFrame, pl.DataFrame])
def test_an_iterator_of_batches_is_one_view(kind) -> None:
    view = as_view((kind(X[i : i + 2]) for i in (0, 2)), ids=IDS)
    assert np.array_equal(dense(view), X)
    assert list(view.ids) == IDS


def test_batches_bring_their_ids(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, index=pd.Index(IDS, name="who"), columns=list("abc"))
    assert list(as_view(iter([frame[:3], frame[3:]])).ids) == IDS
    frame.to_csv(tmp_path / "x.csv")
    view = as_view(pd.read_csv(tmp_path / "x.csv", chunksize=3), ids="who")
    assert list(view.ids) == IDS
    assert view.features == ("a", "b", "c")
    assert as_view(pd.read_csv(tmp_path / "x.csv", usecols=list("abc"), chunksize=3)).length == 4


def test_spooled_batches_leave_no_file_behind(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    view = as_view(iter([X, X]), ids=range(8))
    assert view.rows.on_disk
    assert os.listdir(tmp_path) == []


def test_lists_dicts_and_mudata_are_several_views() -> None:
    assert [view.name for view in as_views([X, X])] == ["view0", "view1"]
    assert [view.name for view in as_views([as_view(X, name="a"), X])] == ["a", "view1"]
    assert [list(view.ids) for view in as_views([X, X[:2]], ids=[IDS, ["bob", "eve"]])] == [
        IDS,
        ["bob", "eve"],
    ]
    assert len(as_views(X.tolist())) == 1
    rna = anndata.AnnData(pd.DataFrame(X, index=IDS))
    protein = anndata.AnnData(pd.DataFrame(X[1:], index=IDS[1:]))
    views = as_views(mudata.MuData({"rna": rna, "protein": protein}))
    assert [(view.name, list(view.ids)) for view in views] == [("rna", IDS), ("protein", IDS[1:])]


@pytest.mark.parametrize(
    ("held", "ids", "message"),
    [
        (X, ["a", "b", "a", "c"], "duplicate ids: 'a' stands in rows 0, 2. Keep one row"),
        (X, [5, 5, 5, 5], "duplicate ids: 5 stands in rows 0, 1, 2, 3"),
        (X, ["a"], "has 4 rows but 1 ids were given"),
        (X, [1.0, 2.0, 3.0, 4.5], "row 0: the id 1.0 is a float"),
        (X, ["a", None, "b", "c"], "row 1: the id None is a NoneType"),
        (X, [True, False, 1, 2], "the id True is a bool"),
        (X, [(1, 2), (3, 4), (5, 6), (7, 8)], "the id (1, 2) is a tuple"),
        (X, "who", "ids='who' names a column"),
        (pd.DataFrame(X), "who", "no id column 'who'"),
        (np.ones(4), None, "got 1D array instead"),
        (np.ones((2, 2, 2)), None, "got 3D array instead"),
        (np.ones((0, 3)), None, "0 sample(s)"),
        (np.ones((3, 0)), None, "0 feature(s)"),
        (np.full((2, 2), np.nan), None, "none of its rows holds a value"),
        (np.array([[1.0, np.nan]]), ["ann"], "contains NaN in row 0 (id 'ann'), column 1"),
        (np.array([[1.0], [-np.inf]]), None, "contains inf in row 1"),
        (sparse.csr_array([[0, 1.0], [np.nan, 0]]), None, "contains NaN in row 1"),
        (pd.DataFrame({"age": [1.0, 2.0], "iron": [3, None]}), None, "column 'iron'"),
        (pd.DataFrame({"age": [1, 2], "city": ["Rome", "Bonn"]}), None, "'city' looks like ids"),
        (pl.DataFrame({"when": [pd.Timedelta(0)]}), None, "'when' holds Duration"),
        (np.array([["1", "x"]]), None, "row 0, column 1"),
        (np.ones((2, 2), complex), None, "Complex data"),
        (np.array([["2020-01-01"]], "datetime64[D]"), None, "datetime64"),
        (iter([]), None, "its iterator gave no batch"),
        (iter([X, X[:, :2]]), None, "a batch has 2 columns where the first one had 3"),
        (iter([X, sparse.csr_array(X)]), None, "mixes dense and sparse"),
    ],
)
def test_bad_input_is_named(held, ids, message) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(message)) as error:
        as_view(held, ids=ids, name="labs", missing_cells="error")
    assert "'labs'" in str(error.value).replace("view 'labs'", "'labs'")


def test_views_that_cannot_be_told_apart_are_refused() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(20, 3)), rng.normal(size=(19, 3))
    model = FCMVC(2).partial_fit(A)
    with pytest.raises(ValueError, match="19 rows and no ids, but earlier views had 20"):
        model.partial_fit(B)
    with pytest.raises(ValueError, match="known by row number"):
        model.partial_fit(B, ids=[f"p{i}" for i in range(19)])
    model.partial_fit(B, ids=np.arange(1, 20))  # row numbers are ids, too
    assert model.views_[1].n_shared == 19
    named = FCMVC(2).partial_fit(A, ids=[f"p{i}" for i in range(20)])
    with pytest.raises(ValueError, match="has no ids, but the samples folded so far do"):
        named.partial_fit(A)
    for wrong in ({"c": IDS}, [IDS], 5):
        with pytest.raises(ValueError, match="ids"):
            as_views({"a": X, "b": X}, ids=wrong)
    with pytest.raises(ValueError, match="no view"):
        as_views({})


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: as_view(np.array([[1.0, 2.0], [3.0, np.nan]]), missing_cells="error"),
        lambda: as_view(np.array([["1", "x"], ["2", "3"]])),
        lambda: as_view(np.ones((2, 1)), ids=["a", np.float64(1.5)]),
        lambda: as_view(np.ones((2, 1)), name=np.int64(3)),
        lambda: suggest_n_clusters(np.eye(9), np.array([1, 2])),
        lambda: ViewFold(2).partial_fit(np.eye(9), min_shared=np.int64(-1)),
        lambda: ViewFold(2).partial_fit(np.eye(3), ids=np.array(["a", "A", "b"])),
    ],
)
def test_messages_show_plain_values(wrong) -> None:
    """And no ``np.int64(3)`` or ``np.str_('a')``."""
    with pytest.raises((ValueError, TypeError)) as error:
        wrong()
    assert "np." not in str(error.value)


def test_ids_of_numpy_become_those_of_python() -> None:
    ids = as_view(np.ones((3, 1)), ids=[np.int64(7), np.str_("b"), 8]).ids
    assert [type(one) for one in ids] == [int, str, int]
    assert {type(one) for one in as_view(np.ones((2, 1)), ids=np.array(["a", "b"])).ids} == {str}
    for times in (np.array([1, 2], "datetime64[ns]"), np.array([1, 2], "timedelta64[ns]")):
        with pytest.raises(ValueError, match="Ids are ints or strings"):
            as_view(np.ones((2, 1)), ids=list(times))
