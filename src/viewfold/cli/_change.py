"""Commands that change what a state file knows: add, forget, undo."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from viewfold._util.file import File, ReadOptions
from viewfold._util.visible import visible
from viewfold.app.folding import Added, Wanted, fold_line
from viewfold.app.folding import add as fold
from viewfold.app.numbers import evidence
from viewfold.app.states import returned
from viewfold.cli import _options as opt
from viewfold.cli._engine import works
from viewfold.cli._files import ids_option, reading_options
from viewfold.cli._moved import Limit, share
from viewfold.cli._reading import file_argument, reads
from viewfold.cli.command import PATH, Whole, argument, section
from viewfold.cli.console import note, progress, say, tell

if TYPE_CHECKING:
    from viewfold.data.ids import Similar
    from viewfold.estimators import FoldingEstimator


@opt.state
@file_argument("File, folder or glob with the view.")
@opt.id_column
@opt.view
@opt.clusters()
@click.option(
    "--only-new",
    is_flag=True,
    help="Add new samples of a known view, and refuse the file if it has a known sample. No other "
    "sample changes its cluster.",
)
@opt.private
@click.option("--dry-run", is_flag=True, help="Say what would change, and write nothing.")
@opt.as_json
@opt.rows_and_columns
@section("Ids", opt.no_id, opt.similar_ids, opt.min_shared)
@section(
    "Clusters",
    opt.max_moved,
    click.option(
        "--unconnected",
        type=click.Choice(["pair", "separate"]),
        help="If no view connects two groups of samples: pair their clusters by size (pair), or "
        "keep them apart (separate).",
    ),
    opt.method,
    opt.seed,
)
@section("State file", opt.keep, opt.wait)
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
    only_new: bool,
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
    """Fold a view, or more rows of a known view, into a state file.

    If there is no state file, add makes it. You do not need the view afterwards. It may be a CSV,
    TSV, Parquet, Arrow, JSON lines, Excel, NumPy, MATLAB, AnnData, MuData or Matrix Market file; if
    a file holds several views, add folds all of them.
    """
    if only_new:
        _check_only_new()
    limit = Limit(max_moved)
    wanted = Wanted(
        ids=ids_option(id_column, no_id),
        view=view,
        options=ReadOptions.of(**reading_options(**rows_and_columns)),
        similar_ids=similar_ids,
        min_shared=None if min_shared is None else share(min_shared, "--min-shared"),
        clusters=clusters,
        only_new=only_new,
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


def _check_only_new() -> None:
    """Refuse options that say something about clusters or known samples, which stay as they are."""
    context = click.get_current_context()
    for one in ("clusters", "private", "min_shared", "unconnected", "method", "seed"):
        if context.get_parameter_source(one) is click.core.ParameterSource.COMMANDLINE:
            flag = f"--{one.replace('_', '-')}"
            raise click.UsageError(f"{flag} and --only-new do not go together. Leave one out.")


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
@argument("ids", metavar="ID", nargs=-1, help="Ids of the samples.")
@click.option("--from", "listed", type=PATH, help="Text file with one id per line.")
@opt.wait
@opt.as_json
@works
def forget(
    state: Path, ids: tuple[str, ...], listed: Path | None, wait: float, as_json: bool
) -> None:
    """Remove samples for good, also from the history and from all earlier states."""
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
@click.option(
    "--to",
    metavar="ENTRY",
    type=Whole(min=0),
    help="Return to the state after this entry of the log; viewfold status lists the entries "
    "whose states the file keeps.",
)
@click.option(
    "--entry",
    metavar="ENTRY",
    type=int,
    help="Take back this entry of the log, and fail if it is not the last one that can be.",
)
@opt.yes
@opt.wait
@opt.as_json
def undo(
    state: Path, to: int | None, entry: int | None, yes: bool, wait: float, as_json: bool
) -> None:
    """Take back the last change, or return to an earlier state.

    Run it again to take back the change before. You can take back as many changes as the file keeps
    earlier states (--keep of viewfold add), but never a forget. With --to, the file keeps the
    present state as well, so that another undo returns to it.
    """
    if to is not None and entry is not None:
        raise ValueError("--to names the state to return to, --entry a change. Choose one.")
    if to is not None:
        _return_to(state, to, yes, wait, as_json)
        return
    from viewfold.store import store_of
    from viewfold.store.models import plan_undo

    with store_of(state).reading() as contents:
        _, taken = plan_undo(contents, entry)
    said = " and ".join(map(str, taken)) or "the last change, made before there was a log"
    _ask(yes, f"take back {said}")
    from viewfold.store import undo as take_back

    # What was named is what is taken back, whatever another writer did in the meantime.
    model = take_back(state, entry=taken[0].entry if taken else None, wait=wait)
    undone = [event.entry for event in taken]
    _tell_returned(as_json, state, model, {"undone": undone}, f"Took back {said}.")


def _return_to(state: Path, entry: int, yes: bool, wait: float, as_json: bool) -> None:
    from viewfold.store import store_of
    from viewfold.store.models import plan_restore

    with store_of(state).reading() as contents:
        _, taken = plan_restore(contents, entry)
    said = " and ".join(map(str, taken)) or "nothing"
    _ask(yes, f"return to the state after entry {entry}, which takes back {said}")
    from viewfold.store import restore

    model = restore(state, entry=entry, wait=wait)
    facts = {"undone": [event.entry for event in taken], "entry": entry}
    _tell_returned(as_json, state, model, facts, f"Returned to entry {entry}.")


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
