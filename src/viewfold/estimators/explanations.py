"""What a model tells about its clusters by features, also of views that are gone."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from viewfold._util.arguments import is_whole_number
from viewfold.estimators.results import Results, known_view
from viewfold.estimators.turns import asks
from viewfold.explain import (
    Explanation,
    Told,
    explain_sample,
    feature_table,
    loadings,
    variance_table,
)
from viewfold.explain.features import told, usable


class Explanations(Results):
    """What makes clusters: `features`, `explain`, `loadings` and `variance`."""

    @asks
    def features(
        self,
        view: str | int | None = None,
        cluster: int | None = None,
        top: int | None = 10,
    ) -> pd.DataFrame:
        """Return the features that tell a cluster from all other samples, strongest first.

        Views are not needed: moments that each left behind say what the mean of every feature is in
        any clusters that were found since, as far as the consensus holds it; see docs/explain.md.

        Parameters
        ----------
        view : str or int, optional
            Name or number of a view; all of them if not given.
        cluster : int, optional
            A cluster; all of them if not given.
        top : int, default=10
            How many features for each cluster, of all views together; None for all.

        Returns
        -------
        DataFrame
            ``cluster``, ``view``, ``feature``, its ``mean`` in the cluster and its
            ``overall_mean`` in the view, in the feature's own units; ``effect``, their difference
            in standard deviations of the feature; ``rank`` by the size of the effect. Clusters with
            fewer than ten samples in a view are left out, and a warning says so.

        See Also
        --------
        viewfold.ViewFold.explain : Why one sample is in its cluster.
        viewfold.ViewFold.variance : How much of each view is explained at all. Look at it first.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from viewfold import ViewFold
        >>> rng = np.random.default_rng(0)
        >>> y = np.repeat([0, 1], 50)
        >>> labs = pd.DataFrame(rng.normal(size=(100, 3)), columns=["iron", "zinc", "salt"])
        >>> labs["iron"] += 6 * y
        >>> model = ViewFold(2, random_state=0).fit({"labs": labs})
        >>> model.features(top=1)[["cluster", "view", "feature"]].to_numpy().tolist()
        [[0, 'labs', 'iron'], [1, 'labs', 'iron']]
        """
        tellers, clusters = self._tellers(view), self._which(cluster)
        _check_top(top)
        found = feature_table(tellers, clusters, top)
        few = {one.view.name: [c for c in one.too_few() if c in clusters] for one in tellers}
        left = "; ".join(f"{name!r}: {', '.join(map(str, of))}" for name, of in few.items() if of)
        if left:
            said = "Clusters with fewer than ten samples in a view are left out of what it tells"
            if not len(found):
                raise ValueError(f"{said}, and no others are asked for ({left}).")
            warnings.warn(f"{said} ({left}).", stacklevel=3)
        return found

    @asks
    def explain(
        self, id: int | str, *, view: str | int | None = None, top: int | None = 10
    ) -> Explanation:
        """Return why a sample is in its cluster, and what speaks for the next one.

        Needed is only its row of the consensus. Values of features are what that row says of them:
        no cell of a view is kept.

        Parameters
        ----------
        id : int or str
            The sample.
        view : str or int, optional
            Name or number of a view; all of them if not given.
        top : int, default=10
            How many features to name; None for all.

        Returns
        -------
        Explanation
            ``print`` says it in a few lines.

        See Also
        --------
        viewfold.ViewFold.features : What makes a cluster.
        viewfold.ViewFold.uncertain : Samples about which it is worth asking.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from viewfold import ViewFold
        >>> rng = np.random.default_rng(0)
        >>> y = np.repeat([0, 1], 50)
        >>> labs = pd.DataFrame(rng.normal(size=(100, 3)), columns=["iron", "zinc", "salt"])
        >>> labs["iron"] += 6 * y
        >>> model = ViewFold(2, random_state=0).fit({"labs": labs})
        >>> why = model.explain(3)
        >>> why.next_cluster == 1 - why.cluster, why.features["feature"][0]
        (True, 'iron')
        """
        tellers = self._tellers(view)
        _check_top(top)
        return explain_sample(self._engine, self._judged, id, tellers, top)

    @asks
    def loadings(self, view: str | int | None = None) -> pd.DataFrame:
        """Return the weights of the components of the consensus for the features of a view.

        Parameters
        ----------
        view : str or int, optional
            Name or number of the view; needed if there is more than one.

        Returns
        -------
        DataFrame
            A row for each feature, a column for each column of `embedding_`: by how many of its
            standard deviations a feature changes with one standard deviation of the component.
            NaN for features that do not vary.
        """
        check_is_fitted(self)
        (one,) = self._tellers(known_view(self.views_, view).name)
        return loadings(self._engine, self._fitted, one)

    @asks
    def variance(self) -> pd.DataFrame:
        """Return the share of each view's variance that consensus and clusters explain.

        Returns
        -------
        DataFrame
            A row for each view: ``consensus``, what consensus and clusters explain together;
            ``clusters``, what the clusters explain; and what each cluster adds to that, in a column
            of its number. NaN for clusters with fewer than ten samples in the view.

        See Also
        --------
        viewfold.ViewFold.loadings : Which features go with which component.
        viewfold.ViewFold.features : What makes a cluster.
        """
        return variance_table(self._engine, self._fitted, self._tellers(None))

    def _tellers(self, view: str | int | None) -> list[Told]:
        """Return what one view, or each, tells; say why others cannot."""
        check_is_fitted(self)
        asked = self.views_ if view is None else (known_view(self.views_, view),)
        views, reasons = usable(asked)
        if reasons:
            warnings.warn(" ".join(reasons), stacklevel=4)
        return told(self._engine, self._fitted, views)

    def _which(self, cluster: int | None) -> Sequence[int]:
        """Return the clusters that are asked for."""
        clusters = self._fitted.clusters
        assert clusters is not None
        k = clusters.n_clusters
        if cluster is None:
            return range(k)
        if not is_whole_number(cluster) or not 0 <= cluster < k:
            raise ValueError(f"There is no cluster {cluster!r}: there are {k}, from 0 to {k - 1}.")
        return [int(cluster)]


def _check_top(top: int | None) -> None:
    if top is not None and (not is_whole_number(top) or top < 1):
        raise ValueError(f"top=… is {top!r}, but should be a whole number from 1 on.")
