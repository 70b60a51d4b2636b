"""The class `View` (sample ids, a row of numbers for each of them, a name) and what describes it.

`Column` says what became of a column of a table, `Gaps` which cells are missing, and `Partitions`
where rows came from that were read in partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from viewfold._util.arguments import warn_user
from viewfold._util.constants import FEWEST
from viewfold._util.file import ReadOptions, nothing_in_common
from viewfold._util.messages import format_names, frozen_record, with_suggestion
from viewfold._util.types import Array, Kind, Matrix
from viewfold.errors import DeliveryWarning
from viewfold.rows import BucketRows, RowSet, engine_of
from viewfold.rows.linalg import column_sums, filled, is_sparse


@dataclass(frozen=True)
class Column:
    """A column of a table and what became of it, so that later rows get the same features.

    A number is a feature; a category has an indicator for each of its levels; a date is days since
    the view's first, and perhaps sine and cosine of month and weekday; "out" was left out.
    """

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()  # of a category; of a date, what it gives
    first: float = 0.0  # of a date: the view's first, in days since 1970
    # At least how many samples of a folded view have each level; see `viewfold.state.state`.
    counts: tuple[int, ...] = field(default=(), compare=False)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that it gives: ``ward=ICU``, ``admitted.days``."""
        if self.kind == "number":
            return (self.name,)
        sign = "=" if self.kind == "category" else "."
        return tuple(f"{self.name}{sign}{level}" for level in self.levels)


def features_of(columns: Iterable[Column]) -> tuple[str, ...]:
    return tuple(name for column in columns for name in column.features)


def columns_for(columns: Iterable[Column], features: Sequence[str]) -> tuple[Column, ...] | None:
    """Return columns, and their levels, in an order that gives the features; None if none does."""
    place = {name: j for j, name in enumerate(features)}
    held = []
    for column in columns:
        pairs = zip(column.features, column.levels, strict=False)  # a number has no levels
        pairs_in_order = sorted(pairs, key=lambda pair: place.get(pair[0], -1))
        held.append(replace(column, levels=tuple(level for _, level in pairs_in_order)))
    held.sort(key=lambda column: place.get(next(iter(column.features), ""), -1))
    return tuple(held) if features_of(held) == tuple(features) else None


def tell_columns(
    known: Mapping[str, Kind], names: Sequence[str], label: str, *, strict: bool = False
) -> None:
    """Say which columns of a known view a table lacks, and which are new; refuse another table.

    What is missing counts as missing cells, what is new is ignored; `strict` refuses both.
    """
    needed = [name for name, kind in known.items() if kind != "out"]
    there = set(names)
    missing = [name for name in needed if name not in there]
    new = [name for name in names if name not in known]
    if len(missing) == len(needed):
        raise nothing_in_common(label, names, needed)
    if not missing and not new:
        return
    said, options = "", {}
    if missing:
        if 2 * len(missing) > len(needed):
            said += " Most columns of the view are missing: is this the right table?"
        said += f" Missing are {len(missing):,} of {len(needed):,} columns "
        said += f"({format_names(missing, 5)}): their cells count as missing cells."
    if new:
        said += f" Columns that the view does not know: {format_names(new, 5)}. They are ignored "
        said += "until the view is refreshed."
    if len(missing) == len(new) == 1 and get_close_matches(new[0].lower(), [missing[0].lower()]):
        options = {"rename": {missing[0]: new[0]}}
        said += f" If {new[0]!r} is the new name of {missing[0]!r}, say rename={options['rename']}."
    told = DeliveryWarning(f"{label}:{said}")
    if strict:
        raise with_suggestion(told, **options)
    warn_user(told if missing else str(told))


