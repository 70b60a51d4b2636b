"""What all estimators of viewfold share: scikit-learn's manners around the transitions of a state.

One model may be used in several threads: changes wait for each other, questions wait for nobody. A
state is replaced and never changed. So a question is put to a copy of the model, which keeps the
state of that moment (no array is copied), and a change holds the model's lock until it is done.
"""

from __future__ import annotations

import importlib
import os
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import wraps
from numbers import Integral
from threading import RLock
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeVar, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from sklearn.utils.validation import check_is_fitted

from viewfold._util.arguments import arguments_of, check_arguments, which_view
from viewfold._util.file import ReadKeywords, ReadOptions, takes_reading
from viewfold._util.types import Array, IdsLike, IdsOfViews, Seed, ViewLike, ViewsLike
from viewfold.data import View, as_views
from viewfold.data.features import with_known_batch
from viewfold.data.ids import Similar
from viewfold.data.opening import own_name, read_view
from viewfold.data.view import invented_name
from viewfold.estimators import answers
from viewfold.estimators.known import (
    check_rename,
    check_y,
    embed,
    read_delivery,
    read_known_view,
    split_by_view,
)
from viewfold.explain.events import events_table, log_table
from viewfold.explain.features import distinguished
from viewfold.rows import BucketRows, Engine, RowSet, current_engine, engine_of, using
from viewfold.state.admission import admit, meant
from viewfold.state.clusters import Clusters, confidence, hangs_on
from viewfold.state.hashes import seed_of
from viewfold.state.names import rename
from viewfold.state.state import State, ViewRecord
from viewfold.state.transitions import Method, fold, forget, recluster
from viewfold.state.updates import Delivery, extend, no_encoder, refresh, update

if TYPE_CHECKING:
    from viewfold.estimators.selection import Suggestion

P = ParamSpec("P")
R = TypeVar("R")
Model = TypeVar("Model", bound="FoldingEstimator")


class ShortHelp(ABCMeta):
    """Leaves ``set_fit_request`` and so on, which scikit-learn generates, out of the help."""

    def __dir__(cls) -> list[str]:
        return without_requests(super().__dir__())


def without_requests(names: Iterable[str]) -> list[str]:
    return [n for n in names if not (n.startswith("set_") and n.endswith("_request"))]


def asks(method: Callable[Concatenate[Model, P], R]) -> Callable[Concatenate[Model, P], R]:
    """Let a method that changes nothing see one state, whatever other threads do meanwhile."""
    takes = arguments_of(method)

    @wraps(method)
    def call(self: Model, /, *args: P.args, **kwargs: P.kwargs) -> R:
        check_arguments(f"{type(self).__name__}.{method.__name__}", takes, kwargs)
        return method(self._snapshot(), *args, **kwargs)

    return call


def changes(method: Callable[Concatenate[Model, P], R]) -> Callable[Concatenate[Model, P], R]:
    """Let a method that changes the model wait until no other thread changes it."""
    takes = arguments_of(method)

    @wraps(method)
    def call(self: Model, /, *args: P.args, **kwargs: P.kwargs) -> R:
        check_arguments(f"{type(self).__name__}.{method.__name__}", takes, kwargs)
        with self._lock:
            return method(self, *args, **kwargs)

    return call


