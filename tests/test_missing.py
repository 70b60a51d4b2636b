"""Patterns of missing samples: exact counts, nobody lost, masks that take samples out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewfold import missing


@given(
    n=st.integers(5, 60),
    views=st.integers(1, 5),
    ratio=st.floats(0, 0.9),
    seed=st.integers(0, 99),
    rule=st.sampled_from([missing.by_paper_rule, missing.at_random]),
)
def test_patterns_have_exact_counts_and_lose_nobody(n, views, ratio, seed, rule) -> None:
    try:
        gone = rule(n, views, ratio, seed)
    except ValueError as error:
        assert "ratio" in str(error)  # noqa: PT017
        assert round(ratio * n) > 0
        if rule is missing.at_random:
            assert round(ratio * n) * views > n * (views - 1)
        return
    assert gone.shape == (n, views)
    count = gone[:, 0].sum()
    assert (gone.sum(axis=0) == count).all()
    assert abs(count - ratio * n) <= 0.5  # half of an odd number may be rounded either way
    assert not gone.all(axis=1).any()
    assert np.array_equal(gone, rule(n, views, ratio, seed))


@pytest.mark.parametrize("rule", [missing.by_paper_rule, missing.at_random])
@pytest.mark.parametrize("n", [5, 7, 1051])
def test_two_views_of_an_odd_number_of_samples_lack_just_less_than_half(n, rule) -> None:
    gone = rule(n, 2, 0.5, 0)
    assert gone.sum(axis=0).tolist() == [n // 2] * 2
    assert not gone.all(axis=1).any()


def test_masks_take_samples_out() -> None:
    X = np.arange(10.0).reshape(5, 2)
    gone = np.zeros((5, 2), bool)
    gone[1, 0] = gone[3:, 1] = True
    a, b = missing.by_mask([X, X], gone, ids=list("abcde"))
    assert list(a.ids) == list("acde")
    assert list(b.ids) == list("abc")
    assert np.array_equal(np.vstack([block for _, block in b.rows.blocks()]), X[:3])
    already = X.copy()
    already[0] = np.nan
    assert list(missing.by_mask({"x": already}, gone[:, :1])[0].ids) == [2, 3, 4]
    with pytest.raises(ValueError, match="missing has shape"):
        missing.by_mask([X], gone)
    with pytest.raises(ValueError, match="leaves no sample in view 'view0'"):
        missing.by_mask([X], np.ones((5, 1), bool))
    with pytest.raises(ValueError, match="ratio must be"):
        missing.at_random(5, 2, 1.0)
