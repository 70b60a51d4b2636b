"""What the methods for two views share: pairs of views, and samples that are in the same views.

A model "one row of coefficients per sample, fitted on the views that have it" is for two views
what PVC and IMG publish, and needs no change for more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from viewfold_research._linalg import Array, Matrix, polar
from viewfold_research.baselines._base import Aligned
from viewfold_research.baselines._parameters import StrOptions

MODE = [StrOptions({"mask", "pairs"})]


@dataclass(frozen=True)
class Part:
    """Some views, and the samples that are in any of them."""

    rows: NDArray[np.intp]
    views: tuple[Matrix, ...]
    present: NDArray[np.bool_]


def parts(data: Aligned, mode: str) -> Iterator[Part]:
    """Yield all views together (mode 'mask'), or every pair of views ('pairs').

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research.baselines._base import align
    >>> from viewfold_research.baselines._parts import parts
    >>> data = align({"a": [[1], [2]], "b": [[1], [2]], "c": [[1], [2]]})
    >>> [len(part.views) for part in parts(data, "mask")]
    [3]
    >>> [len(part.views) for part in parts(data, "pairs")]
    [2, 2, 2]
    """
    if mode == "mask" or len(data.views) <= 2:
        yield Part(np.arange(data.n_samples), data.views, data.present)
        return
    for pair in combinations(range(len(data.views)), 2):
        present = data.present[:, pair]
        rows = np.flatnonzero(present.any(axis=1))
        yield Part(rows, tuple(data.views[v][rows] for v in pair), present[rows])


def common(found: list[tuple[NDArray[np.intp], Array]], n: int, rounds: int = 20) -> Array:
    """Join embeddings of some samples each: rotated to agree, averaged over those that have a row.

    Parameters
    ----------
    found : list of (rows, embedding)
        Which samples, and their rows.
    n : int
        Number of samples.
    rounds : int
        Alternations between rotations and mean.

    Returns
    -------
    ndarray of shape (n, n_components)
        A single embedding is returned as it is; rows that nobody has are zero.
    """
    mean = np.zeros((n, found[0][1].shape[1]))
    mean[found[0][0]] = found[0][1]
    count = np.zeros((n, 1))
    for rows, _ in found:
        count[rows] += 1
    for _ in range(rounds if len(found) > 1 else 0):
        total = np.zeros_like(mean)
        for rows, P in found:
            total[rows] += P @ polar(P.T @ mean[rows])
        mean = total / np.maximum(count, 1)
    return mean


def patterns(present: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return the different rows of a mask, and which of them each row is.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research.baselines._parts import patterns
    >>> kinds, which = patterns(np.array([[True, True], [False, True], [True, True]]))
    >>> kinds.tolist(), which.tolist()
    ([[False, True], [True, True]], [1, 0, 1])
    """
    kinds, which = np.unique(present, axis=0, return_inverse=True)
    return kinds, which.ravel()
