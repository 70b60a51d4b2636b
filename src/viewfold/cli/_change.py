"""Commands that change a state file: init, add, extend, forget, undo, restore."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from viewfold._util.file import File
from viewfold._util.visible import visible
from viewfold.app.folding import Added, Wanted, fold_line
from viewfold.app.folding import add as fold
from viewfold.app.numbers import evidence
from viewfold.app.states import is_there, new_model, returned
from viewfold.cli import _options as opt
from viewfold.cli._engine import works
from viewfold.cli._files import ids_option, known_view, reading_options
from viewfold.cli._moved import Limit, share
from viewfold.cli._reading import file_argument, reads
from viewfold.cli.command import PATH, Whole, argument
from viewfold.cli.console import note, progress, say, tell

if TYPE_CHECKING:
    from viewfold.data.ids import Similar
    from viewfold.estimators import FoldingEstimator


@opt.state
@click.option(
    "--clusters", "-k", metavar="N", type=Whole(min=1), required=True, help="How many clusters."
)
@opt.method
@opt.seed
@opt.private
@opt.keep
@opt.as_json
def init(
    state: Path,
    clusters: int,
    method: str,
    seed: int,
    private: bool,
    keep: int | None,
    as_json: bool,
) -> None:
    """Make an empty state file."""
    from viewfold.store.models import save

    if is_there(state):
        raise ValueError(f"{state} exists. Choose another name, or add views to it.")
    save(new_model(clusters, method, seed, private), state, keep=1 if keep is None else keep)
    tell(
        as_json,
        {"file": str(state), "method": method, "clusters": clusters, "private": private},
        f"{state} is ready for its first view: viewfold add {state} FILE --id COLUMN",
    )


@opt.state
@file_argument("The view: a file, folder or glob.")
@opt.id_column
@opt.no_id
@opt.similar_ids
@opt.min_shared
@opt.max_moved
@opt.rows_and_columns
@opt.view
@opt.clusters()
@click.option(
    "--unconnected",
    type=click.Choice(["pair", "separate"]),
    help="Pair clusters of groups that no view connects by size (pair), or not (separate).",
)
@opt.method
@opt.seed
@opt.private
@opt.keep
@opt.wait
@click.option("--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
@opt.as_json
@reads
@works
def add(
    state: Path,
    file: File,
    id_column: str | None,
    no_id: bool,
    similar_ids: Similar,
    min_shared: str | None,
    max_moved: str | None,
    view: str | None,
    clusters: int | None,
    unconnected: str | None,
    method: str,
    seed: int,
    private: bool,
    keep: int | None,
    wait: float,
    dry_run: bool,
    as_json: bool,
    **rows_and_columns: Any,
) -> None:
    """Fold a view into a state file, which is made if it is not there, or more rows of a known one.

    The view is not needed afterwards. CSV, TSV, Parquet, Arrow, JSON lines, Excel, NumPy, MATLAB,
    AnnData, MuData and Matrix Market files are read; of a file that holds several views, all are
    folded.
    """
    limit = Limit(max_moved)
    wanted = Wanted(
        ids=ids_option(id_column, no_id),
        view=view,
        reading=reading_options(**rows_and_columns),
        similar_ids=similar_ids,
        min_shared=None if min_shared is None else share(min_shared, "--min-shared"),
        clusters=clusters,
        unconnected=unconnected,
        method=method,
        seed=seed,
        private=private,
        keep=keep,
        wait=wait,
        dry_run=dry_run,
    )
    with progress(f"reading {file}") as step:
        added = fold(state, file, wanted, step, limit.begin)
    _tell_added(as_json, state, added, limit.facts(added.model))
    limit.end()


def _tell_added(as_json: bool, state: Path, added: Added, facts: dict[str, Any]) -> None:
    model, dry_run = added.model, added.dry_run
    if added.chosen is not None:
        say(evidence(added.chosen))
    for one in added.folds:
        say(fold_line(one))
    for line in added.notes(state):
        note(line)
    if added.removed:
        said = "would be" if dry_run else "are"
        say(
            f"encoders of {', '.join(added.removed)} {said} removed, also from states to return to."
        )
    end = f" This was a dry run: {state} is as it was." if dry_run else ""
    tell(
        as_json,
        {"file": str(state), **added.facts(), **facts},
        f"{model.n_samples_:,} samples in {model.n_clusters} clusters; views folded: "
        f"{len(model.views_)} ({added.seconds:.1f} s).{end}",
    )


@opt.state
@file_argument("Rows with a known view's columns.")
@opt.id_column
@opt.similar_ids
@opt.view
@opt.keep
@opt.wait
@opt.as_json
@reads
@works
def extend(
    state: Path,
    file: File,
    id_column: str | None,
    similar_ids: Similar,
    view: str | None,
    keep: int | None,
    wait: float,
    as_json: bool,
) -> None:
    """Add new samples of a known view. Nobody else moves."""
    from viewfold.store import edit

    with progress(f"reading {file}"), edit(state, keep=keep, wait=wait) as model:
        name, before = known_view(model, view, file), model.n_samples_
        model.extend(file, ids=id_column, view=name, similar_ids=similar_ids)
    samples = model.n_samples_
    new = samples - before
    tell(
        as_json,
        {"file": str(state), "view": name, "new": new, "samples": samples},
        f"{new:,} samples of {name} are new; {samples:,} in all.",
    )


@opt.state
@argument("ids", metavar="ID", nargs=-1, help="Samples.")
@click.option("--from", "listed", type=PATH, help="A text file with one id per line.")
@opt.wait
@opt.as_json
@works
def forget(
    state: Path, ids: tuple[str, ...], listed: Path | None, wait: float, as_json: bool
) -> None:
    """Remove samples for good: from the state, its history, and all it can be returned to."""
    from viewfold.store import forget as remove

    gone = list(ids)
    if listed is not None:
        gone += _ids_in(listed)
    if not gone:
        raise ValueError("No ids given. Give ids, or a file of ids with --from.")
    model = remove(state, gone, wait=wait)
    n = int(model.log_["n_forgotten"].iloc[-1])  # one sample may be written in two ways
    tell(
        as_json,
        {"file": str(state), "forgotten": n, "samples": model.n_samples_},
        f"{n:,} sample{' is' if n == 1 else 's are'} forgotten; {model.n_samples_:,} are left.",
    )


def _ids_in(listed: Path) -> list[str]:
    """Return the ids in a text file, one per line, in whatever encoding views may have."""
    from viewfold.data import FileError
    from viewfold.data.encoding import encoding_of

    try:
        lines = listed.read_text(encoding_of(str(listed))).split("\n")
    except (FileError, UnicodeError) as error:  # a view has --encoding, ids have not
        raise ValueError(
            f"{listed} is not text that can be read. Save it as UTF-8, one id per line."
        ) from error
    return [line.strip() for line in lines if line.strip()]


@opt.state
@click.option("--entry", metavar="N", type=int, help="The entry of the log to take back.")
@opt.yes
@opt.wait
@opt.as_json
def undo(state: Path, entry: int | None, yes: bool, wait: float, as_json: bool) -> None:
    """Take the last change back, if it is not a forget; again, the one before it.

    As many changes can be taken back as states were kept (--keep of add and init).
    """
    from viewfold.store.kept import undoing

    _, taken = undoing(state, entry)
    said = " and ".join(map(str, taken)) or "the last change, made before there was a log"
    _ask(yes, f"take back {said}")
    from viewfold.store import undo as take_back

    # What was named is what is taken back, whatever another writer did in the meantime.
    model = take_back(state, entry=taken[0].entry if taken else None, wait=wait)
    undone = [event.entry for event in taken]
    _tell_returned(as_json, state, model, {"undone": undone}, f"Took back {said}.")


@opt.state
@click.option(
    "--entry",
    metavar="N",
    type=Whole(min=0),
    required=True,
    help="Return to the state after this entry.",
)
@opt.yes
@opt.wait
@opt.as_json
def restore(state: Path, entry: int, yes: bool, wait: float, as_json: bool) -> None:
    """Return to the state after an entry of the log; status lists those that were kept.

    The state of now is kept in turn: undo takes a restore back.
    """
    from viewfold.state.log import undoable
    from viewfold.store.kept import restoring

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
        raise click.exceptions.Exit(1)


def _tell_returned(
    as_json: bool, state: Path, model: FoldingEstimator, facts: dict[str, Any], line: str
) -> None:
    now = returned(model)
    names, samples = now["views"], now["samples"]
    tell(
        as_json,
        {"file": str(state), **facts, **now},
        f"{line} {state} is at {samples:,} samples and the views {', '.join(names) or '(none)'}.",
    )


def _agreed(question: str) -> bool:
    try:
        return click.confirm(visible(question), err=True)
    except click.Abort:  # no answer is no
        return False
