"""Commands that change what a state holds or how it is kept: forget, undo, rename and the like."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from viewfold._util.messages import visible
from viewfold.app import summaries
from viewfold.app.states import check_folded, describe_model
from viewfold.cli import options as opt
from viewfold.cli.command import PATH
from viewfold.cli.console import progress, say, tell


@opt.state
@opt.clusters(required=True)
@opt.keep
@opt.wait
@opt.as_json
@opt.uses_engine
def recluster(state: Path, clusters: int, keep: int | None, wait: float, as_json: bool) -> None:
    """Find another number of clusters in the same embedding.

    Clusters that stay keep their numbers. undo takes it back.
    """
    from viewfold.store import edit

    with progress(f"looking at {state}"), edit(state, keep=keep, wait=wait) as model:
        facts, chosen = summaries.recluster(check_folded(state, model), clusters)
    if chosen is not None:
        say(summaries.explain_number(chosen))
    tell(
        as_json,
        {"file": str(state), **facts},
        f"{model.n_samples_:,} samples in {model.n_clusters} clusters; there were "
        f"{facts['before']}. {facts['moved']:,} have another cluster now.",
    )


@opt.state
@opt.argument("cluster", metavar="CLUSTER", type=opt.Whole(min=0), help="Number of the cluster.")
@opt.argument("name", metavar="NAME", help="Name of the cluster; '' removes it.")
@opt.keep
@opt.wait
@opt.as_json
def rename(
    state: Path, cluster: int, name: str, keep: int | None, wait: float, as_json: bool
) -> None:
    """Give a cluster a name.

    The name is shown wherever the cluster is, and stays with it from fold to fold. undo takes it
    back.
    """
    from viewfold.store import edit

    with edit(state, keep=keep, wait=wait) as model:
        check_folded(state, model).rename(cluster, name)
    tell(
        as_json,
        {"file": str(state), "cluster": cluster, "cluster_names": model.cluster_names_},
        f"Cluster {cluster} is {name!r} now." if name else f"Cluster {cluster} has no name now.",
    )


@opt.state
@opt.argument("ids", metavar="ID", nargs=-1, help="Ids of the samples.")
@click.option("--from", "listed", type=PATH, help="Text file with one id per line.")
@opt.wait
@opt.as_json
@opt.uses_engine
def forget(
    state: Path, ids: tuple[str, ...], listed: Path | None, wait: float, as_json: bool
) -> None:
    """Delete samples for good, from the history and all earlier states as well."""
    from viewfold.store import forget as remove

    gone = [*ids]
    if listed is not None:
        from viewfold.data import FileError
        from viewfold.data.text import encoding_of

        try:
            lines = listed.read_text(encoding_of(str(listed))).split("\n")
        except (FileError, UnicodeError) as error:  # a view has --encoding, ids have not
            raise ValueError(
                f"{listed} is not text that can be read. Save it as UTF-8, one id per line."
            ) from error
        gone += filter(None, map(str.strip, lines))
    if not gone:
        raise ValueError("No ids given. Give ids, or a file of ids with --from.")
    model = remove(state, gone, wait=wait)
    n = int(model.log_["n_forgotten"].iloc[-1])  # one sample may be written in two ways
    tell(
        as_json,
        {"file": str(state), "forgotten": n, "samples": model.n_samples_},
        f"{n:,} sample{' is' if n == 1 else 's are'} forgotten; {model.n_samples_:,} are left.",
    )


@opt.state
@opt.option(
    "--to",
    "ENTRY",
    "Return to the state after this entry of the log; viewfold status lists the entries whose "
    "states the file keeps.",
    type=opt.Whole(min=0),
)
@opt.option(
    "--entry",
    "ENTRY",
    "Take back this entry of the log, and fail if a later one can be taken back.",
    type=int,
)
@opt.flag("--yes -y", "Do not ask for confirmation.")
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
    from viewfold.store import store_of
    from viewfold.store.models import plan_restore, plan_undo, take_back

    if not yes:
        with store_of(state).reading() as contents:
            _, taken = plan_undo(contents, entry) if to is None else plan_restore(contents, to)
        said = " and ".join(map(str, taken))
        if to is not None:
            _confirm(f"return to the state after entry {to}, which takes back {said or 'nothing'}")
        else:
            _confirm(f"take back {said or 'the last change'}")
            # What was named is what is taken back, whatever another writer did in the meantime.
            entry = taken[0].entry if taken else None
    model, taken = take_back(state, entry, wait, to=to)
    line = f"Took back {' and '.join(map(str, taken)) or 'the last change'}."
    line = line if to is None else f"Returned to entry {to}."
    facts: dict[str, Any] = {"file": str(state), "undone": [event.entry for event in taken]}
    facts |= ({} if to is None else {"entry": to}) | (now := describe_model(model))
    views = ", ".join(now["views"]) or "(none)"
    tell(as_json, facts, f"{line} {state} is at {now['samples']:,} samples and the views {views}.")


def _confirm(what: str) -> None:
    """Go on only if that is what is wanted."""
    if not sys.stdin.isatty():
        raise ValueError(f"This would {what}. Say --yes if it should.")
    try:
        agreed = click.confirm(visible(f"{what[0].upper()}{what[1:]}?"), err=True)
    except click.Abort:  # no answer is no
        agreed = False
    if not agreed:
        say("Nothing was changed.")
        raise click.exceptions.Exit(1)


@opt.state
@opt.argument(
    "target",
    metavar="TARGET",
    type=opt.StatePath(),
    help="State to write: a .vf file or a .vfd folder.",
)
@opt.option("--buckets", "N", "Number of buckets of the folder.", type=opt.Whole(min=1))
@opt.wait
@opt.as_json
def convert(state: Path, target: Path, buckets: int | None, wait: float, as_json: bool) -> None:
    """Write a state as a .vfd folder of buckets, as one .vf file, or with other buckets.

    The new state has everything, earlier states included. The old one stays as it is.
    """
    from viewfold.store import convert as write_anew
    from viewfold.store import store_of

    with progress(f"converting {state}"):
        write_anew(state, target, n_buckets=buckets, wait=wait)
    size = store_of(target).size()
    facts = {"file": str(target), "source": str(state), "bytes": size}
    tell(as_json, facts, f"{target} is written ({size / 1e6:.1f} MB).")
