"""What an engine can do: three verbs, and nothing else knows where rows live.

`reduce` sums small matrices over row blocks, `map` makes row blocks of row blocks, `join` aligns
samples by id. Everything else in viewfold is algebra on small matrices. In memory, on disk or on a
cluster, a method is the same program.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from viewfold._util.types import Array, Matrix

RowSet: TypeAlias = Any
"""Rows (or single values) of samples, in the engine's order: an array, if they are in memory."""

Work: TypeAlias = Callable[..., Any]


class Alignment(Protocol):
    """Where the samples of a view and those known before stand in their union.

    Attributes
    ----------
    ids : RowSet
        The union.
    known : RowSet of bool
        For each row of the view, whether its sample was known.
    n_samples, n_shared, n_new, n_before : int
        How many are in the union, in both, in the view only, and were known before.
    """

    @property
    def ids(self) -> RowSet: ...
    @property
    def known(self) -> RowSet: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def n_shared(self) -> int: ...
    @property
    def n_new(self) -> int: ...
    @property
    def n_before(self) -> int: ...

    def partners(self, rows: RowSet, fill: float = 0) -> RowSet:
        """Return, for each row of the view, what is known of its sample; `fill` if it is new."""

    def absent(self, rows: RowSet) -> RowSet:
        """Return what is known of the samples that the view lacks."""

    def view_rows(self, rows: RowSet) -> RowSet:
        """Return, for each row of the view, the row of its sample among those of the union."""

    def known_rows(self, rows: RowSet) -> RowSet:
        """Return, for each sample known before, its row among those of the union."""

    def carry(self, rows: RowSet, fill: float) -> RowSet:
        """Return what is known of each sample of the union, and `fill` for the new ones."""

    def merge(self, of_view: tuple[Any, ...], of_absent: tuple[Any, ...]) -> RowSet:
        """Return a row for each sample of the union.

        Parameters
        ----------
        of_view, of_absent : tuple of work and rows
            What `map` is to do with rows of the view, and with those of samples that it lacks.
        """


class Engine(Protocol):
    """Where rows live, and who computes with them."""

    def session(self) -> AbstractContextManager[Any]:
        """Return a context manager that is open while a state is changed."""

    def partition(self, ids: RowSet, *rows: RowSet) -> tuple[RowSet, ...]:
        """Take over samples and their rows, so that they can be joined with those that are known.

        What the engine holds already is returned as it is. Rows in memory that belong to nobody in
        particular need no place: every verb takes arrays, too.
        """

    def materialize(self, rows: RowSet) -> RowSet:
        """Return rows of a view, those whose cells are filled when they are read computed once."""

    def match(self, work: Work, rows: RowSet, others: RowSet) -> RowSet:
        """Return the rows that `work` makes of rows and of all others that could belong to them.

        Parameters
        ----------
        work : callable
            ``work(some, others)`` returns a row for each of `some`. Ids that are almost the same
            come together.
        rows, others : RowSet
            Rows of samples, in the engine's order.
        """

    def reduce(
        self, work: Work, *rows: RowSet, combine: Callable[[Any, Any], Any] | None = None
    ) -> Any:
        """Sum the small matrices that `work` makes of each block, in double precision.

        Parameters
        ----------
        work : callable
            ``work(*blocks)`` returns an array, or a tuple of arrays, of the same shapes for every
            block. There may be empty blocks.
        *rows : RowSet
            Rows of the same samples.
        combine : callable, optional
            ``combine(a, b)`` instead of the sum, with what `work` returns.
        """

    def map(
        self,
        work: Work,
        *rows: RowSet,
        sums: bool = False,
        width: int | None = None,
        reuse: bool = False,
    ) -> Any:
        """Return the rows that `work` makes of each block.

        Parameters
        ----------
        work : callable
            ``work(*blocks)`` returns a block, or a tuple of blocks, with a row for each row.
        *rows : RowSet
            Rows of the same samples.
        sums : bool, default=False
            Whether `work` returns ``(blocks, matrices)``, and the sums of these are wanted, too:
            two verbs in one pass over the data.
        width : int, optional
            Number of columns of intermediate results, if larger than that of `rows`: blocks are
            cut so that these fit.
        reuse : bool, default=False
            Whether the result may overwrite the rows, as it has their shape and type and nobody
            needs them any more; or be computed, again and again, when it is read.
        """

    def join(self, ids: RowSet, others: RowSet, *, ordered: bool = False) -> Alignment:
        """Align known samples and those of a view by their ids.

        Known samples keep their order and new ones follow in the order of the view; with `ordered`,
        all are sorted by id.
        """

    def numbers(self, rows: RowSet) -> RowSet:
        """Return a number for each row, by which it can be selected."""

    def select(self, rows: RowSet, numbers: NDArray[np.intp]) -> RowSet:
        """Return a few rows, in the given order."""

    def keep(self, rows: RowSet, kept: RowSet) -> RowSet:
        """Return the rows for which `kept` is true."""

    def leading(self, rows: RowSet, columns: int) -> RowSet:
        """Return the first columns."""

    def head(self, rows: RowSet, most: int) -> Matrix:
        """Return at most so many rows, all from one block, as an array."""

    def collect(self, rows: RowSet) -> Array:
        """Return all rows as one array; they have to fit in memory."""