@frozen_record
class Gaps:
    """Which cells of a view are missing: the mean of the feature stands for each of them."""

    count: Array  # (n_features,): missing cells among the samples that the view has
    mean: Array  # (n_features,): of the cells that are there
    # Features that fewer than ten samples have. They count as constant: what is kept of a view may
    # not depend on fewer.
    rare: Array
    n_rows: int  # samples that lack a cell
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
        return replace(self, count=self.count[order], mean=self.mean[order], rare=self.rare[order])


def missing_in(block: Matrix) -> Matrix:
    """Return which cells of a block are missing: a dense or sparse matrix of bool."""
    if not is_sparse(block):
        return np.isnan(block)
    gone = block.copy()
    gone.data = np.isnan(block.data)
    return gone


@frozen_record
class Partitions:
    """Where the rows of a view came from that was read in partitions."""

    names: tuple[str, ...]  # as errors call the partitions
    starts: Array  # (n_partitions + 1,): the number of the first row of each, and of all rows
    numbers: BucketRows | None  # the row number of each sample; None where it is not needed
    absent: int | None = None  # the number of the first row that is no sample

    def place(self, row: int) -> str:
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
    length, file, checked, n_empty, columns, source, gaps, partitions, invented, n_absent, batches
        What `as_view` found out, for whoever folds it.
    """

    ids: RowSet
    rows: RowSet
    name: str | None = None
    features: tuple[str, ...] | None = None
    # Of a view that came without ids, the number of rows it came with (absent ones included): its
    # ids are then row numbers. None if the ids were given.
    length: int | None = None
    file: str | None = None  # the path it was read from; errors name it
    checked: bool = False  # whether its cells were checked, which is done once
    n_empty: int = 0  # how many rows of zeros were taken for absent samples; see `as_view`
    columns: tuple[Column, ...] | None = None  # of a table with others than numbers
    source: ReadOptions | None = None  # how it was read, as far as later rows have to be read so
    gaps: Gaps | None = None  # its missing cells, if it has any
    partitions: Partitions | None = None  # of a view that was read in partitions: where rows were
    invented: bool = False  # nobody chose the name: `as_views` made it up
    n_absent: int = 0  # how many rows it came with that are no sample: of NaN, or zeros for it
    # Of more rows of a known view: what removes the differences of its batches
    batches: Callable[[Matrix], Matrix] | None = None

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
        return 0 if self.gaps is None else int(self.gaps.count.sum())

    @property
    def shape(self) -> tuple[int, int]:
        """Samples, features."""
        n, d = self.rows.shape
        return n, d

    def missing(self) -> dict[str, Any]:
        """Tell how many cells are missing, their share, and which features lack most."""
        gaps, (n, d) = self.gaps, self.shape
        if gaps is None:
            return {"cells": 0, "share": 0.0, "samples": 0, "features": 0, "worst": {}}
        at = np.argsort(-gaps.count, kind="stable")[: min(3, np.count_nonzero(gaps.count))]
        parts = (gaps.count[at] / gaps.n_samples).tolist()
        names = [str(self.features[j] if self.features else j) for j in at.tolist()]
        return {
            "cells": self.n_missing,
            "share": round(self.n_missing / (n * d), 4),
            "samples": gaps.n_rows,
            "features": np.count_nonzero(gaps.count),
            "worst": {name: round(part, 4) for name, part in zip(names, parts, strict=True)},
        }

    def __repr__(self) -> str:
        n, d = self.shape
        held: Any = getattr(self.rows, "X", self.rows)
        kind = "sparse" if self.rows.is_sparse else str(held.dtype)
        return f"View({self.name!r}, {n} samples × {d} features, {kind})"


def invented_name(taken: Collection[str], number: int) -> str:
    """Return a name for a view that has none: ``view`` and a number, and no name that is taken."""
    while f"view{number}" in taken:
        number += 1
    return f"view{number}"


def view_label(name: str | None, file: str | None = None) -> str:
    """Return how errors call a view."""
    label = "The view" if name is None else f"View {name!r}"
    return label if file is None else f"{label} ({file})"
