"""Commands that change a state file: init, add, extend, forget, undo, restore."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewfold._console import note, progress, say, tell
from viewfold._file import File
from viewfold.cli._clusters import PROVISIONAL, choose, scores
from viewfold.cli._engine import works
from viewfold.cli._files import (
    ids_option,
    is_there,
    known_view,
    load_model,
    read_views,
    reading_options,
)
from viewfold.cli._options import (
    AUTO,
    Categories,
    Clusters,
    Columns,
    Drop,
    DryRun,
    Empty,
    EmptyMarkers,
    EmptyRows,
    Gaps,
    Id,
    Json,
    Keep,
    Method,
    MinShared,
    MissingCells,
    NoId,
    Private,
    Seed,
    Similar,
    SimilarIds,
    State,
    Strict,
    Unconnected,
    ViewName,
    Wait,
)
from viewfold.cli._reading import file_argument, reads
from viewfold.registry import METHODS

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator
    from viewfold.view import View


def init(
    state: State,
    clusters: Annotated[int, typer.Option("--clusters", "-k", help="How many clusters.", min=1)],
    method: Method = "viewfold",
    seed: Seed = 0,
    private: Private = False,
    keep: Keep = None,
    as_json: Json = False,
) -> None:
    """Make an empty state file."""
    from viewfold.store.models import save

    if is_there(state):
        raise ValueError(f"{state} exists. Choose another name, or add views to it.")
    save(_new_model(clusters, method, seed, private), state, keep=1 if keep is None else keep)
    tell(
        as_json,
        {"file": str(state), "method": method, "clusters": clusters, "private": private},
        f"{state} is ready for its first view: viewfold add {state} FILE --id COLUMN",
    )


@works
@reads
def add(
    state: State,
    file: Annotated[File, file_argument("The view: a file, folder or glob.")],
    id_column: Id = None,
    no_id: NoId = False,
    similar_ids: SimilarIds = Similar.refuse,
    min_shared: MinShared = None,
    empty_rows: EmptyRows = Empty.absent,
    missing_cells: MissingCells = Gaps.accept,
    columns: Columns = None,
    drop: Drop = None,
    categories: Categories = None,
    empty_markers: EmptyMarkers = None,
    strict: Strict = False,
    view: ViewName = None,
    clusters: Clusters = None,
    unconnected: Unconnected = None,
    method: Method = "viewfold",
    seed: Seed = 0,
    private: Private = False,
    keep: Keep = None,
    wait: Wait = 60,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Fold a view into a state file, which is made if it is not there, or more rows of a known one.

    The view is not needed afterwards. CSV, TSV, Parquet, Arrow, JSON lines, Excel, NumPy, MATLAB,
    AnnData, MuData and Matrix Market files are read; of a file that holds several views, all are
    folded.
    """
    from viewfold.store import edit

    started = perf_counter()
    least = None if min_shared is None else _share(min_shared)
    reading = reading_options(
        empty_rows, missing_cells, columns, drop, categories, empty_markers, strict
    )
    new = None if is_there(state) else _first_model(state, clusters, method, seed, private)
    with progress(f"reading {file}") as step:
        views = read_views(state, file, ids_option(id_column, no_id), view, reading)
        step(f"waiting for {state}")
        opened = edit(state, new=new, keep=keep, wait=wait)
        with _in_memory(state, new) if dry_run else opened as model:
            removed = _set(model, clusters or None, private, unconnected)
            if clusters == AUTO and new is not None:
                model.set_params(n_clusters=min(PROVISIONAL, views[0].shape[0]))
            folds, chosen = [], None
            for one in views:
                step(f"folding {one.name}")
                model.partial_fit(one, similar_ids=similar_ids.value, min_shared=least)
                folds.append(_fold_summary(model, one) | {"missing": one.missing()})
            if clusters == AUTO:
                step("choosing a number of clusters")
                chosen = scores(choose(model))
            step(f"writing {state}")
    seconds = round(perf_counter() - started, 3)
    _tell_added(as_json, state, model, folds, removed, seconds, chosen, dry_run)


def _in_memory(
    state: Path, new: FoldingEstimator | None
) -> AbstractContextManager[FoldingEstimator]:
    """Return the model that would be changed; nobody has to wait for it."""
    return nullcontext(load_model(state) if new is None else new)


