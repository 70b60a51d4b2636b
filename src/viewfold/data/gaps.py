"""Missing cells of a view: how many there are, and where.

What stands for them, unless a method knows better, is the mean of the feature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from viewfold._util.constants import FEWEST
from viewfold._util.records import short_repr
from viewfold._util.types import Array, Matrix
from viewfold.rows import RowSet, engine_of
from viewfold.rows.linalg import column_sums, filled, is_sparse


@dataclass(frozen=True, eq=False)
class Gaps:
    """What is known of the missing cells of a view.

    Attributes
    ----------
    count : ndarray of int, shape (n_features,)
        How many cells of each feature are missing, among the samples that the view has.
    mean : ndarray of shape (n_features,)
        The mean of the cells that are there.
    rare : ndarray of bool, shape (n_features,)
        Features that fewer than ten samples have. They count as constant: what is kept of a view
        may not depend on fewer.
    n_rows, n_samples : int
        How many samples lack a cell, and how many there are.
    """

    __repr__ = short_repr

    count: Array
    mean: Array
    rare: Array
    n_rows: int
    n_samples: int

    @classmethod
    def of(cls, rows: RowSet) -> Gaps:
        """Count the missing cells of some rows, in one pass over them."""

        def sums(block: Matrix) -> tuple[Array, ...]:
            gone = missing_in(block)
            there = filled(block, np.zeros(block.shape[1]))
            total = np.asarray(there.sum(axis=0, dtype=np.float64))
            return column_sums(gone), total, np.asarray((gone.sum(axis=1) > 0).sum())

        count, total, n_rows = engine_of(rows).reduce(sums, rows)
        n = rows.shape[0]
        rare = n - count < (FEWEST if n >= FEWEST else 1)
        mean = np.where(rare, 0, total / np.maximum(n - count, 1))
        return cls(count.astype(int), mean, rare, int(n_rows), n)

    def __call__(self, block: Matrix) -> Matrix:
        """Return a block with the mean of the feature in the place of each missing cell."""
        return filled(block, self.mean, self.rare)

    def of_columns(self, order: Array) -> Gaps:
        """Return the same for columns in another order."""
        return replace(self, count=self.count[order], mean=self.mean[order], rare=self.rare[order])

    @property
    def n_cells(self) -> int:
        """How many cells are missing."""
        return int(self.count.sum())

    def worst(self, features: tuple[str, ...] | None, most: int = 3) -> dict[str, float]:
        """Return the features that lack most cells, and the share of samples that lack each."""
        at = np.argsort(-self.count, kind="stable")[:most].tolist()
        return {
            str(features[j] if features else j): round(int(self.count[j]) / self.n_samples, 4)
            for j in at
            if self.count[j]
        }


def missing_in(block: Matrix) -> Matrix:
    """Return which cells of a block are missing: a dense or sparse matrix of bool."""
    if not is_sparse(block):
        return np.isnan(block)
    gone = block.copy()
    gone.data = np.isnan(block.data)
    return gone
