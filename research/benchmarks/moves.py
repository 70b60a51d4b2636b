"""How many samples a new view moves, and what the moves are worth: a table for docs/nightly.md.

    python research/benchmarks/moves.py --data DIR [--sets NAME …] [--draws 2] [--jobs 2]

Views come in random order, complete or with 30 % of the samples missing from each by the paper's
rule. After each view but the first: the share of the samples known before that changed their
cluster, and ACC of all known samples (along the way: mean over these views; at the end: after the
last). A draw is an order and a mask.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from quality import sets
from viewfold import ViewFold, as_view
from viewfold.metrics import accuracy

RATIOS = (0.0, 0.3)
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def run(name: str, ratio: float, draw: int, folder: Path) -> list[dict[str, Any]]:
    """Fold the views of a set in a random order; return a row for each view but the first."""
    data = sets.load(folder, name)
    gone, rng = sets.mask(data, ratio, draw), np.random.default_rng(draw)
    model, found = ViewFold(data.k, random_state=0), []
    before = pd.Series(dtype=int)
    for step, v in enumerate(rng.permutation(len(data.views))):
        here = np.flatnonzero(~gone[:, v])
        view = as_view(data.views[v][here], ids=here, name=f"view {v}", empty_rows="keep")
        start = time.process_time()
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # views without common samples
            model.partial_fit(view)
        seconds = time.process_time() - start
        after = pd.Series(model.labels_, model.ids_)
        if step:
            found.append(
                {
                    "set": name,
                    "missing": ratio,
                    "draw": draw,
                    "step": step,
                    "moved": 100 * float((after[before.index] != before).mean()),
                    "ACC": 100 * accuracy(data.y[model.ids_], model.labels_),
                    "seconds": seconds,
                    "last": step == len(data.views) - 1,
                }
            )
        before = after
    return found


def summarize(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return the mean of cells (set, mask, draw), each of which is the mean of its views."""
    cell = ["set", "missing", "draw"]
    cells = table.groupby(cell, sort=False)
    found = cells[["moved", "ACC", "seconds"]].mean().rename(columns={"ACC": "along the way"})
    found.insert(2, "at the end", table[table["last"]].set_index(cell)["ACC"])
    return found.groupby(by, sort=False).mean() if by else found.mean().to_frame("mean").T


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=SHARED, metavar="DIR")
    parser.add_argument("--sets", nargs="+", default=sets.SETS, metavar="NAME")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every row to a file, too")
    asked = parser.parse_args(argv)
    cells = [(n, r, d) for n in asked.sets for r in RATIOS for d in range(asked.draws)]
    one = partial(run, folder=asked.data)
    if asked.jobs == 1:
        found = [one(*cell) for cell in cells]
    else:
        with ProcessPoolExecutor(asked.jobs, get_context("spawn")) as pool:
            found = list(pool.map(one, *zip(*cells, strict=True)))
    table = pd.DataFrame([row for rows in found for row in rows])
    by_set, by_ratio = summarize(table, ["set"]), summarize(table, ["missing"])
    whole = summarize(table, [])
    everything = pd.concat([by_set, by_ratio.rename(index=lambda r: f"{r:.0%} missing"), whole])
    print(f"| data set | {' | '.join(everything.columns)} |\n|---|---|---|---|---|")
    for name, *shares, seconds in everything.itertuples():
        print(f"| {name} | {' | '.join(f'{x:.1f}' for x in shares)} | {seconds:.2f} |")
    if asked.json:
        asked.json.write_text(json.dumps(table.to_dict("records")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
