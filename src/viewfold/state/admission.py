"""Checks on the ids and the name of a view, before a state is changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from viewfold._util.arguments import warn_user
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
    *,
    only_new: bool = False,
) -> View:
    """Check the ids of a view; those that are matched get the spelling that is known.

    With `only_new`, its samples are about to be added to others: rows need not be theirs.
    """
    check_rule(similar_ids)
    view = placed(engine, view)
    kind: IdKind | None = None
    if state.views:
        kinds = engine.reduce(
            lambda block: {kind_of(block)} if len(block) else set(),
            state.ids,
            combine=lambda a, b: a | b,
        )
        kind = kinds.pop() if len(kinds) == 1 else "both"
    if view.length is None and state.length is None:
        view = replace(view, ids=_matched_ids(engine, state, view, similar_ids, kind))
    if kind is not None and not only_new:
        _check_rows(engine, state, view)
    if kind is not None and (view.length is None or not only_new):
        _check_kind(engine, state, view, kind)
    return view


def placed(engine: Engine, view: View) -> View:
    """Return a view whose rows the engine holds, so that they can be joined with known samples."""
    ids, rows = engine.partition(view.ids, replace(view.rows, fill=None))
    return replace(view, ids=ids, rows=replace(rows, fill=view.rows.fill))


def _matched_ids(
    engine: Engine, state: State, view: View, rule: Similar, kind: IdKind | None
) -> RowSet:
    """Return the ids of a view, after similar ones were refused or matched."""
    if view.ids.dtype != object and (not state.views or state.ids.dtype != object):
        return view.ids  # whole numbers are the same or not
    label, rows = f"View {view.name!r}", None
    width = 0
    if kind == "texts" and view.ids.dtype != object and rule != "new":
        width = _width_with_zeros(engine, state.ids)
    if width:
        example = str(engine.head(view.ids, 1).tolist()[0])
        warn_user(
            f"{label}: ids such as {example} are taken for {example.zfill(width)}, as the known "
            "ones are written: spreadsheets drop zeros at the front."
        )
    if isinstance(view.ids, np.ndarray):  # else rows are not in their order, and have no numbers
        rows = np.arange(view.ids.size) if view.rows.present is None else view.rows.present

    def matched(ids: Ids, others: Ids) -> Ids:
        if width:
            ids = np.array([str(one).zfill(width) for one in ids.tolist()], dtype=object)
        known, similar = np.zeros(ids.size, bool), ids[:0]
        if others.size:
            known = pd.Index(others).get_indexer(pd.Index(ids)) >= 0
            if rule != "new" and not known.all():
                similar = alike(others, normal_forms(ids[~known]))
        return match_similar(ids, known, similar, kind, rule, label, rows)

    return engine.match(matched, view.ids, state.ids)


def _width_with_zeros(engine: Engine, ids: RowSet) -> int:
    """Return how many digits all ids have, if they are digits and some begin with zeros; else 0."""

    def look(block: Ids) -> set[tuple[int, bool]]:
        return {(len(one) if one.isdecimal() else 0, one[:1] == "0") for one in block.tolist()}

    found = engine.reduce(look, ids, combine=lambda a, b: a | b)
    widths = {width for width, _ in found}
    return widths.pop() if len(widths) == 1 and any(zero for _, zero in found) else 0


def check_shared(view: View, n_shared: int, least: float | None) -> None:
    """Refuse a view of which too few samples are known: a number (int), or a share (float)."""
    if least is None:
        return
    part = isinstance(least, float)
    if isinstance(least, bool | np.bool_) or least < 0 or (part and least > 1):
        raise ValueError(
            f"min_shared={as_python(least)!r}: expected a whole number or a part from 0 to 1."
        )
    n = view.shape[0]
    if n_shared < (least * n if part else least):
        asked = f"{100 * least:g} % of them" if part else f"{least:,}"
        raise ValueError(
            f"View {view.name!r}: {n_shared:,} of its {n:,} samples are known, fewer "
            f"than asked for ({asked}). Are the ids those of the other views? Nothing was changed."
        )


def _check_rows(engine: Engine, state: State, view: View) -> None:
    """Refuse a view without ids whose rows cannot be matched with known samples."""
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
            f"{state.length} rows. Which rows belong together is not known: give ids (ids=…), or "
            "mark samples that a view lacks with rows without any value."
        )


def how_to_give_ids() -> str:
    return "Pass ids= with one id per row, or a DataFrame whose index holds them."


def _check_kind(engine: Engine, state: State, view: View, kind: IdKind) -> None:
    """Refuse ids of another kind than the known ones: they are fixed by the first view."""
    if state.length is not None and view.ids.dtype == object:
        first = engine.head(view.ids, 1).tolist()[0]
        raise ValueError(
            f"View {view.name!r} has ids like {first!r}, but the samples folded so far are "
            "known by row number. Give ids from the first view on, or row numbers here."
        )
    example, label = engine.head(state.ids, 1).tolist()[0], f"View {view.name!r}"

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
