"""Suggest a number of clusters, from the consensus alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from viewfold._util.arguments import is_whole_number, suggests_arguments
from viewfold._util.messages import needed
from viewfold._util.types import Array, IdsLike, ViewsLike, as_python
from viewfold.data import View
from viewfold.estimators import FoldingEstimator, ViewFold
from viewfold.method.balanced import rank
from viewfold.method.kmeans import grown
from viewfold.rows import all_on_one_thread
from viewfold.rows.linalg import gram, top_eigenvectors
from viewfold.state.hashes import draw, seed_of

ROWS = 1000  # How many rows a tree is grown on; more if there may be more than a hundred clusters
TREES = 50  # How many trees are grown; each of them leaves out other rows, at least a fifth
MOST = 20  # So many clusters are tried where nobody says how many there may be

# A score is clearly above 0 from here on: in 48 blobs without clusters (100 to 400 samples, 3 to 40
# features, up to 20 or 40 clusters), the best number had at most 0.06.
CLEAR = 0.1

# A model stays with its number of clusters unless another one has a score that is higher by this.
CLEARLY = 0.15

# Colours of scores, of the best one, and of that of the present number.
LINE, BEST, NOW = "#0072b2", "#d55e00", "#999999"


@dataclass(frozen=True)
class Suggestion:
    """A number of clusters, and how well each number does.

    Attributes
    ----------
    best : int
        The number with the highest score.
    scores : dict of int to float
        How much each number stands out, minus what the best number does in a single blob with the
        same principal directions. If no score is clearly above 0, there may be no clusters at all.

    Notes
    -----
    If there are k clusters, two series fall most after their k-th value: the heights of a tree of
    Ward's method (the mean of fifty, on at most a thousand rows or ten for each cluster), and the
    singular values of the consensus. With a(k) and b(k), the logarithms of the ratios of the two
    consecutive values, the score is √k (a + min(a, b)). docs/method.md says why, and how far to
    trust it: where clusters are not clear, look at the scores and try several numbers.

    A model that was fitted for few clusters has few columns, which is all that larger k see: start
    from the views if unsure. The columns of `FCMVC` all have the same singular value, so that only
    the trees speak.
    """

    best: int
    scores: dict[int, float]

    @property
    def stands_out(self) -> bool:
        """Whether the best number stands out clearly more than any where there are no clusters."""
        return self.scores[self.best] > CLEAR

    def _warn_if_none(self) -> None:
        """Warn if no number stands out."""
        if not self.stands_out:
            warnings.warn(
                "No number of clusters stands out: there may be no clusters. Of "
                f"{min(self.scores)} to {max(self.scores)}, {self.best} stand out most (score "
                f"{self.scores[self.best]:.2f}). Look at suggestion_.plot(), or give n_clusters=1 "
                "or another number.",
                stacklevel=5,
            )

    def plot(self, ax: Any = None, *, now: int | None = None) -> Any:
        """Draw the scores, mark the best one (and that of `now`), and return the Axes.

        It draws into `ax`, or into a new figure, and needs matplotlib.
        """
        if ax is None:
            ax = needed("matplotlib.pyplot", "plots", "A plot").subplots()[1]
        ax.plot(list(self.scores), list(self.scores.values()), marker=".", color=LINE, zorder=2)
        label = f"suggested: {self.best}"
        ax.plot([self.best], [self.scores[self.best]], "o", color=BEST, label=label, zorder=3)
        if now in self.scores and now != self.best:
            ax.plot([now], [self.scores[now]], "s", color=NOW, label=f"now: {now}", zorder=3)
        ax.axhline(0, color=ax.spines["bottom"].get_edgecolor(), linewidth=0.8, linestyle="--")
        ax.set(xlabel="number of clusters", ylabel="score")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
        return ax


def candidates(model: FoldingEstimator) -> range:
    """Return the numbers to choose from where nobody says which: up to twice the present one."""
    return range(2, min(max(MOST, 2 * model.n_clusters_) + 1, model.n_samples_))


def make_trial(most: int, seed: int = 0) -> ViewFold:
    """Make a model whose consensus shows so many clusters, without the work of finding them."""
    components = rank(most)
    return ViewFold(2, n_components=components, n_init=1, keep_encoders=False, random_state=seed)


def suggest_number(model: FoldingEstimator, between: range | None = None) -> Suggestion:
    """Suggest a number of clusters, out of all that there may be unless it is said which."""
    numbers = candidates(model) if between is None else between
    if not numbers:
        raise ValueError(f"{model.n_samples_} samples are too few to choose a number of clusters.")
    return suggest_n_clusters(model, numbers)


def choose_first(views: Iterable[View], *, seed: int = 0, **options: Any) -> Suggestion:
    """Find the number of clusters that stands out most in views that nothing was made of yet."""
    trial = make_trial(MOST, seed)
    with warnings.catch_warnings(action="ignore"):  # the fold itself will tell
        for view in views:
            trial.partial_fit(view, **options)
    return suggest_number(trial)


def choose_again(model: FoldingEstimator) -> Suggestion:
    """Find the number that stands out most, and take it if it does clearly more than that of now.

    Else numbers that are about as good would take turns from file to file.
    """
    found, now = suggest_number(model), model.n_clusters_
    best, score = found.scores[found.best], found.scores.get(now)
    if score is None or best - score > CLEARLY:
        of_now = "" if score is None else f", and {now} have {score:.2f}"
        model.recluster(found.best, note=f"they stand out most (score {best:.2f}{of_now})")
    return found


@suggests_arguments
def suggest_n_clusters(
    model_or_views: FoldingEstimator | ViewsLike,
    k_range: Iterable[int],
    *,
    ids: IdsLike | Sequence[IdsLike] | Mapping[str, IdsLike] = None,
    random_state: int | np.random.RandomState | None = 0,
) -> Suggestion:
    """Suggest a number of clusters; `Suggestion` tells how, and how far to trust it.

    Parameters
    ----------
    model_or_views, ids
        A model, of which only the consensus is used, or whatever ``ViewFold.fit`` takes.
    k_range : iterable of int
        The numbers to choose from: at least 2, and fewer than there are samples.
    random_state : int, RandomState or None, default=0
        Seed of all draws.

    See Also
    --------
    ViewFold.recluster : Find another number of clusters in the same consensus.
    Suggestion.plot : Draw the scores.

    Notes
    -----
    Views are folded first, if they are given. Of a model, time is of order N r² for N samples and r
    columns of the consensus, plus that of Ward's trees on rows that are drawn: the more rows, the
    larger the largest number.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.estimators.selection import suggest_n_clusters
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(np.arange(4), 50)
    >>> views = [rng.normal(size=(200, d)) + 5 * np.eye(d)[y] for d in (6, 9)]
    >>> suggest_n_clusters(views, range(2, 9)).best
    4
    """
    candidates, seed = list(k_range), seed_of(random_state)
    if not candidates:
        raise ValueError("k_range is empty: give the numbers to choose from, such as range(2, 21).")
    wrong = [as_python(k) for k in candidates if not is_whole_number(k) or k < 2]
    if wrong:
        raise ValueError(f"k_range holds {wrong[0]!r}, but needs whole numbers of 2 or more.")
    candidates = sorted({int(k) for k in candidates})
    most = candidates[-1]
    if isinstance(model_or_views, FoldingEstimator):
        if ids is not None:
            raise ValueError("A fitted model knows its ids already; leave ids= out.")
        check_is_fitted(model_or_views)
        model = model_or_views._snapshot()
    else:
        model = make_trial(most, seed).fit(model_or_views, ids=ids)
    n = model.n_samples_
    if most >= n:
        raise ValueError(
            f"k_range goes up to {most}, but there are {n} samples: end it below their number."
        )
    engine, state = model._engine, model._fitted
    pool = 5 * _rows_of_a_tree(most)
    some = draw(engine, state.ids, pool, seed=seed, purpose="number of clusters")
    random, k = np.random.RandomState(seed), np.array(candidates)
    with all_on_one_thread():
        energy, _ = top_eigenvectors(engine.reduce(gram, state.embedding), n)
        columns = _first(np.log(energy) / 2, most + 1)
        rows = engine.collect(engine.select(state.embedding, some))
        found = _stands_out(k, _merges(rows, most, random), columns)
        blob = random.normal(size=(some.size, energy.size)) * np.sqrt(energy)
        chance = _stands_out(k, _merges(blob, most, random), columns)
    scores = (found - chance.max()).tolist()
    return Suggestion(candidates[found.argmax()], dict(zip(candidates, scores, strict=True)))


def _stands_out(k: Array, merges: Array, columns: Array) -> Array:
    """Return how much each k stands out, given the logarithms of heights and singular values."""
    in_trees, in_columns = merges[k - 2] - merges[k - 1], columns[k - 1] - columns[k]
    return np.asarray(np.sqrt(k) * (in_trees + np.minimum(in_trees, in_columns)))


def _merges(rows: Array, most: int, random: np.random.RandomState) -> Array:
    """Return logarithms of the heights at which 2, 3, … clusters merge, the mean of many trees."""
    size, found = min(_rows_of_a_tree(most), -(-4 * len(rows) // 5)), []
    for _ in range(TREES):
        tree = grown(rows[random.permutation(len(rows))[:size]])
        heights = np.maximum(tree[::-1, 2], 1e-6)  # rows may be the same
        found.append(_first(np.log(heights), most))
    return np.asarray(np.mean(found, axis=0))


def _rows_of_a_tree(most: int) -> int:
    return max(ROWS, 10 * most)


def _first(values: Array, number: int) -> Array:
    """Return so many values; if there are fewer, the last one again and again: no step at all."""
    return np.asarray(np.pad(values[:number], (0, max(number - len(values), 0)), mode="edge"))
