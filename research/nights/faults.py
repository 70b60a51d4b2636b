"""Deliveries that are wrong, nights that only look wrong, and groups that nobody saw before.

All of them come to a copy of a model that has taken in clean nights, so that one world serves many
cases.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nights.runs import deliver
from nights.worlds import SHAPES, Delivery, World
from viewfold import ViewFold


@dataclass(frozen=True)
class Scene:
    """A table that comes tonight, and what a fault may need to spoil it."""

    world: World
    name: str
    rows: pd.DataFrame  # as they should be
    yesterday: pd.DataFrame  # what this table delivered the night before
    rng: np.random.Generator

    def column(self, *, amount: bool = True) -> str:
        """Draw a column that is an amount, or a balance; any column if the table has none."""
        which = self.world.amounts(self.name) == amount
        columns = self.rows.columns[which] if which.any() else self.rows.columns
        return str(self.rng.choice(columns))


def change_column(scene: Scene, change: Callable[[pd.Series], Any], **which: bool) -> pd.DataFrame:
    column = scene.column(**which)
    return scene.rows.assign(**{column: change(scene.rows[column])})


def swap_columns(scene: Scene) -> pd.DataFrame:
    one, other = scene.rng.choice(scene.rows.columns, 2, replace=False)
    return scene.rows.assign(**{one: scene.rows[other], other: scene.rows[one]})


def shuffle_ids(scene: Scene) -> pd.DataFrame:
    return scene.rows.set_axis(scene.rng.permutation(scene.rows.index), axis=0)


def deliver_other_tables(scene: Scene) -> pd.DataFrame:
    """Return rows of the other tables under the names of this one's columns."""
    others = [rows for name, rows in scene.world.rows.items() if name != scene.name]
    wide = pd.concat(others, axis=1, join="inner").iloc[:, : scene.rows.shape[1]]
    chosen = scene.rng.choice(len(wide), min(len(scene.rows), len(wide)), replace=False)
    return wide.iloc[chosen].set_axis(scene.rows.columns[: wide.shape[1]], axis=1)


def empty_cells(scene: Scene) -> pd.DataFrame:
    gone = scene.rng.random(scene.rows.shape) < 0.5
    return scene.rows.mask(gone)


def convert_temperature(scene: Scene) -> pd.DataFrame:
    first = scene.rows.columns[0]
    return scene.rows.assign(**{first: scene.rows[first] * 1.8 + 32})


FAULTS: dict[str, Callable[[Scene], pd.DataFrame]] = {
    "cents instead of euros": lambda scene: change_column(scene, lambda x: x * 100),
    "sign of an amount flipped": lambda scene: change_column(scene, lambda x: -x),
    "sign of a balance flipped": lambda scene: change_column(scene, lambda x: -x, amount=False),
    "°C to °F": convert_temperature,
    "two columns swapped": swap_columns,
    "ids shuffled": shuffle_ids,
    "rows of other tables": deliver_other_tables,
    "sheet of percentiles": lambda scene: scene.rows.rank(pct=True) * 100,
    "yesterday's file again": lambda scene: scene.yesterday,
    "every row twice": lambda scene: pd.concat([scene.rows, scene.rows]),
    "half of the cells empty": empty_cells,
    "constant column": lambda scene: change_column(scene, lambda x: x.iloc[0]),
}
"""What can be wrong with a file that looks right: each returns the rows that come instead."""

SIZES = ("night", "whole")
"""A fault spoils an ordinary night's rows of a table, or a delivery of the whole table."""


def list_clean(world: World, name: str, rng: np.random.Generator) -> dict[str, pd.DataFrame]:
    """Return deliveries that are right, however odd some of them look."""
    known = list_known(world, name)
    one = known[world.segment[known] == rng.choice(world.shape.segments)]
    fresh = np.flatnonzero(~world.came)[:60]
    alike = fresh[world.segment[fresh] == world.segment[fresh[0]]]
    found = {f"{n} rows": rng.choice(known, n, replace=False) for n in (5, 20, 100)}
    found |= {
        "the whole table": known,
        "50 rows of one segment": rng.choice(one, min(50, len(one)), replace=False),
        "new customers only": fresh,
        "new customers of one segment": alike,
    }
    return {kind: world.correct(name, who, rng) for kind, who in found.items()}


