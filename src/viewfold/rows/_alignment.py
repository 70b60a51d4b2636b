"""Where the samples of a view and those known before stand in their union, bucket by bucket."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from viewfold.rows._tasks import Merge, absent, both, carried, is_known, partners
from viewfold.rows.base import RowSet, Work
from viewfold.rows.bucketed import BucketRows, Made
from viewfold.rows.plain import Stored

if TYPE_CHECKING:
    from viewfold.rows.buckets import BucketEngine


@dataclass(frozen=True)
class BucketAlignment:
    """Where the samples of a view and those known before stand in their union; see `Alignment`.

    Attributes
    ----------
    engine : BucketEngine
        Computes with the rows.
    before, view : BucketRows
        The ids that were known before, and those of the view.
    files : list of tuple of Stored
        For each bucket: the ids of the union, and what a `LocalAlignment` holds.
    owner : object
        Files are removed when nobody holds it any more.
    """

    engine: BucketEngine
    before: BucketRows
    view: BucketRows
    files: list[tuple[Stored, ...]]
    owner: Any

    @property
    def ids(self) -> BucketRows:
        """The union."""
        kind = {part[0].dtype for part in self.files if part[0].n}
        held = np.dtype(kind.pop()) if kind else self.view.held
        return BucketRows(
            tuple(of[0] for of in self.files), held, (), self.engine, owner=self.owner
        )

    @property
    def known(self) -> BucketRows:
        """For each row of the view, whether its sample was known."""
        parts = tuple(Made(is_known, (of[3],), of[3].n) for of in self.files)
        return BucketRows(parts, np.dtype(bool), (), self.engine, owner=self.owner)

    @property
    def n_samples(self) -> int:
        """How many samples are in the union."""
        return sum(of[0].n for of in self.files)

    @property
    def n_before(self) -> int:
        """How many samples were known before."""
        return self.before.n

    @property
    def n_shared(self) -> int:
        """How many samples are in both."""
        return self.before.n - sum(of[4].n for of in self.files)

    @property
    def n_new(self) -> int:
        """How many samples are in the view only."""
        return self.view.n - self.n_shared

    def _made(self, make: Work, which: int, rows: RowSet, n: Callable[[int], int]) -> BucketRows:
        rows = rows if isinstance(rows, BucketRows) else self.engine._nothing(rows)
        parts = tuple(
            Made(make, (of[which], part), n(i))
            for i, (of, part) in enumerate(zip(self.files, rows.parts, strict=True))
        )
        owner = (self.owner, rows.owner)
        many = sum(part.n for part in parts) * int(np.prod(rows.tail))
        return BucketRows(parts, rows.held, rows.tail, self.engine, stored=many, owner=owner)

    def partners(self, rows: RowSet, fill: float = 0) -> BucketRows:
        """Return, for each row of the view, what is known of its sample."""
        return self._made(partial(partners, fill=fill), 3, rows, lambda i: self.files[i][3].n)

    def absent(self, rows: RowSet) -> BucketRows:
        """Return what is known of the samples that the view lacks."""
        return self._made(absent, 4, rows, lambda i: self.files[i][4].n)

    def view_rows(self, rows: RowSet) -> BucketRows:
        """Return, for each row of the view, the row of its sample among those of the union."""
        return self._made(partial(partners, fill=0), 1, rows, lambda i: self.files[i][1].n)

    def known_rows(self, rows: RowSet) -> BucketRows:
        """Return, for each sample known before, its row among those of the union."""
        return self._made(partial(partners, fill=0), 2, rows, lambda i: self.files[i][2].n)

    def carry(self, rows: RowSet, fill: float) -> BucketRows:
        """Return what is known of each sample of the union."""
        rows = rows if isinstance(rows, BucketRows) else self.engine._nothing(rows)
        parts = tuple(
            Made(partial(carried, fill=fill, n=of[0].n), (of[2], part), of[0].n)
            for of, part in zip(self.files, rows.parts, strict=True)
        )
        return BucketRows(parts, rows.held, rows.tail, self.engine, owner=(self.owner, rows.owner))

    def merge(self, of_view: tuple[Any, ...], of_absent: tuple[Any, ...]) -> BucketRows:
        """Return a row for each sample of the union."""
        (work, *rows), (others_work, *others) = of_view, of_absent
        path, owner = self.engine.room()
        items = [
            (i, (*(one.parts[i] for one in (*rows, *others)), *of[1:]))
            for i, of in enumerate(self.files)
            if of[0].n
        ]
        task = Merge(path, work, others_work, openers(tuple(rows)), openers(tuple(others)))
        files, *_ = self.engine._checked(task, items, both)
        (made,) = self.engine._rows(files, [of[0].n for of in self.files], owner)
        return made


def openers(rows: tuple[BucketRows, ...]) -> tuple[Work, ...]:
    """Return what is done with opened parts of each before they are read."""
    return tuple(one.opener for one in rows)
