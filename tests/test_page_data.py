# ruff: noqa: F811  (fixtures of other files)
"""The data of a page: the numbers are the model's numbers, for every model there can be."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from report_models import NAMES, few_draws, model, synthetic  # noqa: F401

from viewfold import FCMVC, ViewFold
from viewfold.estimators import selection
from viewfold.rows import DiskEngine
from viewfold.state.state import ROWS
from viewfold.web import PageData, colour_of, page_data
from viewfold.web.layout import LAID_OUT, ModelRows, Points, places
from viewfold.web.words import from_line


@pytest.fixture(scope="module")
def told_data(model) -> PageData:
    return page_data(model, ids=True)


def digits(number: float) -> float:
    return float(f"{number:.4g}")


def test_samples_and_clusters_are_those_of_the_model(model, told_data) -> None:
    told, frame = told_data.summary, model.to_frame()
    assert (told["n"], told["n_drawn"], told["method"]) == (160, 160, "ViewFold")
    assert told["complete"] == model.seen_.all(axis=1).sum()
    assert told["entry"] == model.log_.index[-1]
    stable = model.stability()
    for c, own in frame.groupby("cluster"):
        one = told["clusters"][c]
        assert (one["number"], one["size"], one["name"]) == (c, len(own), None)
        assert one["share"] == digits(len(own) / 160)
        assert one["confidence"] == digits(own["confidence"].mean())
        assert one["stability"] == digits(stable["stability"][c])
        assert one["trusted"] == stable["trusted"][c]
        assert one["colour"] == colour_of(c)


def test_every_point_is_its_sample(model, told_data) -> None:
    ids = told_data.columns["ids"].decode().split("\n")
    frame = model.to_frame().loc[ids]
    assert len(set(ids)) == 160
    assert told_data.columns["cluster"].tolist() == frame["cluster"].tolist()
    assert told_data.columns["coverage"].tolist() == frame["views_seen"].tolist()
    sure = told_data.columns["confidence"] / 254
    assert np.abs(sure - frame["confidence"].to_numpy()).max() <= 0.5 / 254 + 1e-9
    kinds = {"x": "uint16", "y": "uint16", "ids": "text"}
    novelty = told_data.columns["novelty"] / 254
    assert np.abs(novelty - frame["novelty"].to_numpy()).max() <= 0.5 / 254 + 1e-9
    kinds |= dict.fromkeys(("cluster", "confidence", "coverage", "novelty"), "uint8")
    assert told_data.summary["columns"] == kinds
    assert len(told_data.packed("x")) == 320


ODD = ["a\tb", "a b", "a\u00a0b", "a\u2028b", "line\nline", '"quoted"', "\u202eleft", "007", "<b>"]


def test_ids_are_told_to_the_letter_so_that_no_sample_is_taken_for_another() -> None:
    ids = [*ODD, *(f"p{i}" for i in range(40))]
    rows = np.random.default_rng(0).normal(size=(len(ids), 3))
    model = ViewFold(2, random_state=0).partial_fit(rows, ids=ids, view="v", similar_ids="new")
    lines = page_data(model, ids=True).columns["ids"].decode().split("\n")
    assert sorted(map(from_line, lines)) == sorted(ids)
    assert {"007", "<b>", "a b", "p7"} <= set(lines)


def test_tags_stand_on_points_of_their_clusters(told_data) -> None:
    xy = np.column_stack([told_data.columns["x"], told_data.columns["y"]]) / 65535 * 2 - 1
    assert np.abs(xy).max() <= 1
    for one in told_data.summary["clusters"]:
        own = xy[told_data.columns["cluster"] == one["number"]]
        assert np.abs(own - [one["x"], one["y"]]).max(axis=1).min() < 1e-4


def test_tags_stand_next_to_the_median_which_a_few_far_points_do_not_move() -> None:
    place = np.array([[100, 100], [110, 110], [120, 120], [130, 130], [60000, 65000]], np.uint16)
    model = ViewFold(2, random_state=0).fit(np.random.default_rng(0).normal(size=(40, 3)))
    points = Points.of(ModelRows(model), None, False)
    points = replace(points, place=place, cluster=np.array([1, 1, 1, 1, 1]))
    assert points.tags(2) == {1: tuple((place[2] / 65535 * 2 - 1).round(4).tolist())}


def test_views_variance_and_features_are_those_of_the_model(model, told_data) -> None:
    told, variance = told_data.summary, model.variance()
    for record, view in zip(model.views_, told["views"], strict=True):
        counts = [view[name] for name in ("n_samples", "n_features", "n_new", "n_shared")]
        assert counts == [record.n_samples, record.n_features, record.n_new, record.n_shared]
        assert view["agreement"] == (record.agreement and digits(record.agreement))
        consensus, clusters, *each = variance.loc[record.name]
        assert (view["consensus"], view["explained"]) == (digits(consensus), digits(clusters))
        assert view["by_cluster"] == [digits(one) for one in each]
    found = model.features(top=10)
    assert [one["effect"] for one in told["features"]["top"]] == [*map(digits, found["effect"])]
    assert [one["feature"] for one in told["features"]["top"]] == [*map(str, found["feature"])]
    heat = told["features"]["heat"]
    names = {(one["view"], one["feature"]) for one in heat["rows"]}
    assert len(names) == len(heat["effects"]) <= 60
    for one in told["features"]["top"]:
        if one["rank"] == 1:  # the strongest of each cluster are on the heat map
            at = heat["rows"].index({"view": one["view"], "feature": one["feature"]})
            assert heat["effects"][at][one["cluster"]] == one["effect"]


def test_flow_moves_events_and_coverage_are_those_of_the_history(model, told_data) -> None:
    told, history = told_data.summary, model.history_.to_numpy()
    for step, flow in enumerate(told["flow"]):
        before = history[:, step - 1] if step else np.full(160, -1)
        pairs = zip(before.tolist(), history[:, step].tolist(), strict=True)
        expected = Counter(pair for pair in pairs if pair[1] >= 0)
        assert {(one["from"], one["to"]): one["count"] for one in flow} == expected
    assert told["moved"]["count"] == len(model.movers()) > 0
    assert told["steps"] == list(model.history_)
    patterns = Counter(tuple(np.flatnonzero(row).tolist()) for row in model.seen_.to_numpy())
    shown = told["coverage"]["patterns"]
    assert {tuple(one["views"]): one["count"] for one in shown} == patterns
    assert [one["count"] for one in shown] == sorted(patterns.values(), reverse=True)
    assert [one["kind"] for one in told["events"]] == model.events_["kind"].tolist()[::-1]


def test_least_certain_are_those_of_the_model() -> None:
    model = synthetic(400, 5, 2)
    expected, data = model.uncertain(50), page_data(model, ids=True)
    assert expected["confidence"].is_unique
    told = data.summary["uncertain"]
    assert [one["id"] for one in told] == [str(one) for one in expected.index]
    assert [one["confidence"] for one in told] == [*map(digits, expected["confidence"])]
    assert [one["cluster"] for one in told] == expected["cluster"].tolist()
    assert [one["next"] for one in told] == expected["next_cluster"].tolist()
    ids = data.columns["ids"].decode().split("\n")
    assert [ids[one["point"]] for one in told] == [one["id"] for one in told]


def test_scores_of_numbers_of_clusters_are_those_that_are_suggested(model, told_data) -> None:
    found = selection.suggest_n_clusters(model, selection.candidates(model))
    told = told_data.summary["number"]
    assert told["scores"] == [[k, digits(score)] for k, score in found.scores.items()]
    assert (told["best"], told["now"], told["stands_out"]) == (found.best, 4, found.stands_out)


def test_order_of_rows_tells_nothing(model, told_data) -> None:
    state, order = model._state, np.random.default_rng(0).permutation(160)
    other = replace(state, **{name: getattr(state, name)[order] for name in ROWS})
    shuffled = page_data(ViewFold(4)._keep(other), ids=True)
    for name in told_data.columns:
        assert shuffled.packed(name) == told_data.packed(name), name


def test_rows_of_an_engine_give_the_same_page(model, told_data, tmp_path) -> None:
    with DiskEngine(n_buckets=4, folder=str(tmp_path)) as engine:
        elsewhere = ViewFold(4, random_state=0)._keep(model._state.placed(engine))
        found = page_data(elsewhere, ids=True)
    for name in told_data.columns:
        assert found.packed(name) == told_data.packed(name), name
    for name in ("n", "complete", "moved", "flow", "events", "coverage", "features"):
        assert found.summary[name] == told_data.summary[name], name


def test_of_very_many_samples_some_are_drawn_and_all_are_counted(monkeypatch) -> None:
    monkeypatch.setattr("viewfold.web.layout.MOST_POINTS", 1000)
    monkeypatch.setattr("viewfold.web.layout.PIECE", 300)
    monkeypatch.setattr("viewfold.web.layout.LAID_OUT", 200)
    monkeypatch.setattr("viewfold.web.data.number", lambda model: None)
    model = synthetic(3000, 5, 2)
    data = page_data(model)
    assert (data.summary["n"], data.summary["n_drawn"]) == (3000, 1000)
    assert {len(column) for column in data.columns.values()} == {1000}
    assert sum(one["size"] for one in data.summary["clusters"]) == 3000
    assert sum(one["count"] for one in data.summary["coverage"]["patterns"]) == 3000
    points = [one["point"] for one in data.summary["uncertain"]]
    assert None in points


def test_samples_are_placed_among_those_they_resemble(monkeypatch) -> None:
    model = synthetic(5000, 6, 1)
    monkeypatch.setattr("viewfold.web.layout.LAID_OUT", 500)
    place = places(model._engine, model._state, np.arange(5000))
    middle = np.array([np.median(place[model.labels_ == c], axis=0) for c in range(6)])
    nearest = ((place[:, None] - middle) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == model.labels_).mean() > 0.98
    assert LAID_OUT == 2000


@pytest.mark.parametrize(
    "model",
    [
        synthetic(300, 4, 1),
        synthetic(300, 1, 3),
        synthetic(300, 40, 12, names=[f"{NAMES[2]} {v}" for v in range(12)]),
        synthetic(400, 120, 2),
        synthetic(3, 2, 2),
        synthetic(1, 1, 1),
        FCMVC(3, random_state=0).fit([np.random.default_rng(0).normal(size=(50, 5))] * 2),
        ViewFold(2, keep_encoders=False).fit([np.random.default_rng(0).normal(size=(50, 5))]),
        ViewFold(1).fit([np.ones((20, 3)) * np.arange(20)[:, None]]),
        ViewFold(8).fit([np.eye(30)]).set_params(n_clusters=3).partial_fit(np.eye(30)),
    ],
    ids=[
        "one-view",
        "one-cluster",
        "many",
        "very-many",
        "three",
        "one",
        "FCMVC",
        "private",
        "line",
        "fewer",
    ],
)
def test_any_model_has_a_page(model) -> None:
    told = json.loads(json.dumps(page_data(model).summary, allow_nan=False))
    k, n = len(model.cluster_centers_), model.n_samples_
    assert len(told["clusters"]) == k
    assert sum(one["size"] for one in told["clusters"]) == n
    assert len(told["flow"]) == len(told["steps"]) == model.history_.shape[1]
    assert all(sum(one["count"] for one in flow) <= n for flow in told["flow"])
    moments = [record.moments for record in model.views_]
    assert bool(told["features"]["top"]) == any(moments)
    if not any(moments):
        assert "Nothing can be explained" in told["features"]["note"]
        assert {view["by_cluster"] for view in told["views"]} == {None}
    known = k <= 100 and n >= 10
    assert all(
        (one["stability"] is None) <= (not known or not one["size"]) for one in told["clusters"]
    )
    assert (told["number"] is not None) == (k <= 100 and n > 3)
    assert bool(told["notes"]) == (not known)


def test_of_very_many_steps_the_latest_are_told() -> None:
    model = synthetic(50, 3, 30)
    told = page_data(model).summary
    assert (len(told["steps"]), told["earlier_steps"]) == (24, 6)
    assert told["steps"][-1] == "view 29"
    history = model.history_.to_numpy()
    assert sum(one["count"] for one in told["flow"][0]) == (history[:, 6] >= 0).sum()
