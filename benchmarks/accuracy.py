"""How well viewfold clusters: tables for docs/method.md.

    python benchmarks/accuracy.py --data DIR [--part table order noise agreement ablation …]
                                  [--batch]

DIR holds data sets as ``.npz`` (``view_0``, … or the parts of a CSR matrix, and ``y``). Unless said
otherwise, a number is the mean over three draws of missing samples by the paper's rule (seeds 0, 1,
2), labels are those of an estimator with its defaults and ``random_state=0``, views in their order.
``--batch`` adds two batch methods of another package, in an environment made for them.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

import batch_methods
from viewfold import FCMVC, ViewFold, clustering, missing
from viewfold.estimators import FoldingEstimator
from viewfold.methods import balanced, encoders
from viewfold.metrics import accuracy, nmi
from viewfold.selection import suggest_n_clusters

SETS = [
    "uci-digit",
    "proteinFold",
    "wiki",
    "100leaves",
    "bbcsport",
    "3sources",
    "msrc-v5",
    "orl-4views",
]
RATIOS = (0.0, 0.3, 0.5)
READ_TOGETHER = (clustering, "_paired", lambda *_: None)
Views = list[Any]
Score = tuple[float, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of .npz files")
    parser.add_argument("--part", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, help="data sets")
    parser.add_argument("--batch", action="store_true", help="with the batch methods (an hour)")
    parser.add_argument("--environment", type=Path, default=batch_methods.FOLDER, help="of those")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # views without common samples
    for part in asked.part:
        print(f"\n## {part}\n", flush=True)
        PARTS[part](asked)


def load(folder: Path, name: str) -> tuple[Views, np.ndarray]:
    with np.load(folder / f"{name}.npz") as file:
        views = []
        for i in itertools.count():
            if f"view_{i}" in file:
                views.append(file[f"view_{i}"])
            elif f"view_{i}_data" in file:
                parts = tuple(file[f"view_{i}_{part}"] for part in ("data", "indices", "indptr"))
                views.append(sparse.csr_array(parts, shape=tuple(file[f"view_{i}_shape"])))
            else:
                return views, file["y"]
    raise AssertionError


def score(y: np.ndarray, labels: np.ndarray) -> Score:
    return 100 * accuracy(y, labels), 100 * nmi(y, labels)


def labels_of(make: Callable[[int], FoldingEstimator], views: Views, k: int, gone: Any) -> Any:
    return make(k).fit(missing.by_mask(views, gone)).labels_


def masks(n: int, views: int, ratio: float) -> list[np.ndarray]:
    return [missing.by_paper_rule(n, views, ratio, seed) for seed in range(3 if ratio else 1)]


def rows(make: Callable[[int], FoldingEstimator], asked: argparse.Namespace) -> np.ndarray:
    """Return set × ratio × (ACC, NMI)."""
    result = []
    for name in asked.sets:
        views, y = load(asked.data, name)
        k = len(np.unique(y))
        result.append(
            [
                np.mean(
                    [
                        score(y, labels_of(make, views, k, gone))
                        for gone in masks(len(y), len(views), ratio)
                    ],
                    axis=0,
                )
                for ratio in RATIOS
            ]
        )
    return np.array(result)


def default(k: int) -> ViewFold:
    return ViewFold(k, random_state=0)


def paper(k: int) -> FCMVC:
    return FCMVC(k, random_state=0)


def cell(pair: Any) -> str:
    return "fails" if np.isnan(pair).any() else f"{pair[0]:.1f}/{pair[1]:.1f}"


# ---- parts --------------------------------------------------------------------------------------


def table(asked: argparse.Namespace) -> None:
    """ACC/NMI on all sets, and the same on the average."""
    methods = {"FCMVC": rows(paper, asked), "ViewFold": rows(default, asked)}
    if asked.batch:
        methods |= batch_rows(asked)
    print("| data set | missing | " + " | ".join(methods) + " |")
    print("|---|---|" + "---|" * len(methods))
    for i, name in enumerate([*asked.sets, "average"]):
        for j, ratio in enumerate(RATIOS):
            pairs = [
                np.mean(found[:, j], axis=0) if name == "average" else found[i, j]
                for found in methods.values()
            ]
            print(f"| {name} | {ratio:.0%} | " + " | ".join(map(cell, pairs)) + " |", flush=True)
    for method in [name for name in methods if name not in ("FCMVC", "ViewFold")]:
        ran = ~np.isnan(methods[method]).any(axis=(1, 2))
        ours, theirs = (methods[m][ran].mean(axis=0) for m in ("ViewFold", method))
        print(f"\nOn the {ran.sum()} sets where {method} runs: ", end="")
        print(
            ", ".join(
                f"{r:.0%}: {cell(a)} against {cell(b)}"
                for r, a, b in zip(RATIOS, ours, theirs, strict=True)
            )
        )


def batch_rows(asked: argparse.Namespace) -> dict[str, np.ndarray]:
    """Run the batch methods, each with the better of two scalings for each set and ratio."""
    python = batch_methods.make_environment(asked.environment)
    found: dict[str, np.ndarray] = {}
    times: dict[str, float] = {}
    for method in batch_methods.METHODS:
        result = np.full((len(asked.sets), len(RATIOS), 2), np.nan)
        for i, name in enumerate(asked.sets):
            views, y = load(asked.data, name)
            k = len(np.unique(y))
            whole = [v.toarray() if sparse.issparse(v) else v.astype(np.float64) for v in views]
            for j, ratio in enumerate(RATIOS):
                best = (np.nan, np.nan)
                for scale in ("standard", "unit"):
                    pairs = []
                    for seed, gone in enumerate(masks(len(y), len(views), ratio)):
                        gaps = [np.where(gone[:, [v]], np.nan, X) for v, X in enumerate(whole)]
                        labels, cpu, _ = batch_methods.run(
                            python, method, gaps, k, seed, scale=scale
                        )
                        if labels is None:
                            break
                        pairs.append(score(y, labels))
                        if name == "uci-digit" and not ratio:
                            times[method] = min(cpu, times.get(method, np.inf))
                    else:
                        mean = tuple(np.mean(pairs, axis=0))
                        best = max(best, mean) if not np.isnan(best[0]) else mean
                result[i, j] = best
        found[method] = result
    views, y = load(asked.data, "uci-digit")
    with threadpool_limits(1):
        own = min(cpu_seconds(lambda: default(10).fit(views)) for _ in range(5))
    print(
        "CPU time on uci-digit (2000 samples, complete), theirs / ViewFold's, all folds and labels:"
    )
    print(", ".join(f"{method} {cpu / own:.0f}" for method, cpu in times.items()), "\n")
    return found


def cpu_seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def order(asked: argparse.Namespace) -> None:
    """Spread of ACC over the order of complete views: all orders, or ten random ones."""
    print("| data set | orders | ViewFold: mean | std | FCMVC: mean | std |")
    print("|---" * 6 + "|")
    for name in asked.sets:
        views, y = load(asked.data, name)
        rng = np.random.default_rng(0)
        orders: list[Any] = [rng.permutation(len(views)) for _ in range(10)]
        if len(views) <= 3:
            orders = list(itertools.permutations(range(len(views))))
        k = len(np.unique(y))
        line = f"| {name} | {len(orders)} |"
        for make in (default, paper):
            found = [score(y, make(k).fit([views[i] for i in one]).labels_)[0] for one in orders]
            line += f" {np.mean(found):.1f} | {np.std(found):.2f} |"
        print(line, flush=True)


def noise(asked: argparse.Namespace) -> None:
    """ACC with views of Gaussian noise added to complete data, mean of three noises."""
    print("| data set | features | without | 1 first | 1 last | 3 first | 3 last |")
    print("|---|---|---|---|---|---|---|")
    for name in ("uci-digit", "orl-4views"):
        views, y = load(asked.data, name)
        k = len(np.unique(y))
        for width in (20, 100, 300):
            cells = [score(y, default(k).fit(views).labels_)[0]]
            for count, last in itertools.product((1, 3), (False, True)):
                found = []
                for seed in range(3):
                    rng = np.random.default_rng(seed)
                    extra = [rng.standard_normal((len(y), width)) for _ in range(count)]
                    both = views + extra if last else extra + views
                    found.append(score(y, default(k).fit(both).labels_)[0])
                cells.append(np.mean(found))
            line = [cells[0], cells[1], cells[2], cells[3], cells[4]]
            print(
                f"| {name} | {width} | " + " | ".join(f"{c:.1f}" for c in line) + " |", flush=True
            )


def agreement(asked: argparse.Namespace) -> None:
    """Least agreement of a set's views, and that of a view of noise (100 features) after them."""
    print("| data set | " + " | ".join(f"{ratio:.0%}: views | noise" for ratio in RATIOS) + " |")
    print("|---" * 7 + "|")
    for name in asked.sets:
        views, y = load(asked.data, name)
        both = [*views, np.random.default_rng(0).standard_normal((len(y), 100))]
        cells = []
        for ratio in RATIOS:
            gone = missing.by_paper_rule(len(y), len(both), ratio, 0)
            model = default(len(np.unique(y))).fit(missing.by_mask(both, gone))
            *own, last = [view.agreement for view in model.views_[1:]]
            cells += [f"{min(a for a in own if a is not None):.3f}", f"{last:.3f}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


@contextmanager
def changed(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Replace some names in some modules for a while."""
    before = [(where, name, getattr(where, name)) for where, name, _ in changes]
    try:
        for where, name, value in changes:
            setattr(where, name, value)
        yield
    finally:
        for where, name, value in before:
            setattr(where, name, value)


def ablation(asked: argparse.Namespace) -> None:
    """Show what is lost without each ingredient: averages over the sets."""

    def unbalanced(encoder: Any, scores: Any, graph: Any) -> Any:
        made, features = balance(encoder, scores, graph)
        grow = np.sqrt(scores.shape[1])  # the energy of standardised features grows with them
        return replace(made, factor=made.factor * grow), features * grow

    def without_completion(AA: Any, AY: Any, YY: Any, n: int) -> Any:
        return replace(regress(AA, AY, YY, n), coefficients=np.zeros_like(AY))

    def plain_reading(*_: Any) -> dict[str, Any]:
        return {}

    balance, regress = encoders._balanced, balanced.ridge
    cases: dict[str, tuple[Callable[[int], FoldingEstimator], list[tuple[Any, str, Any]]]] = {
        "ViewFold": (default, []),
        "linear encoder": (lambda k: ViewFold(k, encoder="linear", random_state=0), []),
        "landmarks encoder": (lambda k: ViewFold(k, encoder="landmarks", random_state=0), []),
        "z-score for every view": (lambda k: ViewFold(k, scale="zscore", random_state=0), []),
        "views weigh as they come": (default, [(encoders, "_balanced", unbalanced)]),
        "spectrum as it is (U S)": (default, [(encoders, "LINEAR_POWER", 1.0)]),
        "no spectrum (U)": (default, [(encoders, "LINEAR_POWER", 0.0)]),
        "no completion": (default, [(balanced, "ridge", without_completion)]),
        "ridge 1e-3": (default, [(balanced, "PENALTIES", np.array([1e-3]))]),
        "ridge 0.3": (default, [(balanced, "PENALTIES", np.array([0.3]))]),
        "all views reliable": (default, [(balanced, "AGREES", 0.0)]),
        "unconnected groups read together": (default, [READ_TOGETHER]),
        "k-means++ on all columns": (
            lambda k: ViewFold(k, n_init=20, random_state=0),
            [(ViewFold, "_reading", plain_reading)],
        ),
        "rank 2k": (lambda k: ViewFold(k, n_components=2 * k, random_state=0), []),
        "rank 4k": (lambda k: ViewFold(k, n_components=4 * k, random_state=0), []),
    }
    print("| | " + " | ".join(f"{ratio:.0%}" for ratio in RATIOS) + " |\n|---|---|---|---|")
    found: dict[str, np.ndarray] = {}
    for name, (make, changes) in cases.items():
        with changed(*changes):
            found[name] = rows(make, asked)
        average = found[name].mean(axis=0)
        print(f"| {name} | " + " | ".join(map(cell, average)) + " |", flush=True)
    chosen = [
        max(found, key=lambda name: np.delete(found[name], i, axis=0).mean())
        for i in range(len(asked.sets))
    ]
    average = np.mean([found[name][i] for i, name in enumerate(chosen)], axis=0)
    print("| best row on the other sets | " + " | ".join(map(cell, average)) + " |")
    print("\nBest row on the other sets: " + ", ".join(chosen))


def confidence(asked: argparse.Namespace) -> None:
    """Share of samples in the right cluster, by fifths of confidence, at 30 % missing."""
    print("| data set | lowest fifth | 2 | 3 | 4 | highest fifth |\n|---|---|---|---|---|---|")
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics.cluster import contingency_matrix

    for name in asked.sets:
        views, y = load(asked.data, name)
        _, y = np.unique(y, return_inverse=True)
        gone = missing.by_paper_rule(len(y), len(views), 0.3, 0)
        frame = default(y.max() + 1).fit(missing.by_mask(views, gone)).to_frame()
        table = contingency_matrix(frame["cluster"], y)
        right = linear_sum_assignment(table, maximize=True)[1][frame["cluster"]] == y
        fifths = np.array_split(right[np.argsort(frame["confidence"])], 5)
        print(f"| {name} | " + " | ".join(f"{100 * part.mean():.0f}" for part in fifths) + " |")


def groups(asked: argparse.Namespace) -> None:
    """Two views of each set without a common sample, paired by size where sizes tell, and not."""
    print("| data set | paired by size | ViewFold | read together |\n|---|---|---|---|")
    draws = range(20)
    for name in asked.sets:
        views, y = load(asked.data, name)
        halves = [
            missing.by_mask(views[:2], missing.by_paper_rule(len(y), 2, 0.5, i)) for i in draws
        ]
        models = [default(len(np.unique(y))).fit(pair) for pair in halves]
        paired = sum(len(model._state.clusters.centers) > 1 for model in models if model._state)
        with changed(READ_TOGETHER):
            plain = [default(len(np.unique(y))).fit(pair) for pair in halves]
        cells = [cell(np.mean([score(y, m.labels_) for m in some], 0)) for some in (models, plain)]
        print(f"| {name} | {paired} of {len(draws)} | " + " | ".join(cells) + " |", flush=True)


def suggest(asked: argparse.Namespace) -> None:
    """How many clusters `suggest_n_clusters` finds, choosing from half to twice the classes."""
    print("| data set | classes | suggested |\n|---|---|---|")
    for name in asked.sets:
        views, y = load(asked.data, name)
        k = len(np.unique(y))
        found = suggest_n_clusters(views, range(max(2, k // 2), 2 * k + 1)).best
        print(f"| {name} | {k} | {found} |", flush=True)


def mnist(asked: argparse.Namespace) -> None:
    """70,000 samples in four views, against one k-means run on the concatenated z-scores."""
    views, y = load(asked.data, "mnist-4features")
    default(2).fit([np.random.default_rng(0).normal(size=(50, 3))])  # imports
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    labels = default(10).fit(views).labels_
    took = time.perf_counter() - start
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    whole = np.hstack([v.astype(np.float32) for v in views])
    whole -= whole.mean(axis=0)
    spread = whole.std(axis=0)
    whole /= np.where(spread > 0, spread, 1)
    start = time.perf_counter()
    other = KMeans(10, n_init=1, random_state=0).fit_predict(whole)
    ratio = took / (time.perf_counter() - start)
    print("| | ACC/NMI |\n|---|---|")
    print(f"| ViewFold | {cell(score(y, labels))} |")
    print(f"| FCMVC | {cell(score(y, paper(10).fit(views).labels_))} |")
    print(f"| k-means, all views side by side | {cell(score(y, other))} |")
    print(f"\nTime of four folds with labels / time of that k-means run: {ratio:.2f}")
    print(f"Peak memory beyond the data: {peak:.2f} GB")


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "table": table,
    "order": order,
    "noise": noise,
    "agreement": agreement,
    "ablation": ablation,
    "confidence": confidence,
    "groups": groups,
    "suggest": suggest,
    "mnist": mnist,
}

if __name__ == "__main__":
    main()
