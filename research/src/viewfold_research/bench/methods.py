"""Who takes part in the experiments: viewfold's own methods, baselines, and those of plug-ins.

A method gets views and a mask and returns an embedding or labels. Other packages add theirs by an
entry point in the group ``viewfold.method``; see `Contender` for what it is called with.
Estimators that are registered (docs/extending.md) take part, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from viewfold import as_view
from viewfold import missing as patterns
from viewfold.estimators import FCMVC
from viewfold.rows import Engine
from viewfold.state.clusters import Clusters
from viewfold.state.registry import METHODS
from viewfold.state.transitions import Method
from viewfold_research import baselines
from viewfold_research._linalg import Array, Matrix
from viewfold_research.baselines._base import Aligned, Baseline

GROUP = "viewfold.method"
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Answer:
    """What a method says, where an array alone does not say it all.

    Attributes
    ----------
    embeddings : tuple of ndarrays of shape (n_samples, any)
        Rows for k-means. Where there are several, the one with the best mean accuracy counts: a
        choice that needs the classes, which no method has. Only `best_single_view` makes use of it,
        as the field does.
    labels : ndarray of int, shape (n_samples,), or None
        The clusters, of a method that finds them itself: one run, instead of many of k-means.
    unit_rows : bool
        Whether the rows are scaled to unit length before k-means.
    curves : tuple of tuples of float
        The objective after each iteration, for each view.
    """

    embeddings: tuple[Array, ...] = ()
    labels: Array | None = None
    unit_rows: bool = True
    curves: tuple[tuple[float, ...], ...] = ()


class Contender(Protocol):
    """What a method is: a function of four arguments.

    ``views`` are complete arrays or CSR matrices, samples × features, as they are in the file, in
    the order in which they arrive. ``missing`` (bool, samples × views) says which rows are not
    there: a method must not look at those. It returns an embedding (2-D: k-means then runs on its
    rows, scaled to unit length), labels (1-D), or an `Answer`.
    """

    def __call__(
        self, views: list[Matrix], missing: Mask, n_clusters: int, seed: int
    ) -> Array | Answer:
        """Cluster, or embed."""


def standardised(X: Matrix, rows: Mask | None = None) -> Array:
    """Return z-scores by statistics of some rows: divisor n − 1, a constant feature becomes 0."""
    X = _dense(X)
    base = X if rows is None else X[rows]
    spread = base.std(axis=0, ddof=1) if len(base) > 1 else np.zeros(X.shape[1], X.dtype)
    varies = spread > 1e-12 * np.abs(base).max(axis=0, initial=0)
    result: Array = X - base.mean(axis=0)
    result *= np.divide(1, spread, out=np.zeros_like(spread), where=varies)
    return result


def _dense(X: Matrix) -> Array:
    whole = X.toarray() if sparse.issparse(X) else X
    return np.asarray(whole, dtype=np.float32 if X.dtype == np.float32 else np.float64)


def fcmvc_iv(
    views: list[Matrix],
    missing: Mask,
    n_clusters: int,
    seed: int,
    *,
    z_step: Literal["paper", "exact"] = "paper",
) -> Answer:
    """FCMVC-IV, its views standardised over all rows before any are removed, as the authors do.

    Sparse views, which would not stay sparse, are standardised over the rows that are there.
    """
    scaled = [X if sparse.issparse(X) else standardised(X, _known(X)) for X in views]
    return _fold_fcmvc(scaled, missing, n_clusters, z_step)


def _known(X: Matrix) -> Mask | None:
    """Tell which rows the file has; None if it has all."""
    gone = lacking([X])[:, 0]
    return ~gone if gone.any() else None


def fcmvc_filled(
    views: list[Matrix], missing: Mask, n_clusters: int, seed: int, *, fill: Literal["zero", "mean"]
) -> Answer:
    """FCMVC after rows that are missing were filled.

    Raw features are filled, and standardised afterwards: on standardised ones both fillings would
    give FCMVC-IV itself.
    """
    full = [filled(X, missing[:, v], fill) for v, X in enumerate(views)]
    nothing = np.zeros_like(missing)
    scaled = [X if sparse.issparse(X) else standardised(X) for X in full]
    return _fold_fcmvc(scaled, nothing, n_clusters, "paper")


def filled(X: Matrix, gone: Mask, fill: Literal["zero", "mean"]) -> Matrix:
    """Return a view in which rows that are missing are zero, or the mean of the others."""
    if not gone.any():
        return X
    if sparse.issparse(X):
        kept = sparse.diags_array((~gone).astype(X.dtype)) @ X
        if fill == "zero":
            return kept.tocsr()
        mean = sparse.csr_array(X[~gone].mean(axis=0)[None, :])
        return (kept + sparse.csr_array(gone[:, None].astype(float)) @ mean).tocsr()
    full = np.array(_dense(X))
    full[gone] = 0 if fill == "zero" else full[~gone].mean(axis=0)
    return full


def _fold_fcmvc(
    views: list[Matrix], missing: Mask, n_clusters: int, z_step: Literal["paper", "exact"]
) -> Answer:
    model = Unclustered(n_clusters, z_step=z_step, keep_encoders=False)
    for v, view in enumerate(patterns.by_mask(views, missing)):
        model.set_params(scale="zscore" if sparse.issparse(views[v]) else None)
        model.partial_fit(view, view=f"view{v}")
    embedding = np.empty_like(model.embedding_)
    embedding[model.ids_] = model.embedding_
    return Answer((embedding,), curves=tuple(record.objective for record in model.views_))


class Unclustered(FCMVC):
    """FCMVC without k-means after each fold, which the paper does not time."""

    def _method(self) -> Method:
        return replace(super()._method(), cluster=_one_cluster)


def _one_cluster(engine: Engine, ids: Array, embedding: Array, **_: Any) -> tuple[Array, Clusters]:
    return np.zeros(ids.size, np.intp), Clusters(np.eye(1), np.zeros((1, 1, 1)))


def estimator(
    views: list[Matrix], missing: Mask, n_clusters: int, seed: int, *, name: str = "ViewFold"
) -> Array:
    """Cluster by an estimator of viewfold with its defaults: the labels that its users get.

    Those of ViewFold hardly depend on chance, so there is one run: its only value stands against
    the mean of the runs of others, which is fair, and against their best, which is not fair to it.
    """
    model = METHODS[name](n_clusters=n_clusters, random_state=seed, keep_encoders=False)
    model.fit(patterns.by_mask(views, missing))
    labels = np.empty_like(model.labels_)
    labels[model.ids_] = model.labels_
    return labels


def concatenated(views: list[Matrix], missing: Mask, n_clusters: int, seed: int) -> Answer:
    """Put the views side by side, standardised over the rows that are there, zero elsewhere."""
    return Answer((np.hstack(_zero_filled(views, missing)),), unit_rows=False)


def best_single_view(views: list[Matrix], missing: Mask, n_clusters: int, seed: int) -> Answer:
    """Take each view alone, standardised over the rows that are there, zero elsewhere."""
    return Answer(tuple(_zero_filled(views, missing)), unit_rows=False)


def _zero_filled(views: list[Matrix], missing: Mask) -> list[Array]:
    result = []
    for v, X in enumerate(views):
        scaled = standardised(X, ~missing[:, v])
        scaled[missing[:, v]] = 0
        result.append(scaled)
    return result


def baseline(
    views: list[Matrix],
    missing: Mask,
    n_clusters: int,
    seed: int,
    *,
    of: str,
    scale: str | None = None,
    **parameters: Any,
) -> Answer:
    """Run a method of `viewfold_research.baselines`, short of its k-means.

    Views are scaled by the method's default; where that leaves negative features to a method that
    takes none, features are brought to [0, 1].

    Parameters
    ----------
    views, missing, n_clusters, seed
        See `Contender`. A row of NaN is missing, too.
    of : str
        The name of its class.
    scale : {'none', 'zscore', 'unit', 'minmax'}, optional
        How to scale instead.
    **parameters
        Other parameters of the class that are not to have their defaults.
    """
    model = getattr(baselines, of)(n_clusters, random_state=seed, **parameters)
    data = _aligned(views, missing)
    if scale is None and model.nonnegative and any(X.min() < 0 for X in data.views):
        scale = "minmax"
    if scale is not None:
        model.set_params(scale=scale)
    found = model.solve(data)
    embeddings = () if found.embedding is None or found.labels is not None else (found.embedding,)
    return Answer(embeddings, found.labels, unit_rows=False, curves=(found.objective,))


def _aligned(views: list[Matrix], missing: Mask) -> Aligned:
    gone = missing | lacking(views)
    if gone.all(axis=1).any():
        raise ValueError(f"Sample {np.flatnonzero(gone.all(axis=1))[0]} is in no view.")
    full = [filled(X.astype(np.float64), gone[:, v], "zero") for v, X in enumerate(views)]
    return Aligned(tuple(full), ~gone, np.arange(len(gone)))


def lacking(views: list[Matrix]) -> Mask:
    """Tell which samples views lack by themselves: rows of NaN, or of zeros (see `as_view`)."""
    gone = np.zeros((views[0].shape[0], len(views)), bool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for v, X in enumerate(views):
            present = as_view(X).rows.present
            if present is not None:
                gone[:, v] = True
                gone[present, v] = False
    return gone


BUILT_IN: dict[str, Contender] = {
    "FCMVC-IV": fcmvc_iv,
    "FCMVC-IV exact": partial(fcmvc_iv, z_step="exact"),
    "FCMVC+ZF": partial(fcmvc_filled, fill="zero"),
    "FCMVC+AF": partial(fcmvc_filled, fill="mean"),
    "ViewFold": estimator,
    "concatenated k-means": concatenated,
    "best single view": best_single_view,
}


BASELINES = {
    {"MultiNMF": "MNMF", "AGCIMC": "AGC-IMC"}.get(name, name): name for name in baselines._home
}
"""The methods of `viewfold_research.baselines`, under the names that the paper has for them."""


_FEWER_STEPS = (
    (0, 500_000, {"n_init": 5, "n_steps": 50}),
    (0, 10_000_000, {"n_init": 2, "n_steps": 20}),
)
LIGHTER: dict[str, tuple[tuple[int, int, dict[str, int]], ...]] = {
    "MNMF": _FEWER_STEPS,
    "MIC": _FEWER_STEPS,
    "AGC-IMC": ((1000, 0, {"max_iter": 15}),),
}
"""What the leaderboard asks of slow methods instead of their defaults, from so many samples and so
many values (samples × features of all views) on; the last that applies counts."""


def ways(name: str, n_samples: int, n_features: int, negative: bool) -> list[dict[str, Any]]:
    """List the parameters that the leaderboard tries a method with, the method's own scaling first.

    Parameters
    ----------
    name : str
        The method. One that is no baseline has a single way, without parameters.
    n_samples, n_features : int
        How many samples there are, and features in all views together: `LIGHTER` depends on them.
    negative : bool
        Whether a feature is negative somewhere; some methods then need features in [0, 1].

    Examples
    --------
    >>> from viewfold_research.bench.methods import ways
    >>> ways("FMR", 500, 40, negative=True)
    [{'scale': 'none'}, {'scale': 'zscore'}]
    >>> ways("MIC", 500, 40, negative=True), ways("ViewFold", 500, 40, negative=True)
    ([{'scale': 'minmax'}], [{}])
    """
    if name not in BASELINES:
        return [{}]
    of = _class(name)
    scalings = ("minmax",) if of.nonnegative and negative else of.scalings
    steps = [
        fewer
        for least_samples, least_values, fewer in LIGHTER.get(name, ())
        if n_samples >= least_samples and n_samples * n_features >= least_values
    ]
    return [{"scale": scale, **(steps[-1] if steps else {})} for scale in scalings]


def own_scaling(name: str) -> str:
    """Return the scaling that a baseline has by default, nothing for other methods."""
    return _class(name).scalings[0] if name in BASELINES else ""


def takes_missing_samples(name: str) -> bool:
    """Tell whether a method is for incomplete views, too."""
    return name not in BASELINES or _class(name).incomplete


def _class(name: str) -> type[Baseline]:
    return getattr(baselines, BASELINES[name])  # type: ignore[no-any-return]


def plugged_in() -> dict[str, EntryPoint]:
    """Return the methods that other packages add, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def names() -> list[str]:
    """Return the names of all methods, viewfold's own first."""
    own = [*BUILT_IN, *BASELINES]
    return [*own, *sorted({*plugged_in(), *_other_estimators()} - set(own))]


