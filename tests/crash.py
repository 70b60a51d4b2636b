"""Kill commands at random moments, and run two at once: every file is always whole.

    python tests/crash.py --times 1000 --pairs 20
    python tests/crash.py --times 50 --kind vfd

All commands that write are killed in turn: add, extend, forget, undo, report, labels and export.
After every kill the state must be exactly that before or that after, an output the old one or the
new one, and the next run of the same command must clear away what was left. Of two that add at
once, both views must be folded, or one be refused with a clear line.
"""

import argparse
import multiprocessing
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import viewfold
from viewfold import cli
from viewfold.errors import BusyError
from viewfold.estimators import selection
from viewfold.store.folder import Folder, manifest_numbers, read_manifest


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


def run(words: list[str], log: Path) -> None:
    """Do what a command does; say in a file how it ended."""
    sys.stderr = log.open("w")
    selection.TREES = 8  # more make a better number of clusters in a report, not a longer write
    sys.argv = ["viewfold", *words]
    try:
        cli.main()
    finally:
        sys.stderr.flush()


def content(model: viewfold.ViewFold) -> tuple[object, ...]:
    """Return all that is known of the samples and views, to the last bit."""
    ids = np.asarray(model.ids_)
    order = np.argsort(ids)
    rows = model.embedding_, model.seen_.to_numpy(), model.history_.to_numpy()
    names = tuple(view.name for view in model.views_)
    return names, tuple(ids[order]), *(array[order].tobytes() for array in rows)


def saved(state: Path) -> dict[str, bytes]:
    """Return all files of a state: one, or those of a folder."""
    if state.is_file():
        return {"": state.read_bytes()}
    return {str(p.relative_to(state)): p.read_bytes() for p in state.rglob("*") if p.is_file()}


def put_back(state: Path, files: dict[str, bytes]) -> None:
    if "" in files:
        state.write_bytes(files[""])
        return
    shutil.rmtree(state)
    for name, data in files.items():
        (state / name).parent.mkdir(parents=True, exist_ok=True)
        (state / name).write_bytes(data)


def start(words: list[str], log: Path) -> multiprocessing.Process:
    process = multiprocessing.get_context("forkserver").Process(target=run, args=(words, log))
    process.start()
    return process


@dataclass
class Command:
    """A command, how long it takes, and what it leaves."""

    words: list[str]
    output: Path | None
    span: float = 0.0
    before: tuple[object, ...] = ()
    state: tuple[object, ...] = ()
    written: bytes = b""


