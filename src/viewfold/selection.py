"""Suggest a number of clusters, from the consensus alone."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, ward
from sklearn.cluster import KMeans
from sklearn.utils.validation import check_is_fitted

from viewfold._types import Array, IdsLike, ViewsLike, as_python
from viewfold.core.sampling import draw, seed_of
from viewfold.engine import LocalEngine, all_on_one_thread
from viewfold.estimators import FoldingEstimator, ViewFold
from viewfold.linalg import unit_rows

ROWS = 1000
"""How many rows are used; more if there are more than a hundred clusters."""

SHUFFLES = 3
"""How many shuffled copies of the rows the scores are compared with."""


@dataclass(frozen=True)
class Suggestion:
    """A number of clusters, and how well each number does.

    Attributes
    ----------
    best : int
        The number with the highest score.
    scores : dict of int to float
        How much clearer so many clusters are than in shuffled data. If it is about 0 throughout,
        there may be no clusters at all.

    Notes
    -----
    For each k, Ward's method grows a tree on a sample of rows, in the columns that `ViewFold` reads
    for k clusters, and k-means starts from it. Two things speak for k: that the merge of k clusters
    into k − 1 is much longer than the one before (the logarithm of their ratio), and that rows are
    much nearer to their own centre than to the next one. The score is the sum of both, minus the
    same sum for shuffled data, in which each column was permuted on its own: in few columns,
    clusters look clear by chance, and in many they never do. Time and memory beyond one pass over
    the samples do not depend on their number.

    On eight data sets with known classes (5 to 100), choosing from half to twice their number, the
    suggestion was within a fifth of it on six (``benchmarks/accuracy.py --part suggest``). The rule
    was chosen among many by looking at these sets: expect less elsewhere. Where clusters are not
    clear, their number is not well defined, so look at the scores and try several.

    A model that was fitted for few clusters has few columns, which is all that larger k see: start
    from the views if unsure. The consensus of `FCMVC` has as many columns as clusters and none of
    them leads, so that it says little about other numbers.
    """

    best: int
    scores: dict[int, float]

    def plot(self, ax: Any = None) -> Any:
        """Draw the scores, and mark the best one. Needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.

        Returns
        -------
        matplotlib Axes
        """
        if ax is None:
            try:
                pyplot = importlib.import_module("matplotlib.pyplot")
            except ImportError as error:
                raise ImportError("Plots need matplotlib: pip install matplotlib") from error
            ax = pyplot.subplots()[1]
        ax.plot(list(self.scores), list(self.scores.values()), marker=".")
        ax.plot([self.best], [self.scores[self.best]], "o", label=f"suggested: {self.best}")
        ax.set(xlabel="number of clusters", ylabel="score")
        ax.legend()
        return ax


def suggest_n_clusters(
    model_or_views: FoldingEstimator | ViewsLike,
    k_range: Iterable[int],
    *,
    ids: IdsLike | Sequence[IdsLike] | Mapping[str, IdsLike] = None,
    random_state: int | np.random.RandomState | None = 0,
) -> Suggestion:
    """Suggest a number of clusters; `Suggestion` tells how, and how far to trust it.

    Parameters
    ----------
    model_or_views : fitted estimator, or views
        A model, of which only the consensus is used, or whatever ``ViewFold.fit`` takes.
    k_range : iterable of int
        The numbers to choose from: at least 2, and fewer than there are samples.
    ids : array-like, list or dict, optional
        The sample ids of the views; see ``ViewFold.fit``.
    random_state : int, RandomState or None, default=0
        Seed of the shuffling, and of all draws.

    Returns
    -------
    Suggestion

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.selection import suggest_n_clusters
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(np.arange(4), 50)
    >>> views = [rng.normal(size=(200, d)) + 5 * np.eye(d)[y] for d in (6, 9)]
    >>> suggest_n_clusters(views, range(2, 9)).best
    4
    """
    candidates, seed = _checked(k_range), seed_of(random_state)
    model = _fitted(model_or_views, ids, candidates[-1], seed)
    n, most = model.ids_.size, candidates[-1]
    if most >= n:
        raise ValueError(
            f"k_range goes up to {most}, but there are {n} samples: end it below their number."
        )
    some = draw(
        LocalEngine(), model.ids_, max(ROWS, 10 * most), seed=seed, purpose="number of clusters"
    )
    rows = model.embedding_[some].astype(np.float64)
    random = np.random.RandomState(seed)
    chance = [_shuffled(rows, random) for _ in range(SHUFFLES)]
    with all_on_one_thread():
        scores = {
            k: _clarity(rows, k) - float(np.mean([_clarity(other, k) for other in chance]))
            for k in candidates
        }
    return Suggestion(max(candidates, key=scores.__getitem__), scores)


def _fitted(model_or_views: Any, ids: Any, most: int, seed: int) -> FoldingEstimator:
    """Return the given model, or one of the views with columns enough for so many clusters."""
    if isinstance(model_or_views, FoldingEstimator):
        if ids is not None:
            raise ValueError("A fitted model knows its ids already; leave ids= out.")
        check_is_fitted(model_or_views)
        return model_or_views
    # The consensus of a model for the largest number, without the work of finding its clusters.
    model = ViewFold(2, n_components=3 * most, n_init=1, keep_encoders=False)
    model.set_params(random_state=seed)
    return model.fit(model_or_views, ids=ids)


def _checked(k_range: Iterable[int]) -> list[int]:
    """Return the numbers in order, each once."""
    candidates = list(k_range)
    if not candidates:
        raise ValueError("k_range is empty: give the numbers to choose from, such as range(2, 21).")
    wrong = [as_python(k) for k in candidates if not isinstance(k, Integral) or k < 2]
    if wrong:
        raise ValueError(f"k_range holds {wrong[0]!r}, but needs whole numbers of 2 or more.")
    return sorted({int(k) for k in candidates})


def _shuffled(rows: Array, random: np.random.RandomState) -> Array:
    """Permute each column by itself, so that columns are independent."""
    return np.column_stack([random.permutation(column) for column in rows.T])


def _clarity(rows: Array, k: int) -> float:
    """Return how clear k clusters are: the jump in the tree, plus the margin of the rows."""
    rows = unit_rows(rows[:, : 3 * k // 2])
    tree = ward(rows)
    after, before = np.maximum(tree[[1 - k, -k], 2], 1e-6)  # rows may be the same
    labels = fcluster(tree, k, "maxclust")
    start = np.array([rows[labels == label].mean(axis=0) for label in np.unique(labels)])
    model = KMeans(len(start), init=start, n_init=1).fit(rows)
    return float(np.log(after / before)) + _margin(model.transform(rows))


def _margin(distances: Array) -> float:
    """Return how much nearer rows are to their own centre than to the next one, from 0 to 1."""
    if distances.shape[1] == 1:
        return 0.0
    own, other = np.partition(distances, 1, axis=1)[:, :2].T
    return float(1 - np.mean(np.divide(own, other, out=np.ones_like(own), where=other > 0)))
