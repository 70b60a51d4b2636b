"""Features of a view, and an encoder that computes them for new rows.

`learn` projects a view on its principal directions and describes every sample twice: by scores on
those directions (linear) and by its place in a graph of landmarks (nonlinear). Both parts have the
same total energy, so that no view and no part outweighs another. The `FeatureEncoder` gives nearly
the same features for new rows; it holds aggregates of ten samples or more, and no single one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from viewfold._util import constants
from viewfold._util.constants import FEWEST
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array, Matrix
from viewfold.data.view import View
from viewfold.method.batches import Batches, learn_batches
from viewfold.method.filling import CELLS, Filled, Filling, learn_filling, of_directions
from viewfold.method.landmarks import Landmarks, connect, graph_of, place
from viewfold.method.novelty import learn_known
from viewfold.method.scaling import (
    DOCUMENTS,
    Counts,
    Projection,
    ScaleRule,
    Scaling,
    Text,
    batch_places,
    chosen_scale,
    depth_of,
    principal_directions,
    says_nothing,
)
from viewfold.method.variables import learn_variables
from viewfold.rows import Engine, RowSet
from viewfold.rows.linalg import damped
from viewfold.state.hashes import draw
from viewfold.state.parts import part

if TYPE_CHECKING:
    from viewfold.state.state import Encoder

EncoderKind = Literal["linear", "landmarks", "mix"]

# Penalty of the regression that corrects a kept encoder; a tenth or ten times of it do as well.
RIDGE = 1e-3


class Learner(Protocol):
    """A function that learns features of a view, and an encoder for other rows of it."""

    def __call__(
        self,
        engine: Engine,
        view: View,
        n_components: int,
        *,
        scale: ScaleRule,
        seed: tuple[int, ...],
    ) -> tuple[Encoder, RowSet]:
        """Return the encoder, and a row of features for each of the view's; see `learn`."""


@part("encoder", 2, axes={"linear": "l", "factor": "f", "output": "fr"})
@frozen_record
class FeatureEncoder:
    """From raw rows to features, and from features to the consensus."""

    project: Projection  # from raw rows to scores on the principal directions
    linear: Array  # factors of the leading scores; empty if they are not used
    landmarks: Landmarks | None  # the nonlinear description, if it is used
    factor: Array  # (n_linear + n_coordinates,): gives the two descriptions the same energy
    output: Array  # (n_linear + n_coordinates, n_components): from features to the consensus

    def __call__(self, block: Matrix) -> Array:
        return np.asarray(self.features(self.project(block)) @ self.output.astype(block.dtype))

    def then(self, linear_map: Array) -> FeatureEncoder:
        return replace(self, output=self.output @ linear_map)

    def features(self, scores: Array) -> Array:
        near = self.landmarks
        graph = None if near is None else graph_of(scores, near.points, near.cosine)
        raw = described(scores, graph, self.linear, near)
        return (raw * self.factor).astype(scores.dtype, copy=False)


def text_of(encoder: Encoder) -> Text | Counts | None:
    batches = encoder.batches if isinstance(encoder, Filled) else None
    if batches is not None:
        return batches.counts
    inner = encoder.encode if isinstance(encoder, Filled) else encoder
    return inner.project.text if isinstance(inner, FeatureEncoder) else None


def describe_scale(view: View, encoder: Encoder) -> str | None:
    """Return what the log tells about how a view was read, if anything."""
    first = encoder.fill.bends if isinstance(encoder, Filled) else None
    if first is None and isinstance(text_of(encoder), Counts):
        return "counts: rows divided by their depth, logarithm"
    return None if first is None else first.describe(view)


def measure_depth(
    engine: Engine, view: View, encoder: Encoder, seed: tuple[int, ...]
) -> tuple[NDArray[np.intp], Array] | None:
    """Return the totals of some rows of a view that is scaled as counts or words, else None."""
    text = text_of(encoder)
    if text is None or (isinstance(text, Text) and text.idf is None):
        return None
    drawn = draw(engine, view.ids, DOCUMENTS, seed=seed, purpose="depth")
    return drawn, depth_of(engine.collect(engine.select(view.rows, drawn)))


def measure_batches(
    engine: Engine, view: View, seed: tuple[int, ...]
) -> tuple[NDArray[np.intp], Array] | None:
    """Return the indicators of the batches of some rows of a view, if batches are known."""
    at = batch_places(view)
    if not at.size:
        return None
    drawn = draw(engine, view.ids, DOCUMENTS, seed=seed, purpose="batches")
    return drawn, engine.collect(engine.select(replace(view.rows, fill=None), drawn))[:, at]


def described(
    scores: Array, graph: Matrix | None, linear: Array, landmarks: Landmarks | None
) -> Array:
    """Describe samples by their scores and by their landmarks, before either is balanced."""
    parts = [damped(scores[:, : linear.size] * linear)]
    if landmarks is not None:
        parts.append(damped(graph @ landmarks.coordinates))
    return np.hstack(parts)


