"""ViewFold, viewfold's own method, as an estimator."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal

from viewfold._util.arguments import suggests_arguments
from viewfold._util.compat import Interval, StrOptions
from viewfold._util.types import Seed
from viewfold.data import View
from viewfold.estimators.base import FoldingEstimator
from viewfold.estimators.method import Recipe
from viewfold.method import balanced
from viewfold.method.clusters import ClusteringOptions
from viewfold.method.scaling import ScaleRule
from viewfold.rows import Alignment, Engine
from viewfold.state.method import Combined, Method
from viewfold.state.registry import ENCODERS
from viewfold.state.state import State


class ViewFold(FoldingEstimator):
    """Continual clustering of incomplete views, weighed by what they explain of each other.

    Views are folded one by one into a consensus; samples may be missing from any of them, and a
    view is not needed after it was folded. Nothing needs tuning.

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters. It may be changed between folds, like all parameters: clusters that go on
        keep their numbers.
    encoder : {"auto", "linear", "landmarks", "mix"} or str, default="auto"
        Describe the samples of a view by its principal directions, by their place in a graph of
        landmarks, which follows curved clusters, or by both ("mix", which "auto" stands for).
        Other packages may bring others; see docs/extending.md.
    n_components : int, default=None
        The most columns that the consensus may have, however many views were folded; three for
        each cluster if not given, and at least 15.
    scale : {"auto", "zscore", "center", "l2", "tfidf", None}, default="auto"
        How a view is scaled. "auto" looks at it: word counts (sparse whole numbers) get tf-idf and
        unit length, other sparse non-negative weights unit length, principal-component scores
        (uncorrelated columns of falling variance) are centred, everything else gets a z-score.
    unconnected : {"pair", "separate"}, default="pair"
        What to do with groups of samples that no view connects (views that share fewer than ten
        samples): pair their clusters by size, if sizes tell, or not. Pairing is right if samples
        are in a group by chance. There is a warning either way.
    n_init : int, default=20
        Starts of k-means, from trees that Ward's method grows; the one with the least inertia
        counts.
    random_state : int, RandomState or None, default=None
        Seed of all draws: landmarks, rows that stand for a large view, rows that k-means sees. With
        an int, the same views give the same answer; see scikit-learn's glossary.
    keep_encoders : bool, default=True
        Whether to keep what `predict`, `transform` and `extend` need: aggregates of ten samples or
        more. With the embedding they give a low-rank copy of a view. If not, the next fold removes
        those of earlier views, too. docs/privacy.md says what a file tells either way.

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
        "scale": [StrOptions({"auto", "zscore", "center", "l2", "tfidf"}), None],
        "unconnected": [StrOptions({"pair", "separate"})],
    }

    @suggests_arguments
    def __init__(
        self,
        n_clusters: int = 8,
        *,
        encoder: str = "auto",
        n_components: int | None = None,
        scale: ScaleRule = "auto",
        unconnected: Literal["pair", "separate"] = "pair",
        n_init: int = 20,
        random_state: Seed = None,
        keep_encoders: bool = True,
    ) -> None:
        self.n_clusters = n_clusters
        self.encoder = encoder
        self.n_components = n_components
        self.scale = scale
        self.unconnected = unconnected
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

    def _method(self) -> Method:
        options = ClusteringOptions(
            start="ward",
            weighted=True,
            discriminants=True,
            n_init=self.n_init,
            unconnected=self.unconnected,
        )
        return Recipe(self._combine, balanced.basis, self.n_clusters, options, relearns=True)

    def _columns(self) -> int:
        return self.n_components or balanced.rank(self.n_clusters)

    def _combine(
        self, engine: Engine, state: State, view: View, alignment: Alignment, seed: int
    ) -> Combined:
        return balanced.combine(
            engine,
            state,
            view,
            alignment,
            n_components=self._columns(),
            learn=ENCODERS["mix" if self.encoder == "auto" else self.encoder],
            scale=self.scale,
            seed=seed,
        )
