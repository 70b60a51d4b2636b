"""Every parameter may change between folds, and no index reaches compiled code unchecked."""

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import viewfold
from viewfold import FCMVC, ViewFold
from viewfold._util import constants
from viewfold.method.clusters import ClusteringOptions, cluster, match
from viewfold.method.kmeans import inertia, means
from viewfold.metrics import accuracy
from viewfold.rows import LocalEngine
from viewfold.rows.linalg import membership

K, N = 6, 300
KINDS = [ViewFold, FCMVC]
CHANGES: list[tuple[type, dict[str, Any]]] = [
    (ViewFold, {"encoder": "linear"}),
    (ViewFold, {"encoder": "landmarks"}),
    (ViewFold, {"scale": None}),
    (ViewFold, {"scale": "l2"}),
    (ViewFold, {"n_components": 5}),
    (ViewFold, {"n_components": 40}),
    (FCMVC, {"z_step": "exact"}),
    (FCMVC, {"solver": "direct"}),
    (FCMVC, {"scale": None}),
    (FCMVC, {"tol": 0.1, "max_iter": 2}),
    *((kind, {"n_init": 5}) for kind in KINDS),
    *((kind, {"random_state": 5}) for kind in KINDS),
    *((kind, {"keep_encoders": False}) for kind in KINDS),
]


def views(count: int, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(N) % K)
    return [rng.normal(size=(N, 12)) + 5 * rng.normal(size=(K, 12))[y] for _ in range(count)], y


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trees", [20, 300], ids=["trees see few", "trees see all"])
def test_the_number_of_clusters_may_go_up_and_down(monkeypatch, kind, trees: int) -> None:
    monkeypatch.setattr(constants, "TREE", trees)
    steps = [4, 3, 6, 2, 9, 6]
    (first, *later), y = views(len(steps))
    model = kind(steps[0], random_state=0).fit([first])
    for k, X in zip(steps[1:], later, strict=True):
        before = model.labels_
        model.set_params(n_clusters=k).partial_fit(X)
        assert set(model.labels_) == set(range(k))
        assert len(model.cluster_centers_) == k
        kept = (before == model.labels_).sum()
        if k <= 4:  # no other numbering of the new clusters keeps more of the old numbers
            for other in itertools.permutations(range(k)):
                assert (before == np.array(other)[model.labels_]).sum() <= kept
    assert accuracy(y, model.labels_) > 0.95
    assert [int(model.history_[name].max()) + 1 for name in model.history_] == steps
    assert np.array_equal(model.predict(first, view=0).shape, (N,))
    assert model.predict(later[-1], view=-1).max() < 6


