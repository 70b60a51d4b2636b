"""How sure a model is: samples that could as well be elsewhere, clusters that may be chance.

Both are told by the consensus alone: no view is needed, and nothing is changed.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from viewfold._util.arguments import is_whole_number
from viewfold._util.types import Array, Seed
from viewfold.estimators.prediction import Prediction
from viewfold.estimators.turns import asks
from viewfold.method.clusters import resampled
from viewfold.rows import LocalEngine, RowSet, all_on_one_thread
from viewfold.state.clusters import next_nearest
from viewfold.state.hashes import draw, seed_of
from viewfold.state.method import Method
from viewfold.state.state import unconnected_groups

# Clusters are found again in so many rows at most; in 50 for each cluster if these are more.
ROWS = 2000

# Clusters whose mean Jaccard similarity is below this should not be trusted (Hennig 2007).
TRUSTED = 0.6


class Certainty(Prediction):
    """How sure samples are of their cluster (`uncertain`), and how real clusters (`stability`)."""

    @asks
    def uncertain(self, n: int = 20) -> pd.DataFrame:
        """Return the samples whose cluster is least certain, the least certain first.

        Parameters
        ----------
        n : int, default=20
            How many.

        Returns
        -------
        DataFrame
            By id: ``cluster``, ``confidence`` (see `to_frame`) and ``next_cluster``, the one that
            the sample would be in otherwise; −1 if there is no other.

        Examples
        --------
        >>> import numpy as np
        >>> from viewfold import ViewFold
        >>> X = np.random.default_rng(0).normal(size=(60, 4)) + 4 * np.eye(4)[np.arange(60) % 3]
        >>> X[7] = (X[0] + X[1]) / 2
        >>> ViewFold(3, random_state=0).fit(X).uncertain(1).index.tolist()
        [7]
        """
        if not is_whole_number(n) or n < 1:
            raise ValueError(f"n={n}: ask for one sample or more, with a whole number.")
        frame, state, engine = self.to_frame(), self._fitted, self._engine
        other = next_nearest(engine, self._clusters, state.embedding, state.labels(engine))
        frame.insert(2, "next_cluster", self._collected(other))
        least = frame["confidence"].to_numpy().argsort(kind="stable")[:n]
        return frame.drop(columns="views_seen").iloc[least]

    @asks
    def stability(self, n_resamples: int = 20, *, random_state: Seed = 0) -> pd.DataFrame:
        """Return how well each cluster is found again in resampled rows of the consensus.

        Rows are drawn with replacement, and clusters found anew. The stability of a cluster is its
        mean Jaccard similarity (of its drawn samples with those of a new cluster: how many are in
        both, over how many are in either) to the new cluster that resembles it most. Unlike the
        share of pairs that stay together, it is low as well if a cluster is joined with another.

        Parameters
        ----------
        n_resamples : int, default=20
            How often rows are drawn.
        random_state : int, RandomState or None, default=0
            Seed of all draws.

        Returns
        -------
        DataFrame
            By ``cluster``: ``size``, ``stability`` from 0 to 1, and ``trusted``: False if it is
            below 0.6, or not known as none of its samples was drawn. Clusters from 0.75 on are
            stable; in between, it is doubtful which samples exactly belong to them.

        Notes
        -----
        At most 2,000 rows are used, or 50 for each cluster, so that time does not depend on the
        number of samples; a small cluster has few of them. A stable cluster is found again in rows
        of *this* consensus; that it means something is another question.

        References
        ----------
        C. Hennig (2007): Cluster-wise assessment of cluster stability. Computational Statistics &
        Data Analysis 52, 258-271.

        Examples
        --------
        >>> import numpy as np
        >>> from viewfold import ViewFold
        >>> X = np.random.default_rng(0).normal(size=(150, 4)) + 8 * np.eye(4)[np.arange(150) % 3]
        >>> ViewFold(3, random_state=0).fit(X).stability()["trusted"].tolist()
        [True, True, True]
        """
        check_is_fitted(self)
        if not is_whole_number(n_resamples) or n_resamples < 1:
            raise ValueError(
                f"n_resamples={n_resamples}: draw rows at least once; give a whole number."
            )
        k, labels = self._clusters.n_clusters, self._fitted.labels(self._engine)
        size = self._engine.reduce(lambda block: np.bincount(block, minlength=k), labels)
        share = self._found_again(labels, n_resamples, seed_of(random_state))
        return pd.DataFrame(
            {"size": size.astype(np.intp), "stability": share, "trusted": share >= TRUSTED},
            index=pd.RangeIndex(k, name="cluster"),
        )

    def _found_again(self, labels: RowSet, n_resamples: int, seed: int) -> Array:
        """Return the stability of each cluster, from some rows of the consensus."""
        engine, state, k = self._engine, self._fitted, self._clusters.n_clusters
        some = draw(engine, state.ids, max(ROWS, 50 * k), seed=seed, purpose="stability")
        groups = unconnected_groups(engine, state.seen, state.views)
        theirs = None if groups is None else engine.collect(engine.select(groups, some))
        rows = engine.collect(engine.select(state.embedding, some))
        method = self._with_clusters(k)

        def find(drawn: NDArray[np.intp], seed: int) -> Array:
            found, _ = method.cluster(
                LocalEngine(),
                np.arange(drawn.size),
                rows[drawn],
                groups=None if theirs is None else theirs[drawn],
                previous=None,
                seed=seed,
            )
            return np.asarray(found)

        known = engine.collect(engine.select(labels, some))
        with all_on_one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about groups, which was said when they came
            return resampled(find, known, k, n_resamples, seed)

    def _with_clusters(self, n: int) -> Method:
        """Return the method of this estimator for so many clusters."""
        raise NotImplementedError
