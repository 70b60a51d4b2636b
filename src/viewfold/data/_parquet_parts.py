"""Views in several Parquet files: what each of them holds, and which rows are read at once.

Files of one view have the same columns, whatever their order. A large file is read by its row
groups, and small ones several at a time, so that whoever reads holds a bounded number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from viewfold._util.file import ReadOptions, is_address
from viewfold._util.messages import format_names
from viewfold.data._spool import Spool
from viewfold.data.fetch import fetched, with_end_only
from viewfold.data.source import Batch, FileError, reading

if TYPE_CHECKING:
    from viewfold.data._tables import Table


@dataclass(frozen=True)
class Facts:
    """What is known of a file before its rows are read.

    Attributes
    ----------
    features, dtype, dropped, id_kind, sizes, nothing
        See `viewfold.data._tables.Table`.
    coded : frozenset of str
        Columns whose cells are not numbers.
    """

    features: tuple[str, ...] | None
    dtype: np.dtype[Any]
    coded: frozenset[str]
    dropped: tuple[str, ...]
    id_kind: str
    sizes: tuple[int, ...] | None
    nothing: frozenset[str]

    @classmethod
    def of(cls, table: Table) -> Facts:
        """Return what an opened table tells."""
        coded = frozenset(table.codes) - table.nothing
        return cls(
            table.features,
            table.dtype,
            coded,
            table.dropped,
            table.id_kind,
            table.sizes,
            table.nothing,
        )

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return sum(self.sizes or ())

    @property
    def is_empty(self) -> bool:
        """Whether there is no row: what columns hold is not known then."""
        return self.sizes is not None and not self.n_rows


def facts_of(file: str, ids: str | None, options: ReadOptions) -> Facts:
    """Look at the columns of a Parquet file; of one elsewhere, no rows are fetched for that."""
    whole = not is_address(file)
    place = file if whole else with_end_only(file)
    with reading(place, "Parquet"):
        if not whole and _has_lists(place, ids):  # the first list tells how long they are
            place = file
    return Facts.of(_opened(place, ids, options))


def _has_lists(file: str, ids: str | None) -> bool:
    import pyarrow.parquet

    from viewfold.data._arrow_tables import list_columns

    return None in list_columns(pyarrow.parquet.read_schema(file), ids).values()


def same_columns(facts: Facts, first: Facts, file: str, first_file: str) -> NDArray[np.intp] | None:
    """Refuse a file with other columns than the first; return their order, if it is another.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.data._parquet_parts import Facts, same_columns
    >>> kind, none = np.dtype(float), frozenset()
    >>> one = Facts(("iron", "zinc"), kind, none, (), "texts", (5,), none)
    >>> two = Facts(("zinc", "iron"), kind, none, (), "texts", (3,), none)
    >>> same_columns(two, one, "b.parquet", "a.parquet")
    array([1, 0])
    """
    why = _difference(facts, first)
    if why:
        raise FileError(
            f"{file}: other columns, or columns of other types, than {first_file}: {why}. Files "
            "that are one view need the same columns."
        )
    if facts.features == first.features:
        return None
    assert facts.features is not None
    assert first.features is not None
    place = {name: j for j, name in enumerate(facts.features)}
    return np.array([place[name] for name in first.features], np.intp)


def _difference(facts: Facts, first: Facts) -> str:
    from viewfold.data._tables import without

    mine, theirs = facts.features, first.features
    if mine is None or theirs is None:
        return "" if mine == theirs else "only one of them has names"
    lacking, more = without(theirs, mine), without(mine, theirs)
    if lacking or more:
        found = [f"it has no {format_names(lacking, 5)}"] * bool(lacking)
        return " and ".join([*found, *[f"it has {format_names(more, 5)}"] * bool(more)])
    if facts.is_empty or first.is_empty:
        return ""
    unsure = facts.nothing | first.nothing
    other = sorted((facts.coded ^ first.coded) - unsure)
    if other:
        here, there = ("texts or dates", "numbers")[:: 1 if other[0] in facts.coded else -1]
        return f"column {other[0]!r} holds {here}, that of the other {there}"
    if facts.id_kind != first.id_kind:
        return f"its ids are {facts.id_kind}, those there are {first.id_kind}"
    if facts.dtype != first.dtype and not first.coded:
        return f"its numbers are {facts.dtype}, those there are {first.dtype}"
    return ""


@dataclass(frozen=True)
class Run:
    """Row groups of a file that follow each other.

    Attributes
    ----------
    file : str
        The file.
    groups : tuple of int
        The numbers of the row groups.
    row : int
        The number of their first row in the file.
    start : int
        The number of their first row in the view.
    n : int
        How many rows they have.
    """

    file: str
    groups: tuple[int, ...]
    row: int
    start: int
    n: int

    def batches(self, ids: str | None, options: ReadOptions) -> tuple[Table, Iterator[Batch]]:
        """Open the file; return its columns, and ids and rows of these groups."""
        table = _opened(self.file, ids, options, self.groups, self.row)
        return table, self._whole(table.batches(Spool()))

    def _whole(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        n = 0
        for known, block in batches:
            yield known, block
            n += len(block)
        if n != self.n:
            raise FileError(f"{self.file}: {n:,} rows where it had {self.n:,}. Was it changed?")


def _opened(
    file: str,
    ids: str | None,
    options: ReadOptions,
    groups: Sequence[int] | None = None,
    row: int = 0,
) -> Table:
    from viewfold.data._columnar import open_table

    file = fetched(file)
    with reading(file, "Parquet"):
        return open_table(file, ids, options, groups, row)


def runs_of(
    files: Sequence[str], facts: Sequence[Facts], most: int, whole: Sequence[bool]
) -> list[tuple[Run, ...]]:
    """Return what is read at once: row groups with at most so many rows, or a single one.

    Parameters
    ----------
    files : sequence of str
        The files.
    facts : sequence of Facts
        What is known of each.
    most : int
        How many rows.
    whole : sequence of bool
        For each file, whether it is read as a whole: it is copied before it is read.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.data._parquet_parts import Facts, runs_of
    >>> of = [Facts(None, np.dtype(float), None, (), "", sizes, None) for sizes in ((4, 4), (2,))]
    >>> for together in runs_of(["a", "b"], of, 6, [False, False]):
    ...     print([(run.file, run.groups, run.start, run.n) for run in together])
    [('a', (0,), 0, 4)]
    [('a', (1,), 4, 4), ('b', (0,), 8, 2)]
    """
    found: list[list[Run]] = []
    held, start = most, 0
    for file, of_file, at_once in zip(files, facts, whole, strict=True):
        row, groups = 0, list(enumerate(of_file.sizes or ()))
        cut = [groups] if at_once else [[one] for one in groups]
        for some_groups in cut:
            n = sum(size for _, size in some_groups)
            if not n:
                continue
            if held + n > most:
                found.append([])
                held = 0
            run = Run(file, tuple(i for i, _ in some_groups), row, start, n)
            last = found[-1][-1] if found[-1] else None
            if last is not None and last.file == file:
                run = Run(file, last.groups + run.groups, last.row, last.start, last.n + n)
                found[-1].pop()
            found[-1].append(run)
            held, row, start = held + n, row + n, start + n
    return [tuple(together) for together in found]


def n_rows(file: str) -> int:
    """Return how many rows a Parquet file has."""
    import pyarrow.parquet

    return int(pyarrow.parquet.read_metadata(fetched(file)).num_rows)
