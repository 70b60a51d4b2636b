"""A sample is in a state once: whatever the engine, the kind of state and how its id is written."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import viewfold
from viewfold import ViewFold
from viewfold.rows import DiskEngine, LocalEngine, bucket_files, normal, using
from viewfold.rows.bucket_files import bucket_of
from viewfold.store.models import state_of

X = np.random.default_rng(0).normal(size=(60, 4))
START = {"18 digits": 10**18 - 60, "19 digits": 10**18, "the largest": 2**63 - 60}
START |= {"negative": -(10**18) - 60, "the smallest": -(2**63)}
FARTHEST = ["19 digits", "the largest", "the smallest"]


def texts(ids: np.ndarray) -> np.ndarray:
    return ids.astype(str).astype(object)


@pytest.mark.parametrize(
    ("start", "engine", "texts_first"),
    [
        *((start, LocalEngine, i % 2 == 0) for i, start in enumerate(START)),
        *((start, partial(DiskEngine, 6), start == "19 digits") for start in FARTHEST),
    ],
)
def test_long_numbers_and_their_texts_are_the_same_samples(
    engine: Any, start: str, texts_first: bool, tmp_path: Path
) -> None:
    ids = START[start] + np.arange(60)
    order = (texts(ids), ids) if texts_first else (ids, texts(ids))
    with using(engine()):
        model = ViewFold(2, random_state=0)
        for name, mine in zip("ab", order, strict=True):
            model.partial_fit(X, view=name, ids=mine, similar_ids="match")
        assert model.ids_.size == 60
        with using(DiskEngine(6)):  # of rows that are in no buckets yet
            for name in ("p.vf", "p.vfd"):
                model.save(tmp_path / name)
    for name in ("p.vf", "p.vfd"):
        assert viewfold.verify(tmp_path / name).whole
        assert viewfold.forget(tmp_path / name, [str(ids[7])]).ids_.size == 59


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**19])
def test_texts_of_numbers_that_64_bits_do_not_hold_have_a_bucket(number: int) -> None:
    one, other = bucket_of(np.array([str(number), f"0{number}".replace("0-", "-0")], object), 1000)
    assert one == other


@pytest.mark.parametrize("kind", ["numbers", "texts", "both"])
@pytest.mark.parametrize("ending", ["vf", "vfd"])
@pytest.mark.parametrize("bucket", ["the same", "another"])
def test_verify_finds_a_sample_that_is_there_twice(
    ending: str, kind: str, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "both" and ending == "vfd":
        pytest.skip("buckets hold ids of one kind")
    ids: Any = np.arange(60) if kind == "numbers" else texts(np.arange(60))
    if kind == "both":
        ids[::2] = list(range(0, 60, 2))
    model = ViewFold(2, random_state=0).fit(X, ids=ids.tolist())
    path = tmp_path / f"p.{ending}"
    state = state_of(model)
    twice = state.ids.copy()
    twice[3] = twice[4] = twice[5]
    if ending == "vfd" and bucket == "another":  # row by row, whatever the ids are
        placed = replace(state, ids=ids).placed(DiskEngine(4))
        parts = list(placed.ids.parts)
        full = [i for i, part in enumerate(parts) if part.n > 2]
        held = parts[full[1]].open()
        held[0] = parts[full[0]].open()[0]
        parts[full[1]] = Held(held)
        monkeypatch.setattr(
            viewfold.store.models,
            "state_of",
            lambda _: replace(placed, ids=replace(placed.ids, parts=tuple(parts))),
        )
    else:
        monkeypatch.setattr(viewfold.store.models, "state_of", lambda _: replace(state, ids=twice))
    model.save(path)
    (problem,) = viewfold.verify(path).problems
    assert "two samples have one id" in problem or "samples of other buckets" in problem


class Held:
    """Rows of a bucket that are in memory."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows, self.n = rows, len(rows)

    def open(self) -> np.ndarray:
        return self.rows


def elsewhere(ids: Any, n_buckets: int) -> Any:
    """Put texts of 19 digits into other buckets than the numbers that they are."""
    long = np.array([isinstance(one, str) and len(one) > 18 for one in ids.tolist()])
    return np.asarray((normal.hashed(ids) + long.astype(np.uint64)) % np.uint64(n_buckets), np.intp)


@pytest.mark.filterwarnings("ignore:The samples are in 2 groups")
@pytest.mark.parametrize("n_long", [1, 60])
def test_a_folder_with_samples_in_other_buckets_is_found(n_long: int, tmp_path: Path) -> None:
    path, ids = tmp_path / "p.vfd", np.arange(60)
    ids[:n_long] += 10**18 + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bucket_files, "bucket_of", elsewhere)
        with using(DiskEngine(4)):
            model = ViewFold(2, random_state=0).partial_fit(X, view="a", ids=texts(ids))
            model.partial_fit(X, view="b", ids=ids, similar_ids="match").save(path)
    assert model.ids_.size > 60
    (problem,) = viewfold.verify(path).problems
    assert "samples of other buckets" in problem
