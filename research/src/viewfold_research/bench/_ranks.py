"""The leaderboard in numbers: which scaling counts, scores by data set, ranks, differences.

A data set is one vote for each share of missing samples. What a method did not finish within the
limits is its worst result there; what it was not made for is no result at all.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from viewfold_research.bench._tables import METRICS, methods, of, ordered, worst

if TYPE_CHECKING:
    import pandas as pd

    Data = dict[str, pd.DataFrame]

OURS = "ViewFold"
EVEN = 1.0
"""Points of accuracy that are no difference in a comparison of two."""
LEVEL = 0.05
_PROBLEM = ["dataset", "ratio", "draw", "seed", "method"]


def tried(data: Data) -> pd.DataFrame:
    """List every cell of the leaderboard with its scores, and whether its scaling counts.

    Of a method's scalings, the one whose labels agree best with the clusters of single views.
    """
    from viewfold_research.bench.methods import own_scaling

    cells = of(data, "leaderboard")
    wide = data["scores"].pivot_table(index="cell", columns="metric", values="value", sort=False)
    wide = wide.reindex(columns=[*METRICS, "agreement"])
    found = cells.join(wide, on="cell").sort_values("cell", ignore_index=True)
    settings = found["setting"].map(json.loads)
    found["scale"] = settings.map(lambda parts: parts.get("scale", ""))
    found["parameters"] = settings.map(_parameters)
    found["own"] = found["scale"] == found["method"].map(own_scaling)  # counts if all are equal
    by = found.sort_values(["agreement", "own"], ascending=False, kind="stable")
    return found.assign(counts=found.index.isin(by.groupby(_PROBLEM).head(1).index))


def _parameters(setting: dict[str, Any]) -> str:
    others = {k: v for k, v in setting.items() if k not in ("scale", "order", "masks")}
    return ", ".join(f"{name}={value}" for name, value in others.items())


def leaderboard(data: Data) -> pd.DataFrame:
    """Mean over the draws for each data set, share of missing samples and method.

    A method that did not finish one of the draws has no score.
    """
    found = tried(data)
    found = found[found["counts"]]
    if found.empty:
        return found
    where = ["dataset", "ratio", "method"]
    draws = found.groupby(where, sort=False)
    table = draws.agg(
        **{metric: (metric, _mean) for metric in METRICS},
        ACC_std=("ACC", "std"),
        draws=("cell", "count"),
        agreement=("agreement", _mean),
        scale=("scale", lambda names: "/".join(dict.fromkeys(names))),
        parameters=("parameters", "first"),
        cpu_seconds=("cpu_seconds", "median"),
        wall_seconds=("wall_seconds", "median"),
        peak_bytes=("peak_bytes", "median"),
        n_samples=("n_samples", "max"),
        note=("status", worst),
    ).reset_index()
    spent = ["cpu_seconds", "wall_seconds", "peak_bytes"]
    table[spent] = table[spent].where(table["note"] == "", axis=0)
    return ordered(table)


def _mean(values: pd.Series) -> float:
    return float(values.mean(skipna=False))


def blocks(table: pd.DataFrame, ratio: float, column: str = "ACC") -> pd.DataFrame:
    """Return data sets × methods at one share of missing samples, where all methods were asked.

    Methods that do not take incomplete views were not asked about them: they are not in the table
    of shares above 0, and data sets that lack samples by themselves are not in that of 0.
    """
    part = table[table["ratio"] == ratio]
    wide = part.pivot(index="dataset", columns="method", values=column)
    asked = part.assign(asked=1).pivot(index="dataset", columns="method", values="asked")
    return wide[asked.notna().all(axis=1)]


def rank(values: Any) -> Any:
    """Rank methods (columns) on each data set (row) from 1, the best; equal ones share a rank.

    Examples
    --------
    >>> from viewfold_research.bench._ranks import rank
    >>> rank([[90, 80, 80, float("nan")]])
    array([[1. , 2.5, 2.5, 4. ]])
    """
    from scipy.stats import rankdata

    return rankdata(-np.nan_to_num(np.asarray(values, float), nan=-np.inf), axis=1)


def critical_difference(n_methods: int, n_sets: int) -> float:
    """Return by how much mean ranks must differ to be told apart, by Nemenyi's test at 5 %.

    Examples
    --------
    >>> from viewfold_research.bench._ranks import critical_difference
    >>> round(critical_difference(4, 14), 2)  # an example of Demsar's, 2006
    1.25
    """
    from scipy.stats import studentized_range

    q = studentized_range.ppf(1 - LEVEL, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def friedman(values: Any) -> float:
    """Return the p-value of Friedman's test that all methods (columns) are equally good."""
    from scipy.stats import friedmanchisquare

    ranks = rank(values)
    if ranks.shape[0] < 2 or ranks.shape[1] < 3 or not np.ptp(ranks):
        return float("nan")
    return float(friedmanchisquare(*ranks.T).pvalue)


