"""What is said about the columns of a table: which to take, which are categories, what is missing.

Readers ask for it (`asked_now`), so that no function on the way to them has to know these options.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from viewfold._util.messages import format_names
from viewfold._util.types import Kind
from viewfold.data.source import FileError

_MARKERS = """
. - -- ? NA N/A n/a na n.a. N.A. NaN nan -nan -NaN None none NONE NULL null Null NaT <NA> #N/A #NA
1.#IND 1.#QNAN -1.#IND -1.#QNAN
"""
EMPTY_MARKERS = frozenset(["", " ", "  ", "   ", "#N/A N/A", *_MARKERS.split()])
"""What is written where there is no value, unless `empty_markers` says otherwise."""


@dataclass(frozen=True)
class Asked:
    """What is said about the columns of a table; see `viewfold.as_view`.

    Attributes
    ----------
    columns : tuple of str or None
        The columns to take; all of them if None.
    drop : tuple of str
        Columns to leave out.
    categories : dict
        Columns that are categories, whatever their cells look like, with their levels or None.
    empty_markers : frozenset of str
        What stands for a missing cell in text.
    strict : bool
        Whether a column that would be left out is an error.
    kinds : dict
        What the columns of a known view are; empty if the view is not known.
    layer, use_rep : str or None
        What a known view has instead of the ``X`` of an AnnData.
    of_views : dict of str to Asked
        What is said about each of several views, where a file holds them.
    """

    columns: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    categories: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    empty_markers: frozenset[str] = EMPTY_MARKERS
    strict: bool = False
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    layer: str | None = None
    use_rep: str | None = None
    of_views: Mapping[str, Asked] = field(default_factory=dict)

    def of_view(self, name: str) -> Asked:
        """Return what is said about one of the views of a file."""
        return self.of_views.get(name, self)

    @classmethod
    def of(
        cls,
        columns: Sequence[str] | str | None = None,
        drop: Sequence[str] | str = (),
        categories: Sequence[str] | str | Mapping[str, Sequence[str] | None] = (),
        empty_markers: Iterable[str | float] | None = None,
        strict: bool = False,
    ) -> Asked:
        """Return what a user says, in whatever form."""
        if not isinstance(categories, Mapping):
            categories = dict.fromkeys(_names("categories", categories))
        levels = {
            name: None if of is None else tuple(map(str, of)) for name, of in categories.items()
        }
        markers = EMPTY_MARKERS
        if empty_markers is not None:
            given = [empty_markers] if isinstance(empty_markers, str) else empty_markers
            markers = frozenset(["", *map(str, given)])
        taken = None if columns is None else _names("columns", columns)
        return cls(taken, _names("drop", drop), levels, markers, bool(strict))

    @property
    def names_columns(self) -> bool:
        """Whether there must be columns with names."""
        return self.columns is not None or bool(self.drop or self.categories)

    def wanted(
        self, names: Sequence[str], label: str, error: type[ValueError] = FileError
    ) -> tuple[str, ...]:
        """Return the names of the columns to read, in the order of the table."""
        if self.kinds:
            return tuple(name for name in names if self.kinds.get(name) != "out")
        there = set(names)
        for name, asked in (
            ("columns", self.columns or ()),
            ("drop", self.drop),
            ("categories", self.categories),
        ):
            unknown = [column for column in asked if column not in there]
            if unknown:
                raise error(
                    f"{label}: there is no column {unknown[0]!r}, which {name}=… names. Its "
                    f"columns: {format_names(names)}."
                )
        taken = (there if self.columns is None else set(self.columns)) - set(self.drop)
        wanted = tuple(name for name in names if name in taken)
        if not wanted:
            raise error(f"{label}: no column is left. Take another one, or leave the view out.")
        return wanted

    def kind_of(self, name: str) -> Kind | None:
        """Return what a column is, if that is said."""
        return "category" if name in self.categories else self.kinds.get(name)

    def is_coded(self, name: str) -> bool:
        """Whether cells are to be read as texts, whatever they look like."""
        return self.kind_of(name) in ("category", "date")


def _names(name: str, given: Sequence[str] | str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"{name}=… takes names of columns (texts), got {list(names)!r}.")
    return names


NOTHING = Asked()
"""Nothing is said about columns."""

_asked: ContextVar[Asked] = ContextVar("asked", default=NOTHING)


@contextmanager
def asking(asked: Asked) -> Iterator[None]:
    """Let readers know what is said about columns: no function on the way to them has to."""
    token = _asked.set(asked)
    try:
        yield
    finally:
        _asked.reset(token)


def asked_now() -> Asked:
    """Return what is said about the columns of the table that is being opened."""
    return _asked.get()
