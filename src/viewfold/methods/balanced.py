"""Balanced folding: viewfold's own method.

Each view becomes a few features of energy n (see `encoders`), so that all views weigh the same,
whenever they come. The consensus B holds the scores of everything folded so far. Where a sample
lacks the view, its features are predicted from B; where it is new, its row of B is predicted from
its features. The predictions are ridge regressions on the shared samples, and the new consensus the
principal directions of both: sums over row blocks, small algebra, a map over row blocks.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from viewfold._types import Array
from viewfold.core.method import Combined
from viewfold.core.state import FEWEST, Encoder, State, unconnected_groups
from viewfold.engine import Alignment, Engine, RowSet
from viewfold.linalg import Regression, eigenbasis, gram, ridge, top_eigenvectors
from viewfold.methods import encoders
from viewfold.view._view import View

AGREES = 0.02
"""A view agrees with a consensus that explains this share of its variance."""

UNRELIABLE = 0.1
"""What rows are multiplied with where nothing speaks for them."""


def combine(
    engine: Engine,
    state: State,
    view: View,
    alignment: Alignment,
    *,
    n_components: int,
    learn: encoders.Learner = encoders.learn_mix,
    scale: encoders.ScaleRule = "auto",
    seed: int = 0,
) -> Combined:
    """Combine a view with the consensus, giving it the weight of every other view.

    Parameters
    ----------
    engine, state, view, alignment
        See `viewfold.core.method.Method.combine`.
    n_components : int
        The most columns that the consensus may have.
    learn : Learner
        How the view is described.
    scale : {"auto", "zscore", "l2", "tfidf", None}
        How its rows are scaled.
    seed : int, default=0
        Seed of the draws; each view draws others.

    Returns
    -------
    Combined
    """
    encode, F = learn(engine, view, n_components, scale=scale, seed=(seed, len(state.views)))
    if not state.views:
        _, Q = top_eigenvectors(engine.reduce(gram, F), n_components)
        rows = engine.map(lambda block: block @ Q.astype(block.dtype), F)
        return Combined(rows, encode.then(Q), None)
    if alignment.n_shared == 0:
        warnings.warn(
            f"View {view.name!r} shares no sample with the {alignment.n_before} folded so "
            "far. Nothing connects the two groups, so both keep their own structure: a "
            "cluster that spans them does so because of its size, not because of its features.",
            stacklevel=2,
        )
    return _refactor(engine, state, F, encode, alignment, n_components)


def basis(engine: Engine, B: RowSet) -> Array:
    """Return what makes the columns of a consensus orthogonal again that has lost some rows.

    Were they left as they are, the products of the columns would tell the row that is gone.
    """
    return eigenbasis(engine.reduce(gram, B))


def _refactor(
    engine: Engine,
    state: State,
    F: RowSet,
    encode: Encoder,
    alignment: Alignment,
    n_components: int,
) -> Combined:
    """Complete [B, F] by ridge regressions, and return its scores on its principal directions."""
    B = state.embedding
    q, f = B.shape[1], F.shape[1]
    sums = Overlap.of(engine, B, F, alignment)
    B_to_F = ridge(sums.BB, sums.BF, sums.FF, sums.n).coefficients
    F_to_B = ridge(sums.FF, sums.BF.T, sums.BB, sums.n).coefficients

    own_B, common, own_F = sums.about_the_mean()
    agreement = ridge(own_B, common, own_F, sums.n).share if sums.n > 1 else None
    reliable = Reliability.after([record.agreement for record in state.views[1:]], agreement)
    of_B, of_F = np.eye(q), np.eye(f)
    if not reliable.view:
        of_F *= UNRELIABLE
    if not reliable.consensus:
        of_B = confirmed(ridge(own_F, common.T, own_B, sums.n), own_B)

    # Rows of [B, F] for a sample that both have, that the view lacks, and that only the view has.
    of_both = linalg.block_diag(of_B, of_F)
    of_old = np.hstack([of_B, B_to_F @ of_F])
    of_new = np.hstack([F_to_B @ of_B, of_F])
    weights = weights_of_groups(engine, state, alignment, F)
    if weights is not None:
        sums = Overlap.of(engine, B, F, alignment, weights)
    both = (
        of_both.T @ np.block([[sums.BB, sums.BF], [sums.BF.T, sums.FF]]) @ of_both
        + of_old.T @ sums.old @ of_old
        + of_new.T @ sums.new @ of_new
    )
    _, Q = top_eigenvectors(both, n_components)
    of_both, of_old, of_new = of_both @ Q, of_old @ Q, of_new @ Q
    embedding = _scores(B, F, alignment, (of_both[:q], of_both[q:], of_old, of_new))
    if sums.n < FEWEST:  # encoders may not keep what so few samples explain
        of_old, of_new = Q[:q], of_F @ Q[q:]
    return Combined(embedding, encode.then(of_new), of_old, agreement=agreement)


def _scores(
    B: RowSet, F: RowSet, alignment: Alignment, maps: tuple[Array, Array, Array, Array]
) -> RowSet:
    """Return the new consensus, row by row."""
    dtype = np.result_type(B.dtype, F.dtype)
    from_B, from_F, from_old, from_new = (M.astype(dtype) for M in maps)

    def of_view(block: Array, partners: Array, known: Array) -> Array:
        rows = block @ from_F + partners @ from_B
        rows[~known] = block[~known] @ from_new
        return np.asarray(rows, dtype)

    return alignment.merge(
        (of_view, F, alignment.partners(B), alignment.known),
        (lambda block: np.asarray(block @ from_old, dtype), alignment.absent(B)),
    )


@dataclass(frozen=True)
class Weights:
    """What samples count, if there are groups that no view connects.

    Attributes
    ----------
    of_view : float
        The weight of the view's samples, who are in one group now.
    absent : RowSet of shape (n_absent,)
        The weights of the samples that the view lacks.
    """

    of_view: float
    absent: RowSet


@dataclass(frozen=True)
class Overlap:
    """Sums of products of B and F over the samples they share, and over those they do not.

    Attributes
    ----------
    BB, BF, FF : ndarray
        BᵀB, BᵀF and FᵀF over the n shared samples.
    total_B, total_F : ndarray
        Sums of rows over the same.
    old, new : ndarray
        BᵀB over the samples that the view lacks, FᵀF over those that are new.
    n : int
        How many samples are shared.
    """

    BB: Array
    BF: Array
    FF: Array
    total_B: Array
    total_F: Array
    old: Array
    new: Array
    n: int

    @classmethod
    def of(
        cls,
        engine: Engine,
        B: RowSet,
        F: RowSet,
        alignment: Alignment,
        weights: Weights | None = None,
    ) -> Overlap:
        """Sum over the samples of both, each of which may have a weight."""
        factor = None if weights is None else np.sqrt(weights.of_view)

        def sums(block: Array, partners: Array, known: Array) -> tuple[Array, ...]:
            if factor is not None:
                block, partners = block * factor, partners * factor
            Fs, Fn = block[known].astype(np.float64), block[~known].astype(np.float64)
            Bs = partners[known].astype(np.float64)
            return Bs.T @ Bs, Bs.T @ Fs, Fs.T @ Fs, Bs.sum(axis=0), Fs.sum(axis=0), Fn.T @ Fn

        def weighted(block: Array, weight: Array) -> Array:
            return gram(block * np.sqrt(weight)[:, None])

        BB, BF, FF, total_B, total_F, new = engine.reduce(
            sums, F, alignment.partners(B), alignment.known
        )
        absent = alignment.absent(B)
        if weights is None:
            old = engine.reduce(gram, absent)
        else:
            old = engine.reduce(weighted, absent, weights.absent)
        return cls(BB, BF, FF, total_B, total_F, old, new, alignment.n_shared)

    def about_the_mean(self) -> tuple[Array, Array, Array]:
        """Return BB, BF and FF about the mean: that all rows are alike is no agreement."""
        n = max(self.n, 1)
        return (
            self.BB - np.outer(self.total_B, self.total_B) / n,
            self.BF - np.outer(self.total_B, self.total_F) / n,
            self.FF - np.outer(self.total_F, self.total_F) / n,
        )


@dataclass(frozen=True)
class Reliability:
    """Whom to rely on, given which views agreed with the consensus before them.

    Noise agrees with nothing. Until two views have agreed nobody can say which of them is noise,
    so all of them are relied on. When the first two agree, what the newer one does not explain of
    a consensus of several views is unreliable; from then on, views that do not agree are. Views
    that agree from the start are left alone.

    Attributes
    ----------
    view, consensus : bool
        Whether to rely on all of it.
    """

    view: bool
    consensus: bool

    @classmethod
    def after(cls, earlier: list[float | None], agreement: float | None) -> Reliability:
        """Judge a view from the agreements of the views between the first and it, and its own."""
        confirmed = any(value is not None and value >= AGREES for value in earlier)
        agrees = agreement is not None and agreement >= AGREES
        return cls(
            view=not confirmed or agreement is None or agrees,
            consensus=not agrees or confirmed or not earlier,
        )


def weights_of_groups(
    engine: Engine, state: State, alignment: Alignment, F: RowSet
) -> Weights | None:
    """Return weights that give the same to all groups of samples, None for a single group.

    Groups that no view connects share the columns of the consensus. As they are, one with many
    samples, or with many views, would leave nothing to the others.
    """
    before = unconnected_groups(engine, state.seen, state.views)
    if before is None and alignment.n_shared:
        return None
    if before is None:
        before = engine.map(lambda added: np.zeros(len(added), np.intp), state.added)
    last = int(engine.reduce(lambda group: group.max(initial=0), before, combine=max))
    # The view connects its samples with the groups of those that it shares: they are group 0.
    counts = engine.reduce(
        lambda group: np.bincount(group[group >= 0], minlength=last + 1),
        alignment.partners(before, -1),
    )
    number = np.where(counts > 0, 0, 1 + np.arange(last + 1))
    if not number.any():
        return None

    def energy_of_view(block: Array, partners: Array) -> Array:
        return _squared_lengths(partners) + _squared_lengths(block)

    energy = alignment.merge(
        (energy_of_view, F, alignment.partners(state.embedding)),
        (_squared_lengths, alignment.absent(state.embedding)),
    )
    group = alignment.merge(
        (lambda known: np.zeros(len(known), np.intp), alignment.known),
        (lambda group: number[group], alignment.absent(before)),
    )
    total = engine.reduce(
        lambda group, energy: np.bincount(group, energy, minlength=last + 2), group, energy
    )
    weight = np.divide(1, total, out=np.zeros_like(total), where=total > 0)
    absent = engine.map(lambda group: weight[number[group]], alignment.absent(before))
    return Weights(float(weight[0]), absent)


def _squared_lengths(rows: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", rows, rows), np.float64)


def confirmed(explanation: Regression, own: Array) -> Array:
    """Return what rows are multiplied with to damp the directions that nothing explains.

    Directions in which none of the shared samples lies (`own` are their products) stay as they are:
    they are those of samples about which the view says nothing.
    """
    basis = explanation.basis
    energy = np.einsum("ij,ij->j", basis, own @ basis)
    factor = np.clip(explanation.explained / AGREES, UNRELIABLE, 1)
    factor[energy <= 1e-9 * energy.max()] = 1
    return np.asarray((basis * factor) @ basis.T)
