"""What a model tells about all samples it has ever seen."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from viewfold._util.arguments import is_whole_number, which_view
from viewfold._util.types import Array
from viewfold.estimators.turns import Shared, asks
from viewfold.explain import distinguished
from viewfold.explain.events import ClusterEvent, events_between
from viewfold.rows import BucketRows, Engine, RowSet, current_engine, engine_of
from viewfold.state.clusters import confidence, sure_enough
from viewfold.state.log import Event
from viewfold.state.state import State, ViewRecord


def known_view(views: Sequence[ViewRecord], view: str | int | None) -> ViewRecord:
    """Return the record of a view by its name or number; of the only one, if there is one."""
    names = [record.name for record in views]
    return views[which_view(names, view, "the model has folded")]


class Results(Shared):
    """What a fitted model tells: samples, clusters, views, history and log."""

    _state: State
    _held: dict[str, tuple[State, State]]

    @asks
    def to_frame(
        self,
        backend: Literal["pandas", "polars"] = "pandas",
        *,
        min_confidence: float | None = None,
    ) -> Any:
        """Return a row for every sample ever seen: cluster, confidence, number of views seen.

        Confidence is the probability that a sample is in the right cluster, as far as distances
        to the centres of clusters and its views tell; docs/method.md says how far.

        Parameters
        ----------
        backend : {"pandas", "polars"}, default="pandas"
            Whose DataFrame to return. That of polars has no index, but a first column ``id``;
            where some ids are numbers and some are texts, all of them are texts in it.
        min_confidence : float, optional
            Samples that are less certain have −1 for their cluster, the label of noise. Labels that
            are kept stay as they are.

        Returns
        -------
        DataFrame
            Of pandas or polars, with the columns cluster, confidence and views_seen; and name, if
            clusters have names.

        See Also
        --------
        viewfold.ViewFold.uncertain : The least certain samples, each with its next cluster.
        viewfold.ViewFold.movers : Who changed the cluster, and when.
        viewfold.ViewFold.annotate : The same into an AnnData or MuData.
        """
        if backend not in ("pandas", "polars"):
            raise ValueError(f"backend={backend!r}: expected 'pandas' or 'polars'.")
        frame = self._to_pandas(min_confidence)
        if backend == "pandas":
            return frame
        try:
            polars = importlib.import_module("polars")
        except ImportError as error:
            raise ImportError("backend='polars' needs polars: pip install polars") from error
        ids = self.ids_
        known = ids.tolist() if ids.dtype.kind == "i" else [str(i) for i in ids]
        columns = {name: frame[name].to_numpy() for name in frame}
        return polars.DataFrame({"id": known, **columns})

    @asks
    def annotate(
        self,
        data: Any,
        *,
        key: str = "viewfold",
        ids: str | None = None,
        overwrite: bool = False,
        copy: bool = False,
        min_confidence: float | None = None,
    ) -> Any:
        """Write clusters, confidence and embedding into an AnnData or MuData.

        Samples are matched by their names (whole numbers as they are written); those that are not
        known get no category, and NaN. ``viewfold export s.vf cells.h5ad`` does the same with a
        file of any size.

        Parameters
        ----------
        data : AnnData or MuData
            What is annotated: ``obs[key]``, a categorical with the clusters as texts, as scanpy has
            them; ``obs[f"{key}_confidence"]``; ``obs[f"{key}_name"]``, if clusters have names;
            ``obsm[f"X_{key}"]``, the embedding. Of a MuData, each modality gets the same for its
            own samples.
        key : str, default="viewfold"
            What they are called.
        ids : str, optional
            The column of ``obs`` that holds the ids, instead of ``obs_names``.
        overwrite : bool, default=False
            Whether to replace what is called so already.
        copy : bool, default=False
            Whether to annotate a copy, and return that.
        min_confidence : float, optional
            Samples that are less certain have the category −1; see `to_frame`.

        Returns
        -------
        AnnData, MuData or None
            The copy, if one was asked for.
        """
        from viewfold.data.annotate import Annotation

        check_is_fitted(self)
        sure = self._confidence()
        labels = sure_enough(self.labels_, sure, min_confidence)
        names = self.cluster_names_
        known = Annotation(self.ids_, labels, sure, self.embedding_, key, names)
        data = data.copy() if copy else data
        known.into_object(data, ids, overwrite)
        return data if copy else None

    def _to_pandas(self, min_confidence: float | None) -> pd.DataFrame:
        check_is_fitted(self)
        sure = self._confidence()
        labels = sure_enough(self.labels_, sure, min_confidence)
        return pd.DataFrame(
            {
                "cluster": labels,
                **self._names_of(labels),
                "confidence": sure,
                "views_seen": self.seen_.to_numpy().sum(axis=1),
            },
            index=pd.Index(self.ids_, name="id"),
        )

    def _names_of(self, labels: NDArray[np.intp]) -> dict[str, Array]:
        """Return a column for the names of clusters, None where there is none; if any has one."""
        names = self.cluster_names_
        numbers = [*range(labels.max(initial=-1) + 1), -1]  # −1 is no cluster, and comes last
        called = np.array([names.get(number) for number in numbers], object)
        return {"name": called[labels]} if names else {}

    @property
    @asks
    def cluster_names_(self) -> dict[int, str]:
        """The names of clusters that have one; see `rename`."""
        return dict(self._fitted.cluster_names)

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
        return self._frame(self._fitted.seen)

    @property
    @asks
    def history_(self) -> pd.DataFrame:
        """The cluster of every sample after each step, −1 before it was seen.

        A column for the fold of each view, and for every later step (more rows of a view, another
        number of clusters) one that is called after what was done and its entry in the log.
        """
        state = self._fitted
        history = self._collected(state.history)
        return pd.DataFrame(history, pd.Index(self.ids_, name="id"), state.step_names)

    @property
    @asks
    def log_(self) -> pd.DataFrame:
        """What was done to the model and when (UTC): a row per entry, see `core.log.Event`.

        Examples
        --------
        >>> import numpy as np
        >>> from viewfold import ViewFold
        >>> model = ViewFold(2).fit({"labs": np.eye(6)}).forget([3])
        >>> model.log_[["what", "view", "n_samples", "n_forgotten"]].to_numpy().tolist()
        [['fold', 'labs', 6, <NA>], ['forget', None, 5, 1]]
        """
        names = [field.name for field in fields(Event)]
        state: State | None = getattr(self, "_state", None)
        log = state.log if state is not None and state.log else self._fitted.log
        frame = pd.DataFrame([asdict(event) for event in log], columns=names)
        counts = [name for name in names if name.startswith("n_")]
        return frame.astype(dict.fromkeys([*counts, "undoes"], "Int64")).set_index("entry")

    @property
    @asks
    def events_(self) -> pd.DataFrame:
        """What happened to clusters from step to step: a row per event, none for the first step.

        Clusters are ``merged``, ``split``, ``born`` or ``vanished``; those that go on as one
        ``grew`` or ``shrank``, or were ``renumbered``. ``before`` and ``after`` are their numbers;
        a free number is given to another cluster. See `viewfold.explain.events.ClusterEvent`.

        Examples
        --------
        >>> import numpy as np
        >>> from viewfold import ViewFold
        >>> y = np.repeat([0, 1, 2, 3], 20)
        >>> X = 9 * np.eye(4)[y] + np.random.default_rng(0).normal(size=(80, 4))
        >>> model = ViewFold(4, random_state=0).fit(X).recluster(3)
        >>> model.events_[["step", "kind", "samples", "share"]].to_numpy().tolist()
        [['recluster (2)', 'merged', 40, 1.0]]
        """
        state = self._fitted
        found = events_between(self._engine, state.history, state.steps, state.step_names)
        names = [field.name for field in fields(ClusterEvent)]
        return pd.DataFrame([vars(event) for event in found], columns=names)

    @asks
    def movers(self, view: str | int = -1, *, entry: int | None = None) -> pd.DataFrame:
        """Return the samples that changed their cluster when a view was folded, or at another step.

        Parameters
        ----------
        view : str or int, default=-1
            Name or number of the view; the last one if not given.
        entry : int, optional
            The log entry of a step, instead: a fold, more rows of a view, another number of
            clusters.

        Returns
        -------
        DataFrame
            Their clusters ``before`` and ``after``, by id; samples that were new are not in it.

        See Also
        --------
        viewfold.ViewFold.to_frame : The cluster of everybody.
        """
        check_is_fitted(self)
        steps = self._fitted.steps
        entry = known_view(self.views_, view).entry if entry is None else entry
        if not is_whole_number(entry) or entry not in steps:
            raise ValueError(f"Entry {entry} moved nobody: entries that may are {list(steps)}.")
        i = steps.index(entry)
        history = self._collected(self._fitted.history)
        after = history[:, i]
        before = history[:, i - 1] if i else after
        moved = (before >= 0) & (before != after)
        index = pd.Index(self.ids_[moved], name="id")
        return pd.DataFrame({"before": before[moved], "after": after[moved]}, index=index)

    def _frame(self, per_view: RowSet) -> pd.DataFrame:
        names = [record.name for record in self.views_]
        return pd.DataFrame(
            self._collected(per_view), index=pd.Index(self.ids_, name="id"), columns=names
        )

    @property
    @asks
    def cluster_centers_(self) -> Array:
        """Centres of the clusters; see `viewfold.state.clusters.Clusters` for where they lie."""
        clusters = self._fitted.clusters
        assert clusters is not None
        return np.asarray(clusters.centers.sum(axis=0))

    @property
    @asks
    def n_iter_(self) -> int:
        """Iterations of the last fold."""
        return self.views_[-1].n_iter

    @property
    @asks
    def n_features_in_(self) -> int:
        """Number of features, of a model that has seen one view (see `views_` for several)."""
        return self._only_view("n_features_in_").n_features

    @property
    @asks
    def feature_names_in_(self) -> Array:
        """Names of the features, of a model that has seen one view with names."""
        features = self._only_view("feature_names_in_").features
        if features is None:
            raise AttributeError("The view had no feature names.")
        return np.array(features, dtype=object)

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
    def _fitted(self) -> State:
        state: State | None = getattr(self, "_state", None)
        if state is None or not state.views:
            raise AttributeError(
                f"This {type(self).__name__} has not folded a view yet. "
                + "Call fit or partial_fit."
            )
        return state

    @property
    def _engine(self) -> Engine:
        """The engine that has the rows of this model."""
        state: State | None = getattr(self, "_state", None)
        return current_engine() if state is None else engine_of(state.embedding)

    def _collected(self, rows: RowSet) -> Array:
        """Return rows of all samples as one array; those that are known by row number in order."""
        state, found = self._fitted, self._engine.collect(rows)
        if state.length is None or not isinstance(state.ids, BucketRows):
            return found
        ordered: Array = found[np.argsort(self._engine.collect(state.ids))]
        return ordered

    def _confidence(self) -> Array:
        engine, state = self._engine, self._judged
        assert state.clusters is not None
        return self._collected(confidence(engine, state.clusters, state.embedding, state.seen))

    def _only_view(self, asked: str) -> ViewRecord:
        if len(self.views_) > 1:
            raise AttributeError(f"{asked} is one view's; with several, look into views_.")
        return self.views_[0]
