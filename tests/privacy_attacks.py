"""What somebody learns who has got hold of a ``.vf`` file: attacks that read the file and no more.

``python tests/privacy_attacks.py`` prints the table of docs/privacy.md, from scikit-learn's digits;
``--data FILE.npz`` attacks another set (arrays ``view_0``, ``view_1``, …); ``--hashes`` prints the
table of rows that are guessed from their hashes. The tests use the same attacks.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from sklearn.neighbors import KNeighborsRegressor

import viewfold
from viewfold import FCMVC, ViewFold
from viewfold._util.types import Array
from viewfold.datasets import load_digits_views
from viewfold.rows import LocalEngine
from viewfold.state.hashes import fingerprints, hasher

KNOWN = 100
"""So many rows of a view does the attacker know who knows some."""


# ---- what is in the file ------------------------------------------------------------------------


def held(path: str | Path, schema: str = "main") -> dict[str, Array]:
    """Return every array of a file by its name, and the embedding, as plain SQL shows them."""
    with duckdb.connect(str(path), read_only=True) as db:
        columns = [name for name, *_ in db.sql(f"DESCRIBE {schema}.arrays").fetchall()]
        kind = "dtype" if "dtype" in columns else "kind"
        rows = db.sql(
            f"SELECT name, {kind}, shape, by_column, data FROM {schema}.arrays "
            "WHERE data IS NOT NULL"
        ).fetchall()
        embedding = db.sql(f"SELECT embedding FROM {schema}.samples").fetchall()
    found = {
        name: np.frombuffer(data, dtype).reshape(shape, order="F" if by_column else "C")
        for name, dtype, shape, by_column, data in rows
    }
    return {**found, "embedding": np.array([row for (row,) in embedding])}


def knowing(file: dict[str, Array], view: int, X: Array) -> dict[str, Array]:
    """Return what one knows who has a file, and mean and spread of a view's features as well.

    The file holds the product of spread and directions only; features of a population are no
    secret, so an attacker is given both.
    """
    spread = X.std(axis=0, ddof=1)
    weight = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
    of = f"encoder/{view}"
    directions = file[f"{of}/encode/project/weights"] * spread[:, None]
    more = {"mean": X.mean(axis=0), "weight": weight, "directions": directions}
    return {**file, **{f"{of}/{name}": array for name, array in more.items()}}


def standardised(X: Array, file: dict[str, Array], view: int) -> Array:
    """Return rows as the file's encoder of a view sees them, before they are projected."""
    of = f"encoder/{view}"
    return np.asarray((X - file[f"{of}/mean"]) * file[f"{of}/weight"])


# ---- attacks ------------------------------------------------------------------------------------


def to_landmarks(X: Array, file: dict[str, Array], view: int) -> Array:
    """Return how far the rows X are from the nearest landmark of a view that the file keeps.

    Landmarks are decoded to features as far as the kept directions go; distances are relative to
    the rows' own distance from the mean.
    """
    rows = standardised(X, file, view)
    decoded = file[f"encoder/{view}/encode/landmarks/points"] @ file[f"encoder/{view}/directions"].T
    squares = ((rows[:, None] - decoded) ** 2).sum(axis=2).min(axis=1)
    return np.asarray(np.sqrt(squares / (rows**2).sum(axis=1)))


def off_span(X: Array, file: dict[str, Array], view: int, by: str = "encoder") -> Array:
    """Return the share of each row of X that the kept directions of a view do not span."""
    rows = standardised(X, file, view)
    directions = file[f"{by}/{view}/directions"]
    basis = np.linalg.qr(directions.T if by == "moments" else directions)[0]
    return np.asarray(
        np.linalg.norm(rows - rows @ basis @ basis.T, axis=1) / np.linalg.norm(rows, axis=1)
    )


def from_products(Z: Array, orthonormal: bool) -> Array:
    """Return the one row that an embedding with orthogonal columns has lost, up to its sign."""
    missing = -(Z.T @ Z)
    if orthonormal:
        missing += np.eye(len(missing))
    guess = np.zeros(len(missing))
    for _ in range(500):  # the diagonal is not known unless columns are orthonormal
        if not orthonormal:
            np.fill_diagonal(missing, guess**2)
        values, vectors = np.linalg.eigh(missing)
        guess = vectors[:, -1] * np.sqrt(max(values[-1], 0))
    return np.asarray(guess)


