"""FCMVC-IV: fast continual multi-view clustering with incomplete views.

The names are those of the mathematics, samples in rows: X is the (standardised) view, Zp the
consensus before the fold and Z after it, H the view's basis, W the rotation of the memory. `fold`
gives what the authors' program gives without forming an n × n matrix or the SVD of an n × k one:
after one walk over X every iteration is algebra on d × k and k × k matrices.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from viewfold.blocks import Array, Matrix, Rows, blas_on_one_thread, for_each
from viewfold.consensus import Alignment, Consensus, Folded
from viewfold.methods.aggregates import limited
from viewfold.methods.procrustes import gram, inverse_sqrt, polar, reorthonormalise, times, whitener
from viewfold.methods.scaling import (
    Products,
    Scale,
    Scaling,
    carry_over,
    dense,
    gram_times,
    names_of,
    partners,
    says_nothing,
    survey,
    tell_faint,
)
from viewfold.view import View

Solver = Literal["auto", "gram", "direct"]


def fold(
    consensus: Consensus | None,
    view: View,
    found: Alignment,
    *,
    n_clusters: int,
    z_step: Literal["paper", "exact"] = "paper",
    solver: Solver = "auto",
    scale: Scale = "zscore",
    tol: float = 1e-5,
    max_iter: int = 100,
) -> Folded:
    """Fold a view into the consensus by FCMVC-IV.

    Parameters
    ----------
    consensus : Consensus or None
        The consensus so far; None for the first view.
    view : View
        The view.
    found : Alignment
        Where the samples of both stand in their union.
    n_clusters : int
        The least rank k of the consensus. One of a higher rank keeps it; one of a lower rank gets
        columns of zeros, which the view fills.
    z_step : {"paper", "exact"}
        The published step for Z, or the one under which the objective never rises.
    solver : {"auto", "gram", "direct"}
        Form XᵀX once, or multiply by X and Xᵀ in every iteration. Same answer.
    scale : {"zscore", None}
        How the view's features are standardised.
    tol : float
        Stop when the objective changes by less than this part of itself.
    max_iter : int
        Stop after this many iterations.

    Returns
    -------
    Folded
    """
    d = view.shape[1]
    if d < n_clusters:
        warnings.warn(
            f"View {view.name!r} has {d} features, fewer than n_clusters={n_clusters}: it can add "
            f"at most {d} dimensions to the consensus.",
            stacklevel=2,
        )
    with blas_on_one_thread() as threads:
        if consensus is None:
            return _first(view, n_clusters, scale, threads)
        Zp, k_before = consensus.embedding, consensus.embedding.shape[1]
        k = max(n_clusters, k_before)
        if k > k_before:
            Zp = np.pad(Zp, ((0, 0), (0, k - k_before)))
        if found.n_shared == 0:
            warnings.warn(
                f"View {view.name!r} shares no sample with the {found.previous.size} folded so "
                "far: nothing ties the clusters of the two groups to each other.",
                stacklevel=2,
            )
        if solver == "auto":
            solver = choose_solver(view.rows, k)
        scaling, products = survey(
            view.rows,
            lambda where, _: partners(Zp, found.partner[where]),
            scale=scale,
            full=solver == "gram",
            threads=threads,
        )
        tell_faint(view, products)
        if not products.energy:
            raise says_nothing(view)
        if products.gram is None:
            gram_of_view: Callable[[Array], Array] = partial(
                gram_times, view.rows, scaling, threads=threads
            )
        else:
            gram_of_view = products.gram.__matmul__
        absent = gram(Rows(Zp, found.absent), threads)
        problem = Problem(gram_of_view, products, absent, exact=z_step == "exact")
        step, objective = problem.solve(tol, max_iter)
        Z = step.Z
        embedding = _embed(Z, Zp, view.rows, found, scaling, threads)
        if step.condition * np.finfo(embedding.dtype).eps > 1e-12:
            Z = Z.times(reorthonormalise(embedding, threads))
        kept = limited(Z.U, lambda: Z.U.T @ gram_of_view(Z.U), view.shape[0])
    turn = Z.N[:k_before]
    return Folded(embedding, scaling.times_raw(kept), turn, len(objective), objective)


def basis(Z: Array) -> Array:
    """Return what makes the columns of a consensus orthonormal again that has lost some rows.

    Were they left as they are, I − ZᵀZ would tell the row that is gone.
    """
    with blas_on_one_thread() as threads:
        return whitener(Z, threads)


def choose_solver(rows: Rows, n_clusters: int) -> Solver:
    """Pick the cheaper of the two solvers for a view.

    "gram" costs d multiplications for each entry of X, once, and reads X twice; "direct" costs 4k
    for each entry in every one of some 15 iterations, and reads X as often.
    """
    iterations = 15
    n, d = rows.shape
    if rows.on_disk:
        return "gram" if d <= 4096 else "direct"
    per_row = rows.stored / n
    return "gram" if max(per_row, d * d / n) < 4 * n_clusters * iterations else "direct"


@dataclass(frozen=True)
class Combination:
    """Rows of a consensus in terms of the view X and the consensus Zp before it.

    ``X U + Zs V`` for the samples of the view, where Zs are their rows of Zp (zero if they are
    new), and ``Zp N`` for the samples that the view lacks.
    """

    U: Array
    V: Array
    N: Array

    def times(self, T: Array) -> Combination:
        """Return the same rows, multiplied by T."""
        return Combination(self.U @ T, self.V @ T, self.N @ T)


@dataclass(frozen=True)
class ZStep:
    """A new Z = A T, and what the other steps need to know of it.

    Attributes
    ----------
    A : Combination
        What Z is the polar factor of.
    T : ndarray of shape (k, k)
        (AᵀA)^(-1/2).
    condition : float
        Ratio of the extreme eigenvalues of AᵀA.
    XZ, ZZp : ndarray of shape (d, k) and (k, k)
        XᵀZ over the samples of the view, ZᵀZp over those of the memory.
    AA : ndarray of shape (k, k)
        AᵀA over the samples of the view.
    """

    A: Combination
    T: Array
    condition: float
    XZ: Array
    ZZp: Array
    AA: Array

    @property
    def Z(self) -> Combination:
        """The rows of Z."""
        return self.A.times(self.T)

    @property
    def ZZ(self) -> Array:
        """ZᵀZ over the samples of the view."""
        return np.asarray(self.T @ self.AA @ self.T)


@dataclass(frozen=True)
class Problem:
    """One fold as a problem on small matrices.

    Parameters
    ----------
    gram_times : callable
        H ↦ XᵀX H.
    products : Products
        ‖X‖², E = XᵀZs and S = ZsᵀZs.
    absent : ndarray of shape (k, k)
        ZpᵀZp over the samples that the view lacks.
    exact : bool
        Whether steps that the paper takes as if every sample were in the view (and d ≥ k) are
        replaced by steps under which the objective never rises.
    """

    gram_times: Callable[[Array], Array]
    products: Products
    absent: Array
    exact: bool

    def solve(self, tol: float, max_iter: int) -> tuple[ZStep, tuple[float, ...]]:
        """Iterate until the objective settles; return the last Z and the objective's course."""
        energy = self.products.energy
        d, k = self.products.cross.shape
        H, W = np.eye(d, k), np.eye(k)
        step = None
        objective: list[float] = []
        while len(objective) < max_iter and not _settled(objective, tol, energy):
            step = self._z_step(H, W, step)
            W = polar(step.ZZp)
            if self.exact and d < k:
                # HᵀH < I: ½‖ZHᵀ‖² is not constant in H either, see _z_step.
                H = polar(step.XZ + H @ (np.eye(k) - step.ZZ))
            else:
                H = polar(step.XZ)
            norm = np.trace(step.ZZ) if d >= k else np.vdot(H.T @ H, step.ZZ)
            gain = np.vdot(H, step.XZ) + np.vdot(W, step.ZZp)
            objective.append(float((energy + norm) / 2 - gain))
        assert step is not None  # max_iter is at least 1
        return step, tuple(objective)

    def _z_step(self, H: Array, W: Array, last: ZStep | None) -> ZStep:
        E, S = self.products.cross, self.products.shared
        d, k = H.shape
        A = Combination(H, W.T, W.T)
        if self.exact and last is not None:
            # Samples that the view lacks, and directions outside H, add to the constant ‖Z‖² but
            # not to the objective. Their share enters it with a minus sign, so that its tangent
            # at the last Z is a majoriser.
            Z = last.Z
            A = Combination(A.U, A.V, A.N + Z.N)
            if d < k:
                outside = Z.times(np.eye(k) - H.T @ H)
                A = Combination(A.U + outside.U, A.V + outside.V, A.N)
        XXU, EV, UE = self.gram_times(A.U), E @ A.V, A.U.T @ E
        both = UE @ A.V
        VS, NP = A.V.T @ S, A.N.T @ self.absent
        AA = A.U.T @ XXU + both + both.T + VS @ A.V
        T, condition = inverse_sqrt(AA + NP @ A.N)
        return ZStep(A, T, condition, XZ=(XXU + EV) @ T, ZZp=T @ (UE + VS + NP), AA=AA)


