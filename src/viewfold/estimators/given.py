"""Which known views rows belong to that come later: one of them, or several in a list or a dict.

Whatever has a name of its own (a file, a `View`, an entry of a dict) belongs to the view of that
name; what has none belongs to a view by its place in the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from viewfold._util.arguments import which_view
from viewfold._util.file import ReadOptions
from viewfold.data.features import known_options
from viewfold.data.opening import (
    ids_of_each,
    listed_views,
    named_views,
    open_path,
    own_name,
)
from viewfold.estimators.results import known_view
from viewfold.state.state import ViewRecord


class Given(NamedTuple):
    """Rows of a known view, as the user holds them, and what is said of their ids."""

    record: ViewRecord
    rows: Any
    ids: Any


def given(
    views: Sequence[ViewRecord], X: Any, ids: Any, view: str | int | None
) -> tuple[list[Given], bool]:
    """Return the rows of each known view that X holds, and whether X is a collection of views."""
    wanted = _by_own_name(views, X) if view is None else known_view(views, view)
    X = open_path(X, ids, _options(views, wanted))
    found = _collected(X, views)
    if found is None:
        return [Given(wanted or known_view(views, None), X, ids)], False
    names, held = found
    of_each = ids_of_each(ids, names)
    if view is not None and wanted is not None:
        at = which_view(names, wanted.name, "X holds")
        return [Given(wanted, held[at], of_each[at])], False
    parts = []
    for name, rows, of_view in zip(names, held, of_each, strict=True):
        parts += _of_entry(views, name, rows, of_view, named=named_views(X) is not None)
    names = [part.record.name for part in parts]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"View {twice!r} is given twice. Give each view once.")
    return parts, True


def _collected(X: Any, views: Sequence[ViewRecord]) -> tuple[list[str], list[Any]] | None:
    """Return names and rows of a collection of views; None if X is one view."""
    found = named_views(X)
    if found is not None:
        return list(found), list(found.values())
    held = listed_views(X)
    if held is None:
        return None
    own = [own_name(rows) for rows in held]
    if len(own) == len(views) == 1:
        return [views[0].name], held
    if None in own and len(own) != len(views):
        raise ValueError(
            f"There are {len(own)} views in the list, but {len(views)} are known: "
            f"{[record.name for record in views]}. Pass a dict {{view: X, …}}."
        )
    return [name or views[i].name for i, name in enumerate(own)], held


def _of_entry(
    views: Sequence[ViewRecord], name: str, rows: Any, ids: Any, *, named: bool
) -> list[Given]:
    """Return an entry of a collection; a file in a list may hold several views."""
    record = _by_name(views, name)
    several = None
    if not named:
        rows = open_path(rows, ids, _options(views, record))
        several = named_views(rows)
    held = {name: rows} if several is None else several
    return [Given(_by_name(views, key) or _unknown(views, key), X, ids) for key, X in held.items()]


def _unknown(views: Sequence[ViewRecord], name: str) -> ViewRecord:
    raise ValueError(
        f"There is no view {name!r}; the model has folded {[record.name for record in views]}. "
        f"Say which view it is: a dict {{view: X, …}}, or view=… for each file."
    )


def _by_name(views: Sequence[ViewRecord], name: str | None) -> ViewRecord | None:
    return next((record for record in views if record.name == name), None)


def _by_own_name(views: Sequence[ViewRecord], X: Any) -> ViewRecord | None:
    """Return the view that a file or `View` belongs to by its name; the only one, if there is."""
    return views[0] if len(views) == 1 else _by_name(views, own_name(X))


def _options(views: Sequence[ViewRecord], record: ViewRecord | None) -> ReadOptions:
    """Return how to read rows of a known view, or of any of them if it is not known of which."""
    each = {one.name: known_options(one.columns, one.source) for one in views}
    return replace(ReadOptions() if record is None else each[record.name], views=each)
