"""Calls that mean something else than they would do: an error or a warning, never silence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import anndata
import duckdb
import mudata
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.io
from scipy import sparse

from viewfold import FCMVC, ViewFold, as_view, as_views, datasets
from viewfold.data import files as io
from viewfold.data.parts import _is_default

A = np.random.default_rng(0).normal(size=(20, 3))
B = np.random.default_rng(1).normal(size=(20, 4))
FRAME = pd.DataFrame(B, columns=list("abcd"))
METHODS = ("fit", "partial_fit", "fit_predict", "fit_transform")

# ---- the second argument ------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "y",
    [
        B,
        B.tolist(),
        FRAME,
        pl.DataFrame(B),
        sparse.csr_array(B),
        [B, B],
        {"scan": B},
        as_view(B),
        anndata.AnnData(B),
        mudata.MuData({"scan": anndata.AnnData(B)}),
        Path("scan.csv"),
    ],
    ids=lambda y: type(y).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_a_second_view_is_not_dropped(method: str, y: Any) -> None:
    model = FCMVC(2)
    with pytest.raises(TypeError, match=r"looks like a view\. Pass several views to fit as a list"):
        getattr(model, method)(A, y)
    assert not hasattr(model, "labels_")


@pytest.mark.parametrize("method", METHODS)
def test_a_name_or_ids_as_second_argument_are_not_dropped(method: str) -> None:
    with pytest.raises(TypeError, match="To name the view, pass view='labs' to partial_fit"):
        getattr(FCMVC(2), method)(A, "labs")
    for ids in ([f"p{i}" for i in range(20)], pd.Index([f"p{i}" for i in range(20)])):
        with pytest.warns(UserWarning, match=r"like 'p0'\. If they are ids, pass them as ids="):
            getattr(FCMVC(2), method)(A, ids)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "y", [np.arange(20), [0, 1] * 10, ["a", "b"] * 10, pd.Series(range(20)), np.ones((20, 1))]
)
def test_a_target_is_ignored_as_scikit_learn_has_it(method: str, y: Any) -> None:
    model = FCMVC(2, random_state=0)
    getattr(model, method)(A, y)
    assert np.array_equal(model.labels_, FCMVC(2, random_state=0).fit(A).labels_)


# ---- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [5, 0, 1.5, b"labs", ["labs"]])
def test_the_name_of_a_view_is_a_text(name: Any) -> None:
    with pytest.raises(TypeError, match="The name of a view is a text, got "):
        FCMVC(2).partial_fit(A, view=name)
    with pytest.raises(TypeError, match="The name of a view is a text, got "):
        as_view(A, name=name)


def test_which_views_there_are_is_told() -> None:
    model = FCMVC(2).fit({"labs": A, "scan": B})
    for ask in (model.predict, model.transform, model.predict_frame, model.extend):
        with pytest.raises(ValueError, match=re.escape("Pass view=, one of ['labs', 'scan']")):
            ask(A)


# ---- a label for each row -----------------------------------------------------------------------


def test_there_is_a_label_for_each_row() -> None:
    X = A.copy()
    X[[3, 7]] = np.nan
    for held in (X, pd.DataFrame(X), pd.DataFrame(X, index=[f"p{i}" for i in range(20)])):
        model = ViewFold(2, random_state=0)
        with pytest.warns(UserWarning, match="2 of 20 rows are NaN in every view"):
            labels = model.fit_predict(held)
        assert np.flatnonzero(labels < 0).tolist() == [3, 7]
        assert np.array_equal(labels[labels >= 0], model.labels_)
        with pytest.warns(UserWarning, match="2 of 20 rows"):
            embedding = model.fit_transform(held)
        assert embedding.shape == (20, model.embedding_.shape[1])
        assert np.flatnonzero(np.isnan(embedding).all(axis=1)).tolist() == [3, 7]


@pytest.mark.filterwarnings("error")
def test_rows_that_some_view_has_are_labelled() -> None:
    X, Y = A.copy(), B.copy()
    X[[3, 7]], Y[[4]] = np.nan, np.nan
    assert (FCMVC(2).fit_predict([X, Y]) >= 0).all()
    ids = [f"p{i}" for i in range(20)]
    assert FCMVC(2).fit_predict(as_view(X, ids=ids)).shape == (18,)  # a view is its samples
    assert FCMVC(2).fit_predict([X, Y], ids=[ids, ids]).shape == (20,)


def test_rows_that_no_view_has_get_no_label() -> None:
    X, Y = A.copy(), B.copy()
    X[[3, 7]], Y[[7]] = np.nan, np.nan
    with pytest.warns(UserWarning, match="1 of 20 rows are NaN in every view"):
        labels = FCMVC(2).fit_predict([X, Y])
    assert np.flatnonzero(labels < 0).tolist() == [7]


# ---- what is not understood ---------------------------------------------------------------------


class Lazy:
    """Stands for a dask or Spark frame: it turns into an array, but its index would be lost."""

    ndim, shape = 2, A.shape

    def __init__(self, own: str) -> None:
        setattr(self, own, lambda: A)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return A


class Bare(Lazy):
    def __init__(self) -> None:
        pass


class Card(Bare):
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


@pytest.mark.parametrize(
    "held",
    [
        Lazy("compute"),
        Lazy("index"),
        Lazy("coords"),
        Lazy("collect"),
        duckdb.sql("SELECT 1.0 AS iron, 2.0 AS zinc"),
        np.ma.masked_array(A, A > 0),
        pd.Series(range(20)),
        {1, 2},
        object(),
        5,
    ],
    ids=lambda held: type(held).__name__,
)
def test_what_is_not_understood_is_refused(held: Any) -> None:
    for call in (as_view, as_views, FCMVC(2).fit, FCMVC(2).partial_fit, FCMVC(2).fit(A).predict):
        with pytest.raises(TypeError, match=r"is a .*\. Understood are NumPy and SciPy") as error:
            call(held)
        assert "Convert it first" in str(error.value)


def test_a_default_index_is_none_in_other_libraries_either() -> None:
    class RangeIndex:  # as cuDF has it
        start, step = 0, 1

    assert _is_default(RangeIndex())
    assert _is_default(pd.RangeIndex(5))
    assert not _is_default(pd.RangeIndex(1, 5))
    assert not _is_default(pd.Index([0, 1, 2]))


def test_the_way_to_convert_is_told() -> None:
    for held, way in (
        (Lazy("compute"), ".compute()"),
        (Lazy("collect"), ".collect()"),
        (np.ma.masked_array(A), ".filled(np.nan)"),
    ):
        with pytest.raises(TypeError, match=re.escape(f"for instance with {way}")):
            as_view(held)


def test_bare_arrays_of_other_libraries_are_understood() -> None:
    assert as_view(Bare()).shape == A.shape
    with pytest.raises(ValueError, match="cannot be read as an array: Can't call numpy"):
        as_view(Card())
    with pytest.raises(ValueError, match="cannot be read as an array"):
        as_view([[1.0, 2.0], [3.0]])


# ---- arrays of a file ---------------------------------------------------------------------------


def test_matrices_are_views_whatever_they_are_called(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, scan=A, label=B, targets=(B > 0).astype(int), y=np.arange(20), note="x")
    with pytest.warns(UserWarning, match="a.npz") as said:
        views = as_views(path)
    assert [view.name for view in views] == ["label", "scan", "targets"]
    texts = [str(warning.message) for warning in said]
    assert any("'label', 'targets' taken as a view" in text for text in texts)
    assert any("'y' (int64 of shape (20,)), 'note' (<U1 of shape ()) left out" in t for t in texts)
    assert list(datasets.load(path).views) == ["label", "scan"]
    assert datasets.load(path).target.tolist() == list(range(20))


def test_a_matlab_matrix_is_a_view_whatever_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"scan": A, "label": (B > 0) * 1.0, "gnd": np.arange(20)[:, None]})
    with pytest.warns(UserWarning, match=re.escape("'gnd' (shape (20, 1)) left out")):
        views = as_views(path)
    assert sorted(view.name for view in views) == ["label", "scan"]
    assert all(view.shape[0] == 20 for view in views)
    assert list(io.read_set(path)[0]) == ["a"]  # a set's only view is called like its file
