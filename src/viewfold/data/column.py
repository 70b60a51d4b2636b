"""What records of views remember of how they were read: what became of columns, and other choices.

Rows that come later are read in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from viewfold._util.types import Kind


@dataclass(frozen=True)
class Column:
    """A column of a table, and what became of it.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "category", "date", "out"}
        What it is: a number is a feature, a category has an indicator for each of its levels, a
        date is days since the view's first, and perhaps sine and cosine of month and weekday;
        "out" was left out.
    levels : tuple of str
        The levels of a category; of a date, what it gives.
    first : float
        Of a date: the view's first, in days since 1970.
    counts : tuple of int
        Of a category of a view that was folded: at least how many samples have each level; see
        `viewfold.state.columns`.

    Examples
    --------
    >>> from viewfold.data.column import Column
    >>> Column("ward", "category", ("ER", "ICU")).features
    ('ward=ER', 'ward=ICU')
    >>> Column("admitted", "date", ("days", "month.sin", "month.cos")).features
    ('admitted.days', 'admitted.month.sin', 'admitted.month.cos')
    """

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()
    first: float = 0.0
    counts: tuple[int, ...] = field(default=(), compare=False)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that it gives."""
        if self.kind == "number":
            return (self.name,)
        sign = "=" if self.kind == "category" else "."
        return tuple(f"{self.name}{sign}{level}" for level in self.levels)


@dataclass(frozen=True)
class Source:
    """What a user said about how to read a view, and rows that come later have to know.

    Attributes
    ----------
    empty_markers : tuple of str or None
        What stands for a missing cell in text; None if nothing was said.
    layer, use_rep : str or None
        Of an AnnData: what was taken instead of ``X``.
    """

    empty_markers: tuple[str, ...] | None = None
    layer: str | None = None
    use_rep: str | None = None


def columns_for(columns: Iterable[Column], features: Sequence[str]) -> tuple[Column, ...] | None:
    """Return columns, and their levels, in an order that gives the features; None if none does.

    Examples
    --------
    >>> from viewfold.data.column import Column, columns_for
    >>> columns = [Column("iron", "number"), Column("ward", "category", ("ER", "ICU"))]
    >>> [column.name for column in columns_for(columns, ("ward=ICU", "ward=ER", "iron"))]
    ['ward', 'iron']
    """
    place = {name: j for j, name in enumerate(features)}
    held = [
        replace(column, levels=_sorted(column.levels, column.features, place)) for column in columns
    ]
    held.sort(key=lambda column: place.get(next(iter(column.features), ""), -1))
    return tuple(held) if features_of(held) == tuple(features) else None


def _sorted(
    levels: tuple[str, ...], features: tuple[str, ...], place: dict[str, int]
) -> tuple[str, ...]:
    if not levels:
        return levels
    pairs = zip(features, levels, strict=True)
    return tuple(level for _, level in sorted(pairs, key=lambda pair: place.get(pair[0], -1)))


def features_of(columns: Iterable[Column]) -> tuple[str, ...]:
    """Return the names of the features that columns give, in order."""
    return tuple(name for column in columns for name in column.features)
