"""How many clusters: suggestions, errors, plots."""

import sys

import numpy as np
import pytest
from conftest import load

from viewfold import ViewFold
from viewfold.estimators import selection
from viewfold.estimators.selection import Suggestion, suggest_n_clusters


def clusters(k: int) -> list[np.ndarray]:
    rng = np.random.default_rng(k)
    y = rng.permutation(np.repeat(np.arange(k), 40))
    return [4 * rng.normal(size=(k, d))[y] + rng.normal(size=(40 * k, d)) for d in (12, 30, 9)]


@pytest.mark.parametrize("k", [2, 4, 7])
def test_clear_clusters_are_counted(k) -> None:
    views = clusters(k)
    found = suggest_n_clusters(views, range(2, 15))
    assert found.best == k
    assert list(found.scores) == list(range(2, 15))
    assert found.scores[k] == max(found.scores.values()) > 0.3


@pytest.mark.parametrize("fitted", [2, 7, 14])
def test_a_fitted_model_will_do_whatever_number_it_was_fitted_for(fitted) -> None:
    model = ViewFold(fitted, random_state=0).fit(clusters(7))
    assert suggest_n_clusters(model, range(2, 15)).best == 7


def test_more_clusters_than_features_are_counted() -> None:
    rng = np.random.default_rng(0)
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
    view = corners[np.arange(400) % 8] + 0.1 * rng.normal(size=(400, 3))
    assert suggest_n_clusters([view], range(2, 17)).best == 8


def noise(random: np.random.Generator) -> list[np.ndarray]:
    return [random.normal(size=(300, d)) for d in (5, 8)]


def factors(random: np.random.Generator) -> list[np.ndarray]:
    common = random.normal(size=(300, 4))
    return [
        common @ random.normal(size=(4, d)) + 0.5 * random.normal(size=(300, d)) for d in (10, 15)
    ]


@pytest.mark.parametrize("blob", [noise, factors])
def test_in_a_single_blob_nothing_stands_out(blob) -> None:
    """Neither the number of features nor that of factors is one of clusters."""
    found = suggest_n_clusters(blob(np.random.default_rng(0)), range(2, 21))
    assert max(found.scores.values()) < 0.1


def test_the_order_of_rows_does_not_matter() -> None:
    views = clusters(5)
    order = np.random.default_rng(0).permutation(200)
    ids = np.arange(200)
    found = suggest_n_clusters(views, range(2, 9), ids=[ids] * 3)
    again = suggest_n_clusters([X[order] for X in views], range(2, 9), ids=[ids[order]] * 3)
    np.testing.assert_allclose(list(again.scores.values()), list(found.scores.values()), atol=1e-3)


def test_samples_may_be_missing_and_the_order_of_candidates_does_not_matter() -> None:
    views = clusters(5)
    parts = [views[0][:150], views[1][50:]]
    ids = [np.arange(150), np.arange(50, 200)]
    found = suggest_n_clusters(parts, [8, 5, 3, 4, 6, 5], ids=ids)
    assert found.best == 5
    assert found == suggest_n_clusters(parts, iter([3, 4, 5, 6, 8]), ids=ids)


@pytest.mark.parametrize(("most", "rows"), [(100, 1000), (101, 1010)])
def test_each_tree_has_a_fifth_of_the_rows_that_are_drawn(most, rows, monkeypatch) -> None:
    seen = []

    def spy(some):
        seen.append(some)
        return grown(some)

    grown = selection.grown
    monkeypatch.setattr(selection, "grown", spy)
    monkeypatch.setattr(selection, "TREES", 12)
    X = np.random.default_rng(0).normal(size=(6000, 2))
    suggest_n_clusters(ViewFold(2, n_init=1, random_state=0).fit([X]), [2, most])
    assert {len(some) for some in seen} == {rows}
    drawn = len(np.unique(np.concatenate(seen[:12]), axis=0))
    assert 5 * rows * (1 - 0.8**12) == pytest.approx(drawn, rel=0.01)


def test_identical_rows_are_no_trouble() -> None:
    views = [np.repeat(np.eye(4), 10, axis=0), np.repeat(np.eye(4)[::-1], 10, axis=0)]
    found = suggest_n_clusters(views, range(2, 8))
    assert np.isfinite(list(found.scores.values())).all()
    assert found.best == 4


def test_bad_input_is_named() -> None:
    views = [np.random.default_rng(0).normal(size=(20, 4))]
    with pytest.raises(ValueError, match="k_range is empty"):
        suggest_n_clusters(views, [])
    for wrong in (1, 2.5):
        with pytest.raises(ValueError, match=f"k_range holds {wrong}"):
            suggest_n_clusters(views, [3, wrong])
    with pytest.raises(ValueError, match="up to 20, but there are 20 samples"):
        suggest_n_clusters(views, range(2, 21))
    with pytest.raises(ValueError, match="not fitted"):
        suggest_n_clusters(ViewFold(3), [2, 3])
    with pytest.raises(ValueError, match="knows its ids"):
        suggest_n_clusters(ViewFold(3).fit(views), [2, 3], ids=np.arange(20))


def test_plot_marks_the_best() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    found = Suggestion(3, {2: 0.1, 3: 0.5, 4: 0.2})
    ax = found.plot()
    assert list(ax.lines[1].get_xdata()) == [3]
    assert found.plot(ax) is ax


def test_plot_without_matplotlib_says_what_to_do(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"viewfold\[plots\]"):
        Suggestion(2, {2: 0.1}).plot()


# research/tests/test_suggested_numbers.py has larger ones.
@pytest.mark.parametrize(
    ("name", "candidates"), [("msrc-v5", range(2, 16)), ("tcga-breast", range(2, 7))]
)
def test_classes_are_counted_within_a_fifth(name, candidates) -> None:
    views, y = load(name)
    classes = len(np.unique(y))
    found = suggest_n_clusters(views, candidates, random_state=0).best
    assert abs(found - classes) <= classes / 5