def _other_estimators() -> set[str]:
    """Return the estimators that are not compared under another name."""
    return set(METHODS.names()) - {"ViewFold", "FCMVC"}


@cache
def find(name: str) -> Contender:
    """Return the method of that name.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold_research.bench.methods import find
    >>> views = [np.random.default_rng(0).normal(size=(30, 4))]
    >>> find("ViewFold")(views, np.zeros((30, 1), bool), n_clusters=2, seed=0).shape
    (30,)
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    if name in BASELINES:
        return partial(baseline, of=BASELINES[name])
    if name in _other_estimators():
        return partial(estimator, name=name)
    others = plugged_in()
    if name not in others:
        raise ValueError(f"There is no method {name!r}. Known are: {', '.join(names())}.")
    try:
        method = others[name].load()
    except Exception as error:
        raise ValueError(
            f"Method {name!r} ({others[name].value}) cannot be loaded: {error}"
        ) from error
    if not callable(method):
        raise ValueError(f"Method {name!r} ({others[name].value}) is not a function.")
    return method  # type: ignore[no-any-return]


def tuned(name: str, parameters: dict[str, Any]) -> Contender:
    """Return the method of that name, a baseline with these parameters if there are any."""
    return partial(baseline, of=BASELINES[name], **parameters) if parameters else find(name)


def as_answer(found: Any, n_samples: int, name: str) -> Answer:
    """Check what a method returned, and say what it is."""
    if isinstance(found, Answer):
        answer = found
    elif (array := np.asarray(found)).ndim in (1, 2):
        answer = Answer((array,)) if array.ndim == 2 else Answer(labels=array)
    else:
        raise ValueError(f"{name} returned an array of {array.ndim} dimensions, not 1 or 2.")
    for array in _arrays(answer):
        if len(array) != n_samples:
            raise ValueError(f"{name} returned {len(array)} rows for {n_samples} samples.")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} returned values that are not finite.")
    if not list(_arrays(answer)):
        raise ValueError(f"{name} returned neither an embedding nor labels.")
    return answer


def _arrays(answer: Answer) -> Iterator[Array]:
    yield from answer.embeddings
    if answer.labels is not None:
        yield answer.labels
