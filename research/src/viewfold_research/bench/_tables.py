"""From the results database to tables of numbers, one for each experiment.

Means and maxima stay apart all the way: the paper prints the best of 50 runs of k-means, and a
table that has only one of the two invites the wrong comparison.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewfold_research.bench import published

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("ACC", "NMI", "purity", "F")
PAPER_RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5)
_COLUMNS = {
    "cells": "cell, experiment, dataset, method, ratio, draw, seed, setting, status, cpu_seconds, "
    "wall_seconds, peak_bytes, n_samples, threads, load, versions, finished",
    "scores": "cell, metric, run, value",
    "curves": "cell, view, iteration, objective",
}
_TYPES = {
    "cells": dict.fromkeys(
        ["ratio", "cpu_seconds", "wall_seconds", "peak_bytes", "n_samples", "load"], float
    )
    | {"finished": "datetime64[us]"},
    "scores": {"value": float},
    "curves": {"objective": float},
}
_ALIASES = {"fcmvciv": "fcmvc", "multinmf": "mnmf", "fpmvscag": "fpmvs"}


def read(folder: str | Path) -> dict[str, pd.DataFrame]:
    """Read the database: cells, scores and curves."""
    import pandas as pd

    from viewfold_research.bench.results import Results

    with Results(folder) as database:
        data = {
            name: pd.DataFrame(
                database.query(f"SELECT {columns} FROM {name} ORDER BY ALL"),
                columns=columns.split(", "),
            ).astype(_TYPES[name])
            for name, columns in _COLUMNS.items()
        }
    cells, settings = data["cells"], data["cells"]["setting"].map(_parts)
    sizes = settings.map(lambda parts: parts.get("n")).astype(float)
    cells["n_samples"] = cells["n_samples"].fillna(sizes)  # a cell that failed knows only its plan
    cells["order"] = settings.map(lambda parts: ", ".join(map(str, parts.get("order", []))))
    return data | {"cells": _variants_apart(cells, settings)}


def _parts(setting: str | None) -> dict[str, Any]:
    return dict(json.loads(setting or "{}"))


def _variants_apart(cells: pd.DataFrame, settings: pd.Series) -> pd.DataFrame:
    """Tell results on a data set apart that were made in different ways, by its name.

    A change of seed or masks only adds draws; another order of views or number of runs is another
    question, except where the order itself is the question.
    """

    def way(parts: dict[str, Any]) -> str:
        shown = {"order": "order", "kmeans_runs": "runs of k-means:"}
        return "; ".join(f"{word} {parts[name]}" for name, word in shown.items() if name in parts)

    ways = settings.map(way).where(cells["experiment"] != "order", "")
    several = ways.groupby([cells["experiment"], cells["dataset"]]).transform("nunique") > 1
    suffix = " (" + ways.where(ways != "", "order of the file") + ")"
    return cells.assign(dataset=cells["dataset"] + suffix.where(several, ""))


def build(data: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Make all tables for which there are results."""
    from viewfold_research.bench import _ranks

    makers: dict[str, Callable[[dict[str, pd.DataFrame]], pd.DataFrame]] = {
        "ranks": _ranks.ranks,
        "leaderboard": _ranks.leaderboard,
        "scalings": _ranks.scalings,
        "complete": complete,
        "incomplete": incomplete,
        "ratios": ratios,
        "time": time,
        "order": order,
        "convergence": convergence,
        "scale": scale,
        "failures": failures,
    }
    made = {name: make(data) for name, make in makers.items()}
    return {name: frame for name, frame in made.items() if len(frame)}


