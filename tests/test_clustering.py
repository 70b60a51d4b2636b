"""Clusters of an embedding: k-means, earlier labels, discriminants, samples."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.covariance import oas

from viewfold import metrics
from viewfold.method.clusters import ClusteringOptions, cluster, match
from viewfold.method.kmeans import inertia, lloyd
from viewfold.rows import LocalEngine
from viewfold.rows.linalg import shrink_eigenvalues


def test_labels_follow_the_majority() -> None:
    previous = np.array([0, 0, 0, 1, 1, 2, -1])
    assert list(match(LocalEngine(), previous, np.array([2, 2, 0, 0, 0, 1, 1]), 3)) == [1, 2, 0]


@pytest.mark.parametrize("start", ["random", "ward"])
def test_earlier_labels_give_numbers_and_nothing_else(start) -> None:
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat(np.arange(6), 40))
    rows = np.eye(6)[truth] + 0.2 * rng.normal(size=(240, 6))
    given = np.arange(240), rows, ClusteringOptions(6, start=start, n_init=3)
    alone, _ = cluster(LocalEngine(), *given)
    wrong = rng.integers(0, 6, 240)
    for before in (truth, wrong):
        labels, _ = cluster(LocalEngine(), *given, previous=before)
        assert metrics.accuracy(alone, labels) == 1
    assert metrics.accuracy(alone, cluster(LocalEngine(), *given, previous=truth)[0]) == 1
    labels, _ = cluster(LocalEngine(), *given, previous=truth)
    assert (labels == truth).mean() > 0.95


def test_long_rows_count_more_than_short_ones_if_asked() -> None:
    """Ten long rows in each of three places, and many short ones in two others."""
    rng = np.random.default_rng(0)
    short = np.repeat([[-1.0, 0, 0], [0, -1, 0]], 45, axis=0)
    rows = np.vstack([np.repeat(np.eye(3), 10, axis=0), short])
    rows += 0.05 * rng.normal(size=rows.shape)
    rows *= np.repeat([1.0, 0.01], [30, 90])[:, None]
    truth = np.repeat(np.arange(3), 10)
    found = {}
    for weighted in (False, True):
        options = ClusteringOptions(3, weighted=weighted)
        labels, _ = cluster(LocalEngine(), np.arange(120), rows, options)
        found[weighted] = metrics.accuracy(truth, labels[:30])
    assert found[True] == 1
    assert found[False] < 1


def test_k_means_from_given_centres_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 5)) + 3 * rng.integers(0, 2, size=(400, 5))
    ours = lloyd(rows, rows[:20])
    theirs = KMeans(20, init=rows[:20], n_init=1).fit(rows)
    assert np.array_equal(ours.labels, theirs.labels_)
    assert np.allclose(ours.centers, theirs.cluster_centers_)
    assert inertia(rows, ours.labels, 20) == pytest.approx(theirs.inertia_)


def test_k_means_fills_empty_clusters_as_long_as_rows_differ() -> None:
    rows = np.repeat(np.eye(4), 5, axis=0)
    far_away = np.full((3, 4), 9.0)
    found = lloyd(rows, np.vstack([rows[:1], far_away]))
    assert inertia(rows, found.labels, 4) == 0
    assert np.array_equal(np.unique(found.labels), [0, 1, 2, 3])
    found = lloyd(rows[:5], rows[:3])  # one distinct row for three clusters
    assert inertia(rows[:5], found.labels, 3) == 0


def test_clusters_in_discriminants_may_be_longer_than_they_are_apart() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 600)
    along = 0.6 * rng.normal(size=600) + 0.3 * truth
    rows = np.column_stack([truth - 0.5, along, np.full(600, 9.0)])
    rows += 0.1 * rng.normal(size=rows.shape)
    found = {}
    for used in (False, True):
        options = ClusteringOptions(2, start="ward", discriminants=used)
        found[used], _ = cluster(LocalEngine(), np.arange(600), rows, options)
    assert metrics.accuracy(truth, found[True]) > 0.99
    assert metrics.accuracy(truth, found[False]) < 0.95


def test_scatter_is_shrunk_as_scikit_learn_does() -> None:
    rng = np.random.default_rng(0)
    for n in (8, 50, 1000):
        X = rng.normal(size=(n, 5)) * [1, 2, 3, 4, 9]
        theirs = oas(X, assume_centered=True)[0]
        ours = shrink_eigenvalues(np.linalg.eigvalsh(X.T @ X / n), n)
        assert np.allclose(ours, np.linalg.eigvalsh(theirs))
    assert np.array_equal(shrink_eigenvalues(np.full(3, 2.0), 10), np.full(3, 2.0))


def test_a_large_embedding_is_clustered_from_a_sample(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 3000)
    rows = np.eye(3)[truth] + 0.05 * rng.normal(size=(3000, 3))
    monkeypatch.setattr("viewfold.method.clusters.sample_size", lambda _: 400)
    labels, _ = cluster(LocalEngine(), np.arange(3000), rows, ClusteringOptions(3))
    assert metrics.accuracy(truth, labels) == 1


# -- clusters that stay


def ring(n: int = 400) -> np.ndarray:
    """Rows around a circle: whatever the angle of three clusters, they have the same inertia."""
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def thirds(rows: np.ndarray, turned: float) -> np.ndarray:
    angle = (np.arctan2(rows[:, 1], rows[:, 0]) + turned) % (2 * np.pi)
    return (angle // (2 * np.pi / 3)).astype(int)


@pytest.mark.parametrize("turned", [0.1, 0.9, 1.7])
def test_clusters_stay_where_others_are_no_better(turned: float) -> None:
    rows = ring()
    before = thirds(rows, turned)
    calm = ClusteringOptions(3, calm=True)
    given = LocalEngine(), np.arange(400), rows
    stays = cluster(*given, calm, previous=before)[0]
    assert np.mean(stays == before) > 0.99
    fresh = [
        cluster(*given, calm, previous=before, anew=True)[0],
        cluster(*given, ClusteringOptions(3), previous=before)[0],
    ]
    for labels in fresh:  # the same starts for all: two of three angles differ
        assert np.array_equal(labels, fresh[0])
    assert turned != 0.9 or np.mean(fresh[0] == before) < 0.95


def test_clusters_of_equal_rows_stay() -> None:
    before = np.arange(8) % 2
    given = LocalEngine(), np.arange(8), np.eye(2)[before]  # no inertia at all
    labels = cluster(*given, ClusteringOptions(2, calm=True), previous=before)[0]
    assert np.array_equal(labels, before)


def test_clusters_go_where_others_are_clearly_better() -> None:
    random = np.random.default_rng(0)
    true = random.integers(3, size=300)
    rows = np.eye(3)[true] + 0.1 * random.normal(size=(300, 3))
    before = np.where(true == 2, np.arange(300) % 2, 2)  # two clusters in one, one of two
    labels = cluster(
        LocalEngine(), np.arange(300), rows, ClusteringOptions(3, calm=True), previous=before
    )[0]
    assert len({(a, b) for a, b in zip(true, labels, strict=True)}) == 3


@pytest.mark.parametrize("most", [0, 7, 0.1])
def test_a_budget_of_moves_goes_to_those_who_gain_most(most: float) -> None:
    random = np.random.default_rng(1)
    rows = random.normal(size=(200, 4))
    before = random.integers(3, size=200)
    before[150:] = -1  # new samples are in some cluster, and cost nothing
    options = ClusteringOptions(3, max_moved=most)
    given = LocalEngine(), np.arange(200), rows
    free, clusters = cluster(*given, ClusteringOptions(3), previous=before)
    kept, _ = cluster(*given, options, previous=before)
    n = most if isinstance(most, int) else int(most * 150)
    moved = (before >= 0) & (kept != before)
    assert moved.sum() == n < ((before >= 0) & (free != before)).sum()
    assert np.array_equal(kept[150:], free[150:])
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    squares = ((unit[:, None] - clusters.centers[0]) ** 2).sum(axis=2)
    gain = squares[np.arange(150), before[:150]] - squares[np.arange(150), free[:150]]
    assert set(np.flatnonzero(moved)) == set(np.argsort(-gain)[:n])
