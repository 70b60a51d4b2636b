"""Balanced folding: viewfold's own method.

Each view becomes a few features F of energy ‖F‖² = n (see `encoders`), so that all views weigh the
same. B is the consensus so far. If a sample lacks the view, its features are predicted from B; if
it is new, its row of B is predicted from its features, by ridge regression on the shared samples.
The new consensus holds the scores of [B, F] on its principal directions.
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
"""The factor for views and directions that are not reliable."""


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
    """Return the eigenvectors Q of BᵀB: the columns of B Q are orthogonal, also without some rows.

    Products of columns that are not orthogonal any more would tell the rows that are gone.
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

    BB, BF, FF = sums.centred()
    agreement = ridge(BB, BF, FF, sums.n).share if sums.n > 1 else None
    reliable = Reliability.after([record.agreement for record in state.views[1:]], agreement)
    of_B, of_F = np.eye(q), np.eye(f)
    if not reliable.view:
        of_F *= UNRELIABLE
    if not reliable.consensus:
        of_B = damp_unexplained(ridge(FF, BF.T, BB, sums.n), BB)

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
    """The weights of samples, if there are groups that no view connects.

    Attributes
    ----------
    of_view : float
        The weight of the samples of the view, which connects them to one group.
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

    def centred(self) -> tuple[Array, Array, Array]:
        """Return BB, BF and FF of centred rows: a common mean is no agreement."""
        n = max(self.n, 1)
        return (
            self.BB - np.outer(self.total_B, self.total_B) / n,
            self.BF - np.outer(self.total_B, self.total_F) / n,
            self.FF - np.outer(self.total_F, self.total_F) / n,
        )


@dataclass(frozen=True)
class Reliability:
    """Which of a view and the consensus is reliable, given the agreements of the views so far.

    A view of noise agrees with nothing. Until two views agree, it is not known which of them are
    noise, and all count as reliable. When two agree for the first time, and there were others
    before, the directions of the consensus that the newer view does not explain are unreliable.
    From then on, views that do not agree are unreliable.

    Attributes
    ----------
    view, consensus : bool
        Whether all of it is reliable.
    """

    view: bool
    consensus: bool

    @classmethod
    def after(cls, earlier: list[float | None], agreement: float | None) -> Reliability:
        """Decide from the agreement of a view, and those of the earlier views but the first."""
        confirmed = any(value is not None and value >= AGREES for value in earlier)
        agrees = agreement is not None and agreement >= AGREES
        return cls(
            view=not confirmed or agreement is None or agrees,
            consensus=not agrees or confirmed or not earlier,
        )


def weights_of_groups(
    engine: Engine, state: State, alignment: Alignment, F: RowSet
) -> Weights | None:
    """Return weights that give all groups of samples the same energy, None for a single group.

    Groups that no view connects share the columns of the consensus. Without weights, a group with
    many samples or many views would take all of them.
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


def damp_unexplained(explanation: Regression, products: Array) -> Array:
    """Return the matrix that damps the directions of B that a regression on F does not explain.

    Directions in which the shared samples have no energy (`products` is their BᵀB) stay as they
    are: they belong to samples about which the view says nothing.
    """
    basis = explanation.basis
    energy = np.einsum("ij,ij->j", basis, products @ basis)
    factor = np.clip(explanation.explained / AGREES, UNRELIABLE, 1)
    factor[energy <= 1e-9 * energy.max()] = 1
    return np.asarray((basis * factor) @ basis.T)
