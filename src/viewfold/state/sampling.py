"""Random samples by seed: which are drawn depends on their ids, never on the order of rows."""

from __future__ import annotations

from numbers import Integral
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold._util.types import Array, Seed
from viewfold.rows import Engine, RowSet
from viewfold.rows.normal import mixed


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
