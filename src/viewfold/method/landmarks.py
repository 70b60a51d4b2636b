"""Landmarks of a view, the graph that connects samples with them, and groups of ten samples.

A fold may use single samples, but what is kept of a view may not depend on fewer than ten: the
landmarks that are kept are means of groups of ten samples or more.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import DTypeLike, NDArray

from viewfold._util import constants
from viewfold._util.constants import FEWEST
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array, Matrix
from viewfold.method.kmeans import nearest, step
from viewfold.method.scaling import Projection
from viewfold.rows import Engine, RowSet
from viewfold.rows.linalg import membership, top_eigenvectors, unit_rows
from viewfold.state.parts import part


def groups_of_ten(total: Array, size: NDArray[np.intp]) -> NDArray[np.intp]:
    """Merge small neighbouring cells until each group has ten samples or more (MDAV).

    The cell that is farthest from the mean takes the nearest others until they have ten samples.
    """
    if size.sum() < 2 * FEWEST:
        return np.zeros(size.size, np.intp)
    points = total / np.maximum(size, 1)[:, None]

    def distances(some: Array, point: Array) -> Array:
        return np.asarray(((some - point) ** 2).sum(axis=1))

    far = distances(points, total.sum(axis=0) / size.sum())
    group = np.arange(size.size)
    small = size < FEWEST
    while size[small].sum() >= FEWEST:
        left = np.flatnonzero(small)
        outermost = left[far[left].argmax()]
        near = left[np.argsort(distances(points[left], points[outermost]), kind="stable")]
        enough = int(np.searchsorted(np.cumsum(size[near]), FEWEST)) + 1
        group[near[:enough]] = outermost
        small[near[:enough]] = False
    large = np.flatnonzero(~small)
    for one in np.flatnonzero(small):  # fewer than ten are left
        group[one] = group[large[distances(points[large], points[one]).argmin()]]
    return np.unique(group, return_inverse=True)[1]


def means_around(rows: Array, points: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return means of ten rows or more that are near to each other, and which is that of each row.

    Rows begin in the cell of the nearest point.
    """
    own = nearest(rows, points)
    total, size = membership(own, len(points)) @ rows, np.bincount(own, minlength=len(points))
    group = groups_of_ten(total, size)
    of_group = membership(group, int(group.max()) + 1)
    return of_group @ total / (of_group @ size)[:, None], group[own]


def nearest_of(graph: Matrix) -> NDArray[np.intp]:
    """Return the column of the largest entry of each row of a sparse matrix; the first of ties."""
    row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    peak = np.maximum.reduceat(graph.data, graph.indptr[:-1])
    at = np.flatnonzero(graph.data == peak[row])
    first = np.diff(row[at], prepend=-1) > 0
    return np.asarray(graph.indices[at[first]], np.intp)


def weights_of(distance: Array, dtype: DTypeLike = np.float64) -> Matrix:
    """Weights δ_{q+1} − δ_j of the q nearest landmarks, over their sum; δ² may lack a constant."""
    n, m = distance.shape
    q = min(constants.NEIGHBOURS, m - 1)
    # A number for each row that q + 1 entries at least, and few others, do not exceed: the
    # (q + 1)-th of the least entries of some sets of columns, which are few to partition.
    width = max(q + 1, m // 8)
    least = distance[:, :width].copy()
    for start in range(width, m, width):
        some = distance[:, start : start + width]
        np.minimum(least[:, : some.shape[1]], some, out=least[:, : some.shape[1]])
    at = np.flatnonzero(distance <= np.partition(least, q, axis=1)[:, q, None])
    row, near = at // m, distance.ravel()[at]
    first = np.searchsorted(row, np.arange(n + 1))
    table = np.full((n, np.diff(first).max(initial=q + 1)), np.inf, distance.dtype)
    table[row, np.arange(at.size) - first[row]] = near
    farthest = np.partition(table, q, axis=1)[:, q]
    weight = np.maximum(farthest[row] - near, 0)
    total = np.bincount(row, weight, minlength=n)
    if not total.all():  # landmarks that are all equally near share the row
        alike = (total[row] == 0) & (near == farthest[row])
        weight[alike] = 1
        total += np.bincount(row, alike, minlength=n)
    keep = np.flatnonzero(weight > 0)
    row, column = row[keep], at[keep] % m
    starts = np.searchsorted(row, np.arange(n + 1))
    return scipy.sparse.csr_array(
        ((weight[keep] / total[row]).astype(dtype), column, starts), (n, m)
    )


@part("landmarks", axes={"points": "mq", "cosine": "", "coordinates": "mc"})
@frozen_record
class Landmarks:
    """A sample's place among landmarks, in the coordinates of a spectral embedding."""

    points: Array  # (n_landmarks, n_directions): the landmarks
    cosine: bool  # whether angles count (text) or distances
    # (n_landmarks, n_coordinates): A sample has the weighted mean of those of its landmarks
    coordinates: Array


def comparable(scores: Array, cosine: bool) -> Array:
    return unit_rows(scores) if cosine else scores


def graph_of(scores: Array, points: Array, cosine: bool) -> Matrix:
    """Return the weights of the nearest landmarks of each row, which sum to 1."""
    rows, squares, parts = comparable(scores, cosine), (points * points).sum(axis=1), []
    for start in range(0, max(len(rows), 1), 500):  # the distances of a few rows fit a cache
        distance = rows[start : start + 500] @ (-2 * points.T)
        distance += squares
        parts.append(weights_of(distance, rows.dtype))
    return parts[0] if len(parts) == 1 else scipy.sparse.vstack(parts, format="csr")


def place(scores: Array, most: int, cosine: bool) -> Array:
    """Place landmarks by one step of k-means on a sample of rows: more steps bring nothing."""
    rows = comparable(scores, cosine)
    if len(rows) <= most:
        return rows
    return comparable(step(rows, rows[:most], nearest(rows, rows[:most])), cosine)


def connect(
    engine: Engine,
    rows: RowSet,
    project: Projection,
    points: Array,
    cosine: bool,
    n_scores: int,
    n_coordinates: int,
) -> tuple[Landmarks, Landmarks, RowSet, RowSet]:
    """Connect samples with landmarks, and embed landmarks by that graph, in one pass.

    Returns landmarks of the fold, and to keep; leading scores with room for coordinates; edges.
    """

    def edges(block: Matrix) -> tuple[tuple[Matrix, ...], tuple[Array, ...]]:
        scores = project(block)
        graph = graph_of(scores, points, cosine)
        member = membership(nearest_of(graph), len(points))
        total, size = member @ comparable(scores, cosine), member.sum(axis=1)
        joint = (member @ graph).toarray()
        room = np.pad(scores[:, :n_scores], ((0, 0), (0, n_coordinates)))
        return (room, graph), ((graph.T @ graph).toarray(), graph.sum(axis=0), joint, total, size)

    (room, graph), (affinity, degree, joint, total, size) = engine.map(edges, rows, sums=True)
    coordinates = _coordinates(affinity, degree, n_coordinates)
    # What is kept are means of ten samples or more, of those to which a landmark is the nearest.
    group = groups_of_ten(total, size.astype(np.intp))
    of_group = membership(group, int(group.max()) + 1)
    count = (of_group @ size)[:, None]
    means = comparable(of_group @ total / count, cosine).astype(points.dtype)
    coarse = Landmarks(means, cosine, of_group @ joint @ coordinates / count)
    return Landmarks(points, cosine, coordinates), coarse, room, graph


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