def _tell_added(
    as_json: bool,
    state: Path,
    model: FoldingEstimator,
    folds: list[dict[str, Any]],
    removed: list[str],
    seconds: float,
    chosen: list[dict[str, Any]] | None,
    dry_run: bool,
) -> None:
    for fold in folds:
        say(_fold_line(fold))
        _note_replaced(state, fold, model.n_samples_, dry_run)
    if removed:
        said = "would be" if dry_run else "are"
        say(f"encoders of {', '.join(removed)} {said} removed, also from states to return to.")
    end = f" This was a dry run: {state} is as it was." if dry_run else ""
    tell(
        as_json,
        {
            "file": str(state),
            "folds": folds,
            "clusters": model.n_clusters,
            "private": not model.keep_encoders,
            "encoders_removed": removed,
            **({} if chosen is None else {"suggestion": chosen}),
            "seconds": seconds,
            "dry_run": dry_run,
        },
        f"{model.n_samples_:,} samples in {model.n_clusters} clusters; views folded: "
        f"{len(model.views_)} ({seconds:.1f} s).{end}",
    )


@works
@reads
def extend(
    state: State,
    file: Annotated[File, file_argument("Rows with a known view's columns.")],
    id_column: Id = None,
    similar_ids: SimilarIds = Similar.refuse,
    view: ViewName = None,
    keep: Keep = None,
    wait: Wait = 60,
    as_json: Json = False,
) -> None:
    """Add new samples of a known view. Nobody else moves."""
    from viewfold.store import edit

    with progress(f"reading {file}"), edit(state, keep=keep, wait=wait) as model:
        name, before = known_view(model, view, file), model.n_samples_
        model.extend(file, ids=id_column, view=name, similar_ids=similar_ids.value)
    samples = model.n_samples_
    new = samples - before
    tell(
        as_json,
        {"file": str(state), "view": name, "new": new, "samples": samples},
        f"{new:,} samples of {name} are new; {samples:,} in all.",
    )


@works
def forget(
    state: State,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Samples.")] = None,
    listed: Annotated[
        Path | None, typer.Option("--from", help="A text file with one id per line.")
    ] = None,
    wait: Wait = 60,
    as_json: Json = False,
) -> None:
    """Remove samples for good: from the state, its history, and all it can be returned to."""
    from viewfold.store import forget as remove

    gone = list(ids or [])
    if listed is not None:
        gone += [line.strip() for line in listed.read_text().splitlines() if line.strip()]
    if not gone:
        raise ValueError("Whom? Give ids, or a file of ids with --from.")
    model = remove(state, gone, wait=wait)
    n = len(set(gone))
    tell(
        as_json,
        {"file": str(state), "forgotten": n, "samples": model.n_samples_},
        f"{n:,} sample{' is' if n == 1 else 's are'} forgotten; {model.n_samples_:,} are left.",
    )


Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def undo(
    state: State,
    entry: Annotated[
        int | None,
        typer.Option("--entry", help="The entry of the log to take back.", metavar="N"),
    ] = None,
    yes: Yes = False,
    wait: Wait = 60,
    as_json: Json = False,
) -> None:
    """Take the last change back, if it is not a forget; again, the one before it.

    As many changes can be taken back as states were kept (--keep of add and init).
    """
    from viewfold.store._kept import undoing

    _, taken = undoing(state, entry)
    said = " and ".join(map(str, taken)) or "the last change, made before there was a log"
    _ask(yes, f"take back {said}")
    from viewfold.store import undo as take_back

    # What was named is what is taken back, whatever another writer did in the meantime.
    model = take_back(state, entry=taken[0].entry if taken else None, wait=wait)
    undone = [event.entry for event in taken]
    _tell_returned(as_json, state, model, {"undone": undone}, f"Took back {said}.")


def restore(
    state: State,
    entry: Annotated[
        int,
        typer.Option("--entry", help="Return to the state after this entry.", metavar="N", min=0),
    ],
    yes: Yes = False,
    wait: Wait = 60,
    as_json: Json = False,
) -> None:
    """Return to the state after an entry of the log; status lists those that were kept.

    The state of now is kept in turn: undo takes a restore back.
    """
    from viewfold.core.log import undoable
    from viewfold.store._kept import restoring

    held, wanted = restoring(state, entry)
    said = " and ".join(map(str, undoable(held.log, wanted.log or ()))) or "nothing"
    _ask(yes, f"return to the state after entry {entry}, which takes back {said}")
    from viewfold.store import restore as return_to

    model = return_to(state, entry=entry, wait=wait)
    _tell_returned(as_json, state, model, {"entry": entry}, f"Returned to entry {entry}.")


