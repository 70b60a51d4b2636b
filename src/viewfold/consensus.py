"""What is left of all views folded so far: one row per sample, and a record per view.

`Consensus` is frozen: folding a view makes a new one. `align` finds out which samples of a view
are known already, and where everybody goes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from viewfold.blocks import Array, Matrix
from viewfold.ids import Similar, check_kind, settle
from viewfold.view import View

FEWEST = 10
"""What is kept of a view are aggregates of at least so many samples."""


class Encoder(Protocol):
    """How a row of a view becomes a row of the embedding: small matrices, no sample of the view."""

    def __call__(self, block: Matrix) -> Array:
        """Embed a block of rows."""

    def then(self, turn: Array) -> Encoder:
        """Return this encoder followed by a linear map of the embedding."""


@dataclass(frozen=True)
class ViewRecord:
    """What is remembered of a view after it was folded.

    Attributes
    ----------
    name : str
        Its name.
    n_samples, n_features : int
        The size it had.
    n_new, n_shared : int
        How many of its samples were new, and how many were known from earlier views.
    n_iter : int
        Iterations the fold took.
    objective : tuple of float
        The objective after each iteration (empty where there is none).
    agreement : float or None
        How much of the view the consensus before it foretells, from 0 (nothing) to 1 (all), as
        cross-validated on the samples they share; None if unknown.
    features : tuple of str or None
        Names of its columns, if they had names.
    entry : int
        The log entry of its fold.
    encoder : Encoder or None
        What `predict` and `transform` need, as of its own fold (see `Consensus.encoder`); None if
        encoders are not kept, or if the view had fewer than ten samples.
    """

    name: str
    n_samples: int
    n_features: int
    n_new: int
    n_shared: int
    n_iter: int
    objective: tuple[float, ...] = ()
    agreement: float | None = None
    features: tuple[str, ...] | None = field(default=None, repr=False)
    entry: int = 0
    encoder: Encoder | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Consensus:
    """The state after some views.

    Attributes
    ----------
    ids : ndarray of shape (n_samples,)
        Every sample ever seen.
    embedding : ndarray of shape (n_samples, n_components)
        The consensus, a row per sample.
    seen : ndarray of bool, shape (n_samples, n_views)
        Who was in which view.
    views : tuple of ViewRecord
        The views folded so far, in their order.
    length : int or None
        If samples are known by row number: how many rows a view without ids has.
    turns : tuple of ndarray or None
        What each fold did to the rows before it, where an encoder of an earlier view needs to know:
        ``row @ turn``. Multiplied when asked for, so that a fold does not touch earlier views.
    """

    ids: Array
    embedding: Array
    seen: NDArray[np.bool_]
    views: tuple[ViewRecord, ...]
    length: int | None
    turns: tuple[Array | None, ...] = ()

    @property
    def groups(self) -> NDArray[np.intp] | None:
        """The group of each sample, if there are groups that nothing ties together, else None.

        Views that share samples tie these and all their other samples together.
        """
        if all(record.n_shared for record in self.views[1:]):
            return None
        # A sample ties all its views to its first one.
        first = self.seen.argmax(axis=1)
        tied = np.zeros((len(self.views), len(self.views)), bool)
        for view, members in enumerate(self.seen.T):
            tied[view, first[members]] = True
        n_groups, of_view = connected_components(tied, directed=False)
        return None if n_groups == 1 else of_view[first].astype(np.intp)

    def encoder(self, name: str) -> Encoder | None:
        """Return what embeds rows of a view into this consensus, None if it was not kept."""
        which = [record.name for record in self.views].index(name)
        turn = None
        for before in reversed(self.turns[which + 1 :]):
            turn = _then(before, turn)
        return _turned(self.views[which], turn).encoder


def draw(ids: Array, most: int, *, seed: int | tuple[int, ...], purpose: str) -> NDArray[np.intp]:
    """Draw at most so many samples at random, whatever the order in which they come.

    Parameters
    ----------
    ids : ndarray
        The samples. A hash of an id decides: the same samples are drawn wherever they stand.
    most : int
        How many.
    seed : int or tuple of int
        Another seed draws others.
    purpose : str
        What they are drawn for: for another purpose, others are drawn.

    Returns
    -------
    ndarray of int
        Where they stand, in an order that is as random as the draw.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.consensus import draw
    >>> ids = np.array(["ann", "bob", "cleo", "dan"], dtype=object)
    >>> some = draw(ids, 2, seed=0, purpose="example")
    >>> others = draw(ids[::-1], 2, seed=0, purpose="example")
    >>> np.array_equal(ids[some], ids[::-1][others])
    True
    """
    words = (*((seed,) if isinstance(seed, int) else seed), crc32(purpose.encode()))
    salt = np.random.SeedSequence(words).generate_state(1, np.uint64)
    key = pd.util.hash_array(ids) ^ salt
    # The finaliser of splitmix64 spreads every bit of the salt over all bits.
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        key ^= key >> np.uint64(shift)
        key *= np.uint64(factor)
    key ^= key >> np.uint64(31)
    drawn = np.argpartition(key, most)[:most] if most < key.size else np.arange(key.size)
    return drawn[np.argsort(key[drawn], kind="stable")]


@dataclass(frozen=True)
class Alignment:
    """Where the samples of a view and of a consensus stand in their union.

    Attributes
    ----------
    ids : ndarray
        The union.
    rows : ndarray of int
        Position in the union of each of the view's rows.
    previous : ndarray of int
        Position in the union of each sample of the consensus.
    partner : ndarray of int
        Row of the consensus for each of the view's rows, −1 for new samples.
    absent : ndarray of int
        Rows of the consensus that the view lacks.
    """

    ids: Array
    rows: NDArray[np.intp]
    previous: NDArray[np.intp]
    partner: NDArray[np.intp]
    absent: NDArray[np.intp]

    @property
    def n_shared(self) -> int:
        """How many samples are in both."""
        return self.previous.size - self.absent.size

    @property
    def n_new(self) -> int:
        """How many samples are in the view only."""
        return self.rows.size - self.n_shared


def align(consensus: Consensus | None, view: View) -> Alignment:
    """Find the union of a consensus and a view.

    Known samples keep their order and new ones follow in the order of the view; where samples are
    known by row number, the union is in the order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import as_view
    >>> from viewfold.consensus import Consensus, align
    >>> state = Consensus(np.array([7, 8, 9]), np.eye(3), np.ones((3, 1), bool), (), None)
    >>> found = align(state, as_view(np.ones((2, 4)), ids=[9, 5]))
    >>> found.ids, found.partner, found.absent
    (array([7, 8, 9, 5]), array([ 2, -1]), array([0, 1]))
    """
    n = view.ids.size
    if consensus is None:
        nobody = np.empty(0, np.intp)
        return Alignment(view.ids, np.arange(n), nobody, np.full(n, -1), nobody)
    n_previous = consensus.ids.size
    if np.array_equal(consensus.ids, view.ids):
        same = np.arange(n)
        return Alignment(consensus.ids, same, same, same, np.empty(0, np.intp))
    partner = pd.Index(consensus.ids).get_indexer(pd.Index(view.ids))
    new = partner < 0
    rows = partner.copy()
    rows[new] = n_previous + np.arange(np.count_nonzero(new))
    previous = np.arange(n_previous)
    ids = np.concatenate([consensus.ids, view.ids[new]])
    if consensus.length is not None and ids.dtype != object:
        order = np.argsort(ids)
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        ids, rows, previous = ids[order], place[rows], place[previous]
    known = np.zeros(n_previous, bool)
    known[partner[~new]] = True
    return Alignment(ids, rows, previous, partner, np.flatnonzero(~known))


@dataclass(frozen=True)
class Folded:
    """What a method makes of a view: the new embedding, and how earlier rows were turned.

    Attributes
    ----------
    embedding : ndarray
        A row for each sample of the union.
    encoder : Encoder
        Embeds samples that are in this view and in no other.
    turn : ndarray or None
        What the fold does to samples that the view lacks: ``row @ turn``. Applied to the encoders
        of earlier views, so that they keep embedding into the present consensus. (If fewer than
        ten samples are shared, without what these foretell.)
    n_iter : int
        Iterations taken.
    objective : tuple of float
        The objective after each of them.
    agreement : float or None
        See `ViewRecord`.
    """

    embedding: Array
    encoder: Encoder
    turn: Array | None
    n_iter: int = 1
    objective: tuple[float, ...] = ()
    agreement: float | None = None


Method = Callable[[Consensus | None, View, Alignment], Folded]
Basis = Callable[[Array], Array]


def fold(
    consensus: Consensus | None, view: View, method: Method, *, keep_encoders: bool = True
) -> Consensus:
    """Fold a view into a consensus: the one way from a state to the next.

    Parameters
    ----------
    consensus : Consensus or None
        The state so far; None before the first view. It is left as it is.
    view : View
        The view. Only small matrices are remembered of it.
    method : callable
        ``method(consensus, view, alignment)`` returns a `Folded`.
    keep_encoders : bool, default=True
        Whether to keep what `predict` needs; if not, the encoders of earlier views go, too.
        Encoder and embedding together give a low-rank copy of the view.

    Returns
    -------
    Consensus
    """
    _check_fits(consensus, view)
    found = align(consensus, view)
    result = method(consensus, view, found)
    n, d = view.shape
    earlier: tuple[ViewRecord, ...] = () if consensus is None else consensus.views
    seen = np.zeros((found.ids.size, len(earlier) + 1), bool)
    seen[found.rows, -1] = True
    if consensus is not None:
        seen[found.previous, :-1] = consensus.seen
    record = ViewRecord(
        name=view.name or f"view{len(earlier)}",
        n_samples=n,
        n_features=d,
        n_new=found.n_new,
        n_shared=found.n_shared,
        n_iter=result.n_iter,
        objective=result.objective,
        agreement=result.agreement,
        features=view.features,
        encoder=result.encoder if n >= FEWEST else None,
    )
    needed = any(old.encoder is not None for old in earlier)
    turns = (consensus and consensus.turns) or (None,) * len(earlier)
    after = Consensus(
        ids=found.ids,
        embedding=result.embedding,
        seen=seen,
        views=(*earlier, record),
        length=view.length if consensus is None else consensus.length,
        turns=(*turns, result.turn if needed else None),
    )
    return after if keep_encoders else without_encoders(after)


def without_encoders(consensus: Consensus) -> Consensus:
    """Return the state without what `predict`, `transform` and `extend` need."""
    views = tuple(replace(record, encoder=None) for record in consensus.views)
    return replace(consensus, views=views, turns=(None,) * len(views))


def extend(consensus: Consensus, view: View, rows: Array) -> Consensus:
    """Add samples that are in one known view and in no other.

    Parameters
    ----------
    consensus : Consensus
        The state so far. It is left as it is.
    view : View
        The samples, all of them new, under the name of a known view.
    rows : ndarray of shape (n_new, n_components)
        Their rows of the embedding, as the view's encoder gives them.

    Returns
    -------
    Consensus
    """
    known = pd.Index(consensus.ids).get_indexer(pd.Index(view.ids)) >= 0
    if known.any():
        raise ValueError(
            f"Sample {view.ids[known].tolist()[0]!r} and {np.count_nonzero(known) - 1} others are "
            "known already; only new samples can be added to a view that was folded."
        )
    if view.length is not None:
        raise ValueError(
            f"View {view.name!r}: new samples need ids. Pass ids= with one id per row, or a "
            "DataFrame whose index holds them."
        )
    _check_kind_of_ids(consensus, view)
    which = [record.name for record in consensus.views].index(view.name or "")
    seen = np.zeros((view.ids.size, len(consensus.views)), bool)
    seen[:, which] = True
    old = consensus.views[which]
    record = replace(old, n_samples=old.n_samples + view.ids.size, n_new=old.n_new + view.ids.size)
    ids = np.concatenate([consensus.ids, view.ids])
    order = np.arange(ids.size) if consensus.length is None else np.argsort(ids)
    return replace(
        consensus,
        ids=ids[order],
        embedding=np.concatenate([consensus.embedding, rows])[order],
        seen=np.concatenate([consensus.seen, seen])[order],
        views=(*consensus.views[:which], record, *consensus.views[which + 1 :]),
    )


def keep(consensus: Consensus, kept: NDArray[np.bool_], basis: Basis) -> Consensus:
    """Return the state without some samples.

    Parameters
    ----------
    consensus : Consensus
        The state so far. It is left as it is.
    kept : ndarray of bool
        Which samples stay.
    basis : callable
        ``basis(rows)`` returns what the rows that are left are to be multiplied with, so that
        their products are again what the method makes them: otherwise these tell who is gone.

    Returns
    -------
    Consensus
    """
    rows = _lengthened(consensus.embedding[kept], consensus.embedding)
    turn = basis(rows)
    return replace(
        consensus,
        ids=consensus.ids[kept],
        embedding=rows @ turn.astype(rows.dtype),
        seen=consensus.seen[kept],
        views=_brought_up(consensus, turn),
        turns=(None,) * len(consensus.views),
    )


def _brought_up(consensus: Consensus, turn: Array) -> tuple[ViewRecord, ...]:
    """Return the records with encoders into this consensus, followed by one more map."""
    records, total = [], turn
    turns = consensus.turns or (None,) * len(consensus.views)
    for record, before in zip(reversed(consensus.views), reversed(turns), strict=True):
        records.append(_turned(record, total))
        total = total if before is None else np.asarray(before @ total)
    return tuple(reversed(records))


def _lengthened(rows: Array, before: Array) -> Array:
    """Return rows in other lengths, if the sum of a few that are gone could be told; else as is.

    It can if all rows together had nearly mean zero: nearer than independent rows come to it. Then
    lengths change, by little, until those that are left have mean zero. Clusters see directions.
    """
    total = before.sum(axis=0, dtype=np.float64)
    if len(before) - len(rows) >= FEWEST or total @ total > np.vdot(before, before):
        return rows
    wide = rows.astype(np.float64)
    toward = np.linalg.pinv(wide.T @ wide, hermitian=True) @ wide.sum(axis=0)
    factor = np.clip(1 - wide @ toward, 0.5, 1.5)
    return np.asarray(rows * factor[:, None].astype(rows.dtype))


def admit(
    consensus: Consensus | None,
    view: View,
    similar_ids: Similar = "refuse",
    min_shared: float | None = None,
) -> View:
    """Look at who is in a view before it is folded or its samples are added.

    Parameters
    ----------
    consensus : Consensus or None
        The state so far; None before the first view.
    view : View
        The view.
    similar_ids : {"refuse", "match", "new"}
        What to do with new ids that are almost known; see `viewfold.ids.settle`.
    min_shared : int or float, optional
        How many samples of the view have to be known: so many, or this part of them.

    Returns
    -------
    View
        With ids as they are to be known.
    """
    if view.length is None and (consensus is None or consensus.length is None):
        known = None if consensus is None else consensus.ids
        ids = settle(known, view.ids, similar_ids, f"View {view.name!r}", view.rows.present)
        view = view if ids is view.ids else replace(view, ids=ids)
    if min_shared is not None:
        _check_shared(consensus, view, min_shared)
    return view


def _check_shared(consensus: Consensus | None, view: View, least: float) -> None:
    part = isinstance(least, float)
    if least < 0 or (part and least > 1) or isinstance(least, bool):
        raise ValueError(f"min_shared must be a whole number or a part from 0 to 1, got {least!r}.")
    shared = 0
    if consensus is not None:
        shared = int((pd.Index(consensus.ids).get_indexer(pd.Index(view.ids)) >= 0).sum())
    if shared < (least * view.ids.size if part else least):
        asked = f"{100 * least:g} % of them" if part else f"{least:,}"
        raise ValueError(
            f"View {view.name!r}: {shared:,} of its {view.ids.size:,} samples are known, fewer "
            f"than asked for ({asked}). Are the ids those of the other views? Nothing was changed."
        )


def _known_column(consensus: Consensus, view: View) -> str:
    """Name the column that holds known ids, if there is one."""
    if view.features is None or consensus.ids.dtype == object:
        return ""
    top = view.rows.X[:100]
    for j, name in enumerate(view.features):
        if np.isin(top[:, j], consensus.ids).all() and np.unique(top[:, j]).size == len(top):
            return f" Column {name!r} holds ids that are known: pass ids={name!r} (--id {name})."
    return ""


def _check_fits(consensus: Consensus | None, view: View) -> None:
    """Refuse a view whose name is taken, or whose samples cannot be told from its row numbers."""
    if consensus is None:
        return
    names = [record.name for record in consensus.views]
    if view.name in names:
        raise ValueError(
            f"A view named {view.name!r} was folded already (views: {names}). "
            "Give the new one a name of its own."
        )
    if view.length is not None and consensus.length is None:
        raise ValueError(
            f"View {view.name!r} has no ids, but the samples folded so far do. "
            "Pass ids= with one id per row, or a DataFrame whose index holds them."
            + _known_column(consensus, view)
        )
    if consensus.length is not None and view.length not in (None, consensus.length):
        raise ValueError(
            f"View {view.name!r} has {view.length} rows and no ids, but earlier views had "
            f"{consensus.length} rows. Which rows belong together is not known: pass ids=, or mark "
            "samples that a view lacks with rows of NaN."
        )
    _check_kind_of_ids(consensus, view)


def _check_kind_of_ids(consensus: Consensus, view: View) -> None:
    """Refuse ids of another kind than the known ones: they are fixed by the first view."""
    if consensus.length is not None and view.ids.dtype == object:
        raise ValueError(
            f"View {view.name!r} has ids like {view.ids[0]!r}, but the samples folded so far are "
            "known by row number. Pass ids from the first view on, or row numbers here."
        )
    check_kind(consensus.ids, view.ids, f"View {view.name!r}")


def _turned(record: ViewRecord, turn: Array | None) -> ViewRecord:
    if record.encoder is None or turn is None:
        return record
    return replace(record, encoder=record.encoder.then(turn))


def _then(first: Array | None, second: Array | None) -> Array | None:
    """Return the product of two maps, either of which may be none."""
    if first is None or second is None:
        return second if first is None else first
    return np.asarray(first @ second)
