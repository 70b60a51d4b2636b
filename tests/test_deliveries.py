"""Deliveries are compared with what a view looked like: what is odd is told, and nothing else."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import viewfold
from commands import Run, runner
from viewfold import DeliveryWarning, ViewFold
from viewfold.data.expected import (
    TRAITS,
    Tally,
    choose_cuts,
    count_cells,
    distance_of,
    drift_of,
    find_oddities,
    learn_profile,
)
from viewfold.rows import DiskEngine, LocalEngine, Rows

ENGINE = LocalEngine()
COLUMNS = ["temperature", "amount", "balance", "visits", "weight", "share"]


class Shop:
    """Customers of four segments: a table of numbers and a category, and a second table."""

    def __init__(self, seed: int = 0, n: int = 400) -> None:
        self.rng = np.random.default_rng(seed)
        self.segment = self.rng.integers(4, size=n)
        self.means = self.rng.normal(scale=1.5, size=(4, 6))
        self.noise = self.rng.normal(size=(n, 6))
        self.ids = np.array([f"c{i:03}" for i in range(n)])

    def table(self, who: np.ndarray) -> pd.DataFrame:
        z = self.means[self.segment[who]] + self.noise[who]
        values = {
            "temperature": 15 + 4 * z[:, 0],
            "amount": 50 * np.exp(0.5 * z[:, 1]),
            "balance": 30 * z[:, 2],
            "visits": np.round(12 + 3 * z[:, 3]),
            "weight": 70 + 5 * z[:, 4],
            "share": z[:, 5],
        }
        frame = pd.DataFrame(values, self.ids[who])
        frame["plan"] = np.array(["basic", "plus", "pro", "free"])[self.segment[who]]
        return frame

    def night(self, size: int = 60, segments: tuple[int, ...] = (0, 1, 2, 3)) -> pd.DataFrame:
        pool = np.flatnonzero(np.isin(self.segment, segments))
        who = self.rng.choice(pool, min(size, pool.size), replace=False)
        self.noise[who] += 0.2 * self.rng.normal(size=(who.size, 6))
        return self.table(who)


@pytest.fixture(scope="module")
def shop() -> Shop:
    return Shop()


@pytest.fixture(scope="module")
def model(shop: Shop) -> ViewFold:
    first = np.flatnonzero(np.arange(400) % 10 < 8)
    return ViewFold(4, random_state=0).partial_fit(shop.table(first), view="table")


def told(model: ViewFold, rows: Any, view: str = "table", **more: Any) -> list[DeliveryWarning]:
    """Return what is said of rows, with the model left as it is."""
    other = model._snapshot()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        other.partial_fit(rows, view=view, **more)
    return [one.message for one in caught if issubclass(one.category, DeliveryWarning)]


def in_cents(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return rows.assign(amount=rows["amount"] * 100)


def in_thousands(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return rows.assign(balance=rows["balance"] / 1000)


def in_fahrenheit(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return rows.assign(temperature=rows["temperature"] * 1.8 + 32)


def of_other_sign(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return rows.assign(share=-rows["share"])


def swapped(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return rows.assign(weight=rows["amount"], amount=rows["weight"])


def shuffled(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return rows.set_axis(rng.permutation(rows.index))


def sorted_alone(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return rows.assign(balance=np.sort(rows["balance"]))


def half_missing(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return rows.assign(weight=rows["weight"].where(rng.random(len(rows)) < 0.5))


def half_empty(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return rows.where(rows.index.isin(rows.index[::2]).repeat(7).reshape(-1, 7))


def of_other_levels(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return rows.assign(plan=rows["plan"].str.upper())


def written_twice(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return pd.concat([rows, rows.rename(lambda name: f"{name} (2)")])


def with_zeros(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return rows.assign(visits=0.0)


def stuck(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return rows.assign(weight=rows["weight"].iloc[0])


FAULTS = {
    in_cents: ("values", "amount"),
    in_thousands: ("values", "balance"),
    in_fahrenheit: ("values", "temperature"),
    of_other_sign: ("sign", "share"),
    swapped: ("values", "weight"),
    shuffled: ("shuffled", None),
    sorted_alone: ("shuffled", "balance"),
    half_missing: ("missing", "weight"),
    half_empty: ("absent", None),
    of_other_levels: ("levels", "plan"),
    written_twice: ("twins", None),
    with_zeros: ("values", "visits"),
    stuck: ("values", "weight"),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_told_with_its_column(
    shop: Shop, model: ViewFold, fault: Callable[..., pd.DataFrame]
) -> None:
    kind, column = FAULTS[fault]
    (warning,) = told(model, fault(shop.night(), np.random.default_rng(1)))
    found = {(one.kind, one.column) for one in warning.comparison.findings}
    assert (kind, column) in found, str(warning)
    assert warning.view == "table"
    assert column is None or repr(column) in str(warning)


def test_clean_nights_and_nights_of_one_segment_are_not_told() -> None:
    shop = Shop(7)
    model = ViewFold(4, random_state=0).partial_fit(shop.table(np.arange(300)), view="table")
    for i in range(12):
        segments = ((0, 1, 2, 3), (i % 4,), (i % 4, (i + 1) % 4))[i % 3]
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeliveryWarning)
            model.partial_fit(shop.night((5, 40, 150)[i // 3 % 3], segments), view="table")
    assert model.delivery_.comparison.findings == ()


def test_corrected_rows_of_categories_alone_are_not_told(shop: Shop) -> None:
    everybody = np.arange(len(shop.ids))
    plans = shop.table(everybody)[["plan"]]
    model = ViewFold(4, random_state=0).partial_fit(plans, view="plans")
    model.partial_fit(shop.table(everybody)[COLUMNS], view="numbers")
    some = plans.iloc[::3].copy()
    some["plan"] = some["plan"].where(np.arange(len(some)) % 5 > 0, "free")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeliveryWarning)
        model.partial_fit(some, view="plans")
    assert model.delivery_.n_corrected


def test_rows_of_another_view_look_like_it(shop: Shop) -> None:
    numbers = shop.table(np.arange(200)).drop(columns="plan")
    other = 1000 + 7 * np.random.default_rng(0).normal(size=(200, 6))
    views = {"table": numbers.to_numpy(), "meter": other}
    model = ViewFold(4, random_state=0).fit(views, ids=[shop.ids[:200]] * 2)
    (warning,) = told(model, other[:50] + 0.5, ids=shop.ids[:50])
    assert "look like view 'meter'" in str(warning)
    assert warning.comparison.resembles == "meter"
    assert "'column " in str(warning)  # columns without names have numbers


def test_a_part_that_comes_again_is_told_and_a_whole_view_is_not(
    shop: Shop, model: ViewFold
) -> None:
    first = shop.table(np.flatnonzero(np.arange(400) % 10 < 8))
    model = ViewFold(4, random_state=0).partial_fit(first, view="table")
    (warning,) = told(model, first.iloc[:200])
    assert [one.kind for one in warning.comparison.findings] == ["repeated"]
    assert not told(model, first)
    assert not told(model, first.iloc[:9])


def test_an_error_leaves_the_model_as_it_was(shop: Shop, model: ViewFold) -> None:
    state = model._state
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeliveryWarning)
        with pytest.raises(DeliveryWarning, match="amount"):
            model.partial_fit(in_cents(shop.night(), shop.rng), view="table")
        new = in_cents(shop.night(), shop.rng).rename("new {}".format)
        with pytest.raises(DeliveryWarning, match="amount"):
            model.extend(new, view="table")
    assert model._state is state


def test_a_fault_now_and_then_stays_one_and_what_keeps_coming_is_expected(shop: Shop) -> None:
    model = ViewFold(4, random_state=0).partial_fit(shop.table(np.arange(300)), view="table")
    said = []
    for _ in range(16):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.partial_fit(in_fahrenheit(shop.night(100), shop.rng), view="table")
        said.append(any(issubclass(one.category, DeliveryWarning) for one in caught))
    assert said[0]
    assert said[1]
    assert not said[-1]


def with_a_dial(shop: Shop, frame: pd.DataFrame) -> pd.DataFrame:
    """Add a column that is measured anew each time: nothing of it stays with a sample."""
    dial = shop.means[shop.rng.permutation(shop.segment)[: len(frame)], 0]
    return frame.assign(dial=dial + 0.1 * shop.rng.normal(size=len(frame)))


def told_by_night(model: ViewFold, nights: list[pd.DataFrame]) -> list[set[str | None]]:
    told = []
    for night in nights:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeliveryWarning)
            model.partial_fit(night, view="table")
        comparison = model.delivery_.comparison
        assert comparison is not None
        told.append({one.column for one in comparison.findings})
    return told


def test_a_column_that_is_measured_anew_each_night_is_told_once_and_does_not_hinder_learning() -> (
    None
):
    shop = Shop(3)
    first = shop.table(np.arange(400))
    first["dial"] = shop.means[shop.segment, 0] + 0.1 * shop.rng.normal(size=400)
    model = ViewFold(4, random_state=0).partial_fit(first, view="table")
    told = told_by_night(model, [with_a_dial(shop, shop.night(120)) for _ in range(4)])
    assert "dial" in told[0]
    assert not any("dial" in columns for columns in told[1:])
    night = with_a_dial(shop, shop.night(120))
    swapped = night.assign(balance=night["share"] * 30, share=night["balance"] / 30)
    assert told_by_night(model, [swapped]) == [{"balance", "share"}]  # the others are watched
    numbers = COLUMNS
    drifted = with_a_dial(shop, shop.night(120))
    drifted[numbers] += 0.8 * first[numbers].std()
    drifted["dial"] = drifted["dial"].sample(frac=1, random_state=0).to_numpy()
    told_by_night(model, [drifted])
    assert model.delivery_.learned


def test_a_few_rows_without_rare_levels_have_not_drifted() -> None:
    rng = np.random.default_rng(0)
    rare = (rng.random((4000, 30)) < 0.03).astype(float)
    cluster = np.zeros(4000, int)
    profile = learn_profile(ENGINE, Rows(rare), rare[:500], cluster, 1, 0)
    assert profile is not None

    def far(rows: np.ndarray) -> float:
        return distance_of(profile, profile.tally(ENGINE, Rows(rows))).total

    for i in range(20):
        assert far(rare[50 * i : 50 * i + 50]) < 0.25
    assert far((rng.random((400, 30)) < 0.15).astype(float)) > 0.25


def test_profiles_survive_files_engines_and_undo(shop: Shop, tmp_path: Path) -> None:
    rows, more = shop.table(np.arange(300)), shop.night()

    def fields(model: ViewFold) -> dict[str, np.ndarray]:
        profile = model.views_[0].profile
        assert profile is not None
        return vars(profile)

    model = ViewFold(4, random_state=0).partial_fit(rows, view="table")
    before = fields(model)
    model.save(tmp_path / "shop.vf")
    with viewfold.edit(tmp_path / "shop.vf") as edited:
        edited.partial_fit(more, view="table")
    after = fields(viewfold.load(tmp_path / "shop.vf"))
    assert after["counts"][1:3].tolist() == [len(more), 1]
    assert not np.array_equal(after["usual"], before["usual"])
    viewfold.undo(tmp_path / "shop.vf")
    again = fields(viewfold.load(tmp_path / "shop.vf"))
    for name, values in before.items():
        np.testing.assert_array_equal(again[name], values)
    with DiskEngine() as engine:
        other = ViewFold(4, random_state=0).partial_fit(rows, view="table", engine=engine)
        other.partial_fit(more, view="table")
        other.save(tmp_path / "shop.vfd")
        for name, values in fields(other).items():
            np.testing.assert_allclose(values, after[name], rtol=1e-6, atol=1e-9)
    other = viewfold.load(tmp_path / "shop.vfd")
    assert told(other, in_cents(shop.night(), shop.rng))


def test_private_models_and_small_views_keep_no_profile(shop: Shop) -> None:
    rows = shop.table(np.arange(60))
    for n, kept in ((60, True), (10, True), (9, False)):
        views = {"all": rows, "few": rows.iloc[:n]}
        model = ViewFold(2, random_state=0).fit(views)
        assert (model.views_[1].profile is not None) is kept
    private = ViewFold(2, random_state=0, keep_encoders=False).fit({"all": rows})
    assert private.views_[0].profile is None


def test_a_forgotten_level_leaves_the_profile() -> None:
    shop = Shop(3, 60)
    rows = shop.table(np.arange(60))
    rows.loc[rows.index[:2], "plan"] = "rare"
    model = ViewFold(3, random_state=0).partial_fit(rows, view="table")
    at = model.views_[0].features.index("plan=rare")
    assert model.views_[0].profile.usual[:, at].any()
    with pytest.warns(UserWarning, match="no longer known"):
        model.forget(rows.index[:2])
    assert not model.views_[0].profile.usual[:, at].any()
    assert not told(model, shop.night(30).iloc[:, :7])


# -- shares, cuts and distances


def profile_of(X: Any, labels: np.ndarray | None = None, k: int = 1) -> Any:
    labels = np.zeros(X.shape[0], int) if labels is None else labels
    return learn_profile(ENGINE, Rows(X), X, labels, k, 0)


def test_sparse_and_dense_rows_have_the_same_counts() -> None:
    rng = np.random.default_rng(0)
    X = sparse.random_array((200, 40), density=0.3, rng=rng, format="csr")
    X.data = np.where(rng.random(X.data.size) < 0.1, np.nan, np.round(X.data * 9) - 2)
    labels = rng.integers(3, size=200)
    cuts = choose_cuts(X)
    np.testing.assert_allclose(cuts, choose_cuts(X.toarray()))
    thin = count_cells(ENGINE, Rows(X), cuts, labels, 3)
    full = count_cells(ENGINE, Rows(X.toarray()), cuts, labels, 3)
    for one, other in zip(thin, full, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_a_quantile_is_of_ten_cells_and_a_column_of_fewer_has_none() -> None:
    X = np.arange(40.0).reshape(10, 4)
    X[:, 1] = 7
    X[0, 2] = np.nan  # nine are left
    X[0, 3] = -1e9
    cuts = choose_cuts(X)
    assert np.isclose(cuts[:, 1], 7, rtol=1e-5).all()
    assert np.abs(cuts[:, 2]).min() > 1e300
    middle = cuts[1:3, 0].mean()
    assert middle == pytest.approx(X[:, 0].mean())  # of ten cells, the mean of all
    assert cuts[1:3, 3].mean() == pytest.approx(X[:, 3].mean())


def test_amounts_over_orders_of_magnitude_are_cut_by_factors() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([np.exp(rng.normal(size=2000)), rng.normal(size=2000)])
    below, _, _, above = choose_cuts(X)
    assert below[0] == pytest.approx(np.exp(-3), rel=0.3)
    assert above[0] == pytest.approx(np.exp(3), rel=0.3)
    assert below[1] == pytest.approx(-3, rel=0.15)


def test_a_share_warns_beyond_what_differs_by_chance() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 1))
    profile = profile_of(X)
    negative = TRAITS.index("negative")

    def odd(n_negative: int, m: int) -> bool:
        counts = np.array(profile.usual, float) * m
        counts[0], counts[negative] = 0, n_negative
        sums = np.array([[0.0], [m]])  # of a spread of 1
        return bool(find_oddities(profile, Tally(m, counts, np.zeros(1), sums)))

    assert not odd(50, 100)
    assert not odd(64, 100)  # a share that differs by less than 0.15
    assert odd(95, 100)
    assert not odd(2, 2)  # two rows may be what they like
    assert odd(30, 30)


def test_distance_is_in_standard_deviations_and_net_of_chance() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3)) * [1, 10, 0.1] + [0, 100, 5]
    profile = profile_of(X)

    def far(rows: np.ndarray) -> Any:
        return distance_of(profile, profile.tally(ENGINE, Rows(rows)))

    assert far(X[:50]).total < 0.2
    assert far(X).total < 0.05
    shift = np.array([0, 10, 0])
    shifted = far(X[:2000] + shift)
    assert shifted.columns[1] == pytest.approx(1, abs=0.1)
    assert shifted.columns[[0, 2]].max() < 0.1
    wider = far((X[:2000] - [0, 100, 5]) * [2, 1, 1] + [0, 100, 5])
    assert wider.columns[0] == pytest.approx(np.log(2) / 2, abs=0.1)
    assert drift_of(profile).total == 0
    more = profile
    for i in range(20):
        rows = X[200 * i : 200 * i + 200] + shift
        more = more.updated(more.tally(ENGINE, Rows(rows)))
    assert drift_of(more).columns[1] == pytest.approx(1, abs=0.1)


# -- the command line


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(monkeypatch, capsys)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.chdir(tmp_path)
    shop = Shop(5, 200)
    shop.table(np.arange(200)).to_csv("table.csv", index_label="id")
    night = shop.night(60)
    night.to_csv("clean.csv", index_label="id")
    in_cents(night, shop.rng).to_csv("cents.csv", index_label="id")
    shuffled(night, shop.rng).to_csv("shuffled.csv", index_label="id")
    some = night.copy()
    some.iloc[:15, 1] *= 100
    some.to_csv("some.csv", index_label="id")
    model = ViewFold(4, random_state=0).partial_fit("table.csv", ids="id", view="table")
    model.save("shop.vf")
    return shop


def test_strict_folds_nothing_and_has_its_exit_code(run: Run, files: Shop) -> None:
    before = Path("shop.vf").read_bytes()
    add = "add shop.vf --id id --view table"
    code, out, _ = run(add, "cents.csv", "--strict", "--json")
    assert code == 14
    assert json.loads(out)["error"]["code"] == "suspicious"
    assert "amount" in json.loads(out)["error"]["message"]
    assert Path("shop.vf").read_bytes() == before
    assert run(add, "clean.csv", "--strict")[0] == 0
    code, out, _ = run(add, "cents.csv", "--json")
    assert code == 0
    (fold,) = json.loads(out)["folds"]
    assert {"kind": "values", "column": "amount"}.items() <= fold["findings"][0].items()
    assert fold["distance"] > 0.2
    assert any("amount" in note for note in json.loads(out)["notes"])


def test_quarantine_sets_rows_aside_and_folds_the_others(run: Run, files: Shop) -> None:
    add = "add shop.vf --id id --view table --json"
    code, out, _ = run(add, "some.csv", "--quarantine", "odd.csv")
    assert code == 15
    answer = json.loads(out)
    assert answer["quarantine"] == [{"view": "table", "file": "odd.csv", "samples": 15}]
    assert answer["folds"][0]["samples"] == answer["folds"][0]["corrected"] == 45
    came = pd.read_csv("some.csv", index_col="id").iloc[:15]
    pd.testing.assert_frame_equal(pd.read_csv("odd.csv", index_col="id"), came, check_dtype=False)
    code, out, _ = run(add, "shuffled.csv", "--quarantine", "odd.csv")
    assert code == 1  # somebody should look at it first
    assert "odd.csv is there already" in json.loads(out)["error"]["message"]
    code, out, _ = run(add, "shuffled.csv", "--quarantine", "all.csv")
    assert code == 15
    assert json.loads(out)["folds"][0]["samples"] == 0
    assert len(pd.read_csv("all.csv")) == 60
    code, out, _ = run(add, "clean.csv", "--quarantine", "none.csv")
    assert (code, json.loads(out)["quarantine"]) == (0, [])
    assert not Path("none.csv").exists()
    assert run(add, "clean.csv", "--quarantine", "q.csv", "--strict")[0] == 2


def test_a_refresh_tells_of_another_unit_and_not_of_drift(run: Run, files: Shop) -> None:
    model, rows = viewfold.load("shop.vf"), files.table(np.arange(200))
    rows["weight"] += 0.5 * rows["weight"].std()
    with warnings.catch_warnings(action="error", category=DeliveryWarning):
        model.refresh(rows, view="table")
    with pytest.warns(DeliveryWarning, match="'amount'"):
        model.refresh(in_cents(rows, files.rng), view="table")
    in_cents(rows, files.rng).to_csv("all.csv", index_label="id")
    before = Path("shop.vf").read_bytes()
    line = "refresh shop.vf all.csv --id id --view table"
    assert run(line, "--strict")[0] == 14
    assert Path("shop.vf").read_bytes() == before
    assert run(line)[0] == 0


def test_status_says_whether_a_refresh_pays(run: Run, files: Shop) -> None:
    model, spread = viewfold.load("shop.vf"), files.table(np.arange(200))["weight"].std()
    for nights, shift, pays in ((2, 0, False), (16, 0.7, True)):
        for _ in range(nights):
            rows = files.night()
            model.partial_fit(rows.assign(weight=rows["weight"] + shift * spread), view="table")
        model.save("shop.vf")
        (row,) = json.loads(run("status shop.vf --json")[1])["views"]
        assert row["refresh_pays"] is pays
        assert row["share_since"] > 0.1
        assert ("a refresh of 'table' would pay: " in run("status shop.vf")[1]) is pays
