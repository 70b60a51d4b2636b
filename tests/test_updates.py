"""More rows of a known view: who is new, late, corrected or the same, and what becomes of them."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Data
from every_estimator import every_estimator, folded, folded_once, snapshot
from sklearn.base import clone

import viewfold
from viewfold import FCMVC, ViewFold, metrics
from viewfold.state import transitions
from viewfold.state.committee import MOST_ENCODERS, Committee

IDS = np.array([f"s{i}" for i in range(160)], dtype=object)


def halves(data: Data, rows: np.ndarray, model: Any) -> Any:
    """Fold the given rows of each view, then the others, view by view."""
    for part in (rows, ~rows):
        for name, X in data.views.items():
            model.partial_fit(X[part], ids=IDS[part], view=name)
    return model


@pytest.fixture(scope="module")
def half() -> np.ndarray:
    return np.random.default_rng(1).random(160) < 0.5


@every_estimator
def test_two_halves_of_every_view_give_the_clusters_of_whole_views(
    estimator: Any, data: Data, half: np.ndarray
) -> None:
    model = halves(data, half, clone(estimator))
    assert [view.n_samples for view in model.views_] == [160] * 3
    assert model.seen_.to_numpy().all()
    assert model.log_["what"].tolist() == ["fold"] * 3 + ["update"] * 3
    y = data.y[[int(i[1:]) for i in model.ids_]]
    assert metrics.accuracy(y, model.labels_) > 0.95


@every_estimator
def test_a_repeated_delivery_changes_nothing(estimator: Any, data: Data, half: np.ndarray) -> None:
    model = halves(data, half, clone(estimator))
    before, prints = snapshot(model), model._state.fingerprints
    for part in (half, np.ones(160, bool)):
        backwards = np.flatnonzero(part)[::-1]
        for name, X in data.views.items():
            model.partial_fit(X[backwards], ids=IDS[backwards], view=name)
            assert model.delivery_.n_same == backwards.size
            assert snapshot(model) == before
            assert model._state.fingerprints is prints


def test_rows_are_told_apart_and_counted(data: Data) -> None:
    model = ViewFold(4, n_init=2, random_state=0)
    labs, scan = data.views["labs"], data.views["scan"]
    model.partial_fit(labs[:80], ids=IDS[:80], view="labs")
    model.partial_fit(scan[60:120], ids=IDS[60:120], view="scan")
    again = labs[70:140].copy()
    again[:3] += 1
    model.partial_fit(again, ids=IDS[70:140], view="labs")
    found = model.delivery_
    assert (found.n_new, found.n_late, found.n_corrected, found.n_same) == (20, 40, 3, 7)
    last = model.log_.iloc[-1]
    assert (last["what"], last["view"]) == ("update", "labs")
    assert (last["n_new"], last["n_shared"], last["n_corrected"]) == (20, 40, 3)
    assert last["n_samples"] == 140
    assert model.views_[0].n_samples == 140
    assert model.history_.columns.tolist() == ["labs", "scan", "labs (3)"]
    assert model.seen_["labs"].sum() == 140


def test_only_rows_that_changed_move(data: Data) -> None:
    """Of a delivery with few changes, the samples with the same row stay where they are."""
    model = folded_once(ViewFold(4, n_init=2, random_state=0), data)
    X, ids = data.parts()["labs"]
    before = pd.DataFrame(model.embedding_, model.ids_)
    wrong = X.copy()
    wrong[5] = X[np.flatnonzero(data.y[40:] != data.y[45])[0]]
    model.partial_fit(wrong, ids=ids, view="labs")
    assert model.delivery_.n_corrected == 1
    after = pd.DataFrame(model.embedding_, model.ids_)
    moved = (after != before).any(axis=1)
    assert after.index[moved].tolist() == [ids[5]]


def test_a_correction_of_a_sample_in_one_view_only_replaces_it(data: Data) -> None:
    model = ViewFold(4, n_init=2, random_state=0).partial_fit(
        data.views["labs"], ids=IDS, view="labs"
    )
    other = int(np.flatnonzero(data.y != data.y[0])[0])
    model.partial_fit(data.views["labs"][[other]], ids=IDS[:1], view="labs")
    assert model.labels_[0] == model.labels_[other]
    encoded = model.transform(data.views["labs"][[other]], view="labs")
    np.testing.assert_allclose(model.embedding_[0], encoded[0], rtol=1e-12)


def test_a_late_row_moves_its_sample_toward_its_cluster(data: Data) -> None:
    """A sample whose only view was wrong is set right by the next one that knows better."""
    X, scan = data.views["labs"], data.views["scan"]
    other = int(np.flatnonzero(data.y != data.y[7])[0])
    wrong = X.copy()
    wrong[7] = (X[7] + X[other]) / 2  # between two clusters
    model = ViewFold(4, n_init=2, random_state=0).partial_fit(wrong, ids=IDS, view="labs")
    model.partial_fit(scan[20:], ids=IDS[20:], view="scan")
    model.partial_fit(scan[:20], ids=IDS[:20], view="scan")
    frame = model.to_frame()
    assert frame.loc["s7", "cluster"] == frame["cluster"][IDS[data.y == data.y[7]]].mode()[0]
    assert frame.loc["s7", "hangs_on"] == "scan"


@pytest.mark.parametrize(("n", "taught"), [(59, False), (60, True)])
def test_a_delivery_of_as_many_rows_as_were_learned_from_teaches(
    n: int, taught: bool, data: Data
) -> None:
    X = data.views["labs"]
    model = ViewFold(4, n_init=2, random_state=0).partial_fit(X[:60], ids=IDS[:60], view="labs")
    labels, encoder = model.labels_, model.views_[0].encoder
    model.partial_fit(X[60 : 60 + n], ids=IDS[60 : 60 + n], view="labs")
    after = model.views_[0].encoder
    assert model.delivery_.learned is taught
    if taught:
        assert isinstance(after, Committee)
        assert [one.n_rows for one in after.members()] == [60, 60]
    else:
        assert after is encoder
        assert np.array_equal(model.labels_[:60], labels)


def test_encoders_of_a_view_are_limited_and_the_poorest_go(data: Data) -> None:
    X, ids = np.tile(data.views["labs"], (2, 1)), [f"t{i}" for i in range(320)]
    model = ViewFold(4, n_init=2, random_state=0).partial_fit(X[:11], ids=ids[:11], view="labs")
    ends = np.linspace(11, 320, MOST_ENCODERS + 3).astype(int)
    for i, (start, end) in enumerate(pairwise(ends), 1):  # the columns drift
        model.partial_fit(X[start:end] + i * X.std(), ids=ids[start:end], view="labs")
        assert model.delivery_.learned
    members = model.views_[0].encoder.members()
    assert len(members) == MOST_ENCODERS
    assert min(one.n_rows for one in members) > 11


def test_a_first_delivery_too_small_for_an_encoder_does_not_cripple_the_view(data: Data) -> None:
    model = ViewFold(4, n_init=2, random_state=0).partial_fit(
        data.views["scan"], ids=IDS, view="scan"
    )
    X = data.views["labs"]
    model.partial_fit(X[:5], ids=IDS[:5], view="labs")
    assert model.views_[1].encoder is None
    model.partial_fit(X[5:], ids=IDS[5:], view="labs")
    assert (model.delivery_.n_late, model.views_[1].n_samples) == (155, 160)
    assert metrics.accuracy(data.y, model.predict(X, view="labs")) > 0.9


def test_a_state_file_takes_deliveries_and_undoes_them(tmp_path: Path, data: Data) -> None:
    path, X = tmp_path / "p.vf", data.views["labs"]
    with viewfold.edit(path, new=ViewFold(4, n_init=2, random_state=0)) as model:
        model.partial_fit(X[:90], ids=IDS[:90], view="labs")
    first = path.read_bytes()
    with viewfold.edit(path) as model:
        model.partial_fit(X[:90], ids=IDS[:90], view="labs")
    assert path.read_bytes() == first
    with viewfold.edit(path) as model:
        model.partial_fit(X, ids=IDS, view="labs")
    assert (model.delivery_.n_new, model.delivery_.n_same) == (70, 90)
    again = viewfold.load(path)
    again.partial_fit(X, ids=IDS, view="labs")
    assert again.delivery_.n_same == 160
    assert np.array_equal(again.predict(X), model.predict(X))
    assert viewfold.verify(path).whole
    assert viewfold.undo(path).ids_.size == 90


def test_who_was_forgotten_is_new_when_delivered_again(data: Data) -> None:
    X = data.views["labs"]
    model = (
        ViewFold(4, n_init=2, random_state=0).partial_fit(X, ids=IDS, view="labs").forget(["s3"])
    )
    model.partial_fit(X, ids=IDS, view="labs")
    assert (model.delivery_.n_new, model.delivery_.n_same) == (1, 159)


@every_estimator
def test_private_models_keep_no_fingerprints_and_refuse(estimator: Any, data: Data) -> None:
    model = folded(clone(estimator).set_params(keep_encoders=False), data.parts())
    assert not model._state.fingerprints.any()
    before = snapshot(model)
    X, ids = data.parts()["labs"]
    with pytest.raises(ValueError, match=r"'labs'.*not kept.*another name"):
        model.partial_fit(X, ids=ids, view="labs")
    assert snapshot(model) == before


def test_fingerprints_of_two_models_cannot_be_compared(data: Data) -> None:
    one, two = (folded(ViewFold(4, n_init=2, random_state=0), data.parts()) for _ in range(2))
    a, b = one._state.fingerprints, two._state.fingerprints
    assert np.array_equal(a != 0, one.seen_.to_numpy())
    assert np.mean(a[a != 0] == b[a != 0]) < 0.01


def test_other_columns_or_rows_without_ids_are_refused(data: Data) -> None:
    model = folded_once(ViewFold(4, n_init=2, random_state=0), data)
    before = snapshot(model)
    with pytest.raises(ValueError, match="'labs': X has 30 features"):
        model.partial_fit(data.views["scan"], ids=IDS, view="labs")
    with pytest.raises(ValueError, match=r"'labs'.*ids"):
        model.partial_fit(data.views["labs"], view="labs")
    assert snapshot(model) == before


def test_a_table_is_read_as_it_was_the_first_time() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"iron": rng.normal(size=60), "ward": rng.choice(["ER", "ICU"], 60)})
    frame.index = [f"p{i}" for i in range(60)]
    model = ViewFold(2, n_init=2, random_state=0).partial_fit(frame, view="labs")
    more = frame[["ward", "iron"]].iloc[40:].assign(ward="ICU").rename(lambda i: f"q{i}")
    model.partial_fit(more, view="labs")
    assert model.delivery_.n_new == 20
    assert model.views_[0].features == ("iron", "ward=ER", "ward=ICU")
    model.partial_fit(frame[["ward", "iron"]], view="labs")
    assert model.delivery_.n_same == 60


def test_the_consensus_of_fcmvc_stays_orthonormal(data: Data, half: np.ndarray) -> None:
    Z = halves(data, half, FCMVC(4, n_init=2, random_state=0)).embedding_
    np.testing.assert_allclose(Z.T @ Z, np.eye(4), atol=1e-9)


def test_history_is_bounded_and_keeps_folds(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transitions, "MOST_STEPS", 4)
    X = data.views["labs"]
    model = ViewFold(4, n_init=2, random_state=0).partial_fit(X[:120], ids=IDS[:120], view="labs")
    model.partial_fit(data.views["scan"], ids=IDS, view="scan")
    for i in range(120, 126):
        model.partial_fit(X[i : i + 1], ids=IDS[i : i + 1], view="labs")
    assert model.history_.columns.tolist() == ["labs", "scan", "labs (7)", "labs (8)"]
    assert np.array_equal(model.history_.iloc[:, -1], model.labels_)


def test_a_sparse_row_has_the_fingerprint_of_the_dense_one() -> None:
    from scipy import sparse

    rng = np.random.default_rng(0)
    X = rng.poisson(0.2, size=(60, 40)).astype(float)
    ids = list(range(60))
    model = ViewFold(2, n_init=2, random_state=0).partial_fit(X, ids=ids, view="words")
    model.partial_fit(sparse.csr_array(X), ids=ids, view="words")
    assert model.delivery_.n_same == 60
    model.partial_fit(-0.0 + X.astype(np.float32), ids=ids, view="words")
    assert model.delivery_.n_same == 60


def test_noise_in_two_deliveries_does_no_harm(data: Data, half: np.ndarray) -> None:
    noise = replace(
        data, views={**data.views, "noise": np.random.default_rng(3).normal(size=(160, 20))}
    )
    model = halves(noise, half, ViewFold(4, n_init=2, random_state=0))
    y = data.y[[int(i[1:]) for i in model.ids_]]
    assert metrics.accuracy(y, model.labels_) > 0.95


def test_rows_with_missing_cells_come_again_unchanged_and_are_placed(data: Data) -> None:
    """What stands for a missing cell depends on the delivery: fingerprints must not."""
    X = data.views["scan"].copy()
    X[np.random.default_rng(5).random(X.shape) < 0.1] = np.nan
    model = ViewFold(4, n_init=2, random_state=0).partial_fit(X[:100], ids=IDS[:100], view="scan")
    model.partial_fit(X[20:60], ids=IDS[20:60], view="scan")
    assert model.delivery_.n_same == 40
    model.partial_fit(X[90:], ids=IDS[90:], view="scan")
    assert (model.delivery_.n_new, model.delivery_.n_same) == (60, 10)
    assert model.views_[0].n_missing == np.isnan(X).sum()
    model.partial_fit(X[:1], ids=["another"], view="scan")
    assert metrics.accuracy(np.append(data.y, data.y[0]), model.labels_) > 0.95


def test_many_rows_that_are_all_alike_are_placed(data: Data) -> None:
    X = data.views["labs"]
    model = ViewFold(4, n_init=2, random_state=0).partial_fit(X, ids=IDS, view="labs")
    model.partial_fit(np.tile(X[:1], (40, 1)), ids=[f"t{i}" for i in range(40)], view="labs")
    assert set(model.labels_[160:]) == {model.labels_[0]}
