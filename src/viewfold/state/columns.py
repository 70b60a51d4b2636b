"""What became of the columns of a table: as arrays for files, and how many samples have each level.

No row is kept, so that nobody knows which level a forgotten sample had. What is kept is how many
samples at least have each level. Every forgotten sample of the view may have been one of them; when
none is certain to be left, the name of the level goes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, get_args

import numpy as np

from viewfold._util.file import ReadOptions
from viewfold._util.types import Array, Kind, Matrix
from viewfold.data.view import Column, features_of
from viewfold.errors import UnreadableError
from viewfold.rows.linalg import dense
from viewfold.state.parts import part

if TYPE_CHECKING:
    from viewfold.rows import Engine, RowSet
    from viewfold.state.state import ViewRecord


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
    """What is remembered of how a view was read, as arrays."""

    # (4,): whether empty markers were named, how many; how many layers, and representations (0 or
    # 1)
    counts: Array
    # lengths, letters: the texts, as `StoredColumns` has them: markers, layer, representation
    lengths: Array
    letters: Array

    @classmethod
    def of(cls, source: ReadOptions) -> StoredSource:
        markers = source.empty_markers
        others = [[text] if text is not None else [] for text in (source.layer, source.use_rep)]
        counts = [markers is not None, len(markers or ()), *map(len, others)]
        texts = [*(markers or ()), *others[0], *others[1]]
        return cls(np.array(counts, np.int32), *_stored(texts))

    def source(self) -> ReadOptions:
        texts, counts = _texts(self.lengths, self.letters), _numbers(self.counts).tolist()
        if len(counts) != 4 or sum(counts[1:]) != len(texts) or max(counts[0], sum(counts[2:])) > 1:
            raise UnreadableError("what a file says about how a view was read does not fit")
        named, n_markers, has_layer, has_rep = counts
        return ReadOptions(
            empty_markers=tuple(texts[:n_markers]) if named else None,
            layer=texts[n_markers] if has_layer else None,
            use_rep=texts[-1] if has_rep else None,
        )


def _stored(texts: list[str]) -> tuple[Array, Array]:
    lengths = np.array([len(text) for text in texts], np.int32)
    return lengths, np.array([ord(letter) for letter in "".join(texts)], np.int32)


def _texts(lengths: Array, letters: Array) -> list[str]:
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


Columns = tuple[Column, ...] | None


def count_levels(
    engine: Engine, columns: Columns, rows: RowSet, *, n_corrected: int = 0, n_known: int = 0
) -> Columns:
    """Return columns that know at least how many samples have each level, with more rows."""
    places = dict(_places(columns or ()))
    if not places:
        return columns
    at = np.array([j for cells in places.values() for j in cells], np.intp)

    def having(block: Matrix) -> Array:
        return np.asarray(np.count_nonzero(dense(block[:, at]) == 1, axis=0))

    found = dict(zip(at.tolist(), engine.reduce(having, rows).tolist(), strict=True))
    made = list(columns or ())
    for i, cells in places.items():
        before = made[i].counts or (0,) * len(cells)
        counts = [
            max(had - n_corrected, 0) + max(int(found[j]) - n_known, 0)
            for had, j in zip(before, cells, strict=True)
        ]
        made[i] = replace(made[i], counts=tuple(counts))
    return tuple(made)


def without_forgotten(record: ViewRecord, n_gone: int) -> ViewRecord:
    """Return a record without names of levels that no sample may have, now that some are gone.

    The feature stays, as encoders have a place for it, but under a number; nothing is told about it
    any more, and a cell of later rows never has it.
    """
    if record.columns is None or not n_gone:
        return record
    places, columns = dict(_places(record.columns)), list(record.columns)
    gone: list[int] = []
    for i, cells in places.items():
        counts = [max(had - n_gone, 0) for had in columns[i].counts or (0,) * len(cells)]
        nobody = [j for j, n in enumerate(counts) if not n]
        columns[i] = _renamed(replace(columns[i], counts=tuple(counts)), "forgotten", nobody)
        gone += [cells[j] for j in nobody]
    return _untold(_with_columns(record, tuple(columns)), gone)


def without_levels(record: ViewRecord) -> ViewRecord:
    if record.columns is None:
        return record
    columns = (_renamed(one, "level", range(len(one.levels))) for one in record.columns)
    return _with_columns(record, tuple(columns))


def removed_levels(before: ViewRecord, after: ViewRecord) -> dict[str, int]:
    pairs = zip(before.columns or (), after.columns or (), strict=True)
    found = {a.name: len(set(a.levels) - set(b.levels)) for a, b in pairs}
    return {name: n for name, n in found.items() if n}


def _places(columns: tuple[Column, ...]) -> Iterator[tuple[int, range]]:
    """Yield which columns are categories, and which features their levels are."""
    start = 0
    for i, column in enumerate(columns):
        stop = start + len(column.features)
        if column.kind == "category":
            yield i, range(start, stop)
        start = stop


def _renamed(column: Column, word: str, which: Sequence[int]) -> Column:
    """Return a column with numbers for names of some of its levels.

    The space at the end keeps a cell that happens to read the same from being taken for it.
    """
    if column.kind != "category":
        return column
    levels = [f"({word} {j + 1}) " if j in which else name for j, name in enumerate(column.levels)]
    return replace(column, levels=tuple(levels))


def _with_columns(record: ViewRecord, columns: tuple[Column, ...]) -> ViewRecord:
    return replace(record, columns=columns, features=features_of(columns))


def _untold(record: ViewRecord, gone: list[int]) -> ViewRecord:
    """Return a record whose moments say nothing of some features."""
    if record.moments is None or not gone:
        return record
    mean, spread, directions = (
        array.copy()
        for array in (record.moments.mean, record.moments.spread, record.moments.directions)
    )
    mean[gone], spread[gone], directions[:, gone] = 0, 0, 0
    moments = replace(record.moments, mean=mean, spread=spread, directions=directions)
    return replace(record, moments=moments)
