"""What comes to be folded: new views, and more rows of known ones, which are read as these were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from viewfold._util.file import ReadOptions, path_and_options
from viewfold.data import View
from viewfold.data.cells import tell_of_empty, without_absent
from viewfold.data.features import known_options
from viewfold.data.opening import named_views, open_path, open_view, own_name, read_view, read_views
from viewfold.estimators.checks import check_features, in_order
from viewfold.state.state import ViewRecord
from viewfold.state.updates import takes_gaps


def views_of(
    known: Sequence[ViewRecord],
    X: Any,
    *,
    ids: Any,
    name: str | None,
    me: str,
    options: ReadOptions,
) -> list[View]:
    """Return the views that X holds, ready to be folded.

    Rows of a view that was folded get the features that it has, whatever is said about reading;
    only `missing_cells` and `empty_rows` count. With a name, X is one view, or holds one that is
    called so. `me` is who asks, for errors.
    """
    records = {record.name: record for record in known}
    own = name or own_name(X)
    if own in records:
        return [delivered(records[own], X, ids=ids, me=me, options=options)]
    if name is not None:
        return [read_view(X, ids, name, options)]
    X, options = path_and_options(X, options)
    if records and options.part == (None, None):
        # A file may hold several views, some of them known.
        each = {record.name: known_options(record.columns, record.source) for record in known}
        X = open_path(X, ids, replace(options, views=each))
    held = named_views(X) or {}
    if not held.keys() & records.keys():
        return read_views(X, ids, options)
    new = {name: rows for name, rows in held.items() if name not in records}
    made = {view.name: view for view in read_views(new, ids, options)} if new else {}
    return [
        made[name]
        if name in made
        else delivered(records[name], rows, ids=ids, me=me, options=options)
        for name, rows in held.items()
    ]


def delivered(record: ViewRecord, X: Any, *, ids: Any, me: str, options: ReadOptions) -> View:
    """Return more rows of a known view, with the features that it has.

    Raises
    ------
    ValueError
        If they are not of that view, or if nothing is known of it any more.
    """
    try:
        view = _open(record, X, ids, options)
        check_features(view, record, me)
    except ValueError as error:
        if "folded with" not in str(error):  # its columns are not the trouble
            raise
        another = "give it a name of its own (view='NAME')"
        raise ValueError(f"{error} If this is another view, {another}.") from None
    view = in_order(view, record)
    gaps = options.missing_cells if takes_gaps(record.encoder) else "error"
    # What zeros mean was found out with the first rows, unless there were none.
    zeros = "absent" if record.n_empty else options.empty_rows
    checked = without_absent(view, zeros, gaps, known=record.n_empty > 0)
    return checked if view.checked or record.n_empty else tell_of_empty(checked)


def _open(record: ViewRecord, X: Any, ids: Any, options: ReadOptions) -> View:
    """Return rows that are read as the view was, as far as that is remembered."""
    if record.encoder is None:
        return open_view(X, ids=ids, name=record.name, options=options)
    as_before = known_options(record.columns, record.source, options)
    view = open_view(X, ids=ids, name=record.name, options=as_before, known=record.columns)
    was, said = record.source or ReadOptions(), view.source or ReadOptions()
    if said.part not in (was.part, (None, None)):
        part = f"layer={said.layer!r}" if said.layer is not None else f"use_rep={said.use_rep!r}"
        raise ValueError(f"View {record.name!r} was folded with another part than {part}.")
    return view
