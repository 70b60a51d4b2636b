"""The principal directions of a view, after scaling it by what it is: dense, counts, or weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from scipy import sparse

from viewfold._util import constants
from viewfold._util.types import Array, Matrix
from viewfold.data.view import View
from viewfold.method.scaling import DOCUMENTS, Products, Scaling, Text, idf, survey, tell_faint
from viewfold.rows import Engine, Rows
from viewfold.rows.linalg import column_sums, dense, filled, is_sparse, top_eigenvectors
from viewfold.state.sampling import draw

ScaleRule = Literal["auto", "zscore", "center", "l2", "tfidf"] | None

# A view with more features than this, or than rows, gets its principal directions from rows.
WIDEST_GRAM = 2048


def chosen_scale(
    engine: Engine, view: View, scale: ScaleRule, seed: tuple[int, ...]
) -> Literal["zscore", "center", "l2", "tfidf"] | None:
    """Return how to scale a view: as it is said, or by what a sample of its rows is."""
    if scale != "auto":
        return scale
    drawn = draw(engine, view.ids, 1000, seed=seed, purpose="scale")
    rows = view.rows if view.gaps is None else replace(view.rows, fill=None)
    return scale_of(engine.collect(engine.select(rows, drawn)))


def principal_directions(
    engine: Engine,
    view: View,
    most: int,
    kind: Literal["zscore", "center", "l2", "tfidf"] | None,
    seed: tuple[int, ...],
    weight: Array | None = None,
) -> tuple[Scaling, Array, Array, float]:
    """Return scaling, top right singular vectors and singular values of a view, and its energy.

    One pass is made over the view. `weight` is that of a z-score, where the spread of features is
    known better than from the rows.
    """
    text = None
    if kind in ("tfidf", "l2"):
        text = Text(_idf(engine, view, seed) if kind == "tfidf" else None)
    standardise = kind if kind in ("zscore", "center") else None
    look = partial(survey, engine, scale=standardise, text=text, weight=weight)
    if view.shape[1] <= min(WIDEST_GRAM, view.shape[0]):
        scaling, products = look(view.rows, full=True)
        assert products.gram is not None
        values, directions = top_eigenvectors(products.gram, most)
        tell_faint(view, products)
        energy = products.energy
    else:
        wide = _of_wide(engine, view, most, seed, partial(look, full=False))
        scaling, values, directions, energy = wide
    return scaling, directions, np.sqrt(values), energy


def scale_of(sample: Matrix) -> Literal["zscore", "center", "l2", "tfidf"]:
    """Return how to scale a view, from some rows.

    Sparse whole numbers are word counts, other sparse non-negative numbers are weights. Columns
    that are uncorrelated and of falling variance are principal-component scores, which a z-score
    would give the same weight as the noise behind them. Everything else is a table of measurements.
    """
    values = sample.data if is_sparse(sample) else sample[sample != 0]
    missing = np.isnan(values)
    values = values[(values != 0) & ~missing]
    size = sample.shape[0] * sample.shape[1] - np.count_nonzero(missing)
    if not values.size or values.size >= constants.SPARSE * size or values.min() < 0:
        return "center" if are_scores(sample) else "zscore"
    return "tfidf" if np.array_equal(values, np.round(values)) else "l2"


def are_scores(sample: Matrix) -> bool:
    """Tell principal-component scores: ten columns or more, uncorrelated, of falling variance."""
    n, d = sample.shape
    if not constants.FEWEST <= d < n or is_sparse(sample):
        return False
    there = n - np.isnan(sample).sum(axis=0)
    if not there.all():
        return False
    if there.min() < n:
        sample = filled(sample, np.asarray(np.nanmean(sample, axis=0, dtype=np.float64)))
    rows = sample.astype(np.float64) - sample.mean(axis=0, dtype=np.float64)
    spread = np.linalg.norm(rows, axis=0) * np.sqrt(n / there)
    if not spread.all() or np.mean(np.diff(spread) < 0) < constants.FALLING:
        return False
    correlation = (rows / spread).T @ (rows / spread)
    squares = (correlation**2).sum() - d
    return bool(squares / (d * (d - 1)) < 4 / n)  # by chance, it is 1 / n


def _of_wide(
    engine: Engine,
    view: View,
    most: int,
    seed: tuple[int, ...],
    look: Callable[..., tuple[Scaling, Products]],
) -> tuple[Scaling, Array, Array, float]:
    """Return scaling, top eigenvalues and eigenvectors of XᵀX for a wide X, and its energy.

    First the eigenvectors of a sample, ten rows for each of them, from the products of its rows. If
    there are many more rows, one product of XᵀX with these improves them (Nyström's method).
    """
    rows, (n, d) = view.rows, view.shape
    if n <= 10 * most or d <= WIDEST_GRAM:
        scaling, products = look(rows)
        tell_faint(view, products)
        found = _from_rows(scaling.read(engine.collect(rows)), scaling, most)
        return scaling, *found, products.energy
    drawn = draw(engine, view.ids, 10 * most, seed=seed, purpose="directions")
    some = engine.collect(engine.select(rows, drawn))
    scaling, _ = look(Rows(some))
    _, basis = _from_rows(scaling.read(some), scaling, most + 10)
    # Blocks come before features are standardised, so that has to be done to the other factor.
    raw = scaling.weight[:, None] * basis
    scaling, products = look(rows, lambda X: X @ raw.astype(X.dtype))
    tell_faint(view, products)
    weight = scaling.weight[:, None]
    basis = np.divide(raw, weight, out=np.zeros_like(raw), where=weight > 0)
    inner, V = top_eigenvectors(basis.T @ products.cross, basis.shape[1])
    half = products.cross @ (V / np.sqrt(inner))  # XᵀX is about half · halfᵀ
    values, V = top_eigenvectors(half.T @ half, most)
    return scaling, values, half @ (V / np.sqrt(values)), products.energy


def _from_rows(X: Matrix, scaling: Scaling, most: int) -> tuple[Array, Array]:
    """Return top eigenvalues and eigenvectors of XᵀX from the products of few rows."""
    weighted = X @ sparse.diags_array(scaling.weight) if is_sparse(X) else X * scaling.weight
    mean = scaling.mean * scaling.weight
    products = dense(weighted @ weighted.T).astype(np.float64)
    toward = weighted @ mean
    products += mean @ mean - toward - toward[:, None]
    values, vectors = top_eigenvectors(products, most)
    vectors = vectors / np.sqrt(values)
    return values, dense(weighted.T @ vectors) - np.outer(mean, vectors.sum(axis=0))


def _idf(engine: Engine, view: View, seed: tuple[int, ...]) -> Array:
    """Return the inverse document frequency of each word, from a sample of rows."""
    drawn = draw(engine, view.ids, DOCUMENTS, seed=seed, purpose="rarity of words")
    rows_with = engine.reduce(
        lambda block: column_sums(sparse.csr_array(block != 0, dtype=np.float64)),
        engine.select(view.rows, drawn),
    )
    return idf(drawn.size, rows_with)
