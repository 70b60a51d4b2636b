"""Novelty: rows that are unlike all known ones, and groups of them that were planted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

import viewfold
from viewfold import ViewFold
from viewfold.errors import DeliveryWarning
from viewfold.rows import DiskEngine
from viewfold.state.novelty import LEARNED, to_levels, to_share, to_surprise

# A group that nobody has seen is a delivery that nobody expects.
pytestmark = pytest.mark.filterwarnings("ignore::viewfold.errors.DeliveryWarning")

K, WIDTHS = 4, (6, 8)


def world(seed: int):
    """Return what draws samples of the clusters 0 to K − 1, and of a group K nobody has seen."""
    rng = np.random.default_rng(seed)
    centers = [3 * rng.normal(size=(K + 1, width)) for width in WIDTHS]

    def draw(y: np.ndarray, name: str) -> dict[str, pd.DataFrame]:
        ids = [f"{name}{i}" for i in range(len(y))]
        return {
            f"v{i}": pd.DataFrame(c[y] + rng.normal(size=(len(y), c.shape[1])), ids).add_prefix("c")
            for i, c in enumerate(centers)
        }

    return rng, draw


def deliver(model: ViewFold, views: dict[str, pd.DataFrame]) -> ViewFold:
    for name, rows in views.items():
        model.partial_fit(rows, view=name)
    return model


def taught(seed: int = 0, **options):
    rng, draw = world(seed)
    options = {"random_state": 0, "n_init": 2} | options
    model = deliver(ViewFold(K, **options), draw(rng.integers(K, size=400), "a"))
    return rng, draw, model


def test_known_rows_are_as_unlike_as_they_should_and_others_are_more() -> None:
    rng, draw, model = taught()
    known = draw(rng.integers(K, size=400), "b")["v0"]
    shuffled = known.apply(lambda column: rng.permutation(column.to_numpy()))
    usual, other = (
        model.predict_frame(rows, view="v0")["novelty"].to_numpy() for rows in (known, shuffled)
    )
    assert usual.min() >= 0
    assert usual.max() < 1
    assert 0.05 < np.mean(usual > 0.9) < 0.2
    assert np.mean(usual > 0.99) < 0.04
    truth = np.repeat([0, 1], 400)
    assert roc_auc_score(truth, np.append(usual, other)) > 0.9
    assert model.to_frame()["novelty"].between(0, 1).all()


@pytest.mark.parametrize("share", [0.0, 0.03])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_planted_group_is_told_of_and_a_clean_delivery_is_not(seed: int, share: float) -> None:
    rng, draw, model = taught(seed)
    size = int(share * 500)
    for night in range(2):  # the group comes in two nights
        y = np.append(rng.integers(K, size=40), np.full(size, K))
        deliver(model, draw(y, f"night {night} "))
    events = model.events_
    told = events[events["kind"] == "novel"]
    assert len(told) == model.log_["n_novel"].notna().sum()
    if not share:
        assert told.empty
        return
    assert 0.5 * size <= told["samples"].iloc[0] <= 2.5 * size
    frame = model.to_frame()
    number = frame.index.str.extract(r"night \d (\d+)")[0].astype(float)
    group = (number >= 40).to_numpy()
    assert frame["confidence"][group].median() < 0.3
    assert frame["confidence"][~group].median() > 0.9


def test_a_group_is_told_of_once_and_novel_samples_that_lie_apart_never() -> None:
    rng, draw, model = taught()
    deliver(model, draw(np.full(30, K), "group "))
    assert model.delivery_.n_novel or model.log_["n_novel"].notna().any()
    before = model.log_["n_novel"].count()
    deliver(model, draw(rng.integers(K, size=30), "known "))
    assert model.log_["n_novel"].count() == before
    rng, draw, model = taught()
    noise = pd.DataFrame(12 * rng.normal(size=(40, WIDTHS[0]))).add_prefix("c").rename("n{}".format)
    with pytest.warns(DeliveryWarning):
        model.partial_fit(noise, view="v0")
    assert (model.to_frame().loc[noise.index, "novelty"] > 0.99).mean() > 0.9
    assert model.delivery_.n_novel == 0


def test_confidence_falls_and_the_cluster_is_minus_one_on_request() -> None:
    rng, draw, model = taught()
    rows = draw(np.append(rng.integers(K, size=50), np.full(50, K)), "b")["v1"]
    frame = model.predict_frame(rows, view="v1")
    assert frame["confidence"][:50].median() > 0.9
    assert frame["confidence"][50:].median() < 0.2
    labels = model.predict(rows, view="v1", max_novelty=0.99)
    assert np.array_equal(labels == -1, frame["novelty"] > 0.99)
    assert (labels[50:] == -1).mean() > 0.9
    assert (labels[:50] == -1).mean() < 0.1
    model.partial_fit(rows, view="v1")
    kept = model.to_frame(max_novelty=0.99).loc[rows.index]
    np.testing.assert_allclose(kept["novelty"], frame["novelty"], atol=0.1)
    assert (kept["cluster"][50:] == -1).mean() > 0.9
    with pytest.raises(ValueError, match="max_novelty=2"):
        model.predict(rows, view="v1", max_novelty=2)


def test_a_corrected_row_takes_the_place_of_a_novel_one() -> None:
    _, draw, model = taught()
    rows = draw(np.full(1, 0), "b")["v0"]
    model.partial_fit(100 * rows, view="v0")
    assert model.to_frame().loc["b0", "novelty"] > 0.999
    model.partial_fit(rows, view="v0")
    assert model.to_frame().loc["b0", "novelty"] < 0.999


def test_levels_and_shares_are_the_same_but_for_rounding() -> None:
    share = np.array([0, 0.5, 0.9, 0.999, 1 - 1e-9, np.nan])
    levels = to_levels(-np.log10(1 - share))
    assert levels[-1] == 0
    assert levels[:-1].min() == 1
    assert levels.max() < LEARNED
    np.testing.assert_allclose(to_share(to_surprise(levels)), share, atol=0.1)
    np.testing.assert_array_equal(to_surprise(levels[:-1] + LEARNED), to_surprise(levels[:-1]))


def test_what_is_kept_survives_files_engines_and_forgetting(tmp_path: Path) -> None:
    rng, draw, model = taught()
    later = draw(np.append(rng.integers(K, size=20), np.full(20, K)), "b")
    frame = deliver(model, later).to_frame()
    for name in ("a.vf", "a.vfd"):
        model.save(tmp_path / name)
        loaded = viewfold.load(tmp_path / name)
        pd.testing.assert_frame_equal(loaded.to_frame().loc[frame.index], frame)
        again = loaded.predict_frame(later["v0"], view="v0")
        pd.testing.assert_frame_equal(again, model.predict_frame(later["v0"], view="v0"))
        assert loaded.events_.equals(model.events_)
    rng, draw = world(0)
    first = draw(rng.integers(K, size=400), "a")
    later = draw(np.append(rng.integers(K, size=20), np.full(20, K)), "b")
    with DiskEngine(3) as engine:
        other = ViewFold(K, random_state=0, n_init=2)
        for views in (first, later):
            for name, rows in views.items():
                other.partial_fit(rows, view=name, engine=engine)
        found = other.to_frame().loc[frame.index, "novelty"]
        np.testing.assert_allclose(found, frame["novelty"], atol=0.02)
    left = model.forget(["b0", "a3"]).to_frame()
    pd.testing.assert_series_equal(left["novelty"], frame["novelty"].drop(["b0", "a3"]))


def test_a_private_model_keeps_none() -> None:
    _, _, model = taught(keep_encoders=False)
    assert not model._state.novelty.any()
    assert model.to_frame()["novelty"].isna().all()


@pytest.mark.parametrize("kind", ["counts", "gaps", "categories"])
def test_text_gaps_and_categories_have_novelty(kind: str) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    if kind == "counts":
        many = rng.poisson(0.02 + np.repeat(np.eye(3), 50, axis=1)[y] * 0.2).astype(float)
        rows: object = sparse.csr_array(many[:250])
        known, other = (
            sparse.csr_array(many[250:]),
            sparse.csr_array(rng.permuted(many[250:], axis=1)),
        )
    else:
        table = pd.DataFrame(4 * np.eye(3, 8)[y] + rng.normal(size=(300, 8))).add_prefix("c")
        strange = table.apply(lambda column: rng.permutation(column.to_numpy())) * 1.5
        if kind == "gaps":
            table, strange = (t.mask(rng.random(t.shape) < 0.1) for t in (table, strange))
        else:
            table["ward"], strange["ward"] = np.array(list("xyz"))[y], rng.choice(list("xyz"), 300)
        rows, known, other = table[:250], table[250:], strange[250:]
    model = ViewFold(3, random_state=0, n_init=2).partial_fit(rows, view="v")
    usual, novel = (model.predict_frame(r, view="v")["novelty"].to_numpy() for r in (known, other))
    assert np.isfinite(usual).all()
    assert np.median(novel) > np.median(usual) + 0.2
