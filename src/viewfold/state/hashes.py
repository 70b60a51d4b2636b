"""Keyed hashes of rows and ids: whether a row came before, and which samples are drawn.

A fingerprint is 16 bits of a keyed hash. Its key is drawn for each state, so that the fingerprints
in two files cannot be compared. Somebody who has the file can try rows until one has the
fingerprint: a view with few possible rows is as good as kept (docs/privacy.md). With 16 bits, every
fingerprint fits many rows of a view that has far more than 65,536 possible ones. Which samples are
drawn depends on their ids and the seed, never on the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from viewfold._util.types import Array, Matrix, Seed
from viewfold.rows import Engine, RowSet
from viewfold.rows.linalg import is_sparse
from viewfold.rows.normal import mixed

CACHED = 2**14  # So many cells at once: what is made of them should fit a cache
UNKNOWN = 0  # The fingerprint of a row that is not known, or not there


def fingerprints(engine: Engine, rows: RowSet, key: int) -> RowSet:
    """Return the fingerprint of each row, with missing cells as NaN: others depend on more rows."""
    hashed = hasher(rows.shape[1], key)

    def shorten(block: Matrix) -> Array:
        # Rows that are alike may have hashes that differ in a few bits: a product mixes them.
        short = (hashed(block) * np.uint32(0x9E3779B1)) >> np.uint32(16)
        return np.where(short == UNKNOWN, 1, short).astype(np.int32)

    return engine.map(shorten, rows)


def hasher(d: int, key: int) -> Callable[[Matrix], Array]:
    """Return what gives rows of d cells hashes of 32 bits.

    The universal hash NH of UMAC, shifted so that cells of zero add nothing: for sparse rows.
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
        return np.asarray(total ^ (total >> np.uint64(32)), np.uint32)

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


def seed_of(random_state: Seed) -> int:
    """Return the seed of a fold: a `random_state` that is an int, or an int drawn from another."""
    if isinstance(random_state, bool | np.bool_):
        raise ValueError(f"random_state={random_state}: give a whole number, or None.")
    if isinstance(random_state, int | Integral):
        return int(random_state)
    source = np.random if random_state is None else random_state  # as scikit-learn has it
    return int(source.randint(np.iinfo(np.int32).max))


def draw(
    engine: Engine, ids: RowSet, most: int, *, seed: int | tuple[int, ...], purpose: str
) -> NDArray[np.intp]:
    """Draw samples at random: those whose ids have the smallest hashes, salted with the seed."""
    words = (*((seed,) if isinstance(seed, int) else seed), crc32(purpose.encode()))
    salt = np.random.SeedSequence(words).generate_state(1, np.uint64)

    def drawn(names: Array, numbers: Array) -> tuple[Array, Array]:
        import pandas as pd  # whoever only encodes rows draws none

        return _smallest(mixed(pd.util.hash_array(names) ^ salt), numbers, most)

    def combined(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        return _smallest(np.append(a[0], b[0]), np.append(a[1], b[1]), most)

    key, numbers = engine.reduce(drawn, ids, engine.numbers(ids), combine=combined)
    return np.asarray(numbers[np.argsort(key, kind="stable")])


def _smallest(key: Array, numbers: Array, most: int) -> tuple[Array, Array]:
    if most >= key.size:
        return key, numbers
    at = np.argpartition(key, most)[:most]
    return key[at], numbers[at]
