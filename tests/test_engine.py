"""Methods use the three verbs and nothing else: they give the same where rows are out of reach."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
import pytest
from engine_contract import EngineContract, Make
from scipy import sparse
from sklearn.base import clone

from viewfold import FCMVC, ViewFold
from viewfold.rows import DiskEngine, LocalEngine, Rows, block_bytes, using
from viewfold.rows.bucket_files import BucketRows

N = 700

FEW = {"n_init": 2, "random_state": 0}  # most of the time goes into starts of k-means
ESTIMATORS = [
    FCMVC(4, **FEW),
    FCMVC(4, **FEW, scale=None),
    FCMVC(4, **FEW, solver="direct", z_step="exact"),
    ViewFold(4, **FEW),
    ViewFold(4, **FEW, encoder="linear"),
    ViewFold(4, **FEW, encoder="landmarks"),
]


def views(kind: str) -> list[tuple[object, object]]:
    """Three incomplete views; the second and third bring new samples and lack known ones."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=N)
    X = [3 * rng.normal(size=(4, d))[y] + rng.normal(size=(N, d)) for d in (7, 20, 12)]
    here = [rng.permutation(N)[: int(share * N)] for share in (0.8, 0.7, 0.9)]
    if kind == "apart":  # groups that no view connects, until the last one comes
        here[:2] = np.split(rng.permutation(N), [280])
    ids = np.array([f"p{i}" for i in range(N)], object) if kind == "texts" else np.arange(N)
    rows = [Z[some] for Z, some in zip(X, here, strict=True)]
    if kind == "sparse":
        counts = rng.poisson(0.05 + np.eye(4, 300)[y] + 0.2 * (np.arange(300) % 4 == y[:, None]))
        rows[1] = sparse.csr_array(counts[here[1]].astype(float))
    if kind == "single":
        rows = [Z.astype(np.float32) for Z in rows]
    return [(Z, ids[some]) for Z, some in zip(rows, here, strict=True)]


def folded(estimator, kind: str):
    model = clone(estimator)
    for i, (X, ids) in enumerate(views(kind)):
        model.partial_fit(X, ids=ids, view=f"view{i}")
    return model


MADE: dict[tuple[str, str], Any] = {}


def in_memory(estimator, kind: str):
    """The model that is expected; nobody changes it."""
    if (str(estimator), kind) not in MADE:
        MADE[str(estimator), kind] = folded(estimator, kind)
    return MADE[str(estimator), kind]