def ranks(data: Data) -> pd.DataFrame:
    """Rank the methods for each share of missing samples, with what they take.

    Means and medians are over the data sets that a method finished; better, even and worse count
    data sets on which `OURS` is above it, within a point, and below.
    """
    import pandas as pd

    table = leaderboard(data)
    found = [_ranked(table, ratio) for ratio in sorted(table["ratio"].unique())]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def _ranked(table: pd.DataFrame, ratio: float) -> pd.DataFrame:
    import pandas as pd

    acc, nmi = (blocks(table, ratio, metric) for metric in METRICS[:2])
    if acc.empty:
        return pd.DataFrame()
    part = table[(table["ratio"] == ratio) & table["dataset"].isin(acc.index)]
    spent = part.groupby("method")[["cpu_seconds", "peak_bytes"]].median()
    found = pd.DataFrame(
        {
            "ratio": ratio,
            "rank": rank(acc).mean(axis=0),
            "rank_NMI": rank(nmi).mean(axis=0),
            "ACC": acc.mean(),
            "NMI": nmi.mean(),
            "finished": acc.notna().sum(),
            "sets": len(acc),
            **_duels(acc),
        },
        index=acc.columns,
    ).join(spent)
    found["critical_difference"] = critical_difference(acc.shape[1], len(acc))
    found["p_equal"] = friedman(acc)
    names = {name: i for i, name in enumerate(methods(part))}
    found = found.reset_index(names="method")
    return found.sort_values(
        ["rank", "method"], key=lambda c: c.map(names) if c.name == "method" else c
    )


def _duels(acc: pd.DataFrame) -> dict[str, Any]:
    """Count on how many data sets `OURS` is better than each method, about even, and worse."""
    if OURS not in acc:
        return {}
    full = acc.fillna(-np.inf)
    ours, others = full[OURS].to_numpy()[:, None], full.drop(columns=OURS)
    with np.errstate(invalid="ignore"):
        ahead = np.nan_to_num(ours - others, nan=0.0)  # neither came to an end
    counts = {"better": ahead > EVEN, "even": np.abs(ahead) <= EVEN, "worse": ahead < -EVEN}
    return {
        name: dict(zip(others.columns, where.sum(axis=0), strict=True))
        for name, where in counts.items()
    }


def scalings(data: Data) -> pd.DataFrame:
    """Say what the choice of the scaling without classes does to each method.

    Mean accuracy over problems on which all its scalings were finished: with the method's own
    scaling, with the one that counts, and with the best one, which only classes can tell.
    """
    found = tried(data)
    if found.empty:
        return found
    group = found.groupby(_PROBLEM, sort=False)
    found["several"] = group["ACC"].transform("size") > 1
    found["finished"] = group["ACC"].transform(lambda values: values.notna().all())
    found = found[found["several"] & found["finished"]]
    first = found[found["own"]]
    chosen = found[found["counts"]]
    best = found.groupby(_PROBLEM, sort=False)["ACC"].max().reset_index()
    table = first.groupby("method").agg(problems=("cell", "count"), own=("ACC", "mean"))
    table["chosen"] = chosen.groupby("method")["ACC"].mean()
    table["best"] = best.groupby("method")["ACC"].mean()
    table["own_counts"] = first.groupby("method")["counts"].mean()
    return table.reset_index()
