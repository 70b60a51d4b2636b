"""The ways from a state to the next: fold a view, find other clusters, forget samples.

Pure functions: they take a state and return another one. What differs between methods is behind
`Method`; where rows live is the engine's business.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from viewfold._util.constants import FEWEST
from viewfold._util.types import Array
from viewfold.data.view import View, invented_name
from viewfold.rows import Alignment, Engine, RowSet
from viewfold.state.admission import check_fits, placed
from viewfold.state.columns import counted, removed, without_forgotten
from viewfold.state.hashes import UNKNOWN, fingerprints, new_key, shortened
from viewfold.state.log import FINAL, Log, noted
from viewfold.state.method import Combined, Method
from viewfold.state.moments import carried, learned
from viewfold.state.names import following, lost, with_names
from viewfold.state.state import State, ViewRecord, followed, unconnected_groups

MOST_STEPS = 100  # Columns that the history has at most, unless more views than that were folded


def fold(
    engine: Engine, state: State, view: View, method: Method, *, seed: int, keep_encoders: bool
) -> State:
    """Fold a view into the consensus and find the clusters."""
    view = placed(engine, view)
    check_fits(engine, state, view)
    raw = with_gaps(view) if keep_encoders else None
    alignment = engine.join(state.ids, view.ids, ordered=state.length is not None)
    with engine.session():
        combined = method.combine(engine, state, view, alignment, seed)
        record = _record(state, view, alignment, combined)
        seen = _seen(engine, state, alignment)
        previous = alignment.carry(state.labels(engine), -1) if state.views else None
        labels, clusters = method.cluster(
            engine,
            alignment.ids,
            combined.embedding,
            groups=unconnected_groups(engine, seen, (*state.views, record)),
            previous=previous,
            seed=seed,
        )
    log = _noted(engine, state, record, previous, labels)
    state = with_names(engine, replace(state, log=log), previous, labels)
    before = state if state.views else replace(state, key=new_key(), length=view.length)
    columns = view.columns if raw is None else counted(engine, view.columns, raw)
    after = replace(
        before,
        ids=alignment.ids,
        embedding=combined.embedding,
        seen=seen,
        history=appended(engine, alignment.carry(state.history, -1), labels),
        added=alignment.carry(state.added, log[-1].entry),
        fingerprints=_printed(engine, before, alignment, raw),
        steps=(*state.steps, log[-1].entry),
        views=(*state.views, replace(record, entry=log[-1].entry, columns=columns)),
        maps=(*state.maps, combined.linear_map if any(v.encoder for v in state.views) else None),
        clusters=clusters,
    )
    if raw is not None:
        return learned(engine, carried(engine, before, after), view, raw)
    return after.without_encoders(engine)


def with_gaps(view: View) -> RowSet:
    """Return the rows of a view with their missing cells, as NaN."""
    return replace(view.rows, fill=None)


def _printed(engine: Engine, state: State, alignment: Alignment, rows: RowSet | None) -> RowSet:
    """Return all fingerprints with a column for the rows of a view; unknown if there are none."""
    if rows is None:
        prints = engine.map(lambda known: np.full(len(known), UNKNOWN, np.int32), alignment.known)
    else:
        prints = fingerprints(engine, rows, state.key)
    before = engine.map(shortened, state.fingerprints)
    return _with_column(engine, before, alignment, prints, UNKNOWN)


def _record(state: State, view: View, alignment: Alignment, combined: Combined) -> ViewRecord:
    n, d = view.shape
    return ViewRecord(
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
        source=view.source if n >= FEWEST else None,
        encoder=combined.encoder if n >= FEWEST else None,
    )


def _noted(
    engine: Engine, state: State, record: ViewRecord, previous: RowSet | None, labels: RowSet
) -> Log:
    """Return the log with an entry for a fold."""
    n_moved = 0 if previous is None else moved(engine, previous, labels)
    counts = {"n_new": record.n_new, "n_shared": record.n_shared, "n_moved": n_moved}
    return noted(state.log, "fold", int(labels.shape[0]), view=record.name, **counts)


def _seen(engine: Engine, state: State, alignment: Alignment) -> RowSet:
    """Return who was in which view, with a column for this one."""
    here = engine.map(lambda known: np.ones(len(known), bool), alignment.known)
    return _with_column(engine, state.seen, alignment, here, False)


def _with_column(
    engine: Engine, rows: RowSet, alignment: Alignment, of_view: RowSet, fill: int
) -> RowSet:
    """Return rows of the union with one more column: of the view's samples, `fill` elsewhere."""
    dtype = of_view.dtype  # the rows themselves cannot be sent along
    column = alignment.merge(
        (lambda block: block, of_view),
        (lambda block: np.full(len(block), fill, dtype), alignment.absent(rows)),
    )
    return appended(engine, alignment.carry(rows, fill), column)


def moved(engine: Engine, before: RowSet, now: RowSet) -> int:
    """Return how many samples have another cluster than before."""
    return int(engine.reduce(lambda a, b: np.count_nonzero((a >= 0) & (a != b)), before, now))


