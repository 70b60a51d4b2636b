"""Everything a model has learned, in one frozen object: what a file holds and a change replaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from viewfold._util import constants
from viewfold._util.file import ReadOptions
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array, Matrix
from viewfold.data.expected import Profile
from viewfold.data.view import Column, features_of
from viewfold.rows import BucketRows, Engine, Rows, RowSet, engine_of
from viewfold.rows.linalg import dense, gram
from viewfold.state.clusters import Clusters
from viewfold.state.evidence import NONE, Directions
from viewfold.state.log import Log

if TYPE_CHECKING:
    from viewfold.state.moments import Moments

# What a state has a row (or one entry) for each sample of.
ROWS = ("ids", "embedding", "seen", "history", "added", "fingerprints", "evidence", "novelty")


class Encoder(Protocol):
    """Maps rows of a view to rows of the embedding. Holds small matrices and no single sample."""

    def __call__(self, block: Matrix) -> Array:
        """Embed a block of rows."""

    def then(self, linear_map: Array) -> Encoder:
        """Return this encoder followed by a linear map of the embedding."""


@frozen_record
class ViewRecord:
    """What is remembered of a view after it was folded."""

    name: str  #: its name
    n_samples: int  #: n_samples, n_features: the size it had
    n_features: int
    #: n_new, n_shared: how many of its samples were new, and how many were known from earlier views
    n_new: int
    n_shared: int
    n_iter: int  #: iterations the fold took
    #: the objective after each iteration (empty where there is none)
    objective: tuple[float, ...] = ()
    #: the share of the view's variance that the consensus before it explains, from 0 to 1, as
    #: cross-validated on the samples they share; None if unknown
    agreement: float | None = None
    #: names of its columns, if they had names
    features: tuple[str, ...] | None = field(default=None, repr=False)
    entry: int = 0  #: the log entry of its fold
    #: how many of its rows held nothing but zeros and were taken for absent samples
    n_empty: int = 0
    n_missing: int = 0  #: how many cells were missing in rows that had others
    #: of a table with columns that are not numbers, or not taken: what became of each, so that rows
    #: that come later get the same features
    columns: tuple[Column, ...] | None = field(default=None, repr=False)
    #: what was said about how to read it (empty markers, the layer of an AnnData), if anything:
    #: rows that come later are read likewise
    source: ReadOptions | None = field(default=None, repr=False)
    #: what `predict` and `transform` need, as of its own fold (see `State.encoder`); None if
    #: encoders are not kept, or if the view had fewer than ten samples
    encoder: Encoder | None = field(default=None, repr=False)
    #: what ties its features to the present consensus and clusters, so that these can be explained;
    #: None where there is no encoder, or if ten samples or more came before there was one
    moments: Moments | None = field(default=None, repr=False)
    #: what deliveries of it should look like (see `viewfold.data.expected`); None where there is no
    #: encoder
    profile: Profile | None = field(default=None, repr=False)


@frozen_record
class State:
    """Everything a model has learned. Nothing changes it: a fold makes another one."""

    ids: RowSet  #: (n_samples,): every sample ever seen
    embedding: RowSet  #: (n_samples, n_components): the consensus, a row per sample
    seen: RowSet  #: (n_samples, n_views): who was in which view
    #: (n_samples, n_steps): the cluster of every sample after each step, −1 before it was seen; a
    #: sample that came by `extend` has its first cluster in the column of the step before. The last
    #: column holds the labels of now, which are nowhere else.
    history: RowSet
    added: RowSet  #: (n_samples,): the log entry by which each sample came
    #: (n_samples, n_views): of the row of each sample in each view, 0 if there is none or it is not
    #: known; see `viewfold.state.hashes`
    fingerprints: RowSet
    #: (n_samples, n_views * n_numbers): what each view says about each sample; see
    #: `viewfold.state.evidence`
    evidence: RowSet
    #: (n_samples,): how unlike known rows the rows of each sample were, 0 if not known; see
    #: `viewfold.state.novelty`
    novelty: RowSet
    #: for each column of the history, the log entry that it was written by
    steps: tuple[int, ...] = ()
    #: the views folded so far, in their order; empty before the first
    views: tuple[ViewRecord, ...] = ()
    #: for each fold, the linear map that it applied to the earlier rows, ``row @ map``; None if no
    #: encoder needs it. Encoders are multiplied with the maps of later folds when they are used, so
    #: that a fold does not touch earlier views.
    maps: tuple[Array | None, ...] = ()
    clusters: Clusters | None = None  #: the centres of the clusters; None before the first view
    #: the directions of the consensus in which evidence is kept; None if there is none
    directions: Directions | None = None
    #: if samples are known by row number: how many rows a view without ids has
    length: int | None = None
    key: int = 0  #: the key of the fingerprints
    #: what clusters are called, of those that have a name; see `viewfold.state.names`
    cluster_names: Mapping[int, str] = field(default_factory=dict)
    log: Log = ()  #: what was done, from the first view on
    method: str = ""  #: the name of the estimator's class
    params: Mapping[str, Any] = field(default_factory=dict)  #: its parameters

    @classmethod
    def empty(cls, method: str = "", params: Mapping[str, Any] | None = None) -> State:
        """Return the state before the first view."""
        return cls(
            ids=np.empty(0, np.int64),
            embedding=np.empty((0, 0)),
            seen=np.empty((0, 0), bool),
            history=np.empty((0, 0), np.int32),
            added=np.empty(0, np.int32),
            fingerprints=np.empty((0, 0), np.int32),
            evidence=np.empty((0, 0), np.int8),
            novelty=np.empty(0, np.uint8),
            method=method,
            params=params or {},
        )

    @property
    def n_samples(self) -> int:
        """How many samples there are."""
        return int(self.ids.shape[0])

    @property
    def names(self) -> list[str]:
        """The names of the views."""
        return [record.name for record in self.views]

    @property
    def step_names(self) -> list[str]:
        """What the columns of the history are called: the view of a fold, else with its entry."""
        folds = {record.entry: record.name for record in self.views}
        events = {event.entry: event for event in self.log}
        return [
            folds.get(entry) or f"{events[entry].view or events[entry].what} ({entry})"
            for entry in self.steps
        ]

    def with_view(self, which: int, **facts: Any) -> State:
        """Return the same state with other facts about one of its views."""
        record = replace(self.views[which], **facts)
        return replace(self, views=(*self.views[:which], record, *self.views[which + 1 :]))

    def placed(self, engine: Engine) -> State:
        """Return the same state with its rows where the engine can join them with others."""
        if not self.views:
            return self
        rows = engine.partition(*(getattr(self, name) for name in ROWS))
        if rows[0] is self.ids:
            return self
        return replace(self, **dict(zip(ROWS, rows, strict=True)))

    def gathered(self) -> State:
        """Return the same state with its rows in memory; those known by row number in order."""
        if not isinstance(self.ids, BucketRows):
            return self
        rows = [self.ids.engine.collect(getattr(self, name)) for name in ROWS]
        if self.length is not None:
            order = np.argsort(rows[0])
            rows = [one[order] for one in rows]
        return replace(self, **dict(zip(ROWS, rows, strict=True)))

    def labels(self, engine: Engine) -> RowSet:
        """Return the cluster of every sample: the last column of the history."""
        return engine.map(lambda history: history[:, -1].astype(np.intp), self.history)

    def encoder(self, name: str) -> Encoder | None:
        """Return the encoder of a view into this consensus, None if it was not kept.

        It is the encoder of the view's own fold, followed by the linear maps of all later folds.
        """
        which = self.names.index(name)
        total = None
        for step in reversed(self.maps[which + 1 :]):
            total = step if total is None else total if step is None else np.asarray(step @ total)
        return followed(self.views[which], total).encoder

    def after(self, log: Log) -> State:
        """Return the same state with its log after another one, its entries renumbered."""
        shift = log[-1].entry if log else 0
        moved = [
            replace(e, entry=e.entry + shift, undoes=e.undoes and e.undoes + shift)
            for e in self.log
        ]
        views = tuple(replace(view, entry=view.entry + shift) for view in self.views)
        steps = tuple(entry + shift for entry in self.steps)
        added = engine_of(self.added).map(lambda block: block + np.int32(shift), self.added)
        return replace(self, views=views, added=added, steps=steps, log=(*log, *moved))

    def without_encoders(self, engine: Engine) -> State:
        """Return the state without what `predict`, `extend`, updates and explanations need."""
        gone: dict[str, Any] = dict.fromkeys(("encoder", "columns", "source", "moments", "profile"))
        kept = any(getattr(record, name) for record in self.views for name in gone)
        if not kept and self.directions is None:
            return self
        views = list(self.views)
        for i, record in enumerate(views):
            if record.columns is not None:  # features are called after levels
                each = [_renamed(one, "level", range(len(one.levels))) for one in record.columns]
                record = replace(record, features=features_of(tuple(each)))
            views[i] = replace(record, **gone)
        return replace(
            self,
            views=tuple(views),
            maps=(None,) * len(views),
            clusters=self.clusters and replace(self.clusters, apart=None),
            fingerprints=engine.map(np.zeros_like, self.fingerprints),
            evidence=engine.map(lambda rows: np.full((len(rows), 1), NONE, np.int8), self.evidence),
            directions=None,
            novelty=engine.map(np.zeros_like, self.novelty),
        )


def unconnected_groups(
    engine: Engine, seen: RowSet, views: tuple[ViewRecord, ...]
) -> RowSet | None:
    """Return the group of each sample, that of its first view; None if there is one group only.

    Views are connected if they share ten samples, or through others.
    """
    if all(record.n_shared >= constants.FEWEST for record in views[1:]):
        return None

    def shared(block: Array) -> Array:
        few = (gram(block[i : i + 500]) for i in range(0, len(block), 500))
        return sum(few, np.zeros((len(views), len(views))))

    from scipy.sparse.csgraph import connected_components  # who only encodes rows does without

    connected = engine.reduce(shared, seen) >= constants.FEWEST
    n_groups, of_view = connected_components(connected, directed=False)
    if n_groups == 1:
        return None

    def of_sample(block: Array) -> Array:
        return np.asarray(of_view[block.argmax(axis=1)], np.intp)

    sizes = engine.reduce(lambda b: np.bincount(of_sample(b), minlength=n_groups), seen)
    if np.count_nonzero(sizes) < 2:
        return None
    number = np.cumsum(sizes > 0) - 1  # a group all of whose samples are in another is none
    return engine.map(lambda block: number[of_sample(block)], seen)


def followed(record: ViewRecord, linear_map: Array | None) -> ViewRecord:
    if record.encoder is None or linear_map is None:
        return record
    return replace(record, encoder=record.encoder.then(linear_map))


def without_batches(engine: Engine, state: State, name: str | None, rows: RowSet) -> RowSet:
    """Return rows of a view without what its batches differ by, if its encoder removes that."""
    encoder = state.views[state.names.index(name or state.names[-1])].encoder
    batches = getattr(encoder, "batches", None)
    if batches is None:
        return rows
    lazy = isinstance(rows, Rows | BucketRows)  # they are corrected whenever they are read
    return replace(rows, fill=batches) if lazy else engine.map(batches, rows)


# -- levels of categories. No row is kept, so that nobody knows which level a forgotten sample had.
# What is kept is how many samples at least have each level. Every forgotten sample of the view may
# have been one of them; when none is certain to be left, the name of the level goes.


def count_levels(
    engine: Engine,
    columns: tuple[Column, ...] | None,
    rows: RowSet,
    *,
    n_corrected: int = 0,
    n_known: int = 0,
) -> tuple[Column, ...] | None:
    """Return columns that know at least how many samples have each level, with more rows."""
    places = dict(level_places(columns))
    if columns is None or not places:
        return columns
    at = [j for cells in places.values() for j in cells]

    def having(block: Matrix) -> Array:
        return np.asarray(np.count_nonzero(dense(block[:, at]) == 1, axis=0))

    found = dict(zip(at, engine.reduce(having, rows).tolist(), strict=True))
    made = list(columns)
    for i, cells in places.items():
        before = made[i].counts or (0,) * len(cells)
        counts = [
            max(had - n_corrected, 0) + max(int(found[j]) - n_known, 0)
            for had, j in zip(before, cells, strict=True)
        ]
        made[i] = replace(made[i], counts=tuple(counts))
    return tuple(made)


def without_forgotten(record: ViewRecord, n_gone: int) -> ViewRecord:
    """Return a record without names of levels that no sample may have, now that some are gone.

    The feature stays under a number: encoders have a place for it. Later cells never have it.
    """
    if record.columns is None or not n_gone:
        return record
    columns, gone = list(record.columns), list[int]()
    for i, cells in level_places(record.columns):
        counts = [max(had - n_gone, 0) for had in columns[i].counts or (0,) * len(cells)]
        nobody = [j for j, n in enumerate(counts) if not n]
        columns[i] = _renamed(replace(columns[i], counts=tuple(counts)), "forgotten", nobody)
        gone += [cells[j] for j in nobody]
    profile, moments = record.profile, record.moments
    if gone and profile is not None:
        profile = profile.without(gone)
    if gone and moments is not None:  # they say nothing any more of these features
        mean, spread, D = moments.mean.copy(), moments.spread.copy(), moments.directions.copy()
        mean[gone], spread[gone], D[:, gone] = 0, 0, 0
        moments = replace(moments, mean=mean, spread=spread, directions=D)
    features = features_of(tuple(columns))
    return replace(
        record, columns=tuple(columns), features=features, profile=profile, moments=moments
    )


def level_places(columns: tuple[Column, ...] | None) -> Iterator[tuple[int, range]]:
    """Yield which columns are categories, and which features their levels are."""
    start = 0
    for i, column in enumerate(columns or ()):
        stop = start + len(column.features)
        if column.kind == "category":
            yield i, range(start, stop)
        start = stop


def _renamed(column: Column, word: str, which: Sequence[int]) -> Column:
    """Return a column with numbers for names of some of its levels."""
    if column.kind != "category":
        return column
    # The space at the end keeps a cell that happens to read the same from being taken for it.
    levels = [f"({word} {j + 1}) " if j in which else name for j, name in enumerate(column.levels)]
    return replace(column, levels=tuple(levels))
