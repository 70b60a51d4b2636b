"""What became of the columns of tables, as plain arrays: this is how state files hold it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import get_args

import numpy as np

from viewfold._types import Array, Kind
from viewfold.core.parts import part
from viewfold.view._column import Column

KINDS: tuple[Kind, ...] = get_args(Kind)
"""Kinds of columns by their number in files: the order stays, and new ones come last."""


@part("columns")
@dataclass(frozen=True)
class StoredColumns:
    """Columns of a table as arrays.

    Attributes
    ----------
    kinds : ndarray of int, shape (n_columns,)
        What each column is, as its place in `KINDS`.
    widths : ndarray of int, shape (n_columns,)
        How many levels it has.
    first : ndarray of shape (n_columns,)
        Of dates: the view's first, in days since 1970.
    lengths : ndarray of int
        The lengths of all texts: the names of the columns, then the levels of each.
    letters : ndarray of int
        The letters (Unicode code points) of all texts.

    Examples
    --------
    >>> from viewfold.core.columns import StoredColumns
    >>> from viewfold.view import Column
    >>> columns = (Column("iron", "number"), Column("ward", "category", ("ER", "ICU")))
    >>> StoredColumns.of(columns).columns() == columns
    True
    """

    kinds: Array
    widths: Array
    first: Array
    lengths: Array
    letters: Array

    @classmethod
    def of(cls, columns: tuple[Column, ...]) -> StoredColumns:
        """Return columns as arrays."""
        texts = [column.name for column in columns]
        texts += [level for column in columns for level in column.levels]
        return cls(
            np.array([KINDS.index(column.kind) for column in columns], np.int32),
            np.array([len(column.levels) for column in columns], np.int32),
            np.array([column.first for column in columns], np.float64),
            np.array([len(text) for text in texts], np.int32),
            np.array([ord(letter) for letter in "".join(texts)], np.int32),
        )

    def columns(self) -> tuple[Column, ...]:
        """Return the columns.

        Raises
        ------
        ValueError
            If the arrays do not fit each other.
        """
        n = len(self.kinds)
        sizes = {len(self.widths), len(self.first), n}
        if len(sizes) > 1 or min(*self.widths, *self.lengths, 0) < 0 or self.kinds.min() < 0:
            raise ValueError("columns do not fit each other")
        if (len(self.lengths), len(self.letters)) != (n + self.widths.sum(), self.lengths.sum()):
            raise ValueError("texts of columns do not fit their lengths")
        whole = "".join(map(chr, self.letters.tolist()))
        ends = accumulate(self.lengths.tolist(), initial=0)
        texts = [whole[start:end] for start, end in pairwise(ends)]
        places = pairwise(accumulate(self.widths.tolist(), initial=n))
        return tuple(
            Column(texts[i], KINDS[int(kind)], tuple(texts[slice(*place)]), float(first))
            for i, (kind, place, first) in enumerate(
                zip(self.kinds, places, self.first, strict=True)
            )
        )
