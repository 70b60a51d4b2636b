"""More rows of a known view: new samples, known ones that lacked it, and corrections.

The rows that changed, and only these, are placed by the view's encoder: a sample with t other views
gets the mean (t b + e) / (t + 1) of its row b of the consensus and the encoder's e; if it had the
view, b + (e − e') / (t + 1), where e' is its evidence. If the columns of the view have drifted, or
if there are more rows than it was learned from, they are also combined with the consensus as a view
of their own would be, so that consensus and encoder learn from them. `refresh` takes all rows of a
view instead; `extend` takes new samples only, and moves nobody else.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from viewfold._util import constants
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array, Matrix
from viewfold.data.features import with_new_names
from viewfold.data.view import View, missing_in
from viewfold.rows import Alignment, Engine, RowSet
from viewfold.state import novelty
from viewfold.state.admission import check_shared, how_to_give_ids
from viewfold.state.clusters import assign
from viewfold.state.committee import joined
from viewfold.state.deliveries import (
    Comparison,
    compare,
    compare_all,
    expect_more,
    find_drift,
    warn_of,
)
from viewfold.state.evidence import NONE
from viewfold.state.hashes import UNKNOWN, fingerprints
from viewfold.state.log import noted
from viewfold.state.moments import carry_moments, learn_moments
from viewfold.state.state import (
    State,
    ViewRecord,
    count_levels,
    unconnected_groups,
)
from viewfold.state.transitions import (
    Method,
    NothingVariesError,
    add_step,
    check_enough,
    count_moved,
    fold,
    with_current_encoders,
    with_evidence,
)


@dataclass(frozen=True)
class Delivery:
    """How many rows of a delivery were what."""

    view: str  #: the view
    n_new: int  #: samples that are new to the model
    n_late: int  #: known samples that lacked the view
    n_corrected: int = 0  #: samples that had another row of it
    n_same: int = 0  #: samples that had this very row
    n_moved: int = 0  #: samples that changed their cluster
    n_others: int = 0  #: of these, samples without a row in the delivery
    #: whether the view was learned from it, as its columns have drifted; else nobody else moves
    learned: bool = False
    #: samples that look like a group of their own, if that is news; some may have come before
    n_novel: int = 0
    #: whether the view was known before; if not, all its known samples lacked it
    update: bool = True
    #: how its rows compare with what the view looked like before; None if that is not known
    comparison: Comparison | None = None

    @classmethod
    def first(cls, state: State) -> Delivery:
        """Return what the last fold of a state brought."""
        view, event = state.views[-1], state.log[-1]
        n_moved = event.n_moved or 0
        n_novel = event.n_novel or 0
        return cls(
            view.name, view.n_new, view.n_shared, n_moved=n_moved, n_novel=n_novel, update=False
        )

    @property
    def n_changed(self) -> int:
        """How many rows were not known."""
        return self.n_new + self.n_late + self.n_corrected


@frozen_record
class _Rows:
    """The rows of a delivery that are not known yet, and where their samples stand."""

    view: View
    raw: RowSet  # with missing cells as NaN
    prints: RowSet  # their fingerprints
    alignment: Alignment
    count: Delivery
    n_missing: int


def _unknown_rows(engine: Engine, state: State, view: View, alignment: Alignment) -> _Rows:
    """Tell the rows of a delivery apart, and leave those out that are known.

    A view without an encoder learns from all: known rows connect the others with those before.
    """
    name = view.name or ""
    which = state.names.index(name)
    raw = replace(view.rows, fill=None)
    prints = fingerprints(engine, raw, state.key)

    def kinds(
        own: Array, gone: Array, known: Array, seen: Array, before: Array
    ) -> tuple[Array, Array]:
        had = seen[:, which]
        same = had & (before[:, which] == own)
        counts = ~known, known & ~had, had & ~same, same
        return ~same, np.array([*(np.count_nonzero(kind) for kind in counts), gone[~had].sum()])

    gone = prints  # a pass over the rows is spared where no cell is missing
    if view.gaps is not None:
        gone = engine.map(lambda block: np.asarray(missing_in(block).sum(axis=1)).ravel(), raw)
    beside = (gone, alignment.known, alignment.partners(state.seen, False))
    changed, counts = engine.map(
        kinds, prints, *beside, alignment.partners(state.fingerprints, UNKNOWN), sums=True
    )
    n_new, n_late, n_corrected, n_same, n_missing = (int(number) for number in counts)
    count = Delivery(name, n_new, n_late, n_corrected, n_same)
    if count.n_same and count.n_changed and state.views[which].encoder is not None:
        view = replace(
            view, ids=engine.keep(view.ids, changed), rows=engine.keep(view.rows, changed)
        )
        raw, prints = engine.keep(raw, changed), engine.keep(prints, changed)
        alignment = engine.join(state.ids, view.ids, ordered=state.length is not None)
    missing = n_missing if view.gaps is not None else 0
    return _Rows(view, raw, prints, alignment, count, missing)


def update(
    engine: Engine,
    state: State,
    view: View,
    method: Method,
    *,
    seed: int,
    min_shared: float | None = None,
) -> tuple[State, Delivery]:
    """Take in more rows of a known view; if all were known, the state stays as it is."""
    which = state.names.index(view.name or "")
    record = state.views[which]
    # Views that had too few samples have no encoder, but fingerprints; these go with encoders.
    if record.encoder is None and record.n_samples >= constants.FEWEST:
        printed = lambda block: np.count_nonzero(block[:, which])  # noqa: E731
        if not engine.reduce(printed, state.fingerprints):
            raise no_encoder(record.name)
    alignment = engine.join(state.ids, view.ids, ordered=state.length is not None)
    check_shared(view, alignment.n_shared, min_shared)
    rows = _unknown_rows(engine, state, view, alignment)
    found = compare(
        engine,
        state,
        rows.view,
        rows.raw,
        rows.alignment,
        n_same=rows.count.n_same,
        n_absent=view.n_absent,
        news=rows.count.n_changed > 0,
    )
    warn_of(found)
    if not rows.count.n_changed:
        return state, replace(rows.count, comparison=found)
    alignment = rows.alignment
    known_labels, step, drift = state.labels(engine), None, None
    anew = record.encoder is None
    with engine.session():
        if record.encoder is None:  # nothing could place the rows one by one
            try:
                after, step = _learned(engine, state, rows, alignment, which, method, seed)
            except NothingVariesError:
                raise NothingVariesError(
                    f"View {record.name!r} has got fewer than ten samples at a time so far, so "
                    "that nothing is kept by which these rows "
                    f"(n_samples={rows.count.n_changed}), which are all alike, could be placed. "
                    "Give them together with others."
                ) from None
        else:
            after = _placed(engine, state, rows, which)
            drift = find_drift(engine, state, after, which, alignment, found)
            drifted = drift is not None and drift.total > constants.DRIFTED
            # More rows than it was learned from tell more than these did.
            pays = drifted or rows.count.n_changed >= _learned_from(record)
            pays = pays and not (found is not None and found.whole)  # rows may be of others
            if pays and method.relearns:
                again = engine.join(after.ids, rows.view.ids, ordered=state.length is not None)
                with suppress(NothingVariesError):  # then placing them is all that can be done
                    after, step = _learned(engine, after, rows, again, which, method, seed)
                    anew = True
            elif pays:
                step, anew = method.basis(engine, after.embedding), True
                rotate = lambda block: block @ step.astype(block.dtype)  # noqa: E731
                after = replace(
                    after,
                    embedding=engine.map(rotate, after.embedding),
                    views=with_current_encoders(after, step),
                    maps=(None,) * len(after.views),
                )
        previous = after.labels(engine)
        if anew:
            labels, clusters = method.cluster(
                engine,
                after.ids,
                after.embedding,
                groups=unconnected_groups(engine, after.seen, after.views),
                previous=previous,
                seed=seed,
            )
            after = with_evidence(engine, replace(after, clusters=clusters), labels, step)
            after = _with_own_evidence(engine, after, rows, alignment, which)
        else:
            labels = _nearest(engine, after, alignment, known_labels)
    moved = count_moved(engine, previous, labels)
    touched = count_moved(engine, alignment.partners(known_labels, -1), alignment.view_rows(labels))
    count = replace(rows.count, n_moved=moved, n_others=moved - touched, learned=anew)
    log = noted(
        state.log,
        "update",
        after.n_samples,
        view=count.view,
        n_new=count.n_new,
        n_shared=count.n_late,
        n_corrected=count.n_corrected,
        n_moved=count.n_moved,
        note=f"learned again, {count.n_others:,} others moved" if anew else None,
    )
    after = add_step(engine, replace(after, log=log), previous, labels)
    if anew:
        now = alignment.known_rows(after.embedding), alignment.known_rows(labels)
        after = carry_moments(engine, state, after, (state.embedding, known_labels), now)
    after = novelty.tell_group(engine, expect_more(after, found, drift if anew else None), which)
    after = learn_moments(engine, after, rows.view, rows.raw, labels, alignment)
    return after, replace(count, comparison=found, n_novel=after.log[-1].n_novel or 0)


def _learned_from(record: ViewRecord) -> float:
    """Return how many rows a view was learned from."""
    known = record.n_samples if record.profile is None else float(record.profile.counts[0])
    return max(known, constants.FEWEST)


def refresh(
    engine: Engine,
    state: State,
    view: View,
    method: Method,
    *,
    seed: int,
    min_shared: float | None = None,
) -> tuple[State, Delivery]:
    """Replace the share of a known view by a delivery of all its rows, and learn it anew.

    What the view said about delivered samples is taken from their rows of the consensus, as far as
    other views say something, too; then the delivery is folded as a view. Samples that had the view
    and are not in the delivery keep what they had.
    """
    which, name = state.names.index(view.name or ""), view.name or ""
    if view.shape[0] < constants.FEWEST:  # nothing may be kept of so few
        raise ValueError(
            f"View {name!r}: {view.shape[0]} rows cannot take the place of the whole view, which "
            f"{state.views[which].n_samples:,} samples have. Give all its rows, "
            f"{constants.FEWEST} at least, or fold these as more rows of the view."
        )
    directions, known_labels = state.directions, state.labels(engine)
    assert directions is not None
    alignment = engine.join(state.ids, view.ids, ordered=state.length is not None)
    found = compare_all(engine, state, view, alignment)
    warn_of(found)
    here = alignment.merge(
        (lambda known: np.ones(len(known), bool), alignment.known),
        (lambda added: np.zeros(len(added), bool), alignment.absent(state.added)),
    )

    def without(row: Array, seen: Array, evidence: Array, came: Array) -> Array:
        others = seen.sum(axis=1) - seen[:, which]
        said = evidence[:, directions.columns(which)]
        replaced = came & seen[:, which] & (said[:, 0] != NONE)
        made, own, t = row.copy(), row[replaced], others[replaced, None]
        left = own - np.where(t > 0, directions.lifted(said[replaced]) / (t + 1), 0)
        lengths = [np.linalg.norm(each, axis=1, keepdims=True) for each in (own, left)]
        share = np.sqrt(np.maximum(t, 0.5) / (t + 1))  # of its energy; of one view, half
        made[replaced] = left * (share * lengths[0] / np.maximum(lengths[1], 1e-300))
        return made

    def join_columns(seen: Array, prints: Array, evidence: Array) -> tuple[Array, Array, Array]:
        kept = np.arange(seen.shape[1]) != which
        seen, prints, evidence = seen.copy(), prints.copy(), evidence.copy()
        late = seen[:, which] & ~seen[:, -1]
        seen[late, -1], prints[late, -1] = True, prints[late, which]
        each = evidence.reshape(len(seen), len(kept), -1)
        each[late, -1] = each[late, which]
        return seen[:, kept], prints[:, kept], each[:, kept].reshape(len(seen), -1)

    came = engine.map(_same, alignment.known_rows(here))
    rows = state.embedding, state.seen, state.evidence, came
    records = list(state.views)
    records[which] = replace(records[which], name=name + "\n")  # until its successor is there
    # Rows that the view is learned from now are not novel any more.
    novel = engine.map(lambda level, came: level * ~came, state.novelty, came)
    before = replace(
        state, embedding=engine.map(without, *rows), views=tuple(records), novelty=novel
    )
    if method.relearns:
        method = replace(method, combine=partial(method.combine, replaces=True))
    after = fold(engine, before, view, method, seed=seed, keep_encoders=True, min_shared=min_shared)
    seen, prints, evidence = engine.map(
        join_columns, after.seen, after.fingerprints, after.evidence
    )
    views = list(with_current_encoders(after, np.eye(after.embedding.shape[1])))
    n = int(engine.reduce(lambda block: np.count_nonzero(block[:, -1]), seen))
    views[-1] = replace(views[-1], n_samples=n)
    labels, event = after.labels(engine), after.log[-1]
    touched = count_moved(engine, alignment.partners(known_labels, -1), alignment.view_rows(labels))
    moved = event.n_moved or 0
    had = engine.map(lambda block: block[:, which], alignment.partners(state.seen, False))
    n_had = int(engine.reduce(np.count_nonzero, had))
    count = Delivery(
        name,
        n_new=alignment.n_new,
        n_late=alignment.n_shared - n_had,
        n_corrected=n_had,
        n_moved=moved,
        n_others=moved - touched,
        learned=True,
        comparison=found,
    )
    event = replace(event, what="refresh", n_shared=count.n_late, n_corrected=n_had)
    after = replace(
        after,
        seen=seen,
        fingerprints=prints,
        evidence=evidence,
        views=(*views[:which], *views[which + 1 :]),
        maps=(None,) * (len(views) - 1),
        log=(*after.log[:-1], event),
    )
    return after, count


def extend(engine: Engine, state: State, view: View) -> tuple[State, Delivery]:
    """Add samples that are in one known view and in no other. Nobody else moves."""
    name = view.name or ""
    which, n = state.names.index(name), view.shape[0]
    raw = replace(view.rows, fill=None)
    alignment = engine.join(state.ids, view.ids, ordered=state.length is not None)
    if alignment.n_shared:
        first = engine.head(engine.keep(view.ids, alignment.known), 1).tolist()[0]
        others = alignment.n_shared - 1
        known = f"Samples {first!r} and {others:,} more are" if others else f"Sample {first!r} is"
        raise ValueError(
            f"{known} known already, and extend adds new samples only. "
            f"To update known samples as well, use partial_fit."
        )
    if view.length is not None:
        raise ValueError(f"View {view.name!r}: new samples need ids. {how_to_give_ids()}")
    prints = fingerprints(engine, raw, state.key)
    new = _Rows(view, raw, prints, alignment, Delivery(name, n, 0), view.n_missing)
    found = compare(engine, state, view, raw, alignment, n_absent=view.n_absent)
    warn_of(found)
    with engine.session():
        after = _placed(engine, state, new, which)
        labels = _nearest(engine, after, alignment, state.labels(engine))

    def now(history: Array, own: Array) -> Array:
        return np.column_stack([history[:, :-1], own.astype(history.dtype)])

    log = noted(state.log, "extend", after.n_samples, view=name, n_new=n)
    after = replace(after, history=engine.map(now, after.history, labels), log=log)
    after = novelty.tell_group(engine, expect_more(after, found), which)
    after = learn_moments(engine, after, view, raw, labels, alignment)
    return after, replace(new.count, comparison=found, n_novel=after.log[-1].n_novel or 0)


def no_encoder(name: str) -> ValueError:
    return ValueError(
        f"View {name!r} was folded already, and its encoder is not kept (keep_encoders=False): "
        "more rows of it cannot be taken in. Fold them as a view of another name (view='NAME')."
    )


def _known_since(engine: Engine, state: State, rows: _Rows, which: int) -> State:
    """Return the state with all that is noted of the rows, but for the embedding."""

    def mark_seen(seen: Array) -> Array:
        return np.asarray(seen | (np.arange(seen.shape[1]) == which))

    def put_prints(prints: Array, own: Array) -> Array:
        return np.where(np.arange(prints.shape[1]) == which, own[:, None], prints)

    alignment = rows.alignment
    seen = alignment.partners(state.seen, False)
    prints = alignment.partners(state.fingerprints, UNKNOWN)
    record, count = state.views[which], rows.count
    levels = novelty.measure(engine, record.encoder, rows.raw, learned=False)
    had = engine.map(lambda block: block[:, which], seen)
    record = replace(
        record,
        n_samples=record.n_samples + count.n_new + count.n_late,
        n_new=record.n_new + count.n_new,
        n_shared=record.n_shared + count.n_late,
        n_missing=record.n_missing + rows.n_missing,
        n_empty=max(record.n_empty, rows.view.n_empty),
        source=with_new_names(record.source, rows.view.source),
        columns=count_levels(
            engine,
            record.columns,
            rows.raw,
            n_corrected=count.n_corrected,
            n_known=rows.view.shape[0] - count.n_changed,
        ),
    )
    return replace(
        state,
        ids=alignment.ids,
        seen=alignment.merge((mark_seen, seen), (_same, alignment.absent(state.seen))),
        fingerprints=alignment.merge(
            (put_prints, prints, rows.prints), (_same, alignment.absent(state.fingerprints))
        ),
        evidence=alignment.carry(state.evidence, NONE),
        novelty=novelty.carry(levels, state.novelty, alignment, had),
        history=alignment.carry(state.history, -1),
        added=alignment.carry(state.added, len(state.log) + 1),
        views=(*state.views[:which], record, *state.views[which + 1 :]),
    )


def _placed(engine: Engine, state: State, rows: _Rows, which: int) -> State:
    """Return the state with rows where the view's encoder places them."""
    encoder, alignment = state.encoder(rows.count.view), rows.alignment
    directions, dtype = state.directions, state.embedding.dtype
    assert encoder is not None
    assert directions is not None
    say, lifted = directions.say, directions.lifted

    def place(own: Array, partners: Array, seen: Array, evidence: Array) -> Array:
        others = np.delete(seen, which, axis=1).sum(axis=1)
        before = evidence[:, directions.columns(which)]
        replaces = (before[:, 0] != NONE) & (others > 0)
        row = (others[:, None] * partners + own) / (others[:, None] + 1)
        change = lifted(say(own[replaces])) - lifted(before[replaces])
        row[replaces] = partners[replaces] + change / (others[replaces, None] + 1)
        return np.asarray(row, dtype)

    def put(own: Array, evidence: Array) -> Array:
        return directions.put(own, evidence, which)

    own = engine.map(encoder, rows.raw)
    evidence = alignment.partners(state.evidence, NONE)
    beside = alignment.partners(state.embedding), alignment.partners(state.seen, False), evidence
    return replace(
        _known_since(engine, state, rows, which),
        embedding=alignment.merge(
            (place, own, *beside), (_same, alignment.absent(state.embedding))
        ),
        evidence=alignment.merge((put, own, evidence), (_same, alignment.absent(state.evidence))),
    )


