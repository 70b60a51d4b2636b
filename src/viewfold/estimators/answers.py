"""What a model answers: methods of `FoldingEstimator` that change nothing, as plain functions."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from viewfold._util.arguments import is_whole_number
from viewfold._util.types import Array, IdsOfViews, PathLike, Seed, ViewsLike
from viewfold.estimators.known import check_y, known_view, place_rows
from viewfold.explain.events import movers_table
from viewfold.explain.features import (
    Explanation,
    ViewEffects,
    explain_sample,
    feature_table,
    variance_table,
    view_effects,
    with_moments,
)
from viewfold.explain.features import loadings as loadings_table
from viewfold.method.clusters import silhouette, stability_table
from viewfold.state.clusters import assign, confidence, next_nearest, scattered, sure_enough
from viewfold.state.hashes import seed_of
from viewfold.state.novelty import belief, to_levels, to_share, to_surprise

if TYPE_CHECKING:
    from viewfold.estimators.base import FoldingEstimator


def to_frame(
    self: FoldingEstimator,
    backend: Literal["pandas", "polars"] = "pandas",
    *,
    min_confidence: float | None = None,
    max_novelty: float | None = None,
) -> Any:
    """Return a row for every sample ever seen: its cluster, and how far to trust that.

    Confidence is the probability that a sample is in the right cluster (docs/method.md says how far
    to trust it). Novelty is the share of known rows that are less unlike the others than the row of
    the sample was when it came, of several views the most; NaN if that is not known. ``hangs_on``
    names the view without which the sample would be in another cluster; None if there is none.

    Parameters
    ----------
    backend : {"pandas", "polars"}, default="pandas"
        Whose DataFrame to return. That of polars has a first column ``id``, in which all ids are
        texts if some are.
    min_confidence : float, optional
        Samples that are less certain get −1, the label of noise.
    max_novelty : float, optional
        So do samples that are more unlike known ones: 0.99 lets 1 % of these go, too.

    Returns
    -------
    DataFrame
        With the columns cluster, confidence, novelty, hangs_on and views_seen; and name, if
        clusters have names.

    See Also
    --------
    viewfold.ViewFold.uncertain : The least certain samples, each with its next cluster.
    viewfold.ViewFold.annotate : The same into an AnnData or MuData.
    """
    if backend not in ("pandas", "polars"):
        raise ValueError(f"backend={backend!r}: expected 'pandas' or 'polars'.")
    check_is_fitted(self)
    ids, (sure, hangs) = self.ids_, self._confidence()
    novelty = to_share(to_surprise(self._collected(self._fitted.novelty)))
    labels = sure_enough(self.labels_, sure, min_confidence, novelty, max_novelty)
    seen = self._collected(self._fitted.seen).sum(axis=1)
    columns = {"cluster": labels, **self._names_of(labels)}
    views = np.array([None, *self._fitted.names, None], object)  # the last one: not known
    columns |= {"confidence": sure, "novelty": novelty, "hangs_on": views[hangs]}
    columns["views_seen"] = seen
    if backend == "pandas":
        return pd.DataFrame(columns, index=pd.Index(ids, name="id"))
    try:
        polars = importlib.import_module("polars")
    except ImportError as error:
        raise ImportError("backend='polars' needs polars: pip install polars") from error
    known = ids.tolist() if ids.dtype.kind == "i" else [str(i) for i in ids]
    return polars.DataFrame({"id": known, **columns})


def annotate(
    self: FoldingEstimator,
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
        It gets ``obs[key]``, a categorical with the clusters as texts, as scanpy has them;
        ``obs[f"{key}_confidence"]``; ``obs[f"{key}_name"]``, if clusters have names;
        ``obsm[f"X_{key}"]``, the embedding. Of a MuData, so do the samples of each modality.
    key : str, default="viewfold"
        The name of these columns.
    ids : str, optional
        The column of ``obs`` that holds the ids, instead of ``obs_names``.
    overwrite : bool, default=False
        Whether to replace columns of these names.
    copy : bool, default=False
        Whether to annotate a copy, and return that.
    min_confidence : float, optional
        Samples that are less certain have the category −1; see `to_frame`.
    """
    from viewfold.data.hdf5 import Annotation

    check_is_fitted(self)
    sure, _ = self._confidence()
    labels = sure_enough(self.labels_, sure, min_confidence)
    known = Annotation(self.ids_, labels, sure, self.embedding_, key, self.cluster_names_)
    data = data.copy() if copy else data
    known.into_object(data, ids, overwrite)
    return data if copy else None


