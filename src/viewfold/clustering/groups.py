"""Groups of samples that no view connects: clustered one by one, their clusters paired by size.

Their rows lie at right angles to each other, so that distances between them say nothing. If it is
chance who is in which group, a cluster has about the same share of all groups, and sizes tell which
clusters belong together, unless they are too similar.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from viewfold._types import Array
from viewfold.core.state import Clusters


def told_by_size(sizes: NDArray[np.intp], seed: int = 0) -> float:
    """Return how surely the clusters of several groups can be told apart by their size.

    This is the share of samples whose cluster would keep its partners if all samples were drawn
    anew.

    Parameters
    ----------
    sizes : ndarray of int, shape (n_groups, n_clusters)
        How many samples the clusters of each group have, from the largest to the smallest.
    seed : int, default=0
        Seed of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.clustering.groups import told_by_size
    >>> sure = told_by_size(np.array([[500, 300, 200], [60, 30, 10]]))
    >>> unsure = told_by_size(np.array([[340, 333, 327], [34, 33, 33]]))
    >>> sure > 0.9, unsure < 0.5
    (True, True)
    """
    share = sizes / sizes.sum(axis=1, keepdims=True)
    random = np.random.default_rng(seed)
    drawn = random.multinomial(sizes.sum(axis=1), share, size=(200, len(sizes)))
    rank = np.argsort(-drawn, axis=2, kind="stable")
    kept = (rank == rank[:, :1]).all(axis=1)
    return float((share.mean(axis=0)[rank[:, 0]] * kept).sum(axis=1).mean())


def paired(
    find: Callable[[Array], tuple[NDArray[np.intp], Clusters]],
    embedding: Array,
    groups: NDArray[np.intp],
    n_clusters: int,
    seed: int,
) -> Clusters | None:
    """Cluster each group by itself and pair the clusters by size; None if sizes do not tell."""
    members = [embedding[groups == group] for group in range(groups.max() + 1)]
    if min(map(len, members)) < n_clusters:
        return None
    bases = [principal_directions(rows.T @ rows, n_clusters) for rows in members]
    found = [find(rows @ basis) for rows, basis in zip(members, bases, strict=True)]
    sizes = np.array([np.bincount(labels, minlength=n_clusters) for labels, _ in found])
    order = np.argsort(-sizes, axis=1, kind="stable")
    if told_by_size(np.take_along_axis(sizes, order, axis=1), seed) < 0.5:
        return None
    by_size = [one.centers[0, which] for (_, one), which in zip(found, order, strict=True)]
    projections = [
        basis[:, : len(one.projection)] @ one.projection
        for (_, one), basis in zip(found, bases, strict=True)
    ]
    return Clusters(np.hstack(projections), side_by_side(by_size))


def principal_directions(products: Array, n_clusters: int) -> Array:
    """Return as many as are enough for a group: other columns serve to complete what it lacks."""
    return np.asarray(np.linalg.eigh(products)[1][:, : -n_clusters - 1 : -1])


def side_by_side(centers: list[Array]) -> Array:
    """Return the centres of groups that have directions of their own."""
    n_groups, n_clusters = len(centers), len(centers[0])
    return np.asarray(linalg.block_diag(*centers).reshape(n_groups, n_clusters, -1))
