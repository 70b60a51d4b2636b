"""Balanced folding: viewfold's own method.

Each view becomes a few features F of energy ‖F‖² = n (see `encoders`). B is the consensus so far.
If a sample lacks the view, its features are predicted from B; if it is new, its row of B is
predicted from its features, by ridge regression on the shared samples. Both are weighed by what
they explain of each other. The new consensus holds the scores of [B, F] on its principal
directions.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from scipy import linalg

from viewfold._util import constants
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array
from viewfold.data.view import View
from viewfold.method import encoders
from viewfold.method.scaling import ScaleRule
from viewfold.rows import Alignment, Engine, RowSet
from viewfold.rows.linalg import eigenbasis, gram, ridge, top_eigenvectors
from viewfold.state.state import State, unconnected_groups
from viewfold.state.transitions import Combined

Share = TypeVar("Share", float, Array)


def combine(
    engine: Engine,
    state: State,
    view: View,
    alignment: Alignment,
    seed: int = 0,
    *,
    replaces: bool = False,
    n_components: int,
    learn: encoders.Learner = encoders.learn_mix,
    scale: ScaleRule = "auto",
) -> Combined:
    seeds = seed, len(state.views)
    encode, F = learn(engine, view, n_components, scale=scale, seed=seeds)
    depth = encoders.measure_depth(engine, view, encode, seeds)
    batches = encoders.measure_batches(engine, view, seeds)
    note = encoders.describe_scale(view, encode)
    told: dict[str, Any] = {"note": note, "depth": depth, "batches": batches}
    if not state.views:
        _, Q = top_eigenvectors(engine.reduce(gram, F), n_components)
        rows = engine.map(lambda block: block @ Q.astype(block.dtype), F)
        return Combined(rows, encode.then(Q), None, own=rows, **told)
    # Complete [B, F] by ridge regressions; the new consensus are its scores on its principal
    # directions.
    B = state.embedding
    q, f = B.shape[1], F.shape[1]
    sums = sum_overlap(engine, state, F, alignment)
    B_to_F = ridge(sums.BB, sums.BF, sums.FF, sums.n).coefficients
    F_to_B = ridge(sums.FF, sums.BF.T, sums.BB, sums.n).coefficients

    highest = max([record.agreement or 0.0 for record in state.views[1:]], default=0.0)
    weights = weigh(sums, confirmed=trust_in(highest), n_views=len(state.views))
    of_B, of_F, rest_of_B = weights.of_B, weights.of_F * np.eye(f), weights.of_B
    known = {record.name: record for record in state.views if record.encoder}
    if view.name in known:  # the consensus has the view: its rows count by their share of all
        share = min(view.shape[0] / known[view.name].n_samples, 1.0)
        of_F *= np.sqrt(constants.AGAIN * share)
    if view.name in known or replaces:
        rest_of_B, B_to_F = _replaced(B_to_F, min(of_F[0, 0], 1.0))

    # Rows of [B, F] for a sample that both have, that the view lacks, and that only the view has.
    of_both = linalg.block_diag(of_B, of_F)
    of_old = np.hstack([rest_of_B, B_to_F @ of_F])
    of_new = np.hstack([F_to_B @ of_B, of_F])
    # Groups that no view connects share the columns of the consensus, and get the same energy:
    # otherwise one with many samples or many views would take all of them.
    old = np.trace(sums.old, axis1=1, axis2=2)
    own = sum(map(np.trace, (sums.BB, sums.FF, sums.new))) + old[sums.connected].sum()
    energy = np.where(sums.connected, own, old)
    of_others = np.divide(1, energy, out=np.zeros_like(energy), where=energy > 0)
    shared = np.block([[sums.BB, sums.BF], [sums.BF.T, sums.FF]])
    products = (1 / own) * (of_both.T @ shared @ of_both + of_new.T @ sums.new @ of_new)
    products += of_old.T @ np.tensordot(of_others, sums.old, 1) @ of_old
    _, Q = top_eigenvectors(products, n_components)
    of_both, of_old, of_new = of_both @ Q, of_old @ Q, of_new @ Q

    dtype = np.result_type(B.dtype, F.dtype)
    from_B, from_F = of_both[:q].astype(dtype), of_both[q:].astype(dtype)
    from_old, from_new = of_old.astype(dtype), of_new.astype(dtype)

    def score(block: Array, partners: Array, known: Array) -> Array:
        rows = block @ from_F + partners @ from_B
        rows[~known] = block[~known] @ from_new
        return np.asarray(rows, dtype)

    embedding = alignment.merge(
        (score, F, alignment.partners(B), alignment.known),
        (lambda block: np.asarray(block @ from_old, dtype), alignment.absent(B)),
    )
    own = engine.map(lambda block: block @ from_new, F)
    return Combined(
        embedding,
        encode.then(of_new),
        of_old,
        agreement=weights.agreement,
        own=own,
        **told,
    )


def rank(n_clusters: int) -> int:
    return max(constants.PER_CLUSTER * n_clusters, constants.LEAST_RANK)


def basis(engine: Engine, B: RowSet) -> Array:
    """Return the eigenvectors Q of BᵀB: the columns of B Q are orthogonal; see `Method.basis`."""
    return eigenbasis(engine.reduce(gram, B))


def _replaced(B_to_F: Array, factor: float) -> tuple[Array, Array]:
    """Return W and C of rows [B W, factor B C] whose lengths and angles are those of rows of B.

    Predictions from a consensus that has the view come in the place of a part of it: beside it, the
    view would gain weight by every delivery. C is `B_to_F`, with a gain of 1 at most: it was
    learned on rows that the encoder placed, which are shorter than others.
    """
    gains, U = linalg.eigh(B_to_F @ B_to_F.T, check_finite=False)
    gains = np.maximum(gains, 0)
    C = (U / np.sqrt(np.maximum(gains, 1))) @ U.T @ B_to_F
    left = np.maximum(1 - factor**2 * np.minimum(gains, 1), 0)
    return (U * np.sqrt(left)) @ U.T, C


@frozen_record
class Overlap:
    """Sums of products of B and F over the samples they share, and over those they do not."""

    BB: Array  # BB, BF, FF: BᵀB, BᵀF and FᵀF over the n shared samples
    BF: Array
    FF: Array
    total_B: Array  # total_B, total_F: sums of rows over the same
    total_F: Array
    new: Array  # FᵀF over the samples that are new
    # (n_groups, q, q): BᵀB over the samples that the view lacks, for each group that no view
    # connects
    old: Array
    connected: Array  # (n_groups,): the groups that the view shares samples enough with
    n: int  # how many samples are shared; 0 if they are too few to connect anything


def sum_overlap(engine: Engine, state: State, F: RowSet, alignment: Alignment) -> Overlap:
    def sums(block: Array, partners: Array, known: Array) -> tuple[Array, ...]:
        Fs, Fn = block[known].astype(np.float64), block[~known].astype(np.float64)
        Bs = partners[known].astype(np.float64)
        return Bs.T @ Bs, Bs.T @ Fs, Fs.T @ Fs, Bs.sum(axis=0), Fs.sum(axis=0), Fn.T @ Fn

    B, n = state.embedding, alignment.n_shared
    beside = alignment.partners(B), alignment.known
    BB, BF, FF, total_B, total_F, new = engine.reduce(sums, F, *beside)
    groups = unconnected_groups(engine, state.seen, state.views)
    if groups is None:
        old, count = engine.reduce(gram, alignment.absent(B))[None], np.array([n])
    else:
        many = 1 + int(engine.reduce(lambda group: group.max(initial=0), groups, combine=max))
        old = engine.reduce(
            lambda block, group: np.array([gram(block[group == g]) for g in range(many)]),
            alignment.absent(B),
            alignment.absent(groups),
        )
        count = engine.reduce(
            lambda group: np.bincount(group[group >= 0], minlength=many),
            alignment.partners(groups, -1),
        )
    connected, n = count >= constants.FEWEST, n if n >= constants.FEWEST else 0
    return Overlap(BB, BF, FF, total_B, total_F, new, old, connected, n)


@frozen_record
class Trust:
    """What the consensus and a view are multiplied with, and what they have in common."""

    of_B: Array  # (q, q): the matrix for the consensus
    of_F: float  # the factor for the features of the view
    # the share of the view that the consensus explains; None if nothing connects them
    agreement: float | None


def trust_in(agreement: Share) -> Share:
    """Return how far agreements make sure that two sides speak of the same, from 0 to 1."""
    return agreement / (agreement + constants.HALF_TRUST)


def weigh(sums: Overlap, confirmed: float, n_views: int) -> Trust:
    """Weigh consensus and view by what they explain of each other, on the shared samples.

    `confirmed` is the highest trust in a view before. Until two views agree, all count, as any may
    be noise; then a view counts as far as it agrees, and more if it is the richer one. When two
    agree for the first time, what neither knows is taken from the consensus: it is noise.
    """
    q = len(sums.BB)
    if not sums.n:
        return Trust(np.eye(q), 1.0, None)
    # A common mean is no agreement: rows are centred.
    BB = sums.BB - np.outer(sums.total_B, sums.total_B) / sums.n
    BF = sums.BF - np.outer(sums.total_B, sums.total_F) / sums.n
    FF = sums.FF - np.outer(sums.total_F, sums.total_F) / sums.n
    _, V = top_eigenvectors(FF, q)  # no more columns than the consensus has
    BF, FF = BF @ V, V.T @ FF @ V
    agreement, back = ridge(BB, BF, FF, sums.n).share, ridge(FF, BF.T, BB, sums.n)
    trust = trust_in(agreement)
    richer = (back.share + constants.FLOOR) / (agreement + constants.FLOOR)
    of_F = (1 - confirmed * (1 - trust)) * np.sqrt(richer)
    of_B = np.eye(q)
    if n_views > 1:
        factor = 1 - trust * (1 - confirmed) * (1 - trust_in(back.explained))
        # About directions without energy in the shared samples, the view says nothing.
        energy = np.einsum("ij,ij->j", back.basis, BB @ back.basis)
        factor[energy <= 1e-9 * energy.max()] = 1
        of_B = (back.basis * factor) @ back.basis.T
    return Trust(of_B, float(of_F), agreement)
