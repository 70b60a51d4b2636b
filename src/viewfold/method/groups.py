"""Groups of samples that no view connects: clustered one by one, their clusters paired by size.

Their rows are orthogonal to each other, so that distances between them say nothing. If samples are
in a group by chance, a cluster has about the same share of every group, and clusters can be paired
by size, unless sizes are too similar.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from viewfold._util import constants
from viewfold._util.option import option
from viewfold._util.types import Array
from viewfold.rows import Engine, RowSet
from viewfold.state.state import Clusters


def pairing_stability(sizes: NDArray[np.intp], seed: int = 0) -> float:
    """Return how reliably the clusters of several groups are paired by their size, from 0 to 1.

    The sizes are bootstrapped: this is the mean share of samples whose cluster keeps its partners
    when all samples are drawn again.
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
    found = [find(rows) for rows in members]
    sizes = np.array([np.bincount(labels, minlength=n_clusters) for labels, _ in found])
    order = np.argsort(-sizes, axis=1, kind="stable")
    if pairing_stability(np.take_along_axis(sizes, order, axis=1), seed) < constants.PAIRED:
        return None
    by_size = [one.centers[0, which] for (_, one), which in zip(found, order, strict=True)]
    return Clusters(np.hstack([one.projection for _, one in found]), _blocks(by_size))


def settled(
    engine: Engine,
    settle: Callable[[RowSet, RowSet], Clusters],
    embedding: RowSet,
    labels: RowSet,
    groups: RowSet,
) -> Clusters:
    """Return the centres of given clusters for each group, in directions of its own."""
    last = engine.reduce(lambda group: group.max(initial=-1), groups, combine=max)
    found = []
    for group in range(int(last) + 1):
        mine = engine.map(lambda block, group=group: block == group, groups)
        rows = engine.keep(embedding, mine)
        if rows.shape[0]:
            found.append(settle(rows, engine.keep(labels, mine)))
    projection = np.hstack([one.projection for one in found])
    scatter = np.concatenate([one.scatter for one in found if one.scatter is not None])
    return Clusters(projection, _blocks([one.centers[0] for one in found]), scatter)


def group_of(clusters: Clusters, block: Array) -> NDArray[np.intp]:
    """Return the group of each row: the one whose directions hold most of its energy."""
    directions = clusters.centers.any(axis=1)
    return np.asarray(((block @ clusters.projection) ** 2 @ directions.T).argmax(axis=1))


def warn_unconnected(engine: Engine, groups: RowSet, asked: str, was_paired: bool) -> None:
    """Say that nothing connects the groups, what was done about it, and what would connect them."""
    last = int(engine.reduce(lambda group: group.max(initial=0), groups, combine=max))
    sizes = engine.reduce(lambda group: np.bincount(group, minlength=last + 1), groups)
    told = ", ".join(str(int(size)) for size in sizes)
    if was_paired:
        done = (
            "Each was clustered by itself and the clusters were paired by size, which is right if "
            "samples are in a group by chance; "
            f"{option('unconnected', 'separate')} does not pair."
        )
    elif asked == "pair":
        done = "Sizes do not tell which clusters belong together, so none were paired."
    else:
        done = "Clusters of different groups were not paired."
    warnings.warn(
        f"The samples are in {sizes.size} groups ({told} samples) that share "
        f"fewer than {constants.FEWEST} samples: nothing connects them. {done} A view with at "
        f"least {constants.FEWEST} samples of each would connect them.",
        stacklevel=2,
    )


def _blocks(centers: list[Array]) -> Array:
    """Return the centres of all groups; those of one are zero in the directions of the others."""
    n_groups, n_clusters = len(centers), len(centers[0])
    return np.asarray(linalg.block_diag(*centers).reshape(n_groups, n_clusters, -1))
