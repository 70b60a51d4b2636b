"""How well moments explain clusters by views that are gone: tables for docs/explain.md.

    python research/benchmarks/explain.py --data DIR [--sets NAME …] [--quick]

After all folds, what `features` tells is compared with what the raw data and the final labels give:
Spearman correlation of the effects over the features of a view, and the share of the ten strongest
features that are the same; means over clusters of ten samples or more, then over views. The same
after ten further views are folded (random projections of the views there are, with as much noise as
signal). What moments cost is the time of all folds with them divided by that without, the median of
several runs one after the other; what they take is the difference of two files, per d × r × 4
bytes. Ratios come from one run on one machine. ``--quick`` takes three sets and one timed run.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.stats import rankdata

from quality import sets
from quality.study import markdown
from viewfold import ViewFold
from viewfold.state import transitions

TEXT = ("bbcsport", "3sources", "bbc-4view", "webkb", "movies", "acm", "mouse-cortex")
"""Sets whose views are words, links or counts; all others are dense."""

QUICK = ("uci-digit", "dermatology", "bbcsport")
MORE, TOP, TIMES = 10, 10, 5
WIDTH = 20
"""Features of a further view."""


def folded(data: sets.DataSet, further: int = 0) -> ViewFold:
    """Return a model of all views of a set, and some more that are made of them."""
    model = ViewFold(data.k, random_state=0)
    for i, X in enumerate(data.views):
        here = np.flatnonzero(~data.absent[:, i])
        model.partial_fit(X[here], ids=here, view=f"view{i}")
    rng = np.random.default_rng(0)
    for i in range(further):
        which = i % len(data.views)
        here = np.flatnonzero(~data.absent[:, which])
        X = data.views[which][here]
        signal = np.asarray(X @ rng.normal(size=(X.shape[1], WIDTH)))
        noise = rng.normal(size=signal.shape) * signal.std(axis=0)
        model.partial_fit(signal + noise, ids=here, view=f"more{i}")
    return model


def likeness(data: sets.DataSet, model: ViewFold) -> tuple[float, float]:
    """Return the rank correlation of effects and the share of the same strongest features."""
    cluster = np.full(len(data.y), -1)
    cluster[model.ids_] = model.labels_
    found = []
    for i, X in enumerate(data.views):
        here = ~data.absent[:, i]
        effects, clusters = raw_effects(X[here], cluster[here])
        told = model.features(view=f"view{i}", top=None)
        told = told.pivot(index="cluster", columns="feature", values="effect")
        pairs = [(effects[c][told.columns], told.loc[c].to_numpy()) for c in clusters]
        found.append(np.mean([[correlation(*pair), overlap(*pair)] for pair in pairs], axis=0))
    correlated, same = np.mean(found, axis=0)
    return float(correlated), float(same)


def raw_effects(X: Any, cluster: np.ndarray) -> tuple[dict[int, np.ndarray], list[int]]:
    """Return the effects that the data give, for clusters of ten samples or more."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    squares = np.asarray((X * X if issparse(X) else X.astype(float) ** 2).mean(axis=0)).ravel()
    spread = np.sqrt(np.maximum(squares - mean**2, 1e-300))
    large = [int(c) for c in np.unique(cluster) if (cluster == c).sum() >= 10]
    means = {c: np.asarray(X[cluster == c].mean(axis=0)).ravel() for c in large}
    return {c: (means[c] - mean) / spread for c in large}, large


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    top = min(TOP, a.size)
    strongest = (set(np.argsort(-np.abs(one), kind="stable")[:top].tolist()) for one in (a, b))
    return len(set.intersection(*strongest)) / top


@contextmanager
def without_moments() -> Iterator[None]:
    """Fold without moments for a while."""
    learn = transitions.learn_moments
    transitions.learn_moments = lambda engine, state, *rest: state  # type: ignore[assignment]
    try:
        yield
    finally:
        transitions.learn_moments = learn


def cost(data: sets.DataSet, times: int) -> float:
    """Return how long all folds take with moments, relative to without; runs take turns."""

    def timed() -> float:
        start = time.process_time()
        folded(data)
        return time.process_time() - start

    folded(data)
    ratios = []
    for _ in range(times):
        with without_moments():
            base = timed()
        ratios.append(timed() / base)
    return statistics.median(ratios)


def growth(data: sets.DataSet, model: ViewFold) -> float:
    """Return what moments add to a file, per d × r × 4 bytes of each view."""

    def size(make: Callable[[], ViewFold]) -> int:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.vf"
            make().save(path)
            return path.stat().st_size

    def plain() -> ViewFold:
        with without_moments():
            return folded(data)

    r = model.embedding_.shape[1]
    allowed = sum(X.shape[1] for X in data.views) * r * 4
    return (size(lambda: model) - size(plain)) / allowed


def main() -> None:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--data", type=Path, required=True, help="folder of .npz files")
    parser.add_argument("--sets", nargs="+", help="data sets; all nineteen if not given")
    parser.add_argument("--quick", action="store_true", help="three sets, one timed run")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    names = asked.sets or (QUICK if asked.quick else sets.SETS)
    names = sorted(names, key=lambda name: name in TEXT)
    rows: dict[str, list[float]] = {}
    for name in names:
        data = sets.load(asked.data, name)
        model = folded(data)
        after = likeness(data, folded(data, MORE))
        numbers = *likeness(data, model), *after
        rows[name] = [*numbers, cost(data, 1 if asked.quick else TIMES), growth(data, model)]
        print(name, *(f"{number:.3f}" for number in rows[name]), flush=True)
    for title, some in (("dense", set(names) - set(TEXT)), ("text", set(names) & set(TEXT))):
        if some:
            rows[f"**mean of {title}**"] = np.mean([rows[name] for name in some], axis=0).tolist()
    head = ["", "correlation", "same of ten", "after ten more", "same of ten", "time", "bytes"]
    print()
    markdown(head, [[name, *(f"{number:.3f}" for number in row)] for name, row in rows.items()])


if __name__ == "__main__":
    main()
