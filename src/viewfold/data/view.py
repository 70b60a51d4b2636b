"""The class `View`: sample ids, a matrix with a row for each of them, and a name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from viewfold._util.file import ReadOptions
from viewfold._util.records import short_repr
from viewfold._util.types import Array
from viewfold.data.column import Column
from viewfold.data.gaps import Gaps
from viewfold.rows import BucketRows, RowSet


@dataclass(frozen=True, eq=False)
class Partitions:
    """Where the rows of a view came from that was read in partitions.

    Attributes
    ----------
    names : tuple of str
        How errors call the partitions.
    starts : ndarray of int, shape (n_partitions + 1,)
        The number of the first row of each, and of all rows.
    numbers : BucketRows, or None where they are not needed
        The row number of each sample.
    absent : int or None
        The number of the first row that is no sample.
    """

    __repr__ = short_repr

    names: tuple[str, ...]
    starts: Array
    numbers: BucketRows | None
    absent: int | None = None

    def place(self, row: int) -> str:
        """Say where a row is."""
        at = int(np.searchsorted(self.starts, row, side="right")) - 1
        return f"row {row - self.starts[at]} of {self.names[at]}"


@dataclass(frozen=True, eq=False)
class View:
    """A view: sample ids, and a row of features for each of them.

    Use `as_view` to make one; it checks what this class takes for granted.

    Parameters
    ----------
    ids : ndarray of int or object, or BucketRows
        The samples, each once.
    rows : Rows or BucketRows
        A finite row for each id, in the same order; missing cells are read as `gaps` fills them.
    name : str or None
        The view's name.
    features : tuple of str or None
        Names of the columns, where they have names.
    length : int or None
        For a view that came without ids, the number of rows it came with (absent ones included):
        its ids are then row numbers. None if the ids were given.
    file : str or None
        The path it was read from; errors name it.
    checked : bool
        Whether its cells were checked, which is done once.
    n_empty : int
        How many rows of zeros were taken for absent samples; see `as_view`.
    columns : tuple of Column or None
        Of a table with columns that are not numbers, or not taken: what became of each.
    gaps : Gaps or None
        Its missing cells, if it has any.
    source : ReadOptions or None
        What was said about how to read it, as far as later rows have to be read so.
    partitions : Partitions or None
        Of a view that was read in partitions: where its rows were.
    invented : bool
        Whether nobody chose the name: `as_views` made it up.
    """

    ids: RowSet
    rows: RowSet
    name: str | None = None
    features: tuple[str, ...] | None = None
    length: int | None = None
    file: str | None = None
    checked: bool = False
    n_empty: int = 0
    columns: tuple[Column, ...] | None = None
    source: ReadOptions | None = None
    gaps: Gaps | None = None
    partitions: Partitions | None = None
    invented: bool = False

    @property
    def n_came(self) -> int:
        """How many rows it came with, absent samples included."""
        if self.partitions is not None:
            return int(self.partitions.starts[-1])
        return int(self.rows.X.shape[0])

    @property
    def first_absent(self) -> str | None:
        """Where the first row is that is no sample."""
        if self.partitions is not None:
            row = self.partitions.absent
            return None if row is None else self.partitions.place(row)
        if self.rows.present is None:
            return None
        return f"row {np.setdiff1d(np.arange(self.n_came), self.rows.present)[0]}"

    @property
    def n_missing(self) -> int:
        """How many cells are missing in rows that have others."""
        return 0 if self.gaps is None else self.gaps.n_cells

    @property
    def shape(self) -> tuple[int, int]:
        """Samples, features."""
        n, d = self.rows.shape
        return n, d

    def missing(self) -> dict[str, Any]:
        """Tell how many cells are missing, their share, and which features lack most."""
        gaps, (n, d) = self.gaps, self.shape
        return {
            "cells": self.n_missing,
            "share": round(self.n_missing / (n * d), 4),
            "samples": 0 if gaps is None else gaps.n_rows,
            "features": 0 if gaps is None else int((gaps.count > 0).sum()),
            "worst": {} if gaps is None else gaps.worst(self.features),
        }

    def __repr__(self) -> str:
        n, d = self.shape
        held: Any = getattr(self.rows, "X", self.rows)
        kind = "sparse" if self.rows.is_sparse else str(held.dtype)
        return f"View({self.name!r}, {n} samples × {d} features, {kind})"


def invented_name(taken: Collection[str], number: int) -> str:
    """Return a name for a view that has none: ``view`` and a number, and no name that is taken.

    Examples
    --------
    >>> from viewfold.data.view import invented_name
    >>> invented_name(["labs"], 1), invented_name(["view1"], 1)
    ('view1', 'view2')
    """
    while f"view{number}" in taken:
        number += 1
    return f"view{number}"


def called(name: str | None, file: str | None = None) -> str:
    """Return how errors call a view."""
    called = "The view" if name is None else f"View {name!r}"
    return called if file is None else f"{called} ({file})"