class FoldingEstimator(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
    metaclass=ShortHelp,
):
    """What all estimators of viewfold share: everything but the method."""

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "n_clusters": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "keep_encoders": ["boolean"],
    }
    n_clusters: int | Literal["auto"]
    n_init: int
    random_state: Seed
    keep_encoders: bool
    _state: State
    _held: dict[str, tuple[State, State]]

    @abstractmethod
    def _method(self) -> Method:
        """Return the functions of the method, with its parameters."""

    def _check_parameters(self) -> None:
        """Refuse parameters as scikit-learn does, and a boolean where it wants a number."""
        for name, allowed in self._parameter_constraints.items():
            value = getattr(self, name)
            numbers = any(isinstance(one, Interval) or one == "random_state" for one in allowed)
            if numbers and isinstance(value, bool | np.bool_):
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must be a number. Got the "
                    f"boolean {value} instead."
                )
        self._validate_params()

    def _columns(self) -> int | None:
        """Return how many columns a fold gives the consensus at most; None if that is not known."""
        return None

    # -- changes

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
            Not used, present for API consistency. A view, a name or ids are refused.
        ids : array-like, str, False, list or dict, optional
            The sample ids of the view, or those of each view; see `as_views`.
        similar_ids : {"refuse", "match", "new"}, default="refuse"
            What to do with ids that differ only in case, space around them, leading zeros or the
            composition of their letters: refuse them, take them for the same sample, or for
            different ones.
        engine : Engine, optional
            Who computes with the rows and holds them; by default, that of `viewfold.rows.using`, or
            the memory of this process.
        **reading
            How the views are to be read: the keywords of `as_view`.
        """
        self._check_parameters()
        check_y(y, "fit")
        # A file whose folds were all taken back has a log, and no view yet.
        state = State.empty() if self._now.views else self._now
        with using(engine or current_engine()) as engine:
            views = as_views(X, ids=ids, **reading)
            found = self._choose(views, similar_ids=similar_ids, engine=engine)
            for view in views:
                came = admit(engine, state, view, similar_ids)
                state = self._fold(engine, state, came, found=found)
        return self._keep(state)._with_choice(found)

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
        rename: Mapping[str, str] | None = None,
        engine: Engine | None = None,
        **reading: Unpack[ReadKeywords],
    ) -> Self:
        """Fold one more view, or take in more rows of a known one. X is not needed afterwards.

        Rows of a view that is known by its name are told apart by id, and counted in `delivery_`:
        new samples, known ones that lacked the view, and corrections. Rows that came before change
        nothing. Nobody else moves, unless the columns of the view have drifted or as many rows come
        as it was learned from: then the view is learned again, and `delivery_.learned` says so.
        Columns are told apart by name: missing ones count as missing cells, new ones are ignored,
        and a warning says so.

        Parameters
        ----------
        X : view
            Anything that `as_view` takes.
        y : Ignored
            Not used, present for API consistency. A view, a name or ids are refused.
        ids : array-like, str or False, optional
            The sample ids, or the name of the DataFrame column that holds them; see `as_view`.
        view : str, optional
            The name of the view, new or known; by default the next of ``"view0"``, ``"view1"``, …
            that no view has. A known view is read as it was before: of what is said about reading,
            only `missing_cells` and `empty_rows` count.
        similar_ids : {"refuse", "match", "new"}, default="refuse"
            What to do with new ids that are almost known; see `fit`.
        min_shared : int or float, optional
            Refuse the view if fewer of its samples are known: so many, or this part of them.
        rename : dict of str to str, optional
            New names of columns of a known view, by the names that it knows: ``{"iron": "Fe"}``.
            They are remembered for later rows.
        engine : Engine, optional
            See `fit`. A model whose rows another engine holds refuses it: `viewfold.load` can move
            them.
        **reading
            How the view is to be read: the keywords of `as_view`.

        Warns
        -----
        DeliveryWarning
            If more rows of a known view are not what it looked like before: another unit, exchanged
            columns, ids beside the rows of others. As an error, it leaves the model as it was.

        See Also
        --------
        viewfold.inspect_views : Look at a view before it is folded.
        viewfold.ViewFold.extend : Add new samples of a known view, and refuse any other.
        viewfold.edit : Fold into a state file, safely.

        Notes
        -----
        The class says what a fold costs.
        """
        self._check_parameters()
        check_y(y, "partial_fit")
        state: State = getattr(self, "_state", None) or State.empty()
        holder = self._engine
        if engine not in (None, holder) and isinstance(state.embedding, BucketRows):
            raise ValueError(
                "The samples of this model are held by another engine "
                f"({type(holder).__name__}). Leave engine= out, or save the model "
                "and load it with viewfold.load(path, engine=…)."
            )
        engine, options = engine or holder, ReadOptions.of(**reading)
        state, names, found = state.placed(engine), state.names, None
        name = own_name(X) if view is None else view
        if name in (None, ""):  # 0 is neither: it is refused as no text
            name = invented_name(names, len(names))
        if name not in names:
            check_rename(rename, ())
            with using(engine):
                came = read_view(X, ids, name, options)
            came = admit(engine, state, came, similar_ids)
            if not state.views:
                found = self._choose([came], similar_ids=similar_ids, engine=engine)
            after = self._fold(engine, state, came, min_shared, found)
            count = Delivery.first(after)
        else:
            if not self.keep_encoders:
                raise no_encoder(name)
            record, me = state.views[names.index(name)], type(self).__name__
            options = replace(options, rename=check_rename(rename, [record]))
            with using(engine):
                came = read_delivery(record, X, ids=ids, me=me, options=options, views=state.views)
            came = admit(engine, state, came, similar_ids)
            seed = seed_of(self.random_state)
            after, count = update(
                engine, state, came, self._method(), seed=seed, min_shared=min_shared
            )
            after = self._in_clusters(after, self._number)
        self.delivery_ = count
        return self._keep(after)._with_choice(self._choose() if state.views else found)

    def _fold(
        self,
        engine: Engine,
        state: State,
        view: View,
        min_shared: float | None = None,
        found: Suggestion | None = None,
    ) -> State:
        seed, keep = seed_of(self.random_state), self.keep_encoders
        model = self if found is None else clone(self).set_params(n_clusters=found.best)
        method = model._method()
        return fold(
            engine, state, view, method, seed=seed, keep_encoders=keep, min_shared=min_shared
        )

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
        views = self._fit_views(X, ids, similar_ids, engine, reading)
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
        views = self._fit_views(X, ids, similar_ids, engine, reading)
        if len(self.views_) > 1 or self.views_[0].encoder is None:
            return self._by_row(X, views, self.embedding_, self.ids_, np.nan)
        engine, rows = self._engine, embed(self._engine, self._fitted, views[0])
        return self._by_row(X, views, engine.collect(rows), engine.collect(views[0].ids), np.nan)

    def _fit_views(
        self, X: ViewsLike, ids: IdsOfViews, similar: Similar, engine: Engine | None, reading: Any
    ) -> list[View]:
        with using(engine or current_engine()) as engine:
            views = as_views(X, ids=ids, **reading)
        self.fit(views, similar_ids=similar, engine=engine)
        return views

    def _by_row(
        self, X: ViewsLike, views: list[View], found: Array, ids: Array, gap: float
    ) -> Array:
        """Return a value for each row that came, if rows are what the caller knows samples by."""
        first, at = views[0], self.ids_
        n, where, collect = first.length, first.partitions, self._engine.collect
        came = slice(None) if where is None else np.argsort(collect(where.numbers))
        if len(views) == 1 and isinstance(self._fitted.ids, BucketRows):
            found = found[pd.Index(ids).get_indexer(pd.Index(collect(first.ids)[came]))]
        if len(views) == 1 and not isinstance(X, View) and first.first_absent is not None:
            n = first.n_came
            at = collect(where.numbers)[came] if where else first.rows.present
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

    @changes
    @takes_reading
    def refresh(
        self,
        X: ViewLike,
        *,
        view: str,
        ids: IdsLike = None,
        similar_ids: Similar = "refuse",
        min_shared: float | None = None,
        **reading: Unpack[ReadKeywords],
    ) -> Self:
        """Replace a known view by a delivery of all its rows, and learn it anew.

        What the view said about these samples is taken from the consensus before X is folded, so
        that the view does not gain weight. Samples that had the view and are not in X keep what
        they had. Columns may be others than before.

        Parameters
        ----------
        X : view
            All its rows; see `partial_fit` for the other parameters.

        See Also
        --------
        viewfold.ViewFold.partial_fit : Take in some rows of a known view.
        """
        check_is_fitted(self)
        self._check_parameters()
        engine, state = self._engine, self._fitted.placed(self._engine)
        which_view(state.names, view, "This model holds")
        if not self.keep_encoders or state.directions is None:
            raise no_encoder(view)
        with using(engine):
            options = ReadOptions.of(**reading)
            if not isinstance(X, View):
                options = with_known_batch(options, state.views[state.names.index(view)].source)
            came = read_view(X, ids, view, options)
        came = admit(engine, state, came, similar_ids)
        seed = seed_of(self.random_state)
        after, self.delivery_ = refresh(
            engine, state, came, self._method(), seed=seed, min_shared=min_shared
        )
        return self._keep(self._in_clusters(after, self._number))._with_choice(self._choose())

    @changes
    def extend(
        self,
        X: ViewLike,
        *,
        ids: IdsLike = None,
        view: str | int | None = None,
        similar_ids: Similar = "refuse",
        rename: Mapping[str, str] | None = None,
    ) -> Self:
        """Add new samples of a known view to the consensus. Nobody else moves.

        Parameters
        ----------
        X, ids
            Rows with the features of that view, and their ids, none of them known; `partial_fit`
            describes the other parameters.
        view : str or int, optional
            Name or number of the view; needed if there is more than one.

        See Also
        --------
        viewfold.ViewFold.partial_fit : Take in new, late and corrected rows alike.
        viewfold.ViewFold.predict : Tell clusters without keeping anything.
        """
        check_is_fitted(self)
        engine, state = self._engine, self._fitted.placed(self._engine)
        with using(engine):
            (part, *others), _ = split_by_view(self.views_, X, ids, view, rename)
            if others:
                raise ValueError("extend takes rows of one view. Name it with view=….")
            me, options = type(self).__name__, part.options
            new = read_known_view(part.rows, part.record, ids=part.ids, me=me, options=options)
        new = admit(engine, state, new, similar_ids, only_new=True)
        after, self.delivery_ = extend(engine, state, new)
        return self._keep(after)

    @changes
    def recluster(self, n_clusters: int, *, note: str | None = None) -> Self:
        """Find another number of clusters in the consensus, which stays as it is.

        Clusters that stay the same keep their numbers; later folds find as many. The number that
        there is changes nothing. The log has the `note`, which may say why.

        See Also
        --------
        viewfold.suggest_n_clusters : How much each number stands out.
        viewfold.ViewFold.movers : Who has another cluster now.

        Notes
        -----
        The consensus has the columns that it has: a warning says so if a fold for this number would
        have given it more. No view is needed: it takes as long as finding clusters after a fold.
        """
        check_is_fitted(self)
        if isinstance(n_clusters, str):
            raise ValueError(
                f"recluster takes a number, not n_clusters={n_clusters!r}: 'auto' is for models, "
                "which choose when they fold. suggest_n_clusters(model).best stands out most."
            )
        state, other = self._fitted, clone(self).set_params(n_clusters=n_clusters)
        other._check_parameters()
        has, could = state.embedding.shape[1], other._columns()
        features = sum(record.n_features for record in state.views)
        changed = n_clusters != self._clusters.n_clusters
        if changed and could is not None and has < min(could, features):
            warnings.warn(
                f"The consensus has {has} columns; a fold for {n_clusters} clusters would "
                f"have up to {could}. So many clusters may not be told apart well until further "
                "views are folded.",
                stacklevel=3,
            )
        state = self._in_clusters(state, n_clusters, note)
        self.set_params(n_clusters=n_clusters)
        return self._keep(state)

    def _in_clusters(self, state: State, n: int, note: str | None = None) -> State:
        if state.clusters is None or n == state.clusters.n_clusters:
            return state
        if n > state.n_samples:
            raise ValueError(
                f"n_clusters={n} is more than there are samples ({state.n_samples}). "
                "Ask for fewer clusters."
            )
        method = clone(self).set_params(n_clusters=n)._method()
        seed = seed_of(self.random_state)
        return recluster(self._engine, state, method, seed=seed, note=note)

    def _choose(self, views: list[View] | None = None, **options: Any) -> Suggestion | None:
        """Choose a number of clusters for the first views, or another one; if that is asked for."""
        if self.n_clusters != "auto":
            return None
        selection = importlib.import_module("viewfold.estimators.selection")  # it imports this
        if views is None:
            found: Suggestion = selection.choose_again(self)
            self.n_clusters = "auto"  # `recluster` has set it
        else:
            found = selection.choose_first(views, seed=seed_of(self.random_state), **options)
        return found

    def _with_choice(self, found: Suggestion | None) -> Self:
        """Keep what was seen when the number of clusters was chosen."""
        if found is not None:
            self.suggestion_ = found
            found._warn_if_none()
        return self

    @property
    def _number(self) -> int:
        """How many clusters a fold finds."""
        return self._clusters.n_clusters if self.n_clusters == "auto" else self.n_clusters

    @changes
    def rename(self, cluster: int, name: str | None) -> Self:
        """Give a cluster a name of at most 60 letters, which no other cluster has.

        The name is shown wherever the cluster is, and goes with it, also to another number. If the
        cluster is no more, so is its name; a warning and the log say so. None or an empty text
        takes the name away.
        """
        check_is_fitted(self)
        return self._keep(rename(self._fitted, cluster, name))

    @changes
    def forget(self, ids: Iterable[int | str]) -> Self:
        """Remove samples for good.

        Their rows and labels are gone, and so is what the rows of others tell about them. No other
        sample changes its cluster. What encoders learned from ten or more samples at once stays
        (see docs/privacy.md).

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
        could be returned to. To fold into a file, use `viewfold.edit`: it keeps them.

        Parameters
        ----------
        path : path
            A ``.vf`` file, or a ``.vfd`` folder with as many buckets as the engine has. A new one
            can be read by its owner only.
        wait : float, default=60
            Seconds to wait for another program that writes to the file.

        See Also
        --------
        viewfold.load : Read it back.
        viewfold.edit : Change a state file, and keep what it can be returned to.
        """
        # Estimators know no files: the room of state files is there when it is asked for.
        importlib.import_module("viewfold.store.models").save(self, path, wait=wait)

    # -- what is known of all samples

    @property
    @asks
    def labels_(self) -> NDArray[np.intp]:
        """The cluster of every sample ever seen, in the order of `ids_`."""
        return self._collected(self._fitted.labels(self._engine))

    @property
    @asks
    def ids_(self) -> Array:
        """Every sample ever seen, in the order of `labels_` and `embedding_`."""
        return self._collected(self._fitted.ids)

    @property
    @asks
    def n_samples_(self) -> int:
        """How many samples were ever seen."""
        return self._fitted.n_samples

    @property
    @asks
    def embedding_(self) -> Array:
        """The consensus: a row per sample."""
        return self._collected(self._fitted.embedding)

    @property
    @asks
    def views_(self) -> tuple[ViewRecord, ...]:
        """What is remembered of each view."""
        return self._fitted.views

    @property
    @asks
    def seen_(self) -> pd.DataFrame:
        """Who was in which view: a row of bools per sample, a column per view."""
        seen = self._collected(self._fitted.seen)
        return pd.DataFrame(seen, pd.Index(self.ids_, name="id"), self._fitted.names)

    @property
    @asks
    def history_(self) -> pd.DataFrame:
        """The cluster of every sample after each step, −1 before it was seen.

        A column for the fold of each view, and one for every later step, named after what was done
        and its entry in the log.
        """
        history = self._collected(self._fitted.history)
        return pd.DataFrame(history, pd.Index(self.ids_, name="id"), self._fitted.step_names)

    @property
    @asks
    def log_(self) -> pd.DataFrame:
        """What was done to the model and when (UTC), a row per entry: `viewfold.state.log.Event`.

        Examples
        --------
        >>> import numpy as np
        >>> from viewfold import ViewFold
        >>> model = ViewFold(2).fit({"labs": np.eye(6)}).forget([3])
        >>> model.log_[["what", "view", "n_samples", "n_forgotten"]].to_numpy().tolist()
        [['fold', 'labs', 6, <NA>], ['forget', None, 5, 1]]
        """
        state: State | None = getattr(self, "_state", None)
        return log_table((state and state.log) or self._fitted.log)

    @property
    @asks
    def events_(self) -> pd.DataFrame:
        """What happened to clusters from step to step: a row per event, none for the first step.

        The columns are those of `viewfold.explain.events.ClusterEvent`; docs/commands.md says what
        the kinds of events mean. ``before`` and ``after`` are numbers of clusters, ``said`` has the
        event in words.
        """
        return events_table(self._engine, self._fitted)

    @property
    @asks
    def n_clusters_(self) -> int:
        """How many clusters there are now."""
        return self._clusters.n_clusters

    @property
    @asks
    def cluster_names_(self) -> dict[int, str]:
        """The names of clusters that have one; see `rename`."""
        return dict(self._fitted.cluster_names)

    @property
    @asks
    def cluster_centers_(self) -> Array:
        """Centres of the clusters; see `viewfold.state.clusters.Clusters` for where they lie."""
        return np.asarray(self._clusters.centers.sum(axis=0))

    @property
    @asks
    def n_iter_(self) -> int:
        """Iterations of the last fold."""
        return self.views_[-1].n_iter

    @property
    @asks
    def n_features_in_(self) -> int:
        """Number of features, of a model that has seen one view (see `views_` for several)."""
        if len(self.views_) > 1:
            raise AttributeError("n_features_in_ is one view's; with several, look into views_.")
        return self.views_[0].n_features

    @property
    @asks
    def feature_names_in_(self) -> Array:
        """Names of the features, of a model that has seen one view with names."""
        if len(self.views_) > 1:
            raise AttributeError("feature_names_in_ is one view's; with several, look into views_.")
        if self.views_[0].features is None:
            raise AttributeError("The view had no feature names.")
        return np.array(self.views_[0].features, dtype=object)

    # -- questions

    to_frame = asks(answers.to_frame)
    annotate = asks(answers.annotate)
    movers = asks(answers.movers)
    uncertain = asks(answers.uncertain)
    stability = asks(answers.stability)
    transform = asks(answers.transform)
    predict = asks(answers.predict)
    predict_proba = asks(answers.predict_proba)
    predict_frame = asks(answers.predict_frame)
    export_encoder = asks(answers.export_encoder)
    score = asks(answers.score)
    features = asks(answers.features)
    explain = asks(answers.explain)
    loadings = asks(answers.loadings)
    variance = asks(answers.variance)

    # -- the state behind it

    @property
    def _fitted(self) -> State:
        state: State | None = getattr(self, "_state", None)
        if state is None or not state.views:
            raise AttributeError(
                f"This {type(self).__name__} has not folded a view yet. Call fit or partial_fit."
            )
        return state

    @property
    def _now(self) -> State:
        """The state, also before the first view, with its rows where they can be joined."""
        state: State = getattr(self, "_state", None) or State.empty()
        return state.placed(self._engine)

    @property
    def _clusters(self) -> Clusters:
        clusters = self._fitted.clusters
        assert clusters is not None
        return clusters

    @property
    def _judged(self) -> State:
        """The state with what confidence needs, which is found once."""
        state = self._fitted
        found = self._held.get("judged")
        if found is None or found[0] is not state:
            # Of a snapshot, the model itself has it, too: they share the dict.
            found = self._held["judged"] = (state, distinguished(state))
        return found[1]

    @property
    def _engine(self) -> Engine:
        """The engine that has the rows of this model."""
        state: State | None = getattr(self, "_state", None)
        return current_engine() if state is None else engine_of(state.embedding)

    @property
    def _n_features_out(self) -> int:
        return int(self._fitted.embedding.shape[1])

    def _keep(self, state: State) -> Self:
        clusters, before = state.clusters, getattr(self, "_state", None)
        if clusters is not None and clusters.apart is not None and state is not before:
            # What views tell apart is found again when it is asked for, from the state of then.
            state = replace(state, clusters=replace(clusters, apart=None))
        if state is not before:
            self._held = {}
        self._state = state
        return self

    def _collected(self, rows: RowSet) -> Array:
        """Return rows of all samples as one array; those that are known by row number in order."""
        state, found = self._fitted, self._engine.collect(rows)
        if state.length is None or not isinstance(state.ids, BucketRows):
            return found
        return np.asarray(found[np.argsort(self._engine.collect(state.ids))])

    def _confidence(self) -> tuple[Array, Array]:
        """Return the confidence of each sample, and the view that its label hangs on."""
        state, engine = self._judged, self._engine
        assert state.clusters is not None
        hangs = hangs_on(engine, state.clusters, state.directions, state.embedding, state.evidence)
        rows = state.embedding, state.seen, state.novelty
        sure = confidence(engine, state.clusters, *rows, hangs)
        return self._collected(sure), self._collected(hangs)[:, 0]

    def _names_of(self, labels: NDArray[np.intp]) -> dict[str, Array]:
        """Return a column for the names of clusters, None where there is none; if any has one."""
        names = self._fitted.cluster_names
        numbers = [*range(labels.max(initial=-1) + 1), -1]  # −1 is no cluster, and comes last
        called = np.array([names.get(number) for number in numbers], object)
        return {"name": called[labels]} if names else {}

    @property
    def _lock(self) -> Any:
        # Estimators of other packages have constructors of their own: it is made when it is needed,
        # and once, as dict.setdefault is atomic.
        return self.__dict__.setdefault("_lock_of_changes", RLock())

    def _snapshot(self) -> Self:
        return copy(self)

    def __getstate__(self) -> dict[str, Any]:
        # A lock cannot be copied, and a copy needs one of its own. dict() copies in one step, also
        # if another thread adds an attribute meanwhile.
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_lock_of_changes", None)
        return state

    # -- scikit-learn and notebooks

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return bool(getattr(self, "_state", None) and self._state.views)

    def __dir__(self) -> list[str]:
        return without_requests(super().__dir__())

    def _repr_html_inner(self) -> str:
        """Return what notebooks show: scikit-learn's diagram, once fitted within a card."""
        if not self.__sklearn_is_fitted__():
            return str(super()._repr_html_inner())
        # The diagram of a fitted model would compute, and collect, each of its attributes.
        diagram = clone(self)._repr_html_inner()
        try:
            card = importlib.import_module("viewfold.web.card").card
            return str(card(self._snapshot(), diagram))
        except Exception:  # showing a model never fails, not even one whose engine is closed
            return str(diagram)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        diagram = get_config()["display"] == "diagram"
        shown = {"text/html": self._repr_html_inner()} if diagram else {}
        return {"text/plain": repr(self), **shown}
