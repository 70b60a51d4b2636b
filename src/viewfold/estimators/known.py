"""Rows of known views: more to fold, or to predict; which view they belong to, and its features.

Whatever has a name of its own (a file, a `View`, an entry of a dict) belongs to the view of that
name; what has none belongs to a view by its place in the list.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from viewfold._util.arguments import which_view
from viewfold._util.file import EmptyRows, MissingCells, ReadOptions, path_and_options
from viewfold._util.messages import format_names, frozen_record, with_suggestion
from viewfold._util.types import Array, IdsLike, IdsOfViews, ViewLike, ViewsLike
from viewfold.data import View
from viewfold.data.cells import tell_of_cells, without_absent
from viewfold.data.features import known_options
from viewfold.data.opening import (
    ids_of_each,
    is_view_like,
    listed_views,
    named_views,
    open_path,
    open_view,
    own_name,
    read_view,
    read_views,
)
from viewfold.data.partitions import LazyRows
from viewfold.data.view import Column, Gaps, columns_for
from viewfold.rows import BucketRows, Engine, Rows, RowSet, using
from viewfold.rows.linalg import pick_columns
from viewfold.rows.normal import kind_of
from viewfold.state.committee import takes_gaps
from viewfold.state.state import State, ViewRecord


def check_y(y: object, method: str) -> None:
    """Refuse what was meant as something else than a target: y is ignored."""
    if y is None:
        return
    if isinstance(y, str):
        raise TypeError(
            f"{method} ignores its second argument, y, but got {y!r}. To name the view, pass "
            f"view={y!r} to partial_fit, or {{{y!r}: X}} to fit."
        )
    if is_view_like(y):
        raise TypeError(
            f"{method} ignores its second argument, y, but got what looks like a view. Pass "
            "several views to fit as a list, or one after the other to partial_fit."
        )
    values = np.asarray(y).ravel()
    if values.dtype.kind in "OU" and values.size > 1 and pd.Index(values).is_unique:
        warnings.warn(
            f"{method} ignores its second argument, y, which holds texts that are all different, "
            f"like {values.tolist()[0]!r}. If they are ids, pass them as ids=….",
            stacklevel=4,
        )


def known_view(views: Sequence[ViewRecord], view: str | int | None) -> ViewRecord:
    """Return the record of a view by its name or number; of the only one, if there is one."""
    names = [record.name for record in views]
    return views[which_view(names, view, "the model has folded")]


def align_columns(view: View, record: ViewRecord, me: str) -> View:
    """Return rows with the features of the view that they belong to, in its order, by name.

    Features that are missing are missing cells, others are left out: who read the table said so.
    Without names, the number of features has to be the same.
    """
    d, had, has = view.shape[1], record.features, view.features
    if (has is None) != (had is None):
        does, was = ("has", "without") if has else ("does not have valid", "with")
        warnings.warn(
            f"X {does} feature names, but {me} was fitted {was} feature names "
            f"(view {record.name!r}).",
            stacklevel=5,
        )
    if had == has and has is not None:
        return view
    if had is None or has is None:
        if d != record.n_features:
            raise ValueError(
                f"View {record.name!r}: X has {d} features, but {me} is expecting "
                f"{record.n_features} features as input. Columns without names are told apart by "
                "their place: give all that the view was folded with."
            )
        return view
    if len(set(has)) < d or len(set(had)) < len(had):
        raise ValueError(
            f"View {record.name!r}: some names of features occur twice, and they are not in the "
            "order that the view was folded with, so that nobody knows which is which. Give them "
            "in that order, or names of their own."
        )
    place = {name: j for j, name in enumerate(has)}
    order = np.array([place.get(name, -1) for name in had], np.intp)
    columns = None if view.columns is None else columns_for(view.columns, had)
    view, rows, lacking = replace(view, features=had, columns=columns), view.rows, min(order) < 0
    if isinstance(rows, LazyRows):
        return replace(view, rows=replace(rows, columns=order, width=order.size))
    gaps = None if view.gaps is None else view.gaps.of_columns(order)
    if rows.columns is not None:
        order = np.where(order < 0, -1, rows.columns[order])
    rows = replace(rows, columns=order, fill=None)
    if (
        lacking and isinstance(rows, Rows) and rows.is_sparse
    ):  # cells are checked as they are stored
        rows = replace(rows, X=pick_columns(rows.X.astype(rows.dtype), order), columns=None)
    if lacking and view.checked:
        gaps = Gaps.of(rows)
    return replace(view, rows=rows if gaps is None else replace(rows, fill=gaps), gaps=gaps)


def options_of(record: ViewRecord, options: ReadOptions | None = None) -> ReadOptions:
    """Return how more rows of a view are read, with those new names of columns that concern it."""
    columns = record.columns or tuple(Column(name, "number") for name in record.features or ())
    options, names = options or ReadOptions(), {column.name for column in columns}
    rename = {old: new for old, new in options.rename.items() if old in names}
    return known_options(columns, record.source, replace(options, rename=rename))


def check_rename(rename: Mapping[str, str] | None, views: Sequence[ViewRecord]) -> dict[str, str]:
    """Refuse new names of columns that none of some known views has."""
    known = {name for record in views for name in options_of(record).kinds}
    for old, new in (rename or {}).items():
        if not isinstance(old, str) or not isinstance(new, str):
            raise TypeError(f"rename=… takes names of columns (texts), got {old!r} and {new!r}.")
        if old in known:
            continue
        if not views:
            raise ValueError(
                "rename=… gives new names to columns of a known view; this is a new one."
            )
        said = f"rename={{{old!r}: {new!r}}}: "
        said += f"{', '.join(repr(one.name) for one in views)} has no column {old!r}. "
        if new in known:
            other = {new: old}
            raise with_suggestion(
                ValueError(f"{said}The name that it knows comes first: rename={other}."),
                rename=other,
            )
        raise ValueError(f"{said}It has {format_names(known)}.")
    return dict(rename or {})


class RowsOfView(NamedTuple):
    """Rows of a known view, as the user holds them, and what is said of their ids."""

    record: ViewRecord
    rows: Any
    ids: Any
    options: ReadOptions


def split_by_view(
    views: Sequence[ViewRecord],
    X: Any,
    ids: Any,
    view: str | int | None,
    rename: Mapping[str, str] | None = None,
) -> tuple[list[RowsOfView], bool]:
    """Return the rows of each known view that X holds, and whether X is a collection of views."""
    known = {record.name: record for record in views}
    said = ReadOptions(rename=check_rename(rename, views))
    each = {one.name: options_of(one, said) for one in views}

    def open_rows(rows: Any, ids: Any, record: ViewRecord | None) -> Any:
        options = ReadOptions() if record is None else each[record.name]
        with _name_view_in_errors(record):
            return open_path(rows, ids, replace(options, views=each))

    if view is not None:
        wanted: ViewRecord | None = known_view(views, view)
    else:
        wanted = views[0] if len(views) == 1 else known.get(own_name(X) or "")
    X = open_rows(X, ids, wanted)
    named = named_views(X)
    held = listed_views(X) if named is None else list(named.values())
    if held is None:
        record = wanted or known_view(views, None)
        return [RowsOfView(record, X, ids, replace(each[record.name], views=each))], False
    names = _names_in_list(held, views) if named is None else list(named)
    of_each = ids_of_each(ids, names)
    if view is not None and wanted is not None:
        at = which_view(names, wanted.name, "X holds")
        return [RowsOfView(wanted, held[at], of_each[at], each[wanted.name])], False
    parts: dict[str, RowsOfView] = {}
    for name, rows, of_view in zip(names, held, of_each, strict=True):
        entry = {name: rows}
        if named is None:  # a file in a list may hold several views
            rows = open_rows(rows, of_view, known.get(name))
            entry = named_views(rows) or {name: rows}
        for key, one in entry.items():
            if key not in known:
                raise ValueError(
                    f"There is no view {key!r}; the model has folded {list(known)}. "
                    f"Say which view it is: a dict {{view: X, …}}, or view=… for each file."
                )
            if key in parts:
                raise ValueError(f"View {key!r} is given twice. Give each view once.")
            # A workbook that is given for one of its sheets holds others, too.
            parts[key] = RowsOfView(known[key], one, of_view, replace(each[key], views=each))
    return list(parts.values()), True


def _names_in_list(held: list[Any], views: Sequence[ViewRecord]) -> list[str]:
    """Return which view each entry of a list is: by its own name, or by its place."""
    own = [own_name(rows) for rows in held]
    if len(own) == len(views) == 1:
        return [views[0].name]
    if None in own and len(own) != len(views):
        raise ValueError(
            f"There are {len(own)} views in the list, but {len(views)} are known: "
            f"{[record.name for record in views]}. Pass a dict {{view: X, …}}."
        )
    return [name or views[i].name for i, name in enumerate(own)]


def read_views_to_fold(
    known: Sequence[ViewRecord],
    X: Any,
    *,
    ids: Any,
    name: str | None,
    me: str,
    options: ReadOptions,
) -> list[View]:
    """Return the views that X holds, ready to be folded; known ones as `delivered` has them.

    With a name, X is one view, or holds one that is called so. `me` is who asks, for errors.
    """
    records = {record.name: record for record in known}
    own = name or own_name(X)
    if own in records:
        check_rename(options.rename, [records[own]])
        return [read_delivery(records[own], X, ids=ids, me=me, options=options, views=known)]
    if name is not None or not records:
        check_rename(options.rename, ())
    if name is not None:
        return [read_view(X, ids, name, options)]
    X, options = path_and_options(X, options)
    if records and options.part == (None, None):
        # A file may hold several views, some of them known.
        each = {record.name: options_of(record, options) for record in known}
        X = open_path(X, ids, replace(options, views=each))
    held = named_views(X) or {}
    check_rename(options.rename, [records[one] for one in held if one in records])
    if not held.keys() & records.keys():
        return read_views(X, ids, options)
    new = {name: rows for name, rows in held.items() if name not in records}
    made = {view.name: view for view in read_views(new, ids, options)} if new else {}
    return [
        made[name]
        if name in made
        else read_delivery(records[name], rows, ids=ids, me=me, options=options, views=known)
        for name, rows in held.items()
    ]


def read_delivery(
    record: ViewRecord,
    X: Any,
    *,
    ids: Any,
    me: str,
    options: ReadOptions,
    views: Sequence[ViewRecord] = (),
) -> View:
    """Return more rows of a known view, with the features that it has; `views` are all views."""
    advice = " If this is another view, give it a name of its own (view='NAME')."
    with _name_view_in_errors(record, advice, views):
        view = align_columns(_open(record, X, ids, options), record, me)
    gaps = options.missing_cells if takes_gaps(record.encoder) else "error"
    # What zeros mean was found out with the first rows, unless there were none.
    zeros = "absent" if record.n_empty else options.empty_rows
    checked = without_absent(view, zeros, gaps, known=record.n_empty > 0)
    return checked if view.checked or record.n_empty else tell_of_cells(checked, rare=False)


@contextmanager
def _name_view_in_errors(
    record: ViewRecord | None, advice: str = "", views: Sequence[ViewRecord] = ()
) -> Iterator[None]:
    """Name the view in errors about a file that has other columns, and the view that it fits."""
    try:
        yield
    except ValueError as error:
        said = str(error)
        if record is not None and "folded with" in said:
            view = "" if repr(record.name) in said else f"View {record.name!r}: "
            there = set(getattr(error, "columns", ()))
            for other in views:
                columns = other.columns and [one.name for one in other.columns if one.kind != "out"]
                if (needed := set(columns or other.features or ())) and needed <= there:
                    advice = f" These columns are those of view {other.name!r}."
                    break
            error.args = (f"{view}{said}{advice}",)
        raise


def _open(record: ViewRecord, X: Any, ids: Any, options: ReadOptions) -> View:
    """Return rows that are read as the view was, as far as that is remembered."""
    as_before, name = options_of(record, options), record.name
    if record.encoder is None:  # nothing is remembered of how it was read
        view = open_view(X, ids=ids, name=name, options=replace(options, rename={}))
        return open_view(view, name=name, options=replace(as_before, layer=None, use_rep=None))
    view = open_view(X, ids=ids, name=name, options=as_before, known=record.columns)
    was, said = record.source or ReadOptions(), view.source or ReadOptions()
    if said.part not in (was.part, (None, None)):
        part = f"layer={said.layer!r}" if said.layer is not None else f"use_rep={said.use_rep!r}"
        raise ValueError(f"View {record.name!r} was folded with another part than {part}.")
    return view


def read_known_view(
    X: ViewLike,
    record: ViewRecord,
    *,
    ids: IdsLike = None,
    gaps: bool = False,
    me: str,
    options: ReadOptions | None = None,
) -> View:
    """Return rows that have the features of a known view; gaps are rows of NaN."""
    if record.encoder is None:
        raise ValueError(
            f"View {record.name!r} has no encoder (keep_encoders=False, or it "
            "had fewer than ten samples): nothing is known about samples that were not in it."
        )
    options = options or options_of(record)
    with _name_view_in_errors(record):
        view = open_view(X, ids=ids, name=record.name, options=options, known=record.columns)
    view = align_columns(view, record, me)
    # A few rows cannot tell what their zeros mean; the view they belong to could.
    zeros: EmptyRows = "absent" if record.n_empty else "keep"
    able: MissingCells = "accept" if takes_gaps(record.encoder) else "error"
    view = without_absent(view, zeros, able, known=True)
    if view.first_absent is not None and not gaps:
        what = "zeros, which in this view mean that a sample is not in it" * bool(view.n_empty)
        raise ValueError(
            f"View {record.name!r} contains {what or 'NaN'} in all of {view.first_absent}: "
            "there is nothing to embed. Leave the row out."
        )
    return view


@frozen_record
class PlacedRows:
    """Samples of new rows, and their rows of the embedding."""

    engine: Engine
    ids: RowSet
    rows: RowSet
    seen: RowSet  # (n_rows, n_views): 1 for the views that they are in
    order: Array | None  # where each row is that came, if rows are not in their order
    # (n_rows,): how unlike known rows they are, of several views the most; None if nobody asked
    surprise: RowSet | None

    def collect(self, rows: RowSet) -> Array:
        """Return rows of these samples as one array, in the order in which they came."""
        return _in_order(self.engine.collect(rows), self.order)


def place_rows(
    model: Any,
    X: ViewsLike,
    ids: IdsOfViews,
    view: str | int | None,
    rename: Mapping[str, str] | None = None,
    *,
    surprise: bool = False,
) -> PlacedRows:
    """Return who the samples of new rows are, their embedding, and in which views."""
    engine, state, me = model._engine, model._fitted, type(model).__name__
    with using(engine):
        parts, several = split_by_view(state.views, X, ids, view, rename)
        views = [
            read_known_view(
                part.rows, part.record, ids=part.ids, gaps=several, me=me, options=part.options
            )
            for part in parts
        ]
    embedded = [embed(engine, state, one) for one in views]
    novel = [measure_surprise(engine, state, one) for one in views] if surprise else None
    which = np.eye(len(state.views))[[state.names.index(part.record.name) for part in parts]]
    orders = [
        None if one.partitions is None else np.argsort(engine.collect(one.partitions.numbers))
        for one in views
    ]
    if not several:
        seen = engine.map(lambda block: np.tile(which, (len(block), 1)), embedded[0])
        most = None if novel is None else novel[0]
        return PlacedRows(engine, views[0].ids, embedded[0], seen, orders[0], most)
    length = _check_alike(engine, views)
    each = [
        _in_order(engine.collect(one.ids), order) for one, order in zip(views, orders, strict=True)
    ]
    # In the order in which they came, or that of their row numbers.
    found = pd.unique(np.concatenate(each)) if length is None else np.arange(length)
    sums, seen = (
        np.zeros((len(found), embedded[0].shape[1])),
        np.zeros((len(found), which.shape[1])),
    )
    unlike, known = np.full(len(found), np.nan), pd.Index(found)
    for i, (samples, order) in enumerate(zip(each, orders, strict=True)):
        at = known.get_indexer(pd.Index(samples))
        sums[at] += _in_order(engine.collect(embedded[i]), order)
        seen[at] += which[i]
        if novel is not None:
            unlike[at] = np.fmax(unlike[at], _in_order(engine.collect(novel[i]), order))
    count = seen.sum(axis=1, keepdims=True)
    if not count.all():
        row = int(found[np.flatnonzero(count == 0)].min())
        gone = "NaN or zero" if any(part.n_empty for part in views) else "NaN"
        raise ValueError(f"Row {row} is {gone} in every view: there is nothing to embed.")
    return PlacedRows(engine, found, sums / count, seen, None, None if novel is None else unlike)


def embed(engine: Engine, state: State, view: View) -> RowSet:
    encode = state.encoder(view.name or state.names[0])
    assert encode is not None
    with engine.session():
        return engine.map(encode, replace(view.rows, fill=None))


def measure_surprise(engine: Engine, state: State, view: View) -> RowSet:
    """Return how unlike known rows those of a view are; NaN if its encoder does not tell."""
    encoder = state.views[state.names.index(view.name or state.names[0])].encoder
    told = getattr(encoder, "surprise", lambda block: np.full(block.shape[0], np.nan))
    with engine.session():
        return engine.map(told, replace(view.rows, fill=None))


def _in_order(rows: Array, order: Array | None) -> Array:
    return rows if order is None else np.asarray(rows[order])


def _check_alike(engine: Engine, views: list[View]) -> int | None:
    """Return how many rows each of several views has, None if they have ids of one kind."""
    lengths = {part.length for part in views}
    if len(lengths) > 1:
        raise ValueError(
            f"The views have {sorted(map(str, lengths))} rows without ids. Give ids, or the "
            "same number of rows, empty ones (NaN) for samples that a view lacks."
        )
    # In buckets, all ids are of one kind.
    kinds = [
        kind_of(engine.head(part.ids, 1) if isinstance(part.ids, BucketRows) else part.ids)
        for part in views
    ]
    if len(set(kinds)) > 1 and "both" not in kinds:
        other = next(i for i, kind in enumerate(kinds) if kind != kinds[0])
        raise ValueError(
            f"View {views[other].name!r} has ids that are {kinds[other]}, others have "
            f"{kinds[0]}: samples could not be matched. Give all views ids of one kind."
        )
    return lengths.pop()
