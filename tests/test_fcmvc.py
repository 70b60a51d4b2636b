"""The paper's method: same answer as its lines written out, by every way of getting there."""

import warnings

import numpy as np
import pytest
from conftest import zscore
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import transcription
from viewfold import FCMVC, as_view
from viewfold.data import expected
from viewfold.method import fcmvc
from viewfold.method.scaling import survey
from viewfold.rows import LocalEngine, Rows
from viewfold.rows.linalg import inverse_sqrt, polar
from viewfold.state.state import State
from viewfold.state.transitions import fold


def problem(seed: int, n: int = 40, d: int = 8, k: int = 4, share: float = 0.7):
    """Two incomplete views of n samples; the first has at least k features."""
    rng = np.random.default_rng(seed)
    views = []
    for features in (k + 2, d):
        ids = np.sort(rng.choice(n, max(k, round(share * n)), replace=False))
        views.append(as_view(zscore(rng.normal(size=(ids.size, features))), ids=ids))
    return views


def run(views, k: int, **params) -> State:
    state, method = State.empty(), FCMVC(k, scale=None, n_init=1, **params)._method()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for view in views:
            state = fold(LocalEngine(), state, view, method, seed=0, keep_encoders=True)
    return state


def rises(trace: tuple[float, ...]) -> bool:
    steps = np.diff(trace)
    return bool(np.any(steps > 1e-9 * (1 + np.abs(trace[0]))))


@pytest.mark.parametrize("solver", ["gram", "direct"])
@pytest.mark.parametrize(
    ("d", "exact"),  # the lines know no exact step for d < k = 4
    [(2, False), (3, False), (4, False), (9, False), (60, False), (4, True), (9, True), (60, True)],
)
def test_equals_the_transcription(solver: str, d: int, exact: bool) -> None:
    first, second = problem(3, d=d)
    before = run([first], 4)
    found = LocalEngine().join(before.ids, second.ids)
    plain, objective = transcription.later(
        second.rows.X, before.embedding, found.rows, found.previous, exact=exact
    )
    after = run([first, second], 4, solver=solver, z_step="exact" if exact else "paper")
    assert np.abs(transcription.first(first.rows.X, 4) - before.embedding).max() < 1e-12
    assert np.abs(after.embedding - plain).max() < 1e-12
    assert np.allclose(after.views[1].objective, objective, rtol=1e-12, atol=1e-10)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(12, 60),
    d=st.integers(1, 10),
    k=st.integers(2, 6),
    share=st.floats(0.3, 1.0),
)
def test_with_the_exact_step_the_objective_never_rises(seed, n, d, k, share) -> None:
    after = run(problem(seed, n, d, k, share), k, z_step="exact", tol=0.0, max_iter=25)
    assert not rises(after.views[1].objective)


def test_with_the_published_step_the_objective_can_rise() -> None:
    traces = (run(problem(s), 4, tol=0.0, max_iter=25).views[1].objective for s in range(60))
    assert any(rises(trace) for trace in traces)


def test_exact_and_published_step_agree_on_complete_views() -> None:
    views = problem(1, share=1.0)
    paper, exact = (run(views, 4, z_step=step).embedding for step in ("paper", "exact"))
    assert np.abs(paper - exact).max() < 1e-12


def test_a_first_view_with_fewer_features_than_clusters_fills_as_many_columns() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.warns(UserWarning, match="2 features, fewer than n_clusters=4"):
        Z = FCMVC(4).fit(X).embedding_
    assert np.allclose(Z.T @ Z, np.diag([1, 1, 0, 0]))


def test_thin_views_fold_into_a_consensus_of_their_rank() -> None:
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(50, d)) for d in (2, 3, 9)]
    with pytest.warns(UserWarning, match="fewer than n_clusters"):
        thin = FCMVC(4).fit(views[:2]).embedding_
    with pytest.warns(UserWarning, match="fewer than n_clusters"):
        full = FCMVC(4).fit(views).embedding_
    assert np.allclose(np.linalg.eigvalsh(thin.T @ thin), [0, 1, 1, 1])
    assert np.allclose(full.T @ full, np.eye(4))


def test_equal_columns_in_the_first_view_leave_zeros_not_noise() -> None:
    x = np.random.default_rng(0).normal(size=(50, 3))
    Z = FCMVC(4).fit(np.column_stack([x, x[:, 0], x])).embedding_
    assert np.allclose(np.linalg.eigvalsh(Z.T @ Z), [0, 1, 1, 1])


def test_embedding_is_orthonormal_also_from_a_badly_conditioned_view() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    X[:, 1] = X[:, 0] + 1e-7 * X[:, 1]
    model = FCMVC(5).fit([X, rng.normal(size=(300, 6))])
    first = FCMVC(5).fit(X).embedding_
    for Z in (first, model.embedding_):
        assert np.abs(Z.T @ Z - np.eye(5)).max() < 1e-13


