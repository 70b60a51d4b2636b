"""Worlds whose segments are known: customers in several tables that change night by night.

A world delivers tables as a shop's nightly job would. Every table is blind to one distinction, so
that no table alone tells all segments apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

Delivery = dict[str, pd.DataFrame]
"""What comes in one night: rows by id, for each table that comes."""


@dataclass(frozen=True)
class Shape:
    """What a world looks like; the defaults are the shop of ALGORITHMS.md."""

    customers: int = 1500
    segments: int = 5
    columns: tuple[int, ...] = (8, 10, 6)
    coverage: float = 0.8  # share of customers that a table has when it first comes
    separation: float = 1.0  # spread of the segments' means, where noise has spread 1
    new: int = 8  # customers that come for the first time, a night
    late: int = 5  # known customers that a table gets later, a night and table
    corrected: tuple[int, int] = (25, 45)  # rows that are corrected, a night and table
    nudge: float = 0.3  # how far a corrected row is from the old one, where noise has spread 1
    drift: float = 0.0  # how far each column shifts a night, in its own spread
    heavy: bool = False  # noise of a t distribution with three degrees of freedom
    correlated: bool = False  # noise that columns of a table share
    empty: float = 0.0  # share of cells that are missing


SHOP = Shape()
SHAPES = {
    "shop": SHOP,
    "no corrections": replace(SHOP, corrected=(0, 0)),
    "drift": replace(SHOP, drift=0.03),
    "large nights": replace(SHOP, corrected=(150, 200)),
    "few": replace(SHOP, customers=600, segments=3, columns=(5, 5), corrected=(10, 20)),
    "many": replace(SHOP, segments=8, columns=(12, 6, 20, 9)),
    "heavy tails": replace(SHOP, heavy=True),
    "correlated": replace(SHOP, correlated=True),
    "missing cells": replace(SHOP, empty=0.1),
}


class World:
    """Customers, their segments, and the rows that tables hold of them now.

    Attributes
    ----------
    segment : ndarray
        The segment of every customer, by number of customer, whether or not they came yet.
    rows : dict of DataFrame
        What each table holds now: the last row of each customer that it ever delivered.
    """

    def __init__(self, shape: Shape, seed: int, nights: int = 50) -> None:
        self.shape, self.rng = shape, np.random.default_rng([seed, len(shape.columns)])
        self.night, rng, k = 0, self.rng, shape.segments
        total = shape.customers + nights * shape.new
        self.segment = rng.choice(k, total, p=rng.dirichlet(np.full(k, 20.0)))
        self.came = np.arange(total) < shape.customers
        self.names = [f"table{i}" for i in range(len(shape.columns))]
        self.rows: dict[str, pd.DataFrame] = {}
        self._true, self._unit, self._shift = {}, {}, {}
        for i, (name, d) in enumerate(zip(self.names, shape.columns, strict=True)):
            means = rng.normal(scale=shape.separation, size=(k, d))
            means[(i + 1) % k] = means[i % k]  # the distinction that this table is blind to
            self._true[name] = means[self.segment] + self._noise(total, d, rng)
            # Columns have units: the first is a temperature, some are balances around 0, and the
            # others amounts that are hardly ever negative.
            spread = np.exp(rng.normal(1, 1.5, d))
            middle = np.where(rng.random(d) < 0.2, 0, rng.uniform(3, 6, d)) * spread
            spread[0], middle[0] = 4, 15
            self._unit[name] = (middle, spread)
            self._shift[name] = shape.drift * rng.choice([-1.0, 1.0], d)
        self._first = {name: rng.random(total) < shape.coverage for name in self.names}
        nowhere = ~np.any(list(self._first.values()), axis=0)
        self._first[self.names[0]] |= nowhere

    def _noise(self, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
        noise = (
            rng.standard_t(3, (n, d)) / np.sqrt(3) if self.shape.heavy else rng.normal(size=(n, d))
        )
        if self.shape.correlated:
            shared = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d))
            noise = (noise + 0.7 * shared) / np.sqrt(1 + 2 * 0.7**2)
        return noise

    def measure(self, name: str, who: np.ndarray) -> pd.DataFrame:
        """Return rows of a table as they would be delivered tonight."""
        return self._write(name, self._true[name][who], [f"c{i:05}" for i in who], self.rng)

    def _write(
        self, name: str, true: np.ndarray, ids: list[str], rng: np.random.Generator
    ) -> pd.DataFrame:
        middle, spread = self._unit[name]
        X = middle + spread * (true + self.night * self._shift[name])
        if self.shape.empty:
            gone = rng.random(X.shape) < self.shape.empty
            gone[gone.all(axis=1), 0] = False
            X = np.where(gone, np.nan, X)
        return pd.DataFrame(X, ids, [f"{name}_{j}" for j in range(X.shape[1])])

    def correct(self, name: str, who: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
        """Return corrected rows that could come tonight; the world does not remember them."""
        true = self._true[name][who]
        true = true + self.shape.nudge * rng.normal(size=true.shape)
        return self._write(name, true, [f"c{i:05}" for i in who], rng)

    def strangers(self, number: int, rng: np.random.Generator) -> Delivery:
        """Return new customers of a segment that nobody belonged to before, in most tables."""
        found = {}
        for name, d in zip(self.names, self.shape.columns, strict=True):
            true = rng.normal(scale=self.shape.separation, size=d) + self._noise(number, d, rng)
            there = np.flatnonzero(rng.random(number) < self.shape.coverage)
            ids = [f"s{i:05}" for i in there]
            found[name] = self._write(name, true[there], ids, rng)
        return found

    def amounts(self, name: str) -> np.ndarray:
        """Return which columns are hardly ever negative; the others are balances around 0."""
        return self._unit[name][0] > 0

    def nights(self, number: int) -> Iterator[Delivery]:
        """Yield what comes in each night; `rows` hold it when the next night begins."""
        for self.night in range(1, number + 1):
            if self.night <= len(self.names):
                delivery = self._first_delivery(self.names[self.night - 1])
            else:
                delivery = self._ordinary()
            for name, rows in delivery.items():
                held = self.rows.get(name)
                kept = (
                    rows
                    if held is None
                    else pd.concat([held.drop(rows.index, errors="ignore"), rows])
                )
                self.rows[name] = kept
            yield delivery

    def _first_delivery(self, name: str) -> Delivery:
        return {name: self.measure(name, np.flatnonzero(self.came & self._first[name]))}

    def _ordinary(self) -> Delivery:
        rng, shape, delivery = self.rng, self.shape, {}
        new = np.flatnonzero(~self.came)[: shape.new]
        for name in self.names:
            first = self._first[name]
            has = np.flatnonzero(self.came & first)
            low, high = shape.corrected
            size = min(int(rng.integers(low, high + 1)), len(has))
            wrong = rng.choice(has, size, replace=False)
            true = self._true[name]
            true[wrong] += shape.nudge * rng.normal(size=true[wrong].shape)
            lacks = np.flatnonzero(self.came & ~first)
            late = rng.choice(lacks, min(shape.late, len(lacks)), replace=False)
            who = np.concatenate([wrong, late, new[first[new]]])
            first[late] = True
            if len(who):
                delivery[name] = self.measure(name, rng.permutation(who))
        self.came[new] = True
        return delivery

    def segments_of(self, ids: np.ndarray) -> np.ndarray:
        """Return the true segments of samples by their ids."""
        return self.segment[[int(i[1:]) for i in ids]]
