"""Turn a view into a few balanced features, and remember how.

`learn` scales a view by what it is, projects it on its main directions, and describes every sample
twice: by those directions (linear) and by its place in a graph of landmarks (curved). Both have the
same total energy, so that no view and no description outweighs another. What is remembered is an
`Encoder`: small matrices that do nearly the same with rows that were never seen, and that hold no
single sample, but aggregates of ten or more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from viewfold.blocks import Array, Matrix, Rows, for_each, reduce, unit_rows
from viewfold.consensus import FEWEST, draw
from viewfold.kmeans import nearest, step
from viewfold.methods.aggregates import groups_of_ten, members, nearest_of
from viewfold.methods.scaling import (
    DOCUMENTS,
    Products,
    Scaling,
    Text,
    column_sums,
    dense,
    idf,
    is_sparse,
    says_nothing,
    survey,
    tell_faint,
)
from viewfold.view import View

Kind = Literal["linear", "landmarks", "mix"]
Scale = Literal["auto", "zscore", "l2", "tfidf"] | None

LINEAR_POWER = 0.5
"""Scores are U S^½ rather than U S: weaker directions may speak up."""

GRAPH_POWER = 2.0
"""Coordinates among landmarks are U S²: smoothed over the graph twice."""

LANDMARKS = (400, 1000)
"""A landmark for every twenty samples, but at least so many, or two for each direction that is
used, and otherwise at most so many."""

NEIGHBOURS = 8
"""A sample is joined to so many landmarks."""

RIDGE = 1e-3
"""Penalty of the regression that corrects a kept encoder; a tenth or ten times of it do as well."""

GRAPH_DIRECTIONS = 100
"""Distances to landmarks are taken in at least so many directions."""

WIDEST_GRAM = 2048
"""A view with more features gets its main directions from a sample instead of all of XᵀX."""


@dataclass(frozen=True)
class Landmarks:
    """A sample's place among landmarks, in the coordinates of a spectral embedding.

    Attributes
    ----------
    points : ndarray of shape (n_landmarks, n_directions)
        The landmarks.
    cosine : bool
        Whether angles count (text) or distances.
    coordinates : ndarray of shape (n_landmarks, n_coordinates)
        What a sample inherits from its landmarks.
    """

    points: Array
    cosine: bool
    coordinates: Array

    def graph(self, scores: Array) -> Matrix:
        """Join every row to its nearest landmarks, the nearer the stronger; rows sum to 1."""
        return _graph(self.read(scores), self.points)

    def read(self, scores: Array) -> Array:
        """Return scores as they are compared with landmarks."""
        return unit_rows(scores) if self.cosine else scores


@dataclass(frozen=True)
class Encoder:
    """From raw rows to features, and from features to the consensus.

    Attributes
    ----------
    scaling : Scaling
        How raw rows are scaled.
    directions : ndarray of shape (n_features, n_directions)
        What scaled rows are projected on.
    linear : ndarray
        Factors of the leading scores; empty if they are not used.
    landmarks : Landmarks or None
        The curved description, if it is used.
    factor : ndarray of shape (n_linear + n_coordinates,)
        What balances the two descriptions.
    output : ndarray of shape (n_linear + n_coordinates, n_components)
        From features to the consensus.
    """

    scaling: Scaling
    directions: Array
    linear: Array
    landmarks: Landmarks | None
    factor: Array
    output: Array

    def __call__(self, block: Matrix) -> Array:
        """Embed a block of raw rows."""
        return np.asarray(self.features(self.scores(block)) @ self.output.astype(block.dtype))

    def then(self, turn: Array) -> Encoder:
        """Return this encoder followed by a linear map of the consensus."""
        return replace(self, output=self.output @ turn)

    def scores(self, block: Matrix) -> Array:
        """Project a block of raw rows on the main directions."""
        return self.scaling.times(self.directions)(self.scaling.read(block))

    def features(self, scores: Array) -> Array:
        """Describe samples by their scores."""
        return (self._raw(scores) * self.factor).astype(scores.dtype, copy=False)

    def _raw(self, scores: Array, graph: Matrix | None = None) -> Array:
        parts = [damped(scores[:, : self.linear.size] * self.linear)]
        if self.landmarks is not None:
            graph = self.landmarks.graph(scores) if graph is None else graph
            parts.append(damped(graph @ self.landmarks.coordinates))
        return np.hstack(parts)


def learn(
    view: View,
    n_components: int,
    *,
    kind: Kind,
    scale: Scale,
    seed: tuple[int, ...],
    threads: int,
) -> tuple[Encoder, Array]:
    """Learn the encoder of a view.

    Parameters
    ----------
    view : View
        The view; it is walked twice.
    n_components : int
        How many directions, and how many coordinates among landmarks, are used.
    kind : {"linear", "landmarks", "mix"}
        Which descriptions are used.
    scale : {"auto", "zscore", "l2", "tfidf", None}
        How rows are scaled; "auto" looks at what the view is.
    seed : tuple of int
        Seed of the draws. No two views of a model may have the same: were the same samples drawn
        from every view, views of noise would agree on who was.
    threads : int
        How many blocks are worked on at once.

    Returns
    -------
    encoder : Encoder
        What may be kept of the view: it gives nearly these features.
    features : ndarray of shape (n_samples, n_linear + n_coordinates)
        The features of the view's samples, of total energy n_samples.
    """
    rows, n = view.rows, view.shape[0]
    width = n_components if kind == "linear" else max(n_components, GRAPH_DIRECTIONS)
    scaling, directions, spectrum = _main_directions(view, width, scale, seed, threads)
    if not spectrum.size:
        raise says_nothing(view)
    leading = spectrum[: 0 if kind == "landmarks" else n_components]
    linear = (leading / spectrum[0]) ** LINEAR_POWER / leading
    encoder = Encoder(scaling, directions, linear, None, np.empty(0), np.eye(0))

    if kind == "linear":
        scores = np.empty((n, linear.size), rows.dtype)

        def project(where: slice, block: Matrix) -> None:
            scores[where] = encoder.scores(block)

        for_each(rows, project, threads)
        encoder, features = _balanced(encoder, scores, None)
        return _kept(encoder, n, scores, features), features
    most = max(LANDMARKS[0], 2 * n_components, min(n // 20, LANDMARKS[1]))
    drawn = draw(view.ids, 10 * most, seed=seed, purpose="landmarks")
    scores = np.concatenate([encoder.scores(some) for some in rows.taken(drawn)])
    cosine = scaling.text is not None
    points = _place(scores, most, cosine)
    encoder = replace(encoder, landmarks=Landmarks(points, cosine, np.empty((len(points), 0))))
    encoder, coarse, leading, graph = _join(encoder, rows, n_components, threads)
    encoder, features = _balanced(encoder, leading, graph)
    return _kept(encoder, n, scores, features[drawn], coarse), features


def _kept(
    encoder: Encoder, n: int, scores: Array, features: Array, coarse: Landmarks | None = None
) -> Encoder:
    """Return what may be kept of an encoder that was learned from n samples.

    Directions are a tenth of the samples, landmarks means of ten or more. A regression on samples
    whose scores are at hand makes up for what both blur.
    """
    most = max(n // FEWEST, 1)
    split = encoder.linear.size
    if coarse is None and most >= split:  # nothing is blurred
        return replace(encoder, scaling=encoder.scaling.kept(n))
    if coarse is not None:
        coarse = replace(coarse, points=np.ascontiguousarray(coarse.points[:, :most]))
    kept = Encoder(
        scaling=encoder.scaling.kept(n),
        directions=np.ascontiguousarray(encoder.directions[:, :most]),
        linear=encoder.linear[:most],
        landmarks=coarse,
        factor=np.append(encoder.factor[:split][:most], encoder.factor[split:]),
        output=encoder.output,
    )
    K = kept.features(scores[:, :most]).astype(np.float64)
    inner = K.T @ K
    inner[np.diag_indices_from(inner)] += RIDGE * np.trace(inner) / len(inner) + 1e-300
    return replace(kept, output=linalg.solve(inner, K.T @ features, assume_a="pos"))


def _balanced(encoder: Encoder, scores: Array, graph: Matrix | None) -> tuple[Encoder, Array]:
    """Give each description an equal share of the energy n."""
    n, split = scores.shape
    landmarks = encoder.landmarks
    width = split + (0 if landmarks is None else landmarks.coordinates.shape[1])
    features, squares = np.empty((n, width), scores.dtype), np.zeros(width)
    for where in Rows(features).slices():
        block = encoder._raw(scores[where], None if graph is None else graph[where])
        features[where] = block
        squares += (block * block).sum(axis=0)
    energies = float(squares[:split].sum()), float(squares[split:].sum())
    share = n / max(sum(energy > 0 for energy in energies), 1)
    first, second = (np.sqrt(share / energy) if energy > 0 else 0.0 for energy in energies)
    factor = np.repeat([first, second], [split, width - split])
    features *= factor
    return replace(encoder, factor=factor, output=np.eye(width)), features


def scale_of(sample: Matrix) -> Literal["zscore", "l2", "tfidf"]:
    """Tell from some rows what a view is: dense, word counts, or other sparse weights.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.methods.encoders import scale_of
    >>> counts = np.zeros((4, 50))
    >>> counts[:, ::25] = [3, 1]
    >>> scale_of(counts), scale_of(counts / 7), scale_of(np.ones((4, 50)))
    ('tfidf', 'l2', 'zscore')
    """
    values = sample.data if is_sparse(sample) else sample[sample != 0]
    values = values[values != 0]
    size = sample.shape[0] * sample.shape[1]
    if not values.size or values.size >= 0.1 * size or values.min() < 0:
        return "zscore"
    return "tfidf" if np.array_equal(values, np.round(values)) else "l2"


def damped(rows: Array) -> Array:
    """Return rows divided by the square root of their length, so that outliers count less."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.sqrt(np.where(length > 0, length, 1)))