def learn(
    engine: Engine,
    view: View,
    n_components: int,
    *,
    kind: EncoderKind,
    scale: ScaleRule,
    seed: tuple[int, ...],
) -> tuple[Filled, RowSet]:
    """Learn the encoder of a view, and the features of its samples, of total energy n_samples.

    Each view of a model has another seed: if the same samples were drawn from all views, views of
    noise would seem to agree.
    """
    n = view.shape[0]
    width = n_components if kind == "linear" else max(n_components, constants.GRAPH_DIRECTIONS)
    rule, weight, kept = chosen_scale(engine, view, scale, seed), None, None
    batches = view.batches if isinstance(view.batches, Batches) else None
    batches = batches or learn_batches(engine, view, rule, seed)
    if batches is not None and rule == "counts":  # what it asks for is done with the batches
        rule = "zscore"
    bends, own = None, None
    if rule == "table":
        bends, own = learn_variables(engine, view, seed, batches)
    first = bends if batches is None else replace(batches, then=bends)
    if first is not None and view.gaps is None:
        view = replace(view, rows=_ready(engine, replace(view.rows, fill=first)))
    if view.gaps is not None:
        # Of text, what is missing is not there; cells of a sparse view are too many to predict.
        if rule in ("l2", "tfidf"):
            fill = kept = Filling.by_mean(np.zeros(view.shape[1]), view.gaps.rare)
        elif view.rows.is_sparse:
            fill = kept = Filling.by_mean(view.gaps.mean, view.gaps.rare)
        else:
            fill, kept, weight = learn_filling(engine, view, seed, first)
        view = replace(view, rows=_ready(engine, replace(view.rows, fill=fill)))
    if own is not None:
        weight = np.where(own > 0, own, 0.0 if weight is None else weight)
    scaling, directions, spectrum, energy = principal_directions(
        engine, view, width, rule, seed, weight
    )
    if not spectrum.size:
        raise says_nothing(view)
    if kept is None:
        kept = of_directions(scaling, directions, spectrum, energy, n, first)
    leading = spectrum[: 0 if kind == "landmarks" else n_components]
    linear = (leading / spectrum[0]) ** constants.SPECTRUM / leading
    project, coarse, known = scaling.projection(directions), None, None
    if kind == "linear":
        rows = engine.map(project, view.rows)
        features, factor = _balanced(engine, rows, None, linear, None)
        if n // FEWEST < linear.size:  # else nothing is blurred
            known = engine.collect(rows), engine.collect(features)
    else:
        most = max(constants.LANDMARKS, 2 * n_components, min(n // 20, constants.MOST_LANDMARKS))
        drawn = draw(engine, view.ids, 10 * most, seed=seed, purpose="landmarks")
        scores = engine.collect(engine.map(project, engine.select(view.rows, drawn)))
        cosine = isinstance(scaling.text, Text)
        points = place(scores, most, cosine)
        landmarks, coarse, rows, graph = connect(
            engine, view.rows, project, points, cosine, linear.size, n_components
        )
        features, factor = _balanced(engine, rows, graph, linear, landmarks)
        known = scores, engine.collect(engine.select(features, drawn))
    encoder = _kept(n, scaling, directions, linear, coarse, factor, known)
    return Filled(kept, encoder, learn_known(engine, view, scaling, seed)), features


def _ready(engine: Engine, rows: RowSet) -> RowSet:
    """Return rows whose cells are computed once, if they are few; else in every pass."""
    return engine.materialize(rows) if rows.stored <= CELLS else rows


def _kept(
    n: int,
    scaling: Scaling,
    directions: Array,
    linear: Array,
    landmarks: Landmarks | None,
    factor: Array,
    known: tuple[Array, Array] | None,
) -> FeatureEncoder:
    """Return what may be kept of an encoder that was learned from n samples.

    A ridge regression corrects the error of having n / 10 directions, and coarser landmarks.
    """
    most, split = max(n // FEWEST, 1), linear.size
    if landmarks is not None:
        points = np.ascontiguousarray(landmarks.points[:, :most])
        landmarks = replace(landmarks, points=points)
    encoder = FeatureEncoder(
        project=scaling.kept(n).projection(directions[:, :most], single=True),
        linear=linear[:most],
        landmarks=landmarks,
        factor=np.append(factor[:split][:most], factor[split:]),
        output=np.eye(factor.size),
    )
    if known is None:
        return encoder
    scores, features = known
    K = encoder.features(scores[:, :most]).astype(np.float64)
    inner = K.T @ K
    inner[np.diag_indices_from(inner)] += RIDGE * np.trace(inner) / len(inner) + 1e-300
    return replace(encoder, output=scipy.linalg.solve(inner, K.T @ features, assume_a="pos"))


def _balanced(
    engine: Engine, scores: RowSet, graph: RowSet | None, linear: Array, landmarks: Landmarks | None
) -> tuple[RowSet, Array]:
    """Return features in which both descriptions have the same energy, and the factors."""
    n, split = scores.shape[0], linear.size
    width = split + (0 if landmarks is None else landmarks.coordinates.shape[1])

    def describe(block: Array, edges: Matrix | None = None) -> tuple[Array, Array]:
        raw = described(block, edges, linear, landmarks)
        return raw.astype(block.dtype, copy=False), (raw * raw).sum(axis=0)

    beside = () if graph is None else (graph,)
    # If there are landmarks, scores are overwritten.
    fits = landmarks is not None and scores.shape[1] == width
    raw, squares = engine.map(describe, scores, *beside, sums=True, width=width, reuse=fits)
    energies = float(squares[:split].sum()), float(squares[split:].sum())
    share = n / max(sum(energy > 0 for energy in energies), 1)
    first, second = (np.sqrt(share / energy) if energy > 0 else 0.0 for energy in energies)
    factor = np.repeat([first, second], [split, width - split])
    scaled = engine.map(lambda block: (block * factor).astype(block.dtype), raw, reuse=True)
    return scaled, factor


learn_mix = partial(learn, kind="mix")
learn_linear = partial(learn, kind="linear")
learn_landmarks = partial(learn, kind="landmarks")
