"""Fold the views of a file into a state: one transaction, or a try of which nothing is written."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from viewfold._util.arguments import warn_user, which_view
from viewfold._util.file import File, ReadOptions
from viewfold._util.messages import suggestion_of
from viewfold.app.states import empty_state, last_entry, transfers_since
from viewfold.app.summaries import AUTO, list_scores
from viewfold.app.words import counted
from viewfold.errors import DeliveryWarning
from viewfold.state.registry import METHODS

if TYPE_CHECKING:
    from viewfold.app.quarantine import Quarantine
    from viewfold.data import View
    from viewfold.estimators import FoldingEstimator
    from viewfold.estimators.selection import Suggestion
    from viewfold.state.state import State
    from viewfold.state.updates import Delivery

SEVERAL = (".npz", ".mat", ".h5mu", ".xlsx")  # files that may hold several views

Step = Callable[[str], None]  # hears what is done next


@dataclass(frozen=True)
class FoldOptions:
    """How a file is to be folded; what the options of ``viewfold add`` say."""

    ids: str | bool | None = None  # the column of ids, False if there is none
    view: str | None = None  # its name; of a file of several, which one
    options: ReadOptions = field(default_factory=ReadOptions)
    similar_ids: Literal["refuse", "match", "new"] = "refuse"
    min_shared: float | None = None
    clusters: int | None = None  # `AUTO` for the number that stands out; a new state needs it
    only_new: bool = False  # as `extend` does: add new samples, refuse known ones
    refresh: bool = False  # the file holds all rows of a known view, which they replace
    unconnected: str | None = None
    method: str = "viewfold"
    seed: int = 0
    private: bool = False
    keep: int | None = None
    wait: float = 60
    dry_run: bool = False
    # Write rows of a known view that are not as before to this file, and fold the others.
    quarantine: Path | None = None


@dataclass(frozen=True)
class Added:
    """What folding a file did, or would do."""

    model: FoldingEstimator
    before: int  # the last entry of the log before it
    folds: list[dict[str, Any]]
    removed: list[str]  # views that lost their encoders
    chosen: Suggestion | None
    seconds: float
    dry_run: bool
    quarantine: Quarantine | None = None

    def count_moved(self) -> tuple[int, int]:
        """Return how many samples that were known before have another cluster, and of how many."""
        before = transfers_since(self.model._engine, self.model._fitted, self.before)
        if before is None:
            return 0, 0
        known = before.before >= 0
        moved = known & (before.before != before.after)
        return int(before.count[moved].sum()), int(before.count[known].sum())

    def facts(self) -> dict[str, Any]:
        """Return what ``viewfold add --json`` prints."""
        return {
            "folds": self.folds,
            "clusters": self.model.n_clusters,
            "private": not self.model.keep_encoders,
            "encoders_removed": self.removed,
            **({} if self.chosen is None else {"suggestion": list_scores(self.chosen)}),
            "seconds": self.seconds,
            "dry_run": self.dry_run,
            **({} if self.quarantine is None else {"quarantine": self.set_aside()}),
        }

    def set_aside(self) -> list[dict[str, Any]]:
        """Return which rows were set aside, for programs."""
        if (kept := self.quarantine) is None:
            return []
        return [
            {"view": name, "file": str(kept.path(name)), "samples": view.shape[0]}
            for name, view in kept.rows.items()
        ]

    def notes(self, state: Path) -> list[str]:
        """Return questions whether a delivery is the right one, and what it asks for."""
        found = []
        for one in self.set_aside():
            assert self.quarantine is not None
            into = (
                f"{one['samples']:,} rows {'would go' if self.dry_run else 'are'} in {one['file']}"
            )
            found.append(f"{self.quarantine.why[one['view']]} {into}, and not folded.")
        for fold in self.folds:
            name, corrected = fold["view"], fold["corrected"]
            had = self.model.n_samples_ - fold["unseen"] - fold["new"] - fold["shared"]
            if 2 * corrected > had:
                back = "" if self.dry_run else f" If that is wrong: viewfold undo {state}."
                found.append(
                    f"{corrected:,} of the {had:,} samples that were in {name} have another"
                    f" row of it now: ids and rows may not belong together.{back}"
                )
            if fold["novel"]:
                more = self.model.n_clusters_ + 1
                found.append(
                    f"{counted(fold['novel'], 'sample looks', 'samples look')} like a group of"
                    f" their own; recluster with n_clusters={more}?"
                )
            known = {record.name: set(record.features or ()) for record in self.model.views_}
            before = list(known)[: list(known).index(name)]
            same = [one for one in before if known[one] and known[one] == known[name]]
            if same and not fold["update"]:
                found.append(
                    f"{name} has the columns of {same[0]}, and counts as another view. If it is"
                    f" more rows or corrections of {same[0]}, add it with view={same[0]!r}, once"
                    f" it is taken back (viewfold undo {state}) if it was folded."
                )
        return found


def add(state: Path, file: File, how: FoldOptions, step: Step) -> Added:
    """Fold the views of a file into a state, which is made if it is not there."""
    from viewfold.estimators.selection import choose_again, choose_first
    from viewfold.store import store_of
    from viewfold.store.models import editing, loading, model_of

    started, clusters, store = perf_counter(), how.clusters, store_of(state)
    with ExitStack() as stack:
        model: Any
        new = loaded = None
        if how.only_new or how.refresh or store.exists():
            loaded = stack.enter_context(loading(store))
        else:
            new = _first_model(state, how)
        views = _read_views(state, file, how, None if loaded is None else loaded.state)
        chosen, choosing = None, "choosing a number of clusters"
        if clusters == AUTO and new is not None:  # so that the first step is in these clusters
            step(choosing)
            chosen = choose_first(views, similar_ids=how.similar_ids, min_shared=how.min_shared)
            new.set_params(n_clusters=chosen.best)
        aside = None
        if how.quarantine is not None:
            from viewfold.app.quarantine import Quarantine

            aside = Quarantine(how.quarantine, (state, file))
        step(f"waiting for {state}")
        if not how.dry_run:
            changing = editing(state, new=new, keep=how.keep, wait=how.wait, loaded=loaded)
            model = stack.enter_context(changing)
        else:  # nobody has to wait for it
            model = new if loaded is None else model_of(loaded.state)
        before = last_entry(model)
        removed = _set_parameters(model, how)
        folds = [_fold(model, view, step, how, aside) for view in views]
        if clusters == AUTO and new is None:
            step(choosing)
            chosen = choose_again(model)
        if aside is not None and not how.dry_run:
            aside.write(state)  # first: rows are neither folded nor lost if it fails
        step(f"writing {state}")
    seconds = round(perf_counter() - started, 3)
    return Added(model, before, folds, removed, chosen, seconds, how.dry_run, aside)


def _read_views(state: Path, file: File, how: FoldOptions, known: State | None) -> list[View]:
    """Return the views of a file; one of them, if it is named, or only rows of a known view count.

    What is known of a view tells how its file is read, if the file may hold one that is known.
    """
    from viewfold.app.inspection import compare
    from viewfold.data.features import with_known_batch
    from viewfold.data.files import name_of
    from viewfold.estimators.known import read_views_to_fold
    from viewfold.state.updates import no_encoder

    records, name, options = () if known is None else known.views, how.view, how.options
    names = [record.name for record in records]
    if how.only_new:  # as named, named like the file, or the only one
        if not names:
            raise empty_state(state)
        name = name_of(file) if name is None and name_of(file) in names else name
        name = names[which_view(names, name, f"{state} holds")]
    if how.refresh:
        name = names[which_view(names, name or name_of(file), f"{state} holds")]
        options = with_known_batch(options, records[names.index(name)].source)
    if name is not None or not str(file).lower().endswith(SEVERAL):
        called = name or name_of(file)
        if called not in names or how.refresh:  # it is read as a new view
            records = ()
        elif known is not None and not known.params["keep_encoders"]:
            raise no_encoder(called)

    def read(ids: str | bool | None) -> list[View]:
        return read_views_to_fold(records, file, ids=ids, name=name, me=str(state), options=options)

    try:
        return read(how.ids)
    except ValueError as error:
        found = suggestion_of(error).get("ids")
        sure = isinstance(found, str) and not getattr(error, "choices", ())
        if how.ids is not None or not sure:
            raise
        views = read(found)
        samples = [None if known is None else compare(known, view) for view in views]
        if any(one is not None and not one.n_known + one.n_similar for one in samples):
            raise  # none of them is known: it may be the wrong column
        warn_user(f"{file}: the ids are those of column {found!r}; ids=… names another one.")
        return views


def _first_model(state: Path, how: FoldOptions) -> FoldingEstimator:
    if how.clusters is None:
        raise ValueError(
            f"There is no {state} yet. To make it, say how many clusters: n_clusters=…."
        )
    known, method = {name.lower(): name for name in METHODS.names()}, how.method.lower()
    if method not in known:
        raise ValueError(f"There is no method {how.method!r}. Known are: {', '.join(known)}.")
    return METHODS[known[method]](
        n_clusters=how.clusters or 2,  # `AUTO` is chosen before the first fold
        random_state=how.seed,
        keep_encoders=not how.private,
    )


def _set_parameters(model: FoldingEstimator, how: FoldOptions) -> list[str]:
    """Set parameters before a fold; return the views whose encoders it will remove."""
    unconnected = how.unconnected
    if unconnected is not None and "unconnected" not in model.get_params():
        method = type(model).__name__
        raise ValueError(f"{method} does not know {unconnected=}: leave it out.")
    said = {"unconnected": unconnected, "n_clusters": how.clusters or None}
    said["keep_encoders"] = False if how.private else None
    model.set_params(**{name: value for name, value in said.items() if value is not None})
    views = model.views_ if hasattr(model, "views_") and not model.keep_encoders else ()
    return [record.name for record in views if record.encoder is not None]


def _fold(
    model: FoldingEstimator, view: View, step: Step, how: FoldOptions, aside: Quarantine | None
) -> dict[str, Any]:
    """Fold a view; return who came, who was there before, and who moved."""
    from viewfold.rows import engine_of
    from viewfold.state.updates import Delivery

    step(f"folding {view.name}")
    rest: View | None = view
    came = Delivery(str(view.name), 0, 0)
    for _ in range(3):  # a delivery, the part of it that is not odd, or nothing
        try:
            came = _deliver(model, rest, how) if rest is not None else came
            break
        except DeliveryWarning as why:
            if aside is None:
                raise
            from viewfold.app.quarantine import split

            # If the rest is odd, too, it is not about some rows: all are set aside.
            known = {one.name: one for one in model.views_}[why.view]
            rest, odd = split(view, known, why.comparison if rest is view else None)
            aside.put(odd, why)
    found = came.comparison
    n = 0 if rest is None else rest.shape[0]
    view = rest if rest is not None else view
    state = model._fitted
    at = state.names.index(came.view)
    unseen = engine_of(state.seen).reduce(lambda seen: (~seen[:, at]).sum(), state.seen)
    return {
        "view": came.view,
        "samples": n,
        "features": view.shape[1],
        "new": came.n_new,
        "shared": came.n_late,
        "corrected": came.n_corrected,
        "same": came.n_same,
        "empty": view.n_empty,
        "unseen": int(unseen),
        "moved": came.n_moved,
        "others_moved": came.n_others,
        "learned": came.learned,
        "scaled": None if came.update else state.log[-1].note,
        "novel": came.n_novel,
        "update": came.update,
        "missing": view.missing(),
        "distance": None if found is None else round(found.distance.total, 3),
        "findings": [asdict(one) for one in (found.findings if found is not None else ())],
    }


def _deliver(model: FoldingEstimator, view: View, how: FoldOptions) -> Delivery:
    """Fold rows; refuse those of a known view that are not as before, if that is asked for."""
    with warnings.catch_warnings():
        if how.options.strict or how.quarantine is not None:
            warnings.simplefilter("error", DeliveryWarning)
        if how.only_new:
            model.extend(view, view=view.name, similar_ids=how.similar_ids)
        elif how.refresh:
            same, least = how.similar_ids, how.min_shared
            model.refresh(view, view=str(view.name), similar_ids=same, min_shared=least)
        else:
            model.partial_fit(view, similar_ids=how.similar_ids, min_shared=how.min_shared)
    came: Delivery = model.delivery_
    return came


# -- what people are told of a fold


def fold_line(fold: dict[str, Any]) -> str:
    if not fold["samples"]:
        return "{view}: all rows are set aside; nothing changed.".format(**fold)
    if fold["update"] and fold["same"] == fold["samples"]:
        same = "{view}: all {samples:,} samples are known as they are; nothing changed."
        return same.format(**fold)
    counts = "{new:,} new, {shared:,} shared"
    if fold["update"]:
        counts = "more rows of it: {new:,} new, {shared:,} known that lacked it, "
        counts += "{corrected:,} corrected, {same:,} unchanged"
    counts += ", {empty:,} rows of zeros left out" if fold["empty"] else ""
    if fold["unseen"]:
        unseen = counted(fold["unseen"], "known sample is", "known samples are")
        counts += f"; {unseen} missing from this view"
    said = "{view}: {samples:,} samples × {features:,} features; " + counts
    moved = "{moved:,} changed cluster"
    if fold["update"] and fold["moved"]:
        moved += " ({others_moved:,} of them without a row in it)"
    if fold["learned"]:
        moved += "; the view was learned again"
    if fold["scaled"]:
        moved += "; {scaled}"
    line, missing = f"{said}; {moved}.".format(**fold), fold["missing"]
    if not missing["cells"]:
        return line
    worst = ", ".join(f"{name} {100 * part:.3g} %" for name, part in missing["worst"].items())
    cells = counted(missing["cells"], "cell is", "cells are")
    samples = counted(missing["samples"], "sample", "samples")
    columns = counted(missing["features"], "column", "columns")
    return (
        f"{line} {cells} missing ({100 * missing['share']:.3g} % of all features),"
        f" in {samples} and {columns} (most: {worst})."
    )
