"""What is run for a cell of the tables: ViewFold or a rival, on a set, a mask and a variant.

A variant is words like ``order=2-0-1``: a change of the data (`changed`), of a constant of the
method (upper case) or of a parameter. Rivals have the scaling that serves them best, chosen with
the classes, which no user has; see `table`.
"""

from __future__ import annotations

import ast
import importlib
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

import batch_methods
from quality.sets import DataSet
from viewfold import FCMVC, ViewFold, as_view, missing, suggest_n_clusters
from viewfold.metrics import accuracy, nmi
from viewfold_research.baselines import NEMO
from viewfold_research.bench.methods import standardised

Settings = dict[str, str]
MEASURES = ("ACC", "NMI", "ARI")


def run(method: str, variant: str, data: DataSet, gone: np.ndarray) -> dict[str, Any]:
    """Return what a method makes of a set, CPU seconds on one thread and MB beyond; or an error."""
    settings = dict(word.split("=") for word in variant.split())
    settings.pop("time", None)  # only tells repetitions apart
    resident, start = memory("VmRSS"), time.process_time()
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # views without common samples
            found = METHODS[method](data, gone, settings)
    except Exception as error:  # a rival that runs out of memory; told in the table
        return {"error": f"{type(error).__name__}: {error}"}
    cpu = round(time.process_time() - start, 4)
    if isinstance(found, np.ndarray):
        found = score(data.y, found)
    return {"cpu": cpu, "memory": memory("VmHWM") - resident, **found}


