"""Groups of samples that no view connects: clustered one by one, their clusters paired by size.

Their rows are orthogonal to each other, so that distances between them say nothing. If samples are
in a group by chance, a cluster has about the same share of every group, and clusters can be paired
by size, unless sizes are too similar.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from viewfold._types import Array
from viewfold.core.state import Clusters


def pairing_stability(sizes: NDArray[np.intp], seed: int = 0) -> float:
    """Return how reliably the clusters of several groups are paired by their size, from 0 to 1.

    The sizes are bootstrapped: this is the mean share of samples whose cluster keeps its partners
    when all samples are drawn again.

    Parameters
    ----------
    sizes : ndarray of int, shape (n_groups, n_clusters)
        How many samples the clusters of each group have, from the largest to the smallest.
    seed : int, default=0
        Seed of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.clustering.groups import pairing_stability
    >>> sure = pairing_stability(np.array([[500, 300, 200], [60, 30, 10]]))
    >>> unsure = pairing_stability(np.array([[340, 333, 327], [34, 33, 33]]))
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
    """Cluster each group by itself and pair clusters by size; None if that is not reliable."""
    members = [embedding[groups == group] for group in range(groups.max() + 1)]
    if min(map(len, members)) < n_clusters:
        return None
    bases = [group_directions(rows.T @ rows, n_clusters) for rows in members]
    found = [find(rows @ basis) for rows, basis in zip(members, bases, strict=True)]
    sizes = np.array([np.bincount(labels, minlength=n_clusters) for labels, _ in found])
    order = np.argsort(-sizes, axis=1, kind="stable")
    if pairing_stability(np.take_along_axis(sizes, order, axis=1), seed) < 0.5:
        return None
    by_size = [one.centers[0, which] for (_, one), which in zip(found, order, strict=True)]
    projections = [
        basis[:, : len(one.projection)] @ one.projection
        for (_, one), basis in zip(found, bases, strict=True)
    ]
    return Clusters(np.hstack(projections), block_centers(by_size))


def group_directions(products: Array, n_clusters: int) -> Array:
    """Return the n_clusters leading eigenvectors of RᵀR, which are enough to cluster a group."""
    return np.asarray(np.linalg.eigh(products)[1][:, : -n_clusters - 1 : -1])


def block_centers(centers: list[Array]) -> Array:
    """Return the centres of all groups; those of one are zero in the directions of the others."""
    n_groups, n_clusters = len(centers), len(centers[0])
    return np.asarray(linalg.block_diag(*centers).reshape(n_groups, n_clusters, -1))
