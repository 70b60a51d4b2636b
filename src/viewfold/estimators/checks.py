"""What estimators refuse: targets that are something else, features of another view."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd

from viewfold.data import View
from viewfold.data.opening import is_view_like
from viewfold.data.view import columns_for
from viewfold.state.state import ViewRecord


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


def _other_names(name: str, unseen: list[str], missing: list[str]) -> str:
    lines = ["The feature names should match those that were passed during fit."]
    for title, names in (
        ("Feature names unseen at fit time:", unseen),
        ("Feature names seen at fit time, yet now missing:", missing),
    ):
        if names:
            lines += [title, *(f"- {column}" for column in names[:5])]
            lines += ["- ..."] if len(names) > 5 else []
    if not unseen and not missing:
        lines += [
            "Feature names must be in the same order as they were in fit: some occur twice, and "
            "columns cannot be put in order by name."
        ]
    return "\n".join([*lines, f"(View {name!r}: pass the columns it was folded with.)"])


def check_features(view: View, record: ViewRecord, me: str) -> None:
    """Refuse rows whose features are not those that a view was folded with, in any order."""
    d = view.shape[1]
    if (view.features is None) != (record.features is None):
        has, had = ("has", "without") if view.features else ("does not have valid", "with")
        warnings.warn(
            f"X {has} feature names, but {me} was fitted {had} feature names "
            f"(view {record.name!r}).",
            stacklevel=5,
        )
    if view.features and record.features and set(view.features) != set(record.features):
        unseen = sorted(set(view.features) - set(record.features))
        missing = sorted(set(record.features) - set(view.features))
        raise ValueError(_other_names(record.name, unseen, missing))
    if d != record.n_features:
        raise ValueError(
            f"View {record.name!r}: X has {d} features, but {me} is expecting "
            f"{record.n_features} features as input. Give the columns the view was folded with."
        )
    twice = view.features is not None and len(set(view.features)) < d
    if record.features and twice and view.features != record.features:
        raise ValueError(_other_names(record.name, [], []))


def in_order(view: View, record: ViewRecord) -> View:
    """Return rows with their columns in the order of the view that they belong to.

    Columns are put in order by name, block by block as they are read, with all that is known of
    them.
    """
    if not view.features or not record.features or view.features == record.features:
        return view
    place = {name: j for j, name in enumerate(view.features)}
    order = np.array([place[name] for name in record.features], np.intp)
    rows, gaps = view.rows, view.gaps
    if gaps is not None:
        gaps = gaps.of_columns(order)
        rows = replace(rows, fill=gaps)
    rows = replace(rows, columns=order if rows.columns is None else rows.columns[order])
    columns = None if view.columns is None else columns_for(view.columns, record.features)
    return replace(view, rows=rows, gaps=gaps, features=record.features, columns=columns)
