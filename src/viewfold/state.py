"""Everything a model has learned, in one frozen object: what a file holds and a fold replaces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viewfold.clustering import Clustering
from viewfold.consensus import Consensus


@dataclass(frozen=True)
class State:
    """Everything a model has learned.

    Attributes
    ----------
    consensus : Consensus
        What is left of the views.
    clustering : Clustering
        The clusters, as of now.
    history : ndarray of int, shape (n_samples, n_views)
        The cluster of every sample after each fold, −1 before it was seen. The last column holds
        the labels of now.
    """

    consensus: Consensus
    clustering: Clustering
    history: NDArray[np.int32]
