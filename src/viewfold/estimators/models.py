"""The estimators: ViewFold, viewfold's own method, and FCMVC, the method of the paper."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, Literal

from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from viewfold._util.arguments import suggests_arguments
from viewfold._util.types import Seed
from viewfold.estimators.base import FoldingEstimator
from viewfold.method import balanced, fcmvc
from viewfold.method.clusters import ClusteringOptions, kmeans_method
from viewfold.method.scaling import ScaleRule, Standardise
from viewfold.state.registry import ENCODERS
from viewfold.state.transitions import Method


class ViewFold(FoldingEstimator):
    """Continual clustering of incomplete views, weighed by what they explain of each other.

    Views are folded one by one into a consensus; samples may be missing from any of them, and a
    view is not needed after it was folded. Nothing needs tuning.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        How many clusters. It may be changed between folds, like all parameters: clusters that go on
        keep their numbers. "auto" takes the number that stands out most (`suggest_n_clusters`) when
        the first views are folded, and another one later if that stands out clearly more. There is
        a warning if none does: there may be no clusters. A file holds the number.
    encoder : {"auto", "linear", "landmarks", "mix"} or str, default="auto"
        Describe the samples of a view by its principal directions, by their place in a graph of
        landmarks, which follows curved clusters, or by both ("mix", which "auto" stands for).
        Other packages may bring others; see docs/extending.md.
    n_components : int, default=None
        The most columns that the consensus may have, however many views were folded; three for
        each cluster if not given, and at least 15.
    scale : {"auto", "zscore", "table", "center", "l2", "tfidf", "counts", None}, default="auto"
        How a view is scaled. "auto" looks at it: word counts (sparse whole numbers) get tf-idf and
        unit length, other sparse non-negative weights unit length, other counts whose rows differ
        in depth (of genes in cells, say) are divided by it before a logarithm and a z-score
        ("counts"), principal-component scores are centred, columns with names are a "table" of
        variables (levels keep their own variance, long tails become logarithms), everything else
        gets a z-score. The log says which. docs/method.md has the rules.
    unconnected : {"pair", "separate"}, default="pair"
        What to do with groups of samples that no view connects (views that share fewer than ten
        samples): pair their clusters by size, if sizes tell, or not; with a warning either way.
    max_moved : int or float, default=None
        So many known samples, or this part of them, change their cluster at most when a view is
        folded or learned again: those that gain most by it. The others keep theirs.
    n_init : int, default=20
        Starts of k-means, from trees that Ward's method grows; the one with the least inertia
        counts.
    random_state : int, RandomState or None, default=None
        Seed of all draws: landmarks, rows that stand for a large view, rows that k-means sees. With
        an int, the same views give the same answer; see scikit-learn's glossary.
    keep_encoders : bool, default=True
        Whether to keep what `predict`, `transform` and `extend` need: aggregates of ten samples or
        more. If not, the next fold removes those of earlier views, too. docs/privacy.md says what a
        file tells either way.

    Attributes
    ----------
    labels_ : ndarray of int, shape (n_samples,)
        The cluster of every sample ever seen. Clusters keep their numbers from fold to fold.
    ids_ : ndarray of shape (n_samples,)
        Who they are.
    embedding_ : ndarray of shape (n_samples, n_components)
        The consensus.
    views_ : tuple of ViewRecord
        What is remembered of each view.
    delivery_ : Delivery
        What the rows of the last `partial_fit` were: new, late, corrected, or the same as before.
    n_clusters_ : int
        How many clusters there are now.
    suggestion_ : Suggestion
        With ``n_clusters="auto"``: how much each number stood out when it was chosen.
    cluster_centers_ : ndarray of shape (n_clusters, n_directions)
        Centres of the clusters, in the directions that tell them apart best: n_clusters − 1, or so
        many for each group of samples that no view connects with others.
    n_iter_ : int
        Always 1: a fold is not iterative.

    See Also
    --------
    FCMVC : The method of the paper that this one goes back to.
    suggest_n_clusters : How many clusters stand out.
    edit : Change the model in a state file, safely.
    viewfold.plot : Figures of a model.

    Notes
    -----
    To fold a view of n samples and d features into a consensus of r columns (`n_components`) for N
    samples takes time of order n d² for up to 2048 features (one d × d product), n d r for more,
    whose directions come from some of the rows; n r m for m ≤ 1000 landmarks, which
    ``encoder="linear"`` has not; and N r² for the consensus. A sparse view takes its non-zeros
    instead of n d. Memory beyond the view is of order N r + d², with d² at most 2048², and a view
    in a file is read block by block. No matrix is n × n. docs/cluster.md has measured times.

    Examples
    --------
    >>> from viewfold import ViewFold, datasets, metrics, missing
    >>> digits = datasets.load_digits_views()
    >>> gone = missing.at_random(1797, 6, ratio=0.3, random_state=0)
    >>> model = ViewFold(n_clusters=10, random_state=0)
    >>> for view in missing.by_mask(digits.views, gone):
    ...     model = model.partial_fit(view)
    >>> metrics.accuracy(digits.target, model.labels_) > 0.9
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **FoldingEstimator._parameter_constraints,
        "encoder": [str],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "scale": [
            StrOptions({"auto", "zscore", "table", "center", "l2", "tfidf", "counts"}),
            None,
        ],
        "unconnected": [StrOptions({"pair", "separate"})],
        "max_moved": [
            Interval(Integral, 0, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="both"),
            None,
        ],
    }

    @suggests_arguments
    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        encoder: str = "auto",
        n_components: int | None = None,
        scale: ScaleRule = "auto",
        unconnected: Literal["pair", "separate"] = "pair",
        max_moved: float | None = None,
        n_init: int = 20,
        random_state: Seed = None,
        keep_encoders: bool = True,
    ) -> None:
        self.n_clusters = n_clusters
        self.encoder = encoder
        self.n_components = n_components
        self.scale = scale
        self.unconnected = unconnected
        self.max_moved = max_moved
        self.n_init = n_init
        self.random_state = random_state
        self.keep_encoders = keep_encoders

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.encoder != "auto" and self.encoder not in ENCODERS:
            raise ValueError(
                f"The 'encoder' parameter of ViewFold must be one of "
                f"{['auto', *ENCODERS.names()]}, got {self.encoder!r}."
            )

    def _columns(self) -> int:
        return self.n_components or balanced.rank(self._number)

    def _method(self) -> Method:
        combine = partial(
            balanced.combine,
            n_components=self._columns(),
            learn=ENCODERS["mix" if self.encoder == "auto" else self.encoder],
            scale=self.scale,
        )
        options = ClusteringOptions(
            self._number,
            start="ward",
            weighted=True,
            discriminants=True,
            n_init=self.n_init,
            unconnected=self.unconnected,
            calm=True,
            max_moved=self.max_moved,
        )
        return kmeans_method(combine, options, basis=balanced.basis, relearns=True)


