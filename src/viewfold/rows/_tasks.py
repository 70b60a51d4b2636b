"""What is done with one bucket, by whoever has it: tasks and recipes that are sent to workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from viewfold._util.types import Array, Matrix
from viewfold.rows._rows import Picked, Plain, RowBlocks, Rows, as_row_blocks
from viewfold.rows._threads import one_block_at_a_time
from viewfold.rows.base import Work
from viewfold.rows.bucketed import Part, plain, whole
from viewfold.rows.local import LocalAlignment, LocalEngine, added
from viewfold.rows.plain import store

Task = Callable[[Any], Any]


@dataclass(frozen=True)
class Refused:
    """An error in what a task was given."""

    error: Exception


@dataclass(frozen=True)
class Guarded:
    """A task that returns errors in what it was given: trying again would not help."""

    task: Task

    def __call__(self, item: Any) -> Any:
        try:
            with one_block_at_a_time():
                return self.task(item)
        except (ValueError, TypeError, FileNotFoundError, PermissionError, ImportError) as error:
            return Refused(error.with_traceback(None))


def combined(combine: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    for one in (a, b):
        if isinstance(one, Refused):
            return one
    return combine(a, b)


@dataclass(frozen=True)
class Listed:
    task: Task

    def __call__(self, item: Any) -> list[Any]:
        return [self.task(item)]


def appended(a: list[Any], b: list[Any]) -> list[Any]:
    return a + b


def both(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Put together what tasks say about the files they wrote, and add their sums."""
    total = None if a[1] is None else added(a[1], b[1])
    return {**a[0], **b[0]}, total, a[2]


def _opened(openers: tuple[Work, ...], parts: Sequence[Part]) -> list[Any]:
    return [opener(part.open()) for opener, part in zip(openers, parts, strict=True)]


@dataclass(frozen=True)
class Reduce:
    work: Work
    openers: tuple[Work, ...]
    combine: Callable[[Any, Any], Any] | None

    def __call__(self, item: tuple[int, tuple[Part, ...]]) -> Any:
        rows = _opened(self.openers, item[1])
        return LocalEngine().reduce(self.work, *rows, combine=self.combine)


@dataclass(frozen=True)
class Map:
    path: str
    work: Work
    openers: tuple[Work, ...]
    sums: bool
    width: int | None

    def __call__(self, item: tuple[int, tuple[Part, ...]]) -> Any:
        number, parts = item
        rows = _opened(self.openers, parts)
        made = LocalEngine().map(self.work, *rows, sums=self.sums, width=self.width)
        blocks, total = made if self.sums else (made, None)
        several = isinstance(blocks, tuple)
        return _written(self.path, number, blocks if several else (blocks,)), total, several


@dataclass(frozen=True)
class Match:
    path: str
    work: Work

    def __call__(self, item: tuple[int, tuple[Part, ...]]) -> Any:
        number, parts = item
        made = self.work(*(whole(part.open()) for part in parts))
        return _written(self.path, number, (made,)), None, False


def _written(path: str, number: int, blocks: tuple[Matrix, ...]) -> dict[int, Any]:
    """Write the rows of a bucket; say where they are, and how many entries they have."""
    files = tuple(store(f"{path}/{number}-{j}", block) for j, block in enumerate(blocks))
    entries = tuple(int(b.nnz if sparse.issparse(b) else b.size) for b in blocks)
    return {number: (files, entries)}


@dataclass(frozen=True)
class Join:
    path: str
    ordered: bool

    def __call__(self, item: tuple[int, tuple[Part, Part]]) -> Any:
        number, (known, came) = item
        ids, others = whole(known.open()), whole(came.open())
        made = LocalEngine().join(ids, others, ordered=self.ordered)
        arrays = (made.ids, made.rows, made.previous, made.partner, made.lacking)
        files = tuple(store(f"{self.path}/{number}-{j}", array) for j, array in enumerate(arrays))
        return files, (made.n_samples, made.n_shared)


@dataclass(frozen=True)
class Merge:
    path: str
    work: Work
    others_work: Work
    openers: tuple[Work, ...]
    others_openers: tuple[Work, ...]

    def __call__(self, item: tuple[int, tuple[Part, ...]]) -> Any:
        number, parts = item
        first, last = len(self.openers), len(self.openers) + len(self.others_openers)
        mine = _opened(self.openers, parts[:first])
        others = _opened(self.others_openers, parts[first:last])
        rows, previous, partner, lacking = (part.open() for part in parts[last:])
        union = np.empty(rows.size + lacking.size, np.int8)  # only its length counts here
        alignment = LocalAlignment(LocalEngine(), union, rows, previous, partner, lacking)
        made = alignment.merge((self.work, *mine), (self.others_work, *others))
        return _written(self.path, number, (made,)), None, False


@dataclass(frozen=True)
class Take:
    opener: Work

    def __call__(self, item: tuple[int, tuple[Part], Array]) -> Matrix:
        opened = as_row_blocks(self.opener(item[1][0].open()))
        if isinstance(opened, Picked):
            opened = Plain(whole(opened))
        return opened.take(item[2])


@dataclass(frozen=True)
class Head:
    opener: Work
    most: int

    def __call__(self, item: tuple[int, tuple[Part]]) -> Matrix:
        return LocalEngine().head(self.opener(item[1][0].open()), self.most)


@dataclass(frozen=True)
class Whole:
    opener: Work

    def __call__(self, item: tuple[int, tuple[Part]]) -> Matrix:
        return whole(self.opener(item[1][0].open()))


def same(block: Matrix) -> Matrix:
    return block


def count_true(item: tuple[int, tuple[Part]]) -> int:
    return int(np.count_nonzero(whole(item[1][0].open())))


def mapped(rows: Any, work: Work, opener: Work, width: int | None) -> Any:
    """Return what `map` makes of the rows of a bucket."""
    return LocalEngine().map(work, opener(rows), width=width)


def kept_rows(rows: Any, mask: Any) -> Any:
    return whole(rows)[whole(mask)]


def first_columns(block: Matrix, columns: int) -> Matrix:
    return block[:, :columns]


def first_of_opened(rows: Any, columns: int) -> Any:
    return whole(rows)[:, :columns]


def is_known(partner: Array) -> Array:
    return np.asarray(partner >= 0)


def partners(partner: Array, rows: Any, fill: float) -> Picked:
    held = plain(rows)
    if not held.shape[0]:  # nobody is known: there is no row to pick
        return Picked(Plain(np.full((1, *held.shape[1:]), fill, held.X.dtype)), 0 * partner)
    return Picked(held, partner, fill)


def absent(lacking: Array, rows: Any) -> RowBlocks:
    held = whole(rows)
    if held.ndim == 2 and held.dtype.kind == "f":
        return Rows(held, lacking)
    return Picked(Plain(held), lacking)


def carried(previous: Array, rows: Any, fill: float, n: int) -> Array:
    held = whole(rows)
    out = np.full((n, *held.shape[1:]), fill, held.dtype)
    out[previous] = held
    return out


def stacked(blocks: list[Matrix]) -> Any:
    if len(blocks) == 1:
        return blocks[0]
    if any(sparse.issparse(block) for block in blocks):
        return sparse.csr_array(sparse.vstack(blocks, format="csr"))
    return np.concatenate(blocks)
