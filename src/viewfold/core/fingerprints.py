"""Fingerprints of rows: whether a row that comes again is the one that came before.

A fingerprint is 32 bits of a keyed hash. Its key is drawn for each state, so that the fingerprints
in two files cannot be compared. It holds no part of the row; who has the file and the whole row can
tell that they belong together, as with the embedding beside it.
"""

from __future__ import annotations

import secrets

import numpy as np

from viewfold._types import Array, Matrix
from viewfold.engine import Engine, RowSet
from viewfold.linalg import is_sparse

UNKNOWN = 0
"""The fingerprint of a row that is not known, or not there."""


def new_key() -> int:
    """Draw a key."""
    return secrets.randbits(63)


def fingerprints(engine: Engine, rows: RowSet, key: int) -> RowSet:
    """Return the fingerprint of each row of a view; two that differ are the same by chance 2⁻³¹.

    Rows have to come with their missing cells: what stands for these depends on other rows.

    The sum over cells of the products of both halves of their bits, each with a random number added
    (the universal hash NH of UMAC). A cell of zero adds nothing, so that sparse rows are quick.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.core.fingerprints import fingerprints
    >>> from viewfold.engine import LocalEngine, Rows
    >>> X = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]])
    >>> a, b, c = fingerprints(LocalEngine(), Rows(X), key=7)
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    d = rows.shape[1]
    words = np.random.default_rng(key).integers(2**32, size=(2, d), dtype=np.uint64)
    nothing = words[0] * words[1]

    def of_block(block: Matrix) -> Array:
        if is_sparse(block):
            made = _products(block.data, words[:, block.indices]) - nothing[block.indices]
            row = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
            total = np.zeros(block.shape[0], np.uint64)
            np.add.at(total, row, made)
        else:
            total = (_products(block, words[:, None, :]) - nothing).sum(axis=1, dtype=np.uint64)
        mixed = (total ^ (total >> np.uint64(32))).astype(np.uint32)
        return np.where(mixed == UNKNOWN, 1, mixed).astype(np.uint32).view(np.int32)

    return engine.map(of_block, rows)


def _products(cells: Array, words: Array) -> Array:
    """Return (low + a)(high + b) for the halves of the bits of each cell."""
    plain = np.where(np.isnan(cells), np.nan, cells.astype(np.float64)) + 0.0  # one NaN, one zero
    bits = np.ascontiguousarray(plain).view(np.uint64)
    half = np.uint64(0xFFFFFFFF)
    low = ((bits & half) + words[0]) & half
    high = ((bits >> np.uint64(32)) + words[1]) & half
    return np.asarray(low * high)
