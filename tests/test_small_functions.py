"""Functions inside viewfold that no other test calls by themselves: one example each."""

import numpy as np
from scipy import sparse

from viewfold import ViewFold
from viewfold.data.view import Column
from viewfold.estimators.selection import candidates
from viewfold.method.clusters import ClusteringOptions, pairing_stability, settle
from viewfold.method.fcmvc import limited
from viewfold.method.landmarks import nearest_of
from viewfold.method.scaling import Affine
from viewfold.rows import LocalEngine, Rows
from viewfold.state.admission import meant
from viewfold.state.clusters import assign, sure_enough
from viewfold.state.committee import joined
from viewfold.state.hashes import seed_of
from viewfold.state.log import noted, standing
from viewfold.state.names import Transfers, problems
from viewfold.state.parts import Tag, put_together, take_apart
from viewfold.state.state import count_levels


def test_the_nearest_landmark_is_the_first_of_the_largest_weights() -> None:
    graph = sparse.csr_array(np.array([[0.2, 0.8, 0.0], [0.5, 0.0, 0.5]]))
    assert nearest_of(graph).tolist() == [1, 0]


def test_a_matrix_keeps_a_direction_for_ten_samples() -> None:
    found = limited(np.eye(3), lambda: np.diag([2.0, 1.0, 3.0]), 29)
    assert np.array_equal(found, np.diag([1.0, 0.0, 1.0]))


def test_clusters_are_paired_reliably_if_their_sizes_differ() -> None:
    assert pairing_stability(np.array([[500, 300, 200], [60, 30, 10]])) > 0.9
    assert pairing_stability(np.array([[340, 333, 327], [34, 33, 33]])) < 0.5


def test_settled_clusters_are_those_of_their_rows() -> None:
    rows, labels = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]), [2, 2, 0, 0]
    options = ClusteringOptions(3)
    clusters = settle(LocalEngine(), rows, np.array(labels), options, n_clusters=3)
    assert assign(LocalEngine(), clusters, rows).tolist() == labels


def test_labels_that_are_not_sure_enough_are_noise() -> None:
    found = sure_enough(np.array([2, 0, 1]), np.array([0.9, 0.5, 0.4]), 0.5)
    assert found.tolist() == [2, 0, -1]


def test_an_unknown_id_that_is_almost_known_is_asked_about() -> None:
    model = ViewFold(2).fit(np.eye(3), ids=["p1", "p2", "p3"])
    assert meant(model._fitted, ["P1 ", "who"]) == " Is 'p1' meant?"


def test_a_log_knows_what_stands() -> None:
    log = noted(noted((), "fold", 60, view="labs", n_new=60), "fold", 60)
    assert [(event.entry, event.what) for event in log] == [(1, "fold"), (2, "fold")]
    assert [event.entry for event in standing(noted(log, "undo", 60, undoes=2))] == [1]


def test_no_two_clusters_have_the_same_name() -> None:
    assert problems({0: "early", 3: "late"}, 4) == []
    assert problems({0: "late", 3: "Late"}, 4) == ["'Late' is the name of cluster 0"]


def test_samples_are_counted_by_where_they_went() -> None:
    moved = Transfers.of(np.array([0, 0, 1, -1]), np.array([0, 2, 2, 2]))
    found = moved.before.tolist(), moved.after.tolist(), moved.count.tolist()
    assert found == ([-1, 0, 0, 1], [2, 0, 2, 2], [1, 1, 1, 1])


def test_a_random_state_gives_the_same_seed_again() -> None:
    one, other = np.random.RandomState(0), np.random.RandomState(0)
    assert seed_of(5) == 5
    assert seed_of(one) == seed_of(other)


def test_levels_are_counted() -> None:
    rows = Rows(np.array([[1.5, 0, 1], [2.5, 0, 1], [0.5, 1, 0]]))
    columns = (Column("iron", "number"), Column("ward", "category", ("ER", "ICU")))
    found = count_levels(LocalEngine(), columns, rows)
    assert found is not None
    assert found[1].counts == (1, 2)


def test_numbers_of_clusters_to_try_are_up_to_twice_the_present_one() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 3))
    assert candidates(ViewFold(12).fit(rows)) == range(2, 25)


def test_encoders_are_weighted_by_their_rows() -> None:
    first, second = Affine(np.eye(1), np.zeros(1)), Affine(3 * np.eye(1), np.zeros(1))
    assert joined(first, 30, second, 10)(np.ones((1, 1))) == 1.5


def test_an_encoder_is_taken_apart_and_put_together() -> None:
    parts = dict(take_apart(Affine(np.eye(2), np.zeros(2)), "encoder"))
    assert list(parts) == ["encoder", "encoder/weights", "encoder/offset"]
    assert parts["encoder"] == Tag("affine", 1)
    assert repr(put_together(parts, "encoder")) == (
        "Affine(weights=<float64 (2, 2)>, offset=<float64 (2,)>)"
    )
