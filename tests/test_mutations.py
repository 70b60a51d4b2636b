"""Choices of the method that a small change would undo without any other test noticing."""

import numpy as np
import pytest
from scipy import sparse
from scipy.cluster.hierarchy import ward

from viewfold import ViewFold
from viewfold.method import balanced, kmeans, landmarks
from viewfold.method.clusters import ClusteringOptions, cluster
from viewfold.method.landmarks import weights_of
from viewfold.method.scaling import scale_of
from viewfold.metrics import accuracy
from viewfold.rows import LocalEngine
from viewfold.state.hashes import draw


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
    encoder = (
        ViewFold(2, encoder="linear", scale=None, n_components=4).fit([X]).views_[0].encoder.encode
    )
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


@pytest.mark.parametrize("m", [1, 2, 9, 72, 79, 400, 1003])
@pytest.mark.parametrize("values", [3, 50, None], ids=["most are tied", "some", "none"])
def test_no_landmark_is_nearer_than_those_that_a_sample_is_joined_to(m: int, values) -> None:
    rng = np.random.default_rng(m)
    distance = rng.normal(size=(60, m)) if values is None else rng.integers(values, size=(60, m))
    distance = distance.astype(np.float32)
    distance[7] = 1  # all are equally near
    graph = weights_of(distance).toarray()
    farthest = np.sort(distance, axis=1)[:, [min(8, m - 1)]]
    weight = np.maximum(farthest - distance, 0, dtype=np.float64)
    alike = ~weight.any(axis=1)
    weight[alike] = (distance == farthest)[alike]
    assert np.allclose(graph, weight / weight.sum(axis=1, keepdims=True), rtol=1e-6, atol=0)


def test_starts_look_at_different_parts_of_the_columns(monkeypatch) -> None:
    seen = []

    def spy(rows):
        seen.append(rows)
        return grown(rows)

    grown = kmeans.grown
    monkeypatch.setattr(kmeans, "grown", spy)
    rows = np.random.default_rng(0).normal(size=(700, 12))
    ids = np.arange(700)
    cluster(LocalEngine(), ids, rows, ClusteringOptions(3, start="ward", n_init=5))
    rows = rows[draw(LocalEngine(), ids, 700, seed=0, purpose="k-means")]
    del seen[5:]  # two more tell in how far halves find the same clusters
    assert [part.shape for part in seen] == [(150, columns) for columns in (12, 9, 7, 4, 2)]
    assert np.array_equal(seen[1], rows[150:300, :9])


def test_trees_are_those_of_ward() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 5))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.allclose(kmeans.grown(rows), ward(unit))


def test_the_start_with_the_least_inertia_counts() -> None:
    rng = np.random.default_rng(0)
    rows = np.repeat(np.eye(4), 30, axis=0) + 0.05 * rng.normal(size=(120, 4))
    good = np.eye(4)
    bad = rows[:4]  # all of one cluster, which two steps do not mend
    for order in ([good, bad, bad, bad, bad], [bad, bad, bad, bad, good]):
        found = kmeans.best_of(rows, iter(order), None)
        assert accuracy(np.repeat(np.arange(4), 30), found.labels) == 1


def overlap(B: np.ndarray, F: np.ndarray) -> balanced.Overlap:
    """Return the products of samples that both have."""
    sums = B.T @ B, B.T @ F, F.T @ F, B.sum(axis=0), F.sum(axis=0)
    new, old, connected = np.zeros((2, 2)), np.zeros((1, 3, 3)), np.array([True])
    return balanced.Overlap(*sums, new, old, connected, len(B))


def weighed(agree: bool, confirmed: float, n_views: int = 3) -> balanced.Trust:
    """Weigh a view of 3000 samples that knows the first two of three directions of B, or none."""
    rng = np.random.default_rng(0)
    B = rng.normal(size=(3000, 3)) * [3, 2, 1]
    F = (B[:, :2] if agree else 0) + 0.5 * rng.normal(size=(3000, 2))
    return balanced.weigh(overlap(B, F), confirmed, n_views)


def test_noise_counts_until_two_views_agree_and_not_after() -> None:
    assert weighed(agree=False, confirmed=0).of_F > 0.9
    assert weighed(agree=False, confirmed=0.98).of_F < 0.2
    assert weighed(agree=True, confirmed=0.98).of_F > 0.9


def test_what_the_first_two_views_that_agree_do_not_know_is_damped() -> None:
    found = np.linalg.eigvalsh(weighed(agree=True, confirmed=0).of_B)
    assert found[0] < 0.1
    assert found[1] > 0.9
    for same in (
        weighed(agree=True, confirmed=1),  # others agreed before
        weighed(agree=True, confirmed=0, n_views=1),  # there was no other view before
        weighed(agree=False, confirmed=0),  # they do not agree
    ):
        assert np.allclose(same.of_B, np.eye(3), atol=0.1)


def test_the_side_that_explains_more_weighs_more() -> None:
    """Both know one thing, and one side knows another as well."""
    rng = np.random.default_rng(0)
    rich = rng.normal(size=(500, 2))
    poor = np.column_stack([rich[:, 0], 0.05 * rng.normal(size=500)])
    for B, F in ((poor, rich), (rich, poor)):
        found = balanced.weigh(overlap(B, F), 1.0, 2).of_F
        assert found > 1.2 if F is rich else found < 0.8


def test_scores_of_principal_components_are_centred_and_measurements_are_not() -> None:
    """A z-score would make the last score, which is noise, as loud as the first."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    X = rng.normal(size=(600, 40)) + 4 * rng.normal(size=(3, 40))[y]
    X -= X.mean(axis=0)
    U, s, _ = np.linalg.svd(X, full_matrices=False)
    scores = U * s
    assert scale_of(scores) == "center"
    assert scale_of(X) == scale_of(U) == scale_of(scores[:, ::-1]) == "zscore"
    assert scale_of(scores[:, :5]) == "zscore"  # so few columns may fall by chance
    labels = {
        scale: ViewFold(3, encoder="linear", scale=scale, random_state=0).fit([scores]).labels_
        for scale in ("auto", "center", "zscore")
    }
    assert np.array_equal(labels["auto"], labels["center"])
    assert accuracy(y, labels["auto"]) > 0.99
    shifted = ViewFold(3, encoder="linear", random_state=0).fit([scores + 1e6]).labels_
    assert accuracy(labels["auto"], shifted) > 0.99
