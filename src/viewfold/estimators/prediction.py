"""What a model makes of rows that it has not seen: their place in the embedding, their cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from viewfold._util.file import EmptyRows, MissingCells
from viewfold._util.messages import short_repr
from viewfold._util.types import Array, Ids, IdsLike, IdsOfViews, ViewLike, ViewsLike
from viewfold.data import View
from viewfold.data.cells import without_absent
from viewfold.data.features import known_options
from viewfold.data.ids import Similar
from viewfold.data.opening import open_view
from viewfold.estimators.checks import check_features, check_y, in_order
from viewfold.estimators.explanations import Explanations
from viewfold.estimators.given import given
from viewfold.estimators.turns import asks, changes
from viewfold.method.clusters import silhouette
from viewfold.rows import BucketRows, Engine, RowSet, using
from viewfold.rows.normal import kind_of
from viewfold.state.admission import admit, placed
from viewfold.state.clusters import Clusters, assign, confidence, scattered, sure_enough
from viewfold.state.state import ViewRecord
from viewfold.state.updates import extend, takes_gaps


class Prediction(Explanations, ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Rows of known views: `transform`, `predict`, `predict_frame` and `extend`."""

    @asks
    def transform(
        self, X: ViewsLike, *, ids: IdsOfViews = None, view: str | int | None = None
    ) -> Array:
        """Embed rows of known views, as if their samples had been in these views alone.

        Parameters
        ----------
        X : view, list of views, dict of views or MuData
            Rows with the features of a known view; columns that have names may be in any order. Of
            several views, samples get the mean over the views that they are in: they are matched by
            id, or by row number, with rows of NaN for the views that they lack. Rows of zeros are
            such rows, too, if they were taken for absent samples when the view was folded. In a
            list, files and `View` belong to the known view of their name, everything else by its
            place in the list. An AnnData is read as it was when the view was folded (``layer=``,
            ``use_rep=``), and so are empty markers.
        ids : array-like, str, False, list or dict, optional
            The ids of the view, or those of each view; see `as_views`.
        view : str or int, optional
            Name or number of the view; needed for one view without a name if there is more than
            one. Of several, the one to take.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            In the order of the rows; of several views with ids, in the order of the samples of the
            first, then those that are new in the second, and so on (see `predict_frame`).

        See Also
        --------
        viewfold.ViewFold.predict : The clusters of such rows. It says what both cost.
        """
        found = self._placed(X, ids, view)
        return found.collect(found.rows)

    def _placed(self, X: ViewsLike, ids: IdsOfViews, view: str | int | None) -> _Placed:
        """Return who the samples of new rows are, their embedding, and in which views."""
        check_is_fitted(self)
        with using(self._engine):
            parts, several = given(self.views_, X, ids, view)
            views = [
                self._view_of(part.rows, part.record, ids=part.ids, gaps=several) for part in parts
            ]
        if several and any(part.partitions is not None for part in views):
            order = _order(self._engine, views)
            views = [placed(self._engine, part) for part in views]
        elif views[0].partitions is not None:
            order = np.argsort(self._engine.collect(views[0].partitions.numbers))
        else:
            order = None
        embedded = [
            self._embed(*pair) for pair in zip(views, (p.record for p in parts), strict=True)
        ]
        names = self._fitted.names
        which = np.eye(len(names))[[names.index(part.record.name) for part in parts]]
        if not several:
            one = self._engine.map(lambda block: np.tile(which, (len(block), 1)), embedded[0])
            return _Placed(self._engine, views[0].ids, embedded[0], one, order)
        found, rows, seen = self._mean_of(views, embedded, which)
        if order is not None:
            at = pd.Index(found).get_indexer(pd.Index(order))
            found, rows, seen = found[at], rows[at], seen[at]
        return _Placed(self._engine, found, rows, seen, None)

    def _mean_of(
        self, views: list[View], embedded: list[RowSet], which: Array
    ) -> tuple[Ids, Array, Array]:
        """Return, for every sample, the mean of its rows in the views that it is in, and these."""
        lengths = {part.length for part in views}
        if len(lengths) > 1:
            raise ValueError(
                f"The views have {sorted(map(str, lengths))} rows without ids. Give ids, or the "
                "same number of rows, empty ones (NaN) for samples that a view lacks."
            )
        engine, (length,) = self._engine, lengths
        # In buckets, all ids are of one kind.
        kinds = [
            kind_of(engine.head(part.ids, 1) if isinstance(part.ids, BucketRows) else part.ids)
            for part in views
        ]
        if len(set(kinds)) > 1 and "both" not in kinds:
            other = next(i for i, kind in enumerate(kinds) if kind != kinds[0])
            raise ValueError(
                f"View {views[other].name!r} has ids that are {kinds[other]}, others have "
                f"{kinds[0]}: samples could not be matched. Give all views ids of one kind."
            )
        ids = views[0].ids
        if length is not None:
            every = np.arange(length)
            ids = engine.partition(every)[0] if isinstance(ids, BucketRows) else every
        width = self._n_features_out
        total = engine.map(lambda block: np.zeros((len(block), width + which.shape[1])), ids)
        for part, rows, mark in zip(views, embedded, which, strict=True):
            alignment = engine.join(ids, part.ids)
            total = alignment.merge(
                (partial(_added, mark=mark), alignment.partners(total), rows),
                (lambda block: block, alignment.absent(total)),
            )
            ids = alignment.ids
        sums, found = engine.collect(total), engine.collect(ids)
        seen = sums[:, width:]
        count = seen.sum(axis=1, keepdims=True)
        if not count.all():
            row = int(found[np.flatnonzero(count == 0)].min())
            gone = "NaN or zero" if any(part.n_empty for part in views) else "NaN"
            raise ValueError(f"Row {row} is {gone} in every view: there is nothing to embed.")
        return found, np.asarray(sums[:, :width] / count), seen

    @asks
    def predict(
        self,
        X: ViewsLike,
        *,
        ids: IdsOfViews = None,
        view: str | int | None = None,
        min_confidence: float | None = None,
    ) -> NDArray[np.intp]:
        """Return the cluster of each row of known views; the model stays as it is.

        Parameters
        ----------
        X : view, list of views, dict of views or MuData
            Rows with the features of a known view, or of several; see `transform`.
        ids : array-like, str, False, list or dict, optional
            The ids of the view, or those of each view; see `as_views`.
        view : str or int, optional
            Name or number of the view; see `transform`.
        min_confidence : float, optional
            Samples that are less certain get −1, the label of noise.

        Returns
        -------
        ndarray of int, shape (n_rows,)

        See Also
        --------
        viewfold.ViewFold.predict_frame : The same by id, with confidence.
        viewfold.ViewFold.extend : Keep the samples, too.

        Notes
        -----
        Time of order n d r for n rows of d features and r columns of the consensus, and n r m more
        for m landmarks, which ``encoder="linear"`` and FCMVC have not.
        """
        if min_confidence is not None:
            frame = self.predict_frame(X, ids=ids, view=view, min_confidence=min_confidence)
            return np.asarray(frame["cluster"])
        engine, found = self._engine, self._placed(X, ids, view)
        return found.collect(assign(engine, self._clusters, found.rows))

    @asks
    def predict_frame(
        self,
        X: ViewsLike,
        *,
        ids: IdsOfViews = None,
        view: str | int | None = None,
        min_confidence: float | None = None,
    ) -> pd.DataFrame:
        """Return the cluster of each sample of new rows, with its confidence, by id.

        Parameters
        ----------
        X : view, list of views, dict of views or MuData
            Rows with the features of a known view, or of several; see `transform`.
        ids : array-like, str, False, list or dict, optional
            The ids of the view, or those of each view, or the name of the column that holds them;
            row numbers if there are none. See `as_views`.
        view : str or int, optional
            Name or number of the view; see `transform`.
        min_confidence : float, optional
            Samples that are less certain get −1, the label of noise.

        Returns
        -------
        DataFrame
            With the columns ``cluster`` and ``confidence``, and ``name`` if clusters have names.
            Who is in fewer of the views is less certain.

        See Also
        --------
        viewfold.ViewFold.predict : Clusters alone, in the order of the rows.
        viewfold.ViewFold.uncertain : The least certain of the samples that were folded.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from viewfold import ViewFold
        >>> rng = np.random.default_rng(0)
        >>> labs = pd.DataFrame(rng.normal(size=(20, 2)), columns=["iron", "zinc"])
        >>> scan = rng.normal(size=(20, 3))
        >>> model = ViewFold(2, random_state=0).fit({"labs": labs, "scan": scan})
        >>> new = {"labs": labs[["zinc", "iron"]][:2], "scan": scan[1:4]}
        >>> ids = {"labs": ["ann", "bob"], "scan": ["bob", "cleo", "dan"]}
        >>> model.predict_frame(new, ids=ids).index.tolist()
        ['ann', 'bob', 'cleo', 'dan']
        """
        engine, found = self._engine, self._placed(X, ids, view)
        with engine.session():
            state = self._judged
            assert state.clusters is not None
            clusters = scattered(engine, state.clusters, state.embedding)
            labels = found.collect(assign(engine, clusters, found.rows))
            sure = found.collect(confidence(engine, clusters, found.rows, found.seen))
        labels = sure_enough(labels, sure, min_confidence)
        return pd.DataFrame(
            {"cluster": labels, **self._names_of(labels), "confidence": sure},
            index=pd.Index(found.collect(found.ids), name="id"),
        )

    @asks
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
        engine, clusters = self._engine, self._clusters
        labels = assign(engine, clusters, embedded)
        return silhouette(engine, embedded, labels, clusters.n_clusters)

    @changes
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

        See Also
        --------
        viewfold.ViewFold.partial_fit : Take in new, late and corrected rows alike.
        viewfold.ViewFold.predict : Tell clusters without keeping anything.
        """
        check_is_fitted(self)
        with using(self._engine):
            (part, *others), _ = given(self.views_, X, ids, view)
        if others:
            raise ValueError("extend takes rows of one view. Name it with view=….")
        record = part.record
        engine, state = self._engine, self._fitted.placed(self._engine)
        with using(engine):
            new = self._view_of(part.rows, record, ids=part.ids)
        new = admit(engine, state, new, similar_ids)
        return self._keep(extend(engine, state, new, self._method()))

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
                f"View {record.name!r} has no encoder (keep_encoders=False, or it "
                "had fewer than ten samples): nothing is known about samples that were not in it."
            )
        options = known_options(record.columns, record.source)
        view = open_view(X, ids=ids, name=record.name, options=options, known=record.columns)
        check_features(view, record, type(self).__name__)
        view = in_order(view, record)
        # A few rows cannot tell what their zeros mean; the view they belong to could.
        zeros: EmptyRows = "absent" if record.n_empty else "keep"
        able: MissingCells = "accept" if takes_gaps(record.encoder) else "error"
        view = without_absent(view, zeros, able, known=True)
        if view.first_absent is not None and not gaps:
            what = "zeros, which in this view mean that a sample is not in it" * bool(view.n_empty)
            raise ValueError(
                f"View {record.name!r} contains {what or 'NaN'} in all of {view.first_absent}: "
                "there is nothing to embed. Leave the row out."
            )
        return view

    def _embed(self, view: View, record: ViewRecord) -> RowSet:
        engine = self._engine
        encode = self._fitted.encoder(record.name)
        assert encode is not None
        with engine.session():
            return engine.map(encode, replace(view.rows, fill=None))


@dataclass(frozen=True, eq=False)
class _Placed:
    """Samples of new rows, and their rows of the embedding."""

    __repr__ = short_repr

    engine: Engine  # holds them
    ids: RowSet  # ids, rows: who they are, and where
    rows: RowSet
    seen: RowSet  # (n_rows, n_views): 1 for the views that they are in
    order: Array | None  # where each row is that came, if rows are not in their order

    def collect(self, rows: RowSet) -> Array:
        """Return rows of these samples as one array, in the order in which they came."""
        found = self.engine.collect(rows)
        return found if self.order is None else np.asarray(found[self.order])


def _order(engine: Engine, views: list[View]) -> Ids:
    """Return the ids of several views in the order in which they came."""
    came = []
    for view in views:
        ids = engine.collect(view.ids)
        if view.partitions is not None:
            ids = ids[np.argsort(engine.collect(view.partitions.numbers))]
        came.append(ids)
    together = np.concatenate(came)
    return np.asarray(pd.unique(together) if views[0].length is None else np.unique(together))


def _added(total: Array, rows: Array, mark: Array) -> Array:
    """Add rows to sums, the last columns of which mark their view."""
    return np.asarray(total + np.column_stack([rows, np.tile(mark, (len(rows), 1))]))