@pytest.mark.filterwarnings("ignore:.*fewer than n_clusters")
def test_embedding_is_orthonormal_where_view_and_memory_are_of_different_size() -> None:
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(300, 6)), 1e4 * rng.normal(size=(300, 3))]
    Z = FCMVC(5, scale=None).fit(views).embedding_
    assert np.abs(Z.T @ Z - np.eye(5)).max() < 1e-13


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_constant_feature_becomes_zero_whatever_its_value(kind) -> None:
    values = np.array([0.1, 1 / 3, -0.7, 1e5 + 0.1, 0.0, 1e-300])
    rows = Rows(kind(np.tile(values, (4999, 1))))
    scaling, _ = survey(LocalEngine(), rows, scale="zscore", full=False)
    assert np.array_equal(scaling.weight, np.zeros(6))


def test_whitener_finds_small_directions_by_qr() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(200, 3)) @ np.diag([1, 1e-6, 1e-10])
    Q = A @ fcmvc.basis(LocalEngine(), A)
    assert np.abs(Q - polar(A)).max() < 1e-4
    assert np.isinf(inverse_sqrt(A.T @ A)[1])


def test_polar_of_a_large_matrix_equals_that_by_svd() -> None:
    rng = np.random.default_rng(0)
    for C in (rng.normal(size=(120, 80)), rng.normal(size=(120, 80)) * np.geomspace(1, 1e-7, 80)):
        assert np.abs(polar(C) - transcription.polar(C)).max() < 1e-8


def test_an_objective_of_zero_ends_the_loop() -> None:
    # Two copies of a view: reconstruction and memory can cancel; the rule divides by their sum.
    assert not fcmvc._settled([0.0, 0.0], 1e-5, 1.0)
    assert fcmvc._settled([1.0, 0.0, 0.0], 1e-5, 1.0)
    assert not fcmvc._settled([1.0, 1e-3, 0.0], 1e-5, 1.0)


def test_scaling_is_the_zscore_with_divisor_n_minus_1() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)) * [1, 1e-3, 5, 1] + [0, 1e6, -3, 0]
    X[:, 3] = 0.1  # constant, and not exact in binary
    expected = zscore(X)
    expected[:, 3] = 0
    scaling, _ = survey(LocalEngine(), Rows(X), scale="zscore", full=False)
    found = scaling.times_raw(np.eye(4))(X)
    assert np.abs(found - expected)[:, [0, 2, 3]].max() < 1e-12
    assert np.abs(found - expected)[:, 1].max() < 1e-6  # 1e6 in 16 digits leaves 1e-3 ten of them


@pytest.mark.parametrize("solver", ["gram", "direct"])
def test_features_far_from_zero_do_not_lose_digits(solver: str) -> None:
    rng = np.random.default_rng(0)
    near = [rng.normal(size=(200, 5)), rng.normal(size=(200, 8))]
    far = [X + 2**20 for X in near]  # exact in float64 up to the last 20 bits
    a, b = (FCMVC(3, solver=solver, random_state=0).fit(views).embedding_ for views in (near, far))
    assert np.abs(a - b).max() < 1e-8


@pytest.mark.parametrize("solver", ["gram", "direct"])
def test_sparse_views_give_the_answer_of_dense_ones_and_stay_sparse(solver, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    views = [sparse.random_array((150, d), density=0.2, rng=rng, format="csr") for d in (10, 40)]
    dense = FCMVC(3, solver=solver, random_state=0).fit([X.toarray() for X in views])

    sizes = []
    original = sparse.csr_array.toarray

    def watched(self, *args, **kwargs):
        sizes.append(self.shape)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(sparse.csr_array, "toarray", watched)
    monkeypatch.setattr(expected, "ROOM", 150)  # drawn rows are looked at so many cells at a time
    model = FCMVC(3, solver=solver, random_state=0).fit(views)
    assert np.abs(model.embedding_ - dense.embedding_).max() < 1e-12
    # Only the n × k head of the first view and d × d products may become dense.
    assert all(shape[1] <= 3 or shape[0] == shape[1] for shape in sizes)


def test_the_cheaper_solver_is_chosen() -> None:
    tall, wide = np.ones((2000, 50)), np.ones((500, 5000))
    text = sparse.random_array((2000, 20000), density=1e-3, rng=np.random.default_rng(0)).tocsr()
    assert fcmvc.choose_solver(Rows(tall), 10) == "gram"
    assert fcmvc.choose_solver(Rows(wide), 10) == "direct"
    assert fcmvc.choose_solver(Rows(text), 10) == "direct"


def test_views_without_a_common_sample_fold_with_a_warning() -> None:
    rng = np.random.default_rng(0)
    model = FCMVC(3).partial_fit(rng.normal(size=(30, 5)), ids=np.arange(30))
    with pytest.warns(UserWarning, match="shares no sample with the 30"):
        model.partial_fit(rng.normal(size=(30, 5)), ids=np.arange(30, 60), view="other")
    assert model.labels_.shape == (60,)


def test_transform_embeds_a_row_as_a_sample_that_is_in_that_view_alone() -> None:
    rng = np.random.default_rng(0)
    A, B, C = (rng.normal(size=(60, d)) for d in (6, 7, 8))
    for step in ("paper", "exact"):
        model = FCMVC(3, z_step=step)
        model.partial_fit(A, ids=np.arange(60), view="a")
        model.partial_fit(B[20:], ids=np.arange(20, 60), view="b")  # 0..19 are in view a only
        model.partial_fit(C[20:], ids=np.arange(20, 60), view="c")
        assert np.allclose(model.transform(A[:20], view="a"), model.embedding_[:20], atol=1e-12)