def _ask(yes: bool, what: str) -> None:
    """Go on only if that is what is wanted."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ValueError(f"This would {what}. Say --yes if it should.")
    if not _agreed(f"{what[0].upper()}{what[1:]}?"):
        say("Nothing was changed.")
        raise typer.Exit(1)


def _tell_returned(
    as_json: bool, state: Path, model: FoldingEstimator, facts: dict[str, Any], line: str
) -> None:
    names = [record.name for record in model.views_] if hasattr(model, "labels_") else []
    samples = model.n_samples_ if names else 0
    tell(
        as_json,
        {"file": str(state), **facts, "views": names, "samples": samples},
        f"{line} {state} is at {samples:,} samples and the views {', '.join(names) or '(none)'}.",
    )


def _first_model(
    state: Path, clusters: int | None, method: str, seed: int, private: bool
) -> FoldingEstimator:
    if clusters is None:
        raise ValueError(f"There is no {state} yet. To make it, say how many --clusters.")
    return _new_model(clusters or PROVISIONAL, method, seed, private)


def _new_model(clusters: int, method: str, seed: int, private: bool) -> FoldingEstimator:
    known = {name.lower(): name for name in METHODS.names()}
    if method.lower() not in known:
        raise ValueError(f"There is no method {method!r}. Known are: {', '.join(known)}.")
    kind = METHODS[known[method.lower()]]
    return kind(n_clusters=clusters, random_state=seed, keep_encoders=not private)


def _share(text: str) -> float:
    """Return a number of samples, or a part of them for a percentage."""
    number = text.strip().removesuffix("%")
    try:
        return float(number) / 100 if text.strip().endswith("%") else int(number)
    except ValueError:
        raise ValueError(
            f"--min-shared {text!r} is no number. Give one such as 100, or 50%."
        ) from None


def _fold_summary(model: FoldingEstimator, view: View) -> dict[str, Any]:
    """Return who came, who was there before, and who moved."""
    came, seen = model.delivery_, model.seen_[view.name]
    n, d = view.shape
    return {
        "view": came.view,
        "samples": n,
        "features": d,
        "new": came.n_new,
        "shared": came.n_late,
        "corrected": came.n_corrected,
        "same": came.n_same,
        "empty": view.n_empty,
        "unseen": int((~seen).sum()),
        "moved": came.n_moved,
        "update": came.update,
    }


def _fold_line(fold: dict[str, Any]) -> str:
    if fold["update"] and fold["same"] == fold["samples"]:
        same = "{view}: all {samples:,} samples are known as they are; nothing changed."
        return same.format(**fold)
    empty = "{empty:,} rows of zeros left out, " if fold["empty"] else ""
    counts = "{new:,} new, {shared:,} shared, "
    if fold["update"]:
        counts = "more rows of it: {new:,} new, {shared:,} known that lacked it, "
        counts += "{corrected:,} corrected, {same:,} unchanged, "
    said = (
        f"{{view}}: {{samples:,}} samples × {{features:,}} features; {counts}"
        f"{empty}{{unseen:,}} known ones not in it; {{moved:,}} changed cluster."
    ).format(**fold)
    return said + _missing_line(fold["missing"])


def _note_replaced(state: Path, fold: dict[str, Any], n: int, dry_run: bool) -> None:
    """Ask whether a delivery is the right one, if it replaces more than half of its view."""
    had = n - fold["unseen"] - fold["new"] - fold["shared"]
    if 2 * fold["corrected"] > had:
        back = "" if dry_run else f" If that is wrong: viewfold undo {state}."
        note(
            f"{fold['corrected']:,} of the {had:,} samples that were in {fold['view']} have another"
            f" row of it now: ids and rows may not belong together.{back}"
        )


def _missing_line(missing: dict[str, Any]) -> str:
    """Say how many cells were missing, and in which columns most of them."""
    if not missing["cells"]:
        return ""
    worst = ", ".join(f"{name} {100 * part:.3g} %" for name, part in missing["worst"].items())
    return (
        f" {missing['cells']:,} cells are missing ({100 * missing['share']:.3g} % of all features),"
        f" in {missing['samples']:,} samples and {missing['features']:,} columns (most: {worst})."
    )


def _set(
    model: FoldingEstimator, clusters: int | None, private: bool, unconnected: Unconnected
) -> list[str]:
    """Set parameters before a fold; return the views whose encoders it will remove."""
    if unconnected is not None:
        if "unconnected" not in model.get_params():
            raise ValueError(f"{type(model).__name__} does not know --unconnected: leave it out.")
        model.set_params(unconnected=unconnected.value)
    if clusters is not None:
        model.set_params(n_clusters=clusters)
    if private:
        model.set_params(keep_encoders=False)
    views = model.views_ if hasattr(model, "labels_") and not model.keep_encoders else ()
    return [record.name for record in views if record.encoder is not None]


def _agreed(question: str) -> bool:
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:  # no answer is no
        return False
