"""NEMO and PIMVC, two batch methods of the package iMML, on the views viewfold is measured with.

iMML has requirements of its own, so it lives in an environment of its own (`make_environment`).
`run` calls this same file inside it, where viewfold is not known::

    .venv-imml/bin/python research/benchmarks/batch_methods.py NEMO INPUT.npz OUTPUT.npz

INPUT.npz holds ``view_0``, ``view_1``, … (samples × features, a row of NaN where a sample is
missing), ``n_clusters``, ``seed`` and, if wanted, ``scale``. OUTPUT.npz gets ``labels`` and
``cpu_seconds``, or ``error``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

METHODS = ("NEMO", "PIMVC")
SCALES = ("standard", "unit", "none")
FOLDER = Path(__file__).resolve().parent.parent / ".venv-imml"


def make_environment(folder: str | Path = FOLDER) -> Path:
    """Make a virtual environment with iMML, unless it is there already.

    Parameters
    ----------
    folder : str or Path
        Where it is or shall be; `.venv-imml` in the project's root if not given.

    Returns
    -------
    Path
        The environment's Python, to be given to `run`.
    """
    folder = Path(folder).absolute()
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        (folder / ".gitignore").write_text("*\n")
    if subprocess.run([python, "-c", "import imml.cluster"], capture_output=True).returncode:
        subprocess.run([python, "-m", "pip", "install", "--quiet", "imml"], check=True)
    return python


def run(
    python: str | Path,
    method: str,
    views: Sequence[ArrayLike],
    n_clusters: int,
    seed: int,
    *,
    scale: str = "standard",
) -> tuple[NDArray[np.intp] | None, float, str | None]:
    """Cluster all views at once by a method of iMML, with its defaults, in a process of its own.

    It has one thread unless OMP_NUM_THREADS says otherwise.

    Parameters
    ----------
    python : str or Path
        What `make_environment` returned.
    method : {"NEMO", "PIMVC"}
        NEMO draws nothing at random. PIMVC ends with a single start of k-means: average over seeds.
    views : sequence of array-likes, each samples × features
        Dense, rows in the same order; a row of NaN is a sample that the view lacks.
    n_clusters, seed : int
        The number of clusters, and the method's `random_state`.
    scale : {"standard", "unit", "none"}
        What is done to each view before, from the rows it has: features standardised, rows scaled
        to unit length (better for text), or nothing. Its time is not counted.

    Returns
    -------
    labels : ndarray of shape (n_samples,), or None
        The clusters, None if the method failed.
    cpu_seconds : float
        CPU time of `fit_predict` alone, over all threads and child processes; NaN if it failed.
    error : str or None
        Why it failed.
    """
    for value, known in ((method, METHODS), (scale, SCALES)):
        if value not in known:
            raise ValueError(f"Expected one of {known}, got {value!r}.")
    arrays: dict[str, Any] = {f"view_{i}": np.asarray(X, float) for i, X in enumerate(views)}
    with tempfile.TemporaryDirectory() as folder:
        given, result = Path(folder, "input.npz"), Path(folder, "output.npz")
        np.savez(given, n_clusters=n_clusters, seed=seed, scale=scale, **arrays)
        command = [python, __file__, method, given, result]
        env = {"OMP_NUM_THREADS": "1", **os.environ}
        done = subprocess.run(command, capture_output=True, text=True, env=env)
        if done.returncode:  # killed for want of memory, for example
            said = done.stderr.strip().splitlines()[-1:]
            return None, np.nan, ": ".join([f"exit code {done.returncode}", *said])
        with np.load(result) as found:
            if "error" in found:
                return None, np.nan, str(found["error"])
            return found["labels"], float(found["cpu_seconds"]), None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("input", type=Path)
    parser.add_argument("output", type=Path)
    asked = parser.parse_args()
    with np.load(asked.input) as given:
        views = [given[f"view_{i}"] for i in range(sum(key.startswith("view_") for key in given))]
        scale = str(given["scale"]) if "scale" in given else "standard"
        options = {"n_clusters": int(given["n_clusters"]), "random_state": int(given["seed"])}
    np.savez(asked.output, **cluster(asked.method, views, scale, options))


def cluster(
    method: str, views: list[NDArray[Any]], scale: str, options: dict[str, int]
) -> dict[str, Any]:
    """Return what OUTPUT.npz is to hold; `main` and this run inside the other environment."""
    import imml.cluster
    from imml.preprocessing import NormalizerNaN
    from sklearn.preprocessing import StandardScaler

    if scale != "none":
        scaler = {"standard": StandardScaler(), "unit": NormalizerNaN()}[scale]
        views = [scaler.fit_transform(X) for X in views]
    try:
        start = cpu_time()
        labels = getattr(imml.cluster, method)(**options).fit_predict(views)
        return {"labels": np.asarray(labels, dtype=np.intp), "cpu_seconds": cpu_time() - start}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def cpu_time() -> float:
    """Return the CPU seconds of this process, all its threads, and its finished children."""
    now = os.times()
    return time.process_time() + now.children_user + now.children_system


if __name__ == "__main__":
    main()
