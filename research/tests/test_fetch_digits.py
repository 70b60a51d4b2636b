"""The numerals of the UCI repository are checked before they are handed out."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from conftest import SHARED

from viewfold_research.datasets import _uci, fetch_uci_digits


@pytest.fixture(scope="module")
def right_kind() -> dict[int, tuple[pd.DataFrame, pd.Series]]:
    """Sets of the right shapes with the classes 1 to 10, by their numbers on OpenML."""
    rng = np.random.default_rng(0)
    classes = pd.Series(np.repeat(np.arange(1, 11), 200).astype(str), dtype="category")
    made = {}
    for number, features in _uci._VIEWS.values():
        X = pd.DataFrame(rng.normal(size=(2000, features)))
        if number == 20:  # declared as categories
            X = X.round().astype(int).astype(str).astype("category")
        made[number] = X, classes
    return made


class OpenML:
    """Stands in for scikit-learn's fetch_openml."""

    def __init__(self, sets: dict[int, tuple[pd.DataFrame, pd.Series]]) -> None:
        self.sets = {n: SimpleNamespace(data=X.copy(), target=y) for n, (X, y) in sets.items()}

    def __call__(self, *, data_id: int, **_: object) -> SimpleNamespace:
        return self.sets[data_id]


@pytest.fixture
def openml(right_kind, monkeypatch: pytest.MonkeyPatch) -> OpenML:
    found = OpenML(right_kind)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", found)
    return found


def test_six_views_of_numerals_are_fetched_as_numbers(openml: OpenML) -> None:
    digits = fetch_uci_digits(verify=False)
    widths = {name: X.shape[1] for name, X in digits.views.items()}
    assert list(widths.values()) == [216, 76, 64, 240, 47, 6]
    assert {X.dtype for X in digits.views.values()} == {np.dtype(float)}
    assert np.array_equal(digits.target, np.repeat(np.arange(10), 200))
    assert np.array_equal(digits.views["pixel"], openml.sets[20].data.astype(int))


def test_numerals_that_are_not_those_known_are_refused(openml: OpenML) -> None:
    with pytest.raises(ValueError, match=r"'factors' .* digest .*clear_data_home"):
        fetch_uci_digits()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda s: setattr(s, "data", s.data.iloc[:, 1:]), r"has shape \(2000, 63\), not"),
        (lambda s: setattr(s, "data", s.data.iloc[1:]), r"has shape \(1999, 64\), not"),
        (lambda s: setattr(s, "target", s.target[::-1]), "has other classes than factors"),
        (lambda s: s.data.__setitem__(3, "?"), "has values that are not numbers"),
    ],
)
def test_numerals_of_the_wrong_kind_are_refused(openml: OpenML, damage, message: str) -> None:
    damage(openml.sets[16])
    with pytest.raises(ValueError, match=f"'karhunen'.*{message}"):
        fetch_uci_digits(verify=False)


def real_values(openml: OpenML) -> None:
    path = SHARED / "data" / "uci-digit.npz"
    if not path.exists():
        pytest.skip("the shared data sets are not here")
    with np.load(path) as file:
        for v, number in enumerate((12, 14, 16)):
            openml.sets[number].data = pd.DataFrame(file[f"view_{v}"])


def test_the_real_numerals_pass_with_eight_decimals_or_six(openml: OpenML) -> None:
    real_values(openml)
    fetch_uci_digits()
    for number in (14, 16):
        openml.sets[number].data = openml.sets[number].data.round(6)
    fetch_uci_digits()


@pytest.mark.parametrize(("number", "name"), [(12, "factors"), (14, "fourier"), (16, "karhunen")])
def test_real_numerals_in_another_order_do_not_pass(openml: OpenML, number: int, name: str) -> None:
    real_values(openml)
    held = openml.sets[number]
    order = np.arange(2000)
    order[[3, 150]] = 150, 3  # of the same digit
    held.data = held.data.iloc[order].reset_index(drop=True)
    with pytest.raises(ValueError, match=name):
        fetch_uci_digits()