class FCMVC(FoldingEstimator):
    """Fast continual multi-view clustering with incomplete views (FCMVC-IV).

    Views are folded one by one into a consensus of rank `n_clusters`; samples may be missing from
    any of them. The result is that of the method's published program.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        How many clusters (see `ViewFold` for "auto"), and the rank of the consensus. It may be
        changed between folds: the consensus then has the highest rank asked for since `fit`. Its
        new columns are zero until a view fills them; fewer clusters are found in all the columns
        there are.
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
        Whether to keep what `predict` and `transform` need; see `ViewFold`.

    Attributes
    ----------
    labels_, ids_, views_, delivery_, n_clusters_, suggestion_
        As `ViewFold` has them.
    embedding_ : ndarray of shape (n_samples, rank)
        The consensus; its columns are orthonormal.
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

    If the consensus has not full rank (after a first view with fewer features than clusters), its
    missing columns are zero, where the published program has arbitrary ones.

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
        n_clusters: int | Literal["auto"] = 8,
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
        return self._number

    def _method(self) -> Method:
        combine = partial(
            fcmvc.combine,
            n_clusters=self._number,
            z_step=self.z_step,
            solver=self.solver,
            scale=self.scale,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        options = ClusteringOptions(self._number, n_init=self.n_init)
        return kmeans_method(combine, options, basis=fcmvc.basis)
