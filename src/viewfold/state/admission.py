"""Checks on the ids and the name of a view, before a state is changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold._util.messages import with_suggestion
from viewfold._util.types import Ids, as_python
from viewfold.data.ids import Similar, alike, check_kind, check_rule, match_similar
from viewfold.data.view import View
from viewfold.rows import Engine, RowSet, engine_of
from viewfold.rows.normal import IdKind, kind_of, normal_forms
from viewfold.state.state import State

SHOWN = 3


def admit(
    engine: Engine,
    state: State,
    view: View,
    similar_ids: Similar = "refuse",
    min_shared: float | None = None,
) -> View:
    """Check the ids of a view before it is folded or its samples are added."""
    check_rule(similar_ids)
    view = placed(engine, view)
    if view.length is None and state.length is None:
        ids = _matched_ids(engine, state, view, similar_ids)
        view = view if ids is view.ids else replace(view, ids=ids)
    if min_shared is not None:
        _check_shared(engine, state, view, min_shared)
    return view


def placed(engine: Engine, view: View) -> View:
    """Return a view whose rows the engine holds, so that they can be joined with known samples."""
    ids, rows = engine.partition(view.ids, replace(view.rows, fill=None))
    return replace(view, ids=ids, rows=replace(rows, fill=view.rows.fill))


def _matched_ids(engine: Engine, state: State, view: View, rule: Similar) -> RowSet:
    """Return the ids of a view, after similar ones were refused or matched."""
    if view.ids.dtype != object and (not state.views or state.ids.dtype != object):
        return view.ids  # whole numbers are the same or not
    kind = kind_of_known(engine, state) if state.views else None
    label, rows = f"View {view.name!r}", _row_numbers(view)

    def matched(ids: Ids, others: Ids) -> Ids:
        known, similar = np.zeros(ids.size, bool), ids[:0]
        if others.size:
            known = pd.Index(others).get_indexer(pd.Index(ids)) >= 0
            if rule != "new" and not known.all():
                similar = alike(others, normal_forms(ids[~known]))
        return match_similar(ids, known, similar, kind, rule, label, rows)

    return engine.match(matched, view.ids, state.ids)


def _row_numbers(view: View) -> NDArray[np.intp] | None:
    """Return how errors number the rows of a view; None if they are not in their order."""
    if not isinstance(view.ids, np.ndarray):
        return None
    return np.arange(view.ids.size) if view.rows.present is None else view.rows.present


def kind_of_known(engine: Engine, state: State) -> IdKind:
    """Return whether the known ids are whole numbers, texts, or both."""
    kinds = engine.reduce(
        lambda block: {kind_of(block)} if len(block) else set(),
        state.ids,
        combine=lambda a, b: a | b,
    )
    kind: IdKind = kinds.pop() if len(kinds) == 1 else "both"
    return kind


def _check_shared(engine: Engine, state: State, view: View, least: float) -> None:
    part = isinstance(least, float)
    if isinstance(least, bool | np.bool_) or least < 0 or (part and least > 1):
        raise ValueError(
            f"min_shared={as_python(least)!r}: expected a whole number or a part from 0 to 1."
        )
    shared = engine.join(state.ids, view.ids).n_shared if state.views else 0
    if shared < (least * view.ids.size if part else least):
        asked = f"{100 * least:g} % of them" if part else f"{least:,}"
        raise ValueError(
            f"View {view.name!r}: {shared:,} of its {view.ids.size:,} samples are known, fewer "
            f"than asked for ({asked}). Are the ids those of the other views? Nothing was changed."
        )


def check_fits(engine: Engine, state: State, view: View) -> None:
    """Refuse a view whose name is taken, or whose rows cannot be matched with known samples."""
    if not state.views:
        return
    if view.name in state.names:
        raise ValueError(
            f"A view named {view.name!r} was folded already (views: {state.names}). "
            "Give the new one a name of its own."
        )
    check_samples(engine, state, view)


def check_samples(engine: Engine, state: State, view: View) -> None:
    """Refuse a view whose rows cannot be matched with known samples."""
    if view.length is not None and state.length is None:
        column = _known_column(engine, state, view)
        said = f"View {view.name!r} has no ids, but the samples folded so far do. "
        said += how_to_give_ids()
        if column is None:
            raise ValueError(said)
        said += f" Column {column!r} holds ids that are known: ids={column!r}."
        raise with_suggestion(ValueError(said), ids=column)
    if state.length is not None and view.length not in (None, state.length):
        raise ValueError(
            f"View {view.name!r} has {view.length} rows and no ids, but earlier views had "
            f"{state.length} rows. Which rows belong together is not known: give ids "
            f"(ids=…), or mark samples that a view lacks with rows "
            "without any value."
        )
    check_kind_of_ids(engine, state, view)


def how_to_give_ids() -> str:
    """Say where ids may be."""
    return "Pass ids= with one id per row, or a DataFrame whose index holds them."


def check_kind_of_ids(engine: Engine, state: State, view: View) -> None:
    """Refuse ids of another kind than the known ones: they are fixed by the first view."""
    if state.length is not None and view.ids.dtype == object:
        first = engine.head(view.ids, 1).tolist()[0]
        raise ValueError(
            f"View {view.name!r} has ids like {first!r}, but the samples folded so far are "
            "known by row number. Give ids from the first view on, or row numbers here."
        )
    example, kind = engine.head(state.ids, 1).tolist()[0], kind_of_known(engine, state)
    label = f"View {view.name!r}"

    def check(ids: Ids) -> int:
        check_kind(kind, example, ids, label)
        return 0

    engine.reduce(check, view.ids)


def _known_column(engine: Engine, state: State, view: View) -> str | None:
    """Name the column that holds known ids, if there is one."""
    if view.features is None or state.ids.dtype == object:
        return None
    top = engine.head(view.rows, 100)
    for j, name in enumerate(view.features):
        held = np.unique(top[:, j])
        whole = held.astype(np.int64)
        if held.size < len(top) or not np.array_equal(whole, held):
            continue
        if engine.join(state.ids, engine.partition(whole)[0]).n_shared == held.size:
            return name
    return None


def meant(state: State, unknown: Sequence[int | str]) -> str:
    """Return a question that names the known samples whose ids are almost these; empty if none."""
    forms = normal_forms(np.array(unknown, dtype=object))
    engine = engine_of(state.ids)
    found = engine.reduce(lambda block: alike(block, forms), state.ids, combine=np.append)
    if not found.size:
        return ""
    shown = ", ".join(repr(name) for name in found[:SHOWN].tolist())
    more = ", …" if found.size > SHOWN else ""
    return f" {'Is' if found.size == 1 else 'Are'} {shown}{more} meant?"