def products(embedding: np.ndarray) -> np.ndarray:
    rows = embedding[:: len(embedding) // 200].astype(np.float64)
    return rows @ rows.T


KINDS = ["texts", "sparse", "single", "apart"]
# Each estimator with ids that are texts, and with one of the other kinds; each kind with both.
PAIRS = [(one, kind) for i, one in enumerate(ESTIMATORS) for kind in ("texts", KINDS[1 + i % 3])]


@pytest.mark.filterwarnings("ignore:View")
@pytest.mark.parametrize(("estimator", "kind"), PAIRS, ids=str)
def test_buckets_change_nothing_and_methods_use_the_verbs_only(estimator, kind: str) -> None:
    expected = in_memory(estimator, kind)
    with using(DiskEngine(n_buckets=3)) as engine:
        model = folded(estimator, kind)
        assert isinstance(model._state.embedding, BucketRows)
        ids, state = engine.collect(model._state.ids), model._state
        at = pd.Index(ids).get_indexer(expected.ids_)
        assert sorted(at) == list(range(len(ids)))
        found = {
            name: engine.collect(getattr(state, name))[at]
            for name in ("embedding", "history", "seen", "added")
        }
        if kind == "texts":
            fresh = {f"view{i}": views(kind)[i][0][:50] for i in (0, 1)}
            predicted, embedded = (
                model.predict(fresh["view0"], view="view0"),
                model.transform(fresh),
            )
            assert np.array_equal(predicted, expected.predict(fresh["view0"], view=0))
            assert np.allclose(np.abs(embedded), np.abs(expected.transform(fresh)), atol=1e-5)
        model.extend(views(kind)[0][0][:3], ids=_new_ids(kind), view="view0")
        assert model._state.n_samples == len(ids) + 3
        model.forget(_new_ids(kind))
        assert model._state.n_samples == len(ids)
    embedding, mine = products(expected.embedding_), products(found["embedding"])
    # Single precision: sums in another order, and directions of little energy that feel it most.
    limit = (3e-4 if kind == "single" else 1e-8) * np.abs(embedding).max()
    assert np.abs(mine - embedding).max() < limit
    assert (found["history"] == expected.history_.to_numpy()).mean() >= 0.999
    assert found["seen"].tolist() == expected.seen_.to_numpy().tolist()


def _new_ids(kind: str) -> list[object]:
    return ["new", "newer", "newest"] if kind == "texts" else [N, N + 1, N + 2]


@pytest.mark.parametrize(
    "reach", [lambda rows: rows[np.array([1, 0])], lambda rows: rows + 1, np.asarray, len, list]
)
def test_nobody_reaches_for_rows_in_buckets(reach) -> None:
    rows, *_ = DiskEngine(n_buckets=3).partition(np.arange(9))
    with pytest.raises(TypeError):
        reach(rows)


class TestLocalEngine(EngineContract):
    @pytest.fixture
    def make(self) -> Make:
        return lambda folder, n_buckets: nullcontext(LocalEngine())


# -- what only the local engine promises


def test_map_returns_rows_whatever_the_blocks() -> None:
    X = np.arange(60.0).reshape(20, 3)
    engine = LocalEngine()
    for size in (10, 100, 10**6):
        with block_bytes(size):
            doubled, sums = engine.map(lambda b: ((2 * b, b[:, 0]), b.sum(axis=0)), X, sums=True)
            assert np.array_equal(doubled[0], 2 * X)
            assert np.array_equal(doubled[1], X[:, 0])
            assert np.array_equal(sums, X.sum(axis=0))
            thin = engine.map(sparse.csr_array, X)
            assert np.array_equal(thin.toarray(), X)
    assert engine.map(lambda b: b + 1, X, reuse=True) is X
    assert X[0, 0] == 1


def test_sums_do_not_depend_on_the_number_of_threads(monkeypatch) -> None:
    from contextlib import contextmanager

    from viewfold.rows import local

    X = np.random.default_rng(0).normal(size=(1000, 5)).astype(np.float32)
    found = []
    for n in (1, 2, 5):

        @contextmanager
        def threads(n=n):
            yield n

        monkeypatch.setattr(local, "blas_on_one_thread", threads)
        with block_bytes(100):
            found.append(LocalEngine().reduce(lambda b: b.T @ b, X).tobytes())
    assert len(set(found)) == 1


@pytest.mark.parametrize("ordered", [False, True])
def test_join_aligns_by_id(ordered: bool) -> None:
    engine = LocalEngine()
    known, view = np.array([9, 4, 7, 1]), np.array([7, 3, 9])
    alignment = engine.join(known, view, ordered=ordered)
    union = sorted({*known, *view}) if ordered else [9, 4, 7, 1, 3]
    assert alignment.ids.tolist() == union
    assert (alignment.n_samples, alignment.n_shared, alignment.n_new) == (5, 2, 1)
    assert alignment.known.tolist() == [True, False, True]
    rows = 10.0 * known[:, None]
    assert engine.collect(alignment.partners(rows)).ravel().tolist() == [70, 0, 90]
    assert engine.collect(alignment.absent(rows)).ravel().tolist() == [40, 10]
    assert alignment.carry(10 * known, -1).tolist() == [10 * i if i != 3 else -1 for i in union]
    merged = alignment.merge(
        (lambda ids: 100 * ids, view), (lambda rows: rows[:, 0].astype(int), alignment.absent(rows))
    )
    assert merged.tolist() == [100 * i if i in view else 10 * i for i in union]


def test_rows_that_are_selected_come_in_the_order_asked_for(tmp_path) -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    np.save(tmp_path / "x.npy", X)
    engine, which = LocalEngine(), np.array([150, 3, 77, 4])
    there = np.flatnonzero(np.arange(200) % 3)
    for held in (X, np.load(tmp_path / "x.npy", mmap_mode="r")):
        rows = Rows(held, there)
        assert np.array_equal(engine.collect(engine.select(rows, which[1:])), X[there][which[1:]])
        assert np.array_equal(engine.collect(engine.select(Rows(held), which)), X[which])


def test_nothing_is_left_of_samples_that_are_forgotten_and_files_go_with_their_model(
    tmp_path,
) -> None:
    def files() -> list[bytes]:
        return [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]

    engine = DiskEngine(n_buckets=3, folder=str(tmp_path))
    with using(engine):
        model = folded(ESTIMATORS[4], "texts")
    gone = str(model.ids_[17])
    row = model.embedding_[17].tobytes()
    gone_alone = gone.encode() + b"p"  # p1 is in p12, but ids follow each other
    assert any(gone_alone in held for held in files())
    assert any(row in held for held in files())
    model.forget([gone])  # also where the engine is not the one in use
    assert not any(gone_alone in held or row in held for held in files())
    assert gone not in model.ids_
    n = len(files())
    assert n > 10
    del model
    assert not files()
