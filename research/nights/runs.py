"""Deliver a world's nights to a model and measure it, night by night."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from nights.worlds import SHAPES, Delivery, World
from viewfold import ViewFold, metrics

Classes = Callable[[np.ndarray], np.ndarray]
"""From ids to the true classes of those samples."""


@dataclass
class Received:
    """What a model said and did when the tables of one night came."""

    seconds: float = 0.0  # of CPU
    said: list[str] = field(default_factory=list)  # what it warned of, as "table: message"
    refused: list[str] = field(default_factory=list)  # tables that it did not take, and why

    @property
    def noticed(self) -> bool:
        """Whether a job would know that something is wrong with the delivery."""
        return bool(self.said or self.refused)


def deliver(model: ViewFold, delivery: Delivery) -> Received:
    """Fold the tables of one night; warnings of a class called `DeliveryWarning` are kept."""
    received = Received()
    for name, rows in delivery.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start = time.process_time()
            try:
                model.partial_fit(rows, view=name)
            except ValueError as error:
                received.refused.append(f"{name}: {error}")
            received.seconds += time.process_time() - start
        for one in caught:
            if any(base.__name__ == "DeliveryWarning" for base in one.category.__mro__):
                received.said.append(f"{name}: {one.message}")
    return received


def accuracy(model: ViewFold, classes: Classes) -> float:
    """ACC in % over all samples that the model knows."""
    return 100 * metrics.accuracy(classes(model.ids_), model.labels_)


def fold_from_scratch(rows: Delivery, k: int, seed: int) -> ViewFold:
    """Fold all current rows, as if they came now for the first time."""
    model = ViewFold(k, random_state=seed)
    deliver(model, rows)
    return model


def untouched_moved(before: pd.Series, model: ViewFold, touched: Iterable[str]) -> float:
    """Return the share, in %, of known samples without a row tonight that changed their cluster."""
    still = before.drop(list(touched), errors="ignore")
    if still.empty:
        return float("nan")
    return 100 * float((label_of(model).loc[still.index] != still).mean())


def label_of(model: ViewFold) -> pd.Series:
    """Return the labels by id."""
    return pd.Series(model.labels_, model.ids_)


def file_size(model: ViewFold) -> float:
    """Return the kilobytes of the model's state file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "night.vf"
        model.save(path)
        return path.stat().st_size / 1000


def run_nights(
    nights: Iterable[Delivery],
    rows: dict[str, pd.DataFrame],
    classes: Classes,
    k: int,
    *,
    seed: int = 0,
    scratch_every: int = 10,
    last: int = 50,
) -> list[dict[str, float]]:
    """Deliver night after night; return a row of measures for each night.

    `rows` are what all tables hold now: whoever yields `nights` changes them before each.
    ACC from scratch and the size of the file are measured every `scratch_every` nights, on the
    third and on the last.
    """
    model, found = ViewFold(k, random_state=seed), []
    for night, delivery in enumerate(nights, 1):
        before = label_of(model) if night > 1 else pd.Series(dtype=int)
        received = deliver(model, delivery)
        if received.refused:
            raise RuntimeError(f"night {night}: a clean delivery was refused: {received.refused}")
        touched = {i for came in delivery.values() for i in came.index}
        one = {
            "night": night,
            "samples": len(model.ids_),
            "ACC": accuracy(model, classes),
            "untouched": untouched_moved(before, model, touched),
            "seconds": received.seconds,
            "warned": len(received.said),
        }
        if night % scratch_every == 0 or night in (3, last):
            one["scratch"] = accuracy(fold_from_scratch(rows, k, seed), classes)
            one["kB"] = file_size(model)
        found.append(one)
    return found


def run_shop(shape: str, seed: int, nights: int, scratch_every: int = 10) -> list[dict[str, float]]:
    """Run one world of a named shape."""
    world = World(SHAPES[shape], seed, nights)
    return run_nights(
        world.nights(nights),
        world.rows,
        world.segments_of,
        world.shape.segments,
        scratch_every=scratch_every,
        last=nights,
    )
