"""The nearest cluster of each row, and the confidence in it."""

from __future__ import annotations

import numpy as np

from viewfold._types import Array
from viewfold.clustering.groups import group_of
from viewfold.core.state import Clusters
from viewfold.engine import Engine, RowSet
from viewfold.linalg import unit_rows


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


def confidence(engine: Engine, clusters: Clusters, embedding: RowSet) -> RowSet:
    """Return the confidence in the cluster of each row.

    One minus the distance to the nearest centre over the distance to the second nearest: 0 halfway
    between two clusters, 1 at a centre.
    """
    n_clusters = clusters.n_clusters

    def judge(block: Array) -> Array:
        if n_clusters == 1:
            return np.ones(len(block))
        squares = squared_distances(clusters, block)
        nearest = squares.argmin(axis=0), np.arange(len(block))
        first = np.maximum(squares[nearest], 0)
        squares[nearest] = np.inf
        second = squares.min(axis=0)
        ratio = np.divide(first, second, out=np.ones_like(first), where=second > 0)
        return np.asarray(1 - np.sqrt(ratio))

    return engine.map(judge, engine.leading(embedding, len(clusters.projection)))


def squared_distances(clusters: Clusters, block: Array) -> Array:
    """Return the squared distance of each row (leading columns) to each centre, a row per centre.

    The minimum over few long rows is quick, over many short ones not.
    """
    n_groups, n_clusters, _ = clusters.centers.shape
    centers = np.concatenate(clusters.centers)
    rows = unit_rows(block)
    toward, length = 2 * clusters.projection @ centers.T, (centers**2).sum(axis=1)[:, None]
    squares = length - (rows @ toward).T + ((rows @ clusters.projection) ** 2).sum(axis=1)
    if n_groups > 1:
        squares = squares.T.reshape(-1, n_groups, n_clusters)
        squares = squares[np.arange(len(rows)), group_of(clusters, rows)].T
    return np.asarray(squares)