def run_faults(
    shape: str, seed: int, nights: int, every: int = 15, sizes: tuple[str, ...] = SIZES
) -> list[dict[str, Any]]:
    """Plant every fault in some nights of a world; return a row for each case.

    Clean cases are the nights themselves, table by table, and those of `list_clean`. Strange nights
    begin when all tables have come twice.
    """
    world = World(SHAPES[shape], seed, nights + 10)
    rng = np.random.default_rng([seed, 1])
    model, found = ViewFold(world.shape.segments, random_state=0), []
    yesterday: Delivery = {}

    def check(model: ViewFold, kind: str, name: str, rows: pd.DataFrame, **facts: Any) -> None:
        received = deliver(model, {name: rows})
        said = [*received.said, *received.refused]
        facts |= {"warned": bool(received.said), "refused": bool(received.refused)}
        facts |= {"table": name, "rows": len(rows), "said": said[0] if said else ""}
        found.append({"kind": kind, "night": world.night, **facts})

    for delivery in world.nights(nights):
        if world.night > len(world.names) + 1 and (world.night - 5) % every == 0:
            name = str(rng.choice(list(delivery)))
            for kind, rows in list_clean(world, name, rng).items():
                check(copy.copy(model), kind, name, rows, fault=False)
            known = list_known(world, name)
            for size in sizes:
                rows = delivery[name] if size == "night" else world.correct(name, known, rng)
                scene = Scene(world, name, rows, yesterday[name], rng)
                for kind, spoil in FAULTS.items():
                    if (kind, size) != ("yesterday's file again", "whole"):
                        check(copy.copy(model), kind, name, spoil(scene), fault=True, size=size)
        for name, rows in delivery.items():
            if world.night <= len(world.names):
                deliver(model, {name: rows})
            else:
                check(model, "ordinary night", name, rows, fault=False)
        yesterday = delivery
    return found


SHARES = (0.01, 0.03, 0.05, 0.1)
"""How large a new group is, of the samples that are known."""


def run_groups(
    shape: str, seed: int, nights: int, event: str, every: int = 15
) -> list[dict[str, Any]]:
    """Plant new groups in some nights of a world, in one night or over three; one row for each.

    A group is announced if a new entry of `log_` counts novel samples (`n_novel`), or a new row of
    `events_` has a kind that matches `event`. Clean cases are ordinary nights, and
    as many new customers of known segments.
    """
    world = World(SHAPES[shape], seed, nights + 60)
    rng = np.random.default_rng([seed, 2])
    model, found = ViewFold(world.shape.segments, random_state=0), []

    def check(model: ViewFold, kind: str, deliveries: list[Delivery], **facts: Any) -> None:
        before = count_announced(model, event)
        for one in deliveries:
            deliver(model, one)
        announced = count_announced(model, event) > before
        found.append({"kind": kind, "night": world.night, "announced": announced, **facts})

    for delivery in world.nights(nights):
        if world.night <= len(world.names):
            deliver(model, delivery)
            continue
        if (world.night - 5) % every == 0:
            for share in SHARES:
                number = round(share * len(model.ids_))
                strangers = world.strangers(number, rng)
                for over in (1, 3):
                    others = [delivery, *(draw_corrections(world, rng) for _ in range(over - 1))]
                    parts = list(map(join, others, split_by_id(strangers, over)))
                    facts = {"planted": True, "share": share, "over": over}
                    check(copy.copy(model), "new group", parts, **facts)
                fresh = np.flatnonzero(~world.came)[:number]
                more = {name: world.correct(name, fresh, rng) for name in world.names}
                facts = {"planted": False, "share": share}
                check(copy.copy(model), "more customers", [join(delivery, more)], **facts)
        check(model, "ordinary night", [delivery], planted=False)
    return found


def count_announced(model: ViewFold, event: str) -> int:
    """Count the announcements: entries of the log, and events whose kind matches a pattern."""
    log = model.log_
    novel = int((log["n_novel"].fillna(0) > 0).sum()) if "n_novel" in log else 0
    return novel + sum(re.search(event, kind) is not None for kind in model.events_["kind"])


def draw_corrections(world: World, rng: np.random.Generator) -> Delivery:
    """Return a night of corrections that the world does not remember."""
    return {
        name: world.correct(name, rng.choice(list_known(world, name), 40, replace=False), rng)
        for name in world.names
    }


def list_known(world: World, name: str) -> np.ndarray:
    """Return the numbers of the customers that a table has."""
    return np.array([int(i[1:]) for i in world.rows[name].index])


def join(delivery: Delivery, more: Delivery) -> Delivery:
    """Return a night with more rows."""
    return {name: pd.concat([rows, more[name]]) for name, rows in delivery.items()}


def split_by_id(rows: Delivery, parts: int) -> Iterator[Delivery]:
    """Yield the rows of every `parts`-th sample."""
    ids = sorted({i for one in rows.values() for i in one.index})
    for i in range(parts):
        chosen = ids[i::parts]
        yield {name: one[one.index.isin(chosen)] for name, one in rows.items()}
