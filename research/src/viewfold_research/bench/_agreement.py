"""How well labels agree with what each view says by itself: a judgement that needs no classes.

The leaderboard tries a method with several scalings of the views. Which of them counts is decided
here, by the labels that came out and the views alone, as a user without classes has to decide.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import normalized_mutual_info_score

from viewfold_research._linalg import Array, Matrix
from viewfold_research.baselines._base import Aligned, dense, scaled
from viewfold_research.bench.methods import Mask

SCALINGS = ("none", "zscore", "unit", "minmax")
SAMPLES, COLUMNS, STARTS = 2000, 50, 3
NOT_SEEN = -1
References = NDArray[np.int32]


def references(views: list[Matrix], gone: Mask, n_clusters: int, seed: int) -> References:
    """Cluster each view by itself, once for every scaling that methods are tried with.

    Every view and every scaling counts the same, so that none of the scalings is at home here.

    Parameters
    ----------
    views : list of arrays or CSR matrices
        The views, samples × features.
    gone : ndarray of bool, shape (n_samples, n_views)
        Which rows are not there.
    n_clusters, seed : int
        For k-means, which runs on at most 2000 samples and 50 principal components of a view.

    Returns
    -------
    ndarray of int, shape (n_views * 4, n_samples)
        Labels; -1 for samples that were not looked at.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research.bench._agreement import agreement, references
    >>> y = np.repeat([0, 1], 10)
    >>> view = np.random.default_rng(0).normal(size=(20, 3)) + 9 * y[:, None] + 1
    >>> found = references([view], np.zeros((20, 1), bool), 2, seed=0)
    >>> found.shape, agreement(y, found) > agreement(np.arange(20) % 2, found)
    ((4, 20), True)
    """
    rng = np.random.default_rng(seed)
    found = []
    for X, lacks in zip(views, gone.T, strict=True):
        at = np.flatnonzero(~lacks)
        at = np.sort(rng.choice(at, min(len(at), SAMPLES), replace=False))
        for labels in _alone(X[at], n_clusters, seed):
            row = np.full(len(gone), NOT_SEEN, np.int32)
            row[at] = labels
            found.append(row)
    return np.array(found)


def _alone(X: Matrix, n_clusters: int, seed: int) -> Iterator[Array]:
    """Return the clusters of one view for each scaling."""
    n, d = X.shape
    view = Aligned((dense(X).astype(np.float64),), np.ones((n, 1), bool), np.arange(n))
    for how in SCALINGS:
        rows = dense(scaled(view, how).views[0])
        if min(n, d) > COLUMNS:
            rows = PCA(COLUMNS, svd_solver="randomized", random_state=seed).fit_transform(rows)
        kmeans = KMeans(min(n_clusters, n), n_init=STARTS, random_state=seed)
        yield kmeans.fit(rows).labels_


def agreement(labels: Array, found: References) -> float:
    """Return the mean NMI, in percent, of labels and the clusters of single views."""
    values = [
        normalized_mutual_info_score(row[row != NOT_SEEN], labels[row != NOT_SEEN]) for row in found
    ]
    return 100 * float(np.mean(values))


def kept(path: Path, make: Callable[[], References]) -> References:
    """Read what an earlier cell of the same problem left, or make it and leave it for the next."""
    try:
        with np.load(path) as file:
            return np.asarray(file["references"])
    except FileNotFoundError:
        pass
    found = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as draft:
        content: dict[str, Any] = {"references": found}
        np.savez_compressed(draft, **content)
    os.replace(draft.name, path)  # two processes may make the same at the same time
    return found
