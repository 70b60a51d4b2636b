"""Who may come in: a look at the ids and the name of a view before a state is changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from viewfold.core.state import State
from viewfold.engine import Engine
from viewfold.ids import Similar, check_kind, settle
from viewfold.view import View


def admit(
    engine: Engine,
    state: State,
    view: View,
    similar_ids: Similar = "refuse",
    min_shared: float | None = None,
) -> View:
    """Look at who is in a view before it is folded or its samples are added.

    Parameters
    ----------
    engine : Engine
        Where the samples are.
    state : State
        The state so far.
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
    if view.length is None and state.length is None:
        known = engine.collect(state.ids) if state.views else None
        ids = settle(known, view.ids, similar_ids, f"View {view.name!r}", view.rows.present)
        view = view if ids is view.ids else replace(view, ids=ids)
    if min_shared is not None:
        _check_shared(engine, state, view, min_shared)
    return view


def _check_shared(engine: Engine, state: State, view: View, least: float) -> None:
    part = isinstance(least, float)
    if least < 0 or (part and least > 1) or isinstance(least, bool):
        raise ValueError(f"min_shared must be a whole number or a part from 0 to 1, got {least!r}.")
    shared = engine.join(state.ids, engine.scatter(view.ids)).n_shared if state.views else 0
    if shared < (least * view.ids.size if part else least):
        asked = f"{100 * least:g} % of them" if part else f"{least:,}"
        raise ValueError(
            f"View {view.name!r}: {shared:,} of its {view.ids.size:,} samples are known, fewer "
            f"than asked for ({asked}). Are the ids those of the other views? Nothing was changed."
        )


def check_fits(engine: Engine, state: State, view: View) -> None:
    """Refuse a view whose name is taken, or whose samples cannot be told from its row numbers."""
    if not state.views:
        return
    if view.name in state.names:
        raise ValueError(
            f"A view named {view.name!r} was folded already (views: {state.names}). "
            "Give the new one a name of its own."
        )
    if view.length is not None and state.length is None:
        raise ValueError(
            f"View {view.name!r} has no ids, but the samples folded so far do. "
            "Pass ids= with one id per row, or a DataFrame whose index holds them."
            + _known_column(engine, state, view)
        )
    if state.length is not None and view.length not in (None, state.length):
        raise ValueError(
            f"View {view.name!r} has {view.length} rows and no ids, but earlier views had "
            f"{state.length} rows. Which rows belong together is not known: pass ids=, or mark "
            "samples that a view lacks with rows of NaN."
        )
    check_kind_of_ids(engine, state, view)


def check_kind_of_ids(engine: Engine, state: State, view: View) -> None:
    """Refuse ids of another kind than the known ones: they are fixed by the first view."""
    if state.length is not None and view.ids.dtype == object:
        raise ValueError(
            f"View {view.name!r} has ids like {view.ids[0]!r}, but the samples folded so far are "
            "known by row number. Pass ids from the first view on, or row numbers here."
        )
    check_kind(engine.collect(state.ids), view.ids, f"View {view.name!r}")


def _known_column(engine: Engine, state: State, view: View) -> str:
    """Name the column that holds known ids, if there is one."""
    known = engine.collect(state.ids)
    if view.features is None or known.dtype == object:
        return ""
    top = view.rows.X[:100]
    for j, name in enumerate(view.features):
        if np.isin(top[:, j], known).all() and np.unique(top[:, j]).size == len(top):
            return f" Column {name!r} holds ids that are known: pass ids={name!r} (--id {name})."
    return ""
