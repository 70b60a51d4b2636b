"""Columns that are not numbers become features: indicators of categories, days, months, weekdays.

What became of each column of a table is remembered (`Column`), so that later rows get the same
features.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from viewfold._util.arguments import warn_user
from viewfold._util.file import FILE_OPTIONS, ReadOptions
from viewfold._util.messages import format_names, with_suggestion
from viewfold._util.types import Array, Matrix
from viewfold.data.arrays import Spool
from viewfold.data.cleaning import refuse_disguised
from viewfold.data.codes import (
    DAYS,
    LONGEST_LEVEL,
    MONTH,
    MOST_LEVELS,
    WEEKDAY,
    features_of_cells,
    month_of,
    tell_unknown,
    weekday_of,
)
from viewfold.data.view import Column, features_of, tell_columns
from viewfold.rows import Rows
from viewfold.rows.linalg import pick_columns

if TYPE_CHECKING:
    from viewfold.data.codes import Codes

FEW_LEVELS = 50  # a text column with more is free text, unless the user calls it a category
KEPT = (*FILE_OPTIONS, "empty_rows", "missing_cells")  # what may be said of later rows
LONG = f"texts of more than {LONGEST_LEVEL} characters"


def learn(
    names: Sequence[str],
    codes: Mapping[str, Codes],
    options: ReadOptions,
    dropped: Sequence[str],
    label: str,
) -> tuple[tuple[Column, ...], dict[str, str]]:
    """Return what becomes of each column, and why some are left out unasked."""
    columns, why = [Column(name, "out") for name in dropped], {}
    for name in names:
        if name in codes and codes[name].kind == "category" and not codes[name].declared:
            refuse_disguised(name, codes[name].levels, label)
        column, reason = _column(name, codes[name], options) if name in codes else (None, "")
        columns.append(column or Column(name, "number"))
        if reason:
            why[name] = reason
    return tuple(columns), why


def _column(name: str, codes: Codes, options: ReadOptions) -> tuple[Column, str]:
    if codes.kind == "number":
        return Column(name, "number"), ""
    if codes.kind == "date":
        parts = [DAYS]
        days = np.array(sorted(codes.days), "datetime64[D]")
        parts += MONTH if np.unique(month_of(days)).size > 1 else ()
        parts += WEEKDAY if np.unique(weekday_of(days)).size > 1 else ()
        return Column(name, "date", tuple(parts), float(min(codes.days, default=0))), ""
    given = options.categories.get(name)
    if given:
        return Column(name, "category", tuple(map(str, given))), ""
    levels = tuple(sorted(codes.levels))
    said = name in options.categories or name == options.batch
    left_out = "" if said else _reason(codes)
    if said and codes.too_many:
        left_out = LONG if len(levels) < MOST_LEVELS else f"more than {len(levels):,} levels"
    return (Column(name, "out"), left_out) if left_out else (Column(name, "category", levels), "")


def _reason(codes: Codes) -> str:
    """Return why a text column is no category; nothing if it is one."""
    n_levels = len(codes.levels)
    if not codes.n_cells:
        return "no value"
    if n_levels == 1 and not codes.too_many:
        return "the same text in all rows" + " that have one" * bool(codes.n_missing)
    if not codes.repeats:
        return "texts that are all different"
    if codes.too_many and n_levels <= FEW_LEVELS:  # long texts are not remembered
        return LONG
    if n_levels > FEW_LEVELS:
        return f"more than {FEW_LEVELS} different texts"
    if n_levels > 10 and 2 * n_levels > codes.n_cells:
        return f"{n_levels} different texts in {codes.n_cells} rows"
    return ""


def learn_columns(
    names: Sequence[str],
    codes: Mapping[str, Codes],
    options: ReadOptions,
    dropped: Sequence[str],
    label: str,
) -> tuple[Column, ...]:
    """Return what becomes of each column; say which are left out, or refuse that if `strict`."""
    columns, why = learn(names, codes, options, dropped, label)
    if why:
        shown = ", ".join(f"{name!r} ({reason})" for name, reason in list(why.items())[:5])
        more = f", … ({len(why)} in all)" if len(why) > 5 else ""
        told = f"{label}: columns that are no features: {shown}{more}. "
        first = next(iter(why))
        ways = f"A category is named with categories={[first]!r}; "
        ways += "dates are understood as 2024-12-31."
        if options.strict:
            said = f"{told}Leave them out with drop={list(why)!r}. {ways}"
            raise with_suggestion(ValueError(said), drop=list(why))
        warn_user(f"{told}They are left out. {ways}")
    if not any(column.features for column in columns):
        raise ValueError(f"{label}: no column is a feature. Leave the view out.")
    return columns


def known_options(
    known: Sequence[Column] | None,
    remembered: ReadOptions | None,
    options: ReadOptions | None = None,
) -> ReadOptions:
    """Return how to read more rows of a view: as its first rows, whatever columns are named."""
    said = {one: getattr(options or ReadOptions(), one) for one in KEPT}
    return ReadOptions(
        **said,
        empty_markers=None if remembered is None else remembered.empty_markers,
        strict=options is not None and options.strict,
        as_is=(options is not None and options.as_is)
        or (remembered is not None and remembered.as_is),
        cleaning=remembered.cleaning if remembered else {},
        kinds={column.name: column.kind for column in known or ()},
        remembered=remembered,
        rename={**(remembered.rename if remembered else {}), **(options.rename if options else {})},
    )


def with_new_names(source: ReadOptions | None, delivered: ReadOptions | None) -> ReadOptions | None:
    """Return how a view is read, with the new names of columns that a delivery came with."""
    if delivered is None or not delivered.rename:
        return source
    return replace(source or ReadOptions(), rename=delivered.rename)


def with_known_batch(options: ReadOptions, source: ReadOptions | None) -> ReadOptions:
    """Return how a known view is read anew: with the batch that it had, unless another is named."""
    if source is None or options.batch is not None or "batch" in options.by_view:
        return options
    return replace(options, batch=source.batch)


def as_features(
    parts: Any, options: ReadOptions, known: tuple[Column, ...] | None, label: str
) -> tuple[Matrix, tuple[str, ...] | None, tuple[Column, ...] | None]:
    """Return the matrix of features, their names, and what became of the columns."""
    names, codes = parts.names, parts.codes
    kinds = options.kinds or {column.name: column.kind for column in known or ()}
    if kinds and names is not None:
        there = options.known_names((*names, *parts.dropped), label)
        tell_columns(kinds, there, label, strict=options.strict)
        names = there[: len(names)]
        codes = dict(zip(options.known_names(codes, label), codes.values(), strict=True))
        if known is None:  # all are numbers, which are put in order as they are
            return parts.rows, names, None
    if known is None:
        if not parts.codes and not parts.dropped:
            return parts.rows, names, None
        known = learn_columns(names, parts.codes, options, parts.dropped, label)
    elif names is None:
        return parts.rows, None, known  # an array: its features are taken to be those of the view
    features = features_of(known)
    check_no_twins(features, label)
    X, unknown = expand(parts.rows, names, codes, known)
    remembered = options.remembered
    tell_unknown(unknown, label, remembered.batch if remembered else None)
    return X, features, known


def check_no_twins(features: Sequence[str], label: str) -> None:
    if len(set(features)) < len(features):
        twice = Counter(features).most_common(1)[0][0]
        raise ValueError(f"{label}: two features are called {twice!r}. Rename or drop a column.")


def check_same(known: Sequence[Column], columns: Sequence[Column], label: str) -> None:
    """Refuse columns that were made features in another way than those of a known view.

    Days since another first day would have the names of the features, and other values.
    """
    had, has = (
        {one.name: (one.kind, set(one.levels), one.first) for one in each if one.kind != "out"}
        for each in (known, columns)
    )
    other = [name for name in had if name in has and had[name] != has[name]]
    if other:
        raise ValueError(
            f"{label} is a View, and what became of its {format_names(other, 5)} is not what "
            "became of that column when the view was folded (levels, or the day from which days "
            "are counted). Pass the table itself: it is read as the first one was."
        )


def expand(
    X: Array,
    names: Sequence[str],
    codes: Mapping[str, Codes],
    columns: Sequence[Column],
) -> tuple[Array, dict[str, int]]:
    """Return the features of rows whose cells were coded, and how many cells are of no known level.

    A column that is not there is missing cells. The features of rows in a file are in a file.
    """
    kept = [column for column in columns if column.kind != "out"]
    place = {name: j for j, name in enumerate(names)}
    at = np.array([place.get(column.name, -1) for column in kept])
    unknown: dict[str, int] = {}

    def blocks() -> Iterator[Array]:
        for _, block in Rows(X).blocks():
            cells = pick_columns(block, at)
            yield np.column_stack(
                [
                    features_of_cells(cells[:, j], column, codes.get(column.name), unknown)
                    for j, column in enumerate(kept)
                ]
            )

    if not isinstance(X, np.memmap):
        return np.vstack(list(blocks())), unknown
    spool = Spool()
    for made in blocks():
        spool.append(made, made.dtype)
    return spool.matrix(), unknown
