"""The state is bounded: by n_components, and by what ids and history of all views demand."""

import pickle
import sys
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import KMeans

from viewfold import FCMVC, ViewFold
from viewfold.method import encoders, scaling
from viewfold.metrics import accuracy
from viewfold.rows import LocalEngine, Rows
from viewfold.state.state import State, ViewRecord, unconnected_groups


def noise(n: int, d: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def clusters(y: np.ndarray, d: int, seed: int) -> np.ndarray:
    return noise(y.size, d, seed) + 6 * noise(3, d, seed + 100)[y]


def test_unrelated_views_share_the_columns_there_are() -> None:
    model = ViewFold(5, n_init=2, random_state=0)
    for seed in range(6):
        model.partial_fit(noise(200, 30, seed))
        assert model.embedding_.shape[1] <= 15
    assert (
        ViewFold(5, n_components=4).fit([noise(200, 30, s) for s in range(4)])._n_features_out == 4
    )


@pytest.mark.filterwarnings("ignore:The samples are in")
def test_groups_that_nothing_ties_together_share_the_columns_there_are() -> None:
    model = ViewFold(3, n_init=2, random_state=0)
    for i in range(7):
        model.partial_fit(noise(40, 6, i), ids=range(40 * i, 40 * i + 40))
        assert model.embedding_.shape[1] <= 15


@pytest.mark.filterwarnings("ignore:The samples are in")
def test_a_small_group_keeps_its_say_beside_a_large_one() -> None:
    y = np.arange(640) % 3
    small, large = np.arange(40), np.arange(40, 640)
    model = ViewFold(3, n_init=2, random_state=0)
    model.partial_fit(clusters(y[small], 9, 0), ids=small)
    for seed in range(1, 7):
        model.partial_fit(clusters(y[large], 30, seed), ids=large)
    rows = model.embedding_[:40]
    assert np.abs(rows @ model.embedding_[40:].T).max() < 1e-9
    assert np.linalg.matrix_rank(rows, tol=1e-3 * np.linalg.norm(rows)) >= 3
    assert accuracy(y[small], KMeans(3, random_state=0, n_init=5).fit_predict(rows)) > 0.9


@pytest.mark.parametrize("n_views", [2, 5, 9])
def test_groups_are_those_of_the_graph_of_views_and_samples(n_views: int) -> None:
    rng = np.random.default_rng(n_views)
    for _ in range(30):
        seen = rng.random((12, n_views)) < rng.choice([0.1, 0.2, 0.4])
        seen[~seen.any(axis=1), 0] = True
        seen = np.repeat(seen, 10, axis=0)
        views = tuple(ViewRecord(str(v), 1, 1, 1, 0, 1) for v in range(n_views))
        found = unconnected_groups(LocalEngine(), seen, views)
        connected = seen.astype(int) @ seen.T.astype(int)
        n_groups, of_sample = connected_components(connected, directed=False)
        got = np.zeros(120, int) if found is None else found
        assert len(np.unique(got)) == n_groups
        assert np.array_equal(got[:, None] == got, of_sample[:, None] == of_sample)


def test_views_are_connected_by_ten_samples_and_not_by_nine() -> None:
    for n_shared, expected in ((9, 2), (10, 1)):
        seen = np.zeros((50, 2), bool)
        seen[: 25 + n_shared, 0] = seen[25:, 1] = True
        views = tuple(ViewRecord(name, 1, 1, 1, n_shared, 1) for name in "ab")
        found = unconnected_groups(LocalEngine(), seen, views)
        assert (1 if found is None else len(np.unique(found))) == expected
    seen[:] = True
    seen[9:, 1] = False  # a small view of samples that another has is no group
    few = (views[0], replace(views[1], n_shared=9))
    assert unconnected_groups(LocalEngine(), seen, few) is None


def test_looking_for_groups_takes_no_memory_of_samples_times_views() -> None:
    n, v = 20_000, 200
    seen = np.zeros((n, v), bool)
    seen[np.arange(n), np.arange(n) % v] = True
    views = tuple(ViewRecord(str(i), 1, 1, 1, 0, 1) for i in range(v))
    tracemalloc.start()
    found = unconnected_groups(LocalEngine(), seen, views)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found is not None
    assert len(set(found)) == v
    assert peak < n * v / 2


def after(model: Any, n_views: int) -> Any:
    """Return a model as if it had folded its last view so often."""
    state = model._state
    times, last = n_views - len(state.views), state.views[-1]
    grown = replace(
        state,
        views=(*state.views, *(replace(last, name=f"again{i}") for i in range(times))),
        seen=np.hstack([state.seen, np.repeat(state.seen[:, -1:], times, axis=1)]),
        history=np.hstack([state.history, np.repeat(state.history[:, -1:], times, axis=1)]),
        maps=(*state.maps, *([None] * times)),
    )
    return model._keep(grown)


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_a_fold_does_not_touch_the_views_before_it(monkeypatch, kind) -> None:
    y = np.arange(60) % 3
    shapes = []
    for encoder in (encoders.FeatureEncoder, scaling.Affine):
        then = encoder.then

        def spy(self, linear_map, then=then):
            shapes.append(linear_map.shape)
            return then(self, linear_map)

        monkeypatch.setattr(encoder, "then", spy)
    calls = {}
    for n_views in (10, 1000):
        model = after(
            kind(3, n_init=2, random_state=0).fit([clusters(y, 5, 0), clusters(y, 6, 1)]), n_views
        )
        shapes.clear()
        events = 0

        def count(*_: Any) -> None:
            nonlocal events
            events += 1

        sys.setprofile(count)
        try:
            model.partial_fit(clusters(y, 7, 2), view="new")
        finally:
            sys.setprofile(None)
        calls[n_views] = events
        assert len(shapes) <= 1
        assert len(model.views_) == n_views + 1
        assert model.transform(clusters(y, 5, 0), view=0).shape == model.embedding_.shape
    # A few glances at each record, and one small product for its moments.
    assert calls[1000] - calls[10] < 80 * 990


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_what_is_turned_late_is_what_was_turned_at_every_fold(kind) -> None:
    y = np.arange(200) % 3
    views = [clusters(y, d, d) for d in (5, 6, 7, 8)]
    model = kind(3, n_init=2, random_state=0)
    for i, X in enumerate(views):
        there = np.arange(0 if i == 0 else 30, 200)  # the first 30 are in the first view only
        model.partial_fit(X[there], ids=there)
    embedded, rows = model.transform(views[0][:30], view=0), model.embedding_[:30]
    if kind is FCMVC:
        assert np.allclose(embedded, rows, atol=1e-9)
    else:  # what is kept of landmarks is coarser than what the fold used
        assert np.linalg.norm(embedded - rows) < 0.25 * np.linalg.norm(rows)


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_without_encoders_a_view_adds_its_record_and_history_only(kind) -> None:
    n, y = 50, np.arange(50) % 3
    model = kind(3, n_init=1, random_state=0, keep_encoders=False)
    sizes = {}
    for i in range(30):
        model.partial_fit(clusters(y, 4, i))
        state: State = model._state
        assert all(linear_map is None for linear_map in state.maps)
        traces = sum(len(view.objective) for view in model.views_)
        sizes[i] = len(pickle.dumps(replace(state, log=()))) - 9 * traces - 9 * n * (i + 1)
    assert len(state.log) == 30  # an entry for each fold, on top
    assert sizes[29] - sizes[14] < 15 * 150


def test_maps_are_no_more_than_encoders_need() -> None:
    y = np.arange(60) % 3
    model = ViewFold(3, n_init=2, random_state=0, keep_encoders=False).fit([clusters(y, 5, 0)] * 2)
    model.set_params(keep_encoders=True).partial_fit(clusters(y, 5, 1))
    model.partial_fit(clusters(y, 5, 2))
    kept = [linear_map is not None for linear_map in model._state.maps]
    assert kept == [False, False, False, True]
    assert Rows(model.embedding_).shape == (60, 15)
