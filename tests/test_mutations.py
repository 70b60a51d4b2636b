"""Choices of the method that a small change would undo without any other test noticing."""

import numpy as np
import pytest
from scipy import sparse

from viewfold import ViewFold
from viewfold.clustering import Reading, starts
from viewfold.clustering import cluster as cluster_rows
from viewfold.engine import LocalEngine
from viewfold.linalg import Regression
from viewfold.methods.balanced import damp_unexplained
from viewfold.methods.encoders import landmarks
from viewfold.metrics import accuracy


def cluster(rows, n_clusters, *, sample, previous=None, **reading) -> np.ndarray:
    how = Reading(start="ward", **reading)
    return cluster_rows(
        LocalEngine(), rows, n_clusters, sample=sample, previous=previous, reading=how
    )[0]


def test_coordinates_among_landmarks_are_smoothed_over_the_graph_twice() -> None:
    """A sample's are U S², where U S Vᵀ is the normalised graph without its trivial part."""
    rng = np.random.default_rng(0)
    graph = rng.random((60, 9)) ** 4
    graph /= graph.sum(axis=1, keepdims=True)
    degree = graph.sum(axis=0)
    found = graph @ landmarks._coordinates(graph.T @ graph, degree, 5)
    normalised = graph / np.sqrt(degree)
    trivial = np.sqrt(degree / degree.sum())
    normalised -= np.outer(normalised @ trivial, trivial)
    U, s, _ = np.linalg.svd(normalised, full_matrices=False)
    expected = U[:, :5] * (s[:5] / s[0]) ** 2
    assert s[4] < 0.9 * s[0]
    assert np.allclose(np.abs(found), np.abs(expected), atol=1e-9)


def test_scores_are_those_of_the_square_root_of_the_spectrum() -> None:
    X = np.random.default_rng(0).normal(size=(200, 6)) @ np.diag([9, 5, 3, 2, 1, 1])
    encoder = ViewFold(2, encoder="linear", scale=None, n_components=4).fit([X]).views_[0].encoder
    s = np.linalg.svd(X, compute_uv=False)
    spread = np.linalg.norm(encoder.project(X)[:, :4] * encoder.linear, axis=0)
    assert np.allclose(spread / spread[0], np.sqrt(s[:4] / s[0]))


def test_samples_are_joined_to_their_eight_nearest_landmarks_the_nearer_the_stronger() -> None:
    rng = np.random.default_rng(0)
    rows, points = rng.normal(size=(40, 3)), rng.normal(size=(30, 3))
    graph = landmarks.graph_of(rows, points, cosine=False).toarray()
    squares = ((rows[:, None] - points) ** 2).sum(axis=2)
    order = np.argsort(squares, axis=1)
    near = np.take_along_axis(squares, order, axis=1)
    weight = near[:, 8:9] - near[:, :8]
    found = np.take_along_axis(graph, order[:, :8], axis=1)
    assert np.allclose(found, weight / weight.sum(axis=1, keepdims=True))
    assert (np.count_nonzero(graph > 1e-12, axis=1) == 8).all()
    assert sparse.issparse(landmarks.graph_of(rows, points, cosine=False))


def test_an_earlier_clustering_is_a_start_where_trees_see_a_part_of_the_rows(monkeypatch) -> None:
    monkeypatch.setattr(starts, "TREE", 20)
    rng = np.random.default_rng(0)
    truth = np.concatenate([np.arange(480) % 4, 4 + np.arange(32) % 4])
    rows = np.eye(8)[truth] + 0.1 * rng.normal(size=(512, 8))
    # A tree sees 160 rows, and none of the rare clusters.
    sample = np.concatenate([rng.permutation(480), np.arange(480, 512)])
    given = {"sample": sample, "n_init": 1}
    assert accuracy(truth, cluster(rows, 8, **given)) < 0.95
    assert np.array_equal(cluster(rows, 8, **given, previous=truth), truth)
    some_new = np.where(np.arange(512) % 7, truth, -1)
    assert np.array_equal(cluster(rows, 8, **given, previous=some_new), truth)


@pytest.mark.parametrize("columns", [3, None])
def test_all_columns_judge_which_start_is_best(columns) -> None:
    """Four heaps in the corners of a rectangle: halves lie side by side, or one above the other.

    In the leading columns, the former are better; a fourth column tells that it is the latter.
    """
    rng = np.random.default_rng(0)
    x, y = np.repeat([-1, -1, 1, 1], 30), np.repeat([-1, 1, -1, 1], 30)
    rows = np.column_stack([0.30 * x, 0.25 * y, np.ones(120), 0.2 * y])
    rows += 0.01 * rng.normal(size=rows.shape)
    given = {"sample": rng.permutation(120), "columns": columns, "n_init": 5}
    assert accuracy(x > 0, cluster(rows[:, :3], 2, **given)) == 1
    assert accuracy(y > 0, cluster(rows, 2, **given)) == 1


def test_starts_look_at_different_parts_of_the_columns(monkeypatch) -> None:
    seen = []

    def spy(rows):
        seen.append(rows.shape)
        return ward(rows)

    ward = starts.ward
    monkeypatch.setattr(starts, "ward", spy)
    rows = np.random.default_rng(0).normal(size=(700, 12))
    cluster(rows, 3, sample=np.arange(700), n_init=5)
    assert seen == [(300, 12), (300, 8), (300, 4), (300, 10), (300, 6)]


def test_what_is_not_explained_is_damped_to_a_tenth_and_nothing_else() -> None:
    found = Regression(np.empty(0), np.eye(4), np.array([0.5, 0.01, 0.0, 0.0]), 0.5)
    factor = np.diag(damp_unexplained(found, np.diag([4.0, 3.0, 2.0, 0.0])))
    assert np.allclose(factor, [1, 0.5, 0.1, 1])