def from_sum(Z: Array) -> Array:
    """Return the one row that an embedding with mean zero has lost."""
    return np.asarray(-Z.sum(axis=0))


def likeness(guess: Array, row: Array) -> float:
    """Return the squared cosine of a guess and a row: 1 if it is found, up to sign and length."""
    lengths = (guess @ guess) * (row @ row)
    return float((guess @ row) ** 2 / lengths) if lengths > 0 else 0.0


def fit(A: Array, Y: Array) -> Callable[[Array], Array]:
    """Return a ridge regression of Y on A, its penalty picked by leaving one out."""
    middle_a, middle_y = A.mean(axis=0), Y.mean(axis=0)
    U, s, Vt = np.linalg.svd(A - middle_a, full_matrices=False)
    best, kept = np.inf, np.zeros((A.shape[1], Y.shape[1]))
    for penalty in np.logspace(-6, 1, 15) * s[0] ** 2:
        share = s**2 / (s**2 + penalty)
        left = (Y - middle_y) - (U * share) @ (U.T @ (Y - middle_y))
        leverage = ((U**2) * share).sum(axis=1) + 1 / len(A)
        error = ((left / np.maximum(1 - leverage, 1e-3)[:, None]) ** 2).sum()
        if error < best:
            best, kept = error, Vt.T * (s / (s**2 + penalty)) @ U.T @ (Y - middle_y)
    return lambda other: (other - middle_a) @ kept + middle_y


def explained(X: Array, guess: Array) -> float:
    """Return R², the share of the variance of X that a guess has right; every feature counts."""
    spread = X.std(axis=0)
    varies = spread > 1e-9 * spread.max()
    errors = ((X - guess) ** 2).mean(axis=0)[varies] / spread[varies] ** 2
    return float(1 - errors.mean())


