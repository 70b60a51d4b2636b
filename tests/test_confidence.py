"""Confidence is a probability: calibrated, less with fewer views or smaller margins."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import viewfold
from viewfold import ViewFold
from viewfold.rows import DiskEngine, LocalEngine, using
from viewfold.state.clusters import Clusters, confidence, scattered


def mixture(k: int, apart: float, tail: float = np.inf, n: int = 1500, views: int = 3):
    """Views of normal clusters, or of such with the tails of Student's t, and the classes."""
    rng, d = np.random.default_rng(0), max(k, 5)
    y = rng.integers(k, size=n)
    heavy = [np.sqrt(rng.chisquare(tail, size=(n, d)) / tail) if tail < np.inf else 1] * views
    noise = [rng.normal(size=(n, d)) / each for each in heavy]
    return [apart * np.eye(d)[y] + one for one in noise], y


def classes_of(labels: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """The class that each sample's cluster is matched with."""
    table = np.zeros((k, k))
    np.add.at(table, (labels, y), 1)
    return linear_sum_assignment(table, maximize=True)[1][labels]


def calibration_error(told: np.ndarray, right: np.ndarray) -> float:
    bins = np.array_split(np.argsort(told, kind="stable"), 10)
    return sum(len(b) * abs(told[b].mean() - right[b].mean()) for b in bins) / len(told)


@pytest.mark.parametrize(
    ("k", "apart", "tail"), [(2, 1.5, np.inf), (4, 1.5, np.inf), (8, 2, np.inf), (4, 2, 4)]
)
def test_confidence_is_the_share_that_is_right(k, apart, tail) -> None:
    views, y = mixture(k, apart, tail)
    frame = ViewFold(k, random_state=0).fit(views).to_frame()
    right = classes_of(frame["cluster"].to_numpy(), y, k) == y
    assert right.mean() < 0.99  # or there would be nothing to tell
    assert calibration_error(frame["confidence"].to_numpy(), right) < 0.05


def test_confidence_is_near_the_posterior_of_normal_clusters() -> None:
    k, apart = 4, 1.5
    views, y = mixture(k, apart)
    frame = ViewFold(k, random_state=0).fit(views).to_frame()
    means = apart * np.eye(views[0].shape[1])[:k]
    score = sum(X @ means.T for X in views)
    posterior = np.exp(score - score.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    mine = classes_of(frame["cluster"].to_numpy(), y, k)
    true = posterior[np.arange(len(y)), mine]
    assert np.abs(frame["confidence"] - true).mean() < 0.1
    assert np.corrcoef(frame["confidence"], true)[0, 1] > 0.8


def test_where_there_are_no_clusters_nobody_is_certain() -> None:
    views = [np.random.default_rng(i).normal(size=(1000, 10)) for i in range(2)]
    assert ViewFold(4, random_state=0).fit(views).to_frame()["confidence"].mean() < 0.5


@pytest.fixture(scope="module")
def clusters() -> Clusters:
    """Five clusters, made by hand."""
    rng = np.random.default_rng(0)
    return Clusters(np.eye(6), rng.normal(size=(1, 5, 6)), np.array([[0.5, 0.1, 0.9]]))


def test_confidence_rises_with_every_margin_and_with_the_number_of_views(clusters) -> None:
    rows = np.random.default_rng(1).normal(size=(400, 6))
    seen = np.ones((400, 3), bool)
    told = confidence(LocalEngine(), clusters, rows, seen)
    assert (told > 0).all()
    assert (told >= 1 / 5).all()
    assert (told <= 1).all()
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    squares = ((unit[:, None] - clusters.centers[0]) ** 2).sum(axis=2)
    own = squares.argmin(axis=1)
    margins = squares - squares.min(axis=1, keepdims=True)
    compared = 0
    for c in range(5):
        mine, sure = margins[own == c], told[own == c]
        above = (mine[:, None] >= mine[None]).all(axis=2)
        compared += above.sum() - len(mine)
        assert (sure[:, None] - sure[None] >= -1e-12)[above].all()
    assert compared > 100
    fewer = [
        confidence(LocalEngine(), clusters, rows, np.arange(3) < np.full((400, 1), v))
        for v in (1, 2, 3)
    ]
    assert (fewer[0] < fewer[1]).all()
    assert (fewer[1] < fewer[2]).all()
    assert np.array_equal(fewer[2], told)


def test_one_cluster_is_certain_and_equal_rows_are_no_nan() -> None:
    one = ViewFold(1, random_state=0).fit(np.random.default_rng(0).normal(size=(30, 3)))
    assert (one.to_frame()["confidence"] == 1).all()
    assert (one.uncertain(2)["next_cluster"] == -1).all()
    same = ViewFold(3, random_state=0).fit(np.repeat(np.eye(3), 10, axis=0))
    assert same.to_frame()["confidence"].between(0.99, 1).all()


def test_prediction_from_fewer_views_is_less_certain() -> None:
    views, _ = mixture(4, 1.5, n=600)
    known = dict(zip("abc", views, strict=True))
    model = ViewFold(4, random_state=0).fit(known)
    told = [
        model.predict_frame({name: known[name][:200] for name in names})["confidence"]
        for names in ("ab", "abc")
    ]
    one = model.predict_frame(known["a"][:200], view="a")["confidence"]
    assert one.mean() < told[0].mean() < told[1].mean()


def test_the_least_certain_samples_come_first_with_their_next_cluster() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4)) + 8 * np.eye(4)[np.arange(90) % 3]
    X[7] = (8 * np.eye(4)[0] + 8 * np.eye(4)[1]) / 2
    model = ViewFold(3, random_state=0).fit(X)
    found, frame = model.uncertain(5), model.to_frame()
    assert found.columns.tolist() == ["cluster", "confidence", "next_cluster"]
    assert found.index[0] == 7
    assert {found["cluster"].iloc[0], found["next_cluster"].iloc[0]} == set(model.labels_[:2])
    assert found["confidence"].tolist() == frame["confidence"].sort_values()[:5].tolist()
    assert found["cluster"].tolist() == frame["cluster"][found.index].tolist()
    assert (found["cluster"] != found["next_cluster"]).all()
    with pytest.raises(ValueError, match="n=0"):
        model.uncertain(0)


