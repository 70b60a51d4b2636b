"""Clusters of an embedding: k-means on unit rows, with labels that stay the same over time.

Groups of samples that no view connects are clustered one by one, and their clusters paired by size:
their rows are orthogonal to each other, so that distances between them say nothing. If samples are
in a group by chance, a cluster has about the same share of every group.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import linalg
from scipy.optimize import linear_sum_assignment

from viewfold._util import constants
from viewfold._util.types import Array
from viewfold.data.view import View
from viewfold.method.kmeans import (
    Means,
    at_random,
    best_of,
    discriminant,
    effective,
    from_trees,
    in_discriminants,
    inertia,
    lloyd,
    log_volume,
    means,
    sums,
)
from viewfold.rows import Alignment, Engine, LocalEngine, RowSet, all_on_one_thread
from viewfold.rows.linalg import gram, unit_rows
from viewfold.state.clusters import Clusters, assign, scattered, squared_distances
from viewfold.state.hashes import draw
from viewfold.state.state import State, unconnected_groups
from viewfold.state.transitions import Combined, Method


@dataclass(frozen=True)
class ClusteringOptions:
    """How clusters are found in an embedding."""

    n_clusters: int  #: how many clusters
    #: starts by k-means++, or from trees that Ward's method grows
    start: Literal["random", "ward"] = "random"
    weighted: bool = False  #: whether a row counts by its length, or every row the same
    #: whether k-means goes on in the discriminant directions of its clusters
    discriminants: bool = False
    n_init: int = 10  #: how many starts; the result with the least inertia is taken
    #: whether clusters of groups of samples that no view connects are paired by size, if sizes
    #: tell; None if the method makes nothing of groups
    unconnected: Literal["pair", "separate"] | None = None
    calm: bool = False  #: whether clusters stay, unless others are clearly better
    #: so many known samples, or this part of them, change their cluster at most
    max_moved: float | None = None

    def weigh_rows(self, rows: Array) -> Array:
        if not self.weighted:
            return np.ones(len(rows))
        length = np.linalg.norm(rows, axis=1).astype(np.float64)
        return np.asarray(np.maximum(length, 1e-6))  # even a row of zeros is in some cluster


REPEATED = 2000  # So many rows, or 50 for each cluster, tell how far clusters are found again

# Clusters whose mean Jaccard similarity is below this should not be trusted (Hennig 2007).
TRUSTED = 0.6


def kmeans_method(
    combine: Callable[[Engine, State, View, Alignment, int], Combined],
    options: ClusteringOptions,
    *,
    basis: Callable[[Engine, RowSet], Array] | None = None,
    relearns: bool = False,
) -> Method:
    """Return a method that finds clusters by k-means on the consensus.

    Parameters
    ----------
    combine : callable
        ``combine(engine, state, view, alignment, seed)`` combines a view with the consensus so far
        and returns a `Combined`.
    options : ClusteringOptions
        How clusters are found in the consensus.
    basis : callable, optional
        ``basis(engine, embedding)``; see `viewfold.state.transitions.Method`. If not given, columns
        stay as they are.
    relearns : bool, default=False
        See `viewfold.state.transitions.Method`.

    Returns
    -------
    Method
    """
    return Method(
        n_clusters=options.n_clusters,
        combine=combine,
        cluster=partial(cluster, options=options),
        settle=partial(settle, options=options),
        basis=basis or (lambda _, embedding: np.eye(embedding.shape[1])),
        relearns=relearns,
    )


def sample_size(n_clusters: int) -> int:
    """Return how many rows k-means uses at most; then every row gets the nearest centre."""
    return max(65_536, 256 * n_clusters)


def cluster(
    engine: Engine,
    ids: RowSet,
    embedding: RowSet,
    options: ClusteringOptions,
    *,
    groups: RowSet | None = None,
    previous: RowSet | None = None,
    anew: bool = False,
    seed: int = 0,
) -> tuple[RowSet, Clusters]:
    """Cluster the rows of an embedding by k-means on unit rows; see `Method.cluster`."""
    # The rows that k-means sees are drawn and ordered by id, so that the order of rows does not
    # matter. They are the same from fold to fold: then so are the trees that k-means starts from.
    drawn = draw(engine, ids, sample_size(options.n_clusters), seed=seed, purpose="k-means")
    rows, theirs = engine.collect(engine.select(embedding, drawn)), None
    if groups is not None and options.unconnected == "pair":
        theirs = engine.collect(engine.select(groups, drawn))
    before = None
    if options.calm and not anew and previous is not None:
        before = engine.collect(engine.select(previous, drawn))
    clusters = _find(rows, theirs, options, seed, before)[1]
    if groups is not None and options.unconnected is not None:
        _warn_unconnected(engine, groups, options.unconnected, len(clusters.centers) > 1)
    again = _found_again(clusters, rows, theirs, options, seed)
    clusters = scattered(LocalEngine(), clusters, rows, again)
    labels = assign(engine, clusters, embedding)
    if previous is None:
        return labels, clusters
    number = match(engine, previous, labels, options.n_clusters)
    clusters = replace(clusters, centers=clusters.centers.take(np.argsort(number), axis=1))
    labels = engine.map(lambda block: number[block], labels)
    if options.max_moved is not None and not anew:
        labels = _move_few(engine, clusters, embedding, previous, labels, options.max_moved)
    return labels, clusters


def _move_few(
    engine: Engine,
    clusters: Clusters,
    embedding: RowSet,
    previous: RowSet,
    labels: RowSet,
    most: float,
) -> RowSet:
    """Return labels of which at most so many are others than before: of rows that gain most.

    Given the centres, no other choice of so many rows has less inertia.
    """
    n_known = int(engine.reduce(lambda before: np.count_nonzero(before >= 0), previous))
    most = most if isinstance(most, int) else int(most * n_known)

    def gain(block: Array, before: Array, now: Array) -> Array:
        squares, each = squared_distances(clusters, block)[0], np.arange(len(block))
        gained = squares[np.maximum(before, 0), each] - squares[now, each]
        return np.where((before >= 0) & (before != now), gained, np.nan)

    leading = engine.leading(embedding, len(clusters.projection))
    gains = engine.map(gain, leading, previous, labels)
    moves = engine.collect(engine.keep(gains, engine.map(lambda block: ~np.isnan(block), gains)))
    if len(moves) <= most:
        return labels
    least = np.sort(moves)[::-1][most]  # the first that stays; of equal ones, all stay

    def limited(gained: Array, before: Array, now: Array) -> Array:
        return np.where(np.isnan(gained) | (gained > least), now, before)

    return engine.map(limited, gains, previous, labels)


def _find(
    embedding: Array,
    groups: Array | None,
    options: ClusteringOptions,
    seed: int,
    before: Array | None = None,
) -> tuple[NDArray[np.intp] | None, Clusters]:
    """Find clusters of some rows: those of groups one by one, if they can be paired.

    Clusters that rows had `before` (−1: none) stay, unless others are clearly better.
    """
    paired = None if groups is None else _pair_groups(embedding, groups, options, seed)
    if paired is not None:
        return None, paired
    rows, weights, k = unit_rows(embedding), options.weigh_rows(embedding), options.n_clusters
    # Starts are compared on a sixteenth of a full sample, and the best one goes on with all of it.
    few = sample_size(k) // 16
    some, theirs = rows[:few], weights[:few]
    if options.start == "ward":
        starts = from_trees(some, embedding[:few], k, options.n_init, theirs)
    else:
        starts = at_random(some, k, options.n_init, seed)
    best = best_of(some, starts, theirs)
    if before is not None:
        best = _kept_or(best, some, before[:few], theirs)
    if len(rows) > few:
        best = lloyd(rows, best.centers, weights)
    projection = np.eye(rows.shape[1])
    if options.discriminants and 1 < k < len(rows):
        projection, best = in_discriminants(rows, best, weights)
    return best.labels, Clusters(projection, np.stack([best.centers]))


def _kept_or(best: Means, rows: Array, before: Array, weights: Array) -> Means:
    """Return what k-means makes of the clusters of before, or `best` if that is clearly better.

    It is if it has clearly less inertia, or some less and clusters that are more likely as normal
    ones of one covariance: the few directions that tell clusters apart may hold little inertia.
    """
    k, known = len(best.centers), before >= 0
    if not np.array_equal(np.unique(before[known]), np.arange(k)):
        return best  # other clusters are asked for, or one has no row here
    kept = lloyd(rows, means(rows[known], before[known], k, weights[known]), weights)
    found, stays = (inertia(rows, one.labels, k, weights) for one in (best, kept))
    if found >= stays:  # both may be 0
        return kept
    if found < constants.CALM * stays:
        return best
    volumes = [
        log_volume(rows, in_discriminants(rows, one, weights)[1].labels, k, weights)
        for one in (kept, best)
    ]
    return best if volumes[0] > volumes[1] else kept


def _found_again(
    clusters: Clusters, rows: Array, groups: Array | None, options: ClusteringOptions, seed: int
) -> float:
    """Return the share of samples whose cluster is that of clusters found in the other half."""
    k, engine, once = options.n_clusters, LocalEngine(), replace(options, n_init=1)
    rows = rows[: max(REPEATED, 50 * k)]
    half = len(rows) // 2
    if half < k or k == 1:
        return 1.0
    shares = []
    for here, there in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
        theirs = None if groups is None else groups[: len(rows)][here]
        own = assign(engine, clusters, rows[there])
        other = assign(engine, _find(rows[here], theirs, once, seed)[1], rows[there])
        shares.append(np.mean(match(engine, own, other, k)[other] == own))
    return round(float(np.mean(shares)), 2)  # nothing is told of a single sample


def settle(
    engine: Engine,
    embedding: RowSet,
    labels: RowSet,
    options: ClusteringOptions,
    *,
    n_clusters: int,
    groups: RowSet | None = None,
    again: float = 1.0,
) -> Clusters:
    """Return the centres of given clusters, from their rows; an empty one is far from all."""
    if groups is not None:
        return _settle_groups(engine, embedding, labels, options, n_clusters, groups, again)

    def products(block: Array, own: Array) -> tuple[Array | float, ...]:
        rows, weights = unit_rows(block).astype(np.float64), options.weigh_rows(block)
        total, size = sums(rows, own, n_clusters, weights)
        return gram(rows * np.sqrt(weights)[:, None]), total, size, (weights**2).sum()

    scatter, total, size, squares = engine.reduce(products, embedding, labels)
    used = np.flatnonzero(size)
    center, directions = total[used] / size[used, None], None
    n = effective(size.sum(), squares)
    if options.discriminants and 1 < used.size < n:
        directions = discriminant(scatter, total[used], size[used], n, np.dtype(np.float64))
    projection = np.eye(len(scatter)) if directions is None else directions
    center = center @ projection
    centers = np.full((n_clusters, center.shape[1]), 1e3 * (1 + np.abs(center).max()))
    centers[used] = center
    return scattered(engine, Clusters(projection, np.stack([centers])), embedding, again)


def match(engine: Engine, previous: RowSet, labels: RowSet, n_clusters: int) -> NDArray[np.intp]:
    """Return, for each cluster, the number under which most of its samples were known before.

    Numbers that are too high now are given up; clusters without one get those that are free.
    """

    def count(before: Array, now: Array) -> Array:
        known = (before >= 0) & (before < n_clusters)
        together = np.zeros((n_clusters, n_clusters), np.intp)
        np.add.at(together, (now[known], before[known]), 1)
        return together

    together = engine.reduce(count, previous, labels)
    return np.asarray(linear_sum_assignment(together, maximize=True)[1])


def pairing_stability(sizes: NDArray[np.intp], seed: int = 0) -> float:
    """Return the share of samples whose cluster keeps its partners when sizes are bootstrapped."""
    share = sizes / sizes.sum(axis=1, keepdims=True)
    random = np.random.default_rng(seed)
    drawn = random.multinomial(sizes.sum(axis=1), share, size=(200, len(sizes)))
    rank = np.argsort(-drawn, axis=2, kind="stable")
    kept = (rank == rank[:, :1]).all(axis=1)
    return float((share.mean(axis=0)[rank[:, 0]] * kept).sum(axis=1).mean())


def _pair_groups(
    embedding: Array, groups: NDArray[np.intp], options: ClusteringOptions, seed: int
) -> Clusters | None:
    """Cluster each group by itself and pair clusters by size; None if that is not reliable."""
    k, members = options.n_clusters, [embedding[groups == g] for g in range(groups.max() + 1)]
    if min(map(len, members)) < k:
        return None
    found = [_find(rows, None, options, seed) for rows in members]
    sizes = np.array([np.bincount(np.asarray(own), minlength=k) for own, _ in found])
    order = np.argsort(-sizes, axis=1, kind="stable")
    if pairing_stability(np.take_along_axis(sizes, order, axis=1), seed) < constants.PAIRED:
        return None
    by_size = [one.centers[0, which] for (_, one), which in zip(found, order, strict=True)]
    return Clusters(np.hstack([one.projection for _, one in found]), _blocks(by_size))


def _settle_groups(
    engine: Engine,
    embedding: RowSet,
    labels: RowSet,
    options: ClusteringOptions,
    n_clusters: int,
    groups: RowSet,
    again: float,
) -> Clusters:
    """Return the centres of given clusters for each group, in directions of its own."""
    last = engine.reduce(lambda group: group.max(initial=-1), groups, combine=max)
    found = []
    for group in range(int(last) + 1):
        mine = engine.map(lambda block, group=group: block == group, groups)
        rows, own = engine.keep(embedding, mine), engine.keep(labels, mine)
        if rows.shape[0]:
            found.append(settle(engine, rows, own, options, n_clusters=n_clusters, again=again))
    projection = np.hstack([one.projection for one in found])
    scatter = np.concatenate([one.scatter for one in found if one.scatter is not None])
    return Clusters(projection, _blocks([one.centers[0] for one in found]), scatter)


def _warn_unconnected(engine: Engine, groups: RowSet, asked: str, was_paired: bool) -> None:
    """Say that nothing connects the groups, what was done about it, and what would connect them."""
    last = int(engine.reduce(lambda group: group.max(initial=0), groups, combine=max))
    sizes = engine.reduce(lambda group: np.bincount(group, minlength=last + 1), groups)
    told = ", ".join(str(int(size)) for size in sizes)
    if was_paired:
        done = (
            "Each was clustered by itself and the clusters were paired by size, which is right if "
            "samples are in a group by chance; unconnected='separate' does not pair."
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


def silhouette(engine: Engine, embedding: RowSet, labels: RowSet, n_clusters: int) -> float:
    """Return the mean silhouette of rows of an embedding, with squared distances.

    That of a row that is alone is 0. Means and variances of clusters make two passes enough.
    """

    def sum_clusters(block: Array, label: Array) -> tuple[Array, Array, Array]:
        rows = unit_rows(block.astype(np.float64))
        total, counts = sums(rows, label, n_clusters)
        return counts, total, np.bincount(label, (rows**2).sum(axis=1), n_clusters)

    counts, total, squares = engine.reduce(sum_clusters, embedding, labels)
    if np.count_nonzero(counts) < 2:
        return 0.0
    size = np.maximum(counts, 1)
    mean, squares = total / size[:, None], squares / size

    def sum_widths(block: Array, label: Array) -> Array:
        rows = unit_rows(block.astype(np.float64))
        # ‖x − m‖² plus the variance is ‖x‖² − 2 xᵀm plus the mean of squares.
        apart = (rows**2).sum(axis=1)[:, None] - 2 * rows @ mean.T + squares
        apart[:, counts == 0] = np.inf
        own = np.arange(len(rows)), label
        within = np.maximum(apart[own], 0) * counts[label] / np.maximum(counts[label] - 1, 1)
        apart[own] = np.inf
        between = np.maximum(apart.min(axis=1, initial=np.inf), 0)
        most = np.maximum(within, between)
        width = np.divide(between - within, most, out=np.zeros_like(most), where=most > 0)
        return np.asarray(width[counts[label] > 1].sum())

    return float(engine.reduce(sum_widths, embedding, labels) / counts.sum())


def stability_table(
    engine: Engine, state: State, method: Method, n_resamples: int, seed: int
) -> pd.DataFrame:
    """Return how well each cluster is found again in some rows of the consensus."""
    k, labels = method.n_clusters, state.labels(engine)
    size = engine.reduce(lambda block: np.bincount(block, minlength=k), labels)
    some = draw(engine, state.ids, max(REPEATED, 50 * k), seed=seed, purpose="stability")
    groups = unconnected_groups(engine, state.seen, state.views)
    theirs = None if groups is None else engine.collect(engine.select(groups, some))
    rows = engine.collect(engine.select(state.embedding, some))

    def find(drawn: NDArray[np.intp], seed: int) -> Array:
        found, _ = method.cluster(
            LocalEngine(),
            np.arange(drawn.size),
            rows[drawn],
            groups=None if theirs is None else theirs[drawn],
            previous=None,
            seed=seed,
        )
        return np.asarray(found)

    known = engine.collect(engine.select(labels, some))
    with all_on_one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about groups, which was said when they came
        share = resampled(find, known, k, n_resamples, seed)
    return pd.DataFrame(
        {"size": size.astype(np.intp), "stability": share, "trusted": share >= TRUSTED},
        index=pd.RangeIndex(k, name="cluster"),
    )


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
