"""FCMVC-IV: fast continual multi-view clustering with incomplete views.

The names are those of the mathematics, samples in rows: X is the (standardised) view, Zp the
consensus before the fold and Z after it, H the view's basis, W the rotation of the memory.
`combine` gives what the authors' program gives without forming an n × n matrix or the SVD of an
n × k one: after one pass over X every iteration is algebra on d × k and k × k matrices.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from viewfold._util.constants import FEWEST
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array, Matrix
from viewfold.data.view import View
from viewfold.method.filling import Filled, Filling
from viewfold.method.scaling import (
    Affine,
    Products,
    Standardise,
    gram_times,
    names_of,
    says_nothing,
    survey,
    tell_faint,
)
from viewfold.rows import Alignment, Engine, RowSet
from viewfold.rows.linalg import dense, gram, inverse_sqrt, polar, triangle, whitener_of
from viewfold.state.state import State
from viewfold.state.transitions import Combined

Solver = Literal["auto", "gram", "direct"]


def combine(
    engine: Engine,
    state: State,
    view: View,
    alignment: Alignment,
    seed: int = 0,
    *,
    n_clusters: int,
    z_step: Literal["paper", "exact"] = "paper",
    solver: Solver = "auto",
    scale: Standardise = "zscore",
    tol: float = 1e-5,
    max_iter: int = 100,
) -> Combined:
    """Combine a view with the consensus by FCMVC-IV; nothing of it is random."""
    if view.source is not None and view.source.batch is not None:
        raise ValueError(f"View {view.name!r}: FCMVC knows no batch=…. Use ViewFold for it.")
    d = view.shape[1]
    if d < n_clusters:
        warnings.warn(
            f"View {view.name!r} has {d} features, fewer than n_clusters={n_clusters!r}: "
            f"it can add at most {d} dimensions to the consensus.",
            stacklevel=2,
        )
    if not state.views:
        return _first(engine, view, n_clusters, scale)
    if alignment.n_shared == 0:
        warnings.warn(
            f"View {view.name!r} shares no sample with the {alignment.n_before} folded so far: "
            "nothing connects the clusters of the two groups.",
            stacklevel=2,
        )
    # A consensus of a lower rank gets columns of zeros, which the view fills.
    rank = max(n_clusters, state.embedding.shape[1])
    if solver == "auto":
        solver = choose_solver(view.rows, rank)
    Zp = _padded(engine, state.embedding, rank)
    full, beside = solver == "gram", alignment.partners(Zp)
    scaling, products = survey(engine, view.rows, lambda _, Zs: Zs, beside, scale=scale, full=full)
    tell_faint(view, products)
    if not products.energy:
        raise says_nothing(view)
    gram_of_view: Callable[[Array], Array] = (
        partial(gram_times, engine, view.rows, scaling)
        if products.gram is None
        else products.gram.__matmul__
    )
    absent = engine.reduce(gram, alignment.absent(Zp))
    Z, condition, objective = solve(
        gram_of_view, products, absent, exact=z_step == "exact", tol=tol, max_iter=max_iter
    )
    dtype = np.result_type(view.rows.dtype, Zp.dtype)
    encode, V, N = scaling.times(Z.U), Z.V.astype(dtype), Z.N.astype(dtype)

    def of_view(block: Matrix, known: Array) -> Array:
        return np.asarray(encode(scaling.read(block)) + known @ V, dtype)

    embedding = alignment.merge(
        (of_view, view.rows, beside),
        (lambda block: np.asarray(block @ N, dtype), alignment.absent(Zp)),
    )
    if condition * np.finfo(dtype).eps > 1e-12:
        embedding, again = _reorthonormalised(engine, embedding)
        Z = Z.times(again)
    kept = limited(Z.U, lambda: Z.U.T @ gram_of_view(Z.U), view.shape[0])
    linear_map = Z.N[: state.embedding.shape[1]]
    encoder = _encoder(view, products.mean, scaling.times_raw(kept))
    return Combined(embedding, encoder, linear_map, len(objective), objective)


def _encoder(view: View, mean: Array, encode: Affine) -> Filled:
    rare = None if view.gaps is None else view.gaps.rare
    return Filled(Filling.by_mean(mean, rare), encode)


def basis(engine: Engine, A: RowSet) -> Array:
    """Return T such that ``A @ T`` is the polar factor of a tall matrix A: orthonormal columns."""
    T, condition = inverse_sqrt(engine.reduce(gram, A))
    if condition < 1e8:
        return T
    # AᵀA cannot tell a small direction of A from none; a QR factorisation of A can.
    R = engine.reduce(triangle, A, combine=lambda a, b: triangle(np.vstack([a, b])))
    return whitener_of(R, A.shape[0], float(np.finfo(A.dtype).eps))


def _reorthonormalised(engine: Engine, Z: RowSet) -> tuple[RowSet, Array]:
    """Take off what round-off left of ZᵀZ ≠ I; return also what Z was multiplied with."""
    again, _ = inverse_sqrt(engine.reduce(gram, Z))
    return _times(engine, Z, again), again


def _times(engine: Engine, A: RowSet, M: Array) -> RowSet:
    """Multiply a tall matrix, which is not needed any more, by a small square one."""
    return engine.map(lambda block: block @ M.astype(block.dtype), A, reuse=True)


def _padded(engine: Engine, rows: RowSet, columns: int) -> RowSet:
    more = columns - rows.shape[1]
    if not more:
        return rows
    return engine.map(lambda block: np.pad(block, ((0, 0), (0, more))), rows)


def choose_solver(rows: RowSet, n_clusters: int) -> Solver:
    """Pick the cheaper of the two solvers for a view."""
    n, d = rows.shape
    if rows.on_disk:
        return "gram" if d <= 4096 else "direct"
    # "gram" takes d products for each entry of X, once; "direct" 4k in each of some 15 iterations.
    return "gram" if max(rows.stored / n, d * d / n) < 4 * n_clusters * 15 else "direct"


@frozen_record
class Combination:
    """Rows of a consensus in terms of the view X and the consensus Zp before it.

    ``X U + Zs V`` for the samples of the view, where Zs are their rows of Zp (zero if they are
    new), and ``Zp N`` for the samples that the view lacks.
    """

    U: Array
    V: Array
    N: Array

    def times(self, T: Array) -> Combination:
        return Combination(self.U @ T, self.V @ T, self.N @ T)


def solve(
    gram_times: Callable[[Array], Array],
    products: Products,
    absent: Array,
    *,
    exact: bool,
    tol: float,
    max_iter: int,
) -> tuple[Combination, float, tuple[float, ...]]:
    """Iterate on small matrices until the objective settles; with `exact`, it never rises.

    Returns Z, the condition of what it is the polar factor of, and the course of the objective.
    `gram_times` multiplies XᵀX; `absent` is ZpᵀZp over the samples that the view lacks.
    """
    E, S, energy = products.cross, products.shared, products.energy
    d, k = E.shape
    H, W, Z = np.eye(d, k), np.eye(k), None
    condition, objective = np.inf, list[float]()
    while len(objective) < max_iter and not _settled(objective, tol, energy):
        U, V, N = H, W.T, W.T
        if exact and Z is not None:
            # Samples that the view lacks, and directions outside H, add to the constant ‖Z‖² but
            # not to the objective. Their share enters it with a minus sign, so that its tangent
            # at the last Z is a majoriser.
            N = N + Z.N
            if d < k:
                outside = Z.times(np.eye(k) - H.T @ H)
                U, V = U + outside.U, V + outside.V
        # Z = A T, the polar factor of A = (X U + Zs V, Zp N)
        XXU, EV, UE, VS, NP = gram_times(U), E @ V, U.T @ E, V.T @ S, N.T @ absent
        both = UE @ V
        AA = U.T @ XXU + both + both.T + VS @ V  # over the samples of the view
        T, condition = inverse_sqrt(AA + NP @ N)
        Z = Combination(U, V, N).times(T)
        XZ, ZZp, ZZ = (XXU + EV) @ T, T @ (UE + VS + NP), T @ AA @ T
        W = polar(ZZp)
        # If HᵀH < I, ½‖ZHᵀ‖² is not constant in H either.
        H = polar(XZ + H @ (np.eye(k) - ZZ)) if exact and d < k else polar(XZ)
        norm = np.trace(ZZ) if d >= k else np.vdot(H.T @ H, ZZ)
        gain = np.vdot(H, XZ) + np.vdot(W, ZZp)
        objective.append(float((energy + norm) / 2 - gain))
    assert Z is not None  # max_iter is at least 1
    return Z, condition, tuple(objective)


def _settled(objective: list[float], tol: float, energy: float) -> bool:
    # The objective may pass through zero; its terms are of the size of the view's energy.
    small = tol * max(abs(objective[-1]), 1e-12 * energy) if objective else 0
    return len(objective) > 2 and abs(objective[-1] - objective[-2]) < small


def _first(engine: Engine, view: View, n_clusters: int, scale: Standardise) -> Combined:
    """Z = polar(X H₀): of the first view, the paper takes the first k features."""
    n, d = view.shape
    used = min(d, n_clusters)
    A = engine.map(dense, engine.leading(view.rows, used))
    scaling, products = survey(engine, A, scale=scale, full=False)
    tell_faint(view, products)
    spread = scaling if scale == "zscore" else survey(engine, A, scale="zscore", full=False)[0]
    _tell_constant(view, spread.weight == 0)

    def standardise(block: Array) -> Array:
        return np.asarray((scaling.read(block) - scaling.mean) * scaling.weight, block.dtype)

    A = engine.map(standardise, A, reuse=True)
    T = basis(engine, A)
    A, again = _reorthonormalised(engine, _times(engine, A, T))
    T = T @ again
    # T is (AᵀA)^(-1/2): what varies most is where it is small.
    kept = limited(T, lambda: np.linalg.pinv(T), n)
    encode = scaling.times_raw(kept).padded(d, n_clusters)
    encoder = _encoder(view, np.pad(products.mean, (0, d - used)), encode)
    return Combined(_padded(engine, A, n_clusters), encoder, None, 1, ())


def _tell_constant(view: View, constant: NDArray[np.bool_]) -> None:
    if not constant.any():
        return
    (n, d), used = view.shape, constant.size
    said = (
        f"View {view.name!r} ({n:,} samples) is the first: it "
        f"enters through its first {used} features only. Constant among them: "
        f"{names_of(view, np.pad(constant, (0, d - used)))}."
    )
    if constant.all():
        raise ValueError(
            f"{said} Nothing would be left of the view: put features that vary first, or begin "
            "with another view."
        )
    warnings.warn(f"{said} Put features that vary first.", stacklevel=2)


def limited(M: Array, products: Callable[[], Array], n: int) -> Array:
    most = max(n // FEWEST, 1)
    if most >= min(M.shape):
        return M
    V = linalg.eigh(products(), check_finite=False)[1][:, -most:]
    return np.asarray(M @ (V @ V.T))
