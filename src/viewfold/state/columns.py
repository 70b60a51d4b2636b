"""How views were read, as plain arrays: this is how state files hold it.

What became of the columns of tables, the empty markers that were named, the layer of an AnnData.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import get_args

import numpy as np

from viewfold._util.types import Array, Kind
from viewfold.data.column import Column, Source
from viewfold.errors import UnreadableError
from viewfold.state.parts import part

# Kinds of columns by their number in files: the order stays, and new ones come last.
KINDS: tuple[Kind, ...] = get_args(Kind)


@part("columns")
@dataclass(frozen=True)
class StoredColumns:
    """Columns of a table as arrays."""

    kinds: Array  # (n_columns,): what each column is, as its place in `KINDS`
    widths: Array  # (n_columns,): how many levels it has
    first: Array  # (n_columns,): of dates: the view's first, in days since 1970
    lengths: Array  # the lengths of all texts: the names of the columns, then the levels of each
    letters: Array  # the letters (Unicode code points) of all texts
    # at least how many samples have each level (0 for parts of dates); None in files of earlier
    # versions
    counts: Array | None = None

    @classmethod
    def of(cls, columns: tuple[Column, ...]) -> StoredColumns:
        """Return columns as arrays."""
        texts = [column.name for column in columns]
        texts += [level for column in columns for level in column.levels]
        counts = [n for one in columns for n in one.counts or (0,) * len(one.levels)]
        return cls(
            np.array([KINDS.index(column.kind) for column in columns], np.int32),
            np.array([len(column.levels) for column in columns], np.int32),
            np.array([column.first for column in columns], np.float64),
            *_stored(texts),
            np.array(counts, np.int64),
        )

    def columns(self) -> tuple[Column, ...]:
        """Return the columns."""
        n = len(_numbers(self.kinds, most=len(KINDS) - 1))
        if np.shape(self.first) != (n,) or len(_numbers(self.widths)) != n:
            raise UnreadableError("the columns of a view do not fit each other")
        texts = _texts(self.lengths, self.letters)
        if len(texts) != n + self.widths.sum():
            raise UnreadableError("the columns of a view have not as many names as they should")
        counts = [0] * n + self._counts()
        places = pairwise(accumulate(self.widths.tolist(), initial=n))
        made = []
        for i, (number, place, first) in enumerate(
            zip(self.kinds, places, self.first, strict=True)
        ):
            kind, levels = KINDS[int(number)], tuple(texts[slice(*place)])
            having = tuple(counts[slice(*place)]) if kind == "category" else ()
            made.append(Column(texts[i], kind, levels, float(first), having))
        return tuple(made)

    def _counts(self) -> list[int]:
        """Return how many samples have each level at least: none is certain if that is unknown."""
        total = int(self.widths.sum())
        if self.counts is None:
            return [0] * total
        if len(_numbers(self.counts, most=2**63 - 1)) != total:
            raise UnreadableError("the levels of a view do not fit their counts")
        return list(self.counts.tolist())


@part("source")
@dataclass(frozen=True)
class StoredSource:
    """A `Source` as arrays."""

    # (4,): whether empty markers were named, how many; how many layers, and representations (0 or
    # 1)
    counts: Array
    # lengths, letters: the texts, as `StoredColumns` has them: markers, layer, representation
    lengths: Array
    letters: Array

    @classmethod
    def of(cls, source: Source) -> StoredSource:
        """Return a source as arrays."""
        markers = source.empty_markers
        others = [[text] if text is not None else [] for text in (source.layer, source.use_rep)]
        counts = [markers is not None, len(markers or ()), *map(len, others)]
        texts = [*(markers or ()), *others[0], *others[1]]
        return cls(np.array(counts, np.int32), *_stored(texts))

    def source(self) -> Source:
        """Return the source."""
        texts, counts = _texts(self.lengths, self.letters), _numbers(self.counts).tolist()
        if len(counts) != 4 or sum(counts[1:]) != len(texts) or max(counts[0], *counts[2:]) > 1:
            raise UnreadableError("what a file says about how a view was read does not fit")
        named, n_markers, has_layer, has_rep = counts
        return Source(
            tuple(texts[:n_markers]) if named else None,
            texts[n_markers] if has_layer else None,
            texts[-1] if has_rep else None,
        )


def _stored(texts: list[str]) -> tuple[Array, Array]:
    """Return the lengths and the letters of texts."""
    lengths = np.array([len(text) for text in texts], np.int32)
    return lengths, np.array([ord(letter) for letter in "".join(texts)], np.int32)


def _texts(lengths: Array, letters: Array) -> list[str]:
    """Return texts from their lengths and letters."""
    if _numbers(lengths).sum() != len(_numbers(letters, most=sys.maxunicode)):
        raise UnreadableError("the texts of a view do not fit their lengths")
    whole = "".join(map(chr, letters.tolist()))
    return [whole[a:b] for a, b in pairwise(accumulate(lengths.tolist(), initial=0))]


def _numbers(array: Array, most: int = 2**31 - 1) -> Array:
    """Return an array that is to hold whole numbers from 0 on, if it does."""
    fine = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind == "i"
    if not fine or (array.size and not 0 <= array.min() <= array.max() <= most):
        raise UnreadableError("what became of the columns of a view is not in whole numbers")
    return array