def test_samples_below_the_least_confidence_are_noise_and_labels_stay() -> None:
    views, _ = mixture(4, 1.5, n=400)
    model = ViewFold(4, random_state=0).fit(views)
    frame, labels = model.to_frame(), model.labels_.copy()
    least = float(frame["confidence"].sort_values().iloc[100])  # the 100th itself is not below
    told = model.to_frame(min_confidence=least)["cluster"]
    assert (told == -1).sum() == 100
    assert np.array_equal(told == -1, frame["confidence"] < least)
    assert np.array_equal(told[told >= 0], labels[told >= 0])
    assert np.array_equal(model.labels_, labels)
    new = model.predict_frame(views[0], view=0)
    expected = np.where(new["confidence"] < least, -1, new["cluster"])
    assert np.array_equal(model.predict(views[0], view=0, min_confidence=least), expected)
    assert (expected == -1).any()
    for wrong in (-0.1, 1.5, np.nan):
        with pytest.raises(ValueError, match="min_confidence"):
            model.to_frame(min_confidence=wrong)


@pytest.mark.filterwarnings("ignore:The samples are in 2 groups")
@pytest.mark.parametrize("groups", [False, True])
def test_engines_agree_about_what_is_certain(groups) -> None:
    (a, b, _), y = mixture(4, 3, n=300)
    ids = np.arange(300)
    rows = [ids[y < 1 + ids % 4], ids[y >= 1 + ids % 4]] if groups else [ids[:200], ids[100:]]
    answers = []
    for engine in (LocalEngine(), DiskEngine(n_buckets=3)):
        with using(engine):
            model = ViewFold(4, random_state=0)
            for X, some in zip((a, b), rows, strict=True):
                model.partial_fit(X[some], ids=[f"p{i}" for i in some])
            told = (model.to_frame(), model.uncertain(20), model.stability(2))
            answers.append([one.sort_index() for one in told])
    for mine, theirs in zip(*answers, strict=True):
        assert mine.index.equals(theirs.index)
        hangs = [one.pop("hangs_on").fillna("") for one in (mine, theirs) if "hangs_on" in one]
        assert not hangs or hangs[0].equals(hangs[1])
        np.testing.assert_allclose(mine.to_numpy(float), theirs.to_numpy(float), atol=1e-6)


def test_scatter_is_kept_in_files_and_computed_where_there_is_none(tmp_path: Path) -> None:
    views, _ = mixture(4, 2, n=300)
    model = ViewFold(4, random_state=0).fit(views)
    model.save(tmp_path / "s.vf")
    again = viewfold.load(tmp_path / "s.vf")
    scatter = model._state.clusters.scatter
    assert np.array_equal(again._state.clusters.scatter, scatter)
    bare = Clusters(model._state.clusters.projection, model._state.clusters.centers)
    found = scattered(LocalEngine(), bare, model._state.embedding).scatter
    np.testing.assert_allclose(found[:, :2], scatter[:, :2])
