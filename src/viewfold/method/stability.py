"""How well clusters are found again when rows are drawn with replacement."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from viewfold._util.types import Array


def resampled(
    find: Callable[[NDArray[np.intp], int], Array],
    labels: NDArray[np.intp],
    n_clusters: int,
    n_resamples: int,
    seed: int,
) -> Array:
    """Return the mean Jaccard similarity of each cluster to its likest in resampled rows.

    Parameters
    ----------
    find : callable
        ``find(rows, seed)`` returns clusters of rows, given by their numbers; some of them twice.
    labels : ndarray of int, shape (n_rows,)
        The clusters that are judged.
    n_clusters : int
        How many there are.
    n_resamples : int
        How often rows are drawn.
    seed : int
        Seed of the draws.

    Returns
    -------
    ndarray of shape (n_clusters,)
        From 0 to 1; NaN for a cluster of which no row was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.method.stability import resampled
    >>> labels = np.array([0] * 10 + [1] * 5 + [2] * 5)
    >>> resampled(lambda rows, seed: np.minimum(labels[rows], 1), labels, 3, 50, 0).round(1)
    array([1. , 0.5, 0.5])
    """
    random = np.random.default_rng(seed)
    total, times = np.zeros(n_clusters), np.zeros(n_clusters)
    for one in range(n_resamples):
        drawn = np.sort(random.integers(labels.size, size=labels.size))
        found = find(drawn, seed + one)
        first = np.flatnonzero(np.diff(drawn, prepend=-1))  # a row counts once
        together = np.zeros((n_clusters, n_clusters))
        np.add.at(together, (labels[drawn[first]], found[first]), 1)
        before, now = together.sum(axis=1, keepdims=True), together.sum(axis=0)
        either = before + now - together
        total += (together / np.maximum(either, 1)).max(axis=1)
        times += before[:, 0] > 0
    return np.asarray(np.divide(total, times, out=np.full(n_clusters, np.nan), where=times > 0))
