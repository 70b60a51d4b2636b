"""How well a clustering agrees with known classes: the four measures of the field."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils.validation import check_consistent_length, column_or_1d

Contingency: TypeAlias = NDArray[np.int64]


def _contingency(y: ArrayLike, labels: ArrayLike) -> Contingency:
    """Count the samples of each class (row) in each cluster (column)."""
    classes, clusters = column_or_1d(y), column_or_1d(labels)
    check_consistent_length(classes, clusters)
    if not len(classes):
        raise ValueError("There is nothing to compare: y and labels are empty.")
    return np.asarray(contingency_matrix(classes, clusters), dtype=np.int64)


class Measure(Protocol):
    """How well clusters agree with classes, from 0 to 1."""

    def __call__(self, y: ArrayLike, labels: ArrayLike) -> float:
        """Compare."""


_PARAMETERS = """\
Parameters
----------
y : array-like of shape (n_samples,)
    The classes.
labels : array-like of shape (n_samples,)
    The clusters; their names do not matter.
"""
_MEASURES: dict[str, Callable[[Contingency], float]] = {}


def _measure(of_table: Callable[[Contingency], float]) -> Measure:
    """Make a measure of classes and clusters from one of the table of both."""
    name = of_table.__name__
    said, _, rest = cleandoc(of_table.__doc__ or "").partition("\n\n")
    _MEASURES[name] = of_table

    def measure(y: ArrayLike, labels: ArrayLike) -> float:
        return of_table(_contingency(y, labels))

    measure.__name__ = measure.__qualname__ = name
    measure.__doc__ = f"{said}\n\n{_PARAMETERS}\n{rest}"
    return measure


@_measure
def accuracy(table: Contingency) -> float:
    """Share of samples in the right cluster, under the best one-to-one match with the classes.

    Examples
    --------
    >>> from viewfold.metrics import accuracy
    >>> accuracy([0, 0, 1, 1], [7, 7, 3, 7])
    0.75
    """
    return float(table[linear_sum_assignment(table, maximize=True)].sum() / table.sum())


@_measure
def nmi(table: Contingency) -> float:
    """Mutual information of classes and clusters over the arithmetic mean of their entropies.

    Examples
    --------
    >>> from viewfold.metrics import nmi
    >>> nmi([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    if table.shape == (1, 1):
        return 1.0
    shared = float(mutual_info_score(None, None, contingency=table))
    if shared <= np.finfo(np.float64).eps:
        return 0.0
    mean = (_entropy(table.sum(axis=1)) + _entropy(table.sum(axis=0))) / 2
    return min(shared / mean, 1.0)  # round-off may put it just above


def _entropy(sizes: Contingency) -> float:
    return -float(np.sum(sizes / sizes.sum() * (np.log(sizes) - np.log(sizes.sum()))))


@_measure
def purity(table: Contingency) -> float:
    """Share of samples that belong to the most frequent class of their cluster.

    Examples
    --------
    >>> from viewfold.metrics import purity
    >>> purity([0, 0, 1, 1], [0, 1, 2, 2])
    1.0
    """
    return float(table.max(axis=0).sum() / table.sum())


@_measure
def f_score(table: Contingency) -> float:
    """Harmonic mean of precision and recall over pairs of samples that are put together.

    Examples
    --------
    >>> from viewfold.metrics import f_score
    >>> f_score([0, 0, 1, 1], [0, 0, 0, 1])
    0.4
    """

    def pairs(counts: Contingency) -> int:
        return int((counts * (counts - 1)).sum() // 2)

    put_together, belong_together = pairs(table.sum(axis=0)), pairs(table.sum(axis=1))
    if put_together + belong_together == 0:
        return 1.0  # all alone, and rightly so
    return 2 * pairs(table) / (put_together + belong_together)


def evaluate(y: ArrayLike, labels: ArrayLike) -> dict[str, float]:
    """All four measures at once.

    Parameters
    ----------
    y, labels : array-like of shape (n_samples,)
        The classes and the clusters.

    Examples
    --------
    >>> from viewfold.metrics import evaluate
    >>> evaluate([0, 0, 1, 1], [1, 1, 0, 0])
    {'accuracy': 1.0, 'nmi': 1.0, 'purity': 1.0, 'f_score': 1.0}
    """
    table = _contingency(y, labels)
    return {name: measure(table) for name, measure in _MEASURES.items()}
