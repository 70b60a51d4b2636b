"""The seed decides every draw; names of views and the order of rows decide nothing."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from viewfold import FCMVC, ViewFold
from viewfold.datasets import load_digits_views
from viewfold.estimators.selection import suggest_n_clusters
from viewfold.metrics import accuracy
from viewfold.rows import LocalEngine
from viewfold.state.hashes import draw

N = 900


@pytest.fixture(scope="module")
def digits() -> tuple[dict[str, np.ndarray], np.ndarray]:
    found = load_digits_views()
    return {name: found.views[name][:N] for name in ("zones", "edges")}, found.target[:N]


def landmarks(model: Any) -> list[np.ndarray]:
    return [view.encoder.encode.landmarks.points for view in model.views_]


def same(a: Any, b: Any) -> bool:
    return np.array_equal(a.embedding_, b.embedding_) and np.array_equal(a.labels_, b.labels_)


def test_another_seed_draws_others_and_clusters_as_well(digits) -> None:
    views, y = digits
    models = [ViewFold(10, random_state=seed).fit(views) for seed in (0, 0, 1)]
    assert same(models[0], models[1])
    for one, other in zip(landmarks(models[0]), landmarks(models[2]), strict=True):
        assert not np.array_equal(one, other)
    assert min(accuracy(y, model.labels_) for model in models) > 0.8


def test_the_seed_salts_every_draw(digits, monkeypatch) -> None:
    drawn: dict[int, dict[tuple[str, int], bytes]] = {}

    def spy(engine, ids, most, *, seed, purpose):
        found = draw(engine, ids, most, seed=seed, purpose=purpose)
        which = (purpose, sum(known == purpose for known, _ in drawn[now]))
        drawn[now][which] = found[:50].tobytes()
        return found

    for room in ("method.encoders", "method.scaling", "method.clusters"):
        monkeypatch.setattr(f"viewfold.{room}.draw", spy)
    monkeypatch.setattr("viewfold.estimators.selection.draw", spy)
    # So that directions come from a sample.
    monkeypatch.setattr("viewfold.method.scaling.WIDEST_GRAM", 20)
    monkeypatch.setattr("viewfold._util.constants.GRAPH_DIRECTIONS", 20)
    views, _ = digits
    texts = np.random.default_rng(0).poisson(0.05, size=(N, 60))
    for now in (0, 1):
        drawn[now] = {}
        ViewFold(5, n_components=10, random_state=now).fit([*views.values(), texts])
        # No two are the same, but those of k-means, which sees the same rows after each fold.
        found = [one for (purpose, _), one in drawn[now].items() if purpose != "k-means"]
        assert len(set(found)) == len(found)
        suggest_n_clusters(list(views.values())[:1], [2, 3], random_state=now)
    assert {purpose for purpose, _ in drawn[0]} == {
        "scale", "depth", "rarity of words", "directions", "landmarks", "k-means",
        "number of clusters",
    }  # fmt: skip
    assert drawn[0].keys() == drawn[1].keys()
    assert all(drawn[0][which] != drawn[1][which] for which in drawn[0])


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_the_name_of_a_view_changes_nothing(digits, kind) -> None:
    views, _ = digits
    model = kind(10, random_state=0).fit(views)
    renamed = kind(10, random_state=0).fit({f"other {name}": X for name, X in views.items()})
    assert same(model, renamed)
    for name, X in views.items():
        assert np.array_equal(
            model.transform(X, view=name), renamed.transform(X, view=f"other {name}")
        )


def test_the_order_of_rows_changes_no_draw(digits) -> None:
    views, _ = digits
    ids = [f"s{i}" for i in range(N)]
    order = np.random.default_rng(0).permutation(N)
    model = ViewFold(10, random_state=3).fit(views, ids=[ids] * 2)
    shuffled = ViewFold(10, random_state=3).fit(
        {name: X[order] for name, X in views.items()}, ids=[[ids[i] for i in order]] * 2
    )
    for one, other in zip(landmarks(model), landmarks(shuffled), strict=True):
        assert np.allclose(one, other, atol=1e-9)
    assert np.array_equal(shuffled.labels_, model.labels_[order])


def test_views_of_the_same_samples_have_landmarks_of_their_own(digits) -> None:
    """Were the same samples landmarks in each, views of noise would agree on who is one."""
    X = next(iter(digits[0].values()))
    first, second = landmarks(ViewFold(10, random_state=0, n_components=10).fit([X, X]))
    assert first.shape != second.shape or not np.allclose(first, second)


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_seeds_are_those_of_scikit_learn(digits, kind) -> None:
    """A RandomState goes on from fold to fold; None draws from NumPy's global one."""
    views, _ = digits
    X = list(views.values())

    def fit(seed: Any) -> Any:
        return kind(10, random_state=seed, n_init=1).fit(X)

    assert same(fit(np.random.RandomState(5)), fit(np.random.RandomState(5)))
    np.random.seed(5)  # noqa: NPY002
    first = fit(None)
    after = fit(None)
    np.random.seed(5)  # noqa: NPY002
    assert same(first, fit(None))
    assert not same(first, after)
    shared = np.random.RandomState(5)
    assert same(first, fit(shared))
    assert not same(first, fit(shared))
    one_by_one = kind(10, random_state=np.random.RandomState(5), n_init=1)
    for view in X:
        one_by_one.partial_fit(view)
    assert same(first, one_by_one)
    assert clone(first).random_state is None


def test_draws_are_random_and_those_of_other_seeds_and_purposes_independent() -> None:
    ids = np.arange(20_000)
    sets = [
        set(draw(LocalEngine(), ids, 2000, seed=seed, purpose=purpose).tolist())
        for seed in (0, 1, 2**32 - 1, (0, 1), (1, 0))
        for purpose in ("a", "b")
    ]
    for i, one in enumerate(sets):
        assert abs(np.mean(list(one)) - 10_000) < 5 * 20_000 / np.sqrt(12 * 2000)
        for other in sets[:i]:  # 200 in both, give or take 5 standard deviations
            assert abs(len(one & other) - 200) < 5 * np.sqrt(200 * 0.81)
