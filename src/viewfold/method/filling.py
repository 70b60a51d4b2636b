"""What stands for missing cells: what a view knows about itself says it, from the cells of the row.

Two predictions are blended. *Linear*: a row's scores on a few principal directions, by ridge
regression on the cells that it has (probabilistic PCA, so that the noise is the penalty). *Near*:
the weighted mean of the landmarks that are nearest in those cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from viewfold._util import constants
from viewfold._util.constants import FEWEST
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array, Matrix
from viewfold.data.view import View
from viewfold.method.batches import Batches
from viewfold.method.kmeans import nearest, step
from viewfold.method.landmarks import means_around, weights_of
from viewfold.method.scaling import Scaling
from viewfold.method.variables import Bends
from viewfold.rows import Engine
from viewfold.rows.linalg import filled, is_sparse, top_eigenvectors
from viewfold.state.hashes import draw
from viewfold.state.parts import part

if TYPE_CHECKING:
    from viewfold.state.state import Encoder

ROOM = 2**20  # Rows are completed a few at a time, with so many numbers at once

# Of a view with more features, the linear prediction is enough: it rests on many cells.
WIDEST = 2048

# What stands for missing cells is learned from so many rows (the directions from half of them), and
# from so many cells (but from 300 rows), at most.
SAMPLE, LEARN, SAMPLE_CELLS = 2000, 1000, 2**20

CELLS = 4 * 2**20  # A view of so many cells is completed once, a larger one in every pass over it


@part("filling", axes={"mean": "d", "weight": "d", "loadings": "dp", "points": "ud"})
@frozen_record
class Filling:
    """Predicts the missing cells of a row from those that are there; complete rows stay.

    With z = (x − mean) · weight, missing cells are linear · U (I + U_oᵀU_o)⁻¹ U_oᵀ z_o, where U are
    the loadings and o the cells that are there, plus near · (weighted mean of landmarks).
    """

    #: (n_features,): mean, weight: the mean of each feature, and one divided by its spread. A
    #: weight of 0 says that fewer than ten samples had the feature: it has its mean in all rows.
    mean: Array
    weight: Array
    #: (n_features, n_directions): principal directions, times the root of what they explain
    #: relative to the noise
    loadings: Array
    points: Array | None = None  #: (n_landmarks, n_features): the landmarks, standardised
    linear: float = 1.0  #: linear, near: the factors of the two predictions
    near: float = 0.0
    bends: Bends | Batches | None = None  #: what is done with cells first; None if nothing is

    @classmethod
    def by_mean(cls, mean: Array, rare: Array | None = None) -> Filling:
        """Return what puts the mean in the place of missing cells."""
        weight = np.ones(mean.size) if rare is None else 1.0 - rare
        return cls(mean, weight, np.empty((mean.size, 0)))

    def __call__(self, block: Matrix) -> Matrix:
        """Return a block without missing cells."""
        rare = self.weight == 0
        if self.bends is not None:
            block = self.bends(block)
        if is_sparse(block) or not (self.loadings.shape[1] or self.near):
            return filled(block, self.mean, rare)
        gaps = np.isnan(block)
        at = np.flatnonzero(gaps.any(axis=1))
        if not at.size:
            return filled(block, self.mean, rare)
        out = block.copy()
        q, d = self.loadings.shape[1], block.shape[1]
        step = max(1, ROOM // (q * q + 4 * d + (0 if self.points is None else len(self.points))))
        for some in np.split(at, range(step, at.size, step)):
            rows, gone = block[some], gaps[some]
            there = np.where(gone | rare, 0, 1).astype(block.dtype)
            z = np.where(gone, 0, (rows - self.mean) * self.weight).astype(block.dtype, copy=False)
            expected = self.mean + self.predict(z, there) / np.where(rare, 1, self.weight)
            out[some] = np.where(gone, expected, rows)
        return filled(out, self.mean, rare)

    def predict(self, z: Array, there: Array) -> Array:
        """Predict all cells of standardised rows from those that are there; z is 0 elsewhere."""
        expected = np.zeros_like(z)
        if self.linear and self.loadings.shape[1]:
            U = self.loadings.astype(z.dtype)
            scores = np.linalg.solve(_precisions(U, there), (z @ U)[:, :, None])[:, :, 0]
            expected += self.linear * (scores.astype(z.dtype) @ U.T)
        if self.near and self.points is not None:
            expected += self.near * _mean_of_nearest(self.points.astype(z.dtype), z, there)
        return expected


@part("filled")
@frozen_record
class Filled:
    """An encoder of rows with missing cells."""

    fill: Filling  #: what stands for missing cells
    encode: Encoder  #: what is done with complete rows
    #: what complete rows are like; None if that is not known
    known: Callable[[Matrix], Array] | None = None

    def __call__(self, block: Matrix) -> Array:
        """Embed a block of rows."""
        return self.encode(self.fill(block))

    def surprise(self, block: Matrix) -> Array:
        """Return how unlike known rows each row is; see `viewfold.method.novelty`."""
        if self.known is None:
            return np.full(block.shape[0], np.nan)
        return self.known(self.fill(block))

    @property
    def batches(self) -> Batches | None:
        """What removes the differences of batches, if anything does."""
        first = self.fill.bends
        return replace(first, then=None) if isinstance(first, Batches) else None

    def then(self, linear_map: Array) -> Filled:
        """Return this encoder followed by a linear map of the embedding."""
        return replace(self, encode=self.encode.then(linear_map))


def of_directions(
    scaling: Scaling,
    directions: Array,
    spectrum: Array,
    energy: float,
    n: int,
    bends: Bends | Batches | None = None,
) -> Filling:
    """Return what is predicted for missing cells of later rows of a view that had none."""
    d = scaling.mean.size
    if scaling.text is not None:
        return Filling.by_mean(scaling.text.usual(scaling.mean))
    mean = scaling.mean if scaling.shift is None else scaling.mean + scaling.shift
    many = min(constants.GAP_DIRECTIONS, spectrum.size, max(n // FEWEST, 1), d - 1)
    values = spectrum[:many] ** 2
    left = max(energy - values.sum(), 0) / max(np.count_nonzero(scaling.weight) - many, 1)
    return Filling(
        mean,
        np.where(scaling.weight > 0, scaling.weight, 1),
        _loadings(directions[:, :many], values, left).astype(np.float32),
        bends=bends,
    )


def learn_filling(
    engine: Engine, view: View, seed: tuple[int, ...], bends: Bends | Batches | None = None
) -> tuple[Filling, Filling, Array]:
    """Learn from a sample of rows what stands for missing cells, and what of it may be kept."""
    assert view.gaps is not None
    n, d = view.shape
    most = min(SAMPLE, max(SAMPLE_CELLS // d, 300))
    drawn = draw(engine, view.ids, most, seed=seed, purpose="missing cells")
    raw = engine.collect(engine.select(replace(view.rows, fill=None), drawn)).astype(np.float64)
    mean, rare = view.gaps.mean, view.gaps.rare
    # 1 / spread of each feature over what is there; 0 if that are too few cells
    count = np.count_nonzero(~np.isnan(raw), axis=0)
    if bends is not None:
        raw = bends(raw)
        mean = np.where(
            count >= FEWEST, np.nansum(raw, axis=0) / np.maximum(count, 1), bends(mean[None])[0]
        )
    squares = np.nansum((raw - mean) ** 2, axis=0)
    enough = (count >= min(FEWEST, len(raw))) & (squares > 0)
    inverse = np.sqrt(np.maximum(count - 1, 0) / np.where(enough, squares, 1))
    weight = np.where(enough, inverse, 0) * ~rare
    there = ~np.isnan(raw) & (weight > 0)
    z = np.where(there, (raw - mean) * weight, 0)
    # A twentieth of the cells is hidden: the factors of the two predictions are regressed on them.
    hidden = there & (np.random.default_rng((*seed, d)).random(z.shape) < constants.HIDDEN)
    seen = (there & ~hidden).astype(np.float64)
    loadings = _learn_loadings(z[:LEARN] * seen[:LEARN], seen[:LEARN])
    filling = Filling(mean, np.where(weight > 0, weight, ~rare), loadings, bends=bends)
    expected = linear = filling.predict(z * seen, seen)
    many, rows = min(constants.LANDMARKS, len(z) // 5), z
    for _ in range(2 if d <= WIDEST and many > 1 else 0):
        rows = np.where(seen > 0, z, expected)
        points = step(rows, rows[:many], nearest(rows, rows[:many]))
        near = _mean_of_nearest(points, z * seen, seen)
        # As if ten more cells said that the linear prediction is right.
        A, prior = np.column_stack([linear[hidden], near[hidden]]), FEWEST * np.eye(2)
        a, b = np.linalg.solve(A.T @ A + prior, A.T @ z[hidden] + prior[0]).tolist()
        expected = a * linear + b * near
        filling = replace(filling, points=points, linear=a, near=b)
    # What may be kept: directions that ten samples each allow, and means of ten rows or more.
    kept = replace(filling, loadings=loadings[:, : max(n // FEWEST, 1)].astype(np.float32))
    if filling.points is not None:
        kept = replace(kept, points=means_around(rows, filling.points)[0].astype(np.float32))
    return filling, kept, weight


def _precisions(U: Array, there: Array) -> Array:
    """Return I + U_oᵀU_o for each row."""
    q = U.shape[1]
    i, j = np.triu_indices(q)
    upper = there @ (U[:, i] * U[:, j])
    upper[:, i == j] += 1
    return _symmetric(upper.astype(np.float64, copy=False), q)


def _symmetric(upper: Array, q: int) -> Array:
    """Return symmetric matrices from the entries of their upper triangles, one in each row."""
    place = np.empty((q, q), np.intp)
    i, j = np.triu_indices(q)
    place[i, j] = place[j, i] = np.arange(i.size)
    return np.asarray(upper[:, place.ravel()].reshape(-1, q, q))


def _loadings(directions: Array, values: Array, noise: float) -> Array:
    """Return principal directions times √(λ / σ² − 1); `values` and `noise` are sums of squares."""
    noise = max(noise, constants.LEAST_NOISE * values.sum() / len(directions), 1e-300)
    return np.asarray(directions * np.sqrt(np.maximum(values / noise - 1, 0)))


def _learn_loadings(z: Array, seen: Array) -> Array:
    """Learn principal directions and noise from rows with gaps, by steps of the EM algorithm."""
    n, d = z.shape
    q = min(constants.GAP_DIRECTIONS, max(n // FEWEST, 1), d - 1)
    values, V = top_eigenvectors(z @ z.T if n < d else z.T @ z, q)
    if n < d:
        V = z.T @ (V / np.sqrt(values))
    noise = max(float((z * z).sum() - values.sum()), 0) / max(d - values.size, 1)
    U, count = _loadings(V, values, noise), seen.sum()
    q = U.shape[1]
    if not q:
        return U
    i, j = np.triu_indices(q)
    variance = max(noise / (n * seen.mean()), constants.LEAST_NOISE)
    for _ in range(constants.GAP_ROUNDS):
        inverse = np.linalg.inv(_precisions(U, seen))
        scores = np.matmul(inverse, (z @ U)[:, :, None])[:, :, 0] / np.sqrt(variance)
        products = _symmetric(seen.T @ (scores[:, i] * scores[:, j] + inverse[:, i, j]), q)
        products[:, range(q), range(q)] += 1e-3 * variance
        cross = z.T @ scores
        W = np.linalg.solve(products, cross[:, :, None])[:, :, 0]
        left = float((z * z).sum() - (W * cross).sum()) / count
        variance = max(left, constants.LEAST_NOISE)
        U = W / np.sqrt(variance)
    return U


def _mean_of_nearest(points: Array, z: Array, there: Array) -> Array:
    distance = there @ (points * points).T - 2 * (z @ points.T)
    return np.asarray(weights_of(distance, points.dtype) @ points)
