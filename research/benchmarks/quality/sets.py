"""The data sets that accuracy is measured on, and which samples are missing from which view.

Sets are ``.npz`` files in one folder: ``view_0``, … or the parts of a CSR matrix, and ``y``. The
paper's rule draws samples at random whatever the order of rows, so that rows stay as they are.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from viewfold import missing

OLD = (
    "uci-digit",
    "proteinFold",
    "wiki",
    "100leaves",
    "bbcsport",
    "3sources",
    "msrc-v5",
    "orl-4views",
)
"""The sets that version 0.1 was built on."""

NEW = (
    "webkb",
    "bbc-4view",
    "yale-3view",
    "acm",
    "movies",
    "handwritten",
    "dermatology",
    "mnist-2k",
    "bdgp",
    "tcga-breast",
    "mouse-cortex",
)
"""Sets that came later, chosen because version 0.1 did badly on many of them."""

LARGE = "mnist-4features"
SETS = (*OLD, *NEW)
RATIOS = (0.0, 0.3, 0.5)
DRAWS = 3

ZEROS_ARE_ABSENT = {"bdgp"}
"""Sets in which a row of zeros is a sample that the view lacks, as a row of NaN is in every set."""


@dataclass(frozen=True)
class DataSet:
    """Views of the same samples, their classes, and which samples a view really lacks."""

    views: list[Any]
    y: np.ndarray
    absent: np.ndarray

    @property
    def k(self) -> int:
        """How many classes there are."""
        return int(self.y.max()) + 1

    @property
    def complete(self) -> bool:
        """Whether every view has every sample."""
        return not self.absent.any()


@lru_cache(maxsize=2)
def load(folder: Path, name: str) -> DataSet:
    """Read a set; samples that no view has are left out."""
    views, absent = [], []
    with np.load(folder / f"{name}.npz") as file:
        y = file["y"]
        for i in itertools.count():
            if f"view_{i}" in file:
                X = file[f"view_{i}"]
                gone = np.isnan(X).any(axis=1)
                if name in ZEROS_ARE_ABSENT:
                    gone |= ~X.any(axis=1)
                X = np.where(gone[:, None], 0, X) if gone.any() else X
            elif f"view_{i}_data" in file:
                parts = tuple(file[f"view_{i}_{part}"] for part in ("data", "indices", "indptr"))
                X = sparse.csr_array(parts, shape=tuple(file[f"view_{i}_shape"]))
                gone = np.zeros(len(y), bool)
            else:
                break
            views.append(X)
            absent.append(gone)
    table = np.column_stack(absent)
    kept = ~table.all(axis=1)
    if not kept.all():
        views, y, table = [X[kept] for X in views], y[kept], table[kept]
    return DataSet(views, np.unique(y, return_inverse=True)[1], table)


def mask(data: DataSet, ratio: float, draw: int) -> np.ndarray:
    """Return what is missing: what is really absent, and as much as the paper's rule draws.

    A sample that would be left without any view keeps one of those that it really has.
    """
    n, m = data.absent.shape
    if not ratio:
        return data.absent
    gone = missing.by_paper_rule(n, m, ratio, draw) | data.absent
    rng = np.random.default_rng(draw)
    for i in np.flatnonzero(gone.all(axis=1)):
        gone[i, rng.choice(np.flatnonzero(~data.absent[i]))] = False
    return gone
