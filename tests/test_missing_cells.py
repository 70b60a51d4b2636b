"""Missing cells are accepted, counted and told; what stands for them is what the row says."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from test_cli import Run, run  # noqa: F401

import viewfold
from viewfold import FCMVC, ViewFold, as_view, as_views
from viewfold.method.filling import learn_filling
from viewfold.method.scaling import scale_of
from viewfold.metrics import accuracy
from viewfold.rows import LocalEngine, block_bytes
from viewfold.rows.linalg import filled
from viewfold.web import page_data

N, D, K = 240, 30, 6
Y = np.arange(N) % K


def low_rank(seed: int = 0, d: int = D) -> np.ndarray:
    """Rows of six clusters near a plane of four directions, in which features say the same."""
    rng = np.random.default_rng(seed)
    scores = 2 * rng.normal(size=(K, 4))[Y] + 0.6 * rng.normal(size=(N, 4))
    return scores @ rng.normal(size=(4, d)) + 0.5 * rng.normal(size=(N, d)) + 20


def holed(X: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where(rng.uniform(size=X.shape) < share, np.nan, X)


def by_mean(X: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X)


GAPS = holed(low_rank(), 0.3)


# ---- what is found ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "held",
    [
        GAPS,
        GAPS.astype(np.float32),
        GAPS.tolist(),
        pd.DataFrame(GAPS, index=np.arange(N) + 0),
        pl.DataFrame(GAPS),
        sparse.csr_array(GAPS),
        iter([GAPS[:100], GAPS[100:]]),
    ],
    ids=lambda held: f"{type(held).__module__}.{type(held).__name__}",
)
def test_they_are_counted_however_they_are_held(held) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a table with a gap is an ordinary table
        view = as_view(held)
    assert view.n_missing == np.isnan(GAPS).sum()
    told = view.missing()
    assert told["samples"] == np.isnan(GAPS).any(axis=1).sum()
    assert told["features"] == D
    assert told["share"] == pytest.approx(np.isnan(GAPS).mean(), abs=1e-4)
    worst = np.argsort(-np.isnan(GAPS).sum(axis=0), kind="stable")[:3]
    assert [name.lstrip("column_") for name in told["worst"]] == [str(j) for j in worst]


def test_error_refuses_them_with_row_id_and_column() -> None:
    X = low_rank()
    X[7, 3] = X[9] = np.nan
    for held in (pd.DataFrame(X, [f"p{i}" for i in range(N)]), as_view(X, ids=PEOPLE)):
        with pytest.raises(ValueError, match=r"NaN in row 7 \(id 'p7'\), column '?3"):
            as_view(held, missing_cells="error")
        with pytest.raises(ValueError, match="NaN in row 7"):
            ViewFold(3).fit(held, missing_cells="error")
    with pytest.raises(ValueError, match="'accept' or 'error'"):
        as_views([X], missing_cells="drop")
    assert as_view(np.delete(X, 7, axis=0), missing_cells="error").shape == (N - 2, D)


PEOPLE = [f"p{i}" for i in range(N)]


def test_rows_without_any_cell_are_absent_samples_and_inf_stays_an_error() -> None:
    X = GAPS.copy()
    X[5] = np.nan
    for held in (X, sparse.csr_array(X)):
        view = as_view(held)
        assert 5 not in view.ids
        assert view.n_missing == np.isnan(np.delete(GAPS, 5, axis=0)).sum()
    X[6, 2] = np.inf
    for held in (X, sparse.csr_array(X)):
        with pytest.raises(ValueError, match="inf in row 6"):
            as_view(held)


def test_numbers_dates_and_categories_that_are_null_are_missing_cells() -> None:
    frame = pd.DataFrame(
        {
            "count": pd.array([1, 2, None, 4] * 6, dtype="Int64"),
            "ward": ["ICU", "ER", "ER", None] * 6,
            "day": ["2024-01-01", None, "2024-01-09", "2024-02-03"] * 6,
        }
    )
    view = as_view(frame, ids=False)
    assert list(view.missing()["worst"]) == ["count", "ward=ER", "ward=ICU"]
    at = [name.startswith("ward=") for name in view.features]
    assert np.isnan(view.rows.X[3, at]).all()


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_a_column_that_hardly_anybody_has_counts_as_constant_and_is_told(kind) -> None:
    X = GAPS.copy()
    X[:, 4] = np.nan
    X[9:, 5] = np.nan
    X[:9, 5] = 1e6
    with pytest.warns(UserWarning, match="fewer than ten samples have a value in columns 4, 5"):
        model = kind(K, random_state=0).fit(X)
    without = np.delete(X, [4, 5], axis=1)
    X[:9, 5] = -3
    with pytest.warns(UserWarning, match="fewer than ten"):
        other = kind(K, random_state=0).fit(X)
    assert np.array_equal(model.embedding_, other.embedding_), "its values say nothing"
    if kind is ViewFold:
        assert accuracy(Y, model.labels_) > accuracy(Y, kind(K).fit(without).labels_) - 0.05
    X[:9, 5] = 1e6
    assert np.array_equal(model.transform(X[:40]), other.transform(X[:40]))
    few = GAPS[:8].copy()  # of few samples, all that is there counts
    few[:, 4] = np.nan
    with pytest.warns(UserWarning, match="no sample has a value in column 4"):
        kind(2, random_state=0).fit(few)


# ---- what stands for them -----------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["zscore", None])
def test_for_fcmvc_a_missing_cell_is_the_mean_of_the_feature(scale) -> None:
    views = [holed(low_rank(i), 0.3, i) for i in range(3)]
    gaps = FCMVC(K, scale=scale, random_state=0).fit(views)
    by_hand = FCMVC(K, scale=scale, random_state=0).fit([by_mean(X) for X in views])
    assert np.allclose(gaps.embedding_, by_hand.embedding_, atol=1e-10)
    rows = np.where(np.isnan(views[2]), np.nanmean(views[2], axis=0), views[2])[:9]
    assert np.allclose(gaps.transform(views[2][:9], view=2), gaps.transform(rows, view=2))


def test_cells_are_predicted_from_those_that_are_there() -> None:
    X = low_rank()
    found, kept, _ = learn_filling(LocalEngine(), as_view(GAPS), (0, 0))
    gone = np.isnan(GAPS)

    def error(rows: np.ndarray) -> float:
        return float(((rows - X)[gone] ** 2).mean())

    assert error(found(GAPS)) < 0.05 * error(by_mean(GAPS))
    assert error(kept(GAPS)) < 0.05 * error(by_mean(GAPS))
    for fill in (found, kept):
        assert np.array_equal(fill(GAPS)[~gone], GAPS[~gone])
        assert fill(X) is X, "complete rows are as they are"
    single = found(GAPS.astype(np.float32))
    assert single.dtype == np.float32
    assert np.allclose(single, found(GAPS), rtol=1e-3)


def test_curved_views_are_completed_by_their_neighbours() -> None:
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 600)
    X = np.column_stack([f(m * angle) for m in (1, 2, 3) for f in (np.sin, np.cos)])
    gaps = holed(X, 0.2)
    found, _, _ = learn_filling(LocalEngine(), as_view(gaps), (0, 0))
    error = ((found(gaps) - X)[np.isnan(gaps)] ** 2).mean()
    straight = replace(found, linear=1.0, near=0.0)
    assert error < 0.3 * ((straight(gaps) - X)[np.isnan(gaps)] ** 2).mean()


def test_viewfold_is_better_than_mean_filling_where_features_say_the_same() -> None:
    lead = []
    for seed in range(3):
        views = [holed(low_rank(2 * seed + i, d=10), 0.6, seed + i) for i in range(2)]
        filled_before = [by_mean(X) for X in views]
        own, mean = (ViewFold(K, random_state=0).fit(v) for v in (views, filled_before))
        lead.append(accuracy(Y[own.ids_], own.labels_) - accuracy(Y, mean.labels_))
    assert np.mean(lead) > 0.05


@pytest.mark.parametrize("held", [np.asarray, sparse.csr_array])
def test_in_text_what_is_missing_is_not_there(held) -> None:
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.05 + 0.3 * (np.arange(200) % K == Y[:, None])).astype(float)
    assert scale_of(counts) == "tfidf"
    gaps = np.where((counts == 0) & (rng.uniform(size=counts.shape) < 0.1), np.nan, counts)
    assert scale_of(gaps) == "tfidf"
    found = ViewFold(K, random_state=0).fit(held(gaps))
    assert np.array_equal(found.embedding_, ViewFold(K, random_state=0).fit(counts).embedding_)
    assert np.array_equal(found.transform(gaps[:9]), found.transform(counts[:9]))


def test_principal_component_scores_are_told_with_gaps_too() -> None:
    scores = np.random.default_rng(0).normal(size=(500, 20)) * np.arange(20, 0, -1)
    assert scale_of(holed(scores, 0.3)) == "center"


def test_a_wide_view_with_gaps_is_folded() -> None:
    X = low_rank(d=2500)
    model = ViewFold(K, random_state=0).fit(holed(X, 0.5))
    assert (
        accuracy(Y, model.labels_) > accuracy(Y, ViewFold(K, random_state=0).fit(X).labels_) - 0.1
    )
    assert model.transform(holed(X, 0.5)[:9]).shape == (9, 18)


# ---- later, elsewhere ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_rows_with_gaps_are_predicted_whether_the_view_had_some_or_not(
    kind, share, tmp_path: Path
) -> None:
    X = low_rank()
    model = kind(K, random_state=0).fit({"x": holed(X, share), "y": low_rank(1)})
    new = holed(X, 0.6, seed=5)
    found = model.predict(new, view="x")
    assert np.isfinite(model.transform(new, view="x")).all()
    if kind is ViewFold:
        assert np.mean(found == model.predict(X, view="x")) > 0.9
    model.save(tmp_path / "s.vf")
    again = viewfold.load(tmp_path / "s.vf")
    assert np.array_equal(again.transform(new, view="x"), model.transform(new, view="x"))
    assert [view.n_missing for view in again.views_] == [np.isnan(holed(X, share)).sum(), 0]
    with duckdb.connect(tmp_path / "s.vf", read_only=True) as db:
        assert db.sql("SELECT n_missing FROM views WHERE name = 'y'").fetchall() == [(0,)]
    again.extend(new, ids=np.arange(N) + N, view="x")
    assert again.views_[0].n_missing == np.isnan(holed(X, share)).sum() + np.isnan(new).sum()
    assert np.isfinite(again.embedding_).all()


def test_a_dict_of_rows_with_gaps_gives_the_mean() -> None:
    views = {"x": GAPS, "y": holed(low_rank(1), 0.3)}
    model = ViewFold(K, random_state=0).fit(views)
    both = [model.transform(X[:9], view=name) for name, X in views.items()]
    assert np.allclose(model.transform({n: X[:9] for n, X in views.items()}), np.mean(both, axis=0))


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_later_deliveries_of_a_view_may_have_gaps(kind, tmp_path: Path) -> None:
    ids = np.array(PEOPLE)
    model = kind(K, random_state=0).partial_fit(GAPS[:120], ids=ids[:120], view="x")
    model.partial_fit(GAPS[60:], ids=ids[60:], view="x")  # many of them, so it is learned anew
    before = model.embedding_.copy()
    model.partial_fit(GAPS[200:], ids=ids[200:], view="x")
    assert np.array_equal(model.embedding_, before), "a row that comes again is known"
    assert model.views_[0].n_missing == np.isnan(GAPS).sum()
    model.save(tmp_path / "s.vf")
    again = viewfold.load(tmp_path / "s.vf")
    assert np.array_equal(again.transform(GAPS), model.transform(GAPS))
    few = {"ids": ["new"], "view": "x"}
    with pytest.raises(ValueError, match="NaN in row 0"):
        model.partial_fit(GAPS[:1], missing_cells="error", **few)
    place = model.transform(GAPS[:1])
    assert np.allclose(model.partial_fit(GAPS[:1], **few).embedding_[-1], place)


def test_an_encoder_that_cannot_fill_says_so() -> None:
    model = ViewFold(K, random_state=0).fit(low_rank())
    (record,) = model._state.views
    model._keep(replace(model._state, views=(replace(record, encoder=record.encoder.encode),)))
    assert model.predict(low_rank()).shape == (N,)
    with pytest.raises(ValueError, match="NaN in row"):
        model.predict(GAPS)


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_files_and_small_blocks_give_what_memory_gives(kind, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", GAPS)
    pd.DataFrame(GAPS, columns=[f"f{j}" for j in range(D)]).to_csv(tmp_path / "x.csv", index=False)
    scale = {"scale": "zscore"}  # the columns of the CSV file have names: it is a table
    whole = kind(K, random_state=0, **scale).fit({"x": GAPS})
    for name in ("x.npy", "x.csv"):
        with block_bytes(17 * D * 8):
            model = kind(K, random_state=0, **scale).partial_fit(tmp_path / name, ids=False)
        assert model.views_[0].n_missing == np.isnan(GAPS).sum()
        assert np.allclose(model.embedding_, whole.embedding_, atol=1e-8)


def test_a_large_view_is_completed_in_every_pass_and_gives_the_same(monkeypatch) -> None:
    whole = ViewFold(K, random_state=0).fit(GAPS)
    monkeypatch.setattr("viewfold.method.encoders.CELLS", 0)
    with block_bytes(17 * D * 8):
        model = ViewFold(K, random_state=0).fit(GAPS)
    assert np.allclose(model.embedding_, whole.embedding_, atol=1e-8)


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_the_order_of_rows_does_not_matter(kind) -> None:
    order = np.random.default_rng(1).permutation(N)
    one = kind(K, random_state=0).partial_fit(GAPS, ids=PEOPLE)
    other = kind(K, random_state=0).partial_fit(GAPS[order], ids=np.array(PEOPLE)[order])
    at = np.argsort(order)
    products = [model.embedding_ @ model.embedding_.T for model in (one, other)]
    assert np.allclose(products[0], products[1][np.ix_(at, at)], atol=1e-8)


def test_values_in_the_place_of_nan() -> None:
    X = np.array([[1.0, np.nan], [np.nan, 4.0]])
    values = np.array([8.0, 9.0])
    assert np.array_equal(filled(X, values), [[1, 9], [8, 4]])
    assert np.array_equal(filled(sparse.csr_array(X), values).toarray(), [[1, 9], [8, 4]])
    assert np.array_equal(filled(X, values, np.array([True, False])), [[8, 9], [8, 4]])
    assert np.isnan(X).sum() == 2


def test_commands_tell_them_and_take_error(
    run: Run,  # noqa: F811
    tmp_path: Path,
) -> None:
    path = tmp_path / "labs.csv"
    frame = pd.DataFrame(holed(low_rank(), 0.1), columns=[f"f{j}" for j in range(D)])
    frame.loc[:95, "f7"] = np.nan
    frame.to_csv(path, index_label="id")
    _, out, told = run("add", tmp_path / "s.vf", path, "--id", "id", "-k", K, "--json")
    share = frame.isna().to_numpy().mean()
    assert f"cells are missing ({100 * round(share, 4):.3g} % of all features), in " in told
    assert "(most: f7 " in told
    (fold,) = json.loads(out)["folds"]
    assert fold["missing"]["cells"] == frame.isna().to_numpy().sum()
    assert next(iter(fold["missing"]["worst"])) == "f7"
    _, out, _ = run("status", tmp_path / "s.vf", "--json")
    (view,) = json.loads(out)["views"]
    assert (view["empty"], view["missing"]) == (0, fold["missing"]["cells"])
    (told,) = page_data(viewfold.load(tmp_path / "s.vf")).summary["views"]
    assert told["n_missing"] == fold["missing"]["cells"]
    words = ("--id", "id", "-k", K, "--missing-cells", "error")
    code, _, told = run("add", tmp_path / "e.vf", path, *words)
    assert code != 0
    assert "contains NaN in row 0 (id 0), column 'f" in told
    assert not (tmp_path / "e.vf").exists()
