"""Balanced folding: viewfold's own method.

Each view becomes a few features of energy n (see `encoders`), so that all views weigh the same,
whenever they come. The consensus B holds the scores of everything folded so far. Where a sample
lacks the view, its features are predicted from B; where it is new, its row of B is predicted from
its features. The predictions are ridge regressions on the shared samples, and the new consensus the
main directions of both: sums over row blocks, small algebra, a map over row blocks.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy import linalg

from viewfold.blocks import Array, Matrix, Rows, blas_on_one_thread, for_each, reduce
from viewfold.consensus import Alignment, Folded
from viewfold.methods import encoders
from viewfold.methods.procrustes import gram
from viewfold.methods.scaling import partners
from viewfold.view import View


def fold(
    B: Array | None,
    view: View,
    found: Alignment,
    *,
    n_components: int,
    encoder: encoders.Kind = "mix",
    scale: encoders.Scale = "auto",
) -> Folded:
    """Fold a view into the consensus, giving it the weight of every other view.

    Parameters
    ----------
    B : ndarray of shape (n_previous, q) or None
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

    Returns
    -------
    Folded
    """
    with blas_on_one_thread() as threads:
        encode, F = encoders.learn(view, n_components, kind=encoder, scale=scale, threads=threads)
        if B is None:
            _, Q = encoders.top_eigenvectors(gram(Rows(F), threads), n_components)
            return Folded(F @ Q.astype(F.dtype), encode.then(Q), None)
        if found.n_shared == 0:
            warnings.warn(
                f"View {view.name!r} shares no sample with the {found.previous.size} folded so "
                "far: both groups keep their own structure, and no cluster will span them for a "
                "reason found in the data.",
                stacklevel=2,
            )
        return _join(B, F, encode, found, n_components, threads)


def _join(
    B: Array, F: Array, encode: encoders.Encoder, found: Alignment, n_components: int, threads: int
) -> Folded:
    q, f = B.shape[1], F.shape[1]

    def sums(where: slice, block: Array) -> tuple[Array, ...]:
        partner = found.partner[where]
        known = partner >= 0
        Fs, Fn = block[known].astype(np.float64), block[~known].astype(np.float64)
        Bs = B[partner[known]].astype(np.float64)
        return Bs.T @ Bs, Bs.T @ Fs, Fs.T @ Fs, Fn.T @ Fn

    BB, BF, FF, new = reduce(Rows(F), sums, threads)
    absent = gram(Rows(B, found.absent), threads)
    B_to_F, foretold = ridge(BB, BF, FF, found.n_shared)
    F_to_B, _ = ridge(FF, BF.T, BB, found.n_shared)
    agreement = foretold if found.n_shared > 1 else None

    # Rows of [B, F] for a sample that the view lacks, and for one that only the view has.
    of_old, of_new = np.hstack([np.eye(q), B_to_F]), np.hstack([F_to_B, np.eye(f)])
    both = np.block([[BB, BF], [BF.T, FF]]) + of_old.T @ absent @ of_old + of_new.T @ new @ of_new
    _, Q = encoders.top_eigenvectors(both, n_components)
    turn, entry = of_old @ Q, of_new @ Q

    dtype = np.result_type(B, F)
    out = np.empty((found.ids.size, Q.shape[1]), dtype)
    from_B, from_F, from_new, from_old = (M.astype(dtype) for M in (Q[:q], Q[q:], entry, turn))

    def write(where: slice, block: Matrix) -> None:
        partner = found.partner[where]
        rows = block @ from_F + partners(B, partner) @ from_B
        rows[partner < 0] = block[partner < 0] @ from_new
        out[found.rows[where]] = rows

    def carry(where: slice, block: Matrix) -> None:
        out[found.previous[found.absent[where]]] = block @ from_old

    for_each(Rows(F), write, threads)
    if found.absent.size:
        for_each(Rows(B, found.absent), carry, threads)
    return Folded(out, encode.then(entry), turn, agreement=agreement)


def ridge(AA: Array, AY: Array, YY: Array, n: int) -> tuple[Array, float]:
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
    coefficients : ndarray of shape (p, m)
        What A is multiplied with.
    foretold : float
        Cross-validated share of ‖Y‖² that is foretold, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.methods.balanced import ridge
    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(500, 3))
    >>> Y = np.column_stack([A @ [1, 2, 3], rng.normal(size=500)])
    >>> coefficients, foretold = ridge(A.T @ A, A.T @ Y, Y.T @ Y, 500)
    >>> coefficients.round(2) + 0.0
    array([[1., 0.],
           [2., 0.],
           [3., 0.]])
    """
    if n < 2:
        return np.zeros_like(AY), 0.0
    values, Q = linalg.eigh(AA, driver="evd", check_finite=False)
    energy, R = linalg.eigh(YY, driver="evd", check_finite=False)
    values, energy = np.maximum(values, 0), np.maximum(energy, 0)
    penalty = np.logspace(-2, 3, 16)[:, None] * max(values.mean(), np.finfo(float).tiny)
    inverse = 1 / (values + penalty)
    C = Q.T @ AY @ R
    residual = energy - 2 * inverse @ C**2 + (inverse**2 * values) @ C**2
    freedom = np.maximum(1 - (inverse * values).sum(axis=1) / n, 1e-3)
    error = np.maximum(residual, 0) / freedom[:, None] ** 2
    best = error.argmin(axis=0)
    left = np.minimum(error.min(axis=0), energy).sum()
    coefficients = Q @ (C / (values[:, None] + penalty[best, 0])) @ R.T
    return coefficients, float(1 - left / max(energy.sum(), np.finfo(float).tiny))