def movers(
    self: FoldingEstimator, view: str | int = -1, *, entry: int | None = None
) -> pd.DataFrame:
    """Return the samples that changed their cluster when a view was folded, or at another step.

    A DataFrame has their clusters ``before`` and ``after``, by id, without samples that were new.

    Parameters
    ----------
    view : str or int, default=-1
        Name or number of the view; the last one if not given.
    entry : int, optional
        The log entry of a step, instead.

    See Also
    --------
    viewfold.ViewFold.to_frame : The cluster of everybody.
    """
    check_is_fitted(self)
    entry = known_view(self.views_, view).entry if entry is None else entry
    history = self._collected(self._fitted.history)
    return movers_table(self.ids_, history, self._fitted.steps, entry)


def uncertain(self: FoldingEstimator, n: int = 20) -> pd.DataFrame:
    """Return the `n` samples whose cluster is least certain, the least certain first.

    A DataFrame has, by id, ``cluster``, ``confidence`` (see `to_frame`) and ``next_cluster``, the
    one that the sample would be in otherwise; −1 if there is no other.
    """
    if not is_whole_number(n) or n < 1:
        raise ValueError(f"n={n}: ask for one sample or more, with a whole number.")
    frame, state, engine = self.to_frame(), self._fitted, self._engine
    other = next_nearest(engine, self._clusters, state.embedding, state.labels(engine))
    frame.insert(2, "next_cluster", self._collected(other))
    least = frame["confidence"].to_numpy().argsort(kind="stable")[:n]
    return frame.drop(columns=["novelty", "hangs_on", "views_seen"]).iloc[least]


def stability(
    self: FoldingEstimator, n_resamples: int = 20, *, random_state: Seed = 0
) -> pd.DataFrame:
    """Return how well each cluster is found again in resampled rows of the consensus.

    Rows are drawn with replacement, `n_resamples` times, and clusters found anew. The stability of
    a cluster is its mean Jaccard similarity (of its drawn samples with those of a new cluster: how
    many are in both, over how many are in either) to the new cluster that resembles it most.

    Returns
    -------
    DataFrame
        By ``cluster``: ``size``, ``stability`` from 0 to 1, and ``trusted``: False if it is
        below 0.6, or not known as none of its samples was drawn. Clusters from 0.75 on are
        stable; in between, it is doubtful which samples exactly belong to them.

    Notes
    -----
    At most 2,000 rows are used, or 50 for each cluster. A stable cluster is found again in rows of
    *this* consensus; that it means something is another question (docs/method.md).
    """
    check_is_fitted(self)
    if not is_whole_number(n_resamples) or n_resamples < 1:
        raise ValueError(
            f"n_resamples={n_resamples}: draw rows at least once; give a whole number."
        )
    method = clone(self).set_params(n_clusters=self._clusters.n_clusters)._method()
    seed = seed_of(random_state)
    return stability_table(self._engine, self._fitted, method, n_resamples, seed)


def transform(
    self: FoldingEstimator,
    X: ViewsLike,
    *,
    ids: IdsOfViews = None,
    view: str | int | None = None,
    rename: Mapping[str, str] | None = None,
) -> Array:
    """Embed rows of known views, as if their samples had been in these views alone.

    Parameters
    ----------
    X : view, list of views, dict of views or MuData
        Rows with the features of a known view, read as the view was when it was folded. Columns
        that have names may be in any order; those that are missing count as missing cells, and
        others are ignored, with a warning. Samples of several views get the mean over the views
        that they are in: they are matched by id, or by row number, with rows of NaN for the views
        that they lack. In a list, files and `View` belong to the known view of their name,
        everything else by its place in the list.
    ids : array-like, str, False, list or dict, optional
        The ids of the view, or those of each view; see `as_views`.
    view : str or int, optional
        Name or number of the view; needed for one view without a name if there is more than
        one. Of several, the one to take.
    rename : dict of str to str, optional
        New names of columns, by the names that the view knows: ``{"iron": "Fe"}``. Nothing is
        remembered of it here; `partial_fit` remembers it.

    Returns
    -------
    ndarray of shape (n_rows, n_components)
        In the order of the rows; of several views with ids, in the order of the samples of the
        first, then those that are new in the second, and so on (see `predict_frame`).

    See Also
    --------
    viewfold.ViewFold.predict : The clusters of such rows. It says what both cost.
    """
    check_is_fitted(self)
    found = place_rows(self, X, ids, view, rename)
    return found.collect(found.rows)


