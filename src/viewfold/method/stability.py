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
    """Return the mean Jaccard similarity of each cluster to its likest in resampled rows."""
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
