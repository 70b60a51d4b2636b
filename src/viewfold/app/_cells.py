"""One pass over the cells of a view, as they are: what is missing, zero, or suspicious."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from viewfold._util.types import Array, Matrix
from viewfold.data.cells import SENTINELS
from viewfold.data.ids import is_called_id, look_like_ids
from viewfold.data.parts import Parts
from viewfold.rows import LocalEngine, Rows

ENOUGH = 3
"""A value that stands in fewer cells of a column marks nothing."""


@dataclass(frozen=True)
class Cells:
    """What the cells of some rows tell; each array has an entry per column.

    Attributes
    ----------
    missing : ndarray of int
        Missing cells.
    flags : ndarray of bool
        Whether there is nothing but 0 and 1.
    marks : ndarray of int, shape (n_markers, n_columns)
        Cells that hold a number that may mark missing ones.
    near : ndarray of int, shape (n_markers, n_columns)
        Other cells that are as far out as that.
    n_absent, n_zero : int
        Rows without any value, and rows of zeros.
    """

    missing: Array
    flags: Array
    marks: Array
    near: Array
    n_absent: int
    n_zero: int

    def __add__(self, other: Cells) -> Cells:
        return Cells(
            self.missing + other.missing,
            self.flags & other.flags,
            self.marks + other.marks,
            self.near + other.near,
            self.n_absent + other.n_absent,
            self.n_zero + other.n_zero,
        )

    def suspects(self) -> dict[float, list[int]]:
        """Return the numbers that stand in several cells, far from all others, with columns."""
        alone = (self.marks >= ENOUGH) & (self.near == 0)
        found = {
            float(mark): np.flatnonzero(which).tolist()
            for mark, which in zip(SENTINELS, alone, strict=True)
        }
        return {mark: columns for mark, columns in found.items() if columns}


def look_at(X: Matrix) -> Cells:
    """Pass over the cells of a matrix, block by block."""
    rows = Rows(X)
    if rows.is_sparse:
        return _of_sparse(X)
    found: Cells = LocalEngine().reduce(_of_block, rows, combine=Cells.__add__)
    return found


def _of_block(block: Array) -> Cells:
    gaps = np.isnan(block)
    low = np.fmin.reduce(block, axis=0, initial=np.inf)
    high = np.fmax.reduce(block, axis=0, initial=-np.inf)
    shape = (len(SENTINELS), block.shape[1])
    marks, near = np.zeros(shape, np.intp), np.zeros(shape, np.intp)
    for i, mark in enumerate(SENTINELS):
        far = high if mark > 0 else -low
        for j in np.flatnonzero(far > abs(mark) / 2):
            out = block[:, j] * np.sign(mark) > abs(mark) / 2
            marks[i, j] = np.count_nonzero(block[:, j] == mark)
            near[i, j] = np.count_nonzero(out) - marks[i, j]
    flags = ((block == 0) | (block == 1) | gaps).all(axis=0) & (high >= 0)
    return Cells(
        gaps.sum(axis=0),
        np.asarray(flags),
        marks,
        near,
        int(gaps.all(axis=1).sum()),
        int((~block.any(axis=1)).sum()),
    )


def _of_sparse(X: Matrix) -> Cells:
    d = X.shape[1]
    gaps = np.isnan(X.data) if X.data.dtype.kind == "f" else np.zeros(X.data.size, bool)
    other = (X.data != 0) & (X.data != 1) & ~gaps
    nothing = np.zeros((len(SENTINELS), d), np.intp)
    return Cells(
        np.bincount(X.indices[gaps], minlength=d),
        np.bincount(X.indices[other], minlength=d) == 0,
        nothing,
        nothing,
        0,
        int(np.count_nonzero(X.count_nonzero(axis=1) == 0)),
    )


def repeated_ids(parts: Parts) -> list[str]:
    """Return the text columns that are called like ids, but hold some texts more than once."""
    if parts.ids is not None or parts.names is None:
        return []
    return [
        name
        for j, name in enumerate(parts.names)
        if name in parts.codes and parts.codes[name].repeats and is_called_id(name, first=j == 0)
    ]


def id_candidates(parts: Parts) -> list[str]:
    """Return the columns that look as if they held ids, the likeliest first.

    Those that are called like ids come first, in the order of the table.
    """
    if parts.ids is not None or parts.names is None:
        return []
    found = []
    for j, name in enumerate(parts.names):
        called, codes = is_called_id(name, first=j == 0), parts.codes.get(name)
        if codes is None:
            sure = called and not Rows(parts.rows).is_sparse and look_like_ids(parts.rows[:, j])
        else:
            different = codes.kind == "category" and codes.n_cells > 1 and not codes.repeats
            sure = different and (called or not codes.n_missing)
        if sure:
            found.append((not called, j, name))
    return [name for _, _, name in sorted(found)]
