"""FCMVC-IV, the paper's method, as an estimator."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal

from viewfold._util.arguments import suggests_arguments
from viewfold._util.compat import Interval, StrOptions
from viewfold._util.types import Seed
from viewfold.data import View
from viewfold.estimators.base import FoldingEstimator
from viewfold.estimators.method import Recipe
from viewfold.method import fcmvc
from viewfold.method.clusters import ClusteringOptions
from viewfold.method.scaling import Standardise
from viewfold.rows import Alignment, Engine
from viewfold.state.method import Combined, Method
from viewfold.state.state import State


class FCMVC(FoldingEstimator):
    """Fast continual multi-view clustering with incomplete views (FCMVC-IV).

    Views are folded one by one into a consensus of rank `n_clusters`; samples may be missing from
    any of them. The result is that of the method's published program.

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters, and the rank of the consensus. It may be changed between folds: the
        consensus then has the highest rank asked for since `fit`. Its new columns are zero until a
        view fills them; fewer clusters are found in all the columns there are.
    z_step : {"paper", "exact"}, default="paper"
        The published step for the consensus, or one under which the objective never rises, also
        when samples are missing.
    solver : {"auto", "gram", "direct"}, default="auto"
        Form XᵀX once, which reads the view twice altogether, or multiply by X and Xᵀ in each
        iteration, which suits wide and sparse views. The answer is the same.
    scale : {"zscore", None}, default="zscore"
        Standardise every feature over the samples that the view has, or take it as it is.
    tol : float, default=1e-5
        A fold ends when its objective changes by less than this part of itself.
    max_iter : int, default=100
        Iterations a fold may take.
    n_init : int, default=10
        Starts of k-means; the best one counts.
    random_state : int, RandomState or None, default=None
        Seed of k-means, the only thing that is random.
    keep_encoders : bool, default=True
        Whether to keep what `predict` and `transform` need: aggregates of ten samples or more. With
        the embedding they give a low-rank copy of a view. If not, the next fold removes those of
        earlier views, too. docs/privacy.md says what can be learned from a file either way.

    Attributes
    ----------
    labels_ : ndarray of int, shape (n_samples,)
        The cluster of every sample ever seen. Clusters keep their numbers from fold to fold.
    ids_ : ndarray of shape (n_samples,)
        Who they are.
    embedding_ : ndarray of shape (n_samples, rank)
        The consensus; its columns are orthonormal.
    views_ : tuple of ViewRecord
        What is remembered of each view.
    delivery_ : Delivery
        What the rows of the last `partial_fit` were: new, late, corrected, or the same as before.
    cluster_centers_ : ndarray of shape (n_clusters, rank)
        Centres of the clusters, among embedding rows of unit length.
    n_iter_ : int
        Iterations of the last fold.

    See Also
    --------
    ViewFold : viewfold's own method, which is the one to begin with.
    suggest_n_clusters : How many clusters stand out.
    edit : Change the model in a state file, safely.

    Notes
    -----
    The first view enters through its first `n_clusters` features only, and every later view nearly
    replaces what came before: the method is the paper's, not a recommendation.

    A view with fewer features than clusters adds as many dimensions as it has features. If the
    consensus has not full rank (a first view of this kind), its missing columns are zero, where
    the published program has arbitrary ones.

    To fold a view of n samples and d features takes time of order n d² + t d² k with
    ``solver="gram"`` and t n d k with ``"direct"`` (t iterations, k clusters; of a sparse view, the
    non-zeros instead of n d), and N k² for the consensus of N samples. Memory beyond the view is of
    order N k, and d² with "gram". docs/fcmvc.md has measured times.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import FCMVC
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], 40)
    >>> labs = rng.normal(size=(120, 6)) + 4 * np.eye(6)[y]
    >>> scan = rng.normal(size=(120, 9)) + 4 * np.eye(9)[y]
    >>> model = FCMVC(n_clusters=3, random_state=0)
    >>> model = model.partial_fit(labs[:90], ids=np.arange(90), view="labs")
    >>> model = model.partial_fit(scan[30:], ids=np.arange(30, 120), view="scan")
    >>> [(view.name, view.n_new, view.n_shared) for view in model.views_]
    [('labs', 90, 0), ('scan', 30, 60)]
    >>> model.predict(labs[:2], view="labs").shape
    (2,)
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **FoldingEstimator._parameter_constraints,
        "z_step": [StrOptions({"paper", "exact"})],
        "solver": [StrOptions({"auto", "gram", "direct"})],
        "scale": [StrOptions({"zscore"}), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    @suggests_arguments
    def __init__(
        self,
        n_clusters: int = 8,
        *,
        z_step: Literal["paper", "exact"] = "paper",
        solver: fcmvc.Solver = "auto",
        scale: Standardise = "zscore",
        tol: float = 1e-5,
        max_iter: int = 100,
        n_init: int = 10,
        random_state: Seed = None,
        keep_encoders: bool = True,
    ) -> None:
        self.n_clusters = n_clusters
        self.z_step = z_step
        self.solver = solver
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state
        self.keep_encoders = keep_encoders

    def _columns(self) -> int:
        return self.n_clusters

    def _method(self) -> Method:
        return Recipe(
            self._combine, fcmvc.basis, self.n_clusters, ClusteringOptions(n_init=self.n_init)
        )

    def _combine(
        self, engine: Engine, state: State, view: View, alignment: Alignment, seed: int
    ) -> Combined:
        return fcmvc.combine(
            engine,
            state,
            view,
            alignment,
            n_clusters=self.n_clusters,
            z_step=self.z_step,
            solver=self.solver,
            scale=self.scale,
            tol=self.tol,
            max_iter=self.max_iter,
        )
