"""Another number of clusters in a consensus that stays: numbers kept, logged, undoable."""

import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from conftest import Data
from every_estimator import folded, folded_once

import viewfold
from viewfold import FCMVC, ViewFold, metrics
from viewfold.store import queries


def quiet(model: Any, k: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.recluster(k)


@pytest.fixture(params=[ViewFold, FCMVC])
def model(request: pytest.FixtureRequest, data: Data) -> Any:
    return folded_once(request.param(4, random_state=0), data)


def test_other_clusters_in_the_same_embedding(model: Any, data: Data) -> None:
    embedding, before = model.embedding_.copy(), model.labels_.copy()
    assert quiet(model, 6) is model
    assert model.n_clusters == 6
    assert sorted(set(model.labels_)) == list(range(6))
    assert model.cluster_centers_.shape[0] == 6
    assert np.array_equal(model.embedding_, embedding)
    entry = model.log_.iloc[-1]
    assert (entry["what"], entry["n_clusters"]) == ("recluster", 6)
    assert entry["n_moved"] == (model.labels_ != before).sum() > 0
    assert set(model.predict(data.parts()["labs"][0], view="labs")) <= set(range(6))


def test_clusters_that_stay_keep_their_numbers(data: Data) -> None:
    model = folded_once(ViewFold(4, random_state=0), data)
    before = model.labels_.copy()
    for c in range(4):
        assert len(set(quiet(model, 5).labels_[before == c])) <= 2
    same = model.labels_ == before
    assert [c for c in range(4) if same[before == c].mean() > 0.5] == [0, 1, 2, 3]
    assert np.array_equal(quiet(model, 4).labels_, before)  # and back


def test_the_same_number_changes_nothing_and_adds_no_entry(model: Any) -> None:
    state = model._state
    assert model.recluster(4)._state is state
    quiet(quiet(model, 6), 6)
    assert model.log_["what"].tolist()[-2:] == ["fold", "recluster"]


def test_it_is_what_a_fold_for_this_number_reads_from_the_same_consensus(data: Data) -> None:
    asked = folded(ViewFold(3, n_components=20, random_state=0), data.parts())
    fitted = folded(ViewFold(5, n_components=20, random_state=0), data.parts())
    assert np.array_equal(asked.embedding_, fitted.embedding_)
    assert metrics.nmi(asked.recluster(5).labels_, fitted.labels_) == pytest.approx(1)


def test_the_order_of_rows_does_not_matter(data: Data) -> None:
    X = data.views["labs"]
    order = np.random.default_rng(0).permutation(len(X))
    one = ViewFold(3, random_state=0).partial_fit(X, ids=np.arange(len(X)))
    two = ViewFold(3, random_state=0).partial_fit(X[order], ids=order)
    found = quiet(one, 5).to_frame()["cluster"].sort_index()
    assert metrics.nmi(found, quiet(two, 5).to_frame()["cluster"].sort_index()) == pytest.approx(1)


def test_fewer_columns_than_a_fold_would_have_are_told(data: Data) -> None:
    X = np.hstack(list(data.views.values()))
    model = ViewFold(2, random_state=0).fit(X)
    assert model.embedding_.shape[1] == 15
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.recluster(5)  # a fold for five has 15 as well
    with pytest.warns(UserWarning, match=r"has 15 columns; a fold for 9 clusters .* up to 27"):
        model.recluster(9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ViewFold(2, n_components=4, random_state=0).fit(X).recluster(9)
        ViewFold(2, random_state=0).fit(X[:, :3]).recluster(9)  # there are no more features
        FCMVC(4, random_state=0).fit(X).recluster(3)
    with pytest.warns(UserWarning, match="has 4 columns; a fold for 6 clusters"):
        FCMVC(4, random_state=0).fit(X).recluster(6)


@pytest.mark.parametrize("k", [0, -1, 2.5, "auto", 161])
def test_what_cannot_be_a_number_is_refused_and_nothing_changed(data: Data, k: Any) -> None:
    model = ViewFold(4, random_state=0).fit(data.views["labs"])
    state = model._state
    with pytest.raises(ValueError, match="n_clusters"):
        model.recluster(k)
    assert model._state is state
    assert model.n_clusters == 4


def test_in_a_file_it_is_one_change_that_can_be_undone(data: Data, tmp_path: Path) -> None:
    path = tmp_path / "p.vf"
    folded_once(ViewFold(4, random_state=0), data).save(path)
    before = viewfold.load(path).labels_
    with viewfold.edit(path) as model:
        quiet(model, 6)
    again = viewfold.load(path)
    assert again.n_clusters == 6
    assert np.array_equal(again.labels_, model.labels_)
    assert again.log_["what"].tolist()[-1] == "recluster"  # and no entry for the parameter
    assert again.log_["n_clusters"].tolist()[-1] == 6
    assert list(again.history_)[-2:] == ["text", "recluster (4)"]
    moved = len(again.movers(entry=4))
    assert moved == again.log_["n_moved"].tolist()[-1] > 0
    with duckdb.connect(path, read_only=True) as db:
        rows = "labels_history WHERE entry = 4 AND what = 'recluster' AND previous <> label"
        assert db.sql(f"SELECT count(*) FROM {rows}").fetchall() == [(moved,)]
    assert queries.way(path, str(again.ids_[0]))[-1]["what"] == "recluster"
    assert viewfold.verify(path).whole
    undone = viewfold.undo(path)
    assert undone.n_clusters == 4
    assert np.array_equal(undone.labels_, before)


def test_folds_go_on_with_the_new_number(model: Any, data: Data) -> None:
    X, ids = data.parts()["labs"]
    quiet(model, 3).partial_fit(X, ids=ids, view="more")
    assert set(model.labels_) == {0, 1, 2}
