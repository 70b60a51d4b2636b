"""Balanced folding: what ViewFold promises beyond the contracts of every estimator."""

import itertools

import numpy as np
import pytest
from conftest import load
from scipy import sparse

import viewfold
from viewfold import FCMVC, ViewFold, as_view, missing
from viewfold.datasets import load_digits_views
from viewfold.method import encoders, scaling
from viewfold.metrics import accuracy
from viewfold.rows import LocalEngine, Rows
from viewfold.rows.linalg import ridge

CSR = sparse.csr_array


@pytest.fixture(scope="module")
def digits():
    found = load_digits_views()
    return [found.views[name][:900] for name in ("zones", "edges", "profiles")], found.target[:900]


@pytest.fixture(scope="module")
def full(digits):
    """A model of all samples in all views; tests do not change it."""
    return ViewFold(10, random_state=0).fit(digits[0])


def acc(model, y) -> float:
    return accuracy(y[model.ids_], model.labels_)


def products(model) -> np.ndarray:
    return (model.embedding_ @ model.embedding_.T).ravel()


def noise(n: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, width))


def test_the_order_of_views_hardly_matters(digits, full) -> None:
    views, y = digits
    orders = list(itertools.permutations(views))[1:]
    models = [full, *(ViewFold(10, random_state=0).fit(order) for order in orders)]
    assert np.corrcoef([products(model) for model in models]).min() > 0.9
    assert min(acc(model, y) for model in models) > 0.8
    others = [FCMVC(10, n_init=1, random_state=0).fit(order) for order in (views, views[::-1])]
    assert np.corrcoef([products(model) for model in others]).min() < 0.9


@pytest.mark.parametrize(("count", "first"), [(1, False), (3, True)], ids=["1-last", "3-first"])
def test_views_of_noise_do_little_harm(count: int, first: bool, digits, full) -> None:
    views, y = digits
    extra = [noise(y.size, 60, seed) for seed in range(count)]
    model = ViewFold(10, random_state=0).fit(extra + views if first else views + extra)
    assert acc(model, y) > acc(full, y) - 0.01
    agreements = [view.agreement for view in model.views_]
    good = slice(count + 1, None) if first else slice(1, 3)
    assert min(agreements[good]) > 0.02
    assert max(set(agreements[1:]) - set(agreements[good])) < 0.001


def test_views_without_a_common_sample_keep_their_own_structure(digits) -> None:
    (a, b, _), _ = digits
    model = ViewFold(10, random_state=0).partial_fit(a[:450], ids=np.arange(450))
    alone = model.embedding_
    with pytest.warns(
        UserWarning,
        match=r"2 groups \(450, 450 samples\) that share fewer than 10.* none were paired",
    ):
        model.partial_fit(b[450:], ids=np.arange(450, 900))
    Z = model.embedding_
    assert np.abs(Z[:450] @ Z[450:].T).max() < 1e-9
    # They share the columns; in its own, each is as near to what it was as any can be.
    own = np.count_nonzero(np.abs(Z[:450]).max(axis=0) > 1e-9)
    assert 10 < own < 20
    assert Z.shape[1] == 30
    pair = [(rows @ rows.T).ravel() for rows in (Z[:450], alone[:, :own])]
    assert np.corrcoef(pair)[0, 1] > 0.99
    assert model.views_[1].agreement is None


def two_groups(*sizes: tuple[int, ...]) -> tuple[list[np.ndarray], np.ndarray]:
    """Two views of the same clusters without a common sample; sizes of the clusters in each."""
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.permutation(np.repeat(np.arange(len(one)), one)) for one in sizes])
    views = [rng.normal(size=(y.size, d)) + 6 * np.eye(d)[y] for d in (8, 12)]
    n = sum(sizes[0])
    views[0][n:], views[1][:n] = np.nan, np.nan
    return views, y


@pytest.mark.filterwarnings("ignore:The samples are in")
def test_clusters_of_groups_that_nothing_ties_together_are_paired_by_size(tmp_path) -> None:
    views, y = two_groups((100, 50, 25), (200, 115, 55))
    model = ViewFold(3, random_state=0).fit(views)
    assert accuracy(y, model.labels_) > 0.99
    assert len(model.cluster_centers_) == 3
    for which, X in enumerate(views):
        there = ~np.isnan(X[:, 0])
        assert np.mean(model.predict(X[there], view=which) == model.labels_[there]) > 0.99
    frame = model.to_frame()
    assert frame["confidence"].median() > 0.5
    model.save(tmp_path / "two-groups.vf")
    again = viewfold.load(tmp_path / "two-groups.vf")
    assert np.array_equal(
        again.predict(views[0][:175], view=0), model.predict(views[0][:175], view=0)
    )
    assert again.to_frame().equals(frame)


