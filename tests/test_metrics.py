"""The four scores: what they count, and that names of clusters do not matter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import pair_confusion_matrix

from viewfold import metrics

labellings = st.integers(2, 30).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 2)
)


@given(labellings)
def test_f_score_counts_pairs(both) -> None:
    (_, wrongly_together), (wrongly_apart, together) = pair_confusion_matrix(*both)
    expected = 2 * together / max(2 * together + wrongly_together + wrongly_apart, 1)
    if 2 * together + wrongly_together + wrongly_apart == 0:
        expected = 1.0
    assert metrics.f_score(*both) == pytest.approx(expected)


@given(labellings, st.permutations(range(5)))
def test_names_of_clusters_do_not_matter(both, names) -> None:
    y, labels = both
    renamed = [names[label] for label in labels]
    assert metrics.evaluate(y, labels) == pytest.approx(metrics.evaluate(y, renamed))
    assert metrics.accuracy(y, labels) <= metrics.purity(y, labels) + 1e-12
    perfect = list(metrics.evaluate(y, y).values())
    assert perfect == pytest.approx([1.0] * 4, abs=1e-14)
    assert max(perfect) == 1.0


def test_accuracy_matches_one_cluster_to_one_class() -> None:
    # Both clusters are mostly class 0: purity counts both, accuracy one of them.
    y, labels = [0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 1, 1]
    assert metrics.accuracy(y, labels) == pytest.approx(4 / 6)
    assert metrics.purity(y, labels) == pytest.approx(5 / 6)
    assert metrics.accuracy(["a", "b"], [5, 5]) == 0.5
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        metrics.evaluate([0, 1], [0])
    with pytest.raises(ValueError, match="nothing to compare"):
        metrics.accuracy([], [])