@pytest.mark.parametrize(("kind", "change"), CHANGES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_every_parameter_may_change(kind, change: dict[str, Any], tmp_path) -> None:
    (a, b, c), y = views(3)
    model = kind(K, random_state=0).fit([a])
    model.set_params(**change).partial_fit(b).set_params(**kind(K).get_params()).partial_fit(c)
    assert accuracy(y, model.labels_) > 0.9
    model.save(tmp_path / "model.vf")
    again = viewfold.load(tmp_path / "model.vf")
    known = -1 if "keep_encoders" in change else 0  # those of earlier views are removed then
    X = c if known else a
    assert np.array_equal(again.transform(X[:9], view=known), model.transform(X[:9], view=known))


@pytest.mark.filterwarnings("ignore:View 'view1' has 12 features")
@pytest.mark.parametrize("kind", KINDS)
def test_more_clusters_than_samples_are_refused_and_nothing_changes(kind) -> None:
    (a, b), _ = views(2)
    model = kind(3, random_state=0).partial_fit(a[:20], ids=range(20)).forget(range(5))
    state = model._state
    with pytest.raises(ValueError, match=r"'view1' has 18 samples .* fewer than n_clusters=19"):
        model.set_params(n_clusters=19).partial_fit(b[2:12], ids=range(2, 12))
    assert model._state is state
    assert model.set_params(n_clusters=12).partial_fit(b[2:12], ids=range(2, 12)).ids_.size == 18


def test_the_rank_of_fcmvc_is_the_highest_number_of_clusters_asked_for() -> None:
    (a, b, c), _ = views(3)
    model = FCMVC(3, random_state=0).fit([a])
    few = model.transform(a[:5], view=0)
    for k, X, rank in ((5, b, 5), (2, c, 5)):
        model.set_params(n_clusters=k).partial_fit(X)
        Z = model.embedding_
        assert Z.shape == (N, rank)
        assert np.allclose(Z.T @ Z, np.eye(rank), atol=1e-9)
        assert model.transform(a[:5], view=0).shape == (5, rank)
    assert few.shape == (5, 3)


def test_a_fold_of_fcmvc_with_more_clusters_is_that_of_a_padded_consensus() -> None:
    (a, b), _ = views(2)
    model = FCMVC(3, random_state=0).fit([a])
    Zp = np.pad(model.embedding_, ((0, 0), (0, 2)))
    model.set_params(n_clusters=5, tol=0, max_iter=4).partial_fit(b)
    X = (b - b.mean(axis=0)) / b.std(axis=0, ddof=1)
    H, W = np.eye(12, 5), np.eye(5)

    def factor(A: np.ndarray) -> np.ndarray:
        U, _, Vt = np.linalg.svd(A, full_matrices=False)
        return U @ Vt

    for _ in range(4):
        Z = factor(X @ H + Zp @ W.T)
        W, H = factor(Z.T @ Zp), factor(X.T @ Z)
    assert np.allclose(np.abs(Z.T @ model.embedding_), np.eye(5), atol=1e-6)


def test_numbers_are_kept_where_there_were_more_or_fewer_clusters() -> None:
    labels = np.array([0, 0, 1, 1, 2, 2])
    assert match(LocalEngine(), np.array([4, 4, 1, 1, 0, 0]), labels, 3).tolist() == [2, 1, 0]
    assert match(LocalEngine(), np.array([1, 1, 0, 0, 0, 0]), labels, 3).tolist() in (
        [1, 0, 2],
        [1, 2, 0],
    )
    assert match(LocalEngine(), np.full(6, -1), labels, 3).tolist() == [0, 1, 2]


@pytest.mark.parametrize("labels", [[0, 3], [-1, 0], [0, 2**40]])
def test_labels_that_are_no_clusters_are_refused(labels: list[int]) -> None:
    rows = np.ones((2, 2))
    for call in (
        lambda: membership(np.array(labels), 3),
        lambda: means(rows, np.array(labels), 3),
        lambda: inertia(rows, np.array(labels), 3),
    ):
        with pytest.raises(ValueError, match="but there are 3 clusters"):
            call()


def test_earlier_labels_of_more_clusters_do_no_harm() -> None:
    (X, *_), y = views(1)
    for start in ("random", "ward"):
        options = ClusteringOptions(3, start=start, n_init=1, discriminants=start == "ward")
        labels, _ = cluster(LocalEngine(), np.arange(N), X, options, previous=y)
        assert set(labels) == {0, 1, 2}


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
@pytest.mark.parametrize("index", [99, -1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sparse_view_with_indices_out_of_range_is_refused(kind, form, index: int) -> None:
    X = form(np.eye(20, 6) + 1)
    X.indices[3] = index
    with pytest.raises(ValueError, match="'bad' is not a valid sparse array"):
        kind(2).fit({"bad": X})


@pytest.mark.parametrize("kind", KINDS)
def test_reports_and_plots_of_a_model_that_had_more_clusters(kind) -> None:
    pytest.importorskip("matplotlib.pyplot")  # imports may warn, what is drawn may not
    from viewfold import plot

    (a, b), _ = views(2)
    model = kind(8, random_state=0).fit([a]).set_params(n_clusters=3).partial_fit(b)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(plot.label_flow(model).get_xticklabels()) == 2
        assert plot.confidence(model) is not None
    assert set(model.movers()["before"]) - {0, 1, 2}
