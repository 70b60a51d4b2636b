"""How many samples went from which cluster to which, from one step to the next.

Only pairs of clusters that share samples are listed: there may be many clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viewfold._util.records import short_repr
from viewfold._util.types import Array


@dataclass(frozen=True, eq=False)
class Transfers:
    """How many samples of each cluster are in which cluster after a step; pairs that have some."""

    __repr__ = short_repr

    # (n_pairs,): before, after: the clusters; −1 before a sample was known
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    count: NDArray[np.int64]  # (n_pairs,): the samples

    @classmethod
    def of(cls, before: Array, after: Array) -> Transfers:
        """Count samples by their clusters; those that are not known afterwards are left out."""
        there = after >= 0
        old, new = (labels[there].astype(np.int64) for labels in (before, after))
        return cls._added(old, new, np.ones(old.size, np.int64))

    @classmethod
    def _added(cls, before: Array, after: Array, count: Array) -> Transfers:
        """Add up counts of the same pair."""
        codes, which = np.unique((before + 1) << 32 | after, return_inverse=True)
        total = np.bincount(which, count, minlength=len(codes)).astype(np.int64)
        return cls((codes >> 32) - 1, codes & (2**32 - 1), total)

    def __add__(self, other: Transfers) -> Transfers:
        """Return the counts of both."""
        mine = self.before, self.after, self.count
        theirs = other.before, other.after, other.count
        return self._added(*map(np.concatenate, zip(mine, theirs, strict=True)))
