"""What a model makes of rows that it has not seen: their place in the embedding, their cluster."""

from __future__ import annotations

from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from viewfold._choice import which_view
from viewfold._option import option
from viewfold._types import Array, IdsLike, ViewLike, ViewsLike
from viewfold.clustering import assign, confidence, silhouette
from viewfold.core.admission import admit
from viewfold.core.state import Clusters, ViewRecord
from viewfold.core.transitions import extend
from viewfold.engine import RowSet, current_engine
from viewfold.estimators.checks import check_features, check_y
from viewfold.estimators.results import Results, known_view
from viewfold.ids import Similar
from viewfold.view import View, asked_of, named_views, open_view, opened, without_absent


class Prediction(Results, ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Rows of known views: `transform`, `predict`, `predict_frame` and `extend`."""

    def transform(self, X: ViewsLike, *, view: str | int | None = None) -> Array:
        """Embed rows of a known view, as if their samples had been in that view alone.

        Parameters
        ----------
        X : array-like, or dict of array-likes
            Rows with the features of that view. A dict (or a MuData) of several known views gives
            the mean over the views that a sample is in; samples are matched by id, or by row
            number, with rows of NaN for the views that they lack. Rows of zeros are such rows, too,
            if they were taken for absent samples when the view was folded.
        view : str or int, optional
            Name or number of the view; needed if there is more than one and X is not a dict. Of a
            dict, or a file of several views, the one to take.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        check_is_fitted(self)
        if view is not None or len(self.views_) == 1:
            columns = known_view(self.views_, view).columns
            X = opened(X, asked=None if columns is None else asked_of(columns))
        else:
            X = opened(X)
        several = named_views(X)
        if several is not None and view is not None:
            names = list(several)
            X = several[names[which_view(names, known_view(self.views_, view).name, "X holds")]]
            several = None
        if several is None:
            record = known_view(self.views_, view)
            return current_engine().collect(self._embed(self._view_of(X, record), record))
        records = [known_view(self.views_, name) for name in several]
        views = [
            self._view_of(rows, record, gaps=True)
            for rows, record in zip(several.values(), records, strict=True)
        ]
        return self._mean_of(
            views, [self._embed(*pair) for pair in zip(views, records, strict=True)]
        )

    def _mean_of(self, views: list[View], embedded: list[RowSet]) -> Array:
        """Return, for every sample, the mean of its rows in the views that it is in."""
        lengths = {part.length for part in views}
        if len(lengths) > 1:
            raise ValueError(
                f"The views have {sorted(map(str, lengths))} rows without ids. Give ids, or the "
                "same number of rows, empty ones (NaN) for samples that a view lacks."
            )
        engine, (length,) = current_engine(), lengths
        ids = engine.scatter(views[0].ids if length is None else np.arange(length))
        width = self._n_features_out
        total = engine.map(lambda block: np.zeros((len(block), width + 1)), ids)
        for part, rows in zip(views, embedded, strict=True):
            alignment = engine.join(ids, engine.scatter(part.ids))
            total = alignment.merge(
                (_added, alignment.partners(total), rows),
                (lambda block: block, alignment.absent(total)),
            )
            ids = alignment.ids
        sums = engine.collect(total)
        count = sums[:, -1:]
        if not count.all():
            row = int(np.flatnonzero(count == 0)[0])
            gone = "NaN or zero" if any(part.n_empty for part in views) else "NaN"
            raise ValueError(f"Row {row} is {gone} in every view: there is nothing to embed.")
        return np.asarray(sums[:, :-1] / count)

    def predict(self, X: ViewsLike, *, view: str | int | None = None) -> NDArray[np.intp]:
        """Return the cluster of each row of a known view; the model stays as it is.

        Parameters
        ----------
        X : array-like, or dict of array-likes
            Rows with the features of that view, or of several views; see `transform`.
        view : str or int, optional
            Name or number of the view; needed if there is more than one and X is not a dict.

        Returns
        -------
        ndarray of int, shape (n_rows,)
        """
        check_is_fitted(self)
        # set_output may turn what `transform` returns into a DataFrame.
        embedded = np.asarray(self.transform(X, view=view))
        engine = current_engine()
        return engine.collect(assign(engine, self._clusters, engine.scatter(embedded)))

    def predict_frame(
        self, X: ViewLike, *, ids: IdsLike = None, view: str | int | None = None
    ) -> pd.DataFrame:
        """Return the cluster of each row of a known view, with its confidence, by id.

        Parameters
        ----------
        X : array-like
            Rows with the features of that view.
        ids : array-like or str, optional
            Their ids, or the name of the column that holds them; row numbers if there are none.
        view : str or int, optional
            Name or number of the view; needed if there is more than one.

        Returns
        -------
        DataFrame
            With the columns ``cluster`` and ``confidence``.
        """
        check_is_fitted(self)
        record = known_view(self.views_, view)
        rows = self._view_of(X, record, ids=ids)
        engine, embedded = current_engine(), self._embed(rows, record)
        return pd.DataFrame(
            {
                "cluster": engine.collect(assign(engine, self._clusters, embedded)),
                "confidence": engine.collect(confidence(engine, self._clusters, embedded)),
            },
            index=pd.Index(rows.ids, name="id"),
        )

    def score(self, X: ViewsLike, y: object = None, *, view: str | int | None = None) -> float:
        """Return how well rows of a known view lie in their clusters; the more the better.

        The mean silhouette of the rows in the embedding, with squared distances: near 1 if they
        are close to their own cluster and far from the next one. It can be compared across
        numbers of clusters and encoders, as `GridSearchCV` does, and needs no classes. For a
        number of clusters alone, `suggest_n_clusters` has more to go by.

        Parameters
        ----------
        X : array-like, or dict of array-likes
            Rows with the features of that view, or of several views; see `transform`.
        y : Ignored
            Here for scikit-learn's sake: classes are not looked at. See `viewfold.metrics`.
        view : str or int, optional
            Name or number of the view; needed if there is more than one and X is not a dict.

        Returns
        -------
        float
            From −1 to 1; 0 if all rows are in one cluster.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.model_selection import GridSearchCV
        >>> from viewfold import ViewFold
        >>> y = np.arange(120) % 4
        >>> X = np.random.default_rng(0).normal(size=(120, 6)) + 5 * np.eye(6)[y]
        >>> search = GridSearchCV(ViewFold(random_state=0), {"n_clusters": [2, 3, 4, 5, 6]})
        >>> search.fit(X).best_params_
        {'n_clusters': 4}
        """
        check_y(y, "score")
        embedded = np.asarray(self.transform(X, view=view))
        engine, clusters = current_engine(), self._clusters
        rows = engine.scatter(embedded)
        return silhouette(engine, rows, assign(engine, clusters, rows), clusters.n_clusters)

    def extend(
        self,
        X: ViewLike,
        *,
        ids: IdsLike = None,
        view: str | int | None = None,
        similar_ids: Similar = "refuse",
    ) -> Self:
        """Add new samples of a known view to the consensus. Nobody else moves.

        Parameters
        ----------
        X : array-like
            Rows with the features of that view.
        ids : array-like or str, optional
            Their ids, none of them known; not needed if X is a DataFrame with an index.
        view : str or int, optional
            Name or number of the view; needed if there is more than one.
        similar_ids : {"refuse", "match", "new"}, default="refuse"
            What to do with ids that are almost known; see `fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        record = known_view(self.views_, view)
        engine, state = current_engine(), self._fitted
        new = admit(engine, state, self._view_of(X, record, ids=ids), similar_ids)
        rows = self._embed(new, record)
        labels = assign(engine, self._clusters, rows)
        return self._keep(extend(engine, state, new, rows, labels))

    @property
    def _clusters(self) -> Clusters:
        clusters = self._fitted.clusters
        assert clusters is not None
        return clusters

    def _view_of(
        self, X: ViewLike, record: ViewRecord, *, ids: IdsLike = None, gaps: bool = False
    ) -> View:
        """Return rows that have the features of a known view; gaps are rows of NaN."""
        if record.encoder is None:
            raise ValueError(
                f"View {record.name!r} has no encoder ({option('keep_encoders', False)}, or it "
                "had fewer than ten samples): nothing is known about samples that were not in it."
            )
        view = open_view(X, ids=ids, name=record.name, known=record.columns)
        check_features(view, record, type(self).__name__)
        # A few rows cannot tell what their zeros mean; the view they belong to could.
        view = without_absent(view, "absent" if record.n_empty else "keep", known=True)
        if view.rows.present is not None and not gaps:
            row = np.setdiff1d(np.arange(view.rows.X.shape[0]), view.rows.present)[0]
            what = "zeros, which in this view mean that a sample is not in it" * bool(view.n_empty)
            raise ValueError(
                f"View {record.name!r} contains {what or 'NaN'} in all of row {row}: there is "
                "nothing to embed. Leave the row out."
            )
        return view

    def _embed(self, view: View, record: ViewRecord) -> RowSet:
        engine = current_engine()
        encode = self._fitted.encoder(record.name)
        assert encode is not None
        with engine.session():
            return engine.map(encode, engine.scatter(view.rows))


def _added(total: Array, rows: Array) -> Array:
    """Add rows to sums, the last column of which counts them."""
    return np.asarray(total + np.column_stack([rows, np.ones(len(rows))]))
