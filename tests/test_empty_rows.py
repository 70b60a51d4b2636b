"""Rows of zeros are samples that a view lacks, where they can be nothing else; they are counted."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import load
from scipy import sparse
from test_cli import Run, run  # noqa: F401

import viewfold
from viewfold import FCMVC, ViewFold, as_view, as_views
from viewfold.rows import block_bytes
from viewfold.web import page_data

N, EMPTY = 60, [3, 4, 17, 59]


def counts(seed: int = 0, d: int = 40) -> np.ndarray:
    """Counts of three groups of samples, most of them zero, with a few rows of zeros."""
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.5, 2, size=(3, d))[np.arange(N) % 3]
    X = rng.poisson(rates) + (rng.uniform(size=(N, d)) < 0.4)
    assert ((X > 0).sum(axis=1) >= 10).all()
    X[EMPTY] = 0
    return X


def left(view: viewfold.View) -> list[int]:
    return sorted(set(range(N)) - set(view.ids.tolist()))


IDS = np.arange(N)


@pytest.mark.filterwarnings("ignore:.*nothing but zeros")
@pytest.mark.parametrize(
    "held",
    [
        counts(),
        counts().astype(np.float32),
        counts().astype(np.uint8),
        sparse.csr_array(counts()),
        sparse.csr_array(counts().astype(float)),
        pd.DataFrame(counts(), index=IDS + 0),
        pl.DataFrame(counts().astype(float)),
        iter([counts()[:30], counts()[30:]]),
        counts().tolist(),
    ],
    ids=lambda held: f"{type(held).__module__}.{type(held).__name__}",
)
def test_rows_of_zeros_are_absent_however_they_are_held(held) -> None:
    view = as_view(held)
    assert left(view) == EMPTY
    assert view.n_empty == len(EMPTY)


@pytest.mark.filterwarnings("ignore:.*nothing but zeros")
@pytest.mark.parametrize("name", ["words.csv", "words.parquet", "words.npy"])
def test_rows_of_zeros_are_absent_in_files(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(counts(), columns=[f"w{j}" for j in range(40)])
    path = tmp_path / name
    if name.endswith("npy"):
        np.save(path, counts().astype(float))
    else:
        frame.to_csv(path, index=False) if name.endswith("csv") else frame.to_parquet(path)
    with block_bytes(8 * 40 * 7):
        view = as_view(path)
    assert left(view) == EMPTY


@pytest.mark.filterwarnings("ignore:.*nothing but zeros")
def test_explicit_zeros_and_rows_of_nan_do_not_confuse() -> None:
    stored = sparse.csr_array(counts().astype(float))
    stored.data[stored.indptr[7] : stored.indptr[8]] = 0
    assert left(as_view(stored)) == sorted([7, *EMPTY])
    gaps = counts().astype(float)
    gaps[8] = np.nan
    view = as_view(gaps)
    assert left(view) == sorted([8, *EMPTY])
    assert view.n_empty == len(EMPTY)


@pytest.mark.parametrize(
    "X",
    [
        np.where(np.arange(N)[:, None] == 3, 0, counts() - 0.5),  # signed
        counts(d=40)[:, :9],  # too few features to tell
        np.eye(N)[:, :-1],  # a row of one value is next to a row of none
        np.zeros((N, 12)),  # nothing to compare with
    ],
    ids=["signed", "narrow", "short rows", "all"],
)
def test_a_row_of_zeros_that_may_be_a_sample_is_kept(X: np.ndarray) -> None:
    for held in (X, sparse.csr_array(X)):
        view = as_view(held)
        assert left(view) == []
        assert view.n_empty == 0


def test_a_note_says_how_many_and_keep_undoes_it() -> None:
    with pytest.warns(UserWarning, match="'words': 4 of 60 rows.*empty_rows='keep'"):
        view = as_view(counts(), name="words")
    assert left(as_view(counts(), empty_rows="keep")) == []
    assert left(as_views([counts()], empty_rows="keep")[0]) == []
    with pytest.raises(ValueError, match="left out already"):
        as_view(view, empty_rows="keep")
    with pytest.raises(ValueError, match="'absent' or 'keep'"):
        as_view(counts(), empty_rows="drop")


@pytest.mark.filterwarnings("ignore:.*nothing but zeros")
@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_models_leave_them_out_as_rows_of_nan_and_count_them(kind: type, tmp_path: Path) -> None:
    both = [counts(0).astype(float), counts(1).astype(float)]
    model = kind(3, random_state=0).fit(both)
    gaps = [np.where((X == 0).all(axis=1, keepdims=True), np.nan, X) for X in both]
    assert np.array_equal(model.embedding_, kind(3, random_state=0).fit(gaps).embedding_)
    assert model.ids_.tolist() == sorted(set(range(N)) - set(EMPTY))
    assert [view.n_empty for view in model.views_] == [4, 4]
    model.save(tmp_path / "s.vf")
    assert viewfold.load(tmp_path / "s.vf").views_[1].n_empty == 4
    assert [one["n_empty"] for one in page_data(model).summary["views"]] == [4, 4]
    whole = kind(3, random_state=0).partial_fit(both[0], empty_rows="keep")
    assert whole.ids_.size == N
    with pytest.warns(UserWarning, match="4 of 60 rows are NaN or zero"):
        assert np.flatnonzero(kind(3, random_state=0).fit_predict(both) < 0).tolist() == EMPTY
    assert (kind(3, random_state=0).fit_predict(both, empty_rows="keep") >= 0).all()


@pytest.mark.filterwarnings("ignore:.*nothing but zeros")
def test_new_rows_of_zeros_mean_what_they_meant_in_the_fold() -> None:
    X, Y = counts(0).astype(float), counts(1).astype(float)
    model = ViewFold(3, random_state=0).fit({"x": X, "y": Y})
    with pytest.raises(ValueError, match=r"'x' contains zeros.*row 1"):
        model.predict(X[[0, 3]], view="x")
    with pytest.raises(ValueError, match="none of its rows holds a value other than zero"):
        model.predict(X[[3]], view="x")
    assert model.predict({"x": X[[0, 3]], "y": Y[[0, 5]]}).shape == (2,)
    kept = ViewFold(3, random_state=0).fit({"x": X}, empty_rows="keep")
    assert kept.predict(X[[0, 3]]).shape == (2,)


def test_commands_tell_them_and_take_keep(
    run: Run,  # noqa: F811
    tmp_path: Path,
) -> None:
    path = tmp_path / "words.csv"
    pd.DataFrame(counts(), columns=[f"w{j}" for j in range(40)]).to_csv(path, index_label="id")
    _, _, told = run("add", tmp_path / "s.vf", path, "--id", "id", "-k", 3)
    assert "56 samples × 40 features" in told
    assert "4 rows of zeros left out" in told
    assert "--empty-rows keep" in told
    _, _, kept = run("add", tmp_path / "k.vf", path, "--id", "id", "-k", 3, "--empty-rows", "keep")
    assert "60 samples" in kept
    assert "zeros" not in kept


@pytest.mark.filterwarnings("ignore:.*nothing but zeros")
@pytest.mark.parametrize("name", ["bdgp", "webkb", "dermatology", "movies", "wiki", "yale-3view"])
def test_no_false_alarm_on_real_sets(name: str) -> None:
    views, _ = load(name)
    assert [as_view(X).n_empty for X in views] == (
        [195, 1142, 1819] if name == "bdgp" else [0] * len(views)
    )
