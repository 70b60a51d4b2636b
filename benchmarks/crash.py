"""Kill `viewfold add` at random moments, and run two at once: the file is always whole.

    python benchmarks/crash.py --times 200 --pairs 20

After every kill the file must open and hold exactly the state before or the state after. Of two
that add at once, both views must be folded, or one be refused with a clear line.
"""

import argparse
import multiprocessing
import pickle
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import viewfold
from viewfold import cli


def write_views(folder: Path, n: int, many: int) -> list[Path]:
    """Write some views of the same samples, each without a third of them."""
    rng = np.random.default_rng(0)
    y = rng.integers(8, size=n)
    paths = []
    for v in range(many):
        X = rng.normal(size=(8, 24))[y] * 3 + rng.normal(size=(n, 24))
        frame = pd.DataFrame(X).add_prefix("x")
        frame.insert(0, "id", [f"s{i}" for i in range(n)])
        paths.append(folder / f"v{v}.parquet")
        frame[rng.random(n) > 1 / 3].to_parquet(paths[-1], index=False)
    return paths


def add(state: Path, view: Path, log: Path) -> None:
    """Do what the command does; say in a file how it ended."""
    sys.stderr = log.open("w")
    sys.argv = ["viewfold", "add", str(state), str(view), "--id", "id"]
    try:
        cli.main()
    finally:
        sys.stderr.flush()


def content(model: viewfold.ViewFold) -> tuple[object, ...]:
    """Return all that is known of the samples and views, to the last bit."""
    state = model._state
    rows = state.consensus.embedding, state.consensus.seen, state.history
    names = tuple(view.name for view in model.views_)
    return names, tuple(model.ids_), *(array.tobytes() for array in rows)


def start(*args: Path) -> multiprocessing.Process:
    process = multiprocessing.get_context("forkserver").Process(target=add, args=args)
    process.start()
    return process


def kill(folder: Path, times: int, n: int, seed: int) -> int:
    """Kill one after the other; return how many left a damaged file."""
    rng = np.random.default_rng(seed)
    base, second, third = write_views(folder, n, 3)
    states = []
    for view in (base, second, third):
        model = viewfold.ViewFold(8, random_state=0) if not states else pickle.loads(states[-1])
        states.append(pickle.dumps(model.partial_fit(view, ids="id", view=view.stem)))
    state, log = folder / "state.vf", folder / "log"
    whole = {content(pickle.loads(s)): i for i, s in enumerate(states)}

    for _ in range(2):  # the first one wakes the server of processes up
        pickle.loads(states[0]).save(state)
        started = time.perf_counter()
        start(state, second, log).join()
        span = time.perf_counter() - started
    assert whole.get(content(viewfold.load(state))) == 1, log.read_text()

    damaged, ended = 0, {"before": 0, "after": 0}
    for _ in range(times):
        before = int(rng.integers(2))
        pickle.loads(states[before]).save(state)
        process = start(state, (second, third)[before], log)
        time.sleep(rng.uniform(0, 1.05 * span))
        process.kill()
        process.join()
        try:
            found = whole.get(content(viewfold.load(state)))
        except viewfold.StateFileError as error:
            print(error)
            found = None
        if found not in (before, before + 1):
            damaged += 1
            continue
        ended["before" if found == before else "after"] += 1
    pickle.loads(states[0]).save(state)
    start(state, second, log).join()  # the last crash is in nobody's way
    damaged += whole.get(content(viewfold.load(state))) != 1
    left = [p.name for p in folder.iterdir() if p.suffix == ".part"]
    print(
        f"{times} kills within {span:.2f} s of work: {ended['before']} left the state before, "
        f"{ended['after']} the state after, {damaged} damaged; left over at the end: {left}"
    )
    return damaged + len(left)


def pairs(folder: Path, times: int, n: int) -> int:
    """Let two add at once; return how often that went wrong."""
    base, *two = write_views(folder, n, 3)
    state, logs = folder / "pair.vf", [folder / "log0", folder / "log1"]
    both = refused = wrong = 0
    for _ in range(times):
        model = viewfold.ViewFold(8, random_state=0).partial_fit(base, ids="id", view="v0")
        model.save(state)
        processes = [start(state, view, log) for view, log in zip(two, logs, strict=True)]
        for process in processes:
            process.join()
        names = {view.name for view in viewfold.load(state).views_}
        codes = [process.exitcode for process in processes]
        if codes == [0, 0] and names == {"v0", "v1", "v2"}:
            both += 1
        elif sorted(codes) == [0, 1] and len(names) == 2:
            refused += 1
        else:
            wrong += 1
    print(f"{times} pairs at once: {both} folded both, {refused} refused one, {wrong} wrong")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200, help="how many kills")
    parser.add_argument("--pairs", type=int, default=20, help="how many pairs of writers")
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    preload = ["viewfold.estimators", "viewfold.io", "viewfold.cli"]
    multiprocessing.get_context("forkserver").set_forkserver_preload(preload)
    with tempfile.TemporaryDirectory(prefix="viewfold-crash-") as folder:
        wrong = kill(Path(folder), asked.times, asked.samples, asked.seed) if asked.times else 0
        wrong += pairs(Path(folder), asked.pairs, asked.samples) if asked.pairs else 0
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
