"""Events between steps: planted ones are found, chance is not taken for one, engines agree."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import planted_events as planted
import pytest
from sklearn.metrics import adjusted_mutual_info_score

from viewfold import ViewFold
from viewfold.explain import events
from viewfold.explain.events import ClusterEvent, whole_story
from viewfold.rows import DiskEngine, LocalEngine, block_bytes, using


def told(before: list[int], after: list[int], counts: list[int]) -> list[ClusterEvent]:
    """Return the events at a step; `counts` samples each were here before and there after."""
    history = np.column_stack([np.repeat(before, counts), np.repeat(after, counts)])
    return clusters_in(history, [1, 4], ["labs", "scan"])


def clusters_in(history: np.ndarray, steps: Sequence[int], names: list[str]) -> list[ClusterEvent]:
    """Return what happened to clusters, without how far the labels of steps agree."""
    found = whole_story(LocalEngine(), history, steps, names, ())
    return [event for event in found if event.kind != "step"]


def short(found: list[ClusterEvent]) -> list[tuple]:
    return [(e.kind, e.before, e.after, e.samples, e.share) for e in found]


def test_planted_events_are_found_and_few_others_told() -> None:
    counts = planted.measure(40, seed=7)
    total = Counter(what for what, _ in counts.elements())
    kinds = {kind for what, kind in counts if what == "planted"}
    assert kinds == {"born", "grew", "merged", "renumbered", "shrank", "split", "vanished"}
    assert total["planted"] > 100
    assert total["found"] >= 0.95 * total["planted"]
    assert total["false"] <= 0.01 * total["told"]


def test_streams_hold_what_they_claim() -> None:
    streams = [planted.stream(seed) for seed in range(30)]
    assert any((one.history[:, 0] < 0).any() for one in streams)  # new samples come
    smallest = min(np.bincount(one.history[:, 0][one.history[:, 0] >= 0]).min() for one in streams)
    assert smallest < 2 * planted.SMALLEST
    noisy = planted.stream(3, noise=0.05)
    assert not np.array_equal(noisy.history, planted.stream(3, noise=0.0).history)
    again = planted.stream(3, noise=0.05)
    assert np.array_equal(noisy.history, again.history)
    assert noisy.planted == again.planted


def test_a_number_that_is_used_again_is_another_cluster() -> None:
    # 3 went into 1; a part of 2 has its number.
    found = told([0, 1, 2, 2, 3], [0, 1, 2, 3, 1], [50, 50, 40, 30, 20])
    assert short(found) == [
        ("merged", (1, 3), (1,), 70, 1.0),
        ("split", (2,), (2, 3), 70, 1.0),
    ]
    assert {(e.entry, e.step) for e in found} == {(4, "scan")}


def test_new_samples_are_born_and_scattered_clusters_vanish() -> None:
    found = told([0, 1, 2, 3, 3, 3, -1], [0, 1, 2, 0, 1, 2, 3], [90, 90, 90, 10, 10, 10, 40])
    assert short(found) == [("born", (), (3,), 40, 1.0), ("vanished", (3,), (), 30, 0.3333)]


def test_growth_is_told_beyond_that_of_the_others() -> None:
    everybody = told([0, 1, 2, -1, -1, -1], [0, 1, 2, 0, 1, 2], [60] * 6)
    assert everybody == []
    one = told([0, 1, 2, -1], [0, 1, 2, 2], [60, 60, 60, 50])
    assert short(one) == [("grew", (2,), (2,), 50, 0.8333)]
    moved = told([0, 1, 2, 2], [0, 1, 2, 0], [300, 60, 60, 30])
    assert short(moved) == [("shrank", (2,), (2,), 30, 0.3333)]


def test_small_clusters_and_single_samples_are_no_event() -> None:
    assert told([0, 0, 1, 2], [0, 1, 1, 0], [50, 3, 50, 9]) == []  # nine samples tell nothing
    assert short(told([0, 1, 2], [0, 1, 0], [50, 50, 10])) == [("merged", (0, 2), (0,), 60, 1.0)]
    rng = np.random.default_rng(0)
    labels = rng.integers(5, size=2000)
    noise = np.where(rng.random(2000) < 0.1, rng.integers(5, size=2000), labels)
    history = np.column_stack([labels, noise])
    assert clusters_in(history, [1, 2], ["a", "b"]) == []


def test_what_leaves_every_cluster_alike_is_left_out_of_account() -> None:
    # A twentieth of each cluster is anywhere: of the large one, as much as the new cluster has.
    before = [0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, -1]
    after = [0, 1, 2, 3, 4, 1, 0, 2, 0, 3, 0, 4]
    found = told(before, after, [1900, 25, 25, 25, 25, 57, 3, 57, 3, 57, 3, 20])
    assert short(found) == [("born", (), (4,), 45, 0.4444)]


def test_another_number_of_clusters_is_a_step_too() -> None:
    rng = np.random.default_rng(0)
    X = 9 * np.eye(4)[np.repeat(range(4), 20)] + rng.normal(size=(80, 4))
    model = ViewFold(4, random_state=0).fit({"labs": X}).recluster(3).recluster(4)
    found = model.events_
    assert found.columns.tolist() == [*ClusterEvent.__dataclass_fields__, "said"]
    assert found[["entry", "step", "kind"]].to_numpy().tolist() == [
        [2, "recluster (2)", "step"],
        [2, "recluster (2)", "merged"],
        [3, "recluster (3)", "step"],
        [3, "recluster (3)", "split"],
    ]
    assert found["after"][3] == found["before"][1]  # and back
    (a, b), (into,) = found["before"][1], found["after"][1]
    assert found["said"][1] == f"clusters {a} and {b} merged into {into} (40 samples)"
    assert found["said"][3] == f"cluster {into} split into {a} and {b} (40 samples)"
    assert found["survival"].tolist() == [1, 1, 0.75, 0.5]
    history = model.history_.to_numpy()
    expected = [adjusted_mutual_info_score(history[:, i], history[:, i + 1]) for i in (0, 1)]
    assert found["agreement"].dropna().tolist() == pytest.approx(expected, abs=1e-4)
    assert ViewFold(4).fit({"labs": X}).events_.empty


@pytest.mark.parametrize("n_buckets", [1, 7])
def test_events_do_not_depend_on_where_rows_are(n_buckets: int) -> None:
    rng = np.random.default_rng(1)
    y = np.repeat(range(3), 40)
    tables = [pd.DataFrame(6 * np.eye(3, d)[y] + rng.normal(size=(120, d))) for d in (4, 5)]
    for table in tables:
        table.index = [f"p{i}" for i in range(120)]
    plain, buckets = (ViewFold(4, random_state=0) for _ in range(2))
    plain.partial_fit(tables[0], view="labs").recluster(3).partial_fit(tables[1], view="scan")
    with using(DiskEngine(n_buckets)):
        buckets.partial_fit(tables[0], view="labs").recluster(3)
        buckets.partial_fit(tables[1], view="scan")
    assert len(plain.events_)
    pd.testing.assert_frame_equal(buckets.events_, plain.events_)


def test_agreement_of_very_many_samples_is_that_of_their_shares(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    before = rng.integers(5, size=5000)
    after = np.where(rng.random(5000) < 0.2, rng.integers(5, size=5000), before)
    history = np.column_stack([before, after])
    (step,) = whole_story(LocalEngine(), history, [1, 2], ["a", "b"], ())
    monkeypatch.setattr(events, "MOST_COMPARED", 1000)
    (few,) = whole_story(LocalEngine(), history, [1, 2], ["a", "b"], ())
    assert few.agreement == pytest.approx(step.agreement, abs=0.01)
    assert step.survival == pytest.approx(np.mean(before == after), abs=1e-4)
    assert step.samples == np.count_nonzero(before != after)
    assert not whole_story(LocalEngine(), history[:, :1].repeat(2, axis=1), [1, 2], ["", ""], ())


def test_block_size_does_not_change_events() -> None:
    history = planted.stream(11).history
    steps = range(history.shape[1])
    whole = clusters_in(history, steps, [""] * len(steps))
    with block_bytes(4 * history.shape[1] * 16):
        pieces = clusters_in(history, steps, [""] * len(steps))
    assert whole
    assert pieces == whole
