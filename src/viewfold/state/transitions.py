"""The ways from a state to the next: fold a view, find other clusters, forget samples.

Pure functions: they take a state and return another one. What differs between methods are the
functions of a `Method`; where rows live is the engine's business.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from viewfold._util import constants
from viewfold._util.arguments import warn_user
from viewfold._util.constants import FEWEST
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array
from viewfold.data.view import View, invented_name
from viewfold.rows import Alignment, Engine, RowSet
from viewfold.rows.linalg import membership
from viewfold.state import novelty
from viewfold.state.admission import check_shared
from viewfold.state.clusters import Clusters
from viewfold.state.deliveries import learn_expected
from viewfold.state.evidence import NONE, carry_evidence, learn_directions
from viewfold.state.hashes import UNKNOWN, fingerprints
from viewfold.state.log import FINAL, noted
from viewfold.state.moments import carry_moments, learn_moments
from viewfold.state.names import following, lost, with_names
from viewfold.state.state import (
    ROWS,
    Encoder,
    State,
    ViewRecord,
    count_levels,
    followed,
    unconnected_groups,
    without_forgotten,
)

MOST_STEPS = 100  # Columns of the history at most, unless more views than that were folded


@frozen_record
class Combined:
    """The result of combining a view with the consensus."""

    embedding: RowSet  #: a row for each sample of the union
    encoder: Encoder  #: embeds samples that are in this view and in no other
    #: what the fold does to samples that the view lacks: ``row @ linear_map``. Applied to the
    #: encoders of earlier views, so that they keep embedding into the present consensus. If fewer
    #: than ten samples are shared, the map leaves out what was learned from these (privacy).
    linear_map: Array | None
    n_iter: int = 1  #: iterations taken
    objective: tuple[float, ...] = ()  #: the objective after each of them
    agreement: float | None = None  #: see `ViewRecord`
    #: what the encoder makes of the view's rows, if that is known already
    own: RowSet | None = None
    #: of a view of counts, the numbers of some rows and their totals: clusters should not follow it
    depth: tuple[NDArray[np.intp], Array] | None = None
    #: of a view whose batches are known, the numbers of some rows and the indicators of theirs
    batches: tuple[NDArray[np.intp], Array] | None = None
    note: str | None = None  #: what the log tells about how the view was read


class NothingVariesError(ValueError):
    """A view whose samples are all alike says nothing about them."""


@frozen_record
class Method:
    """The functions that make one method differ from another; see docs/extending.md."""

    n_clusters: int  #: how many clusters it finds
    #: ``combine(engine, state, view, alignment, seed)`` combines a view with the consensus so far
    #: and returns a `Combined`; for the first view, `state.views` is empty. If the method
    #: `relearns`, ``replaces=True`` says that the consensus had the view that this one replaces
    combine: Callable[..., Combined]
    #: ``cluster(engine, ids, embedding, groups=, previous=, anew=, seed=)`` returns the cluster of
    #: each sample, and the `Clusters`. `groups` has a number for each group of samples that no view
    #: connects with the others, None if there is one group; `previous` holds the labels before this
    #: fold, −1 for new samples, None for the first view; with `anew`, clusters need not stay near
    #: them.
    cluster: Callable[..., tuple[RowSet, Clusters]]
    #: ``settle(engine, embedding, labels, n_clusters=, groups=, again=)`` returns the `Clusters`,
    #: computed from their present samples alone, after samples were removed
    settle: Callable[..., Clusters]
    #: ``basis(engine, embedding)`` returns T such that ``embedding @ T`` has the form that the
    #: method gives a consensus. Used after samples were removed: columns that were orthogonal with
    #: all rows are not so without some, and their products would tell the rows that are gone.
    basis: Callable[[Engine, RowSet], Array]
    #: whether more rows of a known view are combined with the consensus as a view is, after they
    #: were placed by its encoder. If not, that is all that happens to them.
    relearns: bool = False


def check_enough(view: View, alignment: Alignment, n_clusters: int) -> None:
    n = alignment.n_samples
    if n < n_clusters:
        raise ValueError(
            f"View {view.name!r} has {n:,} samples together with those known before, fewer than "
            f"n_clusters={n_clusters!r}. Give it more of them, or ask for fewer clusters."
        )


def fold(
    engine: Engine,
    state: State,
    view: View,
    method: Method,
    *,
    seed: int,
    keep_encoders: bool,
    min_shared: float | None = None,
) -> State:
    """Fold a view that was admitted into the consensus, and find the clusters.

    Without `keep_encoders`, the encoders of earlier views go, too.
    """
    if view.name in state.names:
        raise ValueError(
            f"A view named {view.name!r} was folded already (views: {state.names}). "
            "Give the new one a name of its own."
        )
    alignment = engine.join(state.ids, view.ids, ordered=state.length is not None)
    check_shared(view, alignment.n_shared, min_shared)
    check_enough(view, alignment, method.n_clusters)
    raw = replace(view.rows, fill=None) if keep_encoders else None
    known_labels = state.labels(engine) if state.views else None
    previous = None if known_labels is None else alignment.carry(known_labels, -1)
    with engine.session():
        combined = method.combine(engine, state, view, alignment, seed)
        (n, d), enough = view.shape, view.shape[0] >= FEWEST
        record = ViewRecord(
            name=view.name or invented_name(state.names, len(state.views)),
            n_samples=n,
            n_features=d,
            n_new=alignment.n_new,
            n_shared=alignment.n_shared,
            n_iter=combined.n_iter,
            objective=combined.objective,
            agreement=combined.agreement,
            features=view.features,
            n_empty=view.n_empty,
            n_missing=view.n_missing,
            columns=view.columns,
            source=view.source if enough else None,
            encoder=combined.encoder if enough else None,
        )
        here = engine.map(lambda known: np.ones(len(known), bool), alignment.known)
        seen = _with_column(engine, state.seen, alignment, here, False)
        labels, clusters = method.cluster(
            engine,
            alignment.ids,
            combined.embedding,
            groups=unconnected_groups(engine, seen, (*state.views, record)),
            previous=previous,
            seed=seed,
        )
    note = combined.note
    for measured, judge in ((combined.depth, tell_of_depth), (combined.batches, tell_of_batches)):
        if measured is not None:
            drawn, values = measured
            of_view = engine.map(lambda block: block, alignment.view_rows(labels))
            said = judge(record.name, values, engine.collect(engine.select(of_view, drawn)))
            note = "; ".join(filter(None, (note, said))) or None
    log = noted(
        state.log,
        "fold",
        alignment.n_samples,
        view=record.name,
        n_new=record.n_new,
        n_shared=record.n_shared,
        n_moved=0 if previous is None else count_moved(engine, previous, labels),
        note=note,
    )
    named = with_names(engine, replace(state, log=log), previous, labels)
    key, length = (state.key, state.length) if state.views else (secrets.randbits(63), view.length)
    known = (None, alignment.known) if raw is None else (record.encoder, raw)
    levels = novelty.measure(engine, *known, learned=True)
    directions = None
    if raw is None:
        columns = view.columns
        prints = engine.map(lambda known: np.full(len(known), UNKNOWN, np.int32), alignment.known)
        evidence = engine.map(lambda block: np.full((len(block), 1), NONE, np.int8), labels)
    else:
        columns = count_levels(engine, view.columns, raw)
        prints = fingerprints(engine, raw, key)
        with engine.session():
            directions = learn_directions(engine, combined.embedding, labels, clusters.n_clusters)
        own, m = combined.own, directions.n_numbers
        own = engine.map(directions.say, engine.map(combined.encoder, raw) if own is None else own)
        if state.directions is None:  # earlier views, if there are any, have said nothing
            width = len(state.views) * m
            before = engine.map(lambda b: np.full((len(b), width), NONE, np.int8), state.added)
        else:
            step = combined.linear_map
            before = carry_evidence(engine, state.evidence, state.directions, directions, step)
        evidence = _with_column(engine, before, alignment, own, NONE)
    after = replace(
        named,
        ids=alignment.ids,
        embedding=combined.embedding,
        seen=seen,
        history=append_column(engine, alignment.carry(state.history, -1), labels),
        added=alignment.carry(state.added, log[-1].entry),
        fingerprints=_with_column(engine, state.fingerprints, alignment, prints, UNKNOWN),
        evidence=evidence,
        novelty=novelty.carry(levels, state.novelty, alignment, None),
        steps=(*state.steps, log[-1].entry),
        views=(*state.views, replace(record, entry=log[-1].entry, columns=columns)),
        maps=(*state.maps, combined.linear_map if any(v.encoder for v in state.views) else None),
        clusters=clusters,
        directions=directions,
        length=length,
        key=key,
    )
    if raw is None:
        return after.without_encoders(engine)
    if known_labels is not None:
        after = novelty.tell_group(engine, after, len(after.views) - 1)
        now = alignment.known_rows(after.embedding), alignment.known_rows(labels)
        after = carry_moments(engine, state, after, (state.embedding, known_labels), now)
    after = learn_moments(engine, after, view, raw, labels, alignment)
    return learn_expected(engine, after, view, raw, labels, alignment)


def share_explained(values: Array, labels: Array) -> float | None:
    """Return the share of the variance of some columns that clusters explain beyond chance."""
    _, at, count = np.unique(labels, return_inverse=True, return_counts=True)
    apart = values - values.mean(axis=0)
    if len(values) < FEWEST + count.size or not apart.any():
        return None
    means = membership(at, count.size) @ apart / count[:, None]
    within = ((apart - means[at]) ** 2).sum() / (len(values) - count.size)
    return float(max(1 - within * (len(values) - 1) / (apart**2).sum(), 0))


def tell_of_depth(name: str, depth: Array, labels: Array) -> str | None:
    """Return what the log tells, and warn if clusters follow how much was counted in each row."""
    there = np.isfinite(depth)  # a row with missing cells has no total
    logs = np.log(np.maximum(depth[there], 1))
    share = share_explained(logs[:, None], labels[there])
    if share is None or logs.std() < constants.COUNTS_SPREAD:
        return None
    if share > constants.FOLLOWED:
        warn_user(
            f"The clusters follow the depth of view {name!r}: they explain {share:.0%} of how the "
            "(logarithms of the) totals of its rows differ. If the depth says nothing about the "
            "samples, scale the view yourself or try another scale ('counts' divides by depth)."
        )
    return f"clusters explain {share:.0%} of the depth"


def tell_of_batches(name: str, batches: Array, labels: Array) -> str | None:
    """Return what the log tells, and warn if clusters still follow the batches of a view."""
    there = ~np.isnan(batches).any(axis=1)
    share = share_explained(batches[there], labels[there])
    if share is None:
        return None
    if share > constants.FOLLOWED:
        warn_user(
            f"The clusters follow the batches of view {name!r}: they explain {share:.0%} of which "
            "batch a sample is in. Groups of samples go along with batches, or another view "
            "follows them; what these samples really differ by was removed with the batches."
        )
    return f"clusters explain {share:.0%} of the batches"


def _with_column(
    engine: Engine, rows: RowSet, alignment: Alignment, of_view: RowSet, fill: int
) -> RowSet:
    """Return rows of the union with more columns: of the view's samples, `fill` elsewhere."""
    dtype, shape = of_view.dtype, of_view.shape[1:]  # the rows themselves cannot be sent along
    column = alignment.merge(
        (lambda block: block, of_view),
        (lambda block: np.full((len(block), *shape), fill, dtype), alignment.absent(rows)),
    )
    return append_column(engine, alignment.carry(rows, fill), column)