def _learned(
    engine: Engine,
    state: State,
    rows: _Rows,
    alignment: Alignment,
    which: int,
    method: Method,
    seed: int,
) -> tuple[State, Array]:
    """Combine the rows with the consensus; their encoder joins the one that there is.

    Returns also the linear map that rows of the consensus went through.
    """
    batches = getattr(state.views[which].encoder, "batches", None)
    view, n = replace(rows.view, batches=batches), rows.view.shape[0]
    n_before = state.views[which].n_samples - rows.count.n_new - rows.count.n_late
    check_enough(view, alignment, method.n_clusters)
    combined = method.combine(engine, state, view, alignment, seed)
    if state.views[which].encoder is None:  # it could not place them
        state = _known_since(engine, state, rows, which)
    linear_map = combined.linear_map
    if linear_map is None:  # earlier rows are as they were
        linear_map = np.eye(state.embedding.shape[1])
    views = list(with_current_encoders(state, linear_map))
    record = views[which]
    if n >= constants.FEWEST:
        if record.encoder is None:
            columns = count_levels(engine, view.columns, rows.raw)
            views[which] = replace(
                record, encoder=combined.encoder, columns=columns, source=view.source
            )
        else:
            encoder = joined(record.encoder, n_before, combined.encoder, n)
            views[which] = replace(record, encoder=encoder)
    after = replace(
        state, embedding=combined.embedding, views=tuple(views), maps=(None,) * len(views)
    )
    return after, linear_map


def _with_own_evidence(
    engine: Engine, state: State, rows: _Rows, alignment: Alignment, which: int
) -> State:
    """Return the state with what the view's encoder says now about the delivered rows."""
    encoder, directions = state.encoder(rows.count.view), state.directions
    if encoder is None or directions is None:  # of so few rows that none is kept
        return state

    def put(block: Matrix, evidence: Array) -> Array:
        return directions.put(encoder(block), evidence, which)

    before = engine.map(_same, alignment.known_rows(state.evidence))
    of_view = put, rows.raw, alignment.view_rows(state.evidence)
    return replace(state, evidence=alignment.merge(of_view, (_same, alignment.absent(before))))


def _nearest(engine: Engine, state: State, alignment: Alignment, known_labels: RowSet) -> RowSet:
    """Return labels of which only those of the view's samples are new."""
    assert state.clusters is not None
    rows = engine.map(_same, alignment.view_rows(state.embedding))
    return alignment.merge(
        (_same, assign(engine, state.clusters, rows)), (_same, alignment.absent(known_labels))
    )


def _same(block: Array) -> Array:
    return block