def memory(which: str) -> float:
    """Return the resident memory in MB, or its peak, which starts anew at every look at it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return np.nan
    found = next(line for line in status.read_text().splitlines() if line.startswith(which))
    Path("/proc/self/clear_refs").write_text("5")
    return round(int(found.split()[1]) / 1024, 1)


def score(y: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    found = (accuracy(y, labels), nmi(y, labels), adjusted_rand_score(y, labels))
    return {name: 100 * float(value) for name, value in zip(MEASURES, found, strict=True)}


# ---- ViewFold and FCMVC -------------------------------------------------------------------------


def viewfold(data: DataSet, gone: np.ndarray, settings: Settings) -> np.ndarray:
    return folded(ViewFold, data, gone, settings)


def fcmvc(data: DataSet, gone: np.ndarray, settings: Settings) -> np.ndarray:
    return folded(FCMVC, data, gone, settings)


def folded(kind: Any, data: DataSet, gone: np.ndarray, settings: Settings) -> np.ndarray:
    """Return labels in the order of the rows."""
    views, gone, ids, rest = changed(data, gone, settings)
    with moved({name: value for name, value in rest.items() if name.isupper()}):
        model = kind(data.k, **parameters(rest)).fit(missing.by_mask(views, gone, ids=ids))
    order = np.argsort(ids)
    at = order[np.searchsorted(ids[order], model.ids_)]
    labels = np.full(len(data.y), -1)
    labels[at] = model.labels_
    return labels


def delivered(data: DataSet, gone: np.ndarray, settings: Settings) -> np.ndarray:
    """Fold views in parts that arrive alternately: ``parts=2-0`` is a1, b1, …, a2, b2, …, seed 0.

    ``method=FCMVC`` is that method; ``as=new`` folds every part as a view of its own.
    """
    rest = dict(settings)
    count, seed = (int(word) for word in rest.pop("parts").split("-"))
    kind = {"ViewFold": ViewFold, "FCMVC": FCMVC}[rest.pop("method", "ViewFold")]
    new, rng = rest.pop("as", "") == "new", np.random.default_rng(1000 + seed)
    here = [rng.permutation(np.flatnonzero(~gone[:, v])) for v in range(len(data.views))]
    model = kind(data.k, **parameters(rest))
    for part in range(count):
        for v, X in enumerate(data.views):
            rows = np.sort(np.array_split(here[v], count)[part])
            name = f"view {v}" + f", part {part}" * new
            view = as_view(X[rows], ids=rows, name=name, empty_rows="keep")
            model.partial_fit(view)
    labels = np.full(len(data.y), -1)
    labels[model.ids_] = model.labels_
    return labels


def parameters(settings: Settings) -> dict[str, Any]:
    found = {name: value for name, value in settings.items() if not name.isupper()}
    return {"random_state": 0, **{name: plain(value) for name, value in found.items()}}


def plain(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except ValueError:  # a word
        return text


def changed(
    data: DataSet, gone: np.ndarray, settings: Settings
) -> tuple[list[Any], np.ndarray, np.ndarray, Settings]:
    """Change views, mask and ids as the settings say, and return the settings that are left.

    ``order=2-0-1``: views in that order; ``view=1``: that view alone; ``noise=3-first-0``: three
    views of 100 Gaussian features, seed 0, before the others; ``halves=0``: the first two views
    without a common sample (one, if their number is odd); ``names=0``: other ids.
    """
    views, rest, n = list(data.views), dict(settings), len(data.y)
    ids = np.arange(n)
    if "halves" in rest:
        views, half = views[:2], (n - n % 2) / 2 / n
        gone = missing.by_paper_rule(n, 2, half, int(rest.pop("halves")))
    if "order" in rest or "view" in rest:
        which = [int(i) for i in (rest.pop("order", None) or rest.pop("view")).split("-")]
        views, gone = [views[i] for i in which], gone[:, which]
    if "noise" in rest:
        count, where, seed = rest.pop("noise").split("-")
        rng = np.random.default_rng(int(seed))
        extra = [rng.standard_normal((n, 100)) for _ in range(int(count))]
        there = np.zeros((n, len(extra)), bool)
        views = extra + views if where == "first" else views + extra
        gone = np.hstack([there, gone] if where == "first" else [gone, there])
    if "names" in rest:
        rng = np.random.default_rng(int(rest.pop("names")))
        ids = np.array([f"sample {i}" for i in rng.permutation(10 * n)[:n]])
    return views, gone, ids, rest


@contextmanager
def moved(constants: Settings) -> Iterator[None]:
    """Give constants of the method other values for a while."""
    if not constants:  # an older tree may have no such module
        yield
        return
    module = importlib.import_module("viewfold._util.constants")
    before = {name: getattr(module, name) for name in constants}
    try:
        for name, value in constants.items():
            setattr(module, name, plain(value))
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


# ---- rivals -------------------------------------------------------------------------------------


def nemo(data: DataSet, gone: np.ndarray, settings: Settings) -> np.ndarray:
    model = NEMO(data.k, **parameters(settings)).fit(missing.by_mask(data.views, gone))
    labels = np.full(len(data.y), -1)
    labels[model.ids_.astype(int)] = model.labels_
    return labels


def nemo_of_imml(data: DataSet, gone: np.ndarray, settings: Settings) -> dict[str, Any]:
    """Run the NEMO of another package, in an environment made for it."""
    whole = [X.toarray() if sparse.issparse(X) else X.astype(np.float64) for X in data.views]
    gaps = [np.where(gone[:, [v]], np.nan, X) for v, X in enumerate(whole)]
    python = batch_methods.make_environment()
    scale = settings["scale"]
    labels, cpu, error = batch_methods.run(python, "NEMO", gaps, data.k, 0, scale=scale)
    if labels is None:
        raise RuntimeError(error)
    return {**score(data.y, labels), "cpu": cpu}


def k_means(data: DataSet, gone: np.ndarray, settings: Settings) -> np.ndarray:
    """Cluster z-scores (0, the mean, if missing) or rows of unit length, of all views or of one."""
    which = [int(settings["view"])] if "view" in settings else range(len(data.views))
    scale = settings.get("scale", "zscore")
    parts = [scaled(data.views[v], ~gone[:, v], scale) for v in which]
    X = np.hstack(parts) if len(parts) > 1 else parts[0]
    starts = 10 if X.size < 1e8 else 3 if len(X) < 20_000 else 1
    return KMeans(data.k, n_init=starts, random_state=0).fit_predict(X)


def scaled(X: Any, here: np.ndarray, scale: str) -> np.ndarray:
    X = X.astype(np.float32)
    if scale == "zscore":
        X = standardised(X, here)
    else:
        X = normalize(X.toarray() if sparse.issparse(X) else X)
    X[~here] = 0
    return X


# ---- other questions ----------------------------------------------------------------------------


def suggest(data: DataSet, gone: np.ndarray, settings: Settings) -> dict[str, Any]:
    """Suggest a number of clusters from half to twice the classes."""
    views = missing.by_mask(data.views, gone)
    numbers = range(max(2, data.k // 2), 2 * data.k + 1)
    return {"classes": data.k, "suggested": int(suggest_n_clusters(views, numbers).best)}


def confidence(data: DataSet, gone: np.ndarray, settings: Settings) -> dict[str, Any]:
    """Share of samples in the right cluster, by fifths of confidence."""
    model = ViewFold(data.k, random_state=0).fit(missing.by_mask(data.views, gone))
    frame = model.to_frame()
    y = data.y[model.ids_]
    table = contingency_matrix(frame["cluster"], y)
    known = np.unique(frame["cluster"], return_inverse=True)[1]
    rows, columns = linear_sum_assignment(table, maximize=True)
    match = np.full(len(table), -1)
    match[rows] = columns
    right = match[known] == y
    fifths = np.array_split(right[np.argsort(frame["confidence"])], 5)
    return {"fifths": [100 * float(part.mean()) for part in fifths]}


def agreement(data: DataSet, gone: np.ndarray, settings: Settings) -> dict[str, Any]:
    """Least agreement of a set's views, and that of a view of noise after them."""
    views, gone, ids, _ = changed(data, gone, {"noise": "1-last-0"})
    model = ViewFold(data.k, random_state=0).fit(missing.by_mask(views, gone, ids=ids))
    *own, last = [view.agreement for view in model.views_[1:]]
    known = [float(share) for share in own if share is not None]
    return {"views": min(known, default=None), "noise": last}


