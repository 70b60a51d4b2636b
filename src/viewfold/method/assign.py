"""The nearest cluster of each row, and the next one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viewfold._util.types import Array
from viewfold.method.groups import group_of
from viewfold.rows import Engine, RowSet
from viewfold.rows.linalg import unit_rows
from viewfold.state.state import Clusters


def assign(engine: Engine, clusters: Clusters, embedding: RowSet) -> RowSet:
    """Return the nearest centre c of each row x: the largest cᵀPᵀx − ‖x‖ ‖c‖² / 2."""
    n_groups, n_clusters, _ = clusters.centers.shape
    centers = np.concatenate(clusters.centers)
    toward = (clusters.projection @ centers.T).astype(embedding.dtype)
    half = (centers**2).sum(axis=1) / 2

    def nearest(block: Array) -> Array:
        score = block @ toward
        score -= np.outer(np.linalg.norm(block, axis=1), half).astype(score.dtype)
        if n_groups > 1:
            score = score.reshape(-1, n_groups, n_clusters)
            score = score[np.arange(len(block)), group_of(clusters, block)]
        return np.asarray(score.argmax(axis=1))

    return engine.map(nearest, engine.leading(embedding, len(clusters.projection)))


def next_nearest(engine: Engine, clusters: Clusters, embedding: RowSet, labels: RowSet) -> RowSet:
    """Return the nearest cluster of each row but its own; −1 if there is no other."""

    def second(block: Array, own: Array) -> Array:
        if clusters.n_clusters == 1:
            return np.full(len(block), -1)
        squares, _ = squared_distances(clusters, block)
        squares[own, np.arange(len(block))] = np.inf
        return np.asarray(squares.argmin(axis=0))

    return engine.map(second, engine.leading(embedding, len(clusters.projection)), labels)


def squared_distances(clusters: Clusters, block: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return squared distances of rows to the centres of their group, and which group that is.

    A row per centre: the minimum over few long rows is quick, over many short ones not.
    """
    n_groups, n_clusters, _ = clusters.centers.shape
    centers = np.concatenate(clusters.centers)
    rows = unit_rows(block) @ clusters.projection
    squares = (centers**2).sum(axis=1)[:, None] - 2 * centers @ rows.T + (rows**2).sum(axis=1)
    if n_groups == 1:
        return squares, np.zeros(len(block), np.intp)
    group = group_of(clusters, block)
    by_group = squares.reshape(n_groups, n_clusters, -1)
    return np.ascontiguousarray(by_group[group, :, np.arange(len(block))].T), group
