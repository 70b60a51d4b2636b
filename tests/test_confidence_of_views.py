"""Confidence knows what a view cannot see: clusters that only other views tell apart."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import viewfold
from viewfold import ViewFold
from viewfold.errors import UnreadableError
from viewfold.explain import distinguished
from viewfold.rows import LocalEngine
from viewfold.state.clusters import confidence
from viewfold.store.check import check_state

N, K = 600, 4
RNG = np.random.default_rng(0)
GROUP = RNG.integers(K, size=N)
IDS = np.array([f"p{i}" for i in range(N)])
BLIND = GROUP >= 2
"""Groups 2 and 3 have the same blood."""


def frame(centers: np.ndarray, ids: np.ndarray, name: str) -> pd.DataFrame:
    of = {f"p{i}": group for i, group in enumerate(GROUP)}
    rows = centers[[of[one] for one in ids]]
    rng = np.random.default_rng(len(ids) + centers.shape[1])
    return pd.DataFrame(rows + rng.normal(size=rows.shape), ids).add_prefix(name)


BLOOD = 6 * np.eye(K, 5)
BLOOD[3] = BLOOD[2]
SCAN = 3 * np.random.default_rng(5).normal(size=(K, 8))
SCANNED = IDS[: N * 2 // 3]


@pytest.fixture(scope="module")
def model() -> ViewFold:
    blood, scan = frame(BLOOD, IDS, "b"), frame(SCAN, SCANNED, "s")
    return ViewFold(K, random_state=0).fit({"blood": blood, "scan": scan})


def test_who_lacks_the_view_that_tells_two_clusters_apart_is_uncertain(model: ViewFold) -> None:
    sure = model.to_frame().loc[IDS, "confidence"].to_numpy()
    alone = ~np.isin(IDS, SCANNED)
    assert sure[~alone].mean() > 0.95
    assert sure[alone & ~BLIND].mean() > 0.95
    assert sure[alone & BLIND].max() < 0.75
    assert sure[alone & BLIND].mean() > 0.4


def test_the_same_holds_for_new_rows_and_in_files(model: ViewFold, tmp_path) -> None:
    blood, scan = frame(BLOOD, IDS, "b"), frame(SCAN, IDS, "s")
    one = model.predict_frame(blood, view="blood")["confidence"].to_numpy()
    assert one[BLIND].max() < 0.75
    assert one[~BLIND].mean() > 0.95
    both = model.predict_frame({"blood": blood, "scan": scan})["confidence"].to_numpy()
    assert both[BLIND].mean() > one[BLIND].mean() + 0.1
    model.save(tmp_path / "s.vf")
    read = viewfold.load(tmp_path / "s.vf").to_frame()
    pd.testing.assert_frame_equal(read, model.to_frame())
    blind = next(i for i in IDS[::-1] if BLIND[int(i[1:])])
    told = model.to_frame().loc[blind, "confidence"]
    assert model.explain(blind).confidence == pytest.approx(told)


def test_without_moments_it_is_as_if_views_could_tell_everything(model: ViewFold) -> None:
    state, engine = model._judged, LocalEngine()
    private = distinguished(state.without_encoders(engine))
    assert private.clusters.apart is None
    rows = state.embedding, state.seen
    free = confidence(engine, private.clusters, *rows)
    nothing_known = np.full_like(state.clusters.apart, np.inf)
    unknown = confidence(engine, replace(state.clusters, apart=nothing_known), *rows)
    assert np.array_equal(unknown, free)
    assert (confidence(engine, state.clusters, *rows) <= free + 1e-12).all()


def test_who_is_in_all_views_is_judged_by_the_consensus_alone(model: ViewFold) -> None:
    """Means do not tell rings apart; what is not told by any view limits nothing."""
    state, engine = model._judged, LocalEngine()
    clusters = state.clusters
    everywhere = state.seen.all(axis=1)
    rows = (state.embedding[everywhere], state.seen[everywhere])
    free = confidence(engine, replace(clusters, apart=None), *rows)
    assert np.array_equal(confidence(engine, clusters, *rows), free)
    nothing = replace(clusters, apart=np.zeros_like(clusters.apart))
    told = confidence(engine, nothing, state.embedding, state.seen)
    assert told == pytest.approx(
        confidence(engine, replace(clusters, apart=None), state.embedding, state.seen)
    )


def test_it_follows_every_change_of_the_clusters(model: ViewFold) -> None:
    """Other clusters, views and samples are told apart otherwise, whoever asked before."""
    changed = deepcopy(model).recluster(3)
    assert changed._judged.clusters.apart.shape == (2, 3, 3)
    changed = deepcopy(model).forget(IDS[:50].tolist())
    assert not np.array_equal(changed._judged.clusters.apart, model._judged.clusters.apart)
    third = frame(SCAN[:, :3], IDS, "t")
    changed = deepcopy(model).partial_fit(third, view="third")
    assert changed._judged.clusters.apart.shape == (3, K, K)
    late = frame(SCAN, IDS[-100:], "s")
    asked, never = deepcopy(model), deepcopy(model)
    asked.to_frame()
    for one in (asked, never):
        one.partial_fit(late, view="scan")
    pd.testing.assert_frame_equal(asked.to_frame(), never.to_frame())
    changed = deepcopy(model).rename(0, "well")
    assert np.array_equal(changed._judged.clusters.apart, model._judged.clusters.apart)


@pytest.mark.parametrize(
    "wrong", [np.zeros((2, K, K + 1)), -np.ones((2, K, K)), np.full((2, K, K), np.nan)]
)
def test_files_with_impossible_distances_are_refused(model: ViewFold, wrong: np.ndarray) -> None:
    state = model._judged
    check_state(state)
    with pytest.raises(UnreadableError, match="tell its clusters apart"):
        check_state(replace(state, clusters=replace(state.clusters, apart=wrong)))


@pytest.mark.parametrize("within", [0.0, 0.04, 0.06, 0.1])
def test_of_the_variance_of_a_feature_a_twentieth_at_least_is_within_clusters(
    within: float,
) -> None:
    """Two clusters of one feature: means are 2 √(1 - within) apart, where its variance is 1."""
    signs = np.tile([1.0, -1.0], 100)
    noise = np.sqrt(within) * np.repeat(np.tile([1.0, -1.0], 50), 2)
    model = ViewFold(2, random_state=0, scale="center", encoder="linear")
    model.fit({"v": (np.sqrt(1 - within) * signs + noise)[:, None]})
    assert np.array_equal(model.labels_ == model.labels_[0], signs > 0)
    clusters = distinguished(model._fitted).clusters
    assert clusters is not None
    assert clusters.apart is not None
    expected = 4 * (1 - within) / max(within, 0.05)
    assert clusters.apart[0, 0, 1] == pytest.approx(expected, rel=0.02)