def append_column(engine: Engine, rows: RowSet, column: RowSet) -> RowSet:
    return engine.map(
        lambda block, last: np.column_stack([block, last.astype(block.dtype)]), rows, column
    )


def count_moved(engine: Engine, before: RowSet, now: RowSet) -> int:
    return int(engine.reduce(lambda a, b: np.count_nonzero((a >= 0) & (a != b)), before, now))


def recluster(
    engine: Engine, state: State, method: Method, *, seed: int, note: str | None = None
) -> State:
    """Find clusters anew in the present embedding, with an entry in the log."""
    with engine.session():
        previous = state.labels(engine)
        labels, clusters = method.cluster(
            engine,
            state.ids,
            state.embedding,
            groups=unconnected_groups(engine, state.seen, state.views),
            previous=previous,
            anew=True,
            seed=seed,
        )
    counts = {"n_moved": count_moved(engine, previous, labels), "n_clusters": clusters.n_clusters}
    log = noted(state.log, "recluster", state.n_samples, note=note, **counts)
    after = add_step(engine, replace(state, clusters=clusters, log=log), previous, labels)
    after = with_evidence(engine, after, labels)
    rows = state.embedding
    return carry_moments(engine, state, after, (rows, previous), (rows, labels))


def add_step(engine: Engine, state: State, previous: RowSet, labels: RowSet) -> State:
    """Return a state with one more column of its history, by the last entry of its log."""
    state = with_names(engine, state, previous, labels)
    history = append_column(engine, state.history, labels)
    steps = (*state.steps, state.log[-1].entry)
    folds = {record.entry for record in state.views}
    others = [i for i, entry in enumerate(steps) if entry not in folds]
    if len(steps) > MOST_STEPS and others:  # the oldest that is not the fold of a view goes
        kept = [i for i in range(len(steps)) if i != others[0]]
        history = engine.map(lambda block: block[:, kept], history)
        steps = tuple(steps[i] for i in kept)
    return replace(state, history=history, steps=steps)


