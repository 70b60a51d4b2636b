"""Levels of categories, and how many samples have them: `forget` removes names nobody may have.

No row is kept, so that nobody knows which level a forgotten sample had. What is kept is how many
samples at least have each level. Every forgotten sample of the view may have been one of them; when
none is certain to be left, the name of the level goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from viewfold._util.types import Array, Matrix
from viewfold.data.column import Column, features_of
from viewfold.rows.linalg import dense

if TYPE_CHECKING:
    from viewfold.rows import Engine, RowSet
    from viewfold.state.state import ViewRecord

Columns = tuple[Column, ...] | None


def counted(
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
    """Return a record that names no level of any category."""
    if record.columns is None:
        return record
    columns = (_renamed(one, "level", range(len(one.levels))) for one in record.columns)
    return _with_columns(record, tuple(columns))


def removed(before: ViewRecord, after: ViewRecord) -> dict[str, int]:
    """Return how many levels of which columns lost their names."""
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
