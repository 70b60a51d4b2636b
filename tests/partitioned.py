"""An engine that cuts rows into five partitions, and lets nobody look at them but by its verbs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from viewfold.engine import LocalEngine, Rows

CUTS = (0.0, 0.1, 0.1, 0.45, 0.9, 1.0)
"""Unequal partitions, one of them empty."""

FEW = 1000
"""More rows than this are not brought to one place, unless they were drawn."""


class Parts:
    """Rows that live elsewhere: everything about them is known but what is in them."""

    def __init__(self, held: Any, drawn: bool = False) -> None:
        self._held, self._drawn = held, drawn
        self.shape = tuple(held.shape)
        self.dtype = held.dtype
        self.is_sparse = bool(getattr(held, "is_sparse", sparse.issparse(held)))
        self.on_disk = bool(getattr(held, "on_disk", False))
        self.stored = int(getattr(held, "stored", np.prod(self.shape)))

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("Rows are out of reach: use reduce, map or join.")

    __getitem__ = __len__ = __iter__ = __array__ = __add__ = __mul__ = __matmul__ = _refuse
    __eq__ = __sub__ = __neg__ = astype = sum = tolist = copy = _refuse  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


def cut(n: int) -> list[slice]:
    ends = [round(n * share) for share in CUTS]
    return [slice(a, b) for a, b in pairwise(ends)]


class PartitionedEngine:
    """Do what `LocalEngine` does, a partition at a time."""

    def __init__(self) -> None:
        self.local = LocalEngine()
        self.verbs: list[str] = []

    def session(self) -> AbstractContextManager[Any]:
        return self.local.session()

    def scatter(self, rows: Any) -> Parts:
        return rows if isinstance(rows, Parts) else Parts(rows)

    def _blocks(self, rows: tuple[Parts, ...]) -> Iterator[list[Any]]:
        (n,) = {part.shape[0] for part in rows}
        for where in cut(n):
            blocks = []
            for part in rows:
                held = part._held
                block = held.read(where) if isinstance(held, Rows) else held[where]
                # A method that writes into a block it was given would change nobody else's rows.
                blocks.append(block.copy())
            yield blocks

    def reduce(
        self, work: Callable[..., Any], *rows: Parts, combine: Callable[..., Any] | None = None
    ) -> Any:
        self.verbs.append("reduce")
        return self._total([work(*blocks) for blocks in self._blocks(rows)], combine)

    def _total(self, made: list[Any], combine: Callable[..., Any] | None) -> Any:
        if combine is not None:
            return reduce(combine, made)
        if isinstance(made[0], tuple):
            return tuple(
                np.sum([np.asarray(m[i], float) for m in made], axis=0) for i in range(len(made[0]))
            )
        return np.sum([np.asarray(m, float) for m in made], axis=0)

    def map(self, work: Callable[..., Any], *rows: Parts, sums: bool = False, **_: Any) -> Any:
        self.verbs.append("map")
        made = [work(*blocks) for blocks in self._blocks(rows)]
        blocks, totals = ([m[0] for m in made], [m[1] for m in made]) if sums else (made, [])
        drawn = all(part._drawn for part in rows)
        if isinstance(blocks[0], tuple):
            result: Any = tuple(
                Parts(self._joined(some), drawn) for some in zip(*blocks, strict=True)
            )
        else:
            result = Parts(self._joined(blocks), drawn)
        return (result, self._total(totals, None)) if sums else result

    def _joined(self, blocks: Any) -> Any:
        if any(sparse.issparse(block) for block in blocks):
            return sparse.csr_array(sparse.vstack(list(blocks), format="csr"))
        # The kind of the rows is that of a partition which has some.
        kind = next((b.dtype for b in blocks if len(b)), blocks[0].dtype)
        return np.concatenate([b.astype(kind) for b in blocks])

    def join(self, ids: Any, others: Any, *, ordered: bool = False) -> PartitionedAlignment:
        self.verbs.append("join")
        known = ids._held if isinstance(ids, Parts) else ids  # the empty state has none
        return PartitionedAlignment(self, self.local.join(known, others._held, ordered=ordered))

    def numbers(self, rows: Parts) -> Parts:
        return Parts(np.arange(rows.shape[0]))

    def select(self, rows: Parts, numbers: np.ndarray) -> Parts:
        return Parts(self.local.collect(self.local.select(rows._held, numbers)), drawn=True)

    def keep(self, rows: Parts, kept: Parts) -> Parts:
        return Parts(rows._held[kept._held])

    def leading(self, rows: Parts, columns: int) -> Parts:
        return Parts(self.local.leading(rows._held, columns), rows._drawn)

    def head(self, rows: Parts, most: int) -> Any:
        return self.local.head(rows._held, most)

    def collect(self, rows: Any) -> Any:
        if not isinstance(rows, Parts):
            return rows
        assert rows._drawn or rows.shape[0] <= FEW, "Too many rows to bring to one place."
        return self.local.collect(rows._held)

    def everything(self, rows: Any) -> Any:
        """Bring all rows here, for a test to look at."""
        return self.local.collect(rows._held)


class PartitionedAlignment:
    """What `LocalAlignment` tells, about rows that live elsewhere."""

    def __init__(self, engine: PartitionedEngine, local: Any) -> None:
        self.engine, self.local = engine, local
        self.ids, self.known = Parts(local.ids), Parts(local.known)
        self.n_samples, self.n_shared = local.n_samples, local.n_shared
        self.n_new, self.n_before = local.n_new, local.n_before

    def _held(self, rows: Any) -> Any:
        return rows._held if isinstance(rows, Parts) else rows

    def partners(self, rows: Any, fill: float = 0) -> Parts:
        return Parts(self.engine.local.collect(self.local.partners(self._held(rows), fill)))

    def absent(self, rows: Any) -> Parts:
        return Parts(self.engine.local.collect(self.local.absent(self._held(rows))))

    def carry(self, rows: Any, fill: float) -> Parts:
        return Parts(self.local.carry(self._held(rows), fill))

    def merge(self, of_view: tuple[Any, ...], of_absent: tuple[Any, ...]) -> Parts:
        mine, others = self.engine.map(*of_view)._held, self.engine.map(*of_absent)._held
        out = np.empty((self.n_samples, *mine.shape[1:]), mine.dtype)
        out[self.local.rows] = mine
        out[self.local.previous[self.local.lacking]] = others
        return Parts(out)