def test_groups_are_kept_separate_if_asked_and_told_either_way() -> None:
    views, _ = two_groups((100, 50, 25), (200, 115, 55))
    said = r"2 groups \(175, 370 samples\) .*{} A view with at least 10 samples of each would"
    with pytest.warns(UserWarning, match=said.format("paired by size.*")):
        paired = ViewFold(3, random_state=0).fit(views).labels_
    with pytest.warns(UserWarning, match=said.format("were not paired.")):
        separate = ViewFold(3, unconnected="separate", random_state=0).fit(views).labels_
    assert set(paired[:175]) == set(paired[175:]) == {0, 1, 2}
    assert set(separate[:175]) != {0, 1, 2}


@pytest.mark.filterwarnings("ignore:The samples are in")
def test_clusters_of_equal_size_are_not_paired() -> None:
    views, _ = two_groups((60, 60, 60), (120, 120, 120))
    labels = ViewFold(3, random_state=0).fit(views).labels_
    assert set(labels[:180]) != set(labels[180:])


@pytest.mark.filterwarnings("ignore:The samples are in")
def test_a_view_that_ties_two_groups_together_is_heard_instead_of_sizes() -> None:
    views, y = two_groups((100, 50, 25), (55, 115, 200))
    model = ViewFold(3, random_state=0).fit(views)
    assert accuracy(y, model.labels_) < 0.9
    model.partial_fit(np.random.default_rng(1).normal(size=(y.size, 6)) + 6 * np.eye(6)[y])
    assert accuracy(y, model.labels_) == 1


def test_missing_samples_are_completed_from_other_views(digits, full) -> None:
    views, y = digits
    gone = missing.by_paper_rule(900, 3, 0.4, random_state=0)
    model = ViewFold(10, random_state=0).fit(missing.by_mask(views, gone))
    assert acc(model, y) > 0.85
    lacking = gone.any(axis=1)
    pair = [m.embedding_[lacking] @ m.embedding_[lacking].T for m in (model, full)]
    assert np.corrcoef(pair[0].ravel(), pair[1].ravel())[0, 1] > 0.7


@pytest.mark.parametrize(("encoder", "apart"), [("linear", 1e-6), ("mix", 0.2)])
def test_transform_embeds_a_row_as_a_sample_that_is_in_that_view_alone(
    encoder, apart, digits
) -> None:
    views, _ = digits
    model = ViewFold(10, n_init=1, random_state=0, encoder=encoder)
    for i, X in enumerate(views):
        some = np.arange(0 if i == 0 else 100, 900)  # 0..99 are in the first view only
        model.partial_fit(X[some], ids=some)
    Z = model.embedding_[:100]
    error = np.linalg.norm(model.transform(views[0][:100], view=0) - Z) / np.linalg.norm(Z)
    assert error < apart  # landmarks are kept as means of ten, directions as float32


def test_confidence_rises_with_accuracy(digits) -> None:
    views, y = digits
    frame = ViewFold(10, random_state=0).fit(views[:1]).to_frame()
    sure = frame["confidence"].to_numpy() > frame["confidence"].median()
    assert accuracy(y[sure], frame["cluster"][sure]) > accuracy(y[~sure], frame["cluster"][~sure])


