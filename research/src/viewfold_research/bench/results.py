"""What the experiments found: one DuckDB file that anyone can read with plain SQL.

A cell is one method on one problem. It is written in one transaction when it is finished, so that
a run that was killed resumes where it stopped, and one that is repeated has nothing left to do.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import numpy as np

FILE = "results.duckdb"
DONE, OUT_OF_MEMORY, OUT_OF_TIME = "done", "out of memory", "time"
NOT_TRIED = "not tried"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS cells (
    cell BIGINT PRIMARY KEY, experiment VARCHAR, dataset VARCHAR, method VARCHAR, ratio DOUBLE,
    draw INTEGER,
    setting VARCHAR,  -- a JSON object: order, masks, n, kmeans_runs, where they are not the default
                      -- and, on the leaderboard, the parameters of the method
    status VARCHAR,   -- 'done', 'out of memory', 'time' or 'failed: ' and why; 'not tried' for a
                      -- scaling for which the leaderboard had no time left
    cpu_seconds DOUBLE, wall_seconds DOUBLE, peak_bytes BIGINT, n_samples BIGINT,
    n_clusters INTEGER, seed BIGINT, threads INTEGER, load DOUBLE,
    versions VARCHAR, -- a JSON object
    finished TIMESTAMP);
CREATE TABLE IF NOT EXISTS scores (
    cell BIGINT, metric VARCHAR, run INTEGER,
    value DOUBLE);    -- in percent
CREATE TABLE IF NOT EXISTS curves (cell BIGINT, view INTEGER, iteration INTEGER, objective DOUBLE);
"""


@dataclass(frozen=True)
class Cell:
    """What tells one cell from all others.

    Attributes
    ----------
    experiment, dataset, method : str
        Their names.
    ratio : float
        Share of samples that each view lacks.
    draw : int
        Which draw of the missing samples.
    setting : str
        Everything else that matters, as a JSON object; see `as_setting`.
    seed : int
        The seed that draws and k-means are derived from.
    """

    experiment: str
    dataset: str
    method: str
    ratio: float = 0.0
    draw: int = 0
    setting: str = "{}"
    seed: int = 0


@dataclass(frozen=True)
class Outcome:
    """What came out of a cell.

    Attributes
    ----------
    status : str
        "done", "out of memory", "time" (the limit was reached), or "failed: " and why; "not tried"
        for a scaling that the leaderboard left out.
    scores : dict of lists of float
        For each metric a value in percent for each run of k-means.
    curves : sequence of sequences of float
        The objective after each iteration, for each view (empty where there is none).
    cpu_seconds, wall_seconds : float or None
        Time it took.
    peak_bytes : int or None
        Memory it needed beyond the data.
    n_samples, n_clusters : int or None
        Size of the problem.
    threads : int
        How many threads the method could use.
    load : float or None
        Load of the machine when it was finished: times under load are not worth much.
    phases : dict of float
        CPU seconds by kind of work, for a profile; not stored.
    """

    status: str = DONE
    scores: dict[str, list[float]] = field(default_factory=dict)
    curves: Sequence[Sequence[float]] = ()
    cpu_seconds: float | None = None
    wall_seconds: float | None = None
    peak_bytes: int | None = None
    n_samples: int | None = None
    n_clusters: int | None = None
    threads: int = 1
    load: float | None = None
    phases: dict[str, float] = field(default_factory=dict)


def as_setting(**parts: Any) -> str:
    """Write a setting; parts that are None are left out.

    Examples
    --------
    >>> from viewfold_research.bench.results import as_setting
    >>> as_setting(order=[1, 0], masks=None), as_setting()
    ('{"order": [1, 0]}', '{}')
    """
    return json.dumps({k: v for k, v in parts.items() if v is not None}, sort_keys=True)


