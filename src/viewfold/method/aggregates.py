"""Aggregates of ten samples or more: all that may be kept of a view.

A fold may use single samples, but what is kept of a view may not depend on fewer than ten. So
samples are put in groups of ten or more, and the rank of matrices is limited to a tenth of the
samples.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import linalg, sparse

from viewfold._util import constants
from viewfold._util.constants import FEWEST
from viewfold._util.types import Array, Matrix


def groups_of_ten(total: Array, size: NDArray[np.intp]) -> NDArray[np.intp]:
    """Merge small neighbouring cells until each group has ten samples or more.

    Microaggregation (MDAV): the cell that is farthest from the mean takes the nearest others until
    they have ten samples, and so on. Cells that are large enough stay alone.
    """
    if size.sum() < 2 * FEWEST:
        return np.zeros(size.size, np.intp)
    points = total / np.maximum(size, 1)[:, None]
    far = _distances(points, total.sum(axis=0) / size.sum())
    group = np.arange(size.size)
    small = size < FEWEST
    while size[small].sum() >= FEWEST:
        left = np.flatnonzero(small)
        outermost = left[far[left].argmax()]
        near = left[np.argsort(_distances(points[left], points[outermost]), kind="stable")]
        enough = int(np.searchsorted(np.cumsum(size[near]), FEWEST)) + 1
        group[near[:enough]] = outermost
        small[near[:enough]] = False
    large = np.flatnonzero(~small)
    for one in np.flatnonzero(small):  # fewer than ten are left
        group[one] = group[large[_distances(points[large], points[one]).argmin()]]
    return np.unique(group, return_inverse=True)[1]


def _distances(points: Array, point: Array) -> Array:
    return np.asarray(((points - point) ** 2).sum(axis=1))


def nearest_of(graph: Matrix) -> NDArray[np.intp]:
    """Return the column of the largest entry of each row of a sparse matrix, the first of several."""
    row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    peak = np.maximum.reduceat(graph.data, graph.indptr[:-1])
    at = np.flatnonzero(graph.data == peak[row])
    first = np.diff(row[at], prepend=-1) > 0
    return np.asarray(graph.indices[at[first]], np.intp)


def weights_of(distance: Array, dtype: DTypeLike = np.float64) -> Matrix:
    """Weights δ_{q+1} − δ_j of the q nearest landmarks, with squared distances δ ascending.

    They sum to 1 in each row; distances of a row may lack a constant.
    """
    n, m = distance.shape
    q = min(constants.NEIGHBOURS, m - 1)
    at = np.flatnonzero(distance <= _bound(distance, q)[:, None])
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
    return sparse.csr_array(((weight[keep] / total[row]).astype(dtype), column, starts), (n, m))


def _bound(distance: Array, q: int) -> Array:
    """Return a number for each row that q + 1 entries at least, and few others, do not exceed.

    It is the (q + 1)-th of the least entries of some sets of columns, which are few to partition.
    """
    m = distance.shape[1]
    width = max(q + 1, m // 8)
    least = distance[:, :width].copy()
    for start in range(width, m, width):
        some = distance[:, start : start + width]
        part = least[:, : some.shape[1]]
        np.minimum(part, some, out=part)
    return np.partition(least, q, axis=1)[:, q]


def limited(M: Array, products: Callable[[], Array], n: int) -> Array:
    """Return a matrix whose rank is at most a tenth of the n samples behind it."""
    most = max(n // FEWEST, 1)
    if most >= min(M.shape):
        return M
    V = linalg.eigh(products(), check_finite=False)[1][:, -most:]
    return np.asarray(M @ (V @ V.T))
