"""A model whose every name is markup, and pages about it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from viewfold import ViewFold
from viewfold.web import PageData, page_data, report


def markup(number: int, word: str) -> str:
    """A name that does something where it is taken for markup."""
    return f"<img src=x onerror=alert({number})>{word}"


def named() -> tuple[ViewFold, pd.DataFrame]:
    """Three views of four clusters, and metadata, with such names for everything."""
    rng = np.random.default_rng(3)
    y = rng.permutation(np.repeat(np.arange(4), 60))
    ids = pd.Index([markup(1, f"p{i}") for i in range(240)])
    model = ViewFold(4, random_state=0)
    for v, word in enumerate(("labs", "scan", "text")):
        X = 3 * rng.normal(size=(4, 6))[y] + rng.normal(size=(240, 6))
        columns = [markup(2, f"{word} {j}") for j in range(6)]
        kept = np.flatnonzero(np.arange(240) % 3 != v)
        model.partial_fit(pd.DataFrame(X, ids, columns).iloc[kept], view=markup(3, word))
    model.rename(2, markup(4, "late"))
    levels = [markup(5, "ward"), "surgery", "other"]
    metadata = pd.DataFrame(
        {markup(6, "ward"): rng.choice(levels, 240), "age": rng.normal(60, 9, 240)}, ids
    )
    return model, metadata


@cache
def named_data() -> PageData:
    model, metadata = named()
    return page_data(model, title=markup(7, "title"), ids=True, metadata=metadata, since=1)


def write(data: PageData, path: Path) -> Path:
    """Write a page as `viewfold report` does."""
    path.write_text("".join(report.html(data)), encoding="utf-8")
    return path


def tiled(data: PageData, n: int) -> PageData:
    """The same page with as many points as one likes, which are moved a little."""
    rng = np.random.default_rng(0)
    columns = {}
    for name, column in data.columns.items():
        if isinstance(column, bytes):
            continue
        longer = np.resize(column, n)
        if name in ("x", "y"):
            moved = longer + rng.normal(0, 1500, n)
            longer = np.clip(moved, 0, 65535).astype(column.dtype)
        columns[name] = longer
    kinds = {name: kind for name, kind in data.summary["columns"].items() if name in columns}
    return replace(
        data, summary={**data.summary, "n": n, "n_drawn": n, "columns": kinds}, columns=columns
    )
