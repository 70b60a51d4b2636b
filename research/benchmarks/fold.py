"""Speed and memory of a fold, as ratios.

Every number is a ratio of two measurements of this one run; seconds mean nothing on another
machine. Run it on an idle one: ``make bench``, or with ``--quick`` to see that it works.
"""

from __future__ import annotations

import argparse
import copy
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans

import transcription
from viewfold import FCMVC, ViewFold
from viewfold.datasets import make_multiview
from viewfold.metrics import accuracy
from viewfold_research._linalg import Array
from viewfold_research.bench.methods import Unclustered

MB = 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, a few seconds in all")
    parser.add_argument("--only", choices="abcdef", help="one of the parts")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)  # a child process
    asked = parser.parse_args()
    if asked.measure:
        name, *numbers = asked.measure
        print(*CHILDREN[name](*map(int, numbers)))
        return
    print(f"{'':84}{'ratio':>8}  target")
    parts = {"a": against_transcription, "c": peak_memory, "d": doubling, "e": from_disk}
    parts["f"] = against_kmeans
    for letter, part in parts.items():
        if asked.only in (None, letter) or (asked.only == "b" and letter == "a"):
            part(asked.quick)


def report(what: str, ratio: float, target: str, low: float = 0.0, high: float = np.inf) -> None:
    verdict = "" if not target else "met" if low <= ratio <= high else "MISSED"
    print(f"{what:84}{ratio:8.2f}  {target:12} {verdict}", flush=True)


def seconds(work: Callable[[], Any], repeat: int = 1) -> tuple[float, Any]:
    best, result = np.inf, None
    for _ in range(repeat):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result


# ---- speed --------------------------------------------------------------------------------------


def two_views(n: int, d: int, k: int, missing: float = 0.1) -> list[tuple[Array, Array]]:
    """Return ids and standardised matrix of two incomplete views of the same clusters."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    views = []
    for _ in range(2):
        ids = np.sort(rng.choice(n, round(n * (1 - missing)), replace=False))
        X = rng.standard_normal((k, d))[y[ids]]
        X += 2 * rng.standard_normal(X.shape)
        X -= X.mean(axis=0)
        X /= X.std(axis=0, ddof=1)
        views.append((ids, X))
    return views


def folded(before: FCMVC, X: Array, ids: Array | None = None, **params: Any) -> FCMVC:
    """Return a model with one more view; `before` stays what it is, and can be used again."""
    return copy.copy(before).set_params(**params).partial_fit(X, ids=ids)


def against_transcription(quick: bool) -> None:
    sizes = [(30_607, 512, 257, 12.0), (38_654, 944, 10, 3.0)]
    for n, d, k, times in [(600, 40, 8, 0.0), (800, 60, 5, 0.0)] if quick else sizes:
        (ids_0, X_0), (ids, X) = two_views(n, d, k)
        before = folded(Unclustered(k, scale=None), X_0, ids_0)
        ours = {
            solver: seconds(partial(folded, before, X, ids, solver=solver), repeat=3)
            for solver in ("auto", "gram", "direct")
        }
        after: FCMVC = ours["auto"][1]
        plain, (Z, objective) = seconds(
            partial(transcription.later, X, before.embedding_, *_places(before, after, ids))
        )
        iterations = len(objective)
        apart = np.abs(Z - after.embedding_).max()
        size = f"n={n:,} d={d} k={k}"
        report(
            f"(a) transcription / fold, {size}, |ΔZ|={apart:.0e}",
            plain / ours["auto"][0],
            f"≥ {times:g}" if times else "",
            low=times,
        )
        H, Z = np.eye(d, k), np.ascontiguousarray(Z[: len(X)])
        pair = seconds(lambda: (X @ H, X.T @ Z), repeat=3)[0]  # noqa: B023
        once = seconds(lambda: (X.T @ X, X @ H), repeat=3)[0]  # noqa: B023
        floors = {"gram": once, "direct": iterations * pair}
        for name, floor in floors.items():
            # With k = 257, iterations on small matrices are what a fold by "gram" consists of.
            aim = {} if quick or (k > 100 and name == "gram") else {"high": 2.0}
            report(
                f"(b) {name} / its floor, {size}, {iterations} iterations",
                ours[name][0] / floor,
                "≤ 2" if aim else "",
                **aim,
            )


def _places(before: FCMVC, after: FCMVC, ids: Array) -> tuple[Array, Array]:
    where = {sample: i for i, sample in enumerate(after.ids_.tolist())}
    return (
        np.array([where[sample] for sample in ids.tolist()]),
        np.array([where[sample] for sample in before.ids_.tolist()]),
    )


# ---- memory -------------------------------------------------------------------------------------


def resident(key: str) -> int:
    """Return VmRSS (now) or VmHWM (peak) of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {key} in /proc/self/status")


