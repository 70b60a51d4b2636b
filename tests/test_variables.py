"""Columns of a table are variables: what is loud, what is a logarithm, and what is remembered."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score as ari

import viewfold
from viewfold import ViewFold

N = 900


def clusters(df: pd.DataFrame, k: int, **options: object) -> np.ndarray:
    model = ViewFold(k, random_state=0, **options).partial_fit(df, ids=np.arange(len(df)), view="t")
    return model.labels_


def mixture(seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Return three numbers and a category that tell four groups, and two categories that do not."""
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=N)
    df = pd.DataFrame(
        (2.2 * rng.normal(size=(4, 3)))[y] + rng.normal(size=(N, 3)), columns=[*"abc"]
    )
    known = np.where(rng.random(N) < 0.8, y, rng.integers(4, size=N))
    df["group"] = np.array([*"wxyz"])[known]
    df["colour"] = rng.choice(["red", "green", "blue", "black", "white"], N)
    df["size"] = rng.choice(["s", "m", "l"], N)
    return df, y


def test_useless_categories_do_not_drown_numbers() -> None:
    df, y = mixture()
    numbers = (df[[*"abc"]] - df[[*"abc"]].mean()) / df[[*"abc"]].std()
    rows = np.hstack([numbers, pd.get_dummies(df[["group", "colour", "size"]]).to_numpy(float)])
    found = ari(y, clusters(df, 4))
    assert found > ari(y, KMeans(4, n_init=10, random_state=0).fit_predict(rows)) - 0.03
    assert found > ari(y, clusters(df, 4, scale="zscore")) + 0.2


def test_numbers_with_a_long_tail_become_logarithms_and_the_log_tells_which() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(4, size=N)
    X = (2 * rng.normal(size=(4, 4)))[y] + rng.normal(size=(N, 4))
    df = pd.DataFrame({"income": np.exp(X[:, 0]), "debt": np.exp(X[:, 1]), "age": X[:, 2]})
    df["height"] = X[:, 3]
    model = ViewFold(4, random_state=0).partial_fit(df, ids=np.arange(N), view="t")
    assert model.log_["note"].iloc[-1] == "logarithms of 'income', 'debt'"
    assert ari(y, model.labels_) > ari(y, clusters(df, 4, scale="zscore")) + 0.1
    plain = ViewFold(4, random_state=0).partial_fit(df[["age", "height"]], ids=np.arange(N))
    assert plain.log_["note"].isna().all()


def test_a_tail_that_says_nothing_stays_as_it_is() -> None:
    """A logarithm has to agree better with other columns, not to look more normal."""
    df, _ = mixture()
    df["waiting"] = np.random.default_rng(2).exponential(size=N)
    model = ViewFold(4, random_state=0).partial_fit(df, ids=np.arange(N), view="t")
    assert model.log_["note"].isna().all()


def test_a_few_wild_cells_change_little() -> None:
    df, _ = mixture()
    before = clusters(df, 4)
    wild = df.copy()
    wild.loc[[5, 80, 200], "a"] = [1e6, -1e7, 1e9]
    assert ari(before, clusters(wild, 4)) > 0.95
    assert ari(before, clusters(wild, 4, scale="zscore")) < 0.9


def test_a_number_with_two_values_counts_as_two_levels() -> None:
    df, _ = mixture()
    two = df.drop(columns=["colour", "size"])
    two["smokes"] = np.where(np.random.default_rng(3).random(N) < 0.1, 7.0, 3.0)
    named = two.assign(smokes=np.where(two["smokes"] == 7, "yes", "no"))
    assert ari(clusters(two, 4), clusters(named, 4)) > 0.98


def test_an_array_is_no_table_unless_that_is_said() -> None:
    rng = np.random.default_rng(4)
    X = np.exp(rng.normal(size=(N, 1)) + rng.normal(size=(N, 5)))
    names = pd.DataFrame(X, columns=[*"abcde"])
    assert np.array_equal(clusters(X, 3), clusters(names, 3, scale="zscore"))
    assert np.array_equal(clusters(X, 3, scale="table"), clusters(names, 3))
    assert not np.array_equal(clusters(X, 3), clusters(names, 3))


@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_later_rows_are_on_the_same_scale_also_after_loading(gaps: float, tmp_path: Path) -> None:
    df, _ = mixture(5)
    for name in ("a", "b"):
        df[name] = np.exp(df[name])
    rng = np.random.default_rng(6)
    df = df.mask(rng.random(df.shape) < gaps)
    model = ViewFold(4, random_state=0).partial_fit(df[:700], ids=np.arange(700), view="t")
    expected = model.predict(df[700:], view="t")
    whole = clusters(df, 4)
    assert ari(whole[700:], expected) > 0.85
    model.save(tmp_path / "s.vf")
    assert np.array_equal(viewfold.load(tmp_path / "s.vf").predict(df[700:], view="t"), expected)


@pytest.mark.parametrize("scale", ["auto", "zscore"])
def test_month_and_weekday_are_as_loud_as_one_measurement_each(scale: str) -> None:
    """Dates that say nothing: as z-scores, each would be as loud as five measurements."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=N)
    df = pd.DataFrame((1.7 * rng.normal(size=(4, 4)))[y] + rng.normal(size=(N, 4)))
    df = df.rename(columns=str)
    days = np.datetime64("2021-01-01") + rng.integers(1095, size=(N, 2))
    dated = df.assign(seen=days[:, 0], left=days[:, 1])
    lost = ari(y, clusters(df, 4)) - ari(y, clusters(dated, 4, scale=scale))
    assert (lost < 0.15) == (scale == "auto")


def test_a_season_tells_groups_apart() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=N)
    middle = 120 * y + 365 * rng.integers(3, size=N) + 20 * rng.normal(size=N)
    days = np.datetime64("2021-01-01") + middle.astype(int)
    assert ari(y, clusters(pd.DataFrame({"a": rng.normal(size=N), "day": days}), 3)) > 0.9