def complete(data: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Mean, standard deviation and maximum over the runs of k-means, next to the paper's number."""
    runs = _scored(data, "complete")
    value = runs.groupby(["dataset", "method", "metric"], sort=False)["value"]
    found = value.agg(mean="mean", std="std", max="max", runs="count").reset_index()
    return _compared(_with_failed(found, data, "complete"), "complete", "max")


def ratios(data: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Mean and deviation over the draws of missing samples, of each draw's mean and maximum."""
    runs = _scored(data, "incomplete")
    where = ["dataset", "method", "ratio", "metric"]
    draws = runs.groupby([*where, "cell"], sort=False)["value"].agg(["mean", "max"])
    found = draws.groupby(where, sort=False).agg(
        mean=("mean", "mean"),
        std=("mean", "std"),
        max=("max", "mean"),
        max_std=("max", "std"),
        draws=("mean", "count"),
    )
    return ordered(found.reset_index())


def incomplete(data: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Aggregate over the missing ratios as the paper does: mean and deviation of their averages."""
    each = ratios(data)
    each = each[each["ratio"] > 0]
    found = each.groupby(["dataset", "method", "metric"], sort=False).agg(
        mean=("mean", "mean"),
        std=("mean", "std"),
        max=("max", "mean"),
        max_std=("max", "std"),
        ratios=("ratio", lambda values: tuple(values.round(6))),
    )
    found["ratios"] = found["ratios"].map(_listed)
    table = _compared(_with_failed(found.reset_index(), data, "incomplete"), "incomplete", "max")
    # An average over other ratios than the paper's is not to be compared with the paper's.
    table["difference"] = table["difference"].where(table["ratios"] == _listed(PAPER_RATIOS))
    return table


def time(data: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Take the median time and memory of each method, and its time relative to FCMVC-IV."""
    cells = of(data, "time")
    found = _spent(cells, ["dataset", "method"])
    base = found[found["method"].map(key) == "fcmvc"].groupby("dataset")["cpu_seconds"].min()
    found["relative"] = found["cpu_seconds"] / found["dataset"].map(base).astype(float)
    return ordered(found)


def scale(data: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Median time and memory over the number of samples."""
    found = _spent(of(data, "scale"), ["method", "n_samples"]).astype({"n_samples": int})
    return found.sort_values(["method", "n_samples"]).reset_index(drop=True)


def order(data: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Find the lowest and the highest result over the orders of views."""
    each = orders(data)
    found = each.groupby(["dataset", "method", "metric"], sort=False).agg(
        orders=("order", "nunique"),
        mean=("mean", "mean"),
        std=("mean", "std"),
        lowest=("mean", "min"),
        highest=("mean", "max"),
        lowest_max=("max", "min"),
        highest_max=("max", "max"),
    )
    found["spread"] = found["highest"] - found["lowest"]
    return ordered(found.reset_index())


def orders(data: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Mean and maximum over the runs of k-means for each order of views."""
    runs = _scored(data, "order")
    value = runs.groupby(["dataset", "method", "metric", "order"], sort=False)["value"]
    return value.agg(["mean", "max"]).reset_index()


def convergence(data: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """How many iterations a view takes, and in how many runs the objective rose on the way."""
    steps = curves(data)
    where = ["dataset", "method", "ratio", "view"]
    walks = steps.groupby([*where, "cell"], sort=False).agg(
        iterations=("iteration", "count"), rose=("rose", "any"), change=("change", "last")
    )
    found = walks.groupby(where, sort=False).agg(
        runs=("rose", "count"),
        iterations=("iterations", "mean"),
        rose=("rose", "sum"),
        change=("change", "mean"),
    )
    return ordered(found.reset_index())


def curves(data: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """List every step of every run: change of the objective in %, and whether it rose."""
    steps = data["curves"].merge(of(data, "convergence"), on="cell")
    steps = steps.sort_values(["cell", "view", "iteration"], ignore_index=True)
    objective = steps.groupby(["cell", "view"])["objective"]
    first = objective.transform("first").abs()
    steps["change"] = 100 * (steps["objective"] - objective.transform("first")) / first
    steps["rose"] = objective.diff() > 1e-9 * first  # more than round-off
    return steps


def failures(data: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Count the cells that did not come to an end, and why."""
    cells = data["cells"]
    bad = cells[~cells["status"].isin(["done", "not tried"])]
    found = bad.groupby(["experiment", "dataset", "method", "status"], sort=False).size()
    return found.rename("cells").reset_index()


def facts(data: dict[str, pd.DataFrame]) -> dict[str, str]:
    """Say how the numbers were made: how many, when, and with what."""
    cells = data["cells"]
    if cells.empty:
        return {"cells": "none yet"}
    versions: dict[str, set[str]] = {}
    for text in cells["versions"].dropna().unique():
        for name, version in json.loads(text).items():
            versions.setdefault(name, set()).add(str(version))
    done, left = (int((cells["status"] == name).sum()) for name in ("done", "not tried"))
    told = f", {left} not tried (scalings)" if left else ""
    load = cells["load"].max()
    return {
        "cells": f"{done} done, {len(cells) - done - left} not{told}",
        "runs of k-means per cell": span(data["scores"].groupby("cell")["run"].nunique()),
        "threads": span(cells["threads"]),
        "highest load of the machine": "not known" if load != load else f"{load:.1f}",
        "finished": span(cells["finished"].dt.strftime("%Y-%m-%d")),
        "versions": ", ".join(f"{name} {'/'.join(sorted(v))}" for name, v in versions.items()),
    }


def key(name: str) -> str:
    """Reduce a name to what the paper and the benchmark have in common."""
    bare = re.sub(r"[^a-z0-9+]", "", name.lower())
    return _ALIASES.get(bare, bare)


def methods(frame: pd.DataFrame) -> list[str]:
    """List the methods: the project's own first, then the paper's, then all others by name."""

    def rank(name: str) -> tuple[bool, bool, bool, str]:
        bare = key(name)
        ours, paper = bare.startswith("viewfold"), bare.startswith("fcmvc")
        return not ours, bare != "fcmvc", not paper, name.lower()

    return sorted(frame["method"].unique(), key=rank)


def of(data: dict[str, pd.DataFrame], experiment: str) -> pd.DataFrame:
    """Return the cells of an experiment."""
    cells = data["cells"]
    return cells[cells["experiment"] == experiment]


def _scored(data: dict[str, pd.DataFrame], experiment: str) -> pd.DataFrame:
    return data["scores"].merge(of(data, experiment), on="cell")


def _spent(cells: pd.DataFrame, where: list[str]) -> pd.DataFrame:
    """Take the median over cells that ended; where none did, say what happened instead."""
    done = cells[cells["status"] == "done"].groupby(where, sort=False)
    spent = done[["cpu_seconds", "wall_seconds", "peak_bytes"]].median()
    found = cells.groupby(where, sort=False)["status"].agg(worst).to_frame("note").join(spent)
    return found.reset_index()


def worst(status: pd.Series) -> str:
    """Return the first status that is not a good one, nothing if all are."""
    bad = status[status != "done"]
    return "" if bad.empty else str(bad.iloc[0])


def _with_failed(
    found: pd.DataFrame, data: dict[str, pd.DataFrame], experiment: str
) -> pd.DataFrame:
    """Add what went wrong, with rows of their own for methods that never came to an end."""
    import pandas as pd

    cells = of(data, experiment)
    where = ["dataset", "method"]
    note = cells.groupby(where, sort=False)["status"].agg(worst).rename("note").reset_index()
    every = note.merge(pd.DataFrame({"metric": METRICS}), how="cross")
    return every.merge(found, on=[*where, "metric"], how="left")[[*found.columns, "note"]]


def _compared(found: pd.DataFrame, experiment: str, column: str) -> pd.DataFrame:
    """Put the paper's number and the difference next to ours."""
    theirs = published.table(experiment).rename(
        columns={"value": "published", "std": "published_std", "note": "published_note"}
    )
    for frame in (theirs, found):
        frame["_data"] = frame["dataset"].map(lambda name: key(name.partition(" (")[0]))
        frame["_method"] = frame["method"].map(key)
    theirs = theirs.drop(columns=["dataset", "method"])
    both = found.merge(theirs, on=["_data", "_method", "metric"], how="left")
    both["difference"] = both[column] - both["published"]
    both[["published_note", "source"]] = both[["published_note", "source"]].fillna("")
    return ordered(both.drop(columns=["_data", "_method"]))


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Order rows by data set (as they came), method and metric."""
    ranks = {
        "dataset": {name: i for i, name in enumerate(frame["dataset"].unique())},
        "method": {name: i for i, name in enumerate(methods(frame))},
        "metric": {name: i for i, name in enumerate(METRICS)},
    }
    where = [n for n in ("dataset", "method", "ratio", "view", "metric") if n in frame]

    def rank(column: pd.Series) -> Any:
        return column.map(ranks[column.name]) if column.name in ranks else column

    return frame.sort_values(where, key=rank).reset_index(drop=True)


def _listed(ratios: tuple[float, ...]) -> str:
    return ", ".join(f"{ratio:g}" for ratio in sorted(ratios))


def span(values: pd.Series) -> str:
    """Write the lowest and the highest value, or the only one."""
    values = values.dropna()
    if values.empty:
        return "not known"
    low, high = values.min(), values.max()
    return str(low) if low == high else f"{low} to {high}"
