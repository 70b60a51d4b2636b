"""Commands that look into a state: status, labels, predict, history, diff, explain and the like."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from viewfold import errors
from viewfold._util.arguments import which_view
from viewfold._util.file import File
from viewfold.app import output as tables
from viewfold.app import summaries
from viewfold.app.states import check_table, load_folded
from viewfold.app.summaries import DIGITS, describe_clusters, explain_sample, mark_doubtful
from viewfold.cli import options as opt
from viewfold.cli.console import (
    complain,
    print_json,
    print_lines,
    print_rows,
    progress,
    say,
    with_notes,
)

Row = dict[str, Any]
# Of a view; in lines of their own.
SINCE = ("rows_since", "share_since", "deliveries_since", "drift", "drifted", "refresh_pays")
# Of the log.
ENTRY = ("entry", "time", "what", "samples", "new", "shared", "corrected", "moved", "novel")
OF_STEP = ("entry", "step", "agreement")
EVENT = ("entry", "step", "kind", "said", "survival")


# -- samples


@opt.state
@opt.option(
    "--least-certain",
    "N",
    "Print only the N least certain samples, each with its next cluster.",
    type=opt.Whole(min=1),
)
@opt.min_confidence
@opt.delivers
def labels(
    state: Path, least_certain: int | None, min_confidence: float | None, output: opt.Output
) -> None:
    """Print the cluster and the confidence of every sample."""
    from viewfold.store import queries

    if least_certain is None:
        table = check_table(state, queries.labels(state))
    else:
        table = tables.from_frame(load_folded(state).uncertain(least_certain))
    output.deliver(mark_doubtful(table, min_confidence))


@opt.state
@opt.file_argument("One file or several, with the columns of known views.", several=True)
@opt.id_column
@opt.no_id
@opt.option(
    "--view",
    "NAME",
    "Known view that a file belongs to. Give it once for each file, in the same order. By default,"
    " the view with the name of the file, or the only view.",
    multiple=True,
)
@opt.rename
@opt.min_confidence
@opt.max_novelty
@opt.delivers
@opt.add_options(*opt.FILE_FLAGS.values())
@opt.uses_engine
def predict(
    state: Path,
    files: Sequence[File],
    view: tuple[str, ...],
    min_confidence: float | None,
    output: opt.Output,
    **given: Any,
) -> None:
    """Print the clusters of new samples without adding them.

    With several files, samples are matched by id, and all views of a sample count together.
    """
    ids, of_file, _ = opt.pop_reading(given)
    rows, which = opt.views_of_files(files, view, of_file)
    model = load_folded(state)
    with progress(f"reading {', '.join(map(str, files))}"):
        frame = model.predict_frame(rows, ids=ids, view=which, **given)
    output.deliver(mark_doubtful(tables.from_frame(frame), min_confidence))


@opt.state
@opt.option("--cluster", "N", "Explain this cluster only.", type=int)
@opt.option("--id sample", "ID", "Explain why this sample is in its cluster.")
@opt.option("--view", "NAME", "Use this view only.")
@opt.option(
    "--top", "N", "Number of features to list for each cluster.", type=opt.Whole(min=1), default=10
)
@opt.as_json
def explain(
    state: Path, cluster: int | None, sample: str | None, view: str | None, top: int, as_json: bool
) -> None:
    """Show which features make a cluster, or why a sample is in it.

    Means are in the units of the feature, effects in its standard deviations. See docs/explain.md.
    """
    if cluster is not None and sample is not None:
        raise ValueError("--cluster asks about a cluster, --id about a sample. Choose one.")
    with progress(f"looking at {state}"):
        model = load_folded(state)
        if sample is not None:
            facts, lists, text = explain_sample(model, sample, view, top)
            say(text.partition("\n")[0])
        else:
            facts, lists = describe_clusters(model, cluster, view, top)
    if as_json:
        print_json(with_notes({"file": str(state), **facts, **lists}))
        return
    for i, rows in enumerate(rows for rows in lists.values() if rows):
        click.echo("\n" * (i > 0), nl=False)
        print_rows(
            [
                {n: float(f"{v:.{DIGITS}g}") if isinstance(v, float) else v for n, v in row.items()}
                for row in rows
            ]
        )


# -- states


@opt.state
@opt.flag("--stability", "Cluster resampled rows, and name the clusters that are not found again.")
@opt.as_json
def status(state: Path, stability: bool, as_json: bool) -> None:
    """Show what a state holds, and which earlier states undo can return to."""
    from viewfold.store import queries, store_of

    store = store_of(state)
    with store.reading() as contents:
        found, kept = queries.status(contents), contents.list_kept()
    facts: Row = {"file": str(state), "bytes": store.size(), **found, "states": kept}
    if stability:
        with progress(f"looking at {state}"):
            table = load_folded(state).stability().round({"stability": 3}).reset_index()
        rows = table.astype(object).where(table.notna(), None).to_dict("records")
        facts |= {"stability": rows, "untrusted": table["cluster"][~table["trusted"]].tolist()}
    if as_json:
        print_json(facts)
        return
    print_lines(
        f"{state}: {facts['method']}, {facts['samples']:,} samples in {facts['clusters']} "
        f"clusters, {facts['bytes'] / 1e6:.1f} MB"
    )
    if facts["views"]:
        sizes, names = enumerate(facts["cluster_sizes"]), facts["cluster_names"]
        said = (f"{i} ({names[i]}): {n:,}" if i in names else f"{i}: {n:,}" for i, n in sizes)
        print_lines(f"cluster sizes: {', '.join(said)}")
        # Without counts that are zero throughout, to fit a line.
        gone = [n for n in ("empty", "missing") if not any(row[n] for row in facts["views"])]
        gone += SINCE
        print_rows([{n: row[n] for n in row if n not in gone} for row in facts["views"]])
        for row in facts["views"]:
            if row["rows_since"]:
                print_lines(_since(row))
            if row["refresh_pays"]:
                name, far = next(iter(row["drifted"].items()))
                print_lines(
                    f"a refresh of {row['view']!r} would pay: {100 * row['share_since']:.0f} % of "
                    f"its rows came since it was learned, and {name!r} has shifted by {far:.2g} "
                    "standard deviations"
                )
        if line := summaries.describe_hanging(facts["hanging"], private=facts["private"]):
            print_lines(line)
    else:
        print_lines("no view yet")
    for one in facts["states"]:
        where = "a damaged state" if one["entry"] is None else f"entry {one['entry']}"
        print_lines(f"undo can return to: {where} ({one['bytes'] / 1e6:.1f} MB)")
    if stability:
        print_rows(facts["stability"])
        named = ", ".join(map(str, facts["untrusted"]))
        say(
            f"Not to be trusted, as they are not found again in resampled rows: clusters {named}. "
            "Ask viewfold suggest for another number of clusters."
            if named
            else "All clusters are found again in resampled rows."
        )


def _since(row: Row) -> str:
    """Say how much came of a view since it was learned, and how far its columns have drifted."""
    times = f"{row['deliveries_since']:,} deliver{'y' if row['deliveries_since'] == 1 else 'ies'}"
    worst = ", ".join(f"{name} {far:.2g}" for name, far in row["drifted"].items())
    return (
        f"{row['view']}: {row['rows_since']:,} rows in {times} since it was learned; its columns "
        f"drifted by {row['drift']:.2g} standard deviations"
        + (f" (most: {worst})" if worst else "")
    )


@opt.state
@opt.option("--range between", "A-B", "Numbers to choose from, such as 2-30.")
@opt.delivers
@opt.uses_engine
def suggest(state: Path, between: str | None, output: opt.Output) -> None:
    """Suggest a number of clusters, and show how much each number stands out."""
    from viewfold._util.table import Table
    from viewfold.estimators.selection import suggest_number

    wanted = None if between is None else _range(between)
    with progress(f"looking at {state}"):
        model = load_folded(state)
        found = suggest_number(model, wanted)
    facts = summaries.summarize_suggestion(model, found)
    if output.file is not None:
        output.deliver(Table.of_rows(facts["scores"]))
    elif output.as_json:
        print_json({"file": str(state), **facts})
    else:
        print_rows(facts["scores"])
    if not output.as_json:
        say(f"{summaries.explain_number(found)} {state} has {model.n_clusters}.")


def _range(text: str) -> range:
    first, dash, last = map(str.strip, text.partition("-"))
    if not dash or not first.isdecimal() or not last.isdecimal():
        raise ValueError(f"--range {text!r} is no range. Give one such as 2-30.")
    if int(first) > int(last):
        raise ValueError(
            f"--range {text!r} is reversed: give the smaller number first, {last}-{first}."
        )
    return range(int(first), int(last) + 1)


@opt.state
@opt.as_json
def verify(state: Path, as_json: bool) -> None:
    """Check everything in a state; say what is damaged and what can be saved."""
    from viewfold.store import verify as check_state

    with progress(f"reading {state}"):
        found = check_state(state)
    if as_json:
        facts = {"file": str(state), "whole": found.whole}
        print_json({**facts, "problems": found.problems, "rescue": found.rescue})
    elif found.whole:
        say(f"{state} is whole.")
    else:
        for line in (*found.problems, *found.rescue):
            complain(line)
    if not found.whole:
        raise click.exceptions.Exit(errors.DamagedFileError.exit_code)


# -- changes


@opt.state
@opt.option("--id sample", "ID", "Show the clusters of this sample over time.")
@opt.option("--moved", "VIEW", "Show which samples moved when this view came.")
@opt.flag(
    "--events",
    "Show how far labels agree from step to step, and which clusters were born, merged, split, "
    "vanished, grew or shrank.",
)
@opt.delivers
def history(
    state: Path, sample: str | None, moved: str | None, events: bool, output: opt.Output
) -> None:
    """Print the log: what every change did, and when.

    With --id, the clusters of one sample over time; with --moved, who moved when a view came; with
    --events, what happened to the clusters from step to step (see docs/commands.md).
    """
    from viewfold._util.table import Table
    from viewfold.store import queries

    said = {"--id": sample is not None, "--moved": moved is not None, "--events": events}
    if sum(said.values()) > 1:
        both = " and ".join(name for name, given in said.items() if given)
        raise ValueError(f"{both} ask for different tables. Choose one.")
    if moved is not None:
        which_view(queries.names(state), moved, f"{state} holds")
        output.deliver(queries.movers(state, moved))
        return
    shown: list[Row] = []
    if events:
        rows = [vars(event) | {"said": event.said} for event in queries.events(state)]
        shown = [{name: row[name] for name in EVENT} for row in rows]
    elif sample is not None:
        rows = queries.way(state, sample)
        if not rows:
            raise ValueError(f"Unknown samples: [{sample!r}].")
    else:
        log = queries.log(state)
        # The command line has names of its own for counts; what was done needs fewer columns.
        rows = [{n.removeprefix("n_"): v for n, v in vars(event).items()} for event in log]
        said_by = [row | {"what": event.said} for row, event in zip(rows, log, strict=True)]
        shown = [{name: row[name] for name in ENTRY} for row in said_by]
    if output.file is not None:
        output.deliver(Table.of_rows(rows))
    elif output.as_json:
        print_json(rows)
    elif rows:
        print_rows(_fit_line(shown or rows))
    elif events:
        say(f"Nothing happened to the clusters of {state}, as far as its history tells.")
    else:
        say(f"{state} is empty: nothing was done to it yet.")


def _fit_line(rows: list[Row]) -> list[Row]:
    """Return entries without what none of them has, and times to the minute."""
    kept = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    return [
        {name: f"{row[name]:%Y-%m-%d %H:%M}" if name == "time" else row[name] for name in kept}
        for row in rows
    ]


@opt.argument("old", metavar="OLD.vf", type=opt.StatePath(), help="First state.")
@opt.argument("new", metavar="NEW.vf", type=opt.StatePath(), help="Second state.")
@opt.max_moved
@opt.as_json
def diff(old: Path, new: Path, max_moved: float | None, as_json: bool) -> None:
    """Compare two states: samples, who moved, events and views.

    If one file is a later state of the other, clusters have the same numbers in both; otherwise
    they are matched by the samples that they share.
    """
    from viewfold.explain.events import difference, one_story
    from viewfold.store import queries

    (was, log, views), (now, later, more) = (queries.clustering(path) for path in (old, new))
    both = check_table(old, was), check_table(new, now)
    before, after = ((tables.ids_of(table), table["cluster"]) for table in both)
    found = difference(before, after, same_numbers=one_story(log, later))
    too_many = opt.too_many_moved(max_moved, found.n_moved, found.n_both)
    rand = found.adjusted_rand
    facts: Row = {
        "old": str(old),
        "new": str(new),
        "samples": {"both": found.n_both, "only_old": found.n_gone, "only_new": found.n_new},
        "same_numbers": found.numbers is None,
        "numbers": found.numbers,
        "moved": found.n_moved,
        "share_moved": round(found.n_moved / found.n_both, 4) if found.n_both else None,
        "adjusted_rand": None if rand is None else round(rand, 4),
        "events": [  # between two states there is no step
            {name: value for name, value in vars(one).items() if name not in OF_STEP}
            for one in found.events
        ],
        "views_added": [name for name in more if name not in views],
        "views_gone": [name for name in views if name not in more],
    }
    facts |= {} if max_moved is None else {"too_many_moved": too_many is not None}
    print_json(with_notes(facts)) if as_json else _say_difference(facts)
    opt.exit_if_moved(max_moved, too_many)


def _say_difference(facts: Row) -> None:
    counts = facts["samples"]
    say(
        f"{counts['both']:,} samples are in both, {counts['only_old']:,} only in {facts['old']}, "
        f"{counts['only_new']:,} only in {facts['new']}."
    )
    for what in ("added", "gone"):
        if facts[f"views_{what}"]:
            say(f"views {what}: {', '.join(facts[f'views_{what}'])}")
    if counts["both"]:
        how = "The files have one log, so that clusters have the same numbers"
        if not facts["same_numbers"]:
            pairs = ", ".join(f"{a} is {b}" for a, b in facts["numbers"].items())
            how = f"The files have different logs, so that clusters were matched ({pairs})"
        say(
            f"{how}: {facts['moved']:,} samples ({100 * facts['share_moved']:.1f} %) have another "
            f"cluster, adjusted Rand index {facts['adjusted_rand']:.3f}."
        )
    if facts["events"]:
        print_rows(facts["events"])
