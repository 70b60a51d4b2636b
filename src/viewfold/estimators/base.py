"""What all estimators of viewfold share: scikit-learn's manners around the transitions."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Iterable
from numbers import Integral
from typing import Any, Self, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from viewfold._util.compat import Interval, ShortHelp, validate, without_requests
from viewfold._util.file import ReadKeywords, ReadOptions, takes_reading
from viewfold._util.types import Array, IdsLike, IdsOfViews, Seed, ViewLike, ViewsLike
from viewfold.data import View, as_view, as_views
from viewfold.data.ids import Similar
from viewfold.data.opening import own_name
from viewfold.data.view import invented_name
from viewfold.estimators.certainty import Certainty
from viewfold.estimators.checks import check_y
from viewfold.estimators.delivery import delivered
from viewfold.estimators.turns import changes
from viewfold.rows import BucketRows, Engine, RowSet, current_engine, using
from viewfold.state.admission import admit, meant
from viewfold.state.hashes import seed_of
from viewfold.state.method import Method
from viewfold.state.names import rename
from viewfold.state.registry import CARDS, STORES
from viewfold.state.state import State
from viewfold.state.transitions import fold, forget, recluster
from viewfold.state.updates import Delivery, no_encoder, update


class FoldingEstimator(Certainty, ClusterMixin, BaseEstimator, metaclass=ShortHelp):
    """What all estimators of viewfold share: everything but the method."""

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "keep_encoders": ["boolean"],
    }
    n_clusters: int
    n_init: int
    random_state: Seed
    keep_encoders: bool

    def __dir__(self) -> list[str]:
        return without_requests(super().__dir__())

    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be meant."""
        validate(self)

    @abstractmethod
    def _method(self) -> Method:
        """Return the method, with its parameters."""

    @changes
    @takes_reading
    def fit(
        self,
        X: ViewsLike,
        y: object = None,
        *,
        ids: IdsOfViews = None,
        similar_ids: Similar = "refuse",
        engine: Engine | None = None,
        **reading: Unpack[ReadKeywords],
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
        engine : Engine, optional
            Who computes with the rows and holds them, in any thread; if not given, the engine of
            `viewfold.rows.using`, or the memory of this process.
        empty_rows, missing_cells, columns, drop, categories, empty_markers, strict, layer, use_rep
            How the views are to be read; see `as_view` and `as_views`.

        Returns
        -------
        self
        """
        self._check_parameters()
        check_y(y, "fit")
        # A file whose folds were all taken back has a log, and no view yet.
        state = State.empty() if self._now.views else self._now
        with using(engine or current_engine()) as engine:
            for view in as_views(X, ids=ids, **reading):
                state = self._next(engine, state, admit(engine, state, view, similar_ids))
        return self._keep(state)

    @changes
    @takes_reading
    def partial_fit(
        self,
        X: ViewLike,
        y: object = None,
        *,
        ids: IdsLike = None,
        view: str | None = None,
        similar_ids: Similar = "refuse",
        min_shared: float | None = None,
        engine: Engine | None = None,
        **reading: Unpack[ReadKeywords],
    ) -> Self:
        """Fold one more view, or take in more rows of a known one. X is not needed afterwards.

        Rows of a view that is known by its name are told apart by id, and counted in `delivery_`:
        new samples, known ones that lacked the view, and corrections. Rows that came before change
        nothing. If others are fewer than ten, or a tenth of the view's samples, nobody else moves.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, AnnData, memmap, path or iterator
            The view; see `as_view`.
        y : Ignored
            Here for scikit-learn's sake: one target per sample. A view, a name or ids are refused.
        ids : array-like, str or False, optional
            The sample ids, or the name of the DataFrame column that holds them; see `as_view`.
        view : str, optional
            What to call the view, or the known one that the rows belong to. Without a name, the
            rows are a new view, called ``"view0"``, ``"view1"``, …: the next of these names that
            no view has. A known view is read as it was before: of what is said
            about reading, only `missing_cells` and `empty_rows` count.
        similar_ids : {"refuse", "match", "new"}, default="refuse"
            What to do with new ids that are almost known; see `fit`.
        min_shared : int or float, optional
            Refuse the view if fewer of its samples are known: so many, or this part of them.
        engine : Engine, optional
            Who computes with the rows and holds them; see `fit`. A model whose rows another engine
            holds already refuses it: `viewfold.load` can move them.
        empty_rows, missing_cells, columns, drop, categories, empty_markers, strict, layer, use_rep
            How the view is to be read; see `as_view`.

        Returns
        -------
        self

        See Also
        --------
        viewfold.inspect_views : Look at a view before it is folded.
        viewfold.ViewFold.extend : Add new samples of a known view, and refuse any other.
        viewfold.edit : Fold into a state file, safely.

        Notes
        -----
        The class says what a fold costs: time grows with the rows of the view, and with the samples
        of the consensus.
        """
        self._check_parameters()
        check_y(y, "partial_fit")
        engine = self._engine_for(engine)
        state = self._placed_state(engine)
        name = own_name(X) if view is None else view
        if name in (None, ""):
            name = invented_name(state.names, len(state.views))
        if name not in state.names:
            with using(engine):
                came = as_view(X, ids=ids, name=name, **reading)
            after = self._next(engine, state, admit(engine, state, came, similar_ids, min_shared))
            self.delivery_ = Delivery.first(after)
            return self._keep(after)
        if not self.keep_encoders:
            raise no_encoder(name)
        record = state.views[state.names.index(name)]
        with using(engine):
            options = ReadOptions.of(**reading)
            came = delivered(record, X, ids=ids, me=type(self).__name__, options=options)
        came, seed = admit(engine, state, came, similar_ids, min_shared), seed_of(self.random_state)
        after, count = update(engine, state, came, self._method(), seed=seed)
        after, self.delivery_ = self._in_clusters(after, self.n_clusters), count
        return self._keep(after)

    @changes
    @takes_reading
    def fit_predict(
        self,
        X: ViewsLike,
        y: object = None,
        *,
        ids: IdsOfViews = None,
        similar_ids: Similar = "refuse",
        engine: Engine | None = None,
        **reading: Unpack[ReadKeywords],
    ) -> NDArray[np.intp]:
        """Fit and return the cluster of each row, or `labels_` if several views have ids.

        A row that is NaN or empty in every view is no sample: its label is −1, and a warning says
        so.
        """
        check_y(y, "fit_predict")
        with using(engine or current_engine()) as engine:
            views = as_views(X, ids=ids, **reading)
        self.fit(views, similar_ids=similar_ids, engine=engine)
        return self._by_row(X, views, self.labels_, self.ids_, -1)

    @changes
    @takes_reading
    def fit_transform(
        self,
        X: ViewsLike,
        y: object = None,
        *,
        ids: IdsOfViews = None,
        similar_ids: Similar = "refuse",
        engine: Engine | None = None,
        **reading: Unpack[ReadKeywords],
    ) -> Array:
        """Fit and return the embedding of each row, or `embedding_` if several views have ids.

        Of one view it is what `transform` gives: encoders keep no single sample, so it is near to
        `embedding_` and not the same. A row that is NaN or empty in every view is no sample: it
        is NaN, and a warning says so.
        """
        check_y(y, "fit_transform")
        with using(engine or current_engine()) as engine:
            views = as_views(X, ids=ids, **reading)
        self.fit(views, similar_ids=similar_ids, engine=engine)
        record = self.views_[0]
        alone = len(self.views_) == 1 and record.encoder is not None
        if not alone:
            return self._by_row(X, views, self.embedding_, self.ids_, np.nan)
        embedded, ids = self._embed(views[0], record), views[0].ids
        collect = self._engine.collect
        return self._by_row(X, views, collect(embedded), collect(ids), np.nan)

    def _by_row(
        self, X: ViewsLike, views: list[View], found: Array, ids: Array, gap: float
    ) -> Array:
        """Return a value for each row that came, if rows are what the caller knows samples by.

        What is found of samples is in the order of `ids`.
        """
        n, at = views[0].length, self.ids_
        if len(views) == 1 and isinstance(self._fitted.ids, BucketRows):
            came = pd.Index(self._in_rows(views[0].ids, views[0]))
            found = found[pd.Index(ids).get_indexer(came)]
        if len(views) == 1 and not isinstance(X, View) and views[0].first_absent is not None:
            n, where = views[0].n_came, views[0].partitions
            at = self._in_rows(where.numbers, views[0]) if where else views[0].rows.present
        if n is None or at.size >= n or at.max() >= n:
            return found
        gone = "NaN or zero" if any(view.n_empty for view in views) else "NaN"
        warnings.warn(
            f"{n - at.size} of {n} rows are {gone} in every view: they are no samples, and get "
            f"{gap}.",
            stacklevel=4,
        )
        out = np.full((n, *found.shape[1:]), gap, found.dtype)
        out[at] = found
        return out

    def _in_rows(self, rows: RowSet, view: View) -> Array:
        """Return values of the samples of a view, in the order in which its rows came."""
        found = self._engine.collect(rows)
        if view.partitions is None:
            return found
        return np.asarray(found[np.argsort(self._engine.collect(view.partitions.numbers))])

    @changes
    def recluster(self, n_clusters: int) -> Self:
        """Find another number of clusters in the consensus, which stays as it is.

        Clusters are found as after a fold, with the same seed, and those that stay the same keep
        their numbers. Later folds find as many. The number that there is changes nothing.

        Parameters
        ----------
        n_clusters : int
            How many clusters; the parameter `n_clusters` of the model becomes this number.

        Returns
        -------
        self

        See Also
        --------
        viewfold.suggest_n_clusters : How much each number stands out.
        viewfold.ViewFold.movers : Who has another cluster now.

        Notes
        -----
        The consensus has the columns that it has: a warning says so if a fold for this number would
        have given it more. No view is needed: it takes as long as finding clusters after a fold.

        Examples
        --------
        >>> import numpy as np
        >>> from viewfold import ViewFold
        >>> y = np.repeat([0, 1, 2, 3], 20)
        >>> X = 9 * np.eye(4)[y] + np.random.default_rng(0).normal(size=(80, 4))
        >>> model = ViewFold(2, random_state=0).fit(X)
        >>> np.unique(model.recluster(4).labels_)
        array([0, 1, 2, 3])
        """
        check_is_fitted(self)
        state, other = self._fitted, clone(self).set_params(n_clusters=n_clusters)
        other._check_parameters()
        assert state.clusters is not None
        if n_clusters != state.clusters.n_clusters:
            self._warn_columns(other)
        state = self._in_clusters(state, n_clusters)
        self.set_params(n_clusters=n_clusters)
        return self._keep(state)

    @changes
    def rename(self, cluster: int, name: str | None) -> Self:
        """Give a cluster a name, which is shown wherever the cluster is.

        A name goes with its cluster through folds and other changes, also to another number. If the
        cluster is no more, so is its name; a warning and the log say so.

        Parameters
        ----------
        cluster : int
            Its number.
        name : str or None
            What to call it, in at most 60 letters; no other cluster may be called so. None or an
            empty text takes the name away.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from viewfold import ViewFold
        >>> model = ViewFold(2).fit(np.eye(6)).rename(1, "late responders")
        >>> model.cluster_names_
        {1: 'late responders'}
        """
        check_is_fitted(self)
        return self._keep(rename(self._fitted, cluster, name))

    def _in_clusters(self, state: State, n: int) -> State:
        """Return a state that has as many clusters as are asked for."""
        clusters = state.clusters
        if clusters is None or n == clusters.n_clusters:
            return state
        if n > state.n_samples:
            raise ValueError(
                f"n_clusters={n!r} is more than there are samples ({state.n_samples}). "
                "Ask for fewer clusters."
            )
        method = self._with_clusters(n)
        return recluster(self._engine, state, method, seed=seed_of(self.random_state))

    def _with_clusters(self, n: int) -> Method:
        """Return the method for so many clusters."""
        method: Method = clone(self).set_params(n_clusters=n)._method()
        return method

    def _columns(self) -> int | None:
        """Return how many columns a fold gives the consensus at most; None if that is not known."""
        return None

    def _warn_columns(self, other: FoldingEstimator) -> None:
        """Warn if a fold with the parameters of another model could have more columns."""
        has, could = self._fitted.embedding.shape[1], other._columns()
        features = sum(record.n_features for record in self.views_)
        if could is not None and has < min(could, features):
            warnings.warn(
                f"The consensus has {has} columns; a fold for {other.n_clusters} clusters would "
                f"have up to {could}. So many clusters may not be told apart well until further "
                "views are folded.",
                stacklevel=4,
            )

    @changes
    def forget(self, ids: Iterable[int | str]) -> Self:
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

        See Also
        --------
        viewfold.forget : Remove samples from a state file and all it can be returned to.

        Notes
        -----
        No view is needed. Time is of order N r² for N samples and r columns of the consensus.
        """
        check_is_fitted(self)
        engine, state = self._engine, self._fitted
        named = pd.Index(list(ids), tupleize_cols=False)
        gone = engine.map(lambda block: pd.Index(block).isin(named), state.ids)
        found = engine.collect(engine.keep(state.ids, gone))
        unknown = named[~named.isin(found)].tolist()
        if unknown:
            asked = meant(state, unknown[:5])
            raise ValueError(f"Unknown samples: {unknown[:5]}. Nothing was forgotten.{asked}")
        if not found.size:
            return self
        if found.size == state.n_samples:
            raise ValueError("These are all samples there are. Throw all of it away instead.")
        kept = engine.map(np.logical_not, gone)
        return self._keep(forget(engine, state, kept, self._method()))

    @changes
    def save(self, path: str | os.PathLike[str], *, wait: float = 60) -> None:
        """Write the model to a state file; `viewfold.load` brings it back, to the last bit.

        A file that is there is replaced in one step, if viewfold wrote it, with all states that it
        could be returned to. To fold into a file, use `viewfold.edit`: it keeps them, and others
        may write to the file as well.

        Parameters
        ----------
        path : path
            Where to: a ``.vf`` file, or a ``.vfd`` folder with as many buckets as the engine has. A
            new one can be read by its owner only.
        wait : float, default=60
            Seconds to wait for another program that writes to the file.

        See Also
        --------
        viewfold.load : Read it back.
        viewfold.edit : Change a state file, and keep what it can be returned to.
        """
        STORES["vf"](self, path, wait=wait)

    def _repr_html_inner(self) -> str:
        """Return what notebooks show: scikit-learn's diagram, once fitted within a card."""
        state: State | None = getattr(self, "_state", None)
        if state is None or not state.views:
            return str(super()._repr_html_inner())
        # That of a fitted model would compute, and collect, each of its attributes.
        diagram = clone(self)._repr_html_inner()
        try:
            return str(CARDS["html"](self._snapshot(), diagram))
        except Exception:  # showing a model never fails, not even one whose engine is closed
            return str(diagram)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        shown = (
            {"text/html": self._repr_html_inner()} if get_config()["display"] == "diagram" else {}
        )
        return {"text/plain": repr(self), **shown}

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        state: State | None = getattr(self, "_state", None)
        return state is not None and bool(state.views)

    @property
    def _now(self) -> State:
        """The state, also before the first view, with its rows where they can be joined."""
        return self._placed_state(self._engine)

    def _placed_state(self, engine: Engine) -> State:
        state: State = getattr(self, "_state", None) or State.empty()
        return state.placed(engine)

    def _engine_for(self, engine: Engine | None) -> Engine:
        """Return the engine that was given, if it can have the rows of this model."""
        state: State | None = getattr(self, "_state", None)
        holder = self._engine
        if engine is None or state is None or not isinstance(state.embedding, BucketRows):
            return engine or holder
        if holder is not engine:
            raise ValueError(
                "The samples of this model are held by another engine "
                f"({type(holder).__name__}). Leave engine= out, or save the model "
                "and load it with viewfold.load(path, engine=…)."
            )
        return engine

    def _next(self, engine: Engine, state: State, view: View) -> State:
        """Return the state after one more view: the way from a fold to labels."""
        return fold(
            engine,
            state,
            view,
            self._method(),
            seed=seed_of(self.random_state),
            keep_encoders=self.keep_encoders,
        )
