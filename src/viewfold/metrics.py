"""How well a clustering agrees with known classes: the four measures of the field.

Each takes ``y``, the class of every sample, and ``labels``, its cluster; their names do not matter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils.validation import check_consistent_length, column_or_1d


def _count_together(y: ArrayLike, labels: ArrayLike) -> NDArray[np.int64]:
    """Count the samples of each class (row) in each cluster (column)."""
    classes, clusters = column_or_1d(y), column_or_1d(labels)
    check_consistent_length(classes, clusters)
    if not len(classes):
        raise ValueError("There is nothing to compare: y and labels are empty.")
    return np.asarray(contingency_matrix(classes, clusters), dtype=np.int64)


def accuracy(y: ArrayLike, labels: ArrayLike) -> float:
    """Share of samples in the right cluster, under the best one-to-one match with the classes.

    Examples
    --------
    >>> from viewfold.metrics import accuracy
    >>> accuracy([0, 0, 1, 1], [7, 7, 3, 7])
    0.75
    """
    table = _count_together(y, labels)
    return float(table[linear_sum_assignment(table, maximize=True)].sum() / table.sum())


def nmi(y: ArrayLike, labels: ArrayLike) -> float:
    """Mutual information of classes and clusters over the arithmetic mean of their entropies.

    Examples
    --------
    >>> from viewfold.metrics import nmi
    >>> nmi([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    _count_together(y, labels)
    return min(float(normalized_mutual_info_score(y, labels)), 1.0)  # round-off may put it above


def purity(y: ArrayLike, labels: ArrayLike) -> float:
    """Share of samples that belong to the most frequent class of their cluster.

    Examples
    --------
    >>> from viewfold.metrics import purity
    >>> purity([0, 0, 1, 1], [0, 1, 2, 2])
    1.0
    """
    table = _count_together(y, labels)
    return float(table.max(axis=0).sum() / table.sum())


def f_score(y: ArrayLike, labels: ArrayLike) -> float:
    """Harmonic mean of precision and recall over pairs of samples that are put together.

    Examples
    --------
    >>> from viewfold.metrics import f_score
    >>> f_score([0, 0, 1, 1], [0, 0, 0, 1])
    0.4
    """
    table = _count_together(y, labels)
    together, clusters, classes = (
        int((counts * (counts - 1)).sum() // 2)
        for counts in (table, table.sum(axis=0), table.sum(axis=1))
    )
    if clusters + classes == 0:
        return 1.0  # all alone, and rightly so
    return 2 * together / (clusters + classes)


def evaluate(y: ArrayLike, labels: ArrayLike) -> dict[str, float]:
    """All four measures at once.

    Examples
    --------
    >>> from viewfold.metrics import evaluate
    >>> evaluate([0, 0, 1, 1], [1, 1, 0, 0])
    {'accuracy': 1.0, 'nmi': 1.0, 'purity': 1.0, 'f_score': 1.0}
    """
    return {one.__name__: one(y, labels) for one in (accuracy, nmi, purity, f_score)}
