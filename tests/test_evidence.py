"""What each view says about each sample: corrections replace it, views are learned again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import viewfold
from viewfold import DeliveryWarning, ViewFold
from viewfold.rows import DiskEngine, using

K = 4
IDS = [f"s{i:03}" for i in range(300)]


def tables(seed: int = 0, centers: int = 1) -> tuple[np.ndarray, pd.DataFrame, pd.DataFrame]:
    random, where = np.random.default_rng(seed), np.random.default_rng(centers)
    classes = random.integers(K, size=len(IDS))
    made = [
        pd.DataFrame(where.normal(size=(K, d))[classes] * 2 + random.normal(size=(len(IDS), d)))
        for d in (8, 6)
    ]
    for frame in made:
        frame.index, frame.columns = IDS, [f"c{j}" for j in range(frame.shape[1])]
    return classes, made[0], made[1]


def folded(**options: object) -> ViewFold:
    _, labs, scan = tables()
    model = ViewFold(K, random_state=0, **options)
    return model.partial_fit(labs[:280], view="labs").partial_fit(scan[20:], view="scan")


def test_a_correction_that_is_taken_back_leaves_no_trace() -> None:
    """By averaging, four corrections would leave 6 % of what the other view says."""
    _, labs, _ = tables()
    model = folded()
    before, labels = model.embedding_.copy(), model.labels_.copy()
    for _ in range(4):
        model.partial_fit(labs[100:105] + 1.0, view="labs")
        assert model.delivery_.n_corrected == 5
        model.partial_fit(labs[100:105], view="labs")
    length = np.linalg.norm(before, axis=1)
    apart = np.linalg.norm(model.embedding_ - before, axis=1) / length
    assert apart.max() < 0.15  # what an encoder says is near what the fold said
    assert np.array_equal(model.labels_, labels)
    again = model.embedding_.copy()
    model.partial_fit(labs[100:105] + 1.0, view="labs").partial_fit(labs[100:105], view="labs")
    assert np.allclose(model.embedding_, again, atol=1e-12)


def test_a_late_row_adds_its_evidence_and_moves_nobody_else() -> None:
    _, labs, _ = tables()
    model = folded()
    before = model.to_frame()["cluster"]
    model.partial_fit(labs[280:], view="labs")
    assert (model.delivery_.n_late, model.delivery_.n_others, model.delivery_.learned) == (
        20,
        0,
        False,
    )
    assert (model.to_frame()["cluster"][:280] == before[:280]).all()


@pytest.mark.parametrize(
    ("rows", "shift", "learned"),
    [(slice(0, 150), 0.0, False), (slice(0, 150), 0.6, True), (slice(0, 9), 0.6, False)],
    ids=["many", "drifted", "few"],
)
def test_a_view_is_learned_again_when_it_has_drifted(
    rows: slice, shift: float, learned: bool
) -> None:
    _, labs, _ = tables()
    model = folded()
    noise = np.random.default_rng(5).normal(size=labs.shape) * 0.1
    model.partial_fit((labs + noise + shift * labs.std())[:280][rows], view="labs")
    assert model.delivery_.learned is learned
    if learned:
        assert "learned again" in model.log_["note"].iloc[-1]
    else:
        assert model.delivery_.n_others == 0


def test_a_delivery_of_one_cluster_is_no_drift() -> None:
    classes, labs, _ = tables()
    model = folded()
    for c in range(K):
        model.partial_fit(labs[:280][classes[:280] == c] + 0.05, view="labs")
        assert not model.delivery_.learned


def same_evidence(one: ViewFold, other: ViewFold) -> bool:
    a, b = one._state.gathered(), other._state.gathered()
    order = [pd.Index(state.ids).get_indexer(IDS) for state in (a, b)]
    return np.array_equal(a.evidence[order[0]], b.evidence[order[1]])


@pytest.mark.parametrize("ending", ["vf", "vfd"])
def test_evidence_is_saved(ending: str, tmp_path: Path) -> None:
    model = folded()
    model.save(tmp_path / f"s.{ending}")
    again = viewfold.load(tmp_path / f"s.{ending}")
    assert same_evidence(model, again)
    assert model._state.evidence.dtype == np.int8
    assert model._state.evidence.shape[1] == 2 * (K - 1)  # k − 1 bytes for each view
    _, labs, _ = tables()
    for each in (model, again):
        each.partial_fit(labs[50:60] + 0.5, view="labs")
    order = [pd.Index(each.ids_).get_indexer(IDS) for each in (model, again)]
    assert np.allclose(model.embedding_[order[0]], again.embedding_[order[1]])


def test_engines_keep_the_same_evidence() -> None:
    local = folded()
    with DiskEngine() as engine, using(engine):
        assert same_evidence(local, folded())


def test_forgotten_samples_have_none_and_other_clusters_keep_it() -> None:
    _, labs, _ = tables()
    model = folded()
    model.forget(IDS[:3]).recluster(3)
    assert model._state.evidence.shape == (297, 2 * 2)
    before = model.embedding_.copy()
    model.partial_fit(labs[100:103] + 0.5, view="labs").partial_fit(labs[100:103], view="labs")
    assert np.linalg.norm(model.embedding_ - before) < 0.05 * np.linalg.norm(before)


def test_a_private_state_has_none() -> None:
    assert (folded(keep_encoders=False)._state.evidence == -128).all()


# -- refresh


def test_refresh_replaces_a_view() -> None:
    classes, labs, _ = tables()
    model = folded()
    with pytest.warns(DeliveryWarning, match="times the usual"):
        model.refresh(labs[10:] * 100, view="labs")  # another unit
    came = model.delivery_
    assert (came.n_new, came.n_late, came.n_corrected, came.learned) == (0, 20, 270, True)
    assert [record.name for record in model.views_] == ["scan", "labs"]
    assert model.log_["what"].iloc[-1] == "refresh"
    frame = model.to_frame()
    assert (frame.loc[IDS[:10], "views_seen"] == 1).all()  # these keep what they had
    assert viewfold.metrics.accuracy(classes, frame.loc[IDS, "cluster"]) > 0.95
    assert (
        model.predict(labs[50:] * 100, view="labs") == frame.loc[IDS[50:], "cluster"]
    ).mean() > 0.8


def test_refresh_adds_no_weight() -> None:
    """Folded as views of other names, the same rows would count again and again."""
    _, labs, _ = tables()
    model, more = folded(), folded()
    before = np.linalg.norm(model.embedding_)
    for i in range(3):
        model.refresh(labs[:280], view="labs")
        more.partial_fit(labs[:280], view=f"labs {i}")
    lengths = [np.linalg.norm(each.embedding_) / before for each in (model, more)]
    assert lengths[0] < 1.3 < lengths[1]


def test_refresh_takes_other_columns() -> None:
    _, labs, _ = tables()
    model = folded().refresh(labs.rename(columns={"c0": "new"}), view="labs")
    assert model.views_[-1].features[0] == "new"


def test_refresh_refuses_what_it_cannot_do() -> None:
    _, labs, _ = tables()
    model = folded()
    before = model.embedding_.copy()
    with pytest.raises(ValueError, match="There is no view 'labz'"):
        model.refresh(labs, view="labz")
    with pytest.raises(ValueError, match="9 rows cannot take the place of the whole view"):
        model.refresh(labs[:9], view="labs")
    assert np.array_equal(model.embedding_, before)
    assert model.refresh(labs[:10], view="labs").views_[-1].encoder is not None
    with pytest.raises(ValueError, match="its encoder is not kept"):
        folded(keep_encoders=False).refresh(labs, view="labs")
