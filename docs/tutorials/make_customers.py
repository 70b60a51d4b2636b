"""Write the files of docs/tutorials/customers.md: a table, embeddings of texts, and clicks.

No customer is real. Everybody belongs to one of four hidden groups; the table cannot tell two of
them apart, and few customers are in every file. `python make_customers.py FOLDER` writes the same
files whenever it runs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import io, sparse

SEED, N = 7, 600
CUSTOMERS = np.array([f"C{i:04d}" for i in range(1, N + 1)])
NAMES = ["families", "offices", "bargain hunters", "leaving"]
GROUPS = np.random.default_rng(SEED).choice(4, size=N, p=[0.35, 0.25, 0.25, 0.15])

# Mean of each group, and spread within a group. Families and those who leave have the same table.
NUMBERS = {
    "age": ([41, 46, 33, 41], 9),
    "orders": ([14, 30, 9, 14], 4),
    "spent_eur": ([620, 2900, 240, 620], 210),
    "returned_pct": ([8, 3, 22, 8], 4),
}
PLANS = np.array(["basic", "family", "business"])
PLAN_SHARES = np.array([[0.3, 0.65, 0.05], [0.1, 0.05, 0.85], [0.85, 0.1, 0.05], [0.3, 0.65, 0.05]])
PAGES = ["home", "search", "cart", "kids", "recipes", "invoices", "bulk", "sale", "coupons"]
PAGES += ["returns", "help", "contact", "cancel", "export-data", "terms"]
# How often a visitor of each group opens a page, in a hundred clicks.
HABITS = np.array(
    [
        [22, 18, 12, 14, 12, 1, 3, 5, 4, 3, 2, 2, 1, 0, 1],
        [18, 22, 14, 1, 1, 14, 16, 2, 1, 2, 4, 3, 0, 1, 1],
        [16, 14, 10, 2, 3, 0, 1, 22, 18, 9, 2, 1, 1, 0, 1],
        [18, 8, 4, 7, 5, 1, 2, 4, 3, 5, 11, 10, 11, 6, 5],
    ]
)


def accounts(rng: np.random.Generator) -> pd.DataFrame:
    """Return the table of accounts; one cell in twelve is empty."""
    table = pd.DataFrame({"customer": CUSTOMERS})
    for name, (means, spread) in NUMBERS.items():
        values = np.maximum(rng.normal(np.array(means)[GROUPS], spread), 0).round()
        table[name] = np.where(rng.random(N) < 1 / 12, np.nan, values)
    table = table.astype(dict.fromkeys(NUMBERS, "Int64"))
    table["plan"] = [PLANS[rng.choice(3, p=PLAN_SHARES[group])] for group in GROUPS]
    days = pd.to_timedelta(rng.integers(900, size=N), unit="D")
    table["joined"] = (pd.Timestamp("2023-10-01") + days).strftime("%Y-%m-%d")
    return table


def letters(rng: np.random.Generator) -> pd.DataFrame:
    """Return what a language model makes of letters to the help desk: 24 numbers for each."""
    about = rng.normal(size=(4, 24))
    about[1] = about[0] + 0.4 * about[1]  # families and offices write about the same things
    rows = about[GROUPS] + rng.normal(scale=1.0, size=(N, 24))
    return pd.DataFrame({"customer": CUSTOMERS, "embedding": list(rows.astype(np.float32))})


def clicks(rng: np.random.Generator) -> sparse.coo_array:
    """Return how often customers opened pages: mostly never."""
    visits = rng.poisson(18, size=N) + 4
    shares = HABITS[GROUPS] / HABITS[GROUPS].sum(axis=1, keepdims=True)
    return sparse.coo_array(rng.multinomial(visits, shares))


def write_clicks(folder: Path, X: sparse.coo_array, who: np.ndarray) -> None:
    """Write a sparse matrix, and the names of its rows and columns beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    io.mmwrite(folder / "matrix.mtx", X.tocsr()[who].tocoo(), field="integer")
    (folder / "barcodes.tsv").write_text("\n".join(CUSTOMERS[who]) + "\n")
    (folder / "features.tsv").write_text("\n".join(PAGES) + "\n")


def main(folder: Path) -> None:
    """Write all files."""
    rng = np.random.default_rng(SEED)
    table, written, opened = accounts(rng), letters(rng), clicks(rng)
    folder.mkdir(parents=True, exist_ok=True)

    # The first month's table has a mistake: amounts in cents, for six customers.
    first = table[:560].copy()
    first.loc[105:110, "spent_eur"] *= 100
    first.to_csv(folder / "accounts.csv", index=False)

    wrote = np.sort(rng.choice(500, 300, replace=False))
    columns = {name: pa.array(written[name][wrote]) for name in written}
    pq.write_table(pa.table(columns), folder / "letters.parquet")

    write_clicks(folder / "clicks", opened, np.sort(rng.choice(np.arange(60, 600), 460, False)))

    # The second month: those who joined since, and the six rows as they should have been.
    pd.concat([table[105:111], table[560:]]).to_csv(folder / "accounts2.csv", index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