def _settled(objective: list[float], tol: float, energy: float) -> bool:
    if len(objective) <= 2:
        return False
    before, now = objective[-2:]
    # The objective may pass through zero; its terms are of the size of the view's energy.
    return abs(now - before) < tol * max(abs(now), 1e-12 * energy)


def _embed(
    Z: Combination, Zp: Array, rows: Rows, found: Alignment, scaling: Scaling, threads: int
) -> Array:
    """Write Z, row by row."""
    dtype = np.result_type(rows.dtype, Zp.dtype)
    out = np.empty((found.ids.size, Zp.shape[1]), dtype)
    encode, V = scaling.times(Z.U), Z.V.astype(dtype)

    def write(where: slice, block: Matrix) -> None:
        known = partners(Zp, found.partner[where])
        out[found.rows[where]] = encode(scaling.read(block)) + known @ V

    for_each(rows, write, threads)
    carry_over(Zp, found, Z.N, out, threads)
    return out


def _first(view: View, n_clusters: int, scale: Scale, threads: int) -> Folded:
    """Z = polar(X H₀): of the first view, the paper takes the first k features."""
    rows, (n, d) = view.rows, view.shape
    used = min(d, n_clusters)
    Z = np.zeros((n, n_clusters), rows.dtype)
    A = Z[:, :used]

    def take(where: slice, block: Matrix) -> None:
        A[where] = dense(block)

    for_each(replace(rows, X=rows.X[:, :used]), take, threads)
    scaling, products = survey(Rows(A), scale=scale, full=False, threads=threads)
    tell_faint(view, products)
    same = scaling.weight == 0 if scale else (A[:1] == A).all(axis=0)
    _tell_constant(view, np.asarray(same))

    def standardise(where: slice, block: Matrix) -> None:
        A[where] = (scaling.read(block) - scaling.mean) * scaling.weight

    for_each(Rows(A), standardise, threads)
    T = whitener(A, threads)
    times(A, T, threads)
    T = T @ reorthonormalise(A, threads)
    # T is (AᵀA)^(-1/2): what varies most is where it is small.
    kept = limited(T, lambda: np.linalg.pinv(T), n)
    encoder = scaling.times_raw(kept).padded(d, n_clusters)
    return Folded(Z, encoder, None, 1, ())


def _tell_constant(view: View, constant: NDArray[np.bool_]) -> None:
    """Say it if the features through which the first view enters are constant."""
    if not constant.any():
        return
    (n, d), used = view.shape, constant.size
    said = (
        f"View {view.name!r} (n_samples={n}) is the first: it enters through its first {used} "
        f"features only. Constant among them: {names_of(view, np.pad(constant, (0, d - used)))}."
    )
    if constant.all():
        raise ValueError(
            f"{said} Nothing would be left of the view: put features that vary first, or begin "
            "with another view."
        )
    warnings.warn(f"{said} Put features that vary first.", stacklevel=2)