def commands(folder: Path, n: int, kind: str) -> tuple[Path, dict[str, Command]]:
    """Write a state with something to undo; return it, and all that can be done to it."""
    base, second, third = write_views(folder, n, 3)
    state = folder / f"state.{kind}"
    model = viewfold.ViewFold(8, random_state=0).partial_fit(base, ids="id", view="v0")
    model.save(state)
    with viewfold.edit(state) as model:
        model.partial_fit(second, ids="id", view="v1")
    more = pd.read_parquet(base).head(n // 10)
    more["id"] = "new " + more["id"]
    more.to_parquet(folder / "more.parquet", index=False)
    file = str(state)
    rows = ["--id", "id", "--view", "v0", "--only-new"]
    of = {
        "add": ["add", file, str(third), "--id", "id"],
        "only-new": ["add", file, str(folder / "more.parquet"), *rows],
        "forget": ["forget", file, *pd.read_parquet(base)["id"].head(3)],
        "undo": ["undo", file, "--yes"],
    }
    outputs = {"report": "r.html", "labels": "l.csv", "export": "e.parquet"}
    found = {name: Command(words, None) for name, words in of.items()}
    for name, output in outputs.items():
        found[name] = Command([name, file, "-o", str(folder / output)], folder / output)
    return state, found


def prepare(state: Path, whole: dict[str, bytes], command: Command) -> None:
    """Put everything back as it was before a command."""
    put_back(state, whole)
    if command.output is not None:
        command.output.write_bytes(b"before")


def outcome(state: Path, whole: dict[str, bytes], command: Command) -> str:
    """Tell what a killed command left: "before", "after", or what is wrong."""
    if command.output is not None:
        if saved(state) != whole:
            return "a state that was changed"
        written = command.output.read_bytes()
        return {b"before": "before", command.written: "after"}.get(written, "half an output")
    if saved(state) == whole:
        return "before"
    try:
        found = content(viewfold.load(state))
    except viewfold.StateFileError as error:
        return str(error)
    known = {command.before: "before", command.state: "after"}
    return known.get(found, "another state")


def left_over(state: Path) -> list[str]:
    """Return files of a folder that none of its two latest generations needs."""
    if state.is_file():
        return []
    folder = Folder.at(state)
    needed = set()
    for number in manifest_numbers(folder)[:2]:
        manifest = read_manifest(folder, number)
        needed |= {manifest.file, *(one.folder for one in manifest.states)}
    return sorted(set(folder.names()) - needed)


def kill(folder: Path, times: int, n: int, seed: int, kind: str) -> int:
    """Kill one after the other; return how many left something damaged."""
    rng = np.random.default_rng(seed)
    state, known = commands(folder, n, kind)
    whole, log = saved(state), folder / "log"
    before = content(viewfold.load(state))
    start(known["forget"].words, log).join()  # wakes the server of processes up
    for command in known.values():
        prepare(state, whole, command)
        started = time.perf_counter()
        start(command.words, log).join()
        command.span = time.perf_counter() - started
        command.before = before
        command.state = content(viewfold.load(state))
        command.written = b"" if command.output is None else command.output.read_bytes()
        assert outcome(state, whole, command) == "after", (command.words, log.read_text())

    ended, left = {name: Counter[str]() for name in known}, list[str]()
    for i in range(times):
        name = list(known)[i % len(known)]
        command = known[name]
        prepare(state, whole, command)
        process = start(command.words, log)
        time.sleep(rng.uniform(0, 1.3 * command.span))
        process.kill()
        process.join()
        ended[name][outcome(state, whole, command)] += 1
        if not state.is_file():
            with viewfold.edit(state):  # the next writer
                left += left_over(state)
    for command in known.values():  # the last crash is in nobody's way
        prepare(state, whole, command)
        start(command.words, log).join()
        assert outcome(state, whole, command) == "after", (command.words, log.read_text())
    left += [p.name for p in folder.iterdir() if p.suffix == ".part"]
    total = sum(ended.values(), Counter())
    damaged = times - total["before"] - total["after"]
    for name, found in ended.items():
        print(f"{name:7} ({known[name].span:.2f} s): {dict(found)}")
    print(
        f"{times} kills: {total['before']} left what was before, {total['after']} what is after, "
        f"{damaged} damaged; left over at the end: {left}"
    )
    return damaged + len(left)


def pairs(folder: Path, times: int, n: int, kind: str) -> int:
    """Let two add at once; return how often that went wrong."""
    base, *two = write_views(folder, n, 3)
    state, logs = folder / f"pair.{kind}", [folder / "log0", folder / "log1"]
    both = refused = wrong = 0
    for _ in range(times):
        model = viewfold.ViewFold(8, random_state=0).partial_fit(base, ids="id", view="v0")
        model.save(state)
        processes = [
            start(["add", str(state), str(view), "--id", "id"], log)
            for view, log in zip(two, logs, strict=True)
        ]
        for process in processes:
            process.join()
        names = {view.name for view in viewfold.load(state).views_}
        codes = [process.exitcode for process in processes]
        if codes == [0, 0] and names == {"v0", "v1", "v2"}:
            both += 1
        elif sorted(codes) == [0, BusyError.exit_code] and len(names) == 2:
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
    parser.add_argument("--kind", choices=["vf", "vfd"], default="vf", help="file or folder")
    asked = parser.parse_args()
    preload = ["viewfold.estimators", "viewfold.data.files", "viewfold.cli", "viewfold.web.report"]
    multiprocessing.get_context("forkserver").set_forkserver_preload(preload)
    with tempfile.TemporaryDirectory(prefix="viewfold-crash-") as folder:
        wrong = 0
        if asked.times:
            wrong = kill(Path(folder), asked.times, asked.samples, asked.seed, asked.kind)
        if asked.pairs:
            wrong += pairs(Path(folder), asked.pairs, asked.samples, asked.kind)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