class Results:
    """The database in a folder; made if it is not there and is to be written.

    Parameters
    ----------
    folder : path
        Where ``results.duckdb`` is, or shall be.
    write : bool, default=False
        Whether cells are to be added. There can be one writer, and then no reader.
    """

    def __init__(self, folder: str | os.PathLike[str], *, write: bool = False) -> None:
        path = Path(folder) / FILE
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
        elif not path.exists():
            raise ValueError(f"{path} does not exist. Run an experiment with --out {folder} first.")
        try:
            self._db = duckdb.connect(str(path), read_only=not write)
        except duckdb.Error as error:
            said = str(error).splitlines()[0]
            raise ValueError(
                f"Cannot open {path}; is another run writing to it? DuckDB says: {said}"
            ) from None
        if write:
            self._db.execute(_SCHEMA)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows that a query finds."""
        return list(self._db.execute(sql, list(parameters)).fetchall())

    def finished(self, *, retry: bool = False) -> dict[Cell, str]:
        """Return the cells that are there and their status, with `retry` only those done."""
        sql = "SELECT experiment, dataset, method, ratio, draw, setting, seed, status FROM cells"
        found = {Cell(*row[:-1]): str(row[-1]) for row in self.query(sql)}
        return {cell: status for cell, status in found.items() if status == DONE or not retry}

    def seconds(self) -> dict[Cell, float]:
        """Return the CPU seconds of the cells that are there, where they are known."""
        sql = (
            "SELECT experiment, dataset, method, ratio, draw, setting, seed, cpu_seconds FROM cells"
            " WHERE cpu_seconds IS NOT NULL"
        )
        return {Cell(*row[:-1]): float(row[-1]) for row in self.query(sql)}

    def add(self, cell: Cell, outcome: Outcome) -> None:
        """Write a finished cell, all of it or nothing. It replaces an earlier attempt."""
        self._db.begin()
        try:
            self._remove(cell)
            (((number),),) = self.query("SELECT coalesce(max(cell), 0) + 1 FROM cells")
            self._db.execute(
                f"INSERT INTO cells VALUES ({', '.join('?' * 18)})", _row(number, cell, outcome)
            )
            self._fill("scores", number, _score_columns(outcome))
            self._fill("curves", number, _curve_columns(outcome))
            self._db.commit()
        except BaseException:
            self._db.rollback()
            raise

    def _remove(self, cell: Cell) -> None:
        found = self.query(
            "SELECT cell FROM cells WHERE (experiment, dataset, method, ratio, draw, setting, seed)"
            " = (?, ?, ?, ?, ?, ?, ?)",
            astuple(cell),
        )
        for (number,) in found:
            for table in ("cells", "scores", "curves"):
                self._db.execute(f"DELETE FROM {table} WHERE cell = ?", [number])

    def _fill(self, table: str, number: int, columns: tuple[list[Any], ...]) -> None:
        # One statement for all rows: executemany would take ten times the time of the transaction.
        if columns[0]:
            self._db.execute(
                f"INSERT INTO {table} SELECT ?, unnest(?), unnest(?), unnest(?)", [number, *columns]
            )


def _row(number: int, cell: Cell, outcome: Outcome) -> list[Any]:
    return [
        number,
        *(cell.experiment, cell.dataset, cell.method, cell.ratio, cell.draw, cell.setting),
        *(outcome.status, outcome.cpu_seconds, outcome.wall_seconds, outcome.peak_bytes),
        *(outcome.n_samples, outcome.n_clusters, cell.seed, outcome.threads, outcome.load),
        versions(),
        datetime.now(UTC).replace(tzinfo=None),
    ]


def _score_columns(outcome: Outcome) -> tuple[list[Any], ...]:
    rows = [
        (metric, run, value)
        for metric, values in outcome.scores.items()
        for run, value in enumerate(values)
    ]
    return tuple([row[i] for row in rows] for i in range(3))


def _curve_columns(outcome: Outcome) -> tuple[list[Any], ...]:
    rows = [
        (view, iteration, value)
        for view, curve in enumerate(outcome.curves)
        for iteration, value in enumerate(curve, start=1)
    ]
    return tuple([row[i] for row in rows] for i in range(3))


@cache
def versions() -> str:
    """Return the versions of what computes, as a JSON object."""
    names = {"numpy": "numpy", "scipy": "scipy", "sklearn": "scikit-learn", "viewfold": "viewfold"}
    found = {short: version(name) for short, name in names.items()}
    return json.dumps({"python": platform.python_version(), **found})


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the exponent p of the power law ``values ≈ c · sizes ** p`` that fits best.

    Least squares on logarithms: 1 means that the cost grows in proportion.

    Examples
    --------
    >>> from viewfold_research.bench.results import slope
    >>> round(slope([10, 100, 1000], [2, 20, 200]), 6)
    1.0
    """
    if len(set(sizes)) < 2:
        raise ValueError(f"A slope needs two sizes or more, got {sorted(set(sizes))}.")
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
