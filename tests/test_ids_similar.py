"""Ids that are almost known are refused, matched or new, as asked; their kind is fixed."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from ids_rows import RECORD, TEXTS, N, folded, rows

from viewfold import FCMVC, as_view
from viewfold.rows import LocalEngine
from viewfold.state.admission import admit
from viewfold.state.state import State

ALMOST = {
    "space after": ("p1", "p1 "),
    "space before": ("p1", "\tp1"),
    "space of another kind": ("p1", "p1\u00a0"),
    "invisible": ("p1", "\ufeffp1"),
    "case": ("p1", "P1"),
    "leading zeros": ("7", "007"),
    "decimals": ("7", "7.0"),
    "sign": ("7", "+7"),
    "composed": ("Zo\u00eb", "Zoe\u0308"),
    "sharp s": ("Strau\u00df", "STRAUSS"),
}


@pytest.mark.parametrize("case", ALMOST)
def test_ids_that_are_almost_known_are_refused_matched_or_new(case: str) -> None:
    known, came = ALMOST[case]
    model = folded([known, *TEXTS[2:]])
    before = model.to_frame()
    again = [came, *TEXTS[2:]]
    message = f"View 'scan': {came!r} in row 0 is almost {known!r}"
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        model.partial_fit(rows(N - 1), ids=again, view="scan")
    assert "similar_ids='match'" in str(error.value)
    assert "similar_ids='new'" in str(error.value)
    pd.testing.assert_frame_equal(model.to_frame(), before)
    model.partial_fit(rows(N - 1), ids=again, view="scan", similar_ids="match")
    assert model.ids_.tolist() == [known, *TEXTS[2:]]
    assert model.views_[-1].n_shared == N - 1
    model.partial_fit(rows(N - 1), ids=again, view="text", similar_ids="new")
    assert model.ids_.tolist() == [known, *TEXTS[2:], came]
    both = [known, *TEXTS[2:], came]  # both are known now
    assert model.partial_fit(rows(N), ids=both, view="more").views_[-1].n_shared == N


@pytest.mark.parametrize("case", ALMOST)
def test_almost_the_same_ids_in_one_view_are_refused_with_their_rows(case: str) -> None:
    one, other = ALMOST[case]
    ids = [*TEXTS[2:], one, other]
    with pytest.raises(ValueError, match=re.escape(f"{other!r} in row 11 is almost {one!r} in ")):
        FCMVC(2).fit(rows(), ids=ids)
    with pytest.raises(ValueError, match="are the same sample, if similar ids are matched"):
        FCMVC(2).fit(rows(), ids=ids, similar_ids="match")
    assert FCMVC(2).fit(rows(), ids=ids, similar_ids="new").ids_.tolist() == ids


@pytest.mark.parametrize("came", ["p01", "p-1", "p 1"])
def test_zeros_and_signs_within_a_text_make_another_sample(came: str) -> None:
    """As docs/faq.md says."""
    model = folded(["p1", *TEXTS[2:]]).partial_fit(rows(N - 1), ids=[came, *TEXTS[2:]], view="b")
    assert model.ids_.tolist() == ["p1", *TEXTS[2:], came]


def test_three_examples_are_shown_and_all_are_counted() -> None:
    with pytest.raises(ValueError, match=re.escape("(12 in all)")) as error:
        folded(TEXTS).partial_fit(rows(), ids=[name.upper() for name in TEXTS])
    assert str(error.value).count("is almost") == 3


def test_rows_are_counted_as_they_came() -> None:
    X = rows()
    X[0] = np.nan  # a sample that the view lacks
    with pytest.raises(ValueError, match="'P5' in row 5 is almost 'p5'"):
        folded(TEXTS).partial_fit(X, ids=[*TEXTS[:5], "P5", *TEXTS[6:]])


def test_matching_needs_one_answer() -> None:
    model = folded(["p1", "P1", *TEXTS[2:]], similar_ids="new")
    with pytest.raises(ValueError, match="'p1 ' may be 'p1' or 'P1'"):
        model.partial_fit(rows(2), ids=["p1 ", "p2"], similar_ids="match")
    with pytest.raises(ValueError, match="'p1' in row 0 and 'p1 ' in row 1 are the same sample"):
        folded(TEXTS).partial_fit(rows(2), ids=["p1", "p1 "], similar_ids="match")


def test_extend_refuses_what_is_almost_known() -> None:
    model = folded(TEXTS)
    with pytest.raises(ValueError, match="'P1' in row 1 is almost 'p1'"):
        model.extend(rows(2), ids=["q1", "P1"])
    assert model.extend(rows(2), ids=["q1", "P1"], similar_ids="new").ids_.size == N + 2


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(ValueError, match="similar_ids='maybe': expected 'refuse', 'match'"):
        folded(TEXTS, similar_ids="maybe")


def test_the_kind_of_ids_is_fixed_by_the_first_view() -> None:
    numbers, texts = list(range(N)), TEXTS
    for first, then, message in [
        (numbers, texts, "ids that are texts ('p0'), but the samples folded so far have whole num"),
        (texts, numbers, "ids that are whole numbers (0), but the samples folded so far have text"),
        (numbers, [*numbers[1:], "x"], "ids that are texts ('x')"),
    ]:
        model = folded(first)
        for way in ("refuse", "new"):
            with pytest.raises(ValueError, match=re.escape(message)):
                model.partial_fit(rows(), ids=then, view="scan", similar_ids=way)
        with pytest.raises(ValueError, match="but the samples folded so far have"):
            model.extend(rows(2), ids=["y", "z"] if first is numbers else [90, 91])
        assert model.ids_.tolist() == first


def test_mixed_ids_stay_mixed() -> None:
    model = folded([*range(6), *TEXTS[6:]])
    model.partial_fit(rows(), ids=[*range(6), *TEXTS[6:]], view="scan")
    assert model.extend(rows(2), ids=[77, "q"], view="labs").ids_.size == N + 2


def test_numbers_are_matched_with_texts_and_take_their_kind() -> None:
    model = folded([str(i) for i in range(N)])
    with pytest.raises(ValueError, match="3 in row 0 is almost '3'") as error:
        model.partial_fit(rows(), ids=range(3, 3 + N), view="scan")
    assert "similar_ids='new'" not in str(error.value)  # it would not help
    model.partial_fit(rows(), ids=range(3, 3 + N), view="scan", similar_ids="match")
    assert model.ids_.tolist() == [str(i) for i in range(N + 3)]
    model = folded(np.arange(N))
    model.partial_fit(rows(), ids=[f"{i:03}" for i in range(3, 3 + N)], similar_ids="match")
    assert model.ids_.tolist() == list(range(N + 3))
    assert model.ids_.dtype == np.int64


def test_too_few_known_samples_are_refused() -> None:
    model = folded(TEXTS)
    ids = [*TEXTS[:3], *(f"q{i}" for i in range(9))]
    for least, fine in ((3, True), (4, False), (0.25, True), (0.26, False), (0, True)):
        fresh = folded(TEXTS)
        if fine:
            assert fresh.partial_fit(rows(), ids=ids, min_shared=least).views_[-1].n_shared == 3
        else:
            with pytest.raises(ValueError, match="3 of its 12 samples are known, fewer than asked"):
                fresh.partial_fit(rows(), ids=ids, min_shared=least)
            pd.testing.assert_frame_equal(fresh.to_frame(), model.to_frame())
    upper = [name.upper() for name in TEXTS]
    model.partial_fit(rows(), ids=upper, similar_ids="match", min_shared=1.0)
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match=r"min_shared=.*expected"):
            model.partial_fit(rows(), ids=ids, min_shared=wrong)


def test_ids_are_looked_at_only_if_texts_are_new(monkeypatch) -> None:
    for room in ("data.ids", "state.admission"):
        monkeypatch.setattr(f"viewfold.{room}.normal_forms", lambda ids: pytest.fail("looked at"))
    X = np.random.default_rng(0).normal(size=(N, 4))
    for ids in (np.array(TEXTS, object), np.arange(N)):
        column = np.zeros((N, 1), np.int32)
        kept = (column, ids, column, column, column[:, 0])  # history, and what is kept of rows
        state = State(ids, X, X[:, :1] > 9, *kept, views=(RECORD,))
        later = ids[::-1] if ids.dtype == object else ids + 5
        admitted = admit(LocalEngine(), state, as_view(X, ids=later))
        assert admitted.ids.tolist() == later.tolist()