def with_evidence(
    engine: Engine, state: State, labels: RowSet, linear_map: Array | None = None
) -> State:
    """Return a state whose evidence is in the directions of its clusters.

    `linear_map` is what rows of the consensus went through since the directions were learned.
    """
    assert state.clusters is not None
    if state.directions is None:  # encoders are not kept
        return state
    with engine.session():
        now = learn_directions(engine, state.embedding, labels, state.clusters.n_clusters)
    evidence = carry_evidence(engine, state.evidence, state.directions, now, linear_map)
    return replace(state, evidence=evidence, directions=now)


def forget(engine: Engine, state: State, kept: RowSet, method: Method) -> State:
    """Remove samples, with an entry in the log; see `keep_samples`."""
    after = keep_samples(engine, state, kept, method)
    for old, new in zip(state.views, after.views, strict=True):
        for was, column in zip(old.columns or (), new.columns or (), strict=True):
            n = len(set(was.levels) - set(column.levels))
            if n:  # how many levels, and not which, as a program may log it
                warnings.warn(
                    f"{'1 level' if n == 1 else f'{n:,} levels'} of {column.name!r} in view "
                    f"{old.name!r} {'is' if n == 1 else 'are'} no longer known: every sample that "
                    "had such a level may be forgotten, so its name is gone. In rows that come "
                    "later, it counts as a level that is not known. To have all levels, fold the "
                    "view anew into another file.",
                    stacklevel=3,
                )
    facts = {"n_forgotten": state.n_samples - after.n_samples, "note": lost(state, after)}
    return replace(after, log=noted(state.log, FINAL, after.n_samples, **facts))