def with_known_rows(Z: Array, X: Array, seed: int = 0) -> float:
    """Return how well others' rows are rebuilt from the embedding by one who knows some rows."""
    order = np.random.default_rng(seed).permutation(len(X))
    known, others = np.split(order, [min(KNOWN, len(X) // 2)])
    return explained(X[others], fit(Z[known], X[known])(Z[others]))


def way_back(path: str | Path, view: int, X: Array) -> Array:
    """Return the standardised rows of everybody in a file, rebuilt from encoder and embedding.

    The attacker knows no row, but mean and spread of the features of X. He makes rows of his own,
    around the landmarks, embeds them, and takes for everybody those that are embedded nearby.
    """
    file, model = knowing(held(path), view, X), viewfold.load(path)
    points = file[f"encoder/{view}/encode/landmarks/points"]
    of, rng = f"encoder/{view}", np.random.default_rng(0)
    made = np.repeat(points, 20, axis=0)
    made += rng.normal(size=made.shape) * points.std(axis=0) / 2
    weight = file[f"{of}/weight"]
    inverse = np.divide(1, weight, out=np.zeros_like(weight), where=weight > 0)
    rows = made @ file[f"encoder/{view}/directions"].T
    raw = rows * inverse + file[f"{of}/mean"]
    back = KNeighborsRegressor(10, weights="distance")
    back.fit(model.transform(raw, view=view - 1), rows)
    return np.asarray(back.predict(file["embedding"]))


def by_moments(path: str | Path, view: int) -> Array:
    """Return the rows of everybody in a file as the moments of a view tell them, by one product.

    Samples are taken to be in the view; the attacker needs nothing but the file.
    """
    file, of = held(path), f"moments/{view}"
    with duckdb.connect(str(path), read_only=True) as db:
        labels = [label for (label,) in db.sql("SELECT label FROM samples").fetchall()]
    Z, A = file["embedding"], file[f"{of}/coefficients"]
    P = np.hstack([Z, np.eye(len(A) - Z.shape[1])[labels]])
    rows = (P - P.mean(axis=0)) @ A @ file[f"{of}/directions"]
    return np.asarray(file[f"{of}/mean"] + rows * file[f"{of}/spread"])


def with_evidence(path: str | Path, view: int) -> Array:
    """Return the embedding of everybody in a file, and what a view says about them beside it."""
    file = held(path)
    with duckdb.connect(str(path), read_only=True) as db:
        evidence = np.array([one for (one,) in db.sql("SELECT evidence FROM samples").fetchall()])
    m = file["directions/directions"].shape[1]
    said = evidence[:, (view - 1) * m : view * m] / 20
    return np.hstack([file["embedding"], said * np.sqrt((file["embedding"] ** 2).mean())])


def by_subtraction(path: str | Path, view: int, X: Array) -> Array:
    """Return the standardised row of the one sample that was forgotten: all others make up for it.

    Standardised rows have mean zero.
    """
    return np.asarray(-way_back(path, view, X).sum(axis=0))


def membership(of_members: Array, of_others: Array) -> float:
    """Return how often a member is told from another by its smaller distance: 0.5 is by chance."""
    return float((of_members[:, None] < of_others).mean())


def guessed(n_bits: int, *, short: bool, n: int = 400, key: int = 0) -> float:
    """Return the share of rows that are recovered from their hashes by trying all possible rows.

    A view of yes/no columns, all rows equally likely. The attacker computes the hash of each
    possible row with the key in the file. Of several that fit he takes one: if m rows fit, he is
    right with probability 1/m.
    """
    hashed, size = hasher(n_bits, key), 2**16

    def hashes(numbers: Array) -> Array:
        rows = ((numbers[:, None] >> np.arange(n_bits)) & 1).astype(np.float64)
        return np.asarray(fingerprints(LocalEngine(), rows, key) if short else hashed(rows))

    kept = hashes(np.random.default_rng(key).integers(2**n_bits, size=n))
    values, which = np.unique(kept, return_inverse=True)
    fitting = np.zeros(values.size)
    for start in range(0, 2**n_bits, size):
        tried = hashes(np.arange(start, min(start + size, 2**n_bits)))
        at = np.minimum(np.searchsorted(values, tried), values.size - 1)
        fitting += np.bincount(at[values[at] == tried], minlength=values.size)
    return float((1 / fitting[which]).mean())


# ---- the table ----------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="an .npz with view_0, view_1, … (digits if not)")
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--hashes", action="store_true", help="rows guessed from their hashes")
    asked = parser.parse_args()
    if asked.hashes:
        print_hashes()
        return
    warnings.simplefilter("ignore")
    if asked.data is None:
        views = [np.asarray(X, np.float64) for X in load_digits_views().views.values()]
    else:
        with np.load(asked.data) as file:
            names = [f"view_{i}" for i in range(99) if f"view_{i}" in file]
            views = [file[name].astype(np.float64) for name in names]
    n = len(views[0])
    order = np.random.default_rng(0).permutation(n)
    views = [X[order] for X in views]
    sizes = [size for size in (30, 60, 400) if size < 0.8 * n] + [int(0.8 * n)]
    print(f"| | {' | '.join(f'n = {size:,}' for size in sizes)} |")
    print("|---|" + "--:|" * len(sizes))
    columns = [attacked(views, size, min(asked.clusters, size // 10)) for size in sizes]
    for what in columns[0]:
        print(f"| {what} | {' | '.join(column[what] for column in columns)} |", flush=True)


def print_hashes() -> None:
    print("| bits of content | possible rows | hash of 32 bits | hash of 16 bits |")
    print("|--:|--:|--:|--:|")
    for n_bits in (3, 8, 12, 16, 24):
        found = [guessed(n_bits, short=short) for short in (False, True)]
        shares = " | ".join(f"{100 * share:.3g}%" for share in found)
        print(f"| {n_bits} | {2**n_bits:,} | {shares} |", flush=True)


def attacked(views: list[Array], n: int, n_clusters: int) -> dict[str, str]:
    """Return what attacks on a file of n samples find, in words and numbers."""
    ids = [f"p{i}" for i in range(n)]
    fresh = slice(n, min(n + 300, len(views[0])))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.vf"
        model = folded(ViewFold(n_clusters, random_state=0), views, ids)
        model.save(path)
        there = held(path)
        rebuilt = [
            explained(
                standardised(X[:n], knowing(there, i + 1, X[:n]), i + 1),
                way_back(path, i + 1, X[:n]),
            )
            for i, X in enumerate(views)
        ]
        told = [explained(X[:n], by_moments(path, i + 1)) for i, X in enumerate(views)]
        known = [with_known_rows(model.embedding_, X[:n]) for X in views]
        beside = [with_known_rows(with_evidence(path, i + 1), X[:n]) for i, X in enumerate(views)]
        gone = np.arange(max(n // 10, 3))
        model.forget([ids[i] for i in gone]).save(path)
        file = held(path)
    near, apart, inside, within = [], [], [], []
    for i, X in enumerate(views):
        # Encoders are the same for every sample that was folded, whether it is forgotten or not.
        file = knowing(file, i + 1, X[:n])
        folded_ones, others = (to_landmarks(X[rows], file, i + 1) for rows in (slice(n), fresh))
        near.append([np.median(folded_ones), np.median(others), folded_ones.min(), others.min()])
        apart.append(membership(folded_ones, others))
        for by, found in (("encoder", inside), ("moments", within)):
            spans = (off_span(X[rows], file, i + 1, by) for rows in (slice(n), fresh))
            found.append(membership(*spans))
    near = np.mean(near, axis=0)
    row = subtracted(views, ids, n_clusters)
    found = {kind: one_by_one(kind, views, ids, n_clusters) for kind in (ViewFold, FCMVC)}
    return {
        "1. landmarks: distance of a forgotten row / of one never seen, median": pair(*near[:2]),
        "the same, the nearest of all": pair(*near[2:]),
        "2. was this row folded? right answers, by landmarks": f"{np.mean(apart):.0%}",
        "the same, by directions": f"{np.mean(inside):.0%}",
        "the same, by moments": f"{np.mean(within):.0%}",
        "3. one sample forgotten: its embedding found, `ViewFold`": f"{found[ViewFold]:.0%}",
        "the same, `FCMVC`": f"{found[FCMVC]:.0%}",
        "the same, its row by subtraction: R²": f"{row:.1f}" if row > 0 else "none",
        "4. samples still there: R², from encoder and embedding": span(rebuilt),
        "the same, from moments and embedding": span(told),
        "5. the same, private, by one who knows 100 rows (half, if fewer)": span(known),
        "the same, not private, with the evidence of the view": span(beside),
    }


def pair(one: float, other: float) -> str:
    return f"{one:.2f} / {other:.2f}"


def span(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def folded(model: Any, views: list[Array], ids: list[str]) -> Any:
    """Fold the first rows of some views."""
    for i, X in enumerate(views):
        model.partial_fit(X[: len(ids)], ids=ids, view=f"view{i}")
    return model


def one_by_one(kind: type[Any], views: list[Array], ids: list[str], n_clusters: int) -> float:
    """Return how often the embedding of a sample is found that was forgotten alone."""
    model = folded(kind(n_clusters, random_state=0), views, ids)
    return float(np.mean([best_guess(deepcopy(model), i) > 0.99 for i in range(25)]))


def subtracted(views: list[Array], ids: list[str], n_clusters: int) -> float:
    """Return R² of the rows of samples that were forgotten alone, as subtraction finds them."""
    model = folded(ViewFold(n_clusters, random_state=0), views[:1], ids)
    found, true = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.vf"
        for i in range(25):
            deepcopy(model).forget([ids[i]]).save(path)
            X = views[0][: len(ids)]
            found.append(by_subtraction(path, 1, X))
            true.append(standardised(X[i], knowing(held(path), 1, X), 1))
    return float(1 - ((np.array(true) - found) ** 2).sum() / np.square(true).sum())


def best_guess(model: Any, which: int) -> float:
    """Forget one sample; return how like its embedding the best guess at it is."""
    before = model.embedding_
    model.forget([model.ids_[which]])
    Z = model.embedding_
    # Where the forgotten row would lie now: the attacker does not know, the judge does.
    others = np.column_stack([np.delete(before, which, axis=0), np.ones(len(Z))])
    row = np.append(before[which], 1) @ np.linalg.lstsq(others, Z, rcond=None)[0]
    guesses = from_sum(Z), from_products(Z, isinstance(model, FCMVC))
    return max(likeness(guess, row) for guess in guesses)


if __name__ == "__main__":
    main()
