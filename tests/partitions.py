"""Views in partitions, for the tests that read them: samples of four clusters, dealt to files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from viewfold.rows import DiskEngine, using

N = 240
CUTS = {
    "equal": (60, 120, 180),
    "unequal": (3, 200),
    "empty": (0, 80, 80, 240),
    "single": tuple(range(1, 24)),
}
"""Where the rows of a view are cut; the last one is of 24 samples."""


def frame(ids: str = "texts", seed: int = 0, features: int = 12) -> pd.DataFrame:
    """Return a view of shuffled samples; ids are its index."""
    rng = np.random.default_rng(seed)
    y = np.arange(N) % 4
    X = 3 * np.random.default_rng(7).normal(size=(4, features))[y] + rng.normal(size=(N, features))
    names = [f"p{i}" for i in range(N)] if ids == "texts" else np.arange(N) * 7 + 3
    made = pd.DataFrame(X, index=pd.Index(names, name="id"))
    made.columns = [f"f{j}" for j in range(features)]
    return made.sample(frac=1, random_state=seed)


def few(table: pd.DataFrame, cuts: Sequence[int]) -> pd.DataFrame:
    """Return as many samples as there are partitions, if each is to have one."""
    return table.loc[sorted(table.index)[: len(cuts) + 1]] if len(cuts) > 10 else table


def pieces(table: pd.DataFrame, cuts: Sequence[int]) -> list[pd.DataFrame]:
    return [table.iloc[a:b] for a, b in zip([0, *cuts], [*cuts, len(table)], strict=True)]


def written(folder: Path, table: pd.DataFrame, cuts: Sequence[int] = CUTS["equal"]) -> Path:
    """Write a view to Parquet files of a folder, which is new."""
    folder.mkdir()
    for i, part in enumerate(pieces(table, cuts)):
        part.reset_index().to_parquet(folder / f"part.{i}.parquet", index=False)
    return folder


@contextmanager
def on_disk(n_buckets: int = 4) -> Iterator[DiskEngine]:
    """Use an engine that has rows in buckets; whoever leaves has to have cleaned up."""
    with using(DiskEngine(n_buckets)) as engine:
        yield engine


def left_in(engine: DiskEngine) -> list[str]:
    """Return what is in the engine's folder, but for its lock."""
    return sorted(set(os.listdir(engine.folder)) - {"lock"})


def agree(model: Any, expected: Any) -> None:
    """Check that two models say the same of the same samples."""
    mine, theirs = model.to_frame().sort_index(), expected.to_frame().sort_index()
    assert mine.index.equals(theirs.index)
    assert (mine["cluster"] == theirs["cluster"]).mean() >= 0.999
    assert np.allclose(mine["confidence"], theirs["confidence"], atol=1e-6)
    for record, other in zip(model.views_, expected.views_, strict=True):
        assert record.features == other.features
        assert record.columns == other.columns
        assert (record.n_samples, record.n_missing) == (other.n_samples, other.n_missing)
        assert record.n_empty == other.n_empty