def keep_samples(engine: Engine, state: State, kept: RowSet, method: Method) -> State:
    """Return a state of some samples only; of the others, nothing is left but in encoders."""
    assert state.clusters is not None
    with engine.session():
        rows = _recentred(engine, engine.keep(state.embedding, kept), state.embedding)
        basis = method.basis(engine, rows)
    views = with_current_encoders(state, basis)
    if any(record.columns for record in views):
        numbers = engine.reduce(
            lambda seen, stays: np.count_nonzero(seen[~stays], axis=0), state.seen, kept
        ).tolist()
        views = tuple(map(without_forgotten, views, numbers))
    after = replace(
        state,
        **{name: engine.keep(getattr(state, name), kept) for name in ROWS if name != "embedding"},
        embedding=engine.map(lambda block: block @ basis.astype(block.dtype), rows, reuse=True),
        views=views,
        maps=(None,) * len(state.views),
    )
    labels, clusters = after.labels(engine), state.clusters
    with engine.session():
        groups = unconnected_groups(engine, after.seen, after.views)
        clusters = method.settle(
            engine,
            after.embedding,
            labels,
            n_clusters=clusters.n_clusters,
            groups=groups if len(clusters.centers) > 1 else None,
            again=1.0 if clusters.scatter is None else float(clusters.scatter[0, 2]),
        )
    names = following(engine, state.cluster_names, labels, labels)
    after = replace(after, clusters=clusters, cluster_names=names)
    after = with_evidence(engine, after, labels, basis)
    before = engine.keep(state.embedding, kept), labels
    return carry_moments(engine, state, after, before, (after.embedding, labels))


def with_current_encoders(state: State, basis: Array) -> tuple[ViewRecord, ...]:
    """Return the records with encoders into the present consensus, followed by `basis`."""
    records, total = [], basis
    for record, before in zip(reversed(state.views), reversed(state.maps), strict=True):
        records.append(followed(record, total))
        total = total if before is None else np.asarray(before @ total)
    return tuple(reversed(records))


def _recentred(engine: Engine, rows: RowSet, before: RowSet) -> RowSet:
    """Return rows with mean zero, if the mean of all rows (`before`) was nearly zero; else as is.

    Else the sum of the removed rows would be minus that of the others. Rows get a factor near 1:
    clusters depend on directions, not on lengths.
    """
    if before.shape[0] - rows.shape[0] >= FEWEST:
        return rows
    total, squares = engine.reduce(
        lambda block: (block.sum(axis=0, dtype=np.float64), np.vdot(block, block)), before
    )
    if total @ total > squares:
        return rows

    def products(block: Array) -> tuple[Array, Array]:
        wide = block.astype(np.float64)
        return wide.T @ wide, wide.sum(axis=0)

    inner, left = engine.reduce(products, rows)
    toward = np.linalg.pinv(inner, hermitian=True) @ left

    def scaled(block: Array) -> Array:
        factor = np.clip(1 - block.astype(np.float64) @ toward, 0.5, 1.5)
        return np.asarray(block * factor[:, None].astype(block.dtype))

    return engine.map(scaled, rows)