def beyond(work: Callable[[], Any]) -> int:
    """Return how far the resident memory rises above what it is now while `work` runs."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = resident("VmRSS")
    work()
    return resident("VmHWM") - before


def child(name: str, *numbers: int, here: bool = False) -> list[float]:
    """Run a measurement in a process of its own, or here, where its number does not matter."""
    if here:
        return [float(number) for number in CHILDREN[name](*numbers)]
    command = [sys.executable, __file__, "--measure", name, *map(str, numbers)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(number) for number in done.stdout.split()]


def warm_up() -> None:
    rng = np.random.default_rng(0)
    FCMVC(3, n_init=1).fit([rng.normal(size=(200, 5)), rng.normal(size=(200, 5))])


def memory_of_fold(n: int, d: int, k: int, whole: int) -> tuple[int]:
    warm_up()
    rng = np.random.default_rng(0)
    X_0, X = rng.standard_normal((n, k)), rng.standard_normal((n, d))
    model = FCMVC(k, n_init=1) if whole else Unclustered(k)  # with labels, or without
    model.fit(X_0)
    return (beyond(lambda: model.partial_fit(X)),)


def peak_memory(quick: bool) -> None:
    sizes = [(2_000, 50, 5)] if quick else [(30_607, 512, 257), (38_654, 944, 10)]
    for n, d, k in sizes:
        allowed = 4 * n * k * 8 + 64 * MB
        for whole, what in enumerate(("fold", "partial_fit with labels")):
            (peak,) = child("memory_of_fold", n, d, k, whole, here=quick and whole > 0)
            report(
                f"(c) peak memory beyond input / (4nk8 + 64 MB), {what}, n={n:,} d={d} k={k}",
                peak / allowed,
                "≤ 1",
                high=1.0,
            )


# ---- scaling ------------------------------------------------------------------------------------


def doubling(quick: bool) -> None:
    # Large enough that the consensus fits into no cache at either size.
    n, d, k = (2_000, 16, 5) if quick else (1_000_000, 64, 10)
    rng = np.random.default_rng(0)
    took = []
    for size in (n, 2 * n):
        present = rng.permutation(size)[: round(0.7 * size)]
        X_0, X = rng.standard_normal((size, k)), rng.standard_normal((present.size, d))
        before = folded(Unclustered(k, tol=0.0, max_iter=10), X_0, np.arange(size))
        took.append(seconds(partial(folded, before, X, present), repeat=5)[0])
    aim = {} if quick else {"low": 1.7, "high": 2.3}
    report(
        f"(d) time at 2n / time at n, n={n:,} d={d} k={k}",
        took[1] / took[0],
        "1.7 to 2.3" if aim else "",
        **aim,
    )


# ---- from disk ----------------------------------------------------------------------------------


def write_view(path: Path, n: int, d: int) -> None:
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, d))
    step = 100_000
    for start in range(0, n, step):
        rows = min(step, n - start)
        y = (np.arange(start, start + rows) % 10)[:, None] == np.arange(d) % 10
        X[start : start + rows] = rng.standard_normal((rows, d), dtype=np.float32) + y
    X.flush()


def forget_pages(path: Path) -> None:
    """Make the system read the file from disk the next time."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def walk_twice(path: Path, k: int, cold: int) -> None:
    """Read the file in blocks and multiply each by a d × k matrix, twice."""
    for _ in range(2):
        if cold:
            forget_pages(path)
        X = np.load(path, mmap_mode="r")
        H = np.ones((X.shape[1], k), np.float32)
        block = np.empty((8192, X.shape[1]), np.float32)
        with path.open("rb") as file:
            file.seek(X.offset)
            for start in range(0, len(X), len(block)):
                rows = block[: len(X) - start]
                file.readinto(memoryview(rows).cast("B"))
                rows @ H


def fold_from_disk(k: int, later: int, cold: int) -> tuple[float, int, int]:
    """Return the time and peak memory of folding the file, and the size of the state."""
    warm_up()
    path = Path(os.environ["VIEWFOLD_BENCH_FILE"])
    model = FCMVC(k, random_state=0)
    if later:
        n = np.load(path, mmap_mode="r").shape[0]
        model.fit(np.random.default_rng(1).standard_normal((n, k), dtype=np.float32))
    if cold:
        forget_pages(path)
    took = 0.0

    def work() -> None:
        nonlocal took
        took = seconds(lambda: model.partial_fit(path, view="disk"))[0]

    base = 0 if not later else model.embedding_.nbytes + model.ids_.nbytes + model.labels_.nbytes
    peak = beyond(work) + base
    state = model.embedding_.nbytes + model.ids_.nbytes + model.labels_.nbytes
    return took, peak, state


