"""Draws at random, by seed: who is drawn depends on ids, never on the order of rows."""

from __future__ import annotations

from numbers import Integral
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold._types import Array, Seed
from viewfold.engine import Engine, RowSet


def seed_of(random_state: Seed) -> int:
    """Return what to seed a fold with: an int is one, scikit-learn's other seeds draw one.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.core.sampling import seed_of
    >>> seed_of(5), seed_of(np.random.RandomState(0)) == seed_of(np.random.RandomState(0))
    (5, True)
    """
    if isinstance(random_state, int | Integral):
        return int(random_state)
    source = np.random if random_state is None else random_state  # as scikit-learn has it
    return int(source.randint(np.iinfo(np.int32).max))


def draw(
    engine: Engine, ids: RowSet, most: int, *, seed: int | tuple[int, ...], purpose: str
) -> NDArray[np.intp]:
    """Draw at most so many samples at random, whatever the order in which they come.

    Parameters
    ----------
    engine : Engine
        Where the samples are.
    ids : RowSet
        The samples. A hash of an id decides: the same samples are drawn wherever they stand.
    most : int
        How many.
    seed : int or tuple of int
        Another seed draws others.
    purpose : str
        What they are drawn for: for another purpose, others are drawn.

    Returns
    -------
    ndarray of int
        Their numbers, in an order that is as random as the draw.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.core.sampling import draw
    >>> from viewfold.engine import LocalEngine
    >>> ids = np.array(["ann", "bob", "cleo", "dan"], dtype=object)
    >>> some = draw(LocalEngine(), ids, 2, seed=0, purpose="example")
    >>> others = draw(LocalEngine(), ids[::-1], 2, seed=0, purpose="example")
    >>> np.array_equal(ids[some], ids[::-1][others])
    True
    """
    words = (*((seed,) if isinstance(seed, int) else seed), crc32(purpose.encode()))
    salt = np.random.SeedSequence(words).generate_state(1, np.uint64)

    def drawn(names: Array, numbers: Array) -> tuple[Array, Array]:
        return _smallest(_mixed(pd.util.hash_array(names) ^ salt), numbers, most)

    def combined(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        return _smallest(np.append(a[0], b[0]), np.append(a[1], b[1]), most)

    key, numbers = engine.reduce(drawn, ids, engine.numbers(ids), combine=combined)
    return np.asarray(numbers[np.argsort(key, kind="stable")])


def _mixed(key: Array) -> Array:
    """Spread every bit over all bits (the finaliser of splitmix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        key ^= key >> np.uint64(shift)
        key *= np.uint64(factor)
    key ^= key >> np.uint64(31)
    return key


def _smallest(key: Array, numbers: Array, most: int) -> tuple[Array, Array]:
    if most >= key.size:
        return key, numbers
    at = np.argpartition(key, most)[:most]
    return key[at], numbers[at]