def recluster(engine: Engine, state: State, method: Method, *, seed: int) -> State:
    """Find clusters anew in the present embedding, with an entry in the log."""
    with engine.session():
        previous = state.labels(engine)
        labels, clusters = method.cluster(
            engine,
            state.ids,
            state.embedding,
            groups=unconnected_groups(engine, state.seen, state.views),
            previous=previous,
            seed=seed,
        )
    counts = {"n_moved": moved(engine, previous, labels), "n_clusters": clusters.n_clusters}
    log = noted(state.log, "recluster", state.n_samples, **counts)
    return carried(
        engine, state, stepped(engine, replace(state, clusters=clusters, log=log), labels)
    )


def stepped(engine: Engine, state: State, labels: RowSet) -> State:
    """Return a state with labels as the last column of its history, by the last entry of its log.

    If there are too many columns, that of the oldest step goes which is not the fold of a view.
    """
    state = with_names(engine, state, state.labels(engine), labels)
    history, steps = appended(engine, state.history, labels), (*state.steps, state.log[-1].entry)
    folds = {record.entry for record in state.views}
    others = [i for i, entry in enumerate(steps) if entry not in folds]
    if len(steps) > MOST_STEPS and others:
        kept = [i for i in range(len(steps)) if i != others[0]]
        history = engine.map(lambda block: block[:, kept], history)
        steps = tuple(steps[i] for i in kept)
    return replace(state, history=history, steps=steps)


def forget(engine: Engine, state: State, kept: RowSet, method: Method) -> State:
    """Remove samples, with an entry in the log; see `keep_samples`."""
    after = keep_samples(engine, state, kept, method)
    _tell_removed(state, after)
    facts = {"n_forgotten": state.n_samples - after.n_samples, "note": lost(state, after)}
    return replace(after, log=noted(state.log, FINAL, after.n_samples, **facts))


def _tell_removed(before: State, after: State) -> None:
    """Say how many levels lost their names; not which, as a program may log it."""
    for old, new in zip(before.views, after.views, strict=True):
        for column, n in removed(old, new).items():
            levels, have = ("1 level", "it has") if n == 1 else (f"{n:,} levels", "they have")
            had = "it" if n == 1 else "one of them"
            warnings.warn(
                f"{levels} of {column!r} in view {old.name!r} "
                f"{'is' if n == 1 else 'are'} no longer known: all samples that had {had} may be "
                f"forgotten, so {have} lost the name. In rows that come later, {had} counts as a "
                "level that is not known. To have all levels, fold the view anew into another "
                "file.",
                stacklevel=4,
            )


def keep_samples(engine: Engine, state: State, kept: RowSet, method: Method) -> State:
    """Return a state of some samples only; of the others, nothing is left but in encoders."""
    with engine.session():
        rows = _recentred(engine, engine.keep(state.embedding, kept), state.embedding)
        basis = method.basis(engine, rows)
    after = replace(
        state,
        ids=engine.keep(state.ids, kept),
        embedding=engine.map(lambda block: block @ basis.astype(block.dtype), rows, reuse=True),
        seen=engine.keep(state.seen, kept),
        history=engine.keep(state.history, kept),
        added=engine.keep(state.added, kept),
        fingerprints=engine.map(shortened, engine.keep(state.fingerprints, kept)),
        views=_without_forgotten(engine, with_current_encoders(state, basis), state, kept),
        maps=(None,) * len(state.views),
    )
    assert state.clusters is not None
    labels = after.labels(engine)
    with engine.session():
        clusters = method.settle(
            engine,
            after.embedding,
            labels,
            groups=unconnected_groups(engine, after.seen, after.views),
            before=state.clusters,
        )
    names = following(engine, state.cluster_names, labels, labels)
    return carried(engine, state, replace(after, clusters=clusters, cluster_names=names))


def _without_forgotten(
    engine: Engine, views: tuple[ViewRecord, ...], state: State, kept: RowSet
) -> tuple[ViewRecord, ...]:
    """Return records that name no level which only samples that go may have."""
    if not any(record.columns for record in views):
        return views

    def gone(seen: Array, stays: Array) -> Array:
        return np.asarray(np.count_nonzero(seen[~stays], axis=0))

    numbers = engine.reduce(gone, state.seen, kept).tolist()
    return tuple(
        without_forgotten(record, int(n)) for record, n in zip(views, numbers, strict=True)
    )


def with_current_encoders(state: State, basis: Array) -> tuple[ViewRecord, ...]:
    """Return the records with encoders into the present consensus, followed by `basis`."""
    records, total = [], basis
    for record, before in zip(reversed(state.views), reversed(state.maps), strict=True):
        records.append(followed(record, total))
        total = total if before is None else np.asarray(before @ total)
    return tuple(reversed(records))


def _recentred(engine: Engine, rows: RowSet, before: RowSet) -> RowSet:
    """Return rows with mean zero, if the mean of all rows (`before`) was nearly zero; else as is.

    If the sum of all rows is zero, the sum of the removed ones is minus that of the others: one row
    could be computed. So each row is multiplied with a factor near 1, and the mean is zero again.
    Clusters depend on directions, not on lengths.
    """
    total, squares = engine.reduce(
        lambda block: (block.sum(axis=0, dtype=np.float64), np.vdot(block, block)), before
    )
    if before.shape[0] - rows.shape[0] >= FEWEST or total @ total > squares:
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


def appended(engine: Engine, rows: RowSet, column: RowSet) -> RowSet:
    """Return rows with one more column, of their kind."""

    def append(block: Array, last: Array) -> Array:
        return np.column_stack([block, last.astype(block.dtype)])

    return engine.map(append, rows, column)
