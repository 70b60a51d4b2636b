"""What commands and the page say of files, clusters and samples, as plain values and texts."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewfold._util.file import File
from viewfold.app.words import for_cli, option

if TYPE_CHECKING:
    import pandas as pd

    from viewfold._util.table import Table
    from viewfold.app.inspection import Inspection
    from viewfold.estimators import FoldingEstimator
    from viewfold.estimators.selection import Suggestion

DIGITS = 4
AUTO = 0  # stands for the number of clusters that stands out most


# -- files


def compose_command(
    found: Inspection,
    file: File,
    state: Path,
    *,
    new: bool,
    choice: Mapping[str, Any] | None = None,
) -> str | None:
    """Return the command that folds a view, with one of the options to choose from.

    None if no command folds it, or if nobody has chosen yet.
    """
    if found.refused or (found.undecided and choice is None):
        return None
    open_choices = [one for _, choices in found.undecided for one in choices]
    said = {
        name: value for name, value in found.said().items()
        if not any(one.get(name) == value for one in open_choices)
    } | dict(choice or {})  # fmt: skip
    named = said.pop("view", None)
    if named is None and found.samples is not None and found.samples.fits:
        # More rows of a view that is known, under another file's name.
        known = found.samples.fits
        named = known[0] if found.name not in known else None
    words = ["viewfold add", shlex.quote(str(state)), shlex.quote(os.fspath(file))]
    words += [option("rename", {old: new}) for old, new in said.pop("rename", {}).items()]
    words += [option(name, value) for name, value in said.items() if name != "sheet"]
    sheets = found.source.options.sheet if isinstance(found.source, File) else None
    words += [option("sheet", sheet) for sheet in sheets or []]
    words += [option("view", named)] if named is not None else []
    if new:
        words.append(option("n_clusters", "auto"))
    return " ".join(words)


def summarize_inspection(found: Inspection, line: str | None) -> dict[str, Any]:
    samples = found.samples
    return {
        "view": found.name,
        "rows": found.n_rows,
        "ids": {
            "column": found.id_column,
            "proposed": "ids" in found.proposed,
            "candidates": list(found.id_candidates),
            "given": found.has_ids,
        },
        "columns": {
            "numbers": len(found.of_kind("number")),
            "booleans": [one.name for one in found.of_kind("boolean")],
            "categories": {one.name: list(one.levels) for one in found.of_kind("category")},
            "dates": [one.name for one in found.of_kind("date")],
            "left_out": {one.name: one.why or "as asked" for one in found.of_kind("out")},
        },
        "missing": {
            "cells": found.n_missing,
            "share": found.n_missing / max(found.n_cells, 1),
            "worst": {one.name: one.n_missing for one in found.worst()},
        },
        "absent_rows": found.n_absent,
        "zero_rows": found.n_zero,
        "empty": found.n_empty,
        "suspects": {f"{value:g}": list(names) for value, names in found.suspects.items()},
        "written": dict(found.written),
        "scale": found.scale,
        "samples": None
        if samples is None
        else {
            "known": samples.n_known,
            "new": samples.n_new,
            "nearly_known": samples.n_similar,
            "examples": [list(pair) for pair in samples.examples],
            "in_view": samples.n_in_view,
            "fits": list(samples.fits),
        },
        "cleaned": list(found.cleaned),
        "undecided": [
            {"about": for_cli(said), "choices": [dict(one) for one in choices]}
            for said, choices in found.undecided
        ],
        "problems": [for_cli(one) for one in found.problems],
        "refused": for_cli(found.refused) or None,
        "notes": [for_cli(one) for one in found.notes],
        "command": line,
    }


# -- clusters and samples


def explain_sample(
    model: FoldingEstimator, sample: str, view: str | None, top: int
) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]], str]:
    """Return why a sample is in its cluster: facts, rows of tables, and a text that says it."""
    name: int | str = sample
    ids = set(model.ids_.tolist())
    if sample not in ids and sample.removeprefix("-").isdecimal() and int(sample) in ids:
        name = int(sample)  # samples have numbers
    why = model.explain(name, view=view, top=top)
    facts: dict[str, Any] = {"id": why.id, "cluster": why.cluster}
    facts |= {"next_cluster": why.next_cluster, "confidence": round(why.confidence, DIGITS)}
    facts |= {"hangs_on": why.hangs_on, "without": why.without}
    lists = {"views": rows_of(why.views.reset_index()), "features": rows_of(why.features)}
    return facts, lists, str(why)


def describe_clusters(
    model: FoldingEstimator, cluster: int | None, view: str | None, top: int
) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """Return what makes one cluster, or each: facts, and rows of tables."""
    found = rows_of(model.features(view=view, cluster=cluster, top=top))
    lists = {"features": found}
    if cluster is None and view is None:
        lists = {"variance": rows_of(model.variance().reset_index()), **lists}
    return {"clusters": model.n_clusters}, lists


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as plain values; what is not told is None."""
    return [
        {str(name): None if value != value else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]


def describe_hanging(hanging: dict[str, Any] | None, *, private: bool) -> str | None:
    """Say how many labels hang on one view; None if no sample has two."""
    if hanging is None:
        lost = "Whether labels hang on one view is not known: a private state has no evidence."
        return lost if private else None
    of = f"of the {hanging['samples']:,} samples with two views or more"
    if not hanging["share"]:
        return f"No label {of} hangs on one view."
    most = sorted(hanging["views"].items(), key=lambda one: -one[1])
    each = ", ".join(f"{name} {100 * share:.2g} %" for name, share in most)
    return f"{100 * hanging['share']:.2g} % of the labels {of} hang on one view: {each}."


def mark_doubtful(table: Table, least: float | None) -> Table:
    """Return a table with -1 for clusters of samples that are less certain than asked for."""
    if least is None:
        return table
    from viewfold.state.clusters import sure_enough

    old = table["cluster"]
    labels = sure_enough(old, table["confidence"], least).astype(old.dtype)
    table = table.with_column("cluster", labels)
    if "name" in table.column_names:  # of a cluster that they are not in any more
        pairs = zip(table["name"], labels.tolist(), strict=True)
        table = table.with_column("name", [name if c >= 0 else None for name, c in pairs])
    return table


# -- the number of clusters


def recluster(
    model: FoldingEstimator, clusters: int | None
) -> tuple[dict[str, Any], Suggestion | None]:
    """Find another number of clusters; return what is told, and why, if it was `AUTO`."""
    from viewfold.estimators.selection import suggest_number

    before = model.n_clusters_
    chosen = suggest_number(model) if clusters == AUTO else None
    model.recluster(chosen.best if chosen is not None else clusters or before)
    moved = int(model.log_["n_moved"].iloc[-1]) if model.n_clusters != before else 0
    facts = {"clusters": model.n_clusters, "before": before, "moved": moved}
    return facts | ({} if chosen is None else {"suggestion": list_scores(chosen)}), chosen


def explain_number(found: Suggestion, now: int | None = None) -> str:
    """Say which number stands out most, and why there are others `now`, if so."""
    others = {k: score for k, score in found.scores.items() if k != found.best}
    said = f"{found.best} clusters stand out most, with a score of {found.scores[found.best]:.2f}"
    if others:
        second = max(others, key=lambda k: others[k])
        said += f" (next is {second}, with {round(others[second], 2) + 0.0:.2f})"
    if not found.stands_out:
        said += ", but hardly more than where there are no clusters at all: look at several"
    if now is None or now == found.best or now not in found.scores:
        return f"{said}."
    return f"{said}. {now} stay: they have {found.scores[now]:.2f}, which is not clearly less."


def list_scores(found: Suggestion) -> list[dict[str, Any]]:
    return [
        {"clusters": k, "score": round(score, 3), "suggested": k == found.best}
        for k, score in found.scores.items()
    ]


def summarize_suggestion(model: FoldingEstimator, found: Suggestion) -> dict[str, Any]:
    return {
        "clusters": model.n_clusters,
        "suggested": found.best,
        "stands_out": found.stands_out,
        "scores": list_scores(found),
    }
