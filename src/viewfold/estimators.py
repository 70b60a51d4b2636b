"""The estimators: scikit-learn's manners around `fold` and `cluster`."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, fields, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from viewfold import queries, store
from viewfold._choice import which_view
from viewfold.blocks import Array, blas_on_one_thread
from viewfold.clustering import Clustering, cluster, sample_size, seed_of, settle
from viewfold.consensus import (
    Basis,
    Consensus,
    Method,
    ViewRecord,
    admit,
    draw,
    extend,
    fold,
    keep,
    without_encoders,
)
from viewfold.ids import Similar
from viewfold.methods import balanced, encoders, fcmvc
from viewfold.methods.scaling import Scale
from viewfold.state import FINAL, Event, Log, State, noted
from viewfold.tables import Saved
from viewfold.view import (
    View,
    as_view,
    as_views,
    is_view_like,
    named_views,
    open_view,
    opened,
    own_name,
    without_absent,
)


class FoldingEstimator(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """What all estimators of viewfold share: everything but the method."""

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "keep_encoders": ["boolean"],
    }
    n_clusters: int
    n_init: int
    random_state: Any
    keep_encoders: bool

    @abstractmethod
    def _method(self, seed: int) -> Method:
        """Return the method, with its parameters."""

    _basis: Basis
    """How to make the columns of the consensus again what the method made them."""

    def _reading(self, consensus: Consensus) -> dict[str, Any]:
        """Return how clusters are read from the consensus."""
        return {}

    def fit(
        self, X: Any, y: Any = None, *, ids: Any = None, similar_ids: Similar = "refuse"
    ) -> Self:
        """Forget everything and fold the given views, one after the other.

        Parameters
        ----------
        X : view, list of views, dict of views or MuData
            One 2-D array-like is one view; see `as_view` for what a view can be.
        y : Ignored
            Here for scikit-learn's sake: one target per sample. A view, a name or ids are refused.
        ids : array-like, str, False, list or dict, optional
            The sample ids of the view, or those of each view; see `as_views`.
        similar_ids : {"refuse", "match", "new"}, default="refuse"
            What to do with ids that differ only in case, space around them, leading zeros or the
            composition of their letters: refuse them, take them for the same sample, or for
            different ones.

        Returns
        -------
        self
        """
        self._validate_params()
        _check_y(y, "fit")
        state = None
        for view in as_views(X, ids=ids):
            consensus = None if state is None else state.consensus
            state = self._next(state, admit(consensus, view, similar_ids))
        return self._keep(state)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        ids: Any = None,
        view: str | None = None,
        similar_ids: Similar = "refuse",
        min_shared: float | None = None,
    ) -> Self:
        """Fold one more view. It is not needed any more afterwards.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, AnnData, memmap, path or iterator
            The view; see `as_view`.
        y : Ignored
            Here for scikit-learn's sake: one target per sample. A view, a name or ids are refused.
        ids : array-like, str or False, optional
            The sample ids, or the name of the DataFrame column that holds them; see `as_view`.
        view : str, optional
            What to call the view; ``"view0"``, ``"view1"``, … if not given.
        similar_ids : {"refuse", "match", "new"}, default="refuse"
            What to do with new ids that are almost known; see `fit`.
        min_shared : int or float, optional
            Refuse the view if fewer of its samples are known: so many, or this part of them.

        Returns
        -------
        self
        """
        self._validate_params()
        _check_y(y, "partial_fit")
        state = getattr(self, "_state", None)
        name = own_name(X) if view is None else view
        if name in (None, ""):
            name = f"view{0 if state is None else len(state.consensus.views)}"
        came = as_view(X, ids=ids, name=name)
        consensus = None if state is None else state.consensus
        return self._keep(self._next(state, admit(consensus, came, similar_ids, min_shared)))

    def fit_predict(
        self, X: Any, y: Any = None, *, ids: Any = None, similar_ids: Similar = "refuse"
    ) -> NDArray[np.intp]:
        """Fit and return the cluster of each row, or `labels_` if several views have ids.

        A row that is NaN in every view is no sample: its label is −1, and a warning says so.
        """
        _check_y(y, "fit_predict")
        views = as_views(X, ids=ids)
        self.fit(views, similar_ids=similar_ids)
        return self._by_row(X, views, self.labels_, -1)

    def fit_transform(
        self, X: Any, y: Any = None, *, ids: Any = None, similar_ids: Similar = "refuse"
    ) -> Array:
        """Fit and return the embedding of each row, or `embedding_` if several views have ids.

        Of one view it is what `transform` gives: encoders keep no single sample, so it is near to
        `embedding_` and not the same. A row that is NaN in every view is no sample: it stays NaN,
        and a warning says so.
        """
        _check_y(y, "fit_transform")
        views = as_views(X, ids=ids)
        self.fit(views, similar_ids=similar_ids)
        record = self.views_[0]
        alone = len(self.views_) == 1 and record.encoder is not None
        found = self._embed(views[0], record) if alone else self.embedding_
        return self._by_row(X, views, found, np.nan)

    def _by_row(self, X: Any, views: list[View], found: Array, gap: float) -> Array:
        """Return a value for each row that came, if rows are what the caller knows samples by."""
        n, at = views[0].length, self.ids_
        if len(views) == 1 and not isinstance(X, View) and views[0].rows.present is not None:
            n, at = views[0].rows.X.shape[0], views[0].rows.present
        if n is None or at.size >= n or at.max() >= n:
            return found
        warnings.warn(
            f"{n - at.size} of {n} rows are NaN in every view: they are no samples, and get {gap}.",
            stacklevel=3,
        )
        out = np.full((n, *found.shape[1:]), gap, found.dtype)
        out[at] = found
        return out

    def transform(self, X: Any, *, view: str | int | None = None) -> Array:
        """Embed rows of a known view, as if their samples had been in that view alone.

        Parameters
        ----------
        X : array-like, or dict of array-likes
            Rows with the features of that view. A dict (or a MuData) of several known views gives
            the mean over the views that a sample is in; samples are matched by id, or by row
            number, with rows of NaN for the views that they lack.
        view : str or int, optional
            Name or number of the view; needed if there is more than one and X is not a dict.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        check_is_fitted(self)
        X = opened(X)
        several = named_views(X)
        if several is None:
            record = self._known_view(view)
            return self._embed(self._view_of(X, record), record)
        if view is not None:
            raise ValueError("A dict names its views itself; leave view= out.")
        records = [self._known_view(name) for name in several]
        views = [
            self._view_of(rows, record, gaps=True)
            for rows, record in zip(several.values(), records, strict=True)
        ]
        lengths = {part.length for part in views}
        if len(lengths) > 1:
            raise ValueError(
                f"The views have {sorted(map(str, lengths))} rows without ids. Give ids, or the "
                "same number of rows with NaN for samples that a view lacks."
            )
        union = pd.Index(np.concatenate([part.ids for part in views])).unique()
        (length,) = lengths
        if length is not None:
            union = pd.RangeIndex(length)
        total = np.zeros((len(union), self._n_features_out))
        count = np.zeros(len(union))
        for part, record in zip(views, records, strict=True):
            at = union.get_indexer(pd.Index(part.ids))
            total[at] += self._embed(part, record)
            count[at] += 1
        if not count.all():
            row = int(np.flatnonzero(count == 0)[0])
            raise ValueError(f"Row {row} is NaN in every view: there is nothing to embed.")
        return total / count[:, None]

    def predict(self, X: Any, *, view: str | int | None = None) -> NDArray[np.intp]:
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
        return self._state.clustering.assign(embedded)

    def predict_frame(
        self, X: Any, *, ids: Any = None, view: str | int | None = None
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
        record = self._known_view(view)
        rows = self._view_of(X, record, ids=ids)
        embedded, clustering = self._embed(rows, record), self._state.clustering
        return pd.DataFrame(
            {
                "cluster": clustering.assign(embedded),
                "confidence": clustering.confidence(embedded),
            },
            index=pd.Index(rows.ids, name="id"),
        )

    def extend(
        self,
        X: Any,
        *,
        ids: Any = None,
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
        record = self._known_view(view)
        old = self._state
        new = admit(old.consensus, self._view_of(X, record, ids=ids), similar_ids)
        rows = self._embed(new, record)
        consensus = extend(old.consensus, new, rows.astype(old.consensus.embedding.dtype))
        where = pd.Index(consensus.ids).get_indexer(pd.Index(new.ids))
        earlier = np.ones(consensus.ids.size, bool)
        earlier[where] = False
        history = np.full(consensus.seen.shape, -1, np.int32)
        history[earlier] = old.history
        history[where, -1] = old.clustering.assign(rows)
        clustering = replace(old.clustering, labels=history[:, -1].astype(np.intp))
        size, new_ones = consensus.ids.size, new.ids.size
        log = noted(old.log, "extend", size, view=record.name, n_new=new_ones)
        added = np.full(size, log[-1].entry, np.int32)
        added[earlier] = old.added
        return self._keep(State(consensus, clustering, history, added, log))

    def forget(self, ids: Any) -> Self:
        """Remove samples for good.

        Their rows and labels are gone, and so is what the rows of others tell about them: the
        columns of `embedding_` are made orthogonal again, and clusters get the centres of the
        samples that are left. No other sample changes its cluster. What encoders learned from ten
        or more samples at once stays (see docs/privacy.md).

        Parameters
        ----------
        ids : array-like
            Samples that are known.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        old = self._state
        at = pd.Index(old.consensus.ids).get_indexer(pd.Index(list(ids), tupleize_cols=False))
        if (at < 0).any():
            unknown = [name for name, where in zip(list(ids), at, strict=True) if where < 0]
            raise ValueError(f"Unknown samples: {unknown[:5]}. Nothing was forgotten.")
        kept = np.ones(old.consensus.ids.size, bool)
        kept[at] = False
        if not kept.any():
            raise ValueError("These are all samples there are. Throw the model away instead.")
        if kept.all():
            return self
        n_kept = int(np.count_nonzero(kept))
        log = noted(old.log, FINAL, n_kept, n_forgotten=kept.size - n_kept)
        return self._keep(replace(self._left(old, kept), log=log))

    def _left(self, old: State, kept: NDArray[np.bool_]) -> State:
        """Return what some samples leave: nothing that depends on the others but encoders."""
        consensus = keep(old.consensus, kept, type(self)._basis)
        reading = self._reading(consensus)
        clustering = settle(
            consensus.embedding,
            old.clustering.labels[kept],
            old.clustering.centers.shape[1],
            sharpen=reading.get("sharpen", False),
            groups=reading.get("groups") if len(old.clustering.centers) > 1 else None,
        )
        return State(consensus, clustering, old.history[kept], old.added[kept], old.log)

    def save(self, path: str | os.PathLike[str], *, wait: float = 60) -> None:
        """Write the model to a ``.vf`` file; `viewfold.load` brings it back, to the last bit.

        A file that is there is replaced in one step, if viewfold wrote it. To fold into a file
        that others write to as well, use `viewfold.edit`.

        Parameters
        ----------
        path : path
            Where to. A new file can be read by its owner only.
        wait : float, default=60
            Seconds to wait for another program that writes to the file.
        """
        with store.writing(path, wait):
            store.write(path, self._saved())

    def _saved(self) -> Saved:
        """Return what a file is to hold."""
        state = getattr(self, "_state", None)
        saved = Saved(type(self).__name__, self.get_params(), state, self._past)
        return saved if self.keep_encoders else _private(saved)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for every sample ever seen: cluster, confidence, number of views seen."""
        check_is_fitted(self)
        return pd.DataFrame(
            {
                "cluster": self.labels_,
                "confidence": self._state.clustering.confidence(self.embedding_),
                "views_seen": self._state.consensus.seen.sum(axis=1),
            },
            index=pd.Index(self.ids_, name="id"),
        )

    @property
    def ids_(self) -> Array:
        """Every sample ever seen, in the order of `labels_` and `embedding_`."""
        return self._fitted.consensus.ids

    @property
    def embedding_(self) -> Array:
        """The consensus: a row per sample."""
        return self._fitted.consensus.embedding

    @property
    def views_(self) -> tuple[ViewRecord, ...]:
        """What is remembered of each view."""
        return self._fitted.consensus.views

    @property
    def seen_(self) -> pd.DataFrame:
        """Who was in which view: a row of bools per sample, a column per view."""
        return self._frame(self._fitted.consensus.seen)

    @property
    def history_(self) -> pd.DataFrame:
        """The cluster of every sample after each fold: a column per view, −1 before it was seen."""
        return self._frame(self._fitted.history)

    @property
    def log_(self) -> pd.DataFrame:
        """What was done to the model and when (UTC): a row per entry, see `viewfold.state.Event`.

        Examples
        --------
        >>> import numpy as np
        >>> from viewfold import ViewFold
        >>> model = ViewFold(2).fit({"labs": np.eye(6)}).forget([3])
        >>> model.log_[["what", "view", "n_samples", "n_forgotten"]].to_numpy().tolist()
        [['fold', 'labs', 6, <NA>], ['forget', None, 5, 1]]
        """
        names = [field.name for field in fields(Event)]
        emptied = bool(self._past) and not hasattr(self, "_state")
        log = self._past if emptied else self._fitted.log
        frame = pd.DataFrame([asdict(event) for event in log], columns=names)
        counts = [name for name in names if name.startswith("n_")]
        return frame.astype(dict.fromkeys([*counts, "undoes"], "Int64")).set_index("entry")

    def movers(self, view: str | int = -1) -> pd.DataFrame:
        """Return the samples that changed their cluster when a view was folded.

        Parameters
        ----------
        view : str or int, default=-1
            Name or number of the view; the last one if not given.

        Returns
        -------
        DataFrame
            Their clusters ``before`` and ``after``, by id; samples that were new are not in it.
        """
        check_is_fitted(self)
        names = [record.name for record in self.views_]
        i = names.index(self._known_view(view).name)
        after = self._state.history[:, i]
        before = self._state.history[:, i - 1] if i else after
        moved = (before >= 0) & (before != after)
        index = pd.Index(self.ids_[moved], name="id")
        return pd.DataFrame({"before": before[moved], "after": after[moved]}, index=index)

    def _frame(self, per_view: Array) -> pd.DataFrame:
        names = [record.name for record in self.views_]
        return pd.DataFrame(per_view, index=pd.Index(self.ids_, name="id"), columns=names)

    @property
    def cluster_centers_(self) -> Array:
        """Centres of the clusters; see `Clustering` for where they lie."""
        return np.asarray(self._fitted.clustering.centers.sum(axis=0))

    @property
    def n_iter_(self) -> int:
        """Iterations of the last fold."""
        return self.views_[-1].n_iter

    @property
    def n_features_in_(self) -> int:
        """Number of features, of a model that has seen one view (see `views_` for several)."""
        return self._only_view("n_features_in_").n_features

    @property
    def feature_names_in_(self) -> Array:
        """Names of the features, of a model that has seen one view with names."""
        features = self._only_view("feature_names_in_").features
        if features is None:
            raise AttributeError("The view had no feature names.")
        return np.array(features, dtype=object)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    @property
    def _fitted(self) -> State:
        try:
            return self._state
        except AttributeError:
            raise AttributeError(
                f"This {type(self).__name__} has not folded a view yet. Call fit or partial_fit."
            ) from None

    def _only_view(self, asked: str) -> ViewRecord:
        if len(self.views_) > 1:
            raise AttributeError(f"{asked} is one view's; with several, look into views_.")
        return self.views_[0]

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    def _next(self, state: State | None, view: View) -> State:
        """Return the state after one more view: the way from a fold to labels."""
        # Held throughout: what other threads do to the limit may not change a bit.
        with blas_on_one_thread():
            return self._folded(state, view, seed_of(self.random_state))

    def _folded(self, state: State | None, view: View, seed: int) -> State:
        if state is None:
            self._check_enough(view.shape[0], view)
        consensus = fold(
            None if state is None else state.consensus,
            view,
            self._method(seed),
            keep_encoders=self.keep_encoders,
        )
        self._check_enough(consensus.ids.size, view)
        previous = None
        if state is not None:
            previous = np.full(consensus.ids.size, -1, np.intp)
            previous[consensus.seen[:, :-1].any(axis=1)] = state.clustering.labels
        clustering = cluster(
            consensus.embedding,
            self.n_clusters,
            # The same from fold to fold: then so are the trees that k-means starts from.
            sample=draw(consensus.ids, sample_size(self.n_clusters), seed=seed, purpose="k-means"),
            previous=previous,
            **self._reading(consensus),
            n_init=self.n_init,
            seed=seed,
        )
        return self._noted(state, consensus, clustering)

    def _noted(self, state: State | None, consensus: Consensus, clustering: Clustering) -> State:
        """Return the state after a fold, with its entry in the log."""
        history = np.full(consensus.seen.shape, -1, np.int32)
        history[:, -1] = clustering.labels
        moved = 0
        known = consensus.seen[:, :-1].any(axis=1)
        if state is not None:
            history[known, :-1] = state.history
            moved = int(np.count_nonzero(state.history[:, -1] != history[known, -1]))
        record = consensus.views[-1]
        log = noted(
            self._past if state is None else state.log,
            "fold",
            consensus.ids.size,
            view=record.name,
            n_new=record.n_new,
            n_shared=record.n_shared,
            n_moved=moved,
        )
        added = np.full(consensus.ids.size, log[-1].entry, np.int32)
        if state is not None:
            added[known] = state.added
        views = (*consensus.views[:-1], replace(record, entry=log[-1].entry))
        return State(replace(consensus, views=views), clustering, history, added, log)

    @property
    def _past(self) -> Log:
        """The log before the first view: of a file whose folds were all taken back."""
        past: Log = getattr(self, "_taken_back", ())
        return past

    def _check_enough(self, n: int, view: View) -> None:
        if n < self.n_clusters:
            raise ValueError(
                f"View {view.name!r} has n_samples={n} samples together with those known before, "
                f"fewer than n_clusters={self.n_clusters}. Give it more of them, or ask for fewer "
                "clusters."
            )

    def _keep(self, state: State | None) -> Self:
        assert state is not None
        self._state = state
        self.labels_ = state.clustering.labels
        return self

    def _known_view(self, view: str | int | None) -> ViewRecord:
        names = [record.name for record in self.views_]
        return self.views_[which_view(names, view, "the model has folded")]

    def _view_of(self, X: Any, record: ViewRecord, *, ids: Any = None, gaps: bool = False) -> View:
        """Return rows that have the features of a known view; gaps are rows of NaN."""
        if record.encoder is None:
            raise ValueError(
                f"View {record.name!r} has no encoder (keep_encoders=False, or it had fewer than "
                "ten samples): nothing is known about samples that were not in it."
            )
        view = open_view(X, ids=ids, name=record.name)
        self._check_features(view, record)
        view = without_absent(view)
        if view.rows.present is not None and not gaps:
            row = np.setdiff1d(np.arange(view.rows.X.shape[0]), view.rows.present)[0]
            raise ValueError(
                f"View {record.name!r} contains NaN in all of row {row}: there is nothing to "
                "embed. Leave the row out."
            )
        return view

    def _embed(self, view: View, record: ViewRecord) -> Array:
        encode = self._state.consensus.encoder(record.name)
        assert encode is not None
        out = np.empty((view.shape[0], self._n_features_out), view.rows.dtype)
        with blas_on_one_thread():
            for where, block in view.rows.blocks():
                out[where] = encode(block)
        return out

    def _check_features(self, view: View, record: ViewRecord) -> None:
        d, me = view.shape[1], type(self).__name__
        if (view.features is None) != (record.features is None):
            has, had = ("has", "without") if view.features else ("does not have valid", "with")
            warnings.warn(
                f"X {has} feature names, but {me} was fitted {had} feature names "
                f"(view {record.name!r}).",
                stacklevel=5,
            )
        if view.features and record.features and set(view.features) != set(record.features):
            unseen = sorted(set(view.features) - set(record.features))
            missing = sorted(set(record.features) - set(view.features))
            raise ValueError(_other_names(record.name, unseen, missing))
        if d != record.n_features:
            raise ValueError(
                f"View {record.name!r}: X has {d} features, but {me} is expecting "
                f"{record.n_features} features as input. Pass the columns the view was folded with."
            )
        if view.features and record.features and view.features != record.features:
            raise ValueError(_other_names(record.name, [], []))


def _check_y(y: Any, method: str) -> None:
    """Refuse what was meant as something else than a target: y is ignored."""
    if y is None:
        return
    if isinstance(y, str):
        raise TypeError(
            f"{method} ignores its second argument, y, but got {y!r}. To name the view, pass "
            f"view={y!r} to partial_fit, or {{{y!r}: X}} to fit."
        )
    if is_view_like(y):
        raise TypeError(
            f"{method} ignores its second argument, y, but got what looks like a view. Pass "
            "several views to fit as a list, or one after the other to partial_fit."
        )
    values = np.asarray(y).ravel()
    if values.dtype.kind in "OU" and values.size > 1 and pd.Index(values).is_unique:
        raise TypeError(
            f"{method} ignores its second argument, y, but got texts that are all different, like "
            f"{values.tolist()[0]!r}. Pass ids as ids=…."
        )


def _other_names(name: str, unseen: list[str], missing: list[str]) -> str:
    lines = ["The feature names should match those that were passed during fit."]
    for title, names in (
        ("Feature names unseen at fit time:", unseen),
        ("Feature names seen at fit time, yet now missing:", missing),
    ):
        if names:
            lines += [title, *(f"- {column}" for column in names[:5])]
            lines += ["- ..."] if len(names) > 5 else []
    if not unseen and not missing:
        lines += ["Feature names must be in the same order as they were in fit."]
    return "\n".join([*lines, f"(View {name!r}: pass the columns it was folded with.)"])


class FCMVC(FoldingEstimator):
    """Fast continual multi-view clustering with incomplete views (FCMVC-IV).

    Views are folded one by one into a consensus of rank `n_clusters`; samples may be missing from
    any of them. The result is that of the method's published program.

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters, and the rank of the consensus. It may be changed between folds: the
        consensus then has the highest rank asked for since `fit`. Its new columns are zero until a
        view fills them; fewer clusters are found in all the columns there are.
    z_step : {"paper", "exact"}, default="paper"
        The published step for the consensus, or one under which the objective never rises, also
        when samples are missing.
    solver : {"auto", "gram", "direct"}, default="auto"
        Form XᵀX once, which reads the view twice altogether, or multiply by X and Xᵀ in each
        iteration, which suits wide and sparse views. The answer is the same.
    scale : {"zscore", None}, default="zscore"
        Standardise every feature over the samples that the view has, or take it as it is.
    tol : float, default=1e-5
        A fold ends when its objective changes by less than this part of itself.
    max_iter : int, default=100
        Iterations a fold may take.
    n_init : int, default=10
        Starts of k-means; the best one counts.
    random_state : int, RandomState or None, default=None
        Seed of k-means, the only thing that is random.
    keep_encoders : bool, default=True
        Whether to keep what `predict` and `transform` need: aggregates of ten samples or more. With
        the embedding they give a low-rank copy of a view. If not, the next fold removes those of
        earlier views, too. docs/privacy.md says what can be learned from a file either way.

    Attributes
    ----------
    labels_ : ndarray of int, shape (n_samples,)
        The cluster of every sample ever seen. Clusters keep their numbers from fold to fold.
    ids_ : ndarray of shape (n_samples,)
        Who they are.
    embedding_ : ndarray of shape (n_samples, rank)
        The consensus; its columns are orthonormal.
    views_ : tuple of ViewRecord
        What is remembered of each view.
    cluster_centers_ : ndarray of shape (n_clusters, rank)
        Centres of the clusters, among embedding rows of unit length.
    n_iter_ : int
        Iterations of the last fold.

    Notes
    -----
    The first view enters through its first `n_clusters` features only, and every later view nearly
    replaces what came before: the method is the paper's, not a recommendation.

    A view with fewer features than clusters adds as many dimensions as it has features. If the
    consensus has not full rank (a first view of this kind), its missing columns are zero, where
    the published program has arbitrary ones.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import FCMVC
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], 40)
    >>> labs = rng.normal(size=(120, 6)) + 4 * np.eye(6)[y]
    >>> scan = rng.normal(size=(120, 9)) + 4 * np.eye(9)[y]
    >>> model = FCMVC(n_clusters=3, random_state=0)
    >>> model = model.partial_fit(labs[:90], ids=np.arange(90), view="labs")
    >>> model = model.partial_fit(scan[30:], ids=np.arange(30, 120), view="scan")
    >>> [(view.name, view.n_new, view.n_shared) for view in model.views_]
    [('labs', 90, 0), ('scan', 30, 60)]
    >>> model.predict(labs[:2], view="labs").shape
    (2,)
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **FoldingEstimator._parameter_constraints,
        "z_step": [StrOptions({"paper", "exact"})],
        "solver": [StrOptions({"auto", "gram", "direct"})],
        "scale": [StrOptions({"zscore"}), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        z_step: Literal["paper", "exact"] = "paper",
        solver: fcmvc.Solver = "auto",
        scale: Scale = "zscore",
        tol: float = 1e-5,
        max_iter: int = 100,
        n_init: int = 10,
        random_state: Any = None,
        keep_encoders: bool = True,
    ) -> None:
        self.n_clusters = n_clusters
        self.z_step = z_step
        self.solver = solver
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state
        self.keep_encoders = keep_encoders

    _basis = staticmethod(fcmvc.basis)

    def _method(self, seed: int) -> Method:
        return partial(
            fcmvc.fold,
            n_clusters=self.n_clusters,
            z_step=self.z_step,
            solver=self.solver,
            scale=self.scale,
            tol=self.tol,
            max_iter=self.max_iter,
        )


class ViewFold(FoldingEstimator):
    """Continual clustering of incomplete views in which every view weighs the same.

    Views are folded one by one into a consensus; samples may be missing from any of them, and a
    view is not needed after it was folded. Nothing needs tuning.

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters. It may be changed between folds, like all parameters: clusters that go on
        keep their numbers.
    encoder : {"auto", "linear", "landmarks", "mix"}, default="auto"
        Describe the samples of a view by its main directions, by their place in a graph of
        landmarks, which follows curved clusters, or by both ("mix", which "auto" stands for).
    n_components : int, default=None
        The most columns that the consensus may have, however many views were folded; three for
        each cluster if not given.
    scale : {"auto", "zscore", "l2", "tfidf", None}, default="auto"
        How a view is scaled. "auto" looks at it: word counts (sparse whole numbers) get tf-idf and
        unit length, other sparse non-negative weights unit length, everything else a z-score.
    n_init : int, default=3
        Starts of k-means, from trees that Ward's method grows; the best one counts. With few
        samples, more than five bring nothing.
    random_state : int, RandomState or None, default=None
        Seed of all draws: landmarks, rows that stand for a large view, rows that k-means sees. With
        an int, the same views give the same answer; see scikit-learn's glossary.
    keep_encoders : bool, default=True
        Whether to keep what `predict`, `transform` and `extend` need: aggregates of ten samples or
        more. With the embedding they give a low-rank copy of a view. If not, the next fold removes
        those of earlier views, too. docs/privacy.md says what a file tells either way.

    Attributes
    ----------
    labels_ : ndarray of int, shape (n_samples,)
        The cluster of every sample ever seen. Clusters keep their numbers from fold to fold.
    ids_ : ndarray of shape (n_samples,)
        Who they are.
    embedding_ : ndarray of shape (n_samples, n_components)
        The consensus.
    views_ : tuple of ViewRecord
        What is remembered of each view.
    cluster_centers_ : ndarray of shape (n_clusters, n_directions)
        Centres of the clusters, in the directions that tell them apart best: n_clusters − 1, or so
        many for each group of samples that is tied to no other.
    n_iter_ : int
        Always 1: a fold is not iterative.

    Examples
    --------
    >>> from viewfold import ViewFold, datasets, metrics, missing
    >>> digits = datasets.load_digits_views()
    >>> gone = missing.at_random(1797, 6, ratio=0.3, random_state=0)
    >>> model = ViewFold(n_clusters=10, random_state=0)
    >>> for view in missing.by_mask(digits.views, gone):
    ...     model = model.partial_fit(view)
    >>> metrics.accuracy(digits.target, model.labels_) > 0.9
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **FoldingEstimator._parameter_constraints,
        "encoder": [StrOptions({"auto", "linear", "landmarks", "mix"})],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "scale": [StrOptions({"auto", "zscore", "l2", "tfidf"}), None],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        encoder: Literal["auto", "linear", "landmarks", "mix"] = "auto",
        n_components: int | None = None,
        scale: encoders.Scale = "auto",
        n_init: int = 3,
        random_state: Any = None,
        keep_encoders: bool = True,
    ) -> None:
        self.n_clusters = n_clusters
        self.encoder = encoder
        self.n_components = n_components
        self.scale = scale
        self.n_init = n_init
        self.random_state = random_state
        self.keep_encoders = keep_encoders

    @property
    def _most_components(self) -> int:
        return self.n_components or 3 * self.n_clusters

    _basis = staticmethod(balanced.basis)

    def _method(self, seed: int) -> Method:
        return partial(
            balanced.fold,
            seed=seed,
            n_components=self._most_components,
            encoder="mix" if self.encoder == "auto" else self.encoder,
            scale=self.scale,
        )

    def _reading(self, consensus: Consensus) -> dict[str, Any]:
        # The other half serves to complete rows of samples that lack a view.
        columns = max(2, (self._most_components + 1) // 2)
        groups = consensus.groups
        return {"start": "ward", "columns": columns, "sharpen": True, "groups": groups}


def load(path: str | os.PathLike[str]) -> FoldingEstimator:
    """Return the model that a ``.vf`` file holds, as if it had never been away.

    Parameters
    ----------
    path : path
        A file that `save` or the command line wrote.

    Returns
    -------
    FCMVC or ViewFold

    Raises
    ------
    StateFileError
        If the file is damaged, foreign or of a newer version.

    Examples
    --------
    >>> import tempfile, os
    >>> import numpy as np
    >>> import viewfold
    >>> path = os.path.join(tempfile.mkdtemp(), "model.vf")
    >>> viewfold.ViewFold(2).fit(np.eye(6)).save(path)
    >>> viewfold.load(path)
    ViewFold(n_clusters=2)
    """
    saved = store.read(path)
    assert saved is not None
    return model_of(saved)


@contextmanager
def edit(
    path: str | os.PathLike[str], *, new: FoldingEstimator | None = None, wait: float = 60
) -> Iterator[FoldingEstimator]:
    """Change the model in a ``.vf`` file: all that is done to it in the block is one transaction.

    Other writers wait. The file is replaced when the block ends, and stays as it is if the block
    raises. What a fold or `extend` did can be taken back with `viewfold.undo`; samples that were
    forgotten are gone from there as well, and so are encoders if they are not kept any more. The
    log gets an entry for every change.

    Parameters
    ----------
    path : path
        A file that `save` or the command line wrote.
    new : FCMVC or ViewFold, optional
        What to begin with if there is no such file.
    wait : float, default=60
        Seconds to wait for another program that writes to the file.

    Yields
    ------
    FCMVC or ViewFold

    Examples
    --------
    >>> import tempfile, os
    >>> import numpy as np
    >>> import viewfold
    >>> path = os.path.join(tempfile.mkdtemp(), "model.vf")
    >>> with viewfold.edit(path, new=viewfold.ViewFold(2)) as model:
    ...     model = model.partial_fit(np.eye(6), view="labs")
    >>> viewfold.load(path).ids_
    array([0, 1, 2, 3, 4, 5])
    """
    with store.writing(path, wait):
        begin = None if new is None or os.path.exists(path) else new._saved()
        before = begin or store.read(path)
        assert before is not None
        model = model_of(before)
        yield model
        after = _following(before, model)
        if after.log != before.log:
            undone = _to_return_to(path, before, after)
            if undone is not None and not model.keep_encoders:
                undone = _private(undone)
            store.write(path, after, before=undone, unchanged=undone is before)


def undo(
    path: str | os.PathLike[str], *, entry: int | None = None, wait: float = 60
) -> FoldingEstimator:
    """Return a ``.vf`` file to the state before the last change. The log stays, and says so.

    Parameters
    ----------
    path : path
        The file.
    entry : int, optional
        The entry of the log that is to be taken back, as a safeguard against taking back another.
        Needed after a `forget`, which cannot be taken back itself.
    wait : float, default=60
        Seconds to wait for another program that writes to the file.

    Returns
    -------
    FCMVC or ViewFold
        What the file holds now.

    Examples
    --------
    >>> import tempfile, os
    >>> import numpy as np
    >>> import viewfold
    >>> path = os.path.join(tempfile.mkdtemp(), "model.vf")
    >>> viewfold.ViewFold(2).fit({"labs": np.eye(6)}).save(path)
    >>> with viewfold.edit(path) as model:
    ...     model = model.partial_fit(np.eye(6), view="scan")
    >>> viewfold.undo(path).log_[["what", "view", "undoes"]].to_numpy().tolist()
    [['fold', 'labs', <NA>], ['fold', 'scan', <NA>], ['undo', None, 2]]
    """
    with store.writing(path, wait):
        log, taken = queries.undoing(path, entry)
        earlier = store.read(path, before=True)
        assert earlier is not None
        n_samples = 0 if earlier.state is None else earlier.state.consensus.ids.size
        log = noted(log, "undo", n_samples, undoes=taken[0].entry if taken else None)
        back = _with_log(earlier, log)
        store.write(path, back)
    return model_of(back)


def model_of(saved: Saved) -> FoldingEstimator:
    """Return the model that was saved."""
    kinds: dict[str, type[FoldingEstimator]] = {"FCMVC": FCMVC, "ViewFold": ViewFold}
    try:
        # A copy: a RandomState goes on, and what was saved must not.
        model = kinds[saved.method](**deepcopy(dict(saved.params)))
        model._validate_params()
    except (KeyError, TypeError, ValueError):
        raise store.StateFileError(
            f"The file holds a {saved.method} with {sorted(saved.params)}, which this viewfold "
            "does not know. Install a newer one."
        ) from None
    if saved.past:
        model._taken_back = saved.past
    return model if saved.state is None else model._keep(saved.state)


def _with_log(saved: Saved, log: Log) -> Saved:
    if saved.state is None:
        return replace(saved, past=log)
    return replace(saved, state=replace(saved.state, log=log))


def _following(before: Saved, model: FoldingEstimator) -> Saved:
    """Return what a model is now, with a log that goes on from the one before."""
    after = model._saved()
    if after.state is not None and after.log[: len(before.log)] != before.log:
        after = replace(after, state=after.state.after(before.log))  # `fit` begins a new one
    if _settings(after) != _settings(before):
        n_samples = 0 if after.state is None else after.state.consensus.ids.size
        after = _with_log(after, noted(after.log, "params", n_samples))
    return after


def _settings(saved: Saved) -> dict[str, Any]:
    """Return the parameters; a RandomState goes on by itself, which is no change of it."""
    return {
        name: np.random.RandomState if isinstance(value, np.random.RandomState) else value
        for name, value in saved.params.items()
    }


def _to_return_to(path: str | os.PathLike[str], before: Saved, after: Saved) -> Saved | None:
    """Return the state that undo is to return to: no sample is in it that was forgotten."""
    gone = _gone(before, after)
    if any(event.what != FINAL for event in after.log[len(before.log) :]):
        return _without(before, gone)
    if not os.path.exists(path):
        return None
    try:
        return _without(store.read(path, before=True), gone)
    except store.StateFileError as error:
        warnings.warn(
            f"The part of the file that undo returns to is damaged and was left out: {error}",
            stacklevel=4,
        )
        return None


def _gone(old: Saved, new: Saved) -> pd.Index:
    """Return the samples that were forgotten, also if they came again."""
    if old.state is None or new.state is None:
        return pd.Index([])
    ids, kept = (pd.Index(saved.state.consensus.ids) for saved in (old, new) if saved.state)
    if any(event.what == FINAL for event in new.log[len(old.log) :]):
        kept = kept[new.state.added <= len(old.log)]
    return ids[:0] if ids.equals(kept) else ids[kept.get_indexer(ids) < 0]


def _private(saved: Saved) -> Saved:
    """Return a state without encoders, to which no fold adds one."""
    params = {**saved.params, "keep_encoders": False}
    if saved.state is None or not any(view.encoder for view in saved.state.consensus.views):
        return replace(saved, params=params)
    state = replace(saved.state, consensus=without_encoders(saved.state.consensus))
    return replace(saved, params=params, state=state)


def _without(saved: Saved | None, gone: pd.Index) -> Saved | None:
    """Return a state to return to, without samples that were forgotten."""
    if saved is None or saved.state is None:
        return saved
    kept = ~pd.Index(saved.state.consensus.ids).isin(gone)
    if kept.all():
        return saved
    return replace(saved, state=model_of(saved)._left(saved.state, kept)) if kept.any() else None
