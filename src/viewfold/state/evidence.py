"""What each view says about each sample: its evidence, k − 1 small numbers in one byte each.

The encoder of a view embeds a row as e. Of e, the part in the discriminant directions of the
clusters is kept. When a corrected row comes, the evidence of the sample is replaced: its row of the
consensus changes by the difference alone, so that the other views are not averaged away.
"""

from __future__ import annotations

import numpy as np

from viewfold._util.messages import frozen_record
from viewfold._util.types import Array
from viewfold.rows import Engine, RowSet
from viewfold.rows.linalg import gram, shrink_eigenvalues
from viewfold.state.parts import part

NONE = -128  # in place of the evidence of a sample that the view lacks, or that is not known
STEPS = 20.0  # steps for one standard deviation of the consensus: ±127 of them are 6.35


@part("directions", axes={"mean": "r", "directions": "re", "lift": "er"})
@frozen_record
class Directions:
    """The directions of the consensus in which evidence is kept."""

    mean: Array  # (n_components,): the mean row of the consensus
    directions: Array  # (n_components, n_numbers): rows of the consensus have variance 1 in them
    # (n_numbers, n_components): the row of the consensus that is expected from the numbers; along
    # the differences of the means of clusters
    lift: Array

    @property
    def n_numbers(self) -> int:
        """How many numbers the evidence of one view has."""
        return int(self.directions.shape[1])

    def say(self, embedded: Array) -> Array:
        """Return the evidence of rows that an encoder embedded."""
        return _as_bytes((embedded - self.mean) @ self.directions * STEPS)

    def columns(self, which: int) -> slice:
        """Return where the evidence of a view stands, by the number of the view."""
        return slice(which * self.n_numbers, (which + 1) * self.n_numbers)

    def put(self, embedded: Array, evidence: Array, which: int) -> Array:
        """Return evidence in which that of one view is what its encoder says now."""
        made = evidence.copy()
        made[:, self.columns(which)] = self.say(embedded)
        return made

    def lifted(self, evidence: Array) -> Array:
        """Return how rows of the consensus differ from the mean, as far as evidence tells."""
        return np.asarray(evidence.astype(np.float64) @ self.lift / STEPS)


def _as_bytes(numbers: Array) -> Array:
    return np.clip(np.rint(numbers), -127, 127).astype(np.int8)


def learn_directions(
    engine: Engine, embedding: RowSet, labels: RowSet, n_clusters: int
) -> Directions:
    """Return the discriminant directions of the clusters: one at least, k − 1 at most."""

    def products(block: Array, own: Array) -> tuple[Array, Array, Array]:
        rows = block.astype(np.float64)
        total = np.zeros((n_clusters, rows.shape[1]))
        np.add.at(total, own, rows)
        return gram(rows), total, np.bincount(own, minlength=n_clusters)

    inner, total, size = engine.reduce(products, embedding, labels)
    n = size.sum()
    mean = total.sum(axis=0) / n
    values, V = np.linalg.eigh(inner - n * np.outer(mean, mean))
    values = np.maximum(shrink_eigenvalues(values, n) / n, 1e-300)
    whiten = V / np.sqrt(values)
    apart = (total - size[:, None] * mean) / np.sqrt(np.maximum(size, 1))[:, None] @ whiten
    most = max(n_clusters - 1, 1)
    U = np.linalg.svd(apart, full_matrices=False)[2][:most].T
    return Directions(mean, whiten @ U, U.T @ (V * np.sqrt(values)).T)


def carry_evidence(
    engine: Engine,
    evidence: RowSet,
    before: Directions,
    after: Directions,
    linear_map: Array | None = None,
) -> RowSet:
    """Return evidence in other directions, after a linear map of the consensus."""
    step = np.eye(len(before.mean)) if linear_map is None else linear_map
    toward = before.lift @ step @ after.directions
    shift = (before.mean @ step - after.mean) @ after.directions * STEPS
    m, now = before.n_numbers, after.n_numbers

    def carry(block: Array) -> Array:
        each = block.reshape(len(block), -1, m)
        made = _as_bytes(each.astype(np.float64) @ toward + shift)
        made[each[:, :, 0] == NONE] = NONE
        return made.reshape(len(block), each.shape[1] * now)

    return engine.map(carry, evidence)
