"""How unlike everything seen in a view a row is.

A row is far from what is known if it is far from the nearest landmark, in standard deviations of
known rows around theirs, and outside the principal directions of the view; or if an unusual share
of it is outside these directions, however small it is. Both are compared with rows that nothing of
it was learned from, so that the answer is a share: of known rows, so many are less unlike.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from viewfold._util import constants
from viewfold._util.constants import FEWEST
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array, Matrix
from viewfold.data.view import View
from viewfold.method.landmarks import means_around, place
from viewfold.method.scaling import Projection, Scaling, Text, directions_of_rows
from viewfold.rows import Engine
from viewfold.rows.linalg import dense, is_sparse, top_eigenvectors
from viewfold.state.hashes import draw
from viewfold.state.parts import part

# What is known of a view is learned from so many rows (a third of a small view is left to compare
# with), and from so many cells, but from 300 rows.
SAMPLE, LEARN, SAMPLE_CELLS = 3000, 1500, 2**20


@part("known", axes={"mean": "d", "weight": "d", "whiten": "qq", "points": "uq", "tens": "tc"})
@frozen_record
class Known:
    """What the rows of a view are like, in aggregates of ten samples or more."""

    project: Projection  #: from raw rows to scores on a few principal directions
    #: (n_features,): mean, weight: what a row is scaled by, for the part of it that is in no
    #: direction; None for text, whose rows have the length 1
    mean: Array | None
    weight: Array | None
    #: (n_directions, n_directions): makes distances to landmarks count in standard deviations
    whiten: Array
    points: Array  #: (n_landmarks, n_directions): the landmarks, after `whiten`
    #: the variance outside the directions, for each of the dimensions that are left; 0 if none is
    noise: float
    #: (n_tens, 2 or 3): of rows that were not learned from, in ascending order: what a row is
    #: compared with, in means of ten. First what `combine` makes of the others.
    tens: Array

    def __call__(self, block: Matrix) -> Array:
        """Return the surprise of rows without gaps: −log10 of the share of known rows as unlike."""
        value, knots = combine(self.measure(block), self.tens[:, 1:]), self.tens[:, 0]
        n = len(knots)
        rank = (np.arange(n) + 0.5) / n
        high = float(np.interp(0.9, rank, knots))
        # Beyond the last ten, shares fall as they do from a tenth of the rows on. Of few tens, that
        # is not known well: as if twenty more had an exponential distribution, whose share falls to
        # a fifth from the median to 90 %.
        excess = float(knots[rank >= min(0.9, rank[-1])].mean()) - high
        scale = (20 / np.log(5) + n * excess) / (20 + n)
        share = 1 - np.interp(value, knots, rank)
        below = np.exp(np.minimum(value - knots[0], 0) / scale)
        share = np.where(value < knots[0], 1 - rank[0] * below, share)
        beyond = np.maximum(value - knots[-1], 0) / (scale * np.log(10))
        return np.asarray(beyond - np.log10(share))

    def measure(self, block: Matrix) -> Array:
        """Return how far rows are, and the share outside the directions if there is any; logs."""
        far, outside, energy = self.distances(block)
        if not self.noise:
            return np.log(far + 1e-12)[:, None]
        share = outside / np.maximum(energy, 1e-300)
        return np.log(np.column_stack([far + outside / self.noise, share]) + 1e-12)

    def distances(self, block: Matrix) -> tuple[Array, Array, Array]:
        """Return squared distances to the nearest landmark, to the directions, and to the mean."""
        scores = self.project(block).astype(np.float64)
        rows = scores @ self.whiten
        apart = rows @ (-2 * self.points.T)
        apart += (self.points**2).sum(axis=1)
        far = np.maximum(apart.min(axis=1) + (rows**2).sum(axis=1), 0)
        if self.mean is not None and self.project.text is not None:  # counts
            block = self.project.text(block)
        if self.mean is None or self.weight is None:  # a row of nothing but zeros has no length
            energy = np.asarray((block != 0).sum(axis=1) > 0, np.float64).ravel()
        elif is_sparse(block):
            weight = self.weight**2
            energy = block.multiply(block) @ weight - 2 * (block @ (weight * self.mean))
            energy += weight @ self.mean**2
        else:
            energy = (((block - self.mean) * self.weight) ** 2).sum(axis=1)
        return far, np.maximum(energy - (scores**2).sum(axis=1), 1e-9 * energy), energy


def combine(measures: Array, tens: Array) -> Array:
    """Return the larger of the measures, each in its own units: from the median to 90 %."""
    rank = (np.arange(len(tens)) + 0.5) / len(tens)
    middle, high = (np.array([np.interp(p, rank, one) for one in tens.T]) for p in (0.5, 0.9))
    return np.asarray(((measures - middle) / np.maximum(high - middle, 1e-6)).max(axis=1))


def means_of_tens(values: Array) -> Array:
    """Return means of ten or more, of each column in ascending order."""
    parts = np.array_split(np.sort(values, axis=0), max(len(values) // FEWEST, 1))
    return np.array([some.mean(axis=0) for some in parts])


def learn_known(
    engine: Engine, view: View, scaling: Scaling, seed: tuple[int, ...]
) -> Known | None:
    """Learn from some rows of a view without gaps what they are like; None if they are too few."""
    n, d = view.shape
    most = min(SAMPLE, max(SAMPLE_CELLS // d, 300))
    drawn = draw(engine, view.ids, most, seed=seed, purpose="novelty")
    many = min(2 * drawn.size // 3, LEARN)
    if drawn.size - many < 2 * FEWEST:
        return None
    rows = engine.collect(engine.select(view.rows, drawn))
    some = rows[:many]
    width = min(constants.KNOWN_DIRECTIONS, many // FEWEST, d)
    if d <= many:
        Z = (dense(scaling.read(some)) - scaling.mean) * scaling.weight
        values, directions = top_eigenvectors(Z.T @ Z, width)
    else:
        values, directions = directions_of_rows(scaling.read(some), scaling, width)
    if not values.size:
        return None
    project = scaling.kept(n).projection(directions, single=True)
    scores = project(some).astype(np.float64)
    points = place(scores, max(many // constants.PER_LANDMARK, 1), cosine=False)
    points, own = means_around(scores, points)
    apart = scores - points[own]
    within = apart.T @ apart / max(many - len(points), 1)
    within[np.diag_indices_from(within)] += 0.01 * np.trace(within) / len(within) + 1e-12
    spread, Q = np.linalg.eigh(within)
    whiten = Q / np.sqrt(spread)
    mean, weight = None, None
    if not isinstance(scaling.text, Text):
        mean = scaling.mean if scaling.shift is None else scaling.mean + scaling.shift
        weight = scaling.weight
    left = (np.count_nonzero(scaling.weight) if d <= many else many) - values.size
    known = Known(project, mean, weight, whiten, points @ whiten, 0.0, np.zeros((1, 2)))
    others = rows[many:]
    if left > 0:
        known = replace(known, noise=float(known.distances(others)[1].mean()) / left)
    measures = known.measure(others)
    tens = means_of_tens(measures)
    return replace(known, tens=np.column_stack([means_of_tens(combine(measures, tens)), tens]))