def predict(
    self: FoldingEstimator,
    X: ViewsLike,
    *,
    ids: IdsOfViews = None,
    view: str | int | None = None,
    min_confidence: float | None = None,
    max_novelty: float | None = None,
    rename: Mapping[str, str] | None = None,
) -> NDArray[np.intp]:
    """Return the cluster of each row of known views; the model stays as it is.

    Parameters
    ----------
    X, ids, view, rename
        Rows with the features of a known view, or of several; see `transform`.
    min_confidence, max_novelty : float, optional
        Samples that are less certain, or more unlike known ones, get −1; see `to_frame`.

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
    if min_confidence is not None or max_novelty is not None:
        limits = {"min_confidence": min_confidence, "max_novelty": max_novelty}
        frame = self.predict_frame(X, ids=ids, view=view, rename=rename, **limits)
        return np.asarray(frame["cluster"])
    check_is_fitted(self)
    found = place_rows(self, X, ids, view, rename)
    return found.collect(assign(self._engine, self._clusters, found.rows))


def predict_frame(
    self: FoldingEstimator,
    X: ViewsLike,
    *,
    ids: IdsOfViews = None,
    view: str | int | None = None,
    min_confidence: float | None = None,
    max_novelty: float | None = None,
    rename: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Return the cluster of each sample of new rows, with confidence and novelty, by id.

    Parameters
    ----------
    X, ids, view, rename, min_confidence, max_novelty
        See `predict`.

    Returns
    -------
    DataFrame
        With the columns ``cluster``, ``confidence`` and ``novelty`` (see `to_frame`), and ``name``
        if clusters have names. Who is in fewer of the views is less certain.

    See Also
    --------
    viewfold.ViewFold.predict : Clusters alone, in the order of the rows.
    viewfold.ViewFold.uncertain : The least certain of the samples that were folded.
    """
    check_is_fitted(self)
    engine, found = self._engine, place_rows(self, X, ids, view, rename, surprise=True)
    surprise = found.collect(found.surprise)
    with engine.session():
        state = self._judged
        assert state.clusters is not None
        clusters = scattered(engine, state.clusters, state.embedding)
        labels = found.collect(assign(engine, clusters, found.rows))
        sure = found.collect(confidence(engine, clusters, found.rows, found.seen))
    sure, novelty = sure * belief(to_levels(surprise)), to_share(surprise)
    labels = sure_enough(labels, sure, min_confidence, novelty, max_novelty)
    return pd.DataFrame(
        {"cluster": labels, **self._names_of(labels), "confidence": sure, "novelty": novelty},
        index=pd.Index(found.collect(found.ids), name="id"),
    )


def predict_proba(
    self: FoldingEstimator,
    X: ViewsLike,
    *,
    ids: IdsOfViews = None,
    view: str | int | None = None,
    rename: Mapping[str, str] | None = None,
) -> Array:
    """Return the probability of every cluster for each row of known views.

    Parameters
    ----------
    X, ids, view, rename
        See `transform`.

    Returns
    -------
    ndarray of shape (n_rows, n_clusters)
        Rows sum to 1. The largest number of a row is the confidence of `predict_frame`, which is
        lower for rows that are unlike all known ones.
    """
    check_is_fitted(self)
    engine, found = self._engine, place_rows(self, X, ids, view, rename)
    with engine.session():
        state = self._judged
        assert state.clusters is not None
        clusters = scattered(engine, state.clusters, state.embedding)
        return found.collect(confidence(engine, clusters, found.rows, found.seen, each=True))


def export_encoder(self: FoldingEstimator, path: PathLike) -> None:
    """Write a small file from which `viewfold.load_encoder` predicts: no sample is in it.

    It holds the encoders of the views, what became of their columns, and the centres and names of
    clusters; no ids, and nothing by which the model could learn or forget. A file that is there is
    replaced in one step. docs/howto/serve.md shows a service that uses it.

    Parameters
    ----------
    path : path
        Where to, such as ``patients.vfe``.
    """
    check_is_fitted(self)
    importlib.import_module("viewfold.store.encoder").write(self, path)