def top_eigenvectors(M: Array, most: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues of a symmetric M ≥ 0, descending, and their vectors.

    Values that are zero to round-off are left out; of two opposite vectors the one whose largest
    entry is positive is taken.
    """
    d = M.shape[0]
    if not d:
        return np.empty(0), np.empty((0, 0))
    first = max(d - most, 0)
    if most > d / 6:  # all of them are cheaper by divide and conquer
        values, vectors = linalg.eigh(M, driver="evd", check_finite=False)
        values, vectors = values[first:], vectors[:, first:]
    else:
        values, vectors = linalg.eigh(M, subset_by_index=(first, d - 1), check_finite=False)
    keep = values > 1e-12 * max(values[-1], 0)
    values, vectors = values[keep][::-1], vectors[:, keep][:, ::-1]
    peak = vectors[np.abs(vectors).argmax(axis=0), np.arange(values.size)]
    return values, vectors * np.sign(peak)


def _main_directions(
    view: View, most: int, scale: Scale, seed: tuple[int, ...], threads: int
) -> tuple[Scaling, Array, Array]:
    """Return scaling, top right singular vectors and singular values of a view, in one walk."""
    rows = view.rows
    kind = scale
    if scale == "auto":
        kind = scale_of(rows.take(draw(view.ids, 1000, seed=seed, purpose="scale")))
    text = Text(_idf(view, seed) if kind == "tfidf" else None) if kind in ("tfidf", "l2") else None
    look = partial(survey, scale="zscore" if kind == "zscore" else None, text=text, threads=threads)
    if view.shape[1] <= WIDEST_GRAM:
        scaling, products = look(rows, full=True)
        assert products.gram is not None
        values, directions = top_eigenvectors(products.gram, most)
        tell_faint(view, products)
    else:
        scaling, values, directions = _of_wide(view, most, seed, partial(look, full=False))
    return scaling, directions, np.sqrt(values)


def _of_wide(
    view: View, most: int, seed: tuple[int, ...], look: Callable[..., tuple[Scaling, Products]]
) -> tuple[Scaling, Array, Array]:
    """Return scaling, top eigenvalues and eigenvectors of XᵀX for a wide X.

    Those of a sample, ten rows for each, come from the products of its rows. If there are more
    rows, one product of XᵀX with them tells its leading part (Nyström's method).
    """
    rows, n = view.rows, view.shape[0]
    if n <= 10 * most:
        scaling, products = look(rows)
        tell_faint(view, products)
        return scaling, *_from_rows(scaling.read(rows.read(slice(0, n))), scaling, most)
    some = Rows(rows.take(draw(view.ids, 10 * most, seed=seed, purpose="directions")))
    scaling, _ = look(some)
    _, basis = _from_rows(scaling.read(some.X), scaling, most + 10)
    # Blocks come before features are standardised, so that has to be done to the other factor.
    raw = scaling.weight[:, None] * basis
    scaling, products = look(rows, lambda _, X: X @ raw.astype(X.dtype))
    tell_faint(view, products)
    weight = scaling.weight[:, None]
    basis = np.divide(raw, weight, out=np.zeros_like(raw), where=weight > 0)
    inner, turn = top_eigenvectors(basis.T @ products.cross, basis.shape[1])
    half = products.cross @ (turn / np.sqrt(inner))  # XᵀX is about half · halfᵀ
    values, turn = top_eigenvectors(half.T @ half, most)
    return scaling, values, half @ (turn / np.sqrt(values))


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


def _idf(view: View, seed: tuple[int, ...]) -> Array:
    """Return how much a word counts that few rows have."""
    drawn = draw(view.ids, DOCUMENTS, seed=seed, purpose="rarity of words")
    blocks = view.rows.taken(drawn)
    rows_with = sum(column_sums(sparse.csr_array(block != 0, dtype=np.float64)) for block in blocks)
    return idf(drawn.size, rows_with)


def _place(scores: Array, most: int, cosine: bool) -> Array:
    """Place landmarks by one step of k-means on a sample of rows: more steps bring nothing."""
    rows = unit_rows(scores) if cosine else scores
    if len(rows) <= most:
        return rows
    some = rows[:most]
    points = step(rows, some, nearest(rows, some))
    return unit_rows(points) if cosine else points


def _graph(rows: Array, points: Array) -> Matrix:
    """Join rows to landmarks, a few rows at a time: their distances should fit a cache."""
    parts = [_weights(rows[i : i + 500], points) for i in range(0, max(len(rows), 1), 500)]
    return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")


def _weights(rows: Array, points: Array) -> Matrix:
    """Weights δ_{q+1} − δ_j of the q nearest landmarks, with squared distances δ ascending."""
    q = min(NEIGHBOURS, len(points) - 1)
    distance = rows @ (-2 * points.T)
    distance += (points * points).sum(axis=1)
    farthest = np.partition(distance, q, axis=1)[:, q]
    at = np.flatnonzero(distance <= farthest[:, None])
    row, column = np.divmod(at, len(points))
    weight = farthest[row] - distance.ravel()[at]
    count, total = (np.bincount(row, w, minlength=len(rows)) for w in (None, weight))
    # Landmarks that are all equally near share the row.
    weight = np.where(total[row] > 0, weight, 1) / np.where(total > 0, total, count)[row]
    starts = np.append(0, np.cumsum(count))
    shape = len(rows), len(points)
    return sparse.csr_array((weight.astype(rows.dtype), column, starts), shape=shape)


def _join(
    encoder: Encoder, rows: Rows, most: int, threads: int
) -> tuple[Encoder, Landmarks, Array, Matrix]:
    """Join samples to landmarks, and give landmarks their coordinates in that graph.

    Returns the encoder, the landmarks that may be kept, and the leading scores of the samples and
    the graph: all that their features are made of, and much less than the view.
    """
    assert encoder.landmarks is not None
    landmarks: Landmarks = encoder.landmarks
    scores = np.empty((rows.shape[0], encoder.linear.size), rows.dtype)
    own = np.empty(rows.shape[0], np.intp)
    parts: dict[int, Matrix] = {}

    def join(where: slice, block: Matrix) -> tuple[Array, ...]:
        all_scores = encoder.scores(block)
        scores[where] = all_scores[:, : encoder.linear.size]
        graph = parts[where.start] = landmarks.graph(all_scores)
        own[where] = nearest_of(graph)
        total = members(own[where], graph.shape[1]) @ landmarks.read(all_scores)
        return (graph.T @ graph).toarray(), graph.sum(axis=0), total

    affinity, degree, total = reduce(rows, join, threads)
    graph = sparse.vstack([parts.pop(start) for start in sorted(parts)], format="csr")
    landmarks = replace(landmarks, coordinates=_coordinates(affinity, degree, most))
    coarse = _coarse(landmarks, total, own, graph)
    return replace(encoder, landmarks=landmarks), coarse, scores, graph


def _coarse(landmarks: Landmarks, total: Array, own: NDArray[np.intp], graph: Matrix) -> Landmarks:
    """Return landmarks that are means of ten samples or more, as their coordinates are.

    Known are the sum of the samples that are nearest to each landmark, and whose `own` it is.
    """
    size = np.bincount(own, minlength=len(total))
    group = groups_of_ten(total, size)
    n_groups = int(group.max()) + 1
    of_group = members(group, n_groups)
    count = (of_group @ size)[:, None]
    points = landmarks.read(of_group @ total / count).astype(landmarks.points.dtype)
    # What landmarks give to their samples, summed by group: small, where the graph is not.
    given = members(group[own], n_groups) @ graph
    return replace(landmarks, points=points, coordinates=given @ landmarks.coordinates / count)


def _coordinates(affinity: Array, degree: Array, most: int) -> Array:
    """Return what samples inherit from landmarks; the affinity between these is used up."""
    factor = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    affinity *= factor[:, None]
    affinity *= factor
    # √degree is an eigenvector for the value 1, and the same for everybody. It may not be the only
    # one for that value, so it is taken out by name.
    same = np.sqrt(degree / degree.sum())
    affinity -= np.outer(same, same)
    values, vectors = top_eigenvectors(affinity, most)
    keep = values > 1e-9
    spectrum, vectors = np.sqrt(values[keep]), vectors[:, keep]
    smooth = (spectrum / spectrum[:1]) ** GRAPH_POWER / spectrum
    return np.asarray(factor[:, None] * vectors * smooth)
