"""Standardise a view without a copy of it, and find its principal directions.

A standardised view is ``(X − mean) · weight``. It is never computed: sums over X are corrected
afterwards to be sums over the standardised view. So a sparse view stays sparse, and the mean and
the products that a fold needs come from the same pass over the data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from viewfold._util import constants
from viewfold._util.constants import FEWEST
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array, Matrix
from viewfold.data.view import View
from viewfold.rows import Engine, Rows, RowSet
from viewfold.rows.linalg import column_sums, dense, filled, is_sparse, top_eigenvectors
from viewfold.state.hashes import draw
from viewfold.state.parts import part

Standardise = Literal["zscore", "center"] | None

# Axes of arrays in files: features d, columns of the embedding r, directions q.

# A feature whose squares add up to less is as good as constant: its z-score would overflow.
FAINT = {"float32": 1e-60, "float64": 1e-280}


@part("affine", axes={"weights": "dr", "offset": "r"})
@frozen_record
class Affine:
    """The map ``X @ weights + offset``."""

    weights: Array
    offset: Array

    def __call__(self, block: Matrix) -> Array:
        """Map a block of rows."""
        out: Array = block @ self.weights.astype(block.dtype, copy=False)
        out += self.offset.astype(block.dtype, copy=False)
        return out

    def then(self, linear_map: Array) -> Affine:
        """Return this map followed by a linear one."""
        return Affine(self.weights @ linear_map, self.offset @ linear_map)

    def padded(self, n_features: int, n_components: int) -> Affine:
        """Return this map for more features and components, none of which it uses."""
        d, k = self.weights.shape
        more = (0, n_components - k)
        return Affine(np.pad(self.weights, ((0, n_features - d), more)), np.pad(self.offset, more))


@part("text", axes={"idf": "d"})
@frozen_record
class Text:
    """Scale rows of word counts or weights to unit length, as latent semantic analysis does."""

    # (n_features,): for counts: they become (1 + log count) · idf before the row is scaled
    idf: Array | None = None

    def __call__(self, block: Matrix) -> Matrix:
        if self.idf is not None:
            block = scipy.sparse.csr_array(block)
            block.eliminate_zeros()
            with np.errstate(invalid="ignore", divide="ignore"):
                tf = np.where(block.data > 0, 1 + np.log(block.data), block.data)
            scaled = (tf * self.idf[block.indices]).astype(block.dtype)
            block = scipy.sparse.csr_array((scaled, block.indices, block.indptr), shape=block.shape)
        squares = (block.astype(np.float64) ** 2).sum(axis=1)  # of small weights, too
        length = np.sqrt(np.asarray(squares).ravel())
        factor = np.divide(1, length, out=np.zeros_like(length), where=length > 0)
        if is_sparse(block):
            return scipy.sparse.csr_array(
                scipy.sparse.diags_array(factor) @ block, dtype=block.dtype
            )
        return (block * factor[:, None]).astype(block.dtype, copy=False)

    def kept(self, n: int) -> Text:
        """Return what may be kept of n samples: words in ten rows or fewer get the same idf."""
        return self if self.idf is None else Text(np.minimum(self.idf, idf(n, FEWEST)))

    def usual(self, mean: Array) -> Array:
        return np.zeros_like(mean)  # of words, nothing is the usual


@part("counts")
@frozen_record
class Counts:
    """Take the depth out of rows of counts: how much was counted says nothing about a sample."""

    total: float  # rows are brought to this depth before the logarithm
    # whether the depth is the geometric mean of a row (centred log-ratios: no count dominates)
    # and not its total
    ratio: bool

    def __call__(self, block: Matrix) -> Matrix:
        depth = depth_of(block, self.ratio)
        factor = np.divide(self.total, depth, out=np.zeros_like(depth), where=depth > 0)
        if is_sparse(block):
            out = scipy.sparse.csr_array(scipy.sparse.diags_array(factor) @ block)
            out.data = np.log1p(np.maximum(out.data, 0)).astype(block.dtype, copy=False)
            return out
        out = block * factor[:, None].astype(block.dtype)
        return np.log1p(np.maximum(out, 0, out=out), out=out)

    def kept(self, n: int) -> Counts:
        return self

    def usual(self, mean: Array) -> Array:
        """Return the counts of a row of typical depth, from the mean of scaled rows."""
        return np.asarray(constants.SHALLOW * np.expm1(mean))


def depth_of(block: Matrix, ratio: bool = False) -> Array:
    """Return the total of each row, or the geometric mean of 1 + count, less 1."""
    if not ratio:
        return np.asarray(block.sum(axis=1, dtype=np.float64)).ravel()
    logs = np.log1p(np.maximum(dense(block), 0))
    return np.asarray(np.expm1(logs.mean(axis=1, dtype=np.float64)))


def learn_counts(engine: Engine, view: View, seed: tuple[int, ...]) -> Counts:
    """Learn the typical depth of a view of counts from a sample of its rows."""
    drawn = draw(engine, view.ids, DOCUMENTS, seed=seed, purpose="depth")

    def sums(block: Matrix) -> tuple[Array, ...]:
        few = depth_of(block, True).sum() if block.shape[1] <= constants.FEW_COUNTS else 0.0
        totals = np.array([depth_of(block).sum(), few, (block > 0).sum()])
        return totals, np.array([(block < 0).sum()])

    (total, geometric, some), below = engine.reduce(sums, engine.select(view.rows, drawn))
    if below[0] and view.gaps is None:  # what stands for missing cells may be negative
        raise ValueError(
            f"View {view.name!r} has negative numbers: scale='counts' is for counts. "
            "Use scale='auto'."
        )
    ratio = bool(geometric and some >= drawn.size * view.shape[1] / 2)
    return Counts(float((geometric if ratio else total) / drawn.size / constants.SHALLOW), ratio)


DOCUMENTS = 10_000  # How many rows document frequencies are counted in, at most


def idf(n: int, rows_with: Array | int) -> Array:
    return np.asarray(np.log((1 + min(n, DOCUMENTS)) / (1 + rows_with)) + 1)


@frozen_record
class Scaling:
    """The map x → (x − shift − mean) · weight; `read` subtracts the shift, sums do the rest."""

    # (n_features,): subtracted from every dense block when it is read; see `choose_shift`
    shift: Array | None
    mean: Array  # (n_features,): mean, weight: the rest of the standardisation
    weight: Array
    text: Text | Counts | None = None  # applied to every block when it is read, instead of a shift

    def read(self, block: Matrix) -> Matrix:
        if self.text is not None:
            return self.text(block)
        return block if self.shift is None else block - self.shift.astype(block.dtype)

    def kept(self, n: int) -> Scaling:
        """Return what may be kept of n samples: the shift alone is the mean of a few of them."""
        text = None if self.text is None else self.text.kept(n)
        if self.shift is None:
            return replace(self, text=text)
        return Scaling(self.shift + self.mean, np.zeros_like(self.mean), self.weight, text)

    def times(self, H: Array) -> Affine:
        """Return the map from blocks that went through `read` to (standardised rows) · H."""
        weights = self.weight[:, None] * H
        return Affine(weights, -(self.mean @ weights))

    def times_raw(self, H: Array) -> Affine:
        """Return the same map from raw blocks, for scalings that are affine (no text)."""
        inner = self.times(H)
        if self.shift is None:
            return inner
        return Affine(inner.weights, inner.offset - self.shift @ inner.weights)

    def projection(self, directions: Array, *, single: bool = False) -> Projection:
        """Return the map from raw blocks to scores on some directions, after scaling."""
        affine = self.times(directions)
        weights, offset = affine.weights, affine.offset
        if single:  # precision, unless that loses too much
            with np.errstate(over="ignore", invalid="ignore"):
                rounded = weights.astype(np.float32)
                error = np.abs(rounded - weights).max(axis=1)
            # A feature's values are of the size of 1 / weight.
            if (error <= 1e-6 * self.weight * np.abs(directions).max()).all():
                weights, offset = rounded, -(self.mean @ rounded.astype(np.float64))
        return Projection(self.text, self.shift, weights, offset)


@part("projection", axes={"shift": "d", "weights": "dq", "offset": "q"})
@frozen_record
class Projection:
    """From raw rows to scores: ``(row − shift) @ weights + offset``."""

    text: Text | Counts | None  # how rows are scaled first
    # (n_features,): subtracted first, if the features are far from zero; see `choose_shift`
    shift: Array | None
    weights: Array  # (n_features, n_directions): scaling and directions in one matrix
    offset: Array  # (n_directions,): what is added

    def __call__(self, block: Matrix) -> Array:
        if self.text is not None:
            block = self.text(block)
        elif self.shift is not None:
            block = block - self.shift.astype(block.dtype)
        return Affine(self.weights, self.offset)(block)


@frozen_record
class Products:
    """Sums over the standardised view X and some rows Zs that belong to it."""

    energy: float  # ‖X‖²
    gram: Array | None  # (d, d): XᵀX, if it was asked for
    cross: Array  # (d, k): XᵀZs
    shared: Array  # (k, k): ZsᵀZs
    # (d,): features that count as constant because they are too small to be squared
    faint: NDArray[np.bool_]
    mean: Array  # (d,): the mean of each feature, before it is standardised


def choose_shift(engine: Engine, rows: RowSet) -> Array | None:
    """Return what to subtract from dense features before squaring them, None if not needed."""
    if getattr(rows, "is_sparse", False):
        return None
    # A feature like a year or a time stamp varies little around a large mean; the sum of its
    # squares would lose the variation to round-off. Any value near the mean will do.
    block = engine.head(rows, 4096).astype(np.float64)
    mean, spread = block.mean(axis=0), block.std(axis=0)
    far = 1e3 if rows.dtype == np.float64 else 10.0
    return mean if np.any(np.abs(mean) > far * spread) else None


def survey(
    engine: Engine,
    rows: RowSet,
    partner: Callable[..., Array] | None = None,
    *beside: RowSet,
    scale: Standardise,
    text: Text | Counts | None = None,
    weight: Array | None = None,
    full: bool,
) -> tuple[Scaling, Products]:
    """Learn the scaling of a view and its products with something else, in one pass.

    Parameters
    ----------
    engine : Engine
        Computes with the rows.
    rows : RowSet
        The view.
    partner : callable, optional
        ``partner(X, *blocks)`` gives the rows Zs that belong to some rows of the view, from what
        these are before features are standardised, and from what is beside them.
    *beside : RowSet
        Other rows of the same samples.
    scale : {"zscore", "center", None}
        How features are standardised.
    text : Text, optional
        How blocks are scaled before.
    weight : ndarray of shape (n_features,), optional
        What to multiply features with for a z-score, where that is known (not 0).
    full : bool
        Whether XᵀX is wanted.
    """
    n, d = rows.shape
    shift = choose_shift(engine, rows) if scale and text is None else None
    start = Scaling(shift, np.zeros(d), np.ones(d), text)

    def sums(block: Matrix, *others: Array) -> tuple[Array, ...]:
        X = start.read(block)
        Zs = np.empty((X.shape[0], 0)) if partner is None else partner(X, *others)
        second, faint = _squares(X, full)
        cross = dense(X.T @ Zs.astype(X.dtype))
        return column_sums(X), second, cross, Zs.sum(axis=0), Zs.T @ Zs, faint

    total, second, cross, total_z, shared, faint = engine.reduce(sums, rows, *beside)
    squares = np.diagonal(second) if full else second
    scaling = replace(start, mean=total / n) if scale else start
    if scale == "zscore":  # divisor n − 1; a constant feature gets weight 0
        mean, known, eps = total / n, weight, float(np.finfo(rows.dtype).eps)
        variance = (squares - n * mean**2) / max(n - 1, 1)
        # Dense columns are summed pairwise, sparse ones entry by entry (in double precision).
        rounding = n * np.finfo(np.float64).eps if getattr(rows, "is_sparse", False) else 32 * eps
        noise = rounding * mean**2 + (16 * eps * (mean if shift is None else mean + shift)) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = np.where(variance > noise, 1 / np.sqrt(variance), 0.0)
        if known is not None:
            weight = np.where((weight > 0) & (known > 0), known, weight)
        scaling = Scaling(shift, mean, np.where(faint > 0, 0, weight), text)
    mean, weight = scaling.mean, scaling.weight
    energy = float(weight**2 @ (squares - n * mean**2))
    if full:
        second -= n * np.outer(mean, mean)
        second *= weight[:, None]
        second *= weight
    cross = weight[:, None] * (cross - np.outer(mean, total_z))
    lost = (faint > 0) & (scale == "zscore" or not energy)
    raw = total / n + (0 if shift is None else shift)
    return scaling, Products(energy, second if full else None, cross, shared, lost, raw)


def _squares(X: Matrix, full: bool) -> tuple[Array, NDArray[np.bool_]]:
    """Return XᵀX or its diagonal, and which features are too small for that."""
    second = dense(X.T @ X) if full else column_sums(X * X)
    kind = np.finfo(X.dtype)
    small = np.flatnonzero((np.diagonal(second) if full else second) < kind.tiny / kind.eps)
    faint = np.zeros(X.shape[1], bool)
    some = dense(X[:, small]).astype(np.float64)
    if some.any():  # what single precision would lose
        second = second.astype(np.float64)
        squares = (some**2).sum(axis=0)
        if full:
            second[:, small] = dense(X.T @ some)
            second[small] = second[:, small].T
        else:
            second[small] = squares
        faint[small] = some.any(axis=0) & (squares < FAINT[X.dtype.name])
    return second, faint


def says_nothing(view: View) -> ValueError:
    from viewfold.state.transitions import NothingVariesError  # whoever only encodes does not fold

    return NothingVariesError(
        f"View {view.name!r} has no feature that varies between its samples "
        f"({view.shape[0]:,} samples): it says nothing about them. Leave it out."
    )


def tell_faint(view: View, products: Products) -> None:
    """Warn of features that are too small to be squared; refuse a view that has no others."""
    if not products.faint.any():
        return
    which = np.pad(products.faint, (0, view.shape[1] - products.faint.size))
    said = (
        f"View {view.name!r}: the values in {names_of(view, which)} are too small to be squared. "
        "Multiply them by a large number"
    )
    if not products.energy:
        raise ValueError(f"{said}.")
    warnings.warn(f"{said}; they count as constant now.", stacklevel=2)


def names_of(view: View, which: NDArray[np.bool_]) -> str:
    at = np.flatnonzero(which)
    shown = [repr(view.features[i]) if view.features else str(i) for i in at[:5]]
    more = f", … ({at.size} in all)" if at.size > 5 else ""
    return f"column{'s' * (at.size > 1)} {', '.join(shown)}{more}"


def gram_times(engine: Engine, rows: RowSet, scaling: Scaling, H: Array) -> Array:
    encode = scaling.times(H)

    def products(block: Matrix) -> tuple[Array, ...]:
        X = scaling.read(block)
        Y = encode(X)
        return dense(X.T @ Y), Y.sum(axis=0)

    inner, total = engine.reduce(products, rows)
    return np.asarray(scaling.weight[:, None] * (inner - np.outer(scaling.mean, total)))


Scale = Literal["zscore", "table", "center", "l2", "tfidf", "counts"]
ScaleRule = Scale | Literal["auto"] | None

# A view with more features than this, or than rows, gets its principal directions from rows.
WIDEST_GRAM = 2048


def chosen_scale(
    engine: Engine, view: View, scale: ScaleRule, seed: tuple[int, ...]
) -> Scale | None:
    """Return how to scale a view: as it is said, or by what a sample of its rows is.

    Columns with names are variables, each on a scale of its own; those of an array are alike.
    """
    if scale != "auto":
        return scale
    drawn = draw(engine, view.ids, 1000, seed=seed, purpose="scale")
    sample = engine.collect(engine.select(replace(view.rows, fill=None), drawn))
    levels = are_levels(view)
    found = "zscore" if levels.all() else scale_of(sample[:, ~levels] if levels.any() else sample)
    levels[batch_places(view)] = False  # what is no feature
    if found == "counts" and levels.any():  # levels have no depth
        return "table"
    return "table" if found == "zscore" and view.features else found


def are_levels(view: View) -> NDArray[np.bool_]:
    """Tell which features are levels of a category."""
    columns = [column for column in view.columns or () if column.kind == "category"]
    return features_among(view, {name for column in columns for name in column.features})


def features_among(view: View, names: set[str]) -> NDArray[np.bool_]:
    """Tell which features have one of the names."""
    found = [name in names for name in view.features or ()]
    return np.array(found or [False] * view.shape[1])


def batch_places(view: View) -> NDArray[np.intp]:
    """Tell which features are indicators of the batch that a row is from, if that is said."""
    name = None if view.source is None else view.source.batch
    columns = [column for column in view.columns or () if column.name == name]
    return np.flatnonzero(features_among(view, {one for each in columns for one in each.features}))


def principal_directions(
    engine: Engine,
    view: View,
    most: int,
    kind: Scale | None,
    seed: tuple[int, ...],
    weight: Array | None = None,
) -> tuple[Scaling, Array, Array, float]:
    """Return scaling, top right singular vectors and singular values of a view, and its energy.

    `weight` is that of a z-score, where the spread is known better than from the rows.
    """
    text: Text | Counts | None = Text() if kind == "l2" else None
    if kind == "tfidf":  # how rare each word is, from a sample of rows
        drawn = draw(engine, view.ids, DOCUMENTS, seed=seed, purpose="rarity of words")
        rows_with = engine.reduce(
            lambda block: column_sums(scipy.sparse.csr_array(block != 0, dtype=np.float64)),
            engine.select(view.rows, drawn),
        )
        text = Text(idf(drawn.size, rows_with))
    standardise: Standardise = kind if kind in ("zscore", "center") else None
    if kind == "table":
        standardise = "zscore"
    if kind == "counts":  # rare features count like frequent ones
        text, standardise, weight = learn_counts(engine, view, seed), "zscore", None
    look = partial(survey, engine, scale=standardise, text=text, weight=weight)
    if view.shape[1] <= min(WIDEST_GRAM, view.shape[0]):
        scaling, products = look(view.rows, full=True)
        assert products.gram is not None
        values, directions = top_eigenvectors(products.gram, most)
        tell_faint(view, products)
        return scaling, directions, np.sqrt(values), products.energy
    return _of_wide(engine, view, most, seed, partial(look, full=False))


def scale_of(sample: Matrix) -> Scale:
    """Return how to scale a view, from some rows.

    Sparse whole numbers are word counts, other sparse non-negative numbers are weights. To scores
    on principal components, a z-score would give the same weight as to the noise behind them.
    """
    values = sample.data if is_sparse(sample) else sample[sample != 0]
    missing = np.isnan(values)
    values = values[(values != 0) & ~missing]
    size = sample.shape[0] * sample.shape[1] - np.count_nonzero(missing)
    if not values.size or values.min() < 0:
        return "center" if are_scores(sample) else "zscore"
    whole = np.array_equal(values, np.round(values))
    if values.size < constants.SPARSE * size:
        return "tfidf" if whole else "l2"
    if whole and are_counts(sample):
        return "counts"
    return "center" if are_scores(sample) else "zscore"


def are_counts(sample: Matrix) -> bool:
    """Tell whole numbers that are counts: without a bound, and driven by the depth of the row.

    Pixels and scores of a questionnaire have a bound, which many columns reach; of the bins of a
    histogram, one has what the others lack.
    """
    depth = depth_of(sample)
    sample, depth = sample[np.isfinite(depth)], depth[np.isfinite(depth)]
    n, d = sample.shape
    if n < 2 * FEWEST or d < 2 * FEWEST or depth.std() < constants.COUNTS_SPREAD * depth.mean():
        return False
    highest = dense(sample.max(axis=0)).ravel()
    if np.mean(highest == highest.max()) > constants.COUNTS_BOUND:
        return False
    some = dense(sample[:, :: -(-d // 1000)]).astype(np.float64)  # a thousand columns will do
    some = some[:, np.mean(some > 0, axis=0) >= constants.COUNTS_FREQUENT]
    rest = depth[:, None] - some
    slope = ((some - some.mean(axis=0)) * (rest - rest.mean(axis=0))).sum(axis=0)
    return bool(slope.size and np.mean(slope > 0) >= constants.COUNTS_DRIVEN)


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
    """Return scaling, top right singular vectors and values of a wide view, and its energy.

    They come from products of rows; of many rows, from some, improved by a product with all
    (Nyström's method).
    """
    rows, (n, d) = view.rows, view.shape
    if n <= 10 * most or d <= WIDEST_GRAM:
        scaling, products = look(rows)
        tell_faint(view, products)
        values, V = directions_of_rows(scaling.read(engine.collect(rows)), scaling, most)
        return scaling, V, np.sqrt(values), products.energy
    drawn = draw(engine, view.ids, 10 * most, seed=seed, purpose="directions")
    some = engine.collect(engine.select(rows, drawn))
    scaling, _ = look(Rows(some))
    _, basis = directions_of_rows(scaling.read(some), scaling, most + 10)
    # Blocks come before features are standardised, so that has to be done to the other factor.
    raw = scaling.weight[:, None] * basis
    scaling, products = look(rows, lambda X: X @ raw.astype(X.dtype))
    tell_faint(view, products)
    weight = scaling.weight[:, None]
    basis = np.divide(raw, weight, out=np.zeros_like(raw), where=weight > 0)
    inner, V = top_eigenvectors(basis.T @ products.cross, basis.shape[1])
    half = products.cross @ (V / np.sqrt(inner))  # XᵀX is about half · halfᵀ
    values, V = top_eigenvectors(half.T @ half, most)
    return scaling, half @ (V / np.sqrt(values)), np.sqrt(values), products.energy


def directions_of_rows(X: Matrix, scaling: Scaling, most: int) -> tuple[Array, Array]:
    """Return top eigenvalues and eigenvectors of XᵀX from the products of few rows."""
    weighted = X @ scipy.sparse.diags_array(scaling.weight) if is_sparse(X) else X * scaling.weight
    mean = scaling.mean * scaling.weight
    products = dense(weighted @ weighted.T).astype(np.float64)
    toward = weighted @ mean
    products += mean @ mean - toward - toward[:, None]
    values, vectors = top_eigenvectors(products, most)
    vectors = vectors / np.sqrt(values)
    return values, dense(weighted.T @ vectors) - np.outer(mean, vectors.sum(axis=0))
