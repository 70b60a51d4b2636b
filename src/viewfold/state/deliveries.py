"""Compare a delivery of a known view with what the view looked like, before it is folded.

Columns are compared with the view's profile (`viewfold.data.expected`). Rows of samples that had
the view already are also compared with what the consensus says of these samples: regressed on what
is expected of them, right rows have a slope near 1, and rows under the ids of others a slope of 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from viewfold._util.arguments import warn_user
from viewfold._util.constants import FEWEST
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array, Matrix
from viewfold.data.expected import (
    ALIKE,
    CONSTANT,
    LEAST_SHARE,
    RISK,
    Distance,
    Oddity,
    Tally,
    alike_pairs,
    at_least,
    distance_of,
    find_oddities,
    learn_profile,
)
from viewfold.data.view import View
from viewfold.errors import DeliveryWarning
from viewfold.rows import Alignment, Engine, RowSet
from viewfold.rows.linalg import dense
from viewfold.state.clusters import assign
from viewfold.state.hashes import draw
from viewfold.state.moments import Products, describe_samples, sum_products
from viewfold.state.state import State, ViewRecord, level_places, without_batches

DRAWN = 4096  # rows from which the cuts of a profile are found
CELLS = 2**22  # of them, unless a view is very wide
EXPLAINED = 256  # columns in which rows are compared with their samples: those explained best
SLOPE = 0.5  # rows of other samples have a slope of 0, right ones of 1
SURE = 4.0  # standard errors by which a slope is below what is expected; of one column, one more
EXCHANGED = 8.0  # two columns are taken for exchanged if that is e⁸ times as likely, and more
CLIPPED = 4.0  # standard deviations that a cell counts for at most
RARE = 10.0  # the same in sparse views, where cells that are not zero are so far from their mean
VARIED = 0.5  # of the variance that is expected of a delivery of all kinds of samples
LEFT = 0.1  # the least variance that is left of a column, where all of it is 1
WHOLE = 0.9  # a delivery of so many of a view's samples is all of it
MANY = 0.3  # a share of rows that are empty, alike or of no known level is many beyond the usual
GROSS = ("negative", "tiny", "far below", "far above", CONSTANT)  # what no drift does to most cells
SHOWN = 5  # columns that a message names
# How messages name the traits of cells whose own names do not say it, and those beyond the cuts.
WORDS = {"tiny": "nearly zero", CONSTANT: "the same", "fraction": "not whole numbers"}
CUTS = ("far below", "low", "high", "far above")


@dataclass(frozen=True)
class Finding:
    """Something about a delivery that is not as before, in words."""

    kind: str  # one of `REMEDY`
    column: str | None  # the column; None if it is about whole rows
    expected: str
    came: str

    def __str__(self) -> str:
        of = "" if self.column is None else f"{self.column!r}: "
        return f"{of}{self.came} ({self.expected})"


@frozen_record
class Comparison:
    """How a delivery compares with what the view looked like before."""

    view: str
    n: int  # rows that were compared: those that were not known
    findings: tuple[Finding, ...]  # what is not as before, the worst first; empty if all is well
    distance: Distance  # how far its columns are from what the view was learned from
    tally: Tally
    oddities: tuple[Oddity, ...]  # what the findings about columns are made of
    fits: Array  # (n_features,): see `Profile.updated`
    resembles: str | None = None  # a view of the model that the rows fit better

    @property
    def whole(self) -> bool:
        """Whether the trouble is with all rows, and not with some of them."""
        # A single column may be measured anew each night: then its cells fit nobody.
        kinds = {one.kind for one in self.findings if not (one.kind == "shuffled" and one.column)}
        constant = any(one.trait == CONSTANT for one in self.oddities)
        return constant or bool(kinds & {"swapped", "sign", "shuffled", "twins", "repeated"})


def learn_expected(
    engine: Engine, state: State, view: View, rows: RowSet, labels: RowSet, alignment: Alignment
) -> State:
    """Return a state that knows what deliveries of a view should look like, from its rows.

    Missing cells of `rows` are NaN; `labels` are those of all samples.
    """
    which, n = state.names.index(view.name or state.names[-1]), rows.shape[0]
    if n < FEWEST or state.views[which].encoder is None:
        return state
    assert state.clusters is not None
    rows = without_batches(engine, state, view.name, rows)
    with engine.session():
        beside = engine.map(lambda of: of, alignment.view_rows(labels))
        some = _draw(engine, view, rows)
        k = state.clusters.n_clusters
        profile = learn_profile(engine, rows, some, beside, k, view.n_absent)
    return state.with_view(which, profile=profile)


def expect_more(state: State, found: Comparison | None, learned: Drift | None = None) -> State:
    """Return a state whose profile of a view knows the delivery that was compared with it."""
    if found is None:
        return state
    which = state.names.index(found.view)
    profile = state.views[which].profile
    assert profile is not None  # or nothing could be compared
    profile = profile.updated(found.tally, found.fits)
    if learned is not None:
        profile = profile.relearned(found.tally, learned.usual)
    return state.with_view(which, profile=profile)


def _draw(engine: Engine, view: View, rows: RowSet) -> Matrix:
    most = min(DRAWN, max(CELLS // rows.shape[1], 16 * FEWEST))
    drawn = draw(engine, view.ids, most, seed=0, purpose="profile")
    return engine.collect(engine.select(rows, drawn))


# -- comparing


def compare(
    engine: Engine,
    state: State,
    view: View,
    rows: RowSet,
    alignment: Alignment,
    *,
    n_same: int = 0,
    n_absent: int = 0,
    news: bool = True,
) -> Comparison | None:
    """Compare rows of a known view with what it looked like; None if that is not known.

    `view` holds the rows that are not known, and `rows` are the same with NaN for missing cells;
    `n_same` others are known, and `n_absent` held nothing. Without `news`, all are known.
    """
    which = state.names.index(view.name or "")
    record = state.views[which]
    profile = record.profile
    if profile is None:
        return None
    found: list[Finding] = []
    oddities: list[Oddity] = []
    other, n = None, rows.shape[0] if news else 0
    fits = np.full(record.n_features, np.nan)
    rows = without_batches(engine, state, view.name, rows)
    with engine.session():
        tally = profile.tally(engine, rows)
        # A view that always comes as a whole may have no news; a part of it comes once.
        if not news and FEWEST <= n_same < WHOLE * record.n_samples:
            found = [Finding("repeated", None, "other rows", f"all {n_same:,} rows came before")]
        if news:
            oddities = find_oddities(profile, tally)
            found = [*_of_rows(engine, record, view, rows, n + n_same, n_absent)]
            found += _of_columns(record, tally, oddities)
            if 2 * len(oddities) > rows.shape[1]:
                other = _resembled(engine, state, which, rows, len(oddities))
            else:
                fit = fit_rows(engine, state, which, rows, alignment)
                found += _of_fit(record, fit, {one.feature for one in oddities})
                fits = _known_fits(record, fit, found)
            found.sort(key=lambda one: KINDS.index(one.kind))
    distance = distance_of(profile, tally)
    name = record.name
    return Comparison(name, n, tuple(found), distance, tally, tuple(oddities), fits, other)


def compare_all(
    engine: Engine, state: State, view: View, alignment: Alignment
) -> Comparison | None:
    """Compare all rows of a view that are to be learned anew: only what no drift explains counts.

    Nothing is compared if the columns are others.
    """
    record = state.views[state.names.index(view.name or "")]
    if view.features != record.features or view.shape[1] != record.n_features:
        return None
    raw = replace(view.rows, fill=None)
    found = compare(engine, state, view, raw, alignment, n_absent=view.n_absent)
    if found is None or found.resembles is not None:
        return found
    gross = {
        _name(record, one.feature)
        for one in found.oddities
        if one.trait in GROSS and abs(one.now - one.before) > SLOPE
    }
    drifts = "values", "missing", "levels"
    kept = [one for one in found.findings if one.kind not in drifts or one.column in gross]
    return replace(found, findings=tuple(kept))


def _resembled(engine: Engine, state: State, which: int, rows: RowSet, n_odd: int) -> str | None:
    """Return a view with as many columns that rows fit better than the one they are said to be."""
    for i, record in enumerate(state.views):
        known = record.profile
        if i == which or known is None or record.n_features != rows.shape[1]:
            continue
        if 4 * len(find_oddities(known, known.tally(engine, rows))) < n_odd:
            return record.name
    return None


def _of_rows(
    engine: Engine, record: ViewRecord, view: View, rows: RowSet, n_there: int, n_absent: int
) -> Iterator[Finding]:
    assert record.profile is not None
    alike, empty = record.profile.counts[3:5]
    share = n_absent / (n_absent + n_there)
    chance = at_least(n_absent, n_absent + n_there, max(empty, LEAST_SHARE))
    if share > empty + MANY and chance < RISK:
        yield Finding("absent", None, _before(empty), f"{_percent(share)} of the rows are empty")
    if rows.shape[0] >= FEWEST:
        some = _draw(engine, view, rows)
        twins, usual = alike_pairs(some)[0], min(1.0, alike * (some.shape[0] - 1))
        if twins > MANY + 2 * usual:
            came = f"{_percent(twins)} of the rows are the same as another one under another id"
            yield Finding("twins", None, _before(usual), came)


def _of_fit(record: ViewRecord, fit: Fit | None, odd: set[int]) -> Iterator[Finding]:
    profile = record.profile
    assert profile is not None
    if fit is None:
        return
    if fit.slope < SLOPE and fit.slope + SURE * fit.error < 1:
        said = f"the rows of {fit.n:,} known samples fit these no better than they fit others"
        yield Finding(
            "shuffled", None, f"agreement 1 was expected, it is {max(fit.slope, 0):.2f}", said
        )
        return
    named, told = [_name(record, j) for j in fit.columns], set[int]()
    usual_fit = profile.usual_fit[fit.columns]
    steady = usual_fit > SLOPE  # of others, nobody can tell whether they were exchanged
    likely = np.where(steady & steady[:, None], fit.exchanged, -np.inf)
    best = likely.argmax(axis=1)
    pairs = [(i, j) for i, j in enumerate(best) if i <= j and best[j] == i]
    for i, j in sorted(pairs, key=lambda pair: -likely[pair])[:SHOWN]:
        if likely[i, j] < EXCHANGED + 2 * np.log(len(named)):
            continue
        for one, other in sorted({(i, j), (j, i)}):
            said = f"the cells of {fit.n:,} known samples fit "
            said += "with the other sign" if i == j else f"{named[other]!r} better"
            kind = "sign" if i == j else "swapped"
            told.add(one)
            yield Finding(kind, named[one], BEFORE, said)
    slopes, errors = fit.of_columns
    sure = slopes + (SURE + 1) * errors < usual_fit
    for j in np.flatnonzero(sure & (slopes < SLOPE * usual_fit)):
        if j not in told and int(fit.columns[j]) not in odd:
            turned = bool(slopes[j] < -SLOPE)
            said = f"the cells of {fit.n:,} known samples fit "
            said += "with the other sign" if turned else "these no better than they fit others"
            yield Finding("sign" if turned else "shuffled", named[j], BEFORE, said)


def _known_fits(record: ViewRecord, fit: Fit | None, found: list[Finding]) -> Array:
    """Return how far cells fit their samples, by column; NaN where that is not known."""
    fits = np.full(record.n_features, np.nan)
    if fit is None or any(one.kind == "shuffled" and one.column is None for one in found):
        return fits
    slopes, errors = fit.of_columns
    others = {one.column for one in found if one.kind in ("sign", "swapped")}
    slopes = np.where([_name(record, j) in others for j in fit.columns], 0, slopes)
    known = SURE * errors < 1
    fits[fit.columns[known]] = np.clip(slopes[known], 0, 1)
    return fits


def _of_columns(record: ViewRecord, tally: Tally, oddities: list[Oddity]) -> Iterator[Finding]:
    profile, told = record.profile, set[str]()
    assert profile is not None
    columns = record.columns or ()
    of_level = {j: columns[i].name for i, places in level_places(columns) for j in places}
    for one in oddities:
        j, now = one.feature, _percent(one.now)
        if one.trait == "missing" and j in of_level:  # all levels of a category are missing at once
            if of_level[j] not in told:
                came = f"{now} of the cells are missing, or of a level that is not known"
                yield Finding("levels", of_level[j], _before(one.before), came)
            told.add(of_level[j])
            continue
        words = WORDS.get(one.trait, one.trait)
        if one.trait in CUTS:
            i = CUTS.index(one.trait)
            words = f"{'below' if i < 2 else 'above'} {profile.cuts[i, j]:.4g}"
        came = f"{now} of the cells are {words}"
        bound = "at most" if one.now > one.before else "at least"
        expected = f"before {bound} {_percent(one.before)}"
        if one.trait != "missing" and tally.present[j]:
            mean, usual = tally.total[j] / tally.present[j], profile.recent[0, j]
            came += f", their mean is {mean:.4g}"
            expected += f", mean {usual:.4g}"
            if usual and mean and not 0.4 < mean / usual < 2.5:
                came += f", {mean / usual:.2g} times the usual"
        kind = "missing" if one.trait == "missing" else "values"
        yield Finding(kind, _name(record, j), expected, came)


def _name(record: ViewRecord, j: int) -> str:
    return record.features[j] if record.features else f"column {j}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"


def _before(share: float) -> str:
    return f"before {_percent(share)}"


REMEDY = {
    "repeated": "Look whether an old file was sent again.",
    "shuffled": "Check that each id stands beside its own row.",
    "twins": "Look whether rows were written twice.",
    "absent": "Look for an export that broke off.",
    "swapped": "Look whether columns were exchanged.",
    "sign": "Look for another sign of the column.",
    "values": "Look for another unit, sheet, decimal sign or order of columns.",
    "missing": "Look for a column that was renamed or an export that broke off.",
    "levels": "Look for other spellings or another order of columns.",
}


BEFORE = "before, they fitted this column as it is"
KINDS = list(REMEDY)  # in the order in which findings are told


def warn_of(found: Comparison | None) -> None:
    """Warn of a delivery that is not as before."""
    if found is None or not found.findings:
        return
    shown = "; ".join(map(str, found.findings[:SHOWN]))
    more = len(found.findings) - SHOWN
    shown += f"; … ({len(found.findings)} findings in all)" if more > 0 else ""
    do = " ".join(dict.fromkeys(REMEDY[one.kind] for one in found.findings))
    if found.resembles is not None:
        do = f"The rows look like view {found.resembles!r}. {do}"
    message = (
        f"View {found.view!r}: this delivery ({found.n:,} rows that are not known) is not what the "
        f"view looked like before: {shown}. {do} If it is right, fold it as it is: what keeps "
        "coming is soon expected."
    )
    warn_user(DeliveryWarning(message, found.view, found))


@frozen_record
class Drift:
    """How far a delivery is from what was learned, beyond what is to be expected of its samples."""

    total: float
    usual: Array  # see `distance_of`


def find_drift(
    engine: Engine,
    before: State,
    after: State,
    which: int,
    alignment: Alignment,
    found: Comparison | None,
) -> Drift | None:
    """Tell how far a delivery is from what was learned, beyond what its samples explain.

    A delivery of one cluster has another mean than the view, and less spread. What is known of its
    samples (of those that lacked the view: where they are placed now) tells what to expect.
    """
    record = before.views[which]
    moments, profile, clusters = record.moments, record.profile, before.clusters
    if found is None or moments is None or profile is None or found.n < FEWEST:
        return None
    assert clusters is not None
    labels, k = before.labels(engine), clusters.n_clusters

    def sums(row: Array, of: Array, seen: Array, was: Array, label: Array) -> tuple[Array, ...]:
        had = seen[:, which]
        P = describe_samples(np.where(had[:, None], was, row), np.where(had, label, of), k)
        return P.T @ P, P.sum(axis=0), np.array(len(P))

    row = engine.map(lambda block: block, alignment.view_rows(after.embedding))
    beside = assign(engine, clusters, row), alignment.partners(before.seen, False)
    partners = alignment.partners(before.embedding), alignment.partners(labels)
    here = Products(*engine.reduce(sums, row, *beside, *partners))
    (whole,) = sum_products(engine, before, [which], labels)
    C = (moments.coefficients @ moments.directions).astype(np.float64)
    shift = (here.total / here.n - whole.total / max(whole.n, 1)) @ C
    variance = here.variance(C) + np.maximum(1 - whole.variance(C), 0)
    spread = profile.learned[1]
    unit = np.divide(moments.spread, spread, out=np.ones_like(spread), where=spread > 0)
    usual = np.vstack([shift, np.sqrt(np.maximum(variance, 1e-6))]) * unit
    return Drift(distance_of(profile, found.tally, usual).total, usual)


# -- rows and their samples


@frozen_record
class Fit:
    """How delivered rows fit what is expected of their samples: slopes and standard errors."""

    n: int  # samples that had the view
    slope: float  # over all columns that usually fit
    error: float
    columns: Array  # which columns were compared
    # (n_columns, n_columns): the logarithm of how much more likely the rows are if two columns are
    # exchanged; on the diagonal, if the column has the other sign
    exchanged: Array
    of_columns: Array  # (2, n_columns): slope and error of each


def fit_rows(
    engine: Engine, state: State, which: int, rows: RowSet, alignment: Alignment
) -> Fit | None:
    """Regress rows of samples that had the view on what the consensus says of these samples."""
    moments, profile = state.views[which].moments, state.views[which].profile
    if moments is None or profile is None or alignment.n_shared < FEWEST:
        return None
    assert state.clusters is not None
    k, at = state.clusters.n_clusters, _explained(state.views[which])
    if not at.size:
        return None
    steady = profile.usual_fit[at] > SLOPE
    mean, spread = moments.mean[at], moments.spread[at]
    thin = bool(getattr(rows, "is_sparse", False))
    most = RARE if thin else CLIPPED
    C = (moments.coefficients @ moments.directions[:, at]).astype(np.float64)
    labels = state.labels(engine)

    def cells(block: Matrix, B: Array, of: Array, seen: Array) -> tuple[Array, Array, Array]:
        had = seen[:, which]
        z = (dense(block[:, at])[had].astype(np.float64) - mean) / spread
        there = ~np.isnan(z)
        expected = describe_samples(B[had], of[had], k) @ C - centre
        return there.astype(float), np.where(there, np.clip(z, -most, most), 0), expected

    def sums(*blocks: Array) -> tuple[Array, ...]:
        there, z, e = cells(*blocks)
        of_cells = there.sum(axis=0), z.sum(axis=0), (z * z).sum(axis=0)
        return np.array(len(z)), *of_cells, there.T @ e, there.T @ (e * e), z.T @ e

    with engine.session():
        (P,) = sum_products(engine, state, [which], labels)
        centre = (P.total / max(P.n, 1)) @ C
        beside = (
            alignment.partners(state.embedding),
            engine.map(lambda of: of, alignment.partners(labels)),
            alignment.partners(state.seen, False),
        )
        had, n, z, zz, e, ee, ze = engine.reduce(sums, rows, *beside)
        if had < FEWEST:
            return None
        n = np.maximum(n, 1)
        z_mean, e_mean = z / n, np.diagonal(e) / n

        def of_rows(*blocks: Array) -> tuple[float, ...]:
            there, own, expected = cells(*blocks)
            expected = there * (expected - e_mean) * steady
            a, c = ((own - z_mean) * expected).sum(axis=1), (expected**2).sum(axis=1)
            return a.sum(), c.sum(), a @ a, a @ c, c @ c

        a, c, aa, ac, cc = (float(one) for one in engine.reduce(of_rows, rows, *beside))
    varied = P.variance(C)[steady].sum() / max(steady.sum(), 1)
    if c < VARIED * varied * n[steady].sum():
        return None  # samples that are all alike do not tell whose rows came
    slope = a / c if c else 1.0
    error = np.sqrt(max(aa - 2 * slope * ac + slope**2 * cc, 0)) / max(c, 1e-300)
    # What is left of column i if its cells are those of column j: factor · z + shift, without e.
    factor, shift = spread[:, None] / spread, (mean[:, None] - mean) / spread
    left = factor**2 * zz[:, None] + 2 * factor * (shift * z[:, None] - ze)
    left = (left + shift * (n[:, None] * shift - 2 * e) + ee) / n[:, None]
    left = np.log(np.maximum(left, LEFT))
    own, alike = np.diagonal(left), n / (1 + ALIKE * (n - 1))
    exchanged = np.minimum(alike, alike[:, None]) / 2 * (own + own[:, None] - left - left.T)
    turn = 2 * mean / spread  # −x is −z − turn
    turned = (
        zz + 2 * np.diagonal(ze) + np.diagonal(ee) + turn * (2 * (z + np.diagonal(e)) + n * turn)
    )
    exchanged[np.diag_indices(len(n))] = alike / 2 * (own - np.log(np.maximum(turned / n, LEFT)))
    # The slope of each column: the product of deviations over the square of what is expected.
    own_e, own_ee = np.diagonal(e), np.diagonal(ee)
    square = np.maximum(own_ee - own_e * e_mean, 1e-300)
    slopes = (np.diagonal(ze) - z_mean * own_e) / square
    left_over = np.maximum(zz - z * z_mean - slopes**2 * square, 0) / np.maximum(n - 2, 1)
    of_columns = np.vstack([slopes, np.sqrt(left_over / square)])
    if thin:  # words are hardly exchanged, and their cells are far from normal
        exchanged[:], of_columns[1] = 0, np.inf
    return Fit(int(had), slope, float(error), at, exchanged, of_columns)


def _explained(record: ViewRecord) -> Array:
    """Return the columns that the consensus explains best; levels of categories are none."""
    moments = record.moments
    assert moments is not None
    size = np.linalg.norm(moments.coefficients @ moments.directions, axis=0)
    for _, places in level_places(record.columns):
        size[places] = 0
    order = np.argsort(-np.where(moments.spread > 0, size, 0), kind="stable")[:EXPLAINED]
    return np.sort(order[size[order] > 0])
