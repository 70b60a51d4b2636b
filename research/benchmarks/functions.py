"""Count the functions of viewfold that one fold and one command pass.

    python research/benchmarks/functions.py [--names]

A newcomer has to read what is passed, so it is to stay little: 120 functions for one `partial_fit`
of a DataFrame, 300 for one `viewfold add`. A function counts once however often it is called;
comprehensions, lambdas and the bodies of classes and modules belong to what is around them.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import viewfold
from viewfold import ViewFold

HERE = str(Path(viewfold.__file__).resolve().parent)
IN_ANOTHER = ("<genexpr>", "<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<module>")
MOST = {"partial_fit": 120, "viewfold add": 300}


class Passed(NamedTuple):
    """What ran: calls of each function (module, name), and how many were inside one another."""

    calls: Counter[tuple[str, str]]
    depth: int

    @property
    def modules(self) -> set[str]:
        return {module for module, _ in self.calls}


def passed(run: Callable[[], object]) -> Passed:
    """Run something, and return which functions of viewfold it passed."""
    calls: Counter[tuple[str, str]] = Counter()
    counted: dict[CodeType, tuple[str, str] | None] = {}
    inside: defaultdict[int, list[FrameType]] = defaultdict(list)  # by thread
    deepest = 0

    def function(code: CodeType) -> tuple[str, str] | None:
        is_class_body = not code.co_flags & 0x1  # CO_OPTIMIZED
        if not code.co_filename.startswith(HERE) or code.co_name in IN_ANOTHER or is_class_body:
            return None
        return code.co_filename[len(HERE) + 1 :], code.co_qualname

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal deepest
        code = frame.f_code
        if code not in counted:
            counted[code] = function(code)
        key = counted[code]
        if key is None:
            return
        stack = inside[threading.get_ident()]
        if event == "call":
            calls[key] += 1
            stack.append(frame)
            deepest = max(deepest, len(stack))
        elif event == "return" and stack and stack[-1] is frame:
            stack.pop()

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return Passed(calls, deepest)


def tables() -> dict[str, pd.DataFrame]:
    """Return two views of 200 patients; each lacks some of them."""
    rng = np.random.default_rng(0)
    group = np.arange(200) % 3
    ids = pd.Index([f"p{i:03}" for i in range(200)], name="patient")
    views = {}
    for name, columns, rows in (("labs", 6, slice(0, 160)), ("scan", 5, slice(40, 200))):
        X = 4 * rng.normal(size=(3, columns))[group] + rng.normal(size=(200, columns))
        views[name] = pd.DataFrame(X, ids).add_prefix(f"{name}_").iloc[rows]
    return views


def of_partial_fit() -> Passed:
    """Return what folding the second view passes."""
    views = tables()
    ViewFold(3, random_state=0).partial_fit(views["labs"], view="labs").partial_fit(
        views["scan"], view="scan"
    )  # imports, and what is looked up once
    model = ViewFold(3, random_state=0).partial_fit(views["labs"], view="labs")
    return passed(lambda: model.partial_fit(views["scan"], view="scan"))


def command(*words: object) -> None:
    """Run a command in this process; what it says is not shown."""
    (script,) = entry_points(group="console_scripts", name="viewfold")
    main = script.load()
    before, sys.argv = sys.argv, ["viewfold", *map(str, words)]
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main()
    except SystemExit as ended:
        if ended.code:
            raise RuntimeError(said.getvalue()) from ended
    finally:
        sys.argv = before


def of_add() -> Passed:
    """Return what the command passes that folds a second view from a CSV file."""
    with tempfile.TemporaryDirectory(prefix="viewfold-") as name:
        folder = Path(name)
        for view, frame in tables().items():
            frame.to_csv(folder / f"{view}.csv")
        more = ("--id", "patient")
        for state in ("first.vf", "second.vf"):  # the first time imports things
            command("add", folder / state, folder / "labs.csv", *more, "--clusters", 3)
            line = ("add", folder / state, folder / "scan.csv", *more)
            found = passed(functools.partial(command, *line))
    return found


def count() -> dict[str, Passed]:
    """Return what each of the two passes."""
    return dict(zip(MOST, (of_partial_fit(), of_add()), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--names", action="store_true", help="show every function and its calls")
    show = parser.parse_args().names
    for name, found in count().items():
        print(
            f"{name}: {len(found.calls)} functions (at most {MOST[name]}) in {len(found.modules)} "
            f"modules, {found.calls.total()} calls, {found.depth} deep"
        )
        for (module, function), times in sorted(found.calls.items()) if show else ():
            print(f"  {module:32} {function:48} {times:6}")


if __name__ == "__main__":
    main()
