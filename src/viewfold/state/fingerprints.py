"""Fingerprints of rows: whether a row that comes again is the one that came before.

A fingerprint is 16 bits of a keyed hash. Its key is drawn for each state, so that the fingerprints
in two files cannot be compared. Somebody who has the file can try rows until one has the
fingerprint: a view with few possible rows is as good as kept (docs/privacy.md). With 16 bits, every
fingerprint fits many rows of a view that has far more than 65,536 possible ones.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

import numpy as np

from viewfold._util.types import Array, Matrix
from viewfold.rows import Engine, RowSet
from viewfold.rows.linalg import is_sparse

CACHED = 2**14  # So many cells at once: what is made of them should fit a cache

UNKNOWN = 0  # The fingerprint of a row that is not known, or not there


def new_key() -> int:
    """Draw a key."""
    return secrets.randbits(63)


def fingerprints(engine: Engine, rows: RowSet, key: int) -> RowSet:
    """Return the fingerprint of each row of a view; two that differ have the same once in 65,535.

    Rows have to come with their missing cells: what stands for these depends on other rows.
    """
    hashed = hasher(rows.shape[1], key)
    return engine.map(lambda block: shortened(hashed(block)), rows)


def shortened(hashes: Array) -> Array:
    """Return 16 bits of each hash; files of earlier versions hold 32. What is short stays."""
    whole = hashes.view(np.uint32)
    # Rows that are alike may have hashes that differ in a few bits: a product mixes them.
    mixed = (whole * np.uint32(0x9E3779B1)) >> np.uint32(16)
    short = np.where(whole < 2**16, whole, np.where(mixed == UNKNOWN, 1, mixed))
    return np.asarray(short, np.int32)


def hasher(d: int, key: int) -> Callable[[Matrix], Array]:
    """Return what gives rows of d cells hashes of 32 bits, none of which is `UNKNOWN`.

    The sum over cells of the products of both halves of their bits, each with a random number added
    (the universal hash NH of UMAC). A cell of zero adds nothing, so that sparse rows are quick.
    """
    words = np.random.default_rng(key).integers(2**32, size=(2, d), dtype=np.uint32)
    nothing = np.multiply(words[0], words[1], dtype=np.uint64)

    def of_block(block: Matrix) -> Array:
        total = np.zeros(block.shape[0], np.uint64)
        if is_sparse(block):
            made = _products(block.data, words[:, block.indices]) - nothing[block.indices]
            np.add.at(total, np.repeat(np.arange(total.size), np.diff(block.indptr)), made)
        else:
            few = max(1, CACHED // d)
            for i in range(0, total.size, few):
                total[i : i + few] = _products(block[i : i + few], words[:, None]).sum(axis=1)
            total -= nothing.sum()
        mixed = (total ^ (total >> np.uint64(32))).astype(np.uint32)
        return np.where(mixed == UNKNOWN, 1, mixed).astype(np.uint32)

    return of_block


def _products(cells: Array, words: Array) -> Array:
    """Return (low + a)(high + b) for the halves of the bits of each cell."""
    plain = cells.astype(np.float64) + 0.0  # −0 is 0
    gone = plain != plain
    if gone.any():
        plain[gone] = np.nan  # whatever its bits were
    halves = np.ascontiguousarray(plain).view(np.uint32).reshape(*plain.shape, 2)
    low = halves[..., 0] + words[0]
    return np.asarray(np.multiply(low, halves[..., 1] + words[1], dtype=np.uint64))