# ---- missing cells ------------------------------------------------------------------------------


def gaps(data: DataSet, gone: np.ndarray, settings: Settings) -> np.ndarray:
    """Cluster with ``cells=30-0``: 30 % of all cells missing at random, seed 0.

    They are filled by an imputer before (``fill=mean``, ``knn``, ``iterative``), or not
    (``fill=none``). A row without any cell is an absent sample for all of them.
    """
    share, seed = settings["cells"].split("-")
    rng = np.random.default_rng([int(share), int(seed)])
    views = []
    for X, absent in zip(data.views, gone.T, strict=True):
        X = np.where(absent[:, None], np.nan, X.astype(np.float64))
        X[rng.uniform(size=X.shape) < int(share) / 100] = np.nan
        there = ~np.isnan(X).all(axis=1)
        if int(share):
            X[there] = FILLS[settings["fill"]](X[there])
        views.append(X)
    model = ViewFold(data.k, random_state=0).fit(views)
    labels = np.full(len(data.y), -1)
    labels[model.ids_] = model.labels_
    return labels


def iterative(X: np.ndarray) -> np.ndarray:
    """Regress every feature on the twenty that are most correlated with it, five times over."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    few = 20 if X.shape[1] > 21 else None
    imputer = IterativeImputer(
        n_nearest_features=few, max_iter=5, random_state=0, keep_empty_features=True
    )
    return imputer.fit_transform(X)


FILLS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": lambda X: X,
    "mean": lambda X: SimpleImputer(keep_empty_features=True).fit_transform(X),
    "knn": lambda X: KNNImputer(keep_empty_features=True).fit_transform(X),
    "iterative": iterative,
}


METHODS: dict[str, Callable[[DataSet, np.ndarray, Settings], Any]] = {
    "ViewFold": viewfold,
    "FCMVC": fcmvc,
    "deliveries": delivered,
    "NEMO": nemo,
    "NEMO of iMML": nemo_of_imml,
    "k-means": k_means,
    "suggest": suggest,
    "confidence": confidence,
    "agreement": agreement,
    "gaps": gaps,
}
