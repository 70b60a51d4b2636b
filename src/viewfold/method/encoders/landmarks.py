"""A graph that connects samples with landmarks, and the coordinates of its spectral embedding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from viewfold._util import constants
from viewfold._util.records import short_repr
from viewfold._util.types import Array, Matrix
from viewfold.method.aggregates import groups_of_ten, nearest_of, weights_of
from viewfold.method.kmeans import nearest, step
from viewfold.method.scaling import Projection
from viewfold.rows import Engine, RowSet
from viewfold.rows.linalg import membership, top_eigenvectors, unit_rows
from viewfold.state.parts import part


@part("landmarks", axes={"points": "mq", "cosine": "", "coordinates": "mc"})
@dataclass(frozen=True, eq=False)
class Landmarks:
    """A sample's place among landmarks, in the coordinates of a spectral embedding."""

    __repr__ = short_repr

    points: Array  # (n_landmarks, n_directions): the landmarks
    cosine: bool  # whether angles count (text) or distances
    # (n_landmarks, n_coordinates): A sample has the weighted mean of those of its landmarks
    coordinates: Array

    def graph(self, scores: Array) -> Matrix:
        """Return the weights of the nearest landmarks of each row, which sum to 1."""
        return graph_of(scores, self.points, self.cosine)


def comparable(scores: Array, cosine: bool) -> Array:
    """Return scores as they are compared with landmarks."""
    return unit_rows(scores) if cosine else scores


def graph_of(scores: Array, points: Array, cosine: bool) -> Matrix:
    """Return the weights of landmarks, a few rows at a time: their distances should fit a cache."""
    rows = comparable(scores, cosine)
    parts = [_weights(rows[i : i + 500], points) for i in range(0, max(len(rows), 1), 500)]
    return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")


def place(scores: Array, most: int, cosine: bool) -> Array:
    """Place landmarks by one step of k-means on a sample of rows: more steps bring nothing."""
    rows = comparable(scores, cosine)
    if len(rows) <= most:
        return rows
    some = rows[:most]
    points = step(rows, some, nearest(rows, some))
    return comparable(points, cosine)


def _weights(rows: Array, points: Array) -> Matrix:
    """Return the weights of the nearest landmarks of some rows."""
    distance = rows @ (-2 * points.T)
    distance += (points * points).sum(axis=1)
    return weights_of(distance, rows.dtype)


def connect(
    engine: Engine,
    rows: RowSet,
    project: Projection,
    points: Array,
    cosine: bool,
    *,
    n_scores: int,
    n_coordinates: int,
) -> tuple[Landmarks, Landmarks, RowSet, RowSet]:
    """Connect samples with landmarks, and embed landmarks by that graph, in one pass.

    Returns the landmarks of the fold, those that may be kept (means of ten samples or more), the
    leading scores of the samples with room for their coordinates, and their edges.
    """

    def edges(block: Matrix) -> tuple[tuple[Matrix, ...], tuple[Array, ...]]:
        scores = project(block)
        graph = graph_of(scores, points, cosine)
        member = membership(nearest_of(graph), len(points))
        total, size = member @ comparable(scores, cosine), member.sum(axis=1)
        joint = (member @ graph).toarray()
        room = np.pad(scores[:, :n_scores], ((0, 0), (0, n_coordinates)))
        return (room, graph), ((graph.T @ graph).toarray(), graph.sum(axis=0), joint, total, size)

    (room, graph), (affinity, degree, *of_nearest) = engine.map(edges, rows, sums=True)
    landmarks = Landmarks(points, cosine, _coordinates(affinity, degree, n_coordinates))
    return landmarks, _coarse(landmarks, *of_nearest), room, graph


def _coarse(landmarks: Landmarks, joint: Array, total: Array, size: Array) -> Landmarks:
    """Return landmarks that are means of ten samples or more, with coordinates that are such means.

    For each landmark, those to which it is the nearest count: `joint` is the sum of their weights
    of all landmarks, `total` the sum of their scores, and `size` their number.
    """
    group = groups_of_ten(total, size.astype(np.intp))
    of_group = membership(group, int(group.max()) + 1)
    count = (of_group @ size)[:, None]
    points = comparable(of_group @ total / count, landmarks.cosine).astype(landmarks.points.dtype)
    given = of_group @ joint @ landmarks.coordinates
    return Landmarks(points, landmarks.cosine, given / count)


def _coordinates(affinity: Array, degree: Array, most: int) -> Array:
    """Return C such that (graph) C is U S² up to a factor; `affinity` is overwritten."""
    factor = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    affinity *= factor[:, None]
    affinity *= factor
    # √degree is an eigenvector for the value 1, and the same for everybody. It may not be the only
    # one for that value, so it is taken out by name.
    same = np.sqrt(degree / degree.sum())
    affinity -= np.outer(same, same)
    values, vectors = top_eigenvectors(affinity, most)
    keep = values > 1e-9
    spectrum, vectors = np.sqrt(values[keep]), vectors[:, keep]
    smooth = (spectrum / spectrum[:1]) ** constants.SMOOTH / spectrum
    return np.asarray(factor[:, None] * vectors * smooth)
