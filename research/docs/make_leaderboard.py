"""Write the leaderboard's tables and figures into docs/, from the cells in benchmarks/leaderboard.

    python research/docs/make_leaderboard.py            # from the cells that are kept there
    python research/docs/make_leaderboard.py RESULTS    # and those of a folder

Tables go between the comments ``<!-- board: … -->`` and ``<!-- end -->`` of baselines.md:
nothing between them is typed by hand, and a test compares them with the cells.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pandas as pd

from viewfold_research.bench import show
from viewfold_research.bench._ranks import EVEN, OURS
from viewfold_research.bench._sheets import seconds

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "benchmarks" / "leaderboard"
PAGE = ROOT / "docs" / "baselines.md"
MARK = re.compile(r"(<!-- board: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
TABLES = ("cells", "scores", "curves")
FIGURES = {
    "time": "time-baselines.svg",
    **{f"leaderboard-{share}": f"leaderboard-{share}.svg" for share in (0, 30, 50)},
}


def keep(folder: Path) -> None:
    """Copy the cells of the leaderboard and of the running time to where they are kept."""
    with duckdb.connect(folder / "results.duckdb", read_only=True) as database:
        for name in TABLES:
            database.execute(
                f"copy (select t.* from {name} t join cells c using (cell) "
                "where c.experiment in ('leaderboard', 'time') order by all) "
                f"to '{KEPT / name}.parquet' (compression zstd)"
            )


def unpack(folder: Path) -> None:
    """Make the database of `viewfold bench` again in an empty folder."""
    with duckdb.connect(folder / "results.duckdb") as database:
        database.execute(f"set file_search_path = '{ROOT}'")
        database.execute(f"import database '{KEPT}'")


def lines(header: list[str], rows: list[list[str]]) -> str:
    """Return a table of Markdown."""
    every = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in every)


def ranks(table: pd.DataFrame, share: str) -> str:
    """Return the methods at one share of missing samples, the best first."""
    part = table[table["ratio"] == int(share) / 100]
    one, rows = part.iloc[0], []
    for line in part.to_dict("records"):
        name, ours = line["method"], line["method"] == OURS
        duels = " / ".join(f"{line[word]:.0f}" for word in ("better", "even", "worse") if not ours)
        rows.append(
            [
                f"**{name}**" if ours else name,
                *(f"{line[key]:.1f}" for key in ("rank", "rank_NMI", "ACC", "NMI")),
                f"{line['finished']}",
                duels,
                seconds(line["cpu_seconds"]),
                f"{line['peak_bytes'] / 1e6:.0f}",
            ]
        )
    header = ["method", "rank ACC", "rank NMI", "ACC", "NMI", "finished"]
    header += ["better / even / worse", "CPU s", "MB"]
    apart = f"{one['sets']} sets; critical difference {one['critical_difference']:.2f} ranks"
    return f"{apart}\n\n{lines(header, rows)}"


def sets(table: pd.DataFrame) -> str:
    """Return accuracies of ViewFold and of the best other method, set by set."""
    rows, shares = [], sorted(table["ratio"].unique())
    for name, part in table.groupby("dataset", sort=False):
        row = [str(name), f"{part['n_samples'].max():,.0f}"]
        for share in shares:
            found = part[part["ratio"] == share].set_index("method")["ACC"]
            ours, others = found[OURS], found.drop(OURS).dropna()
            best, ahead = others.idxmax(), (others > ours + EVEN).sum()
            first = f"**{ours:.1f}**" if ours >= others.max() else f"{ours:.1f}"
            more = f" (and {ahead - 1} more)" if ahead > 1 else ""
            row += [first, f"{others.max():.1f} {best}{more}"]
        rows.append((part["n_samples"].max(), row))
    header = ["", "samples"]
    for share in shares:
        header += [f"{100 * share:.0f} %", "best other"]
    return lines(header, [row for _, row in sorted(rows, key=lambda pair: pair[0])])


def cost(cells: pd.DataFrame) -> str:
    """Return what it took to compute all cells."""
    cells = cells[cells["experiment"] == "leaderboard"]
    ended, late = cells["cpu_seconds"].sum() / 60, (cells["status"] == "time").sum()
    return (
        f"{len(cells):,} cells of {cells['dataset'].nunique()} sets: {ended:.0f} minutes of CPU "
        f"time in those that ended, and up to 30 seconds in each of the {late} that did not end "
        f"in time (after the first, a method is not asked again on the same set).\n"
    )


def scalings(table: pd.DataFrame) -> str:
    """Return what the choice of a scaling without classes does to each method."""
    rows = [
        [
            line["method"],
            str(line["problems"]),
            *(f"{line[key]:.1f}" for key in ("own", "chosen", "best")),
            f"{100 * line['own_counts']:.0f} %",
        ]
        for line in table.to_dict("records")
    ]
    return lines(["method", "problems", "own", "chosen", "best by classes", "own chosen"], rows)


def boards(folder: Path) -> dict[str, str]:
    """Return what stands between the comments of the page, by their names."""
    found = show.tables(folder)
    with duckdb.connect(folder / "results.duckdb", read_only=True) as database:
        cells = database.table("cells").df()
    return {
        "cost": cost(cells),
        **{f"ranks{share}": ranks(found["ranks"], share) for share in ("0", "30", "50")},
        "sets": sets(found["leaderboard"]),
        "scalings": scalings(found["scalings"]),
    }


def page(folder: Path) -> str:
    """Return the page with the tables of today's cells."""
    made, text = boards(folder), PAGE.read_text(encoding="utf-8")
    return MARK.sub(lambda found: f"{found[1]}\n{made[found[2]]}\n{found[4]}", text)


def main() -> None:
    """Keep the cells that were asked for, and write the page and its figures from all."""
    if len(sys.argv) > 1:
        keep(Path(sys.argv[1]))
    with TemporaryDirectory() as name:
        folder = Path(name)
        unpack(folder)
        PAGE.write_text(page(folder), encoding="utf-8")
        for drawn in show.write(folder, ["svg"]):
            (ROOT / "docs" / "figures" / FIGURES[drawn.stem]).write_bytes(drawn.read_bytes())


if __name__ == "__main__":
    main()