def score(
    self: FoldingEstimator, X: ViewsLike, y: object = None, *, view: str | int | None = None
) -> float:
    """Return how well rows of a known view lie in their clusters; the more the better.

    The mean silhouette of the rows in the embedding, with squared distances, from −1 to 1: near 1
    if they are close to their own cluster and far from the next one, 0 if all are in one. It can be
    compared across numbers of clusters and encoders, as `GridSearchCV` does, and needs no classes.

    Parameters
    ----------
    X, view
        See `transform`.
    y : Ignored
        Not used, present for API consistency. `viewfold.metrics` compares with classes.

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
    labels = assign(self._engine, self._clusters, embedded)
    return silhouette(self._engine, embedded, labels, self._clusters.n_clusters)


def features(
    self: FoldingEstimator,
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
    tellers, k = ask_views(self, view), self._clusters.n_clusters
    if cluster is not None and (not is_whole_number(cluster) or not 0 <= cluster < k):
        raise ValueError(f"There is no cluster {cluster!r}: there are {k}, from 0 to {k - 1}.")
    _check_top(top)
    clusters = range(k) if cluster is None else [int(cluster)]
    found = feature_table(tellers, clusters, top)
    few = {one.view.name: [c for c in one.too_few() if c in clusters] for one in tellers}
    left = "; ".join(f"{name!r}: {', '.join(map(str, of))}" for name, of in few.items() if of)
    if left:
        said = "Clusters with fewer than ten samples in a view are left out of what it tells"
        if not len(found):
            raise ValueError(f"{said}, and no others are asked for ({left}).")
        warnings.warn(f"{said} ({left}).", stacklevel=3)
    return found


def explain(
    self: FoldingEstimator, id: int | str, *, view: str | int | None = None, top: int | None = 10
) -> Explanation:
    """Return why a sample is in its cluster, and what speaks for the next one.

    Values of features are what its row of the consensus says of them: no cell of a view is kept.
    ``print`` says the answer in a few lines.

    Parameters
    ----------
    id : int or str
        The sample.
    view, top
        Which view to ask, and how many features to name; see `features`.

    See Also
    --------
    viewfold.ViewFold.features : What makes a cluster.
    viewfold.ViewFold.uncertain : Samples about which it is worth asking.
    """
    tellers = ask_views(self, view)
    _check_top(top)
    return explain_sample(self._engine, self._judged, id, tellers, top)


def loadings(self: FoldingEstimator, view: str | int | None = None) -> pd.DataFrame:
    """Return the weights of the components of the consensus for the features of a view.

    A DataFrame has a row for each feature and a column for each column of `embedding_`: by how many
    of its standard deviations a feature changes with one standard deviation of the component; NaN
    for features that do not vary. The view is needed if there is more than one.
    """
    check_is_fitted(self)
    (one,) = ask_views(self, known_view(self.views_, view).name)
    return loadings_table(self._engine, self._fitted, one)


def variance(self: FoldingEstimator) -> pd.DataFrame:
    """Return the share of each view's variance that consensus and clusters explain.

    A DataFrame has a row for each view: ``consensus``, what consensus and clusters explain
    together; ``clusters``, what the clusters explain; and what each cluster adds to that, in a
    column of its number. NaN for clusters with fewer than ten samples in the view.

    See Also
    --------
    viewfold.ViewFold.loadings : Which features go with which component.
    """
    return variance_table(self._engine, self._fitted, ask_views(self, None))


def ask_views(self: FoldingEstimator, view: str | int | None) -> list[ViewEffects]:
    """Return what one view, or each, tells; say why others cannot."""
    check_is_fitted(self)
    asked = self.views_ if view is None else (known_view(self.views_, view),)
    views, reasons = with_moments(asked)
    if reasons:
        warnings.warn(" ".join(reasons), stacklevel=4)
    return view_effects(self._engine, self._fitted, views)


def _check_top(top: int | None) -> None:
    if top is not None and (not is_whole_number(top) or top < 1):
        raise ValueError(f"top=… is {top!r}, but should be a whole number from 1 on.")
