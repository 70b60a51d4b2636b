"""What a delivery of a known view should look like, from the rows that came before.

A cell has *traits*: it is missing, negative, far above what was usual. A profile keeps what share
of each column's cells has each trait: lately, and in the clusters where it is lowest and highest,
because tonight's delivery may hold one kind of sample only. A column is suspicious if no such share
explains what came. All of it are counts, so that engines sum them block by block, and no value of a
single row is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import scipy

from viewfold._util.constants import FEWEST
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array, Matrix
from viewfold.rows import Engine, RowSet
from viewfold.rows.linalg import dense, is_sparse, membership

TRAITS = (
    *("missing", "negative", "zero", "tiny", "fraction"),
    *("far below", "low", "high", "far above"),
)
MISSING, PART, BELOW, ABOVE = 0, 4, 5, 8  # places of some of them
CONSTANT = "constant"  # what a column can be beside the traits of its cells
TOLD_APART = 3  # the spread of a column is compared if so many cells are expected not to be 0
STUCK = 1e-5  # the spread of a column that does not vary, where it did: more than round-off
FAR, OUTER = 3.0, 0.6745  # where cells are far or in an outer quarter: normal standard deviations
TINY = 0.03  # of the larger of the two outer quarters' cuts: a cell is hardly anything
TENTH = 1.2816  # from the median to the outer tenth of a normal distribution, in these

# The variance of a share between deliveries, relative to that between cells: rows of one night are
# more alike than rows of many. Fifty rows or many then tell nearly the same.
ALIKE = 0.02
LEAST_SHARE = 0.005  # what was never seen may be in so many cells
APART = 0.15  # a share that differs by less is not worth a warning
RISK = 1e-3  # how often chance alone would warn of a delivery, if clusters and `ALIKE` are right
FORGETS = 5  # the usual share is that of about so many deliveries
ROOM = 2**22  # cells that are sorted at once
# Cuts of a column that fewer than ten samples have: no cell is beyond them.
NOWHERE = np.finfo(np.float64).max * np.array([[-1.0], [-1.0], [1.0], [1.0]])
GROUPS = 2**19  # clusters are told apart as long as there are not more of them, times columns


@frozen_record
class Tally:
    """Counts over some rows of a view."""

    n: int
    counts: Array  # (n_traits, n_features): cells with each trait
    total: Array  # (n_features,): the sum of the cells that are there
    clipped: Array  # (2, n_features): sums of these and their squares, far ones moved to the cuts

    @property
    def present(self) -> Array:
        """How many cells of each column are there."""
        return np.asarray(self.n - self.counts[MISSING])

    def shares(self) -> Array:
        """Return the share of cells with each trait; of rows, for missing ones."""
        there = np.maximum(self.present, 1)
        return np.vstack([self.counts[:1] / max(self.n, 1), self.counts[1:] / there])

    def level(self, shift: Array) -> Array:
        """Return mean and standard deviation of each column without its far cells."""
        there = np.maximum(self.present, 1)
        mean, squares = self.clipped / there
        return np.vstack([mean + shift, np.sqrt(np.maximum(squares - mean**2, 0))])


@frozen_record
class Profile:
    """What is kept of the deliveries of a view: shares, each of ten cells or more."""

    # (4, n_features): where cells begin to be far below, low, high and far above, from the first
    # rows; out of reach where fewer than ten samples have a column
    cuts: Array
    usual: Array  # (n_traits, n_features): the share of cells with a trait, lately
    lowest: Array  # lowest, highest: the same in the cluster that has fewest and most of them
    highest: Array
    learned: Array  # (2, n_features): mean and standard deviation, when the view was learned
    recent: Array  # (2, n_features): the same, lately
    # (6,): rows that the view was learned from, rows since then, deliveries since then; how often
    # two of the first rows were the same, of all pairs; the share of rows that held nothing; the
    # last is not used any more
    counts: Array
    # (n_features,): how far the cells of known samples lately kept to what is expected of them: 1
    # as they should, 0 not at all, as where a column is measured anew each night; None in files of
    # earlier versions
    steady: Array | None = None

    @property
    def shift(self) -> Array:
        """What is subtracted from cells before they are squared."""
        return np.asarray(self.cuts[1] / 2 + self.cuts[2] / 2)

    def tally(self, engine: Engine, rows: RowSet) -> Tally:
        """Count the cells of other rows by their traits; missing ones are NaN."""
        counts, sums = count_cells(engine, rows, self.cuts)
        return Tally(rows.shape[0], counts[0], sums[0], sums[1:])

    @property
    def usual_fit(self) -> Array:
        """How far the cells of each column keep to what is expected of their samples."""
        return np.ones(self.learned.shape[1]) if self.steady is None else self.steady

    def updated(self, came: Tally, fits: Array | None = None) -> Profile:
        """Return the profile with one more delivery.

        `fits` tells how far cells fitted their samples, by column; NaN where that is not known.
        """
        n, since, number, *rest = self.counts
        if fits is not None:
            # What was told of once is expected; a column has to fit several times to be relied on.
            steady = self.usual_fit
            now = np.where(np.isnan(fits), steady, fits)
            self = replace(self, steady=np.minimum(now, (steady + now) / 2))
        # A delivery counts as one of `FORGETS`, or as many rows among those known before.
        weight = max(came.n / (n + since + came.n), 1 / FORGETS * min(1, came.n / FEWEST**2))
        there = np.where(came.present >= FEWEST, weight, 0.0)
        if came.n < FEWEST:
            return replace(self, counts=np.array([n, since + came.n, number + 1, *rest]))
        step = np.vstack([np.full((1, there.size), weight), np.tile(there, (len(TRAITS) - 1, 1))])
        usual = self.usual + step * (came.shares() - self.usual)
        recent = self.recent + there * (came.level(self.shift) - self.recent)
        return replace(
            self,
            usual=usual.astype(self.usual.dtype),
            recent=recent,
            counts=np.array([n, since + came.n, number + 1, *rest]),
        )

    def relearned(self, came: Tally, usual: Array) -> Profile:
        """Return the profile of a view that was learned again; see `distance_of`."""
        n, since, _, *rest = self.counts
        spread = self.learned[1]
        level, there = came.level(self.shift), came.present >= FEWEST
        now = np.vstack([level[0] - usual[0] * spread, level[1] / usual[1]])
        learned = np.where(there & (spread > 0) & (now[1] > 0), now, self.learned)
        return replace(self, learned=learned, counts=np.array([n + since, 0, 0, *rest]))

    def without(self, gone: list[int]) -> Profile:
        """Return the profile without what is known of some columns."""
        made = {}
        for name in (one.name for one in fields(self)):
            made[name] = values = copy(getattr(self, name))
            if np.ndim(values) > 1:  # any share is as it was
                values[:, gone] = NOWHERE if name == "cuts" else float(name == "highest")
        if self.steady is not None:
            made["steady"][gone] = 1
        return Profile(**made)


# -- the first rows


def learn_profile(
    engine: Engine, rows: RowSet, some: Matrix, labels: RowSet, n_clusters: int, n_absent: int
) -> Profile | None:
    """Return the profile of a view from its rows, of which `some` were drawn, and their clusters.

    Missing cells are NaN; `n_absent` rows held nothing else. Fewer than ten rows say nothing.
    """
    n, d = rows.shape
    if n < FEWEST or some.shape[0] < FEWEST:
        return None
    few = max(1, min(n_clusters, GROUPS // d))
    cuts = choose_cuts(some)
    counts, sums = count_cells(engine, rows, cuts, labels, few)
    all_cells = Tally(n, counts.sum(axis=0), sums[0], sums[1:])
    sizes = engine.reduce(
        lambda of: np.bincount(np.minimum(of, few - 1), minlength=few).astype(float), labels
    )
    usual = all_cells.shares()
    # A small cluster says little of its own.
    cells = sizes[:, None] - counts[:, MISSING]
    cells = np.stack(
        [np.broadcast_to(sizes[:, None], cells.shape), *[cells] * (len(TRAITS) - 1)], axis=1
    )
    shares = (counts + FEWEST * usual) / (cells + FEWEST)
    shares = np.where(cells < FEWEST, usual, shares)
    usual, lowest, highest = (
        each.astype(np.float32) for each in (usual, shares.min(axis=0), shares.max(axis=0))
    )
    facts = np.array([n, 0, 0, alike_pairs(some)[1], n_absent / (n + n_absent), 0])
    empty = np.zeros((2, d))
    made = Profile(cuts, usual, lowest, highest, empty, empty, facts)
    level = np.where(all_cells.present >= FEWEST, all_cells.level(made.shift), 0)
    return replace(made, learned=level, recent=level)


def choose_cuts(some: Matrix) -> Array:
    """Return where cells of each column begin to be far below, low, high and far above."""
    m, d = some.shape
    wide = max(1, ROOM // m)
    by_column = some.tocsc() if is_sparse(some) else some
    parts = [_cuts(dense(by_column[:, i : i + wide])) for i in range(0, d, wide)]
    return np.hstack(parts)


def _cuts(block: Array) -> Array:
    cells = np.sort(block.astype(np.float64), axis=0)  # NaN comes last
    n = (~np.isnan(cells)).sum(axis=0)
    filled = np.where(np.isnan(cells), 0, cells)
    middle = np.take_along_axis(filled, (n // 2)[None].clip(0, len(cells) - 1), axis=0)[0]
    sums = np.cumsum(np.vstack([np.zeros_like(middle), filled - middle]), axis=0)
    # A quantile is the mean of ten cells or more around it.
    half = np.maximum(FEWEST // 2, n // 40)

    def quantile(p: float) -> Array:
        low = np.clip(np.round(p * n).astype(int) - half, 0, np.maximum(n - 2 * half, 0))
        high = np.minimum(low + 2 * half, n)
        between = np.take_along_axis(sums, high[None], 0) - np.take_along_axis(sums, low[None], 0)
        return np.asarray(between[0] / np.maximum(high - low, 1) + middle)

    low, centre, high = (quantile(p) for p in (0.1, 0.5, 0.9))
    below, above = centre - low, high - centre
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums[-1] / np.maximum(n, 1)
        squares = np.where(np.isnan(cells), 0, (cells - middle - mean) ** 2)
        spread = TENTH * np.sqrt(squares.sum(axis=0) / np.maximum(n, 1))
        flat = np.maximum(below, above) == 0
        # A column of one value has cuts at its sides.
        tiny = np.maximum(np.abs(centre) * 1e-6, 1e-300)
        below = np.where(flat, np.maximum(spread, tiny), np.where(below > 0, below, above))
        above = np.where(flat, np.maximum(spread, tiny), np.where(above > 0, above, below))
        steps = np.array([-FAR, -OUTER, OUTER, FAR])[:, None] / TENTH
        cuts = centre + steps * np.where(steps < 0, below, above)
        # Of amounts that spread over orders of magnitude, a hundredth is far below.
        ratio = np.log(high / centre), np.log(centre / low)
        skewed = (low > 0) & (ratio[1] > 0) & (ratio[0] > 0)
        skewed &= np.abs(np.log(ratio[0] / ratio[1])) < np.abs(np.log(above / below))
        factors = np.exp(steps * np.where(steps < 0, ratio[1], ratio[0]))
        cuts = np.where(skewed, centre * factors, cuts)
    return np.where(n < FEWEST, NOWHERE, cuts)


# -- counting


def count_cells(
    engine: Engine,
    rows: RowSet,
    cuts: Array,
    labels: RowSet | None = None,
    n_groups: int = 1,
) -> tuple[Array, Array]:
    """Return counts (groups × traits × features), and sums of cells: as they are, and clipped."""
    shift = cuts[1] / 2 + cuts[2] / 2

    def sums(block: Matrix, *group: Array) -> tuple[Array, Array]:
        of = np.minimum(group[0], n_groups - 1) if group else np.zeros(block.shape[0])
        members = membership(of.astype(np.intp), n_groups).tocsr()
        wide = max(1, ROOM // max(block.shape[0], 1))
        cells = block.tocsc() if is_sparse(block) else block
        parts = [
            _of_columns(cells[:, i : i + wide], cuts[:, i : i + wide], shift[i : i + wide], members)
            for i in range(0, block.shape[1], wide)
        ]
        return np.concatenate([p[0] for p in parts], axis=2), np.hstack([p[1] for p in parts])

    beside = () if labels is None else (labels,)
    counts, totals = engine.reduce(sums, rows, *beside)
    return counts, totals


def _of_columns(
    cells: Matrix, cuts: Array, shift: Array, members: scipy.sparse.csr_array
) -> tuple[Array, Array]:
    if not is_sparse(cells):
        cells = cells.astype(np.float64, copy=False)
        counts = [dense(members @ trait.astype(np.float32)) for trait in _traits(cells, cuts)]
        return np.stack(counts, axis=1), _sums(cells, cuts, shift)
    cells = cells.tocsc()
    column = np.repeat(np.arange(cells.shape[1]), np.diff(cells.indptr))
    nothing = _traits(np.zeros((1, cells.shape[1])), cuts)
    stored = dense(
        members @ scipy.sparse.csc_array((np.ones(cells.nnz), *_place(cells)), cells.shape)
    )
    others = np.asarray(members.sum(axis=1)).reshape(-1, 1) - stored  # cells of zero
    data = cells.data.astype(np.float64)
    counts = []
    for trait, of_zero in zip(_traits(data, cuts[:, column]), nothing, strict=True):
        held = scipy.sparse.csc_array((trait.astype(np.float64), *_place(cells)), cells.shape)
        counts.append(dense(members @ held) + others * of_zero[0])
    made = _sums(data, cuts[:, column], shift[column], summed=False)
    totals = np.stack([np.bincount(column, one, cells.shape[1]) for one in made])
    return np.stack(counts, axis=1), totals + others.sum(axis=0) * _sums(
        np.zeros((1, cells.shape[1])), cuts, shift
    )


def _place(cells: scipy.sparse.csc_array) -> tuple[Array, Array]:
    return cells.indices, cells.indptr


def _traits(cells: Array, cuts: Array) -> list[Array]:
    """Return which cells have each trait; none but the first holds for missing ones."""
    below, low, high, above = cuts
    gone = np.isnan(cells)
    part = (cells != np.floor(cells)) & ~gone
    tiny = np.abs(cells) < TINY * np.maximum(np.abs(low), np.abs(high))
    tiny &= high < NOWHERE[3]
    beyond = [cells < below, cells < low, cells > high, cells > above]
    return [gone, cells < 0, cells == 0, tiny, part, *beyond]


def _sums(cells: Array, cuts: Array, shift: Array, *, summed: bool = True) -> Array:
    clipped = np.clip(cells, cuts[0], cuts[3]) - shift
    clipped = np.where(np.isnan(clipped), 0, clipped)
    each = [np.where(np.isnan(cells), 0, cells), clipped, clipped * clipped]
    return np.stack([one.sum(axis=0) for one in each] if summed else each)


# -- comparing


@frozen_record
class Oddity:
    """A column of a delivery that no share of before explains: what is odd, and by how much."""

    feature: int
    trait: str
    before: float  # the share that comes nearest
    now: float
    chance: float  # how probable so many cells would be


def find_oddities(profile: Profile, came: Tally) -> list[Oddity]:
    """Return the columns that are not as before, the worst first, each with its oddest trait."""
    if not came.n:
        return []
    usual, there = profile.usual.astype(np.float64), came.present
    low, high = np.minimum(usual, profile.lowest), np.maximum(usual, profile.highest)
    # Clusters are mixtures of what there is: its own share may be as far from theirs again.
    low = np.clip(2 * low - usual, LEAST_SHARE, 1 - LEAST_SHARE)
    high = np.clip(2 * high - usual, LEAST_SHARE, 1 - LEAST_SHARE)
    now, m = came.shares(), np.vstack([np.full(there.size, came.n), *[there] * (len(TRAITS) - 1)])
    more, less = now - high > APART, low - now > APART
    chance = np.ones_like(now)
    for odd, bound, tail in ((more, high, at_least), (less, low, at_most)):
        if odd.any():
            chance[odd] = tail(came.counts[odd], m[odd], bound[odd])
    # A cell that is far above is high, too: of one column, the trait that differs most is told.
    chance *= chance.size
    worst = np.argmin(chance, axis=0)
    each = np.arange(there.size)
    columns = np.flatnonzero(chance[worst, each] < RISK)
    gap = np.maximum(now - high, low - now)
    gap = np.where(chance < RISK, gap, -1)
    said = np.argmax(gap, axis=0)
    found = [
        Oddity(
            int(j),
            TRAITS[t := int(said[j])],
            float(high[t, j] if more[t, j] else low[t, j]),
            float(now[t, j]),
            float(chance[worst[j], j]),
        )
        for j in columns
    ]
    # A measurement that is the same in ten rows is none.
    level = came.level(profile.shift)[1]
    stuck = (level < STUCK * profile.learned[1]) & (there >= FEWEST) & (usual[PART] > 0.5)
    stuck &= came.counts[[BELOW, ABOVE]].sum(axis=0) == 0  # these were moved to the cuts
    told = {one.feature for one in found}
    same = (int(j) for j in np.flatnonzero(stuck) if j not in told)
    found += [Oddity(j, CONSTANT, 0.0, 1.0, 0.0) for j in same]
    return sorted(found, key=lambda one: (-abs(one.now - one.before), one.feature))


def at_least(x: Array | float, m: Array | float, p: Array | float) -> Array:
    """Return how probable x or more of m cells are that have a trait in a share p of them."""
    a = (1 / ALIKE - 1) * p
    return np.asarray(scipy.stats.betabinom.sf(x - 1, m, a, 1 / ALIKE - 1 - a))


def at_most(x: Array | float, m: Array | float, p: Array | float) -> Array:
    """Return how probable x or fewer are."""
    a = (1 / ALIKE - 1) * p
    return np.asarray(scipy.stats.betabinom.cdf(x, m, a, 1 / ALIKE - 1 - a))


@frozen_record
class Distance:
    """How far rows are from those that a view was learned from, net of what chance explains.

    A column's number is a length: the shift of its mean, in standard deviations of then, and half
    the change of the logarithm of its standard deviation. Far cells count as if at the cuts.
    """

    columns: Array  # (n_features,): of each column, 0 if chance explains it
    total: float  # the root of the mean square over columns that vary


def distance_of(profile: Profile, came: Tally, usual: Array | None = None) -> Distance:
    """Tell how far a delivery is from what was learned.

    `usual` (2 × n_features) says what is to be expected of its samples: the shift of means, in
    standard deviations of when the view was learned, and the factor of the standard deviation.
    """
    return _distance(profile, came.level(profile.shift), came.present, usual)


def drift_of(profile: Profile) -> Distance:
    """Tell how far recent deliveries are from what was learned, for the status of a view."""
    rows = np.full(profile.learned.shape[1], max(profile.counts[1], 1.0))
    return _distance(profile, profile.recent, rows)


def _distance(profile: Profile, level: Array, there: Array, usual: Array | None = None) -> Distance:
    mean, spread = profile.learned
    if usual is not None:
        mean, spread = mean + usual[0] * spread, spread * usual[1]
    varies = (spread > 0) & (there >= FEWEST)
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(varies, (level[0] - mean) / profile.learned[1], 0)
        ratio = np.where(varies & (level[1] > 0), level[1] / spread, 1e-3)
    # The spread of a column that is mostly 0, or hardly ever, hangs on the few other cells.
    there, zero = np.maximum(there, 1), profile.usual[TRAITS.index("zero")]
    mixed = (zero > 0) & (zero < 1)
    known = varies & (~mixed | (there * np.minimum(zero, 1 - zero) >= TOLD_APART))
    log = np.where(known, np.clip(np.log(ratio), -2, 2), 0)
    # The spread counts by half: that of a few clusters is not well known. The expected square by
    # chance is 1 / n of a mean, (κ − 1) / 4n of a logarithm of a spread: the kurtosis κ is 3 of a
    # normal column, and more of one that is mostly 0.
    tails = np.where(mixed, 1 / np.where(mixed, zero * (1 - zero), 1) - 4, 2)
    chance = (1 + known * np.maximum(tails, 2) / 16) * (1 / there + 1 / max(profile.counts[0], 1))
    squares = np.where(varies, shift**2 + log**2 / 4 - chance, 0)
    total = np.sqrt(max(squares.sum() / max(np.count_nonzero(varies), 1), 0))
    return Distance(np.sqrt(np.maximum(squares, 0)), float(total))


def alike_pairs(some: Matrix) -> tuple[float, float]:
    """Return the share of rows that are like another one, and the share of pairs that are alike."""
    m = some.shape[0]
    if is_sparse(some):
        rows = some.tocsr()
        cut = [slice(*ends) for ends in pairwise(rows.indptr)]
        keys = [(rows.indices[at].tobytes(), rows.data[at].tobytes()) for at in cut]
    else:
        keys = [(row.tobytes(), b"") for row in np.ascontiguousarray(some)]
    sizes = np.array([n for n in Counter(keys).values() if n > 1], float)
    return float(sizes.sum() / max(m, 1)), float((sizes * (sizes - 1)).sum() / max(m * (m - 1), 1))


def odd_rows(block: Matrix, profile: Profile, oddities: Sequence[Oddity]) -> Array:
    """Return the rows that have a trait of which a column has more than it should."""
    found = np.zeros(block.shape[0], bool)
    for one in oddities:
        if one.now > one.before and one.trait != CONSTANT:
            cells = dense(block[:, [one.feature]]).astype(np.float64)
            found |= _traits(cells, profile.cuts[:, [one.feature]])[TRAITS.index(one.trait)][:, 0]
    return found
