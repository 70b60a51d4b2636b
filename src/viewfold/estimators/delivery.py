"""What comes to be folded: new views, and more rows of known ones, which are read as these were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

from viewfold.data import View, as_view, as_views
from viewfold.data.anndata_parts import chosen
from viewfold.data.asked import Asked
from viewfold.data.cells import MissingCells, tell_of_empty, without_absent
from viewfold.data.column import Source
from viewfold.data.features import asked_of
from viewfold.data.opening import named_views, open_view, opened, own_name
from viewfold.data.reading import Reading, of_whole, parted
from viewfold.estimators.checks import check_features, in_order
from viewfold.state.state import ViewRecord
from viewfold.state.updates import takes_gaps


def views_of(
    known: Sequence[ViewRecord],
    X: Any,
    *,
    ids: Any = None,
    name: str | None = None,
    me: str = "the model",
    **reading: Unpack[Reading],
) -> list[View]:
    """Return the views that X holds, ready to be folded."""
    records = {record.name: record for record in known}
    own = name or own_name(X)
    if own in records:
        return [delivered(records[own], X, ids=ids, me=me, **reading)]
    if name is not None:
        return [as_view(X, ids=ids, name=name, **reading)]
    if records and not (reading.get("layer") or reading.get("use_rep")):
        # A file may hold several views, some of them known.
        each = {record.name: asked_of(record.columns, record.source) for record in known}
        X = opened(X, ids, replace(parted(**of_whole(reading))[1], of_views=each))
    held = named_views(X) or {}
    if not held.keys() & records.keys():
        return as_views(X, ids=ids, **reading)
    new = {name: rows for name, rows in held.items() if name not in records}
    made = {view.name: view for view in as_views(new, ids=ids, **reading)} if new else {}
    return [
        made[name] if name in made else delivered(records[name], rows, ids=ids, me=me, **reading)
        for name, rows in held.items()
    ]


def delivered(
    record: ViewRecord, X: Any, *, ids: Any = None, me: str, **reading: Unpack[Reading]
) -> View:
    """Return more rows of a known view, with the features that it has."""
    X, rest = chosen(X, reading)
    try:
        view = _opened(record, X, ids, parted(**rest)[1])
        check_features(view, record, me)
    except ValueError as error:
        if "folded with" not in str(error):  # its columns are not the trouble
            raise
        another = "give it a name of its own (view='NAME')"
        raise ValueError(f"{error} If this is another view, {another}.") from None
    view = in_order(view, record)
    gaps: MissingCells = reading.get("missing_cells", "accept")
    if not takes_gaps(record.encoder):
        gaps = "error"
    # What zeros mean was found out with the first rows, unless there were none.
    zeros = "absent" if record.n_empty else reading.get("empty_rows", "absent")
    checked = without_absent(view, zeros, gaps, known=record.n_empty > 0)
    return checked if view.checked or record.n_empty else tell_of_empty(checked)


def _opened(record: ViewRecord, X: Any, ids: Any, asked: Asked) -> View:
    """Return rows that are read as the view was, as far as that is remembered."""
    if record.encoder is None:
        return open_view(X, ids=ids, name=record.name, asked=asked)
    view = open_view(X, ids=ids, name=record.name, known=record.columns, source=record.source)
    was, said = record.source or Source(), view.source or Source()
    if (said.layer, said.use_rep) not in ((was.layer, was.use_rep), (None, None)):
        part = f"layer={said.layer!r}" if said.layer is not None else f"use_rep={said.use_rep!r}"
        raise ValueError(f"View {record.name!r} was folded with another part than {part}.")
    return view
