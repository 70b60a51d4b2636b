"""What ``viewfold demo`` does: fold six views of handwritten digits one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from viewfold import cli, metrics, store
from viewfold.datasets import load_digits_views, missing
from viewfold.store import load, queries

BEGINNING = """\
1,797 handwritten digits, described by six views. Each view lacks 30 % of the digits, comes in a
file of its own, and is thrown away after it was folded. How many are in the right cluster can be
told here, as the digits are known: a view may bring it down, and later ones up again.
"""

NEXT = """
Now with your own files: a row per sample, a column with ids, numbers, categories or dates in the
other columns. `viewfold inspect first.csv` says what would be understood of it.

  viewfold add my.vf first.csv --id COLUMN --clusters auto
  viewfold add my.vf second.csv --id COLUMN --clusters auto
  viewfold report my.vf -o report.html"""


def tell(folder: Path) -> float:
    """Fold the digits' views from files, say what happens, leave labels and a report.

    Parameters
    ----------
    folder : path
        Where ``demo.vf``, ``labels.csv`` and ``report.html`` are left.

    Returns
    -------
    float
        The share of digits that are in the right cluster at the end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    state, labels, page = (folder / name for name in ("demo.vf", "labels.csv", "report.html"))
    digits = load_digits_views()
    for path in (state, labels, page):
        if path.exists() and not (state.exists() and set(queries.names(state)) <= {*digits.views}):
            raise ValueError(f"{path} exists and is not the demo's. Choose another folder.")
    target = digits.target
    _print(BEGINNING)
    with TemporaryDirectory(prefix=".viewfold-demo-", dir=folder) as files:
        draft = Path(files, state.name)  # an earlier demo stays until this one is complete
        for path in _write_views(Path(files)):
            new = "" if draft.exists() else " --clusters 10"
            _print(f"$ viewfold add {state} {path.name} --id digit{new}")
            _run("add", draft, path, "--id", "digit", "--clusters", "10")
            path.unlink()
            model = load(draft)
            truth = target[[int(name[1:]) for name in model.ids_]]
            accuracy = metrics.accuracy(truth, model.labels_)
            _print(f"  ({accuracy:.1%} in the right cluster)\n")
        with store.writing(state):
            draft.replace(state)
    _print(f"$ viewfold labels {state} -o {labels}")
    _run("labels", state, "-o", labels)
    _print(f"$ viewfold report {state} -o {page}")
    _run("report", state, "-o", page, "--title", "Handwritten digits")
    _print(NEXT)
    return accuracy


def _run(*words: str | Path) -> None:
    """Run a command of viewfold, as one types it."""
    cli.app([str(word) for word in words], standalone_mode=False)


def _print(text: str) -> None:
    print(text, flush=True)  # what commands say goes to standard error, and should stay in order


def _write_views(folder: Path) -> Iterator[Path]:
    """Write a view after the other to a file, without the samples it lacks."""
    digits = load_digits_views()
    gone = missing.at_random(len(digits.target), len(digits.views), ratio=0.3, random_state=0)
    for column, (name, X) in enumerate(digits.views.items()):
        frame = pd.DataFrame(X).add_prefix(f"{name}_")
        frame.insert(0, "digit", [f"d{i:04}" for i in range(len(frame))])
        path = folder / f"{name}.csv"
        frame[~gone[:, column]].to_csv(path, index=False)
        yield path