def counts(n: int = 200, words: int = 400, seed: int = 0) -> tuple[sparse.csr_array, np.ndarray]:
    """Word counts of documents about four topics."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    rate = 0.02 + 0.4 * (np.arange(words) % 8 == y[:, None])
    rate *= rng.uniform(0.2, 2, size=(n, 1))  # documents have different lengths
    return sparse.csr_array(rng.poisson(rate)), y


def test_text_is_recognised_and_scaled_as_text() -> None:
    X, y = counts()
    assert scaling.scale_of(X) == "tfidf"
    labels = {
        scale: ViewFold(4, scale=scale, random_state=0).fit(X).labels_
        for scale in ("auto", "tfidf")
    }
    assert np.array_equal(labels["auto"], labels["tfidf"])
    assert accuracy(y, labels["auto"]) > 0.95
    dense = ViewFold(4, random_state=0).fit(X.toarray())
    assert accuracy(labels["auto"], dense.labels_) == 1
    assert np.array_equal(dense.predict(X.toarray()), dense.labels_)


@pytest.mark.parametrize(
    ("n", "scale", "form"),
    [  # 180: few rows; 1797: a sample of rows
        *((180, scale, form) for scale in ("zscore", None) for form in (np.asarray, CSR)),
        *((180, "l2", np.asarray), (1797, "l2", CSR), (1797, "zscore", np.asarray)),
    ],
)
def test_wide_views_need_no_gram_matrix(monkeypatch, n: int, scale, form) -> None:
    digits = load_digits_views().views
    views = [digits[name][:n] for name in ("zones", "edges")]
    if scale == "zscore":
        views = [X * np.logspace(-3, 3, X.shape[1]) for X in views]
    views = [form(X) for X in views]
    found = []
    for widest in (100, 10):
        monkeypatch.setattr(scaling, "WIDEST_GRAM", widest)
        model = ViewFold(10, encoder="linear", n_components=20, n_init=1, scale=scale)
        found.append(products(model.fit(views)))
    assert np.corrcoef(found)[0, 1] > (0.999999 if n == 180 else 0.99)


@pytest.mark.parametrize("scale", ["zscore", "center", "l2", None])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_view_with_fewer_rows_than_features_needs_products_of_rows_only(
    monkeypatch, scale, form
) -> None:
    X = np.abs(noise(60, 90)) * np.linspace(1, 3, 90)
    view, seen = as_view(form(X)), []
    solve = scaling.top_eigenvectors

    def spy(M, most):
        seen.append(len(M))
        return solve(M, most)

    monkeypatch.setattr(scaling, "top_eigenvectors", spy)
    scaled, found, s, energy = scaling.principal_directions(LocalEngine(), view, 30, scale, (0,))
    assert seen == [60]
    _, expected, Vt = np.linalg.svd(scaled.times(np.eye(90))(scaled.read(X)))
    assert np.allclose(s, expected[:30])
    assert np.isclose(energy, (expected**2).sum())
    assert np.allclose(np.abs(np.sum(found * Vt[:30].T, axis=0)), 1)


def test_large_views_have_more_landmarks(monkeypatch) -> None:
    found, kept = {}, {}
    place = encoders.place

    def spy(scores, most, cosine):
        points = place(scores, most, cosine)
        found[n] = len(points)
        return points

    monkeypatch.setattr(encoders, "place", spy)
    for n in (300, 900, 24_000):
        encoder = ViewFold(2, n_init=1).fit(noise(n, 3)).views_[0].encoder
        kept[n] = len(encoder.encode.landmarks.points)
    assert found == {300: 300, 900: 400, 24_000: 1000}
    assert 15 <= kept[300] <= 30
    assert 45 <= kept[900] <= 90
    assert 900 <= kept[24_000] <= 1000


@pytest.mark.parametrize(("keep_encoders", "most"), [(True, 6), (False, 2)])
def test_two_passes_are_made_over_a_view_and_four_for_what_is_kept(
    keep_encoders: bool, most: int, monkeypatch
) -> None:
    passes = []

    def spy(self, work, rows, *options):
        passes.append(rows[0].shape if isinstance(rows[0], Rows) else None)
        return each_block(self, work, rows, *options)

    each_block = LocalEngine._each_block
    monkeypatch.setattr(LocalEngine, "_each_block", spy)
    views = {"plain": noise(1200, 50), "wide": noise(1200, 3000), "text": counts(1200)[0]}
    for X in views.values():
        view = viewfold.as_view(X)
        passes.clear()
        ViewFold(4, n_init=1, keep_encoders=keep_encoders).fit(view)
        assert passes.count(X.shape) == most


def test_a_view_that_says_nothing_is_refused() -> None:
    model = ViewFold(2).partial_fit(noise(20, 3))
    with pytest.raises(ValueError, match=r"'same' has no feature that varies .* Leave it out"):
        model.partial_fit(np.ones((20, 3)), view="same")
    assert len(model.views_) == 1


def test_ridge_penalty_follows_the_noise() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 30))
    Y = A @ rng.normal(size=(30, 5)) + rng.normal(size=(60, 5)) * 20
    clean, noisy = (
        np.linalg.norm(ridge(A.T @ A, A.T @ target, target.T @ target, 60).coefficients)
        / np.linalg.norm(np.linalg.lstsq(A, target, rcond=None)[0])
        for target in (A @ rng.normal(size=(30, 5)), Y)
    )
    assert clean > 0.95
    assert noisy < 0.5
    nothing = ridge(A.T @ A, A.T @ Y, Y.T @ Y, 1)
    assert not nothing.coefficients.any()


def test_fewer_components_can_be_asked_for(digits) -> None:
    views, _ = digits
    model = ViewFold(10, n_init=1, n_components=12).fit([X[:300] for X in views])
    assert model.embedding_.shape == (300, 12)


@pytest.mark.parametrize(("name", "least"), [("uci-digit", 0.93), ("msrc-v5", 0.85)])
def test_shared_sets_are_clustered_well(name: str, least: float) -> None:
    views, y = load(name)
    assert accuracy(y, ViewFold(len(np.unique(y)), random_state=0).fit(views).labels_) > least
