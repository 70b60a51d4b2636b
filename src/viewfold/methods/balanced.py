"""Balanced folding: viewfold's own method.

Each view becomes a few features of energy n (see `encoders`), so that all views weigh the same,
whenever they come. The consensus B holds the scores of everything folded so far. Where a sample
lacks the view, its features are predicted from B; where it is new, its row of B is predicted from
its features. The predictions are ridge regressions on the shared samples, and the new consensus the
main directions of both: sums over row blocks, small algebra, a map over row blocks.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import linalg

from viewfold.blocks import Array, Matrix, Rows, blas_on_one_thread, for_each, reduce
from viewfold.consensus import FEWEST, Alignment, Consensus, Folded
from viewfold.methods import encoders
from viewfold.methods.procrustes import gram
from viewfold.methods.scaling import carry_over, partners
from viewfold.view import View

AGREES = 0.02
"""A view agrees with a consensus that foretells this share of it."""

PENALTIES = np.logspace(-2, 3, 16)
"""What a ridge regression may choose from, relative to the mean eigenvalue."""

DOUBTED = 0.1
"""What rows are multiplied with where nothing speaks for them."""


def fold(
    consensus: Consensus | None,
    view: View,
    found: Alignment,
    *,
    n_components: int,
    encoder: encoders.Kind = "mix",
    scale: encoders.Scale = "auto",
    seed: int = 0,
) -> Folded:
    """Fold a view into the consensus, giving it the weight of every other view.

    Parameters
    ----------
    consensus : Consensus or None
        The consensus so far; None for the first view.
    view : View
        The view.
    found : Alignment
        Where the samples of both stand in their union.
    n_components : int
        The most columns that the consensus may have.
    encoder : {"linear", "landmarks", "mix"}
        How the view is described.
    scale : {"auto", "zscore", "l2", "tfidf", None}
        How its rows are scaled.
    seed : int, default=0
        Seed of the draws; each view draws others.

    Returns
    -------
    Folded
    """
    with blas_on_one_thread() as threads:
        learn = partial(encoders.learn, kind=encoder, scale=scale, threads=threads)
        ordinal = 0 if consensus is None else len(consensus.views)
        encode, F = learn(view, n_components, seed=(seed, ordinal))
        if consensus is None:
            _, Q = encoders.top_eigenvectors(gram(Rows(F), threads), n_components)
            return Folded(F @ Q.astype(F.dtype), encode.then(Q), None)
        if found.n_shared == 0:
            warnings.warn(
                f"View {view.name!r} shares no sample with the {found.previous.size} folded so "
                "far. Nothing ties the two groups together, so both keep their own structure: a "
                "cluster that spans them does so because of its size, not because of its features.",
                stacklevel=2,
            )
        return _join(consensus, F, encode, found, n_components, threads)


def basis(B: Array) -> Array:
    """Return what makes the columns of a consensus orthogonal again that has lost some rows.

    Were they left as they are, the products of the columns would tell the row that is gone.
    """
    with blas_on_one_thread() as threads:
        _, Q = linalg.eigh(gram(Rows(B), threads), check_finite=False)
    Q = Q[:, ::-1]
    return np.asarray(Q * np.sign(Q[np.abs(Q).argmax(axis=0), np.arange(len(Q))]))


def _join(
    consensus: Consensus,
    F: Array,
    encode: encoders.Encoder,
    found: Alignment,
    n_components: int,
    threads: int,
) -> Folded:
    B = consensus.embedding
    q, f = B.shape[1], F.shape[1]
    sums = Overlap.of(B, F, found, threads)
    B_to_F = ridge(sums.BB, sums.BF, sums.FF, sums.n).coefficients
    F_to_B = ridge(sums.FF, sums.BF.T, sums.BB, sums.n).coefficients

    own_B, common, own_F = sums.about_the_mean()
    agreement = ridge(own_B, common, own_F, sums.n).share if sums.n > 1 else None
    doubt = Doubt.after([view.agreement for view in consensus.views[1:]], agreement)
    trust_B, trust_F = np.eye(q), np.eye(f)
    if doubt.view:
        trust_F *= DOUBTED
    if doubt.consensus:
        trust_B = confirmed(ridge(own_F, common.T, own_B, sums.n), own_B)

    # Rows of [B, F] for a sample that both have, that the view lacks, and that only the view has.
    of_both = linalg.block_diag(trust_B, trust_F)
    of_old = np.hstack([trust_B, B_to_F @ trust_F])
    of_new = np.hstack([F_to_B @ trust_B, trust_F])
    weight = weights_of_groups(consensus, found, F)
    if weight is not None:
        sums = Overlap.of(B, F, found, threads, weight)
    both = (
        of_both.T @ np.block([[sums.BB, sums.BF], [sums.BF.T, sums.FF]]) @ of_both
        + of_old.T @ sums.old @ of_old
        + of_new.T @ sums.new @ of_new
    )
    _, Q = encoders.top_eigenvectors(both, n_components)
    of_both, turn, entry = of_both @ Q, of_old @ Q, of_new @ Q
    embedding = _write(B, F, found, (of_both[:q], of_both[q:], turn, entry), threads)
    if sums.n < FEWEST:  # encoders may not keep what so few samples foretell
        turn, entry = Q[:q], trust_F @ Q[q:]
    return Folded(embedding, encode.then(entry), turn, agreement=agreement)


def _write(
    B: Array, F: Array, found: Alignment, maps: tuple[Array, Array, Array, Array], threads: int
) -> Array:
    """Write the new consensus, row by row."""
    dtype = np.result_type(B, F)
    out = np.empty((found.ids.size, maps[0].shape[1]), dtype)
    from_B, from_F, from_old, from_new = (M.astype(dtype) for M in maps)

    def write(where: slice, block: Matrix) -> None:
        partner = found.partner[where]
        rows = block @ from_F + partners(B, partner) @ from_B
        rows[partner < 0] = block[partner < 0] @ from_new
        out[found.rows[where]] = rows

    for_each(Rows(F), write, threads)
    carry_over(B, found, from_old, out, threads)
    return out


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
        cls, B: Array, F: Array, found: Alignment, threads: int, weight: Array | None = None
    ) -> Overlap:
        """Walk over the samples of both, each of which may have a weight."""
        if weight is not None:
            B = B * np.sqrt(weight[found.previous])[:, None]
            F = F * np.sqrt(weight[found.rows])[:, None]

        def sums(where: slice, block: Array) -> tuple[Array, ...]:
            partner = found.partner[where]
            known = partner >= 0
            Fs, Fn = block[known].astype(np.float64), block[~known].astype(np.float64)
            Bs = B[partner[known]].astype(np.float64)
            return Bs.T @ Bs, Bs.T @ Fs, Fs.T @ Fs, Bs.sum(axis=0), Fs.sum(axis=0), Fn.T @ Fn

        BB, BF, FF, total_B, total_F, new = reduce(Rows(F), sums, threads)
        old = gram(Rows(B, found.absent), threads)
        return cls(BB, BF, FF, total_B, total_F, old, new, found.n_shared)

    def about_the_mean(self) -> tuple[Array, Array, Array]:
        """Return BB, BF and FF about the mean: that all rows are alike is no agreement."""
        n = max(self.n, 1)
        return (
            self.BB - np.outer(self.total_B, self.total_B) / n,
            self.BF - np.outer(self.total_B, self.total_F) / n,
            self.FF - np.outer(self.total_F, self.total_F) / n,
        )


@dataclass(frozen=True)
class Doubt:
    """What to make of a view, given which views agreed with the consensus before them.

    Noise agrees with nothing. Until two views have agreed nobody can say which of them is noise,
    so all of them are heard alike. When the first two agree, what the newer one does not
    foretell of a consensus of several views is doubted; from then on, views that do not agree are.
    Views that agree from the start are left alone.

    Attributes
    ----------
    view, consensus : bool
        What is doubted.
    """

    view: bool
    consensus: bool

    @classmethod
    def after(cls, earlier: list[float | None], agreement: float | None) -> Doubt:
        """Judge a view from the agreements of the views between the first and it, and its own."""
        confirmed = any(value is not None and value >= AGREES for value in earlier)
        agrees = agreement is not None and agreement >= AGREES
        return cls(
            view=confirmed and agreement is not None and not agrees,
            consensus=agrees and not confirmed and len(earlier) > 0,
        )


def weights_of_groups(consensus: Consensus, found: Alignment, F: Array) -> Array | None:
    """Return a weight for each sample that gives the same to all groups, None for a single group.

    Groups that nothing ties together share the columns of the consensus. As they are, one with many
    samples, or with many views, would leave nothing to the others.
    """
    group = np.zeros(found.ids.size, np.intp)
    before = consensus.groups
    if before is not None:
        group[found.previous] = 1 + before
        tied = np.unique(before[found.partner[found.partner >= 0]])
        group[found.previous[np.isin(before, tied)]] = 0
    elif not found.n_shared:
        group[found.previous] = 1
    if not group.any() or group.all():
        return None
    energy = np.zeros(group.size)
    energy[found.previous] += np.einsum("ij,ij->i", consensus.embedding, consensus.embedding)
    energy[found.rows] += np.einsum("ij,ij->i", F, F)
    total = np.bincount(group, energy)
    return np.divide(1, total, out=np.zeros_like(total), where=total > 0)[group]


def confirmed(foretelling: Regression, own: Array) -> Array:
    """Return what rows are multiplied with to damp the directions that nothing foretells.

    Directions in which none of the shared samples lies (`own` are their products) stay as they are:
    they are those of samples about which the view says nothing.
    """
    basis = foretelling.basis
    energy = np.einsum("ij,ij->j", basis, own @ basis)
    factor = np.clip(foretelling.foretold / AGREES, DOUBTED, 1)
    factor[energy <= 1e-9 * energy.max()] = 1
    return np.asarray((basis * factor) @ basis.T)


@dataclass(frozen=True)
class Regression:
    """A ridge regression of Y on A.

    Attributes
    ----------
    coefficients : ndarray of shape (p, m)
        What A is multiplied with.
    basis : ndarray of shape (m, m)
        The main directions of Y.
    foretold : ndarray of shape (m,)
        The share of ‖Y‖² in each of them that is foretold, by cross-validation, from 0 to 1.
    share : float
        The same of all of ‖Y‖², under one penalty for all: picking one for each would find
        something to foretell in pure noise.
    """

    coefficients: Array
    basis: Array
    foretold: Array
    share: float


def ridge(AA: Array, AY: Array, YY: Array, n: int) -> Regression:
    """Regress Y on A, each main direction of Y with the penalty that suits it best.

    The penalties are picked by generalised cross-validation, in closed form.

    Parameters
    ----------
    AA, AY, YY : ndarray of shape (p, p), (p, m) and (m, m)
        AᵀA, AᵀY and YᵀY.
    n : int
        Number of rows of A and Y. With less than two, the prediction is zero.

    Returns
    -------
    Regression

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.methods.balanced import ridge
    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(500, 3))
    >>> Y = np.column_stack([A @ [1, 2, 3], rng.normal(size=500)])
    >>> found = ridge(A.T @ A, A.T @ Y, Y.T @ Y, 500)
    >>> found.foretold.round(2)
    array([0., 1.])
    >>> found.coefficients[:, 0].round(1)
    array([1., 2., 3.])
    """
    energy, R = linalg.eigh(YY, driver="evd", check_finite=False)
    energy = np.maximum(energy, 0)
    if n < 2:
        return Regression(np.zeros_like(AY), R, np.zeros_like(energy), 0.0)
    values, Q = linalg.eigh(AA, driver="evd", check_finite=False)
    values = np.maximum(values, 0)
    # If all rows of A are zero, nothing is foretold, whatever the penalty.
    penalty = PENALTIES[:, None] * (values.mean() if values.mean() > 1e-100 else 1.0)
    inverse = 1 / (values + penalty)
    C = Q.T @ AY @ R
    residual = energy - 2 * inverse @ C**2 + (inverse**2 * values) @ C**2
    freedom = np.maximum(1 - (inverse * values).sum(axis=1) / n, 1e-3)
    error = np.maximum(residual, 0) / freedom[:, None] ** 2
    best = error.argmin(axis=0)
    left = np.divide(error.min(axis=0), energy, out=np.ones_like(energy), where=energy > 0)
    left_of_all = error.sum(axis=1).min() / max(energy.sum(), np.finfo(float).tiny)
    return Regression(
        coefficients=Q @ (C / (values[:, None] + penalty[best, 0])) @ R.T,
        basis=R,
        foretold=np.maximum(1 - left, 0),
        share=max(1 - float(left_of_all), 0.0),
    )