def from_disk(quick: bool) -> None:
    n, d, k = (5_000, 32, 5) if quick else (4_000_000, 256, 10)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "view.npy")
        os.environ["VIEWFOLD_BENCH_FILE"] = str(path)
        write_view(path, n, d)
        size = f"{path.stat().st_size / 1e9:.1f} GB"
        for cold, how in [(1, "cold"), (0, "in the page cache")][: 1 if quick else 2]:
            floor = seconds(lambda: walk_twice(path, k, cold))[0]  # noqa: B023
            for later, which in ((0, "first view"), (1, "later view")):
                took, peak, state = child("fold_from_disk", k, later, cold, here=quick)
                # In the page cache, reading costs next to nothing, and XᵀX alone (d/2k times the
                # work of the floor) is more than the floor.
                aim = {"high": 2.5} if cold and not quick else {}
                report(
                    f"(e) time / floor, {size} {how}, {which}, labels included",
                    took / floor,
                    "≤ 2.5" if aim else "",
                    **aim,
                )
                if cold:
                    report(
                        f"(e) peak memory / (3 × state + 512 MB), {size}, {which}",
                        peak / (3 * state + 512 * MB),
                        "≤ 1",
                        high=1.0,
                    )


# ---- against k-means ----------------------------------------------------------------------------

MODELS: dict[str, Callable[[], Any]] = {
    "ViewFold": lambda: ViewFold(10, random_state=0),
    "ViewFold, linear": lambda: ViewFold(10, encoder="linear", random_state=0),
    "KMeans(n_init=1)": lambda: KMeans(10, n_init=1, random_state=0),
    "MiniBatchKMeans(n_init=3)": lambda: MiniBatchKMeans(10, n_init=3, random_state=0),
}
"""The first two get three views, the others their features side by side."""


def cost_of_model(which: int, n: int, noise: int) -> tuple[float, ...]:
    """Return wall and CPU seconds, peak memory beyond the data, and the accuracy in %."""
    name, make = list(MODELS.items())[which]
    shapes = {"n_features": (64, 32, 100), "n_clusters": 10, "dtype": np.float32}
    for size in (1000, n):  # once to warm up
        made = make_multiview(size, noise=noise, random_state=0, **shapes)
        y, X = made.target, list(made.pop("views").values())
        X = X if name.startswith("ViewFold") else np.hstack(X)
        if size < n:
            make().fit(X)
    model, start, cpu = make(), time.perf_counter(), time.process_time()
    peak = beyond(lambda: model.fit(X))
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    return wall, cpu, peak, 100 * accuracy(y, model.labels_)


def against_kmeans(quick: bool) -> None:
    # How long k-means runs depends on the data: easy, such as it gets stuck in, and hard.
    n = 2_000 if quick else 1_000_000
    for noise in (2,) if quick else (1, 2, 4):
        found = {
            name: child("cost_of_model", i, n, noise, here=quick) for i, name in enumerate(MODELS)
        }
        for name, (wall, cpu, peak, right) in found.items():
            said = f"    {name}, noise={noise}: {wall:.1f} s, CPU {cpu:.1f} s"
            print(f"{said}, {peak / 1e9:.2f} GB beyond the data, ACC {right:.1f} %", flush=True)
        for ours in list(MODELS)[:2]:
            for other, high in (("KMeans(n_init=1)", 0.6), ("MiniBatchKMeans(n_init=3)", 0.8)):
                aim = {} if quick else {"high": high}
                report(
                    f"(f) CPU of {ours} / {other}, n={n:,} d=64+32+100 noise={noise}",
                    found[ours][1] / found[other][1],
                    f"≤ {high}" if aim else "",
                    **aim,
                )
            report(
                f"(f) peak memory of {ours} beyond the data / 0.8 GB, noise={noise}",
                found[ours][2] / 0.8e9,
                "≤ 1",
                high=1.0,
            )


CHILDREN: dict[str, Callable[..., tuple[float, ...]]] = {
    "memory_of_fold": memory_of_fold,
    "fold_from_disk": fold_from_disk,
    "cost_of_model": cost_of_model,
}

if __name__ == "__main__":
    main()
